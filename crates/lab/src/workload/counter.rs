//! What threads do to one counter.

use crate::{LabError, measure::Span};
use std::str::FromStr;

/// How additions and readings are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterMix {
    /// Additions only.
    Add,
    /// One operation of a thread in [`READ_PERIOD`] reads the counter.
    AddAndRead,
    /// Readings only.
    Size,
}

/// One operation in this many of [`CounterMix::AddAndRead`] reads.
pub const READ_PERIOD: u64 = 1000;

impl CounterMix {
    /// Every mix.
    pub const ALL: [Self; 3] = [Self::Add, Self::AddAndRead, Self::Size];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::AddAndRead => "add_and_read_1_in_1000",
            Self::Size => "size",
        }
    }

    /// The number of a thread's first operation that reads, and the distance to each next one.
    #[must_use]
    pub const fn period(self) -> u64 {
        match self {
            // More than any thread does.
            Self::Add => 1 << 58,
            Self::AddAndRead => READ_PERIOD,
            Self::Size => 1,
        }
    }
}

impl FromStr for CounterMix {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|mix| mix.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// Threads add to one counter and read it.
#[derive(Clone, Copy, Debug)]
pub struct CounterJob {
    /// How additions and readings are mixed.
    pub mix: CounterMix,
    /// How many threads.
    pub threads: usize,
    /// The initial value of the counter.
    pub start: u64,
    /// How long the threads warm up, and how long their operations count.
    pub span: Span,
}

impl CounterJob {
    /// How many rows of its own a thread inserts into a table before it deletes them.
    pub const ROWS: u64 = 64;
}
