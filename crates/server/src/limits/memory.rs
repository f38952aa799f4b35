//! The limit of all memory.

use super::Bytes;
use crate::machine;
use tremula_store::{EvictionSettings, Policy};

/// The least limit of memory: an empty server, and some room.
pub const LEAST_MEMORY: Bytes = Bytes(4 << 20);

/// Keys that an eviction looks at. Redis's `maxmemory-samples`.
pub const MEMORY_SAMPLES: u8 = 5;

/// Bytes of memory for which there is one place in the table of accesses, 4 bytes each: 1.6 % of
/// the memory, and with entries of 128 bytes half of the keys have a place for themselves or share
/// it with one other.
const BYTES_A_PLACE: usize = 256;

/// The least and the most places, so that small limits work and large ones cost little.
const PLACES: (usize, usize) = (1 << 12, 1 << 24);

/// The limit of all memory, and what happens at it.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Bytes of everything: keys, rows, messages, buffers; from 4mb, and 0 is no limit [default:
    /// three quarters of the memory of the machine or of the control group]
    #[arg(long, value_name = "BYTES", value_parser = parse_limit)]
    pub max_memory: Option<Bytes>,

    /// Which keys go when memory is short: noeviction, allkeys-lru, allkeys-lfu, allkeys-random; of
    /// those that expire: volatile-lru, volatile-lfu, volatile-random, volatile-ttl
    #[arg(long, value_name = "POLICY", default_value_t = Policy::NoEviction)]
    pub max_memory_policy: Policy,

    /// Keys that an eviction looks at, 1 to 64
    #[arg(long, value_name = "N", default_value_t = MEMORY_SAMPLES, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub max_memory_samples: u8,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            max_memory: None,
            max_memory_policy: Policy::NoEviction,
            max_memory_samples: MEMORY_SAMPLES,
        }
    }
}

impl MemoryLimits {
    /// The limit, in bytes; `None` for no limit, because the flag says so, or because nothing
    /// says how much memory the machine has.
    pub(crate) fn limit(&self) -> Option<u64> {
        match self.max_memory {
            Some(Bytes(0)) => None,
            Some(limit) => Some(limit.0 as u64),
            None => machine::share(),
        }
    }

    /// How keys are evicted, now or when another policy is chosen.
    pub(crate) fn eviction(&self) -> EvictionSettings {
        EvictionSettings {
            policy: self.max_memory_policy,
            samples: self.max_memory_samples.into(),
            places: places(self.limit()),
        }
    }
}

/// The places for the accesses of keys with a limit of memory. Without a limit, as many as with the
/// one that the machine suggests.
pub(crate) fn places(limit: Option<u64>) -> usize {
    let limit = limit.or_else(machine::share).unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (least, most) = PLACES;
    (limit / BYTES_A_PLACE).clamp(least, most)
}

fn parse_limit(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    if (1..LEAST_MEMORY.0).contains(&bytes.0) {
        return Err(format!(
            "a server needs {LEAST_MEMORY} at least; 0 is no limit"
        ));
    }
    Ok(bytes)
}
