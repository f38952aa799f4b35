//! The one thread that writes: what waits becomes frames, frames become durable, and the watermark
//! follows.
//!
//! # Invariants
//!
//! 1. The watermark passes a record only after a sync of its file that has succeeded, and that
//!    began after the record was written.
//! 2. A segment gets its name only after everything before it is durable. So only the last segment
//!    can have a torn end.
//! 3. After a sync that failed nothing is written or synced any more.
//! 4. A frame says what was durable when it was written, never more.

use super::format::{FRAME_HEAD, FrameHead, SEGMENT_HEAD, SegmentHead, frame_length};
use super::queue::{Draft, Pending};
use super::segment::{Segment, give_name};
use super::shared::Shared;
use super::spares::Spare;
use crate::batch::micros;
use crate::error::{Failure, Full, Stopped};
use crate::log::Tail;
use crate::sequence::Sequence;
use std::time::{Duration, Instant, SystemTime};
use tremula_sync::Arc;
use tremula_sync::atomic::Ordering;

/// Unsynced bytes from which the flusher syncs, whatever the period: a sync of more would keep it
/// from writing for too long.
const MOST_UNSYNCED: u64 = 8 << 20;

/// How long the log at rest keeps its buffers.
const KEPT_FOR: Duration = Duration::from_secs(1);

pub(super) struct Flusher {
    shared: Arc<Shared>,
    segment: Arc<Segment>,
    offset: u64,
    written: Sequence,
    durable: Sequence,
    /// What those who wait know to be durable.
    announced: Sequence,
    unsynced: u64,
    /// Bytes of the batches that were written, since the log was opened.
    batches: u64,
    /// The time of the last frame: no later one has an earlier time.
    time: u64,
    /// When the first record was written that is not synced.
    unsynced_since: Option<Instant>,
}

impl Flusher {
    pub(super) fn new(shared: Arc<Shared>, segment: Arc<Segment>, offset: u64, time: u64) -> Self {
        let durable = shared.watermark.get();
        Self {
            shared,
            segment,
            offset,
            written: durable,
            durable,
            announced: durable,
            unsynced: 0,
            batches: 0,
            time,
            unsynced_since: None,
        }
    }

    /// What frames that are written now have for their time.
    fn tell_time(&mut self) -> u64 {
        self.time = self.time.max(micros(SystemTime::now()));
        self.time
    }

    /// Writes until the log is closed. An error has been reported to all that wait.
    pub(super) fn run(mut self) {
        let mut panicked = OnPanic(&Arc::clone(&self.shared), true);
        let result = self.serve();
        self.announce();
        panicked.1 = false;
        let why = result.err().unwrap_or(Stopped::Closed);
        self.shared.stop(why);
    }

    fn serve(&mut self) -> Result<(), Stopped> {
        let mut pending = Pending::default();
        let mut has_gathered = false;
        self.shared.queue.set_room(self.room());
        loop {
            let is_closing = self.shared.queue.is_closing();
            let is_wanted = self.shared.watermark.wanted() > self.durable;
            let (some, many) = self.shared.queue.waits();
            if some && !many && !is_wanted && !is_closing && !has_gathered {
                self.announce();
                let until = Instant::now() + self.shared.config.gather;
                self.shared.watermark.wait_for_demand(Some(until));
                has_gathered = true;
                continue;
            }
            has_gathered = false;
            self.shared.queue.take(&mut pending);
            self.write(&mut pending)?;
            self.announce();
            let synced = self.sync_if_due(is_wanted || is_closing)?;
            // What was taken may have been taken after the look at what is wanted.
            if pending.frames.is_empty() && !synced {
                if is_closing {
                    return self.end();
                }
                self.rest(&mut pending);
            }
        }
    }

    /// Waits until there is something to do. When nothing has come for a while, the log keeps no
    /// buffers.
    fn rest(&self, pending: &mut Pending) {
        let watermark = &self.shared.watermark;
        let due = self.due();
        let until = due.unwrap_or_else(|| Instant::now() + KEPT_FOR);
        let is_called = watermark.wait_for_demand(Some(until));
        if !is_called && due.is_none() {
            self.shared.queue.free_if_empty(pending);
            watermark.wait_for_demand(None);
        }
    }

    /// When what is unsynced must be synced, though nobody waits for it.
    fn due(&self) -> Option<Instant> {
        let period = self.shared.config.sync_every?;
        self.unsynced_since?.checked_add(period)
    }

    /// Wakes those who wait for what has become durable.
    ///
    /// Not right after the sync, but after the next write: what those who wait append then would
    /// keep that write from its core, and with it the next sync. Wherever the flusher itself is
    /// going to wait, it announces first.
    fn announce(&mut self) {
        if self.announced < self.durable {
            self.announced = self.durable;
            self.shared.watermark.advance(self.durable);
        }
    }

    /// Writes all frames, and goes to new segments where one is full.
    fn write(&mut self, pending: &mut Pending) -> Result<(), Stopped> {
        let mut at = 0;
        while at < pending.frames.len() {
            let begin = pending.frames[at].start;
            let free = self.segment.end() - self.offset;
            let count = pending.frames[at..]
                .iter()
                .take_while(|frame| (frame.end() - begin) as u64 <= free)
                .count();
            if count == 0 {
                let first = &pending.frames[at];
                let tail = Tail {
                    next: first.first,
                    chain: first.chain,
                };
                self.begin_segment(tail, frame_length(first.body))?;
                continue;
            }
            self.tell_time();
            let frames = &pending.frames[at..at + count];
            let (last, end) = (frames[count - 1].last(), frames[count - 1].end());
            self.fill_heads(&mut pending.bytes, frames);
            let bytes = &pending.bytes[begin..end];
            if self.segment.file.write_at(bytes, self.offset).is_err() {
                self.announce();
                write_or_wait(&self.shared, &self.segment, bytes, self.offset)?;
            }
            self.batches += frames.iter().map(|frame| frame.body as u64).sum::<u64>();
            let length = (end - begin) as u64;
            self.offset += length;
            self.unsynced += length;
            let counts = &self.shared.counts;
            counts.frames.fetch_add(count as u64, Ordering::Relaxed);
            counts.bytes.fetch_add(length, Ordering::Relaxed);
            self.written = last;
            self.unsynced_since.get_or_insert_with(Instant::now);
            at += count;
        }
        if !pending.frames.is_empty() {
            self.shared.queue.set_room(self.room());
        }
        Ok(())
    }

    fn fill_heads(&self, bytes: &mut [u8], frames: &[Draft]) {
        for frame in frames {
            let body = &bytes[frame.start + FRAME_HEAD..][..frame.body];
            let head = FrameHead {
                first: frame.first,
                count: frame.count,
                body: frame.body as u32,
                body_crc: crc32c::crc32c(body),
                durable: self.durable,
                chain: frame.chain,
                written: self.time,
            };
            bytes[frame.start..frame.start + FRAME_HEAD]
                .copy_from_slice(&head.encode(self.segment.salt));
        }
    }

    /// What surely finds a place: the rest of the segment, and the spares.
    fn room(&self) -> u64 {
        let spares = self.shared.spares.count() as u64 * self.shared.config.usable();
        self.segment.end() - self.offset + spares
    }

    fn sync_if_due(&mut self, is_wanted: bool) -> Result<bool, Stopped> {
        if self.written == self.durable {
            return Ok(false);
        }
        let is_due = || self.due().is_some_and(|due| due <= Instant::now());
        if !is_wanted && self.unsynced < MOST_UNSYNCED && !is_due() {
            return Ok(false);
        }
        self.sync()?;
        Ok(true)
    }

    /// Makes everything durable that was written.
    fn sync(&mut self) -> Result<(), Stopped> {
        let failure = self.segment.failure("sync");
        let began = Instant::now();
        self.segment
            .file
            .sync()
            .map_err(failure)
            .map_err(Stopped::Failed)?;
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let counts = &self.shared.counts;
        counts.syncs.fetch_add(1, Ordering::Relaxed);
        counts.syncing.fetch_add(took, Ordering::Relaxed);
        counts.last_sync.store(took, Ordering::Relaxed);
        counts.durable.store(self.batches, Ordering::Relaxed);
        self.durable = self.written;
        self.unsynced = 0;
        self.unsynced_since = None;
        Ok(())
    }

    /// Goes on in a new segment, which has room for a frame of this length.
    fn begin_segment(&mut self, tail: Tail, frame: usize) -> Result<(), Stopped> {
        if self.written > self.durable {
            self.sync()?;
        }
        self.announce();
        let least = (SEGMENT_HEAD + frame + FRAME_HEAD) as u64;
        let spare = spare(&self.shared, least)?;
        let head = SegmentHead {
            id: self.segment.head.id,
            first: tail.next,
            length: spare.length,
            chain: tail.chain,
            began: self.tell_time(),
        };
        let next = Arc::new(Segment::new(head, &*self.shared.disk, spare.file));
        write_or_wait(&self.shared, &next, &head.encode(), 0)?;
        give_name(&*self.shared.disk, &spare.name, &next).map_err(Stopped::Failed)?;
        self.note_continuation(tail)?;
        let mut segments = self.shared.segments.lock();
        if self.offset == SEGMENT_HEAD as u64 {
            // Nothing was in it, so the new one has its name, and has replaced it.
            segments.pop_back();
        }
        segments.push_back(Arc::clone(&next));
        drop(segments);
        self.segment = next;
        self.offset = SEGMENT_HEAD as u64;
        Ok(())
    }

    /// Writes into the segment that is full that another one continues it. This is not synced: if
    /// it is lost, only the loss of that other segment is not noticed.
    fn note_continuation(&self, tail: Tail) -> Result<(), Stopped> {
        let note = FrameHead::continued(tail.next, tail.chain).encode(self.segment.salt);
        write_or_wait(&self.shared, &self.segment, &note, self.offset)
    }

    /// Leaves the note that the log was closed.
    fn end(&mut self) -> Result<(), Stopped> {
        let tail = self.shared.queue.tail();
        self.shared
            .leave_closed(self.segment.head.id, tail)
            .map_err(Stopped::Failed)
    }
}

/// Ends the log for all that wait, if the thread panics.
struct OnPanic<'a>(&'a Shared, bool);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if self.1 {
            let source = std::io::Error::other("the thread that writes has panicked");
            let failure = Failure::new("write", self.0.disk.path(""), source);
            self.0.stop(Stopped::Failed(failure));
        }
    }
}

/// Writes, and where the disk is full waits until it is not: the same bytes at the same place.
fn write_or_wait(
    shared: &Shared,
    segment: &Segment,
    bytes: &[u8],
    offset: u64,
) -> Result<(), Stopped> {
    let mut was_full = false;
    loop {
        let written = segment.file.write_at(bytes, offset);
        match written.map_err(segment.failure("write")) {
            Ok(()) => break,
            Err(failure) if failure.may_pass() => {
                was_full = true;
                wait_for_room(shared, failure)?;
            }
            Err(failure) => return Err(Stopped::Failed(failure)),
        }
    }
    if was_full {
        shared.queue.set_full(None);
    }
    Ok(())
}

/// A file for a segment of this length at least.
fn spare(shared: &Shared, least: u64) -> Result<Spare, Stopped> {
    let config = &shared.config;
    loop {
        if least <= config.segment_bytes {
            if let Some(spare) = shared.spares.take() {
                return Ok(spare);
            }
            if config.prepared > 0 {
                // The thread that fills spares is at work, or reports that it cannot.
                shared.queue.set_room(0);
                let hopeless = |full: &Full| shared.queue.is_closing() || !full.failure.may_pass();
                if let Some(full) = shared.queue.full().filter(hopeless) {
                    return Err(Stopped::Failed(full.failure));
                }
                shared.watermark.wait_for_demand(None);
                continue;
            }
        }
        match shared.spares.make(least.max(config.segment_bytes)) {
            Ok(spare) => {
                shared.queue.set_full(None);
                return Ok(spare);
            }
            Err(failure) if failure.may_pass() => wait_for_room(shared, failure)?,
            Err(failure) => return Err(Stopped::Failed(failure)),
        }
    }
}

/// Reports that there is no room, and waits a while, unless the log is being closed.
fn wait_for_room(shared: &Shared, failure: Failure) -> Result<(), Stopped> {
    shared.queue.set_room(0);
    shared.queue.set_full(Some(Full {
        failure: failure.clone(),
    }));
    if shared.queue.is_closing() {
        return Err(Stopped::Failed(failure));
    }
    let until = Instant::now() + shared.config.retry_after;
    shared.watermark.wait_for_demand(Some(until));
    Ok(())
}
