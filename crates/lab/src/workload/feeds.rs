//! What is asked of a server whose ranges are watched.

use crate::{
    LabError,
    workload::{Purpose, generator},
};
use rand::RngExt;
use std::{str::FromStr, time::Duration};

/// How many clients watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// One.
    One,
    /// A hundred.
    Hundred,
}

impl Feed {
    /// Both.
    pub const ALL: [Self; 2] = [Self::One, Self::Hundred];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "watch_1",
            Self::Hundred => "watch_100",
        }
    }

    /// How many clients.
    #[must_use]
    pub const fn watchers(self) -> usize {
        match self {
            Self::One => 1,
            Self::Hundred => 100,
        }
    }
}

impl FromStr for Feed {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|feed| feed.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// Clients that watch a range, in which others write as fast as they can.
#[derive(Clone, Copy, Debug)]
pub struct FeedJob {
    /// How many watch.
    pub feed: Feed,
    /// How many write.
    pub writers: usize,
    /// How many keys they choose from.
    pub keys: u64,
    /// The seed of the keys.
    pub seed: u64,
    /// The run; the keys depend on it as well.
    pub run: usize,
    /// How long they write.
    pub duration: Duration,
}

impl FeedJob {
    /// The length of a key: `key:` and twelve digits.
    pub const KEY_BYTES: usize = 16;

    /// How many `SET` a writer sends before it waits for the answers.
    pub const PIPELINE: usize = 16;

    /// How many keys of a writer are chosen in advance; it repeats them. A multiple of a pipeline.
    pub const STREAM: usize = 4096;

    /// The numbers of the keys that a writer sets.
    #[must_use]
    pub fn stream(&self, writer: usize) -> Vec<u64> {
        let mut random = generator(self.seed, Purpose::Choices, self.run, writer);
        (0..Self::STREAM)
            .map(|_| random.random_range(0..self.keys))
            .collect()
    }
}
