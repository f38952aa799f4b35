#![doc = include_str!("../README.md")]

mod backoff;
pub mod epoch;
#[cfg(any(loom, shuttle))]
pub mod model;
mod primitives;
mod reader_stripes;
mod statistics_lock;
mod striped_counter;

pub use backoff::Backoff;
pub use crossbeam_utils::CachePadded;
pub use primitives::{Arc, Mutex, MutexGuard, RwLock, atomic, cell, thread, thread_index};
pub use statistics_lock::{LockDomain, ReadGuard, StatisticsConfig, StatisticsLock, WriteGuard};
pub use striped_counter::StripedCounter;
