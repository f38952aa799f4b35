//! What the requesters ask of a cache in shards, and for which ids.

use crate::{LabError, measure::Span};
use std::str::FromStr;

/// What requesters ask of a cache in shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheTraffic {
    /// Append 64 bytes, or 16 KiB, to ids chosen uniformly.
    Write(ValueSize),
    /// Get the last 64 bytes, or 16 KiB, of ids chosen uniformly.
    Read(ValueSize),
    /// Append; nine of ten requests are for [`HOT_IDS`], whose shards initially belong to one
    /// worker.
    HotWorker(ValueSize),
    /// Get 64 bytes; one id takes half of the requests.
    HotId,
    /// Get 64 bytes, at half of the peak rate of `affinity`.
    Paced,
}

/// How many ids are hot in [`CacheTraffic::HotWorker`].
pub const HOT_IDS: usize = 8;

/// The size of a value that is appended or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueSize {
    /// 64 bytes.
    Small,
    /// 16 KiB.
    Large,
}

impl ValueSize {
    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Small => 64,
            Self::Large => 16 * 1024,
        }
    }

    /// Its name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "bytes_64",
            Self::Large => "bytes_16k",
        }
    }
}

impl CacheTraffic {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Write(ValueSize::Small),
        Self::Read(ValueSize::Small),
        Self::Write(ValueSize::Large),
        Self::Read(ValueSize::Large),
        Self::HotWorker(ValueSize::Small),
        Self::HotWorker(ValueSize::Large),
        Self::HotId,
        Self::Paced,
    ];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write(ValueSize::Small) => "write_64",
            Self::Write(ValueSize::Large) => "write_16k",
            Self::Read(ValueSize::Small) => "read_64",
            Self::Read(ValueSize::Large) => "read_16k",
            Self::HotWorker(ValueSize::Small) => "hot_worker_64",
            Self::HotWorker(ValueSize::Large) => "hot_worker_16k",
            Self::HotId => "hot_id",
            Self::Paced => "paced",
        }
    }

    /// The size of what is appended or read.
    #[must_use]
    pub const fn size(self) -> ValueSize {
        match self {
            Self::Write(size) | Self::Read(size) | Self::HotWorker(size) => size,
            Self::HotId | Self::Paced => ValueSize::Small,
        }
    }

    /// Whether requests append.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write(_) | Self::HotWorker(_))
    }
}

impl FromStr for CacheTraffic {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|traffic| traffic.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// Requests for a cache in shards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShardCacheJob {
    /// What is asked for.
    pub traffic: CacheTraffic,
    /// The number of workers of the shards, and of threads that the requesters run on.
    pub workers: usize,
    /// Ids are the integers below this.
    pub ids: u64,
    /// Requests a second of all requesters together; `None` for as many as possible.
    pub rate: Option<f64>,
    /// How long the requesters warm up, and how long their requests count.
    pub span: Span,
    /// The seed for the choice of ids.
    pub seed: u64,
    /// The run; the choice depends on it as well.
    pub run: usize,
}

impl ShardCacheJob {
    /// The number of requesters; each has one request in flight.
    pub const REQUESTERS: usize = 128;

    /// How many shards the cache has, regardless of the workers.
    pub const SHARDS: usize = 64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for traffic in CacheTraffic::ALL {
            assert_eq!(traffic.name().parse::<CacheTraffic>().unwrap(), traffic);
        }
        let error = "read_65".parse::<CacheTraffic>().unwrap_err().to_string();
        assert!(error.contains("'read_65'") && error.contains("hot_id"));
    }
}
