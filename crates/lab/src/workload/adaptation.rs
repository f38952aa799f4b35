//! What happens to the table of `adaptation`, phase by phase.

use super::{LongScan, Operation};
use std::time::Duration;

/// How many consecutive keys the phase `hot_range` uses.
pub const HOT_KEYS: u32 = 1024;

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
    HotRange,
    /// All threads replace the value of one key.
    HotKey,
    /// All threads insert keys above all others, read from the clock.
    Append,
    /// All threads scan.
    Scan,
    /// The same as [`Single`](Self::Single).
    Quiet,
}

impl AdaptationPhase {
    /// The phases, in their order.
    pub const ALL: [Self; 7] = [
        Self::Fill,
        Self::Single,
        Self::HotRange,
        Self::HotKey,
        Self::Append,
        Self::Scan,
        Self::Quiet,
    ];

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fill => "fill",
            Self::Single => "single",
            Self::HotRange => "hot_range",
            Self::HotKey => "hot_key",
            Self::Append => "append",
            Self::Scan => "scan",
            Self::Quiet => "quiet",
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
    pub hot_range: Vec<Vec<Operation>>,
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
        self.hot_range.len()
    }

    /// The first key of the narrow range, and the number of its keys.
    #[must_use]
    pub fn hot_keys(&self) -> (u32, u32) {
        let count = self.range.min(HOT_KEYS);
        ((self.range - count) / 2, count)
    }
}
