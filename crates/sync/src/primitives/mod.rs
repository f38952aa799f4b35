//! The one switch between the real primitives, those of a checker, and those of the simulator.
//!
//! All code above takes its atomics, locks, cells and threads from here only, so `--cfg loom` and
//! `--cfg shuttle` check the code that ships, and `--cfg sim` runs it on virtual cores. Each file
//! offers the same names.

#[cfg(loom)]
#[path = "loom.rs"]
mod chosen;
#[cfg(shuttle)]
#[path = "shuttle.rs"]
mod chosen;
#[cfg(sim)]
pub mod sim;
#[cfg(sim)]
use sim as chosen;
#[cfg(not(any(loom, shuttle, sim)))]
#[path = "std.rs"]
mod chosen;

#[cfg(any(loom, shuttle))]
mod model_locks;
#[cfg(not(any(loom, sim)))]
mod plain_cell;
#[cfg(tremula_tsan)]
mod watched_arc;

pub(crate) use chosen::RawRwLock;
pub use chosen::{
    Arc, Mutex, MutexGuard, RwLock, atomic, cell, now, spin_loop, thread, thread_index,
    thread_local,
};
#[cfg(any(loom, shuttle))]
pub(crate) use chosen::{Condvar, RawMutex};
/// std's in every build, so it outlives a run of a model: its content must be the same in every
/// run.
pub use std::sync::LazyLock;
