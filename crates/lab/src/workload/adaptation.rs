//! What happens to the table of `adaptation`, phase by phase.

use super::{LongScan, Operation};
use std::time::Duration;

/// How many consecutive keys the phase `hammer` uses.
pub const HAMMERED_KEYS: u32 = 1024;

/// How many keys a scan visits, unless the table ends before.
pub const ADAPTATION_SCAN: u32 = 1000;

/// What is done to the table in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdaptationPhase {
    /// All threads insert their own randomly chosen keys, and start over when all are inserted.
    Fill,
    /// One thread looks keys up, inserts and removes.
    Single,
    /// All threads insert and remove in one narrow range.
    Hammer,
    /// All threads scan.
    Scan,
    /// The same as [`Single`](Self::Single).
    SingleAgain,
}

impl AdaptationPhase {
    /// The phases, in their order.
    pub const ALL: [Self; 5] = [
        Self::Fill,
        Self::Single,
        Self::Hammer,
        Self::Scan,
        Self::SingleAgain,
    ];

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Single => "single",
            Self::Hammer => "hammer",
            Self::Scan => "scan",
            Self::SingleAgain => "single_again",
        }
    }
}

/// A table over time.
#[derive(Clone, Debug)]
pub struct AdaptationJob {
    /// Keys lie below this.
    pub range: u32,
    /// The keys that the table is filled with, in this order; each thread inserts its part.
    pub fill: Vec<u32>,
    /// What the single thread does, on all keys.
    pub single: Vec<Operation>,
    /// What each thread does in the narrow range, whose keys are counted from 0.
    pub hammer: Vec<Vec<Operation>>,
    /// What each thread scans.
    pub scans: Vec<Vec<LongScan>>,
    /// How many slices a phase has.
    pub slices: u32,
    /// How long a slice is.
    pub slice: Duration,
}

impl AdaptationJob {
    /// How many threads the phases of all threads have.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.hammer.len()
    }

    /// The first key of the narrow range, and the number of its keys.
    #[must_use]
    pub fn hammered(&self) -> (u32, u32) {
        let count = self.range.min(HAMMERED_KEYS);
        ((self.range - count) / 2, count)
    }
}
