//! A simulator of many cores, for builds under `--cfg sim`: the code that ships runs on virtual
//! cores, in virtual time, with the prices of cache coherence.
//!
//! # The picture
//!
//! ```text
//!   virtual threads (coroutines)        one thread of the system
//!   clock 812 ns ──┐
//!   clock 790 ns ──┼──> the lowest clock goes on ──> its access ──> directory of lines
//!   clock 901 ns ──┘                                               owner, sharers, busy until
//! ```
//!
//! Each access of an atomic, a cell or a lock advances the clock of its thread by what it costs in
//! the state that the line is in, and then takes place in the order of virtual time. A store does
//! not wait for its line; others see it when that has come (`stores.rs`). A run depends on its seed
//! only.
//!
//! # When to use it
//!
//! To see how a structure scales on a machine that is not at hand, and which line stops it. It is
//! not made for finding bugs of ordering: of what the memory model allows, only stores that others
//! see later happen. loom and shuttle find them.
//!
//! # What it leaves out
//!
//! A core has one access under way at a time, with two exceptions: a line beside the one before
//! costs a part of its price, because the lines of a node are asked for together; and a line that
//! is asked for by `prefetch`. Of the code's own prefetches only those for writing call it: they
//! change which core has a line. Other overlap of misses is missing; so
//! are the limits of memory's bandwidth and the misses of the address translation. Threads stay on
//! the place where they started. Plain memory costs something only where the code says so, by
//! `touch` or `work`.
//!
//! # Invariants
//!
//! `state.rs` and `directory.rs` open with theirs.
//!
//! Sources: Sanchez and Kozyrakis, "ZSim" (ISCA 2013), and Miller et al., "Graphite" (HPCA 2010),
//! for simulating by the time of each core; `directory.rs` names those of the prices.

mod allocator;
pub mod atomic;
#[path = "cell.rs"]
mod contents;
mod current;
mod directory;
mod loaded;
mod local;
mod locks;
mod machine;
mod once;
mod outcome;
mod random;
mod simulation;
mod state;
mod stores;
mod threads;

pub use allocator::Allocator;
pub(crate) use current::of_the_run;
pub use current::{is_simulated, now, prefetch, spin_loop, touch, work};
pub use local::{AccessError, LocalKey};
pub(crate) use locks::RawRwLock;
pub use locks::{Mutex, MutexGuard, RawMutex, RwLock, Word};
pub use machine::{ByDistance, MOST_CORES, Machine, Picoseconds, Prices};
pub(crate) use once::OfTheRun;
pub use outcome::{Blame, Outcome, Spent};
pub use simulation::Simulation;
pub use std::sync::Arc;
pub use threads::{scoped, thread_index};

pub use crate::sim_thread_local as thread_local;

/// Interior mutability; what is read or written through it has a price.
pub mod cell {
    pub use super::contents::{ConstPtr, MutPtr, UnsafeCell};
}

/// Threads.
pub mod thread {
    pub use super::threads::{
        Builder, JoinHandle, Thread, ThreadId, current, panicking, park, park_timeout, sleep,
        spawn, yield_now,
    };
}
