//! Batches: records that become durable together or not at all.
//!
//! In a batch each record has four bytes before it: its length times two, plus one if it is the
//! last of its batch. So batches that lie one behind the other can be separated again.

use crate::sequence::{Chain, Digest, Sequence};
use std::fmt;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tremula_sync::system::Arc;

/// Bytes before each record.
pub(crate) const PREFIX_BYTES: usize = 4;

/// Bytes that a record may have: its length and a bit fit into the prefix.
pub(crate) const MOST_RECORD_BYTES: usize = (u32::MAX >> 1) as usize;

/// Records that a log takes as one: after a crash all of them are there, or none is.
///
/// ```
/// use tremula_log::Batch;
///
/// let mut batch = Batch::new();
/// batch.push(b"one");
/// batch.push(b"two");
/// assert_eq!(batch.len(), 2);
/// assert_eq!(batch.records().collect::<Vec<_>>(), [b"one", b"two"]);
/// batch.clear(); // keeps its memory, for the next one
/// assert!(batch.is_empty());
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Whole but for the bit that marks the last record.
    bytes: Vec<u8>,
    count: u32,
    /// Where the prefix of the last record is.
    last: usize,
}

impl Batch {
    /// A batch without a record, which no log takes.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            count: 0,
            last: 0,
        }
    }

    /// A batch of one record.
    ///
    /// # Panics
    ///
    /// As [`push`](Self::push).
    #[must_use]
    pub fn of(record: &[u8]) -> Self {
        let mut batch = Self::new();
        batch.push(record);
        batch
    }

    /// Adds a record. O(bytes).
    ///
    /// # Panics
    ///
    /// The record has 2 GiB or more, or the batch has 4,294,967,295 records.
    pub fn push(&mut self, record: &[u8]) {
        assert!(
            record.len() <= MOST_RECORD_BYTES,
            "a record of {} bytes is longer than {MOST_RECORD_BYTES}",
            record.len()
        );
        self.count = self
            .count
            .checked_add(1)
            .expect("a batch has fewer records");
        // The record before is not the last any more.
        if let Some(prefix) = self.bytes.get_mut(self.last) {
            *prefix &= !1;
        }
        self.last = self.bytes.len();
        let prefix = (record.len() as u32) << 1 | 1;
        self.bytes.extend_from_slice(&prefix.to_le_bytes());
        self.bytes.extend_from_slice(record);
    }

    /// Takes all records out, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.last = 0;
    }

    /// The number of records. O(1).
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no record. O(1).
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes that the batch takes in a log: those of its records, and four for each. O(1).
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The records, in their order.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records(&self.bytes)
    }

    /// The batch as bytes, from which [`from_bytes`](Self::from_bytes) makes it again: for sending
    /// it to another machine. O(1).
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The batch that [`as_bytes`](Self::as_bytes) returned these bytes of. `None` if they are not
    /// one whole batch. O(bytes).
    ///
    /// ```
    /// use tremula_log::Batch;
    ///
    /// let batch = Batch::of(b"a record");
    /// assert_eq!(Batch::from_bytes(batch.as_bytes()), Some(batch.clone()));
    /// assert_eq!(Batch::from_bytes(&batch.as_bytes()[1..]), None);
    /// ```
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (count, length) = measure(bytes)?;
        (length == bytes.len()).then(|| Self {
            bytes: bytes.to_vec(),
            count,
            last: last_prefix(bytes),
        })
    }

    /// The chain of a log that ends with this batch and had the chain `before` without it.
    /// O(bytes).
    ///
    /// ```
    /// use tremula_log::{Batch, Chain, Log, MemoryLog};
    ///
    /// let batch = Batch::of(b"a record");
    /// let ticket = MemoryLog::new().append(&batch, None).unwrap();
    /// assert_eq!(batch.chain_behind(Chain::START), ticket.chain());
    /// ```
    #[must_use]
    pub fn chain_behind(&self, before: Chain) -> Chain {
        before.and(Digest::of(&self.bytes))
    }

    pub(crate) fn encoded(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) const fn count(&self) -> u32 {
        self.count
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Batch of {} records, {} bytes",
            self.count,
            self.bytes.len()
        )
    }
}

/// The records of a batch, made by [`Batch::records`] and [`Entry::records`].
#[derive(Clone, Debug)]
pub struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (prefix, rest) = self.0.split_first_chunk::<PREFIX_BYTES>()?;
        let length = (u32::from_le_bytes(*prefix) >> 1) as usize;
        let (record, rest) = rest.split_at(length);
        self.0 = rest;
        Some(record)
    }
}

/// A batch that was read from a log, with its place there. Cheap to clone: no bytes are copied.
///
/// ```
/// use tremula_log::{Batch, Log, MemoryLog, Sequence};
///
/// let log = MemoryLog::new();
/// log.append(&Batch::of(b"a record"), None).unwrap();
/// let entry = log.read(Sequence::FIRST).unwrap().next().unwrap().unwrap();
/// assert_eq!((entry.first(), entry.last()), (Sequence::FIRST, Sequence::FIRST));
/// assert_eq!(entry.records().collect::<Vec<_>>(), [b"a record"]);
/// ```
#[derive(Clone)]
pub struct Entry {
    /// The bytes of all batches that were read together.
    shared: Arc<[u8]>,
    range: Range<usize>,
    first: Sequence,
    count: u32,
    chain: Chain,
    written: u64,
}

impl Entry {
    /// The sequence of the first record.
    #[must_use]
    pub const fn first(&self) -> Sequence {
        self.first
    }

    /// The sequence of the last record.
    #[must_use]
    pub const fn last(&self) -> Sequence {
        Sequence::new(self.first.get() + self.count as u64 - 1)
    }

    /// The number of records.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count as usize
    }

    /// The hash of all batches up to this one, itself included.
    #[must_use]
    pub const fn chain(&self) -> Chain {
        self.chain
    }

    /// When the log has written the batch, by the clock of its machine: some milliseconds after it
    /// was appended. Times of one log never go back, even if the clock does. `None` if an earlier
    /// build has written it, which noted no time.
    #[must_use]
    pub fn written(&self) -> Option<SystemTime> {
        time_of(self.written)
    }

    /// The records, in their order.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records(self.encoded())
    }

    /// The batch by itself, to be appended to another log. Copies the bytes.
    #[must_use]
    pub fn to_batch(&self) -> Batch {
        let mut batch = Batch::new();
        self.records().for_each(|record| batch.push(record));
        batch
    }

    pub(crate) fn encoded(&self) -> &[u8] {
        &self.shared[self.range.clone()]
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.range.len();
        write!(out, "Entry {}..={}, {bytes} bytes", self.first, self.last())
    }
}

/// Batches one behind the other, as they lie in a frame or in memory.
#[derive(Clone)]
pub(crate) struct Batches {
    shared: Arc<[u8]>,
    at: usize,
    next: Sequence,
    chain: Chain,
    written: u64,
}

impl Batches {
    /// The batches in `bytes`, of which the first record has the sequence `first`, behind `chain`,
    /// written at this time.
    pub(crate) fn new(bytes: &[u8], first: Sequence, chain: Chain, written: u64) -> Self {
        Self {
            shared: Arc::from(bytes),
            at: 0,
            next: first,
            chain,
            written,
        }
    }

    /// The sequence behind the batches that were taken.
    pub(crate) const fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// The chain behind the batches that were taken.
    pub(crate) const fn next_chain(&self) -> Chain {
        self.chain
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.shared.len()
    }
}

impl Iterator for Batches {
    type Item = Entry;

    /// `None` at the end, and where bytes are no batch; [`Batches::is_at_end`] says which.
    fn next(&mut self) -> Option<Entry> {
        let (count, length) = measure(&self.shared[self.at..])?;
        let range = self.at..self.at + length;
        let entry = Entry {
            first: self.next,
            count,
            chain: self.chain.and(Digest::of(&self.shared[range.clone()])),
            shared: Arc::clone(&self.shared),
            range,
            written: self.written,
        };
        self.at += length;
        self.next = self.next.plus(u64::from(count));
        self.chain = entry.chain;
        Some(entry)
    }
}

/// The microseconds since 1970; at least 1, because 0 is not known.
pub(crate) fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX).max(1)
}

/// The time of this number of microseconds, if it is known.
pub(crate) fn time_of(micros: u64) -> Option<SystemTime> {
    let since = Duration::from_micros(micros);
    UNIX_EPOCH.checked_add(since).filter(|_| micros > 0)
}

/// The records and the bytes of the batch at the beginning of `bytes`. `None` if there is no whole
/// batch.
fn measure(bytes: &[u8]) -> Option<(u32, usize)> {
    let (mut count, mut at) = (0_u32, 0);
    loop {
        let prefix = bytes.get(at..)?.first_chunk::<PREFIX_BYTES>()?;
        let prefix = u32::from_le_bytes(*prefix);
        at = at.checked_add(PREFIX_BYTES + (prefix >> 1) as usize)?;
        count = count.checked_add(1)?;
        if at > bytes.len() {
            return None;
        }
        if prefix & 1 == 1 {
            return Some((count, at));
        }
    }
}

/// Where the prefix of the last record is, in the bytes of a whole batch.
fn last_prefix(bytes: &[u8]) -> usize {
    let lengths = Records(bytes).map(<[u8]>::len);
    let last = lengths.clone().last().unwrap_or(0);
    let all: usize = lengths.map(|length| PREFIX_BYTES + length).sum();
    all - PREFIX_BYTES - last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_made_of_bytes_can_be_added_to() {
        let mut batch = Batch::of(b"abc");
        batch.push(b"de");
        let mut again = Batch::from_bytes(batch.as_bytes()).unwrap();
        assert_eq!(again, batch);
        again.push(b"f");
        batch.push(b"f");
        assert_eq!(again, batch);
        let two = [batch.as_bytes(), batch.as_bytes()].concat();
        assert_eq!(Batch::from_bytes(&two), None);
        assert_eq!(Batch::from_bytes(&[]), None);
    }

    #[test]
    fn batches_behind_each_other_are_told_apart() {
        let mut two = Batch::of(b"");
        two.push(b"bc");
        let one = Batch::of(b"a");
        let bytes = [one.encoded(), two.encoded(), one.encoded()].concat();
        let mut batches = Batches::new(&bytes, Sequence::new(5), Chain::START, 7);
        let read: Vec<Entry> = batches.by_ref().collect();
        assert!(batches.is_at_end());
        assert_eq!(batches.next_sequence(), Sequence::new(9));
        let firsts: Vec<u64> = read.iter().map(|entry| entry.first().get()).collect();
        assert_eq!(firsts, [5, 6, 8]);
        let written = UNIX_EPOCH + Duration::from_micros(7);
        assert!(read.iter().all(|entry| entry.written() == Some(written)));
        assert_eq!(read[1].records().collect::<Vec<_>>(), [&b""[..], b"bc"]);
        assert_eq!(read[1].to_batch(), two);
        assert_eq!(batches.next_chain(), read[2].chain());
    }

    #[test]
    fn a_batch_that_is_cut_is_no_batch() {
        let mut batch = Batch::of(b"abc");
        batch.push(b"de");
        for length in 0..batch.bytes() {
            assert_eq!(measure(&batch.encoded()[..length]), None, "{length}");
        }
        assert_eq!(measure(batch.encoded()), Some((2, batch.bytes())));
    }

    #[test]
    fn a_cleared_batch_is_as_new() {
        let mut batch = Batch::of(b"abc");
        batch.clear();
        batch.push(b"x");
        assert_eq!(batch, Batch::of(b"x"));
    }
}
