//! Copies of a store's directory: backups of one that a server writes to, and older states.
//!
//! A copy is a whole snapshot, and the log from where that begins to a place that is not before
//! the snapshot's end. The snapshot is chosen and read first: when it has its name, all that it has
//! seen is durable, so a copy of the log that is made later has it. The server may remove the
//! snapshot while it is read, which does no harm, and cut the log behind it, which is noticed: then
//! the copy begins anew, with a newer snapshot.

use super::folder::Folder;
use super::format::{BLOCK_HEAD_BYTES, END, HEAD_BYTES, block_head, read_head};
use super::read::{check, end_of_file, fill, read_block, read_end};
use super::{FileFailure, SnapshotError, make_private};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use thiserror::Error;
use tremula_log::{CopyError, Point, Sequence, copy, last_at};

/// The folder of the log in a store's directory.
pub const LOG_FOLDER: &str = "log";

/// How often a copy begins anew because its snapshot is too old. Each time a newer one was made.
const ATTEMPTS: usize = 20;

/// Bytes that are read and written at once.
const BUFFER: usize = 1 << 20;

/// What a copy of a store has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedStore {
    /// The last record that it has.
    pub last: Sequence,
    /// When that was written, if it is known.
    pub written: Option<SystemTime>,
    /// The earliest state that can be restored from it.
    pub earliest: Sequence,
    /// Its snapshots.
    pub snapshots: u64,
    /// Bytes of snapshots and of the log.
    pub bytes: u64,
    /// Newer snapshots that were not used, because they are damaged.
    pub damaged: Vec<String>,
}

/// Why there is no copy. What had been made of it was removed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CopyStoreError {
    /// There is something where the copy is to be.
    #[error("{} is not empty; name a directory that is, or a new one", .0.display())]
    NotEmpty(PathBuf),
    /// There is no store.
    #[error("{} keeps no store: it has no folder '{LOG_FOLDER}'", .0.display())]
    NoStore(PathBuf),
    /// No snapshot is old enough, and the log does not reach back to the beginning.
    #[error(
        "nothing in {} leads to sequence {wanted}: the earliest state that can be restored is that of sequence {earliest}", path.display()
    )]
    TooEarly {
        /// The directory.
        path: PathBuf,
        /// What was asked for.
        wanted: Sequence,
        /// The earliest that there is.
        earliest: Sequence,
    },
    /// No snapshot is whole, and the log does not reach back to the beginning.
    #[error(
        "{damaged}; the log begins at sequence {first}, so that an older snapshot, or none, does not do"
    )]
    NoSnapshot {
        /// What is wrong with the newest snapshot.
        damaged: String,
        /// The first record of the log.
        first: Sequence,
    },
    /// The log has not come so far.
    #[error("the log in {} ends at sequence {last}: there is no {wanted} in it", path.display())]
    TooLate {
        /// The directory.
        path: PathBuf,
        /// What was asked for.
        wanted: Sequence,
        /// The last record.
        last: Sequence,
    },
    /// A snapshot cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The log cannot be copied.
    #[error(transparent)]
    Log(#[from] CopyError),
    /// The system refused.
    #[error(transparent)]
    Failed(#[from] FileFailure),
}

/// Copies the store in `directory`, to which a server may be writing, into `target`, which is made
/// or is empty. The copy has everything that was durable before, and is a store's directory itself.
/// It was checked and is on the disk when this returns. O(bytes); takes no lock of the server's.
///
/// With `history` the copy has every snapshot, and the log from the oldest one on, so that all
/// states that can be restored from the directory can be restored from the copy. Otherwise it has
/// the newest whole snapshot.
///
/// # Errors
///
/// [`CopyStoreError`]. What had been made was removed.
///
/// ```
/// use std::sync::Arc;
/// use tremula_log::{Config, FileLog};
/// use tremula_store::{Engine, Folder, Key, LOG_FOLDER, Store, StoreConfig, Value, backup};
///
/// let directory = tempfile::tempdir()?;
/// let target = directory.path().join("copy");
/// let place = directory.path().join("store");
/// let settings = Config::default().segment_bytes(4096);
/// let log = Arc::new(FileLog::open(place.join(LOG_FOLDER), &settings)?);
/// let config = StoreConfig::new(Engine::Aspen);
/// let (store, _) = Store::recover(&config, log, &Folder::new(&place), &mut |_| ())?;
/// let (key, value) = (Key::from(&b"tree"[..]), Value::from(&b"aspen"[..]));
/// store.commit(|effects| store.database(0).insert(effects, key, value))?;
/// store.sync()?;
///
/// let copied = backup(&place, &target, false)?;
/// assert_eq!(copied.last, store.last_effect());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn backup(
    directory: &Path,
    target: &Path,
    history: bool,
) -> Result<CopiedStore, CopyStoreError> {
    Copying {
        directory,
        history,
        to: None,
    }
    .into(target)
}

/// Makes in `target`, which is made or is empty, the store that `directory` was at some point: a
/// backup, or the directory of a server, which may be running. O(bytes).
///
/// # Errors
///
/// [`CopyStoreError`]; among others, nothing leads to that point any more.
pub fn restore(
    directory: &Path,
    target: &Path,
    point: Point,
) -> Result<CopiedStore, CopyStoreError> {
    let log = directory.join(LOG_FOLDER);
    if !log.is_dir() {
        return Err(CopyStoreError::NoStore(directory.to_owned()));
    }
    let to = if point == Point::End {
        None
    } else {
        Some(last_at(&log, point)?)
    };
    if let (Some(reached), Point::Sequence(wanted)) = (to, point)
        && reached.is_end
        && reached.last < wanted
    {
        return Err(CopyStoreError::TooLate {
            path: directory.to_owned(),
            wanted,
            last: reached.last,
        });
    }
    let to = to.map(|reached| reached.last);
    Copying {
        directory,
        history: false,
        to,
    }
    .into(target)
}

struct Copying<'a> {
    directory: &'a Path,
    history: bool,
    /// The last record that the copy is to have.
    to: Option<Sequence>,
}

/// A snapshot that was copied and has not got its name yet.
struct CopiedSnapshot {
    file: PathBuf,
    name: PathBuf,
    begins: Sequence,
    ends: Sequence,
    bytes: u64,
}

impl Copying<'_> {
    fn into(self, target: &Path) -> Result<CopiedStore, CopyStoreError> {
        let log = self.directory.join(LOG_FOLDER);
        if !log.is_dir() {
            return Err(CopyStoreError::NoStore(self.directory.to_owned()));
        }
        let target = Target::begin(target)?;
        for _ in 0..ATTEMPTS {
            match self.attempt(&target) {
                // A newer snapshot was made meanwhile, so that the log was cut.
                Err(CopyStoreError::Log(CopyError::Missing { from, first, .. }))
                    if from < first =>
                {
                    target.clear()?;
                }
                Ok(copied) => {
                    target.keep();
                    return Ok(copied);
                }
                Err(error) => return Err(error),
            }
        }
        Err(CopyError::TooSlow { path: log }.into())
    }

    fn attempt(&self, target: &Target) -> Result<CopiedStore, CopyStoreError> {
        let mut damaged = Vec::new();
        let snapshots = self.snapshots(target, &mut damaged)?;
        let from = snapshots.last().map_or(Sequence::FIRST, |last| last.begins);
        let log = self.directory.join(LOG_FOLDER);
        let copied = copy(&log, &target.path.join(LOG_FOLDER), from, self.to);
        let copied = match copied {
            Err(CopyError::Missing { from, first, .. }) if snapshots.is_empty() && from < first => {
                return Err(self.no_snapshot(first, damaged));
            }
            other => other?,
        };
        let last = copied.tail.next.before();
        let earliest = snapshots.last().map_or(Sequence::NONE, |last| last.ends);
        let bytes: u64 = snapshots.iter().map(|snapshot| snapshot.bytes).sum();
        let count = snapshots.len() as u64;
        for snapshot in snapshots {
            let (from, to) = (&snapshot.file, &snapshot.name);
            fs::rename(from, to).map_err(|error| FileFailure::new("rename", from, error))?;
        }
        sync(&target.path)?;
        Ok(CopiedStore {
            last,
            written: copied.written,
            earliest,
            snapshots: count,
            bytes: bytes + copied.bytes,
            damaged,
        })
    }

    fn no_snapshot(&self, first: Sequence, damaged: Vec<String>) -> CopyStoreError {
        if let Some(damaged) = damaged.into_iter().next() {
            return CopyStoreError::NoSnapshot { damaged, first };
        }
        let all = Folder::new(self.directory).snapshots().unwrap_or_default();
        let oldest = all.last().and_then(|path| Folder::ends(path).ok());
        CopyStoreError::TooEarly {
            path: self.directory.to_owned(),
            wanted: self.to.unwrap_or_default(),
            earliest: oldest.unwrap_or(first),
        }
    }

    /// Copies the snapshots that are wanted, the newest first.
    fn snapshots(
        &self,
        target: &Target,
        damaged: &mut Vec<String>,
    ) -> Result<Vec<CopiedSnapshot>, CopyStoreError> {
        let mut copied: Vec<CopiedSnapshot> = Vec::new();
        for path in Folder::new(self.directory).snapshots()? {
            let fits = || -> Result<bool, SnapshotError> {
                let Some(to) = self.to else { return Ok(true) };
                Ok(Folder::ends(&path)? <= to)
            };
            let result = fits().and_then(|fits| {
                let copy = || copy_snapshot(&path, &target.path);
                fits.then(copy).transpose()
            });
            match result {
                Ok(Some(snapshot)) => {
                    copied.push(snapshot);
                    if !self.history {
                        break;
                    }
                }
                Ok(None) => {}
                // The server has removed it, because there are newer ones.
                Err(SnapshotError::Failed(failure))
                    if failure.source.kind() == io::ErrorKind::NotFound => {}
                Err(error @ SnapshotError::Damaged { .. }) => damaged.push(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(copied)
    }
}

/// Copies a snapshot into a folder, and looks at every checksum on the way.
fn copy_snapshot(path: &Path, folder: &Path) -> Result<CopiedSnapshot, SnapshotError> {
    let failed = |action| move |error| FileFailure::new(action, path, error);
    let file = File::open(path).map_err(failed("open"))?;
    let mut file = BufReader::with_capacity(BUFFER, file);
    let mut head = [0; HEAD_BYTES];
    fill(&mut file, &mut head, 0, path)?;
    let begins = read_head(&head, path)?;
    let name = path.file_name().unwrap_or_default();
    let unfinished = folder.join(format!("{}.unfinished", name.to_string_lossy()));
    let cannot = |action| {
        let to = unfinished.clone();
        move |error| FileFailure::new(action, &to, error)
    };
    let out = File::create(&unfinished).map_err(cannot("create"))?;
    let mut out = BufWriter::with_capacity(BUFFER, out);
    out.write_all(&head).map_err(cannot("write"))?;
    let mut offset = HEAD_BYTES as u64;
    let ends = loop {
        let block = read_block(&mut file, offset, path)?;
        check(&block, path)?;
        let head = block_head(block.kind, &block.body);
        out.write_all(&head).map_err(cannot("write"))?;
        out.write_all(&block.body).map_err(cannot("write"))?;
        offset += (BLOCK_HEAD_BYTES + block.body.len()) as u64;
        if block.kind == END {
            break read_end(&block, path)?.1;
        }
    };
    end_of_file(&mut file, offset, path)?;
    let out = out
        .into_inner()
        .map_err(|error| cannot("write")(error.into_error()))?;
    out.sync_all().map_err(cannot("sync"))?;
    Ok(CopiedSnapshot {
        name: folder.join(name),
        file: unfinished,
        begins: Sequence::new(begins),
        ends,
        bytes: offset,
    })
}

/// Where a copy is made. What is in it when this is dropped goes, unless it is to be kept.
struct Target {
    path: PathBuf,
    was_there: bool,
    is_kept: Cell<bool>,
}

impl Target {
    fn begin(path: &Path) -> Result<Self, CopyStoreError> {
        let failure = |action| move |error| FileFailure::new(action, path, error);
        let was_there = match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(CopyStoreError::NotEmpty(path.to_owned()));
                }
                true
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_private(path).map_err(failure("make the directory"))?;
                false
            }
            Err(error) => return Err(failure("read")(error).into()),
        };
        Ok(Self {
            path: path.to_owned(),
            was_there,
            is_kept: Cell::new(false),
        })
    }

    /// Removes all that was copied.
    fn clear(&self) -> Result<(), FileFailure> {
        let failure = |error| FileFailure::new("empty", &self.path, error);
        for entry in fs::read_dir(&self.path).map_err(failure)? {
            let path = entry.map_err(failure)?.path();
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.map_err(|error| FileFailure::new("remove", &path, error))?;
        }
        Ok(())
    }

    fn keep(&self) {
        self.is_kept.set(true);
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.is_kept.get() {
            // If that fails, what is left has no snapshot, and is taken for no store.
            let _ = self.clear();
            if !self.was_there {
                let _ = fs::remove_dir(&self.path);
            }
        }
    }
}

/// Makes the names in a directory, and its own in the one above, survive a loss of power.
fn sync(path: &Path) -> Result<(), FileFailure> {
    for folder in [Some(path), path.parent()].into_iter().flatten() {
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| FileFailure::new("sync", folder, error))?;
    }
    Ok(())
}
