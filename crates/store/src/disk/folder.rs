//! Which snapshots there are, and which may go.

use super::progress::{Ending, Progress};
use super::read::{begins, ends};
use super::{FileFailure, SaveError, SnapshotError};
use crate::effects::Journal;
use crate::store::Store;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tremula_log::{Log, Sequence};
use tremula_sync::Mutex;

/// Snapshots that are kept: if the newest proves to be damaged, the one before it does.
const KEPT: usize = 2;

/// Where the log keeps more than the snapshots need, one of them stays for each such part of it, so
/// that what is not kept any more can go, part by part.
const PARTS: u64 = 4;

const PREFIX: &str = "snapshot-";
const SUFFIX: &str = ".tremula";
/// What a snapshot is called while it is written.
const UNFINISHED: &str = "snapshot.unfinished";

/// A folder with snapshots.
pub struct Folder {
    path: PathBuf,
    /// One snapshot is written at a time.
    writing: Mutex<()>,
    progress: Progress,
}

/// What a snapshot has, and how long it took.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The file.
    pub path: PathBuf,
    /// The keys in it, those of tables included.
    pub entries: u64,
    /// Its bytes.
    pub bytes: u64,
    /// How long it took.
    pub took: Duration,
    /// The oldest record of the log that is still needed: for the oldest of the snapshots. These
    /// are the newest two; and if the log [keeps](tremula_log::Log::keeps_from) more than they
    /// need, the newest snapshot that leads to the beginning of that, and some between.
    pub needed: Sequence,
}

impl fmt::Debug for Folder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Folder {}", self.path.display())
    }
}

impl Folder {
    /// The folder at `path`, which exists.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            writing: Mutex::new(()),
            progress: Progress::default(),
        }
    }

    /// How many entries of the snapshot that is being written are done, of how many; `None` while
    /// none is written. What comes meanwhile is not among them. O(1).
    ///
    /// ```
    /// use tremula_store::Folder;
    ///
    /// let directory = tempfile::tempdir().unwrap();
    /// assert_eq!(Folder::new(directory.path()).progress(), None);
    /// ```
    #[must_use]
    pub fn progress(&self) -> Option<(u64, u64)> {
        self.progress.get()
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the snapshot that begins at this sequence is, or would be.
    #[must_use]
    pub fn path_of(&self, begins: Sequence) -> PathBuf {
        self.path
            .join(format!("{PREFIX}{:020}{SUFFIX}", begins.get()))
    }

    /// The snapshots, the newest first.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn snapshots(&self) -> Result<Vec<PathBuf>, FileFailure> {
        let failure = |error| FileFailure::new("list", &self.path, error);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failure)? {
            let entry = entry.map_err(failure)?;
            if let Some(sequence) = sequence_of(&entry.path()) {
                found.push((sequence, entry.path()));
            }
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }

    /// Writes a snapshot of a store, beside those that are there, and then removes those that are
    /// not [needed](Saved::needed). Blocks for as long as that takes; writers go on meanwhile. A
    /// second call waits for the first.
    pub(crate) fn save(
        &self,
        store: &Store,
        log: &dyn Log,
        journal: &Journal,
    ) -> Result<Saved, SaveError> {
        let _one_at_a_time = self.writing.lock();
        let began = SystemTime::now();
        let unfinished = self.path.join(UNFINISHED);
        // What stands in the log before this has taken effect.
        let begin = log.tail().next;
        let ending = Ending(&self.progress);
        let written = super::write(store, begin, &unfinished, &self.progress)?;
        // Otherwise a crash could lose an effect and keep a later one, which the snapshot has seen.
        journal.forward();
        log.wait(written.ends)?;
        drop(ending);
        let path = self.path_of(begin);
        fs::rename(&unfinished, &path)
            .map_err(|error| FileFailure::new("rename", &unfinished, error))?;
        sync_folder(&self.path)?;
        let (old, needed) = self.unneeded(log)?;
        for path in old {
            fs::remove_file(&path).map_err(|error| FileFailure::new("remove", &path, error))?;
        }
        Ok(Saved {
            path,
            entries: written.entries,
            bytes: written.bytes,
            took: began.elapsed().unwrap_or_default(),
            needed: needed.unwrap_or(begin),
        })
    }

    /// The snapshots that may go, and the oldest record of the log that the others need.
    fn unneeded(&self, log: &dyn Log) -> Result<(Vec<PathBuf>, Option<Sequence>), FileFailure> {
        let mut all = self.snapshots()?;
        all.reverse();
        let begins = |path: &Path| sequence_of(path).map_or(Sequence::NONE, Sequence::new);
        let newest = all.len().saturating_sub(KEPT);
        let keeps_from = log.keeps_from();
        // A snapshot leads to the states from where it ends on.
        let leads = |path: &PathBuf| ends(path).is_ok_and(|ends| ends <= keeps_from);
        let base = all.iter().rposition(leads);
        let from_the_start = base.is_none() && log.first() == Sequence::FIRST;
        let oldest = base.unwrap_or(0).min(newest);
        let needed = match all.get(oldest) {
            _ if from_the_start => Some(Sequence::FIRST),
            found => found.map(|path| begins(path)),
        };
        let span = log.tail().next.get() - needed.map_or(0, Sequence::get);
        let mut last = needed.unwrap_or_default();
        let mut old = Vec::new();
        for (at, path) in all.into_iter().enumerate() {
            let begins = begins(&path);
            let is_far = begins.get().saturating_sub(last.get()) >= (span / PARTS).max(1);
            if at < oldest || (at > oldest && at < newest && !is_far) {
                old.push(path);
            } else {
                last = begins;
            }
        }
        Ok((old, needed))
    }

    /// The sequence at which the snapshot in this file begins, as its head says.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has another head.
    pub fn begins(path: &Path) -> Result<Sequence, SnapshotError> {
        begins(path)
    }

    /// The last record of the log that the snapshot in this file may have seen, as its end says: it
    /// leads to any state from there on.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has another end.
    pub fn ends(path: &Path) -> Result<Sequence, SnapshotError> {
        ends(path)
    }
}

/// The sequence in a snapshot's name.
fn sequence_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    digits.parse().ok()
}

fn sync_folder(path: &Path) -> Result<(), FileFailure> {
    let failure = |error| FileFailure::new("sync", path, error);
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(failure)
}
