#![doc = include_str!("../README.md")]

mod backoff;
mod combining_lock;
#[cfg(not(any(loom, shuttle)))]
pub mod counting_allocator;
pub mod epoch;
#[cfg(any(loom, shuttle))]
pub mod model;
mod primitives;
mod reader_stripes;
pub mod reclaim;
mod short_lock;
mod statistics_lock;
mod striped_counter;
pub mod system;
mod version_lock;
mod waiter;

pub use backoff::Backoff;
pub use combining_lock::{CombiningLock, CombiningLockGuard};
pub use crossbeam_utils::CachePadded;
#[cfg(sim)]
pub use primitives::sim;
pub use primitives::{
    Arc, LazyLock, Mutex, MutexGuard, RwLock, atomic, cell, now, spin_loop, thread, thread_index,
    thread_local,
};
pub use short_lock::{ShortLock, ShortLockGuard, Wait};
pub use statistics_lock::{LockDomain, ReadGuard, StatisticsConfig, StatisticsLock, WriteGuard};
pub use striped_counter::StripedCounter;
pub use version_lock::{Restart, Version, VersionGuard, VersionLock, retry};
pub use waiter::{Waiter, contained, discard, park};
