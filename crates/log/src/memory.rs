//! A log in memory: for tests, and for servers that keep nothing.

use crate::batch::{Batch, Batches, Entry, micros};
use crate::error::{Failure, Fenced, ReadError, Refused, Stopped};
use crate::log::{Log, Reader, Tail, Ticket};
use crate::sequence::{Digest, Sequence};
use crate::watermark::Watermark;
use std::collections::VecDeque;
use std::fmt;
use std::time::SystemTime;
use tremula_sync::{Arc, Mutex};

/// A log in memory. Its clones are handles to one log, as processes on one log service would have:
/// each may append, and the ones that expect a sequence are fenced off when another has.
///
/// Everything is durable at once, unless the log is [held](Self::held): then a test says when.
///
/// ```
/// use tremula_log::{Batch, Log, MemoryLog, Sequence};
///
/// let log = MemoryLog::held();
/// let ticket = log.append(&Batch::of(b"a record"), None).unwrap();
/// assert_eq!(log.durable(), Sequence::NONE);
/// log.make_durable(ticket.last());
/// assert_eq!(log.durable(), Sequence::FIRST);
/// ```
#[derive(Clone)]
pub struct MemoryLog(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    watermark: Watermark,
    held: bool,
    /// Bytes of batches that stay.
    most: usize,
}

struct State {
    entries: VecDeque<Entry>,
    first: Sequence,
    tail: Tail,
    /// What the entries count as.
    bytes: usize,
}

/// What a batch counts as: its bytes, and its place.
fn size(entry: &Entry) -> usize {
    entry.encoded().len() + size_of::<Entry>()
}

impl State {
    /// Takes out the oldest entries, this many.
    fn drop_oldest(&mut self, count: usize) -> Vec<Entry> {
        let dropped: Vec<Entry> = self.entries.drain(..count).collect();
        self.bytes -= dropped.iter().map(size).sum::<usize>();
        if let Some(last) = dropped.last() {
            self.first = last.last().plus(1);
        }
        dropped
    }

    /// Takes out the oldest entries as long as there are more bytes than these.
    fn keep_within(&mut self, most: usize) -> Vec<Entry> {
        let mut left = self.bytes;
        let newest = self.entries.len().saturating_sub(1);
        let gone = self.entries.iter().take(newest).take_while(|entry| {
            let is_beyond = left > most;
            left -= size(entry);
            is_beyond
        });
        let count = gone.count();
        self.drop_oldest(count)
    }
}

impl MemoryLog {
    /// An empty log, in which everything is durable at once.
    #[must_use]
    pub fn new() -> Self {
        Self::with(false)
    }

    /// An empty log, in which everything is durable at once, and of which only the newest batches
    /// stay: about this many bytes of them, and the newest one whatever its length is. Appending
    /// gives up the oldest ones, as truncation would.
    ///
    /// ```
    /// use tremula_log::{Batch, Log, MemoryLog, ReadError, Sequence};
    ///
    /// let log = MemoryLog::bounded(1000);
    /// for _ in 0..100 {
    ///     log.append(&Batch::of(&[0; 100]), None).unwrap();
    /// }
    /// assert!(log.first() > Sequence::new(90));
    /// assert!(matches!(log.read(Sequence::FIRST), Err(ReadError::Truncated { .. })));
    /// ```
    #[must_use]
    pub fn bounded(bytes: usize) -> Self {
        Self::of(false, bytes)
    }

    /// An empty log, in which nothing is durable before [`make_durable`](Self::make_durable).
    #[must_use]
    pub fn held() -> Self {
        Self::with(true)
    }

    fn with(held: bool) -> Self {
        Self::of(held, usize::MAX)
    }

    fn of(held: bool, most: usize) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                entries: VecDeque::new(),
                first: Sequence::FIRST,
                tail: Tail::START,
                bytes: 0,
            }),
            watermark: Watermark::new(Sequence::NONE),
            held,
            most,
        }))
    }

    /// Makes records durable up to this one, as far as they were appended.
    pub fn make_durable(&self, sequence: Sequence) {
        let last = self.tail().next.before();
        self.0.watermark.advance(sequence.min(last));
    }

    /// Ends the log as a failing disk would: nothing becomes durable any more.
    pub fn stop(&self, why: Stopped) {
        self.0.watermark.stop(why);
    }
}

impl Default for MemoryLog {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "MemoryLog that goes on at {}", self.tail())
    }
}

impl Log for MemoryLog {
    fn append(&self, batch: &Batch, expected: Option<Sequence>) -> Result<Ticket, Refused> {
        if batch.is_empty() {
            return Err(Refused::Empty);
        }
        let digest = Digest::of(batch.encoded());
        let mut state = self.0.state.lock();
        self.admits(batch.bytes())?;
        let Tail { next, chain } = state.tail;
        if let Some(expected) = expected.filter(|expected| *expected != next) {
            return Err(Fenced { expected, next }.into());
        }
        let ticket = Ticket::new(next, batch.len(), chain.and(digest));
        let now = micros(SystemTime::now());
        let entry = Batches::new(batch.encoded(), next, chain, now).next();
        state.bytes += entry.as_ref().map_or(0, size);
        state.entries.extend(entry);
        state.tail = Tail {
            next: ticket.next(),
            chain: ticket.chain(),
        };
        let dropped = match state.bytes > self.0.most {
            true => state.keep_within(self.0.most),
            false => Vec::new(),
        };
        drop(state);
        drop(dropped);
        if !self.0.held {
            self.0.watermark.advance(ticket.last());
        }
        Ok(ticket)
    }

    fn admits(&self, _: usize) -> Result<(), Refused> {
        self.0
            .watermark
            .stopped()
            .map_or(Ok(()), |why| Err(why.into()))
    }

    fn tail(&self) -> Tail {
        self.0.state.lock().tail
    }

    fn watermark(&self) -> &Watermark {
        &self.0.watermark
    }

    fn first(&self) -> Sequence {
        self.0.state.lock().first
    }

    fn read(&self, from: Sequence) -> Result<Box<dyn Reader>, ReadError> {
        let state = self.0.state.lock();
        let (first, next) = (state.first, state.tail.next);
        let from = from.max(Sequence::FIRST);
        if from < first {
            return Err(ReadError::Truncated { from, first });
        }
        if from > next {
            return Err(ReadError::Beyond { from, next });
        }
        let at = state.entries.partition_point(|entry| entry.last() < from);
        let next = state.entries.get(at).map_or(next, Entry::first);
        Ok(Box::new(MemoryReader {
            log: Arc::clone(&self.0),
            next,
        }))
    }

    fn truncate_below(&self, sequence: Sequence) -> Result<(), Failure> {
        let mut state = self.0.state.lock();
        let durable = self.0.watermark.get();
        let gone = |entry: &Entry| entry.last() < sequence && entry.last() <= durable;
        let count = state.entries.partition_point(gone);
        let dropped = state.drop_oldest(count);
        drop(state);
        drop(dropped);
        Ok(())
    }

    fn close(&self) -> Result<(), Stopped> {
        if !self.0.held {
            self.make_durable(self.tail().next);
        }
        self.0.watermark.stop(Stopped::Closed);
        self.0.watermark.wait(self.tail().next.before())
    }
}

struct MemoryReader {
    log: Arc<Shared>,
    next: Sequence,
}

impl Iterator for MemoryReader {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.log.watermark.get() < self.next {
            return None;
        }
        let state = self.log.state.lock();
        if self.next < state.first {
            return Some(Err(ReadError::Truncated {
                from: self.next,
                first: state.first,
            }));
        }
        let at = state
            .entries
            .partition_point(|entry| entry.last() < self.next);
        let entry = state.entries.get(at)?;
        if entry.last() > self.log.watermark.get() {
            return None;
        }
        self.next = entry.last().plus(1);
        Some(Ok(entry.clone()))
    }
}

impl Reader for MemoryReader {
    fn next_sequence(&self) -> Sequence {
        self.next
    }
}
