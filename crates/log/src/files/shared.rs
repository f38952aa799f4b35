//! What a log's threads and its readers share, and what they do once: at the begin and at the end.

use super::format::{Closed, SegmentHead};
use super::queue::Queue;
use super::recover::{self, CLOSED, End};
use super::segment::{Segment, give_name};
use super::spares::Spares;
use crate::batch::micros;
use crate::config::{Config, Keep};
use crate::disk::Disk;
use crate::error::{Failure, Full, OpenError, Stopped};
use crate::log::Tail;
use crate::sequence::Sequence;
use crate::watermark::Watermark;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant, SystemTime};
use tremula_sync::atomic::AtomicU64;
use tremula_sync::{Arc, Mutex, system};

/// What was in the directory when a log was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// The first record that was there.
    pub first: Sequence,
    /// Where the log went on.
    pub tail: Tail,
    /// Whether the log had been closed. If not, its process or its machine has crashed, or it is
    /// new.
    pub was_closed: bool,
    /// Bytes behind the last whole batch that were no zeroes, and are now: the torn end of a write
    /// that was never durable, or what was left of an earlier use of the file.
    pub cleared: u64,
}

/// What a log has done since it was opened, and what it is like now:
/// [`FileLog::stats`](crate::FileLog::stats).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Frames that were written: batches that waited together.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Syncs that have made them durable.
    pub syncs: u64,
    /// What all these syncs have taken together.
    pub syncing: Duration,
    /// What the last one has taken; zero if there was none.
    pub last_sync: Duration,
    /// Bytes that were appended and are not durable.
    pub unsynced: u64,
    /// Segments now.
    pub segments: u64,
    /// Segments that are ready to be used.
    pub spares: u64,
    /// Whether there is no room for another segment now.
    pub is_full: bool,
}

/// Only counted by the flusher, and read by anybody: Relaxed, because nothing else is read by them.
pub(super) struct Counts {
    pub(super) frames: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) syncs: AtomicU64,
    /// Microseconds of all syncs, and of the last one.
    pub(super) syncing: AtomicU64,
    pub(super) last_sync: AtomicU64,
    /// Of the bytes that were [appended](super::queue::Queue::appended), how many are durable.
    pub(super) durable: AtomicU64,
}

/// What the log's threads and its readers share.
pub(super) struct Shared {
    pub(super) counts: Counts,
    pub(super) disk: system::Arc<dyn Disk>,
    pub(super) config: Config,
    pub(super) queue: Queue,
    pub(super) watermark: Watermark,
    /// In their order, never empty. The last is the one that is written.
    pub(super) segments: Mutex<VecDeque<Arc<Segment>>>,
    pub(super) spares: Spares,
}

impl Shared {
    /// Makes a log that was found, or a new one, ready to be written.
    pub(super) fn take_over(
        &self,
        end: Option<&End>,
        closed: Option<Closed>,
    ) -> Result<Opened, OpenError> {
        let failed = |action, name: &str| {
            let path = self.disk.path(name);
            move |source| Failure::new(action, path, source)
        };
        let last = self.segments.lock().back().cloned();
        if let (Some(end), Some(last)) = (end, last) {
            if closed.is_none() || end.rest > 0 {
                recover::settle(&last, end)?;
            }
        } else {
            self.begin(self.queue.tail())?;
        }
        if closed.is_some() {
            // Before anything is written that the note knows nothing of.
            self.disk.remove(CLOSED).map_err(failed("remove", CLOSED))?;
            self.disk.sync_directory().map_err(failed("sync", ""))?;
        }
        Ok(Opened {
            first: self.first(),
            tail: self.queue.tail(),
            was_closed: closed.is_some(),
            cleared: end.map_or(0, |end| end.rest),
        })
    }

    /// Makes the first segment, which begins here.
    fn begin(&self, start: Tail) -> Result<(), OpenError> {
        let spare = match self.spares.take() {
            Some(spare) => spare,
            None => self.spares.make(self.config.segment_bytes)?,
        };
        let head = SegmentHead {
            id: random_id(),
            first: start.next,
            length: spare.length,
            chain: start.chain,
            began: micros(SystemTime::now()),
        };
        let segment = Segment::new(head, &*self.disk, spare.file);
        segment
            .file
            .write_at(&head.encode(), 0)
            .map_err(segment.failure("write"))?;
        give_name(&*self.disk, &spare.name, &segment)?;
        self.segments.lock().push_back(Arc::new(segment));
        Ok(())
    }

    pub(super) fn first(&self) -> Sequence {
        self.segments.lock()[0].head.first
    }

    /// The first record that the settings keep: that of a segment.
    pub(super) fn keeps_from(&self, now: SystemTime) -> Sequence {
        let segments = self.segments.lock();
        let kept = match self.config.keep {
            Keep::Nothing => return self.queue.tail().next,
            // The last one does not count: it may be empty.
            Keep::Bytes(bytes) => {
                let finished = segments.len() - 1;
                let mut sum = 0_u64;
                (0..finished).rev().find(|index| {
                    sum = sum.saturating_add(segments[*index].head.length);
                    sum >= bytes
                })
            }
            // What lies before a segment is older than its beginning.
            Keep::Time(time) => {
                let until = now.checked_sub(time).map_or(0, micros);
                segments
                    .iter()
                    .rposition(|segment| (1..=until).contains(&segment.head.began))
            }
        };
        segments[kept.unwrap_or(0)].head.first
    }

    /// Fills spare segments until the log ends.
    pub(super) fn prepare(&self) {
        while !self.spares.is_stopping() {
            match self.spares.prepare(&self.config) {
                None => {
                    self.spares.wanted.wait(None);
                }
                Some(Ok(())) => {
                    self.queue.set_full(None);
                    self.watermark.call();
                }
                Some(Err(failure)) => {
                    self.queue.set_full(Some(Full { failure }));
                    self.watermark.call();
                    let until = Instant::now() + self.config.retry_after;
                    self.spares.wanted.wait(Some(until));
                }
            }
        }
    }

    /// Ends everything, for this reason.
    pub(super) fn stop(&self, why: Stopped) {
        self.queue.stop(why.clone());
        self.watermark.stop(why);
        self.spares.stop();
    }

    pub(super) fn leave_closed(&self, id: u128, tail: Tail) -> Result<(), Failure> {
        const NEW: &str = "CLOSED.new";
        let closed = Closed {
            id,
            next: tail.next,
            chain: tail.chain,
        };
        let leave = || {
            let file = self.disk.create(NEW)?;
            file.write_at(&closed.encode(), 0)?;
            file.sync()?;
            self.disk.rename(NEW, CLOSED)?;
            self.disk.sync_directory()
        };
        leave().map_err(|source| Failure::new("write", self.disk.path(CLOSED), source))
    }
}

/// A number that no other log has. Those who know the records of a log do not know it.
fn random_id() -> u128 {
    let random = || u128::from(RandomState::new().build_hasher().finish());
    random() << 64 | random()
}
