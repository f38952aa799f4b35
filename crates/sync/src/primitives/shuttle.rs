//! shuttle's primitives, for the schedules under `--cfg shuttle`.

use super::model_locks;
pub(crate) use model_locks::RawRwLock;
pub use model_locks::{Mutex, MutexGuard, RwLock};
pub use shuttle::sync::Arc;
pub(crate) use shuttle::sync::{Condvar, Mutex as RawMutex};
pub use shuttle::thread_local;

/// Atomic types, orderings and fences.
pub mod atomic {
    // `compiler_fence` is std's, because it orders nothing between threads.
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
        Ordering, fence,
    };
    pub use std::sync::atomic::compiler_fence;
}

/// Interior mutability that a checker can watch (shuttle does not).
pub mod cell {
    pub use crate::primitives::plain_cell::{ConstPtr, MutPtr, UnsafeCell};
}

pub use std::hint::spin_loop;

/// The present time, which is the real one.
#[must_use]
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Threads.
pub mod thread {
    // `panicking` is std's, because all threads of a test run on one system thread.
    pub use shuttle::thread::{Builder, JoinHandle, Thread, current, park, spawn, yield_now};
    pub use std::thread::panicking;
}

/// A small number that no other thread of the schedule has.
#[must_use]
pub fn thread_index() -> usize {
    shuttle::thread_local! {
        static INDEX: usize = crate::model::next_thread_index();
    }
    INDEX.try_with(|index| *index).unwrap_or(0)
}
