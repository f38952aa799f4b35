//! A store in the process: a directory, the same keyspace and log as the server's, no network.
//!
//! [`DurableMap`] is what most programs want: an ordered map that is there again after a restart.
//! [`LocalStore`] is the directory under it, which may hold several maps. `tremula serve --dir`
//! serves the same directory, when no program has it open.
//!
//! | file | holds |
//! |---|---|
//! | `mod` | [`LocalStore`]: opening, saving in the background, closing |
//! | `map` | [`DurableMap`], batches, ranges |
//! | `keys`, `values` | what can be a key, and a value |

mod keys;
mod map;
mod values;

pub use keys::DurableKey;
pub use map::{DurableMap, MapError, Range, WriteBatch};
#[cfg(feature = "serde")]
pub use values::Json;
pub use values::{BadValue, DurableValue};

use crate::disk::{Folder, LOG_FOLDER, SaveError, Saved, make_private};
use crate::effects::DATABASES;
use crate::store::{OpenError, Store, StoreConfig};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;
use tremula_index::Engine;
use tremula_log::{Config, FileLog, Keep, Log, Stopped};
use tremula_sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use tremula_sync::system::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use tremula_sync::system::{Arc, Mutex, thread};

/// How often the thread in the background looks at the log.
const LOOK: Duration = Duration::from_millis(100);

/// Keys whose time has come that are removed at once.
const AT_ONCE: usize = 256;

/// How long after a snapshot that failed the next one begins.
const AGAIN: Duration = Duration::from_secs(60);

/// How long a close waits for threads that are amid a write.
const HAND_OVER: Duration = Duration::from_secs(5);

/// Records that may be applied at a start, beyond the number of keys, before a snapshot is made:
/// that many take a fraction of a second.
const MANY_RECORDS: u64 = 200_000;

/// When a write is on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Before the method that writes returns. Threads that write at once share the disk's syncs.
    Always,
    /// Within a second, also if the machine loses its power. The kill of the process alone loses no
    /// more than a millisecond.
    #[default]
    EverySecond,
    /// When the system writes it.
    System,
}

/// How a directory is opened.
///
/// ```
/// use tremula_store::local::{Durability, LocalOptions};
///
/// let options = LocalOptions::default().durability(Durability::Always).snapshot_every(1 << 30);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct LocalOptions {
    engine: Engine,
    durability: Durability,
    snapshot_every: u64,
    keep: Keep,
    segment_bytes: u64,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            engine: Engine::Aspen,
            durability: Durability::default(),
            snapshot_every: 256 << 20,
            keep: Keep::Nothing,
            segment_bytes: 4 << 20,
        }
    }
}

impl LocalOptions {
    /// The index: `Aspen`, `CaTree` or `BTree` [default: `Aspen`].
    #[must_use]
    pub const fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// When a write is on the disk [default: within a second].
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Bytes of the log after which a snapshot is made in the background, so that the log can be
    /// cut and the next start is quick [default: 256 MiB]. 0 makes none.
    #[must_use]
    pub const fn snapshot_every(mut self, bytes: u64) -> Self {
        self.snapshot_every = bytes;
        self
    }

    /// What of the log stays though no snapshot needs it [default: nothing]: so that
    /// [`restore`](crate::restore) can go back.
    #[must_use]
    pub const fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Bytes of a file of the log, 1 KiB at least [default: 4 MiB]. Two of them are there at any
    /// time. With many writers, 64 MiB are faster.
    #[must_use]
    pub const fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }
}

/// Why a directory could not be opened. Nothing in it was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LocalError {
    /// It cannot be made.
    #[error("cannot make the directory {}: {source}", path.display())]
    Make {
        /// The directory.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The log in it cannot be opened: it is in use, cannot be written, is damaged or of a newer
    /// version.
    #[error(transparent)]
    Log(#[from] tremula_log::OpenError),
    /// What is there does not make a whole, or the engine cannot keep a log.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The system refused a thread.
    #[error("cannot start the thread that makes snapshots: {0}")]
    Thread(#[source] io::Error),
}

/// A directory that keeps what a program stores, and the [`Store`] over it. Clones are handles of
/// one store; when the last one is dropped, everything is made durable and the directory is free.
///
/// It has 16 databases, which [`map`](Self::map) gives types. Everything else that a [`Store`] can
/// do is at [`keyspace`](Self::keyspace).
///
/// Memory: all keys and values, and what waits for the disk, 64 MiB at most; writers wait beyond
/// that. Disk: the log since the older of two snapshots, and these.
///
/// ```
/// use tremula_store::local::LocalStore;
///
/// let directory = tempfile::tempdir()?;
/// let store = LocalStore::open(directory.path())?;
/// let (trees, heights) = (store.map::<String, String>(0), store.map::<String, u32>(1));
/// trees.insert(&"aspen".to_owned(), &"Populus tremula".to_owned())?;
/// heights.insert(&"aspen".to_owned(), &25)?;
/// drop((store, trees, heights)); // frees the directory
///
/// let store = LocalStore::open(directory.path())?;
/// assert_eq!(store.map::<String, u32>(1).get(&"aspen".to_owned())?, Some(25));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LocalStore(Arc<Opened>);

struct Opened {
    shared: Arc<Shared>,
    /// Dropped to end the thread.
    keeper: Mutex<Option<(SyncSender<()>, thread::JoinHandle<()>)>>,
}

struct Shared {
    store: Store,
    log: Arc<FileLog>,
    folder: Folder,
    directory: PathBuf,
    options: LocalOptions,
    /// The bytes that the log had written at the last snapshot.
    saved_at: AtomicU64,
    /// Whether it takes no more writes.
    is_closed: AtomicBool,
    /// Whether the start took long because the log was long.
    is_late: AtomicBool,
    failure: Mutex<Option<String>>,
}

impl LocalStore {
    /// Opens the directory with the default [options](LocalOptions), and makes it, for this user
    /// alone, if it is missing. Reads all of it: O(bytes), on all cores.
    ///
    /// # Errors
    ///
    /// [`LocalError`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, LocalError> {
        Self::open_with(directory, &LocalOptions::default())
    }

    /// Opens the directory with other options.
    ///
    /// # Errors
    ///
    /// [`LocalError`].
    pub fn open_with(
        directory: impl AsRef<Path>,
        options: &LocalOptions,
    ) -> Result<Self, LocalError> {
        let directory = directory.as_ref();
        let sync = match options.durability {
            Durability::System => None,
            Durability::Always | Durability::EverySecond => Some(Duration::from_secs(1)),
        };
        let config = Config::default()
            .segment_bytes(options.segment_bytes)
            .sync_every(sync)
            .keep(options.keep);
        make_private(directory).map_err(|source| LocalError::Make {
            path: directory.to_owned(),
            source,
        })?;
        let log = Arc::new(FileLog::open(directory.join(LOG_FOLDER), &config)?);
        let folder = Folder::new(directory);
        let config = StoreConfig::new(options.engine);
        let as_log: Arc<dyn Log> = Arc::clone(&log) as Arc<dyn Log>;
        let (store, recovered) = Store::recover(&config, as_log, &folder, &mut |_| ())?;
        let keys: usize = store.databases().map(|database| database.len()).sum();
        let shared = Arc::new(Shared {
            store,
            log,
            folder,
            directory: directory.to_owned(),
            options: options.clone(),
            saved_at: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            is_late: AtomicBool::new(recovered.records > keys as u64 + MANY_RECORDS),
            failure: Mutex::new(None),
        });
        let (sender, receiver) = sync_channel(0);
        let keeper = Arc::clone(&shared);
        let keeper = thread::Builder::new()
            .name("tremula-keeper".to_owned())
            .spawn(move || keeper.keep(&receiver))
            .map_err(LocalError::Thread)?;
        Ok(Self(Arc::new(Opened {
            shared,
            keeper: Mutex::new(Some((sender, keeper))),
        })))
    }

    /// A typed view of the database with this number, from 0 to 15. The types are those with which
    /// it was written: another type's bytes are reported as errors where they are none of these.
    ///
    /// # Panics
    ///
    /// There is no such database.
    #[must_use]
    pub fn map<K: DurableKey, V: DurableValue>(&self, database: usize) -> DurableMap<K, V> {
        assert!(
            database < DATABASES,
            "there is no database {database}: the last one is {}",
            DATABASES - 1
        );
        DurableMap::over(self.clone(), database)
    }

    /// The store under it, which a server has too: for ranges of bytes, steps over several keys,
    /// and values that are appended to. A write is on its way to the disk at once if it goes
    /// through a map; others by [`Store::forward`], and within a tenth of a second.
    ///
    /// Tables are kept too, and mailboxes that were made durable.
    #[must_use]
    pub fn keyspace(&self) -> &Store {
        &self.0.shared.store
    }

    pub(super) fn durability(&self) -> Durability {
        self.0.shared.options.durability
    }

    /// Whether it was closed, by this handle or another.
    pub(super) fn is_closed(&self) -> bool {
        self.0.shared.is_closed.load(SeqCst)
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.0.shared.directory
    }

    /// Blocks until everything that this thread has written or seen is on the disk.
    ///
    /// # Errors
    ///
    /// The disk has failed, or the store was closed.
    pub fn sync(&self) -> Result<(), Stopped> {
        self.keyspace().sync()
    }

    /// Makes a snapshot now, while others write, and cuts the log behind it. Blocks until that is
    /// on the disk. The thread in the background does the same by itself, after
    /// [`snapshot_every`](LocalOptions::snapshot_every). O(n).
    ///
    /// # Errors
    ///
    /// [`SaveError`]. What was there is still there.
    pub fn snapshot(&self) -> Result<Saved, SaveError> {
        self.0.shared.snapshot()
    }

    /// Why the last snapshot in the background failed, if it did. The log grows until one succeeds;
    /// it is tried again each minute.
    #[must_use]
    pub fn snapshot_failure(&self) -> Option<String> {
        let failure = self.0.shared.failure.lock();
        failure.map_or(None, |failure| failure.clone())
    }

    /// Makes everything durable, and frees the directory once the last handle is dropped. Later
    /// writes, by other handles, are refused. Dropping the last handle does the same, and cannot
    /// say whether it has succeeded.
    ///
    /// # Errors
    ///
    /// Something did not become durable.
    pub fn close(self) -> Result<(), Stopped> {
        self.0.close()
    }
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LocalStore in {}", self.directory().display())
    }
}

impl Opened {
    fn close(&self) -> Result<(), Stopped> {
        self.shared.is_closed.store(true, SeqCst);
        self.shared.hand_over();
        let keeper = self.keeper.lock().map_or(None, |mut keeper| keeper.take());
        if let Some((sender, keeper)) = keeper {
            drop(sender);
            // A panic of the thread was reported; the log is closed all the same.
            let _ = keeper.join();
        }
        self.shared.log.close()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // A caller that wants to know calls `close`.
        let _ = self.close();
    }
}

impl Shared {
    /// Hands to the log what nobody has handed over, and makes snapshots when the log is long.
    fn keep(&self, ends: &Receiver<()>) {
        let mut not_before = Instant::now();
        while ends.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            // Of a server that kept keys here which expire. If the log takes no more, they stay.
            while self.store.expire(AT_ONCE).is_ok_and(|(_, is_more)| is_more) {}
            self.store.forward();
            if self.wants_snapshot() && Instant::now() >= not_before {
                let saved = self.snapshot();
                let failure = saved.err().map(|error| error.to_string());
                if failure.is_some() {
                    not_before = Instant::now() + AGAIN;
                }
                if let Ok(mut last) = self.failure.lock() {
                    *last = failure;
                }
            }
        }
    }

    /// Waits until the log has what was committed before: another thread may be handing it over.
    fn hand_over(&self) {
        let last = self.store.last_effect();
        let deadline = Instant::now() + HAND_OVER;
        loop {
            self.store.forward();
            let has_all = self.log.tail().next > last;
            if has_all || self.log.admits(1).is_err() || Instant::now() > deadline {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn wants_snapshot(&self) -> bool {
        let every = self.options.snapshot_every;
        let written = self.log.stats().bytes - self.saved_at.load(Relaxed);
        every > 0 && (written >= every || self.is_late.load(Relaxed))
    }

    fn snapshot(&self) -> Result<Saved, SaveError> {
        let written = self.log.stats().bytes;
        let saved = self.store.save(&self.folder)?;
        self.saved_at.store(written, Relaxed);
        self.is_late.store(false, Relaxed);
        // What cannot be cut now is cut behind the next snapshot.
        let _ = self.log.truncate_below(saved.needed);
        Ok(saved)
    }
}
