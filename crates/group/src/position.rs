//! Where a message lies in the shared log, what names it, and which leader it is of.

use std::fmt;
use tremula_log::{Chain, Sequence};

/// The number of a message in the shared log: the first is 1, each next one is greater by one.
///
/// It counts messages; a [`Sequence`] counts records of batches.
///
/// ```
/// use tremula_group::Position;
///
/// assert_eq!(Position::NONE.next(), Position::new(1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    /// No message: the end of an empty log.
    pub const NONE: Self = Self(0);

    /// The position of this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The position behind this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The number of a term of leadership: each claim that the log takes has the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// Before the first claim.
    pub const NONE: Self = Self(0);

    /// The epoch of this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The epoch behind this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The name of a message, by which the log notices that it was sent before.
///
/// It is unique because an incarnation is one start of one node, and numbers its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageId {
    /// The start of a node that has sent the message.
    pub incarnation: u64,
    /// The number of the message since that start.
    pub number: u64,
}

impl fmt::Display for MessageId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}.{}", self.incarnation, self.number)
    }
}

/// A term of leadership, as the log shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reign {
    /// The number of the claim.
    pub epoch: Epoch,
    /// The start of a node that has claimed.
    pub incarnation: u64,
    /// Where that node takes its clients.
    pub address: String,
    /// The number of the leader's next message within its term; the claim is 0.
    pub next_message: u64,
    /// Whether every message since the claim is the leader's. A message of another one takes the
    /// place that the leader expected for its own, so the leader's is refused, and all later ones
    /// of its term that get into the log by chance are void.
    pub is_open: bool,
}

/// A state of the group: all messages up to a position, and what they lead to.
///
/// A snapshot is taken at a point; a node starts from one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// The last message that counts.
    pub position: Position,
    /// The last record.
    pub last: Sequence,
    /// The hash of all batches.
    pub chain: Chain,
    /// The term of leadership.
    pub reign: Reign,
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "record {} (chain {}) at message {}",
            self.last, self.chain, self.position
        )
    }
}
