//! What happens to the table of `adaptation`, phase by phase.

use super::{LongScan, Operation};
use std::time::Duration;

/// How many consecutive keys the phase `hammer` is about.
pub const HAMMERED_KEYS: u32 = 1024;

/// How many keys a scan visits, if the table does not end before.
pub const ADAPTATION_SCAN: u32 = 1000;

/// What is done to the table for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdaptationPhase {
    /// All threads insert keys of their own, chosen at random; over and over when all are in.
    Fill,
    /// One thread looks keys up, inserts and removes.
    Single,
    /// All threads insert and remove in one narrow range.
    Hammer,
    /// All threads scan.
    Scan,
    /// As [`Single`](Self::Single).
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
    /// Keys lie below it.
    pub range: u32,
    /// The keys that the table is filled with, each thread with its part, in this order.
    pub fill: Vec<u32>,
    /// What the one thread does, on all keys.
    pub single: Vec<Operation>,
    /// What each thread does to the narrow range, whose keys are counted from 0.
    pub hammer: Vec<Vec<Operation>>,
    /// What each thread scans.
    pub scans: Vec<Vec<LongScan>>,
    /// How many slices a phase has.
    pub slices: u32,
    /// How long a slice is.
    pub slice: Duration,
}

impl AdaptationJob {
    /// How many threads there are, in the phases of all threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.hammer.len()
    }

    /// The first key of the narrow range, and how many it has.
    #[must_use]
    pub fn hammered(&self) -> (u32, u32) {
        let count = self.range.min(HAMMERED_KEYS);
        ((self.range - count) / 2, count)
    }
}
