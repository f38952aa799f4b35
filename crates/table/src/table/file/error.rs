//! What is wrong with a file.

use crate::table::BadArgument;
use crate::term::DecodeError;
use std::path::{Path, PathBuf};
use std::{fmt, io};
use thiserror::Error;

/// A table could not be written to, or read from, a file.
#[derive(Debug)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: Box<FileProblem>,
}

/// What is wrong with a file. Offsets are in bytes from its beginning.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The system could not do it.
    #[error("{0}")]
    System(#[from] io::Error),
    /// It begins like no table.
    #[error("byte 0: it is no file of a table")]
    NotATable,
    /// It was written by a later version.
    #[error("byte 7: its format has version {0}; this program knows version 1")]
    Version(u8),
    /// Erlang did not close it.
    #[error("byte 4: Erlang has not closed it")]
    NotClosed,
    /// It ends too early.
    #[error("byte {offset}: it ends here, within a record or before the last one")]
    Truncated {
        /// Where it ends.
        offset: u64,
    },
    /// Its bytes are not those that were written.
    #[error("byte {offset}: the record that begins here is damaged")]
    Damaged {
        /// Where the record begins.
        offset: u64,
    },
    /// A record that is no term.
    #[error("byte {offset}: {error}, counted within the record")]
    Term {
        /// Where the record's payload begins.
        offset: u64,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// A record with something else than what has to be there.
    #[error("byte {offset}: this record has to be {wanted}")]
    Unexpected {
        /// Where the record begins.
        offset: u64,
        /// What has to be there.
        wanted: &'static str,
    },
    /// Another number of rows than it says.
    #[error("byte {offset}: it says here that it has {said} rows, and has {found}")]
    Count {
        /// Where it says so.
        offset: u64,
        /// What it says.
        said: u64,
        /// How many there are.
        found: u64,
    },
    /// Something behind the last record.
    #[error("byte {offset}: something follows the last record")]
    Trailing {
        /// Where it begins.
        offset: u64,
    },
    /// A row that the format cannot hold.
    #[error("{0}")]
    TooLarge(#[from] crate::term::TooLarge),
    /// The table cannot be read, or made.
    #[error("{0}")]
    Table(#[from] BadArgument),
}

impl FileError {
    pub(super) fn at(path: &Path) -> impl Fn(FileProblem) -> Self + '_ {
        |problem| Self {
            path: path.to_owned(),
            problem: Box::new(problem),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.problem)
    }
}
