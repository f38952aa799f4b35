//! The number of a record, and the hash of all that lies before one.

use std::fmt;
use twox_hash::XxHash3_128;

/// The number of a record in its log: the first is 1, each next one is greater by one.
///
/// ```
/// use tremula_log::Sequence;
///
/// assert!(Sequence::NONE < Sequence::FIRST);
/// assert_eq!(Sequence::FIRST.plus(2), Sequence::new(3));
/// assert_eq!(Sequence::new(7).to_string(), "7");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(u64);

impl Sequence {
    /// No record: what is durable in an empty log.
    pub const NONE: Self = Self(0);
    /// The first record of a log.
    pub const FIRST: Self = Self(1);

    /// The sequence of this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sequence that is `count` records later. It stays at the greatest number there is, which
    /// no log reaches.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// The sequence before this one; [`NONE`](Self::NONE) has none before it and stays.
    #[must_use]
    pub const fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// A hash of 128 bits of every batch from a log's first to one of its batches, in their order.
///
/// Two logs that hold the same batches have the same chain at the same sequence, whatever files
/// or flushes the batches went through. So a hole, a lost tail, or a second history shows as a
/// chain that differs. It is XXH3, which is fast and not cryptographic: it finds accidents, not a
/// forger who can write to the disk.
///
/// ```
/// use tremula_log::{Batch, Chain, Log, MemoryLog};
///
/// let (one, two) = (MemoryLog::new(), MemoryLog::new());
/// let batch = Batch::of(b"a record");
/// let chain = one.append(&batch, None).unwrap().chain();
/// assert_ne!(chain, Chain::START);
/// assert_eq!(chain, two.append(&batch, None).unwrap().chain());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Chain(u128);

impl Chain {
    /// The chain of an empty log.
    pub const START: Self = Self(0);

    /// The chain with this hash.
    #[must_use]
    pub const fn new(hash: u128) -> Self {
        Self(hash)
    }

    /// The hash.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }

    /// The chain behind one more batch, of which only the digest is needed: callers compute it
    /// without a lock.
    pub(crate) fn and(self, digest: Digest) -> Self {
        let mut both = [0; 32];
        both[..16].copy_from_slice(&self.0.to_le_bytes());
        both[16..].copy_from_slice(&digest.0.to_le_bytes());
        Self(XxHash3_128::oneshot(&both))
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

/// The hash of the bytes of one batch.
#[derive(Clone, Copy)]
pub(crate) struct Digest(u128);

impl Digest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(XxHash3_128::oneshot(bytes))
    }
}
