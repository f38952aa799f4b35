//! The numbers of effects, and their way into the log.
//!
//! A writer takes its numbers while it holds the lock of what it changes, so for each key the order
//! of the numbers is the order of the effects. It takes them from one counter, and holds no other
//! lock meanwhile. When it has let go of the lock, it puts the records into a buffer that few other
//! threads use. [`Journal::forward`] takes what lies in the buffers, puts it in order, and appends
//! all that has no gap before it. One thread does that at a time; who comes meanwhile leaves it to
//! that thread.

use super::Unlogged;
use super::record::Change;
use std::ops::Range;
use tremula_log::{Batch, Log, Refused, Sequence};
use tremula_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use tremula_sync::system::Arc;
use tremula_sync::{CachePadded, Mutex, thread_index};

/// Buffers into which threads write: as many as a word has bits, so that threads seldom share one.
const BUFFERS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 64 };

/// Bytes in one buffer from which a writer forwards by itself.
const MANY: usize = 64 << 10;

/// Bytes of a batch that gets no further records.
const BATCH: usize = 256 << 10;

/// Bytes of one atomic step from which its other records go into further batches: no log takes a
/// batch of any length. A record is not longer than this.
const WHOLE: usize = 512 << 20;

/// Room of a buffer that is kept.
const KEPT: usize = 1 << 20;

/// Whether a thread forwards.
const NOBODY: u8 = 0;
const SOMEBODY: u8 = 1;
/// There is something that the thread which forwards may not have seen.
const AGAIN: u8 = 2;

pub(crate) struct Journal {
    log: Arc<dyn Log>,
    /// Whether the log is to have what keys were before their changes.
    has_before: bool,
    /// The number of the next effect.
    next: CachePadded<AtomicU64>,
    buffers: Box<[CachePadded<Mutex<Buffer>>]>,
    /// The buffers in which something lies: a bit for each.
    filled: CachePadded<AtomicU64>,
    forwards: AtomicU8,
    merge: Mutex<Merge>,
    /// Whether the log has refused what was to be appended, or takes nothing from here.
    is_refused: AtomicBool,
    /// Whether another process writes the effects, which this store only applies.
    follows: AtomicBool,
}

/// Records that are on their way.
#[derive(Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Where each record ends.
    ends: Vec<usize>,
    pieces: Vec<Piece>,
}

/// The records of one atomic step.
#[derive(Clone, Debug)]
struct Piece {
    first: u64,
    /// Which of the buffer's records.
    records: Range<usize>,
}

impl Buffer {
    fn write(&mut self, mut first: u64, changes: impl Iterator<Item = Change>) {
        let (mut before, mut begin) = (self.ends.len(), self.bytes.len());
        for change in changes {
            if self.bytes.len() - begin >= WHOLE {
                let records = before..self.ends.len();
                (before, begin) = (self.ends.len(), self.bytes.len());
                let count = records.len() as u64;
                self.pieces.push(Piece { first, records });
                first += count;
            }
            change.write(&mut self.bytes);
            self.ends.push(self.bytes.len());
        }
        let records = before..self.ends.len();
        self.pieces.push(Piece { first, records });
    }

    fn record(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[at]]
    }

    fn copy(&mut self, other: &Self, piece: &Piece) {
        let before = self.ends.len();
        for at in piece.records.clone() {
            self.bytes.extend_from_slice(other.record(at));
            self.ends.push(self.bytes.len());
        }
        let records = before..self.ends.len();
        let first = piece.first;
        self.pieces.push(Piece { first, records });
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.ends.clear();
        self.pieces.clear();
    }

    fn free_if_empty(&mut self) {
        if self.pieces.is_empty() {
            *self = Self::default();
        }
    }
}

struct Merge {
    /// The number of the record that comes next in the log.
    next: u64,
    /// Taken from the buffers, and given back empty.
    taken: Vec<Buffer>,
    /// What waits for a number that somebody has taken and not written yet.
    waits: Buffer,
    /// All pieces in order: of which buffer.
    order: Vec<(usize, Piece)>,
    batch: Batch,
    /// What the log has not taken.
    refusal: Option<Refused>,
}

impl Journal {
    /// A journal that goes on where the log does.
    pub(crate) fn new(log: Arc<dyn Log>, has_before: bool) -> Self {
        let next = log.tail().next.get();
        let buffers = (0..BUFFERS).map(|_| CachePadded::default()).collect();
        let merge = Merge {
            next,
            taken: (0..BUFFERS).map(|_| Buffer::default()).collect(),
            waits: Buffer::default(),
            order: Vec::new(),
            batch: Batch::new(),
            refusal: None,
        };
        Self {
            log,
            has_before,
            next: CachePadded::new(AtomicU64::new(next)),
            buffers,
            filled: CachePadded::new(AtomicU64::new(0)),
            forwards: AtomicU8::new(NOBODY),
            merge: Mutex::new(merge),
            is_refused: AtomicBool::new(false),
            follows: AtomicBool::new(false),
        }
    }

    /// A journal of a store that only applies what others write, until it [leads](Self::lead).
    pub(crate) fn following(log: Arc<dyn Log>, has_before: bool) -> Self {
        let journal = Self::new(log, has_before);
        journal.merge.lock().refusal = Some(Refused::NotLeading);
        journal.is_refused.store(true, SeqCst);
        journal.follows.store(true, SeqCst);
        journal
    }

    /// Whether another process writes the effects.
    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.follows.load(Relaxed)
    }

    /// Notes that everything up to this number may show from now on.
    pub(crate) fn applies(&self, last: Sequence) {
        debug_assert!(self.follows(), "a store that leads numbers its effects");
        self.next.store(last.plus(1).get(), SeqCst);
    }

    /// The effects are this store's from now on, and begin with this number.
    pub(crate) fn lead(&self, next: Sequence) {
        let mut merge = self.merge.lock();
        merge.next = next.get();
        merge.refusal = None;
        self.next.store(next.get(), SeqCst);
        self.follows.store(false, SeqCst);
        self.is_refused.store(false, SeqCst);
    }

    pub(crate) const fn log(&self) -> &Arc<dyn Log> {
        &self.log
    }

    /// Whether the log is to have what keys were before their changes.
    #[inline]
    pub(crate) const fn has_before(&self) -> bool {
        self.has_before
    }

    /// Takes numbers for this many effects. To be called under the lock under which they take
    /// effect.
    #[inline]
    pub(crate) fn take_numbers(&self, count: usize) -> u64 {
        debug_assert!(!self.follows(), "a store that follows has no effects");
        // Relaxed: the lock orders the effects of one key, and a thread that sees an effect has
        // taken that lock, or read what was written under it, after this.
        self.next.fetch_add(count as u64, Relaxed)
    }

    /// The last number that was taken: all effects that this thread has seen have it or a lower
    /// one.
    pub(crate) fn last(&self) -> Sequence {
        Sequence::new(self.next.load(Relaxed)).before()
    }

    /// Writes the records of one atomic step, whose numbers begin with `first`.
    pub(crate) fn write(&self, first: u64, changes: impl Iterator<Item = Change>) {
        let number = thread_index() % BUFFERS;
        let mut buffer = self.buffers[number].lock();
        // Under the lock, as when it is emptied: a bit that is set stays set until then.
        if buffer.pieces.is_empty() {
            self.filled.fetch_or(1 << number, SeqCst);
        }
        buffer.write(first, changes);
        let is_much = buffer.bytes.len() >= MANY;
        drop(buffer);
        if is_much {
            self.forward();
        }
    }

    /// Appends to the log what has been written, up to the first number that somebody has taken and
    /// not written yet: that thread forwards it.
    pub(crate) fn forward(&self) {
        // Each of these is a read-modify-write of one atomic: either the swap finds nobody, or the
        // one who forwards finds `AGAIN` when he is about to leave.
        if self.forwards.swap(AGAIN, SeqCst) != NOBODY {
            return;
        }
        loop {
            self.forwards.store(SOMEBODY, SeqCst);
            self.forward_once();
            let left = self
                .forwards
                .compare_exchange(SOMEBODY, NOBODY, SeqCst, SeqCst);
            if left.is_ok() {
                return;
            }
        }
    }

    fn forward_once(&self) {
        let mut merge = self.merge.lock();
        let mut filled = self.filled.swap(0, SeqCst);
        while filled != 0 {
            let number = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            let taken = &mut merge.taken[number];
            std::mem::swap(&mut *self.buffers[number].lock(), taken);
        }
        merge.append(&*self.log);
        let is_refused = merge.refusal.is_some();
        if self.is_refused.load(Relaxed) != is_refused {
            self.is_refused.store(is_refused, Relaxed);
        }
    }

    /// Frees the memory that is kept for the next records.
    pub(crate) fn tidy(&self) {
        for buffer in &self.buffers {
            buffer.lock().free_if_empty();
        }
        let mut merge = self.merge.lock();
        merge.taken.iter_mut().for_each(Buffer::free_if_empty);
        merge.order = Vec::new();
        merge.batch = Batch::new();
    }

    /// Whether a writer may change something. If the disk is behind, this waits for it.
    ///
    /// # Errors
    ///
    /// The log takes nothing more, or its disk is full.
    #[inline]
    pub(crate) fn admit(&self) -> Result<(), Unlogged> {
        if self.is_refused.load(Relaxed) {
            return self.admit_late();
        }
        Ok(())
    }

    #[cold]
    fn admit_late(&self) -> Result<(), Unlogged> {
        loop {
            self.forward();
            let merge = self.merge.lock();
            let appended = Sequence::new(merge.next).before();
            let Some(refusal) = merge.refusal.clone() else {
                return Ok(());
            };
            drop(merge);
            let Refused::Behind { .. } = refusal else {
                return Err(Unlogged(refusal));
            };
            // What is durable next makes room; it may have done so already.
            let durable = self.log.durable();
            if durable < appended {
                self.log
                    .wait(durable.plus(1))
                    .map_err(|stopped| Unlogged(stopped.into()))?;
            }
        }
    }
}

impl Merge {
    /// Appends all pieces that have no gap before them, in batches.
    fn append(&mut self, log: &dyn Log) {
        let taken = &self.taken;
        let of = |number: usize| {
            let buffer: &Buffer = taken.get(number).unwrap_or(&self.waits);
            buffer
        };
        self.order.clear();
        for number in 0..=taken.len() {
            let pieces = of(number).pieces.iter().cloned();
            self.order.extend(pieces.map(|piece| (number, piece)));
        }
        if self.order.is_empty() {
            return;
        }
        // A thread takes ascending numbers, so this finds long runs that are in order.
        self.order.sort_by_key(|(_, piece)| piece.first);
        self.refusal = None;
        let mut next = self.next;
        let mut done = 0;
        for (at, (number, piece)) in self.order.iter().enumerate() {
            if piece.first != next {
                break;
            }
            let buffer = of(*number);
            next += piece.records.len() as u64;
            for record in piece.records.clone() {
                self.batch.push(buffer.record(record));
            }
            let is_last = self
                .order
                .get(at + 1)
                .is_none_or(|(_, piece)| piece.first != next);
            if !is_last && self.batch.bytes() < BATCH {
                continue;
            }
            let appended = log.append(&self.batch, Some(Sequence::new(self.next)));
            self.batch.clear();
            if let Err(refusal) = appended {
                self.refusal = Some(refusal);
                break;
            }
            self.next = next;
            done = at + 1;
        }
        // What is left waits for the next time.
        let mut waits = Buffer::default();
        for (number, piece) in &self.order[done..] {
            waits.copy(of(*number), piece);
        }
        self.taken.iter_mut().for_each(Buffer::clear);
        self.waits = waits;
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.forward();
    }
}
