//! What can go wrong, each with what to do about it.

use crate::sequence::Sequence;
use std::io;
use std::path::PathBuf;
use thiserror::Error;
use tremula_sync::system::Arc;

/// Another writer has appended: the batch was meant for a sequence that the log is past, or that it
/// has not reached. Nothing was appended.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the batch was to begin at sequence {expected}, but the log goes on at {next}: another writer \
     appends to it; read what it has written before appending again"
)]
pub struct Fenced {
    /// Where the batch was to begin.
    pub expected: Sequence,
    /// Where the log goes on.
    pub next: Sequence,
}

/// Why a batch was not appended. The log is as if it had not been offered.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Refused {
    /// Another writer has appended.
    #[error(transparent)]
    Fenced(#[from] Fenced),
    /// The batch has no record.
    #[error("a batch needs at least one record")]
    Empty,
    /// The batch is longer than the log takes.
    #[error(
        "a batch of {bytes} bytes is longer than the {limit} that this log takes; split it, or raise Config::max_batch"
    )]
    TooLarge {
        /// The bytes of the batch.
        bytes: usize,
        /// The most that the log takes.
        limit: usize,
    },
    /// The disk is slower than the writers, and what waits for it has reached its limit. Wait for
    /// something that was appended to become durable, and try again.
    #[error(
        "{pending} bytes wait to be written, and no more than {limit} may; wait until the disk has caught up, or raise Config::max_pending"
    )]
    Behind {
        /// The bytes that wait.
        pending: usize,
        /// The most that may wait.
        limit: usize,
    },
    /// There is no room for more. What was appended stays readable, and appending works again once
    /// there is room.
    #[error(transparent)]
    Full(#[from] Full),
    /// Another process writes to the log, or none does; this one only reads it.
    #[error("this node does not lead its group, so it takes no writes")]
    NotLeading,
    /// The log takes no more batches.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The log has no room on its disk. It tries again by itself, and when it is truncated.
#[derive(Clone, Debug, Error)]
#[error(
    "the log has no room for more: {failure}; free some space, or make a snapshot so that the log can be truncated; writing goes on by itself then"
)]
pub struct Full {
    /// What failed.
    #[source]
    pub failure: Failure,
}

/// Why a log takes no more batches, and why a wait for one that was not yet durable has ended.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Stopped {
    /// It was closed.
    #[error("the log is closed")]
    Closed,
    /// The disk failed. Whether what was being written is on it is not known, so the log never
    /// tries again: the system may have forgotten what it could not write, and report success.
    #[error(
        "the log has stopped: {0}; what was not durable by then may be lost; look after the disk, then open the log again"
    )]
    Failed(#[source] Failure),
    /// Another writer has appended to the log, and what this one appended is not in it.
    #[error(transparent)]
    Fenced(Fenced),
}

/// Something that the system refused to do with a file.
#[derive(Clone, Debug, Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct Failure {
    /// What was tried, as a verb: `write`, `sync`.
    pub action: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: Arc<io::Error>,
}

impl Failure {
    pub(crate) fn new(action: &'static str, path: PathBuf, source: io::Error) -> Self {
        let source = Arc::new(source);
        Self {
            action,
            path,
            source,
        }
    }

    /// Whether something is used up that comes back: room on the disk, a quota, open files, memory.
    /// Then the same may succeed later, and nothing that was written is in doubt.
    pub(crate) fn may_pass(&self) -> bool {
        use io::ErrorKind::{OutOfMemory, QuotaExceeded, StorageFull};
        use rustix::io::Errno;
        let open_files = [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error()));
        matches!(
            self.source.kind(),
            StorageFull | QuotaExceeded | OutOfMemory
        ) || open_files.contains(&self.source.raw_os_error())
    }
}

/// Bytes of a log that are not what was written there.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{} is damaged at offset {offset}: {what}; restore the directory from a copy, or see what \
     `tremula log check` and `tremula log repair` say",
    path.display()
)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in the file, in bytes from its beginning.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
}

/// Why a log could not be opened. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory cannot be made or written to.
    #[error("{0}; let this user write there, or name another directory")]
    Directory(#[source] Failure),
    /// Another process has the directory open.
    #[error("{} is in use by {owner}; stop it first, or name another directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process, as far as it is known.
        owner: String,
    },
    /// The directory was written by a newer version.
    #[error("{} has format {found}, and this version reads no newer one than {known}; use the version that wrote it, or a newer one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// Something is damaged that is not the torn end of the last write.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// A setting makes no sense.
    #[error("{0}")]
    Config(String),
    /// The system refused something else.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Why a log cannot be read from a sequence, or not any further.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The records were truncated.
    #[error(
        "the log begins at sequence {first}; {from} was truncated: begin from a snapshot of {first} or later"
    )]
    Truncated {
        /// What was to be read.
        from: Sequence,
        /// The first record that is there.
        first: Sequence,
    },
    /// The log has not come so far.
    #[error("the log goes on at sequence {next}; there is no {from} yet")]
    Beyond {
        /// What was to be read.
        from: Sequence,
        /// Where the log goes on.
        next: Sequence,
    },
    /// What was read is not what was written.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The system refused to read.
    #[error(transparent)]
    Failed(#[from] Failure),
}
