//! What a store keeps on a disk: snapshots, and the log behind them.
//!
//! | file | holds |
//! |---|---|
//! | `format` | the bytes of a snapshot |
//! | `write` | making a snapshot while all write |
//! | `read` | loading one, on all cores |
//! | `range` | reading a range out of one |
//! | `replay` | applying the log behind it, on all cores |
//! | `progress` | how far one is that is being written |
//! | `folder` | which snapshots there are, and which may go |
//! | `backup` | copies of a directory that a server writes to, and older states |
//!
//! A snapshot is *fuzzy*: it begins at a sequence of the log, and shows each key as it was at some
//! moment between that and its end. What was changed meanwhile stands in the log behind that
//! sequence, and a record says what its key is, so applying the log on top gives the state at the
//! log's end, whatever of it the snapshot had seen.

mod backup;
mod folder;
mod format;
mod progress;
mod range;
mod read;
mod replay;
#[cfg(test)]
mod tests;
mod write;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use tremula_log::{ReadError, Stopped};
use tremula_table::table::effect::ApplyError;

pub use backup::{CopiedStore, CopyStoreError, LOG_FOLDER, backup, restore};
pub use folder::{Folder, Saved};
pub(crate) use progress::Progress;
pub(crate) use range::SnapshotRange;
pub(crate) use read::{Loaded, load};
pub(crate) use replay::{apply_batch, replay};
pub(crate) use write::write;

/// Makes a directory for this user alone, and those above it, if they are missing.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Something that the system refused to do with a snapshot's file.
#[derive(Debug, Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileFailure {
    /// What was tried, as a verb.
    pub action: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: io::Error,
}

impl FileFailure {
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        Self {
            action,
            path,
            source,
        }
    }
}

/// Why a snapshot could not be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It is not what was written, or not all of it.
    #[error("{} is damaged at offset {offset}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file, in bytes from its beginning.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// It was written by a newer version.
    #[error("{} has format {found}, and this version reads no newer one than {known}; use the version that wrote it, or a newer one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// It has a table that this store cannot have.
    #[error("{}: {source}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Which table, and why not.
        #[source]
        source: Box<ApplyError>,
    },
    /// The system refused to read it.
    #[error(transparent)]
    Failed(#[from] FileFailure),
}

/// Why a snapshot was not made. What was there before is still there.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SaveError {
    /// There is no log: the store is in memory only.
    #[error("there is no folder for snapshots: this store is in memory only")]
    MemoryOnly,
    /// The system refused.
    #[error(transparent)]
    Failed(#[from] FileFailure),
    /// The log has stopped before it had what the snapshot has seen.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why what is on the disk could not be made a store again. Nothing on the disk was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// No snapshot is whole, and the log does not reach back to the beginning.
    #[error(
        "{newest}; the log begins at sequence {first}, so that an older snapshot, or none, does not do; restore the directory from a backup"
    )]
    NoSnapshot {
        /// What is wrong with the newest snapshot.
        newest: Box<SnapshotError>,
        /// The first record of the log.
        first: u64,
    },
    /// The log begins behind the snapshot.
    #[error(
        "the newest snapshot goes to sequence {snapshot}, and the log begins at {first}: what lies between them is missing; restore the directory from a backup"
    )]
    Gap {
        /// Where the log would have to begin.
        snapshot: u64,
        /// Where it begins.
        first: u64,
    },
    /// The log ends before the snapshot does.
    #[error(
        "the newest snapshot has seen sequence {snapshot}, and the log ends at {last}: the end of the log is missing; restore the directory from a backup"
    )]
    Behind {
        /// The last record that the snapshot has seen.
        snapshot: u64,
        /// The last record of the log.
        last: u64,
    },
    /// A snapshot is of a version that is not known.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] ReadError),
    /// The log has a record that means nothing.
    #[error("record {sequence} of the log: {source}")]
    Record {
        /// Its sequence.
        sequence: u64,
        /// What is wrong.
        #[source]
        source: crate::BadRecord,
    },
    /// The log has an effect of a table that this store cannot have.
    #[error("record {sequence} of the log: {source}")]
    Table {
        /// Its sequence.
        sequence: u64,
        /// Which table, and why not.
        #[source]
        source: Box<ApplyError>,
    },
}
