//! What a log is, whatever lies behind it.

use crate::batch::{Batch, Entry};
use crate::error::{Failure, ReadError, Refused, Stopped};
use crate::sequence::{Chain, Sequence};
use crate::watermark::{Until, Watermark};
use std::fmt;

/// A log: batches of records, one behind the other, which become durable in their order.
///
/// All methods take `&self` and work from any thread. An append returns at once; what it appended
/// is durable once the [watermark](Self::watermark) has reached the ticket's last sequence, and is
/// lost in a crash before, together with everything behind it: what a log has after a crash is
/// always a beginning of what was appended, whole batches only.
///
/// The trait is object-safe: `Arc<dyn Log>` is what a store takes, so that it does not know whether
/// files, memory or other machines keep the records.
///
/// ```
/// use tremula_log::{Batch, Log, MemoryLog, Refused, Sequence};
///
/// let log = MemoryLog::new();
/// let ticket = log.append(&Batch::of(b"first"), None).unwrap();
/// log.wait(ticket.last()).unwrap(); // or: log.until(ticket.last()).await
///
/// // A writer that says where its batch must begin notices that another one has appended.
/// let late = log.append(&Batch::of(b"second"), Some(Sequence::FIRST));
/// assert!(matches!(late, Err(Refused::Fenced(_))));
/// ```
pub trait Log: Send + Sync {
    /// Appends a batch behind all others. Returns at once: it waits for no disk.
    ///
    /// With `expected`, only if the batch's first record gets that sequence: a writer that passes
    /// what the log's [tail](Self::tail) or its own last ticket said appends only as long as no
    /// other writer does. Appends are linearizable. O(bytes).
    ///
    /// # Errors
    ///
    /// [`Refused`] says why nothing was appended: the batch begins elsewhere than expected, is
    /// empty or too long; too much waits for the disk; the disk is full; the log has stopped.
    fn append(&self, batch: &Batch, expected: Option<Sequence>) -> Result<Ticket, Refused>;

    /// Whether a batch of this number of bytes ([`Batch::bytes`]) would be taken now. For a caller
    /// that must know before it makes a change that it cannot undo. O(1).
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append).
    fn admits(&self, bytes: usize) -> Result<(), Refused>;

    /// Where the log goes on: the sequence of the next record, and the chain of all before it.
    /// O(1).
    fn tail(&self) -> Tail;

    /// Up to where the log is durable, and how to wait for more.
    fn watermark(&self) -> &Watermark;

    /// The first record that can be read; the [next](Tail::next) one if the log is empty. O(1).
    fn first(&self) -> Sequence;

    /// Reads durable batches, from the one that has the record `from` in it.
    ///
    /// The reader ends where the log is durable, and goes on when it is asked again after more has
    /// become so. It keeps the records that it has not come to from being overwritten, not from
    /// being truncated.
    ///
    /// # Errors
    ///
    /// `from` was truncated, or lies behind the log's end. While reading: damage, or the system's
    /// refusal.
    fn read(&self, from: Sequence) -> Result<Box<dyn Reader>, ReadError>;

    /// The first record that the log is to keep, though its caller may need it no more: for those
    /// that read behind, and for restoring an earlier state. The [next](Tail::next) one if there is
    /// no such wish, which is the default. O(segments).
    fn keeps_from(&self) -> Sequence {
        self.tail().next
    }

    /// Gives up records below `sequence`, which the caller has put elsewhere: in a snapshot that is
    /// durable. The log frees what it can; [`first`](Self::first) says what is left. It never gives
    /// up the record `sequence`, nor a later one, nor what it [keeps](Self::keeps_from).
    ///
    /// May do blocking calls to the system.
    ///
    /// # Errors
    ///
    /// The system refused. Some of the records may be gone, oldest first.
    fn truncate_below(&self, sequence: Sequence) -> Result<(), Failure>;

    /// Makes everything durable that was appended, then takes no more batches. Blocks. A second
    /// call returns what the first one did.
    ///
    /// # Errors
    ///
    /// Something that was appended did not become durable.
    fn close(&self) -> Result<(), Stopped>;

    /// The last durable record. O(1).
    fn durable(&self) -> Sequence {
        self.watermark().get()
    }

    /// Blocks the thread until the record is durable: [`Watermark::wait`].
    ///
    /// # Errors
    ///
    /// The log has stopped before.
    fn wait(&self, sequence: Sequence) -> Result<(), Stopped> {
        self.watermark().wait(sequence)
    }

    /// A future that ends when the record is durable: [`Watermark::until`].
    fn until(&self, sequence: Sequence) -> Until<'_> {
        self.watermark().until(sequence)
    }
}

/// Reads batches in their order. `None` means that there is no more now; later there may be.
pub trait Reader: Iterator<Item = Result<Entry, ReadError>> + Send {
    /// The sequence of the first record of the next batch.
    fn next_sequence(&self) -> Sequence;
}

/// Where a batch is in the log. A copy of a few numbers: keep it, or only its last sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    first: Sequence,
    last: Sequence,
    chain: Chain,
}

impl Ticket {
    /// For those who make logs.
    ///
    /// # Panics
    ///
    /// `count` is 0.
    #[must_use]
    pub fn new(first: Sequence, count: usize, chain: Chain) -> Self {
        assert!(count > 0, "a batch has a record");
        let last = first.plus(count as u64 - 1);
        Self { first, last, chain }
    }

    /// The sequence of the batch's first record.
    #[must_use]
    pub const fn first(&self) -> Sequence {
        self.first
    }

    /// The sequence of its last record: the batch is durable once the watermark has reached it.
    #[must_use]
    pub const fn last(&self) -> Sequence {
        self.last
    }

    /// The sequence behind the batch: what a writer that is alone expects for its next one.
    #[must_use]
    pub const fn next(&self) -> Sequence {
        self.last.plus(1)
    }

    /// The hash of all batches up to this one, itself included.
    #[must_use]
    pub const fn chain(&self) -> Chain {
        self.chain
    }
}

/// Where a log goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The sequence of the next record.
    pub next: Sequence,
    /// The hash of all batches before it.
    pub chain: Chain,
}

impl Tail {
    /// The tail of an empty log.
    pub const START: Self = Self {
        next: Sequence::FIRST,
        chain: Chain::START,
    };
}

impl fmt::Display for Tail {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (chain {})", self.next, self.chain)
    }
}
