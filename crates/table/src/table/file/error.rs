//! What is wrong with a file.

use crate::table::BadArgument;
use crate::term::DecodeError;
use std::path::{Path, PathBuf};
use std::{fmt, io};
use thiserror::Error;

/// A table could not be written to, or read from, a file.
#[derive(Debug)]
#[non_exhaustive]
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
    /// The operating system reported an error.
    #[error("{0}")]
    System(#[from] io::Error),
    /// It does not begin as the file of a table does.
    #[error("byte 0: it is no file of a table")]
    NotATable,
    /// It has another version of the format.
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
    /// Its bytes are not the bytes that were written.
    #[error("byte {offset}: the record that begins here is damaged")]
    Damaged {
        /// Where the record begins.
        offset: u64,
    },
    /// A record is not a term.
    #[error("byte {offset}: {error}, counted within the record")]
    Term {
        /// Where the record's payload begins.
        offset: u64,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// A record is not what has to be at its place.
    #[error("byte {offset}: this record has to be {wanted}")]
    Unexpected {
        /// Where the record begins.
        offset: u64,
        /// What has to be there.
        wanted: &'static str,
    },
    /// It has another number of rows than it says.
    #[error("byte {offset}: it says here that it has {said} rows, and has {found}")]
    Count {
        /// Where it says the number.
        offset: u64,
        /// The number that it says.
        said: u64,
        /// The number of rows in the file.
        found: u64,
    },
    /// Something follows the last record.
    #[error("byte {offset}: something follows the last record")]
    Trailing {
        /// Where it begins.
        offset: u64,
    },
    /// A row that the format cannot hold.
    #[error("{0}")]
    TooLarge(#[from] crate::term::TooLarge),
    /// The table cannot be read or made.
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
