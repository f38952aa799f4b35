//! A log in files.
//!
//! ```text
//!  writers            append: copy behind the others,   ┌───────┐
//!  ───────────────────── number, chain ───────────────► │ queue │
//!                                                       └───┬───┘
//!                               takes all at once, frames   │ flusher: one thread
//!   zeroes ──► spare ──► ┌─────────────┐ ┌─────────────┐ ◄──┘
//!     a thread     ▲     │ segment 1   │►│ segment 2   │  write, then sync
//!                  │     └──────┬──────┘ └─────────────┘        │
//!                  └────────────┘ truncated: kept for use       ▼
//!  waiters ◄─────────────────────────────────────────── watermark
//! ```
//!
//! What must hold: `queue` (order, hand-over), `flusher` (what is durable), `recover` (what may be
//! missing), `crate::watermark` (who is woken).

mod flusher;
pub(crate) mod format;
mod queue;
mod reader;
pub(crate) mod recover;
pub(crate) mod segment;
mod shared;
mod spares;

use crate::batch::Batch;
use crate::config::Config;
use crate::disk::Disk;
use crate::disk::os::OsDisk;
use crate::error::{Failure, OpenError, ReadError, Refused, Stopped};
use crate::faults::FaultyDisk;
use crate::log::{Log, Reader, Tail, Ticket};
use crate::sequence::Sequence;
use crate::watermark::Watermark;
use flusher::Flusher;
use format::SEGMENT_HEAD;
use queue::{Call, Queue};
use reader::FileReader;
use shared::{Counts, Shared};
pub use shared::{Opened, Stats};
use spares::Spares;
use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::thread::{Builder, JoinHandle};
use tremula_sync::{Arc, Mutex, system};

/// A log in the files of one directory, which no other process may have open meanwhile.
///
/// One thread writes; it syncs at once what somebody waits for, and everything else after
/// [`Config::sync_every`]. What waits while it syncs is written and synced together: the more
/// writers wait, the more records a sync makes durable. Dropping the log closes it.
///
/// Appending costs a hash over the batch, a lock, and a copy. Memory: what waits to be written, at
/// most [`Config::max_pending`], twice.
///
/// # When not to use it
///
/// To look records up by key: a log is read from a sequence on. On a disk that loses what it
/// has synced, or that destroys bytes next to those that it was writing when it lost power: the
/// log notices, and cannot help.
///
/// ```
/// use tremula_log::{Batch, Config, FileLog, Log, Sequence};
///
/// let directory = tempfile::tempdir().unwrap();
/// let config = Config::default().segment_bytes(1 << 20);
/// let log = FileLog::open(directory.path(), &config).unwrap();
/// let ticket = log.append(&Batch::of(b"a record"), None).unwrap();
/// log.wait(ticket.last()).unwrap(); // it is on the disk
/// drop(log);
///
/// let log = FileLog::open(directory.path(), &config).unwrap();
/// let entry = log.read(Sequence::FIRST).unwrap().next().unwrap().unwrap();
/// assert_eq!(entry.records().next(), Some(&b"a record"[..]));
/// ```
pub struct FileLog {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    opened: Opened,
}

impl FileLog {
    /// Opens the log in a directory, and makes both if they are missing.
    ///
    /// Reads and checks everything that is there: O(bytes).
    ///
    /// # Errors
    ///
    /// The directory cannot be made or written, is in use by another process, belongs to a newer
    /// version, or is damaged; a setting makes no sense. Damage is everything that a crash cannot
    /// have left.
    pub fn open(directory: impl AsRef<Path>, config: &Config) -> Result<Self, OpenError> {
        Self::open_from(directory, config, Tail::START)
    }

    /// As [`open`](Self::open); but if there is no log yet, the new one begins at `start`. For a
    /// copy of the end of another log, whose beginning is in a snapshot.
    ///
    /// ```
    /// use tremula_log::{Batch, Config, FileLog, Log};
    ///
    /// let directory = tempfile::tempdir().unwrap();
    /// let config = Config::default().segment_bytes(4096);
    /// let log = FileLog::open(directory.path().join("one"), &config).unwrap();
    /// log.append(&Batch::of(b"in the snapshot"), None).unwrap();
    /// let copy = FileLog::open_from(directory.path().join("two"), &config, log.tail()).unwrap();
    /// assert_eq!(copy.tail(), log.tail());
    /// assert_eq!(copy.beginning(), log.tail());
    /// ```
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open_from(
        directory: impl AsRef<Path>,
        config: &Config,
        start: Tail,
    ) -> Result<Self, OpenError> {
        config.check()?;
        let disk = OsDisk::open(directory.as_ref())?;
        Self::on(system::Arc::new(disk), config, start)
    }

    /// Opens the log on a disk that fails when it is asked to.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_on(disk: &FaultyDisk, config: &Config) -> Result<Self, OpenError> {
        config.check()?;
        let handle = disk.open().ok_or_else(|| OpenError::InUse {
            path: "the disk".into(),
            owner: "another log".to_owned(),
        })?;
        Self::on(system::Arc::new(handle), config, Tail::START)
    }

    fn on(disk: system::Arc<dyn Disk>, config: &Config, start: Tail) -> Result<Self, OpenError> {
        let found = recover::find(&*disk)?;
        let end = recover::verify(&found)?;
        let spares = Spares::open(system::Arc::clone(&disk), &found.names, config)?;
        let tail = end.as_ref().map_or(start, |end| end.tail);
        let shared = Arc::new(Shared {
            counts: Counts {
                frames: AtomicU64::new(0),
                bytes: AtomicU64::new(0),
                syncs: AtomicU64::new(0),
                syncing: AtomicU64::new(0),
                last_sync: AtomicU64::new(0),
                durable: AtomicU64::new(0),
            },
            config: config.clone(),
            queue: Queue::new(tail, 0),
            watermark: Watermark::new(tail.next.before()),
            segments: Mutex::new(VecDeque::new()),
            spares,
            disk,
        });
        let segments = found.segments.into_iter().map(Arc::new);
        shared.segments.lock().extend(segments);
        let opened = shared.take_over(end.as_ref(), found.closed)?;
        let last = shared.segments.lock().back().cloned();
        let last = last.expect("a log has a segment");
        let offset = end.as_ref().map_or(SEGMENT_HEAD as u64, |end| end.offset);
        let written = end.map_or(0, |end| end.written);
        let flusher = Flusher::new(Arc::clone(&shared), last, offset, written);
        let log = Self {
            shared,
            threads: Mutex::new(Vec::new()),
            opened,
        };
        log.start("tremula-log", move || flusher.run())?;
        if config.prepared > 0 {
            let shared = Arc::clone(&log.shared);
            log.start("tremula-spares", move || shared.prepare())?;
        }
        Ok(log)
    }

    fn start(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let thread = Builder::new()
            .name(name.to_owned())
            .spawn(work)
            .map_err(|source| {
                Failure::new("start a thread for", self.shared.disk.path(""), source)
            })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// What was in the directory when the log was opened.
    #[must_use]
    pub const fn opened(&self) -> Opened {
        self.opened
    }

    /// What comes before the first record that can be read. O(1).
    #[must_use]
    pub fn beginning(&self) -> Tail {
        self.shared.segments.lock()[0].tail_before()
    }

    /// What the log has done since it was opened, and what it is like now. O(1).
    ///
    /// ```
    /// use tremula_log::{Batch, Config, FaultyDisk, FileLog, Log};
    ///
    /// let config = Config::default().segment_bytes(4096);
    /// let log = FileLog::open_on(&FaultyDisk::new(1), &config).unwrap();
    /// let ticket = log.append(&Batch::of(b"a record"), None).unwrap();
    /// log.wait(ticket.last()).unwrap();
    /// assert_eq!((log.stats().frames, log.stats().syncs), (1, 1));
    /// assert_eq!(log.stats().unsynced, 0);
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let shared = &self.shared;
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Read first: what becomes durable meanwhile makes the difference too large, not negative.
        let durable = counted(&shared.counts.durable);
        Stats {
            frames: counted(&shared.counts.frames),
            bytes: counted(&shared.counts.bytes),
            syncs: counted(&shared.counts.syncs),
            syncing: Duration::from_micros(counted(&shared.counts.syncing)),
            last_sync: Duration::from_micros(counted(&shared.counts.last_sync)),
            unsynced: shared.queue.appended().saturating_sub(durable),
            segments: shared.segments.lock().len() as u64,
            spares: shared.spares.count() as u64,
            is_full: shared.queue.full().is_some(),
        }
    }
}

impl Log for FileLog {
    fn append(&self, batch: &Batch, expected: Option<Sequence>) -> Result<Ticket, Refused> {
        let shared = &self.shared;
        let (ticket, call) = shared.queue.append(batch, expected, &shared.config)?;
        if call == Call::Needed {
            shared.watermark.call();
        }
        Ok(ticket)
    }

    fn admits(&self, bytes: usize) -> Result<(), Refused> {
        self.shared.queue.admits(bytes, &self.shared.config)
    }

    fn tail(&self) -> Tail {
        self.shared.queue.tail()
    }

    fn watermark(&self) -> &Watermark {
        &self.shared.watermark
    }

    fn first(&self) -> Sequence {
        self.shared.first()
    }

    fn read(&self, from: Sequence) -> Result<Box<dyn Reader>, ReadError> {
        Ok(Box::new(FileReader::new(&self.shared, from)?))
    }

    fn keeps_from(&self) -> Sequence {
        self.shared.keeps_from(SystemTime::now())
    }

    fn truncate_below(&self, sequence: Sequence) -> Result<(), Failure> {
        let shared = &self.shared;
        let sequence = sequence.min(self.keeps_from());
        loop {
            let mut segments = shared.segments.lock();
            // The last segment stays: it is being written.
            let is_below = segments
                .get(1)
                .is_some_and(|second| second.head.first <= sequence);
            if !is_below {
                break;
            }
            let Some(segment) = segments.pop_front() else {
                break;
            };
            drop(segments);
            let (name, length) = (segment.name.clone(), segment.head.length);
            // If a reader has it, it stays as it is until that reader ends.
            let file = Arc::try_unwrap(segment).ok().map(|segment| segment.file);
            shared.spares.recycle(&name, length, file, &shared.config)?;
        }
        // There may be room now.
        shared.spares.wanted.raise();
        shared.watermark.call();
        Ok(())
    }

    fn close(&self) -> Result<(), Stopped> {
        self.shared.queue.close();
        self.shared.watermark.call();
        // The thread that fills spares is still needed: what waits may need one.
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A panic of the thread was reported, and has stopped the log.
            let _ = thread.join();
        }
        let last = self.tail().next.before();
        self.shared.watermark.wait(last)
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        // A caller that wants to know calls `close`.
        let _ = self.close();
    }
}

impl fmt::Debug for FileLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.shared.disk.path("");
        write!(
            out,
            "FileLog in {} that goes on at {}",
            path.display(),
            self.tail()
        )
    }
}
