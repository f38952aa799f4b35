//! What one thread does in `sequential_overhead`.

use crate::{keys::KeyList, measure::Span};

/// How many entries a scan visits, unless the table ends before.
pub const SEQUENTIAL_SCAN: usize = 100;

/// An operation that is measured on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequentialOperation {
    /// Insert all keys into an empty table.
    Insert,
    /// Look present keys up.
    Lookup,
    /// Replace the values of present keys.
    Update,
    /// Visit [`SEQUENTIAL_SCAN`] entries from a present key on.
    Scan,
    /// Remove all keys.
    Remove,
}

impl SequentialOperation {
    /// The operations, in the order in which they are measured on one table.
    pub const ALL: [Self; 5] = [
        Self::Insert,
        Self::Lookup,
        Self::Update,
        Self::Scan,
        Self::Remove,
    ];

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Lookup => "lookup",
            Self::Update => "update",
            Self::Scan => "scan_100",
            Self::Remove => "remove",
        }
    }

    /// Whether it is repeated until the time is up, rather than done once for each key.
    #[must_use]
    pub const fn is_timed(self) -> bool {
        !matches!(self, Self::Insert | Self::Remove)
    }
}

/// One thread fills a table, uses it, and empties it.
#[derive(Clone, Debug)]
pub struct SequentialJob<K> {
    /// What the table is filled with.
    pub keys: KeyList<K>,
    /// The keys of the operations, used repeatedly.
    pub stream: Vec<K>,
    /// What is measured, in the order of [`SequentialOperation::ALL`].
    pub operations: Vec<SequentialOperation>,
    /// How long a timed operation warms up, and how long it counts.
    pub span: Span,
}
