//! loom's primitives, for the models under `--cfg loom`.

use super::model_locks;
pub use loom::sync::Arc;
pub(crate) use loom::sync::{Condvar, Mutex as RawMutex};
pub use loom::thread_local;
pub(crate) use model_locks::RawRwLock;
pub use model_locks::{Mutex, MutexGuard, RwLock};

/// Atomic types, orderings and fences.
pub mod atomic {
    // `compiler_fence` is std's, because it orders nothing between threads.
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
        Ordering, fence,
    };
    pub use std::sync::atomic::compiler_fence;
}

/// Interior mutability that a checker can watch.
pub mod cell {
    pub use loom::cell::{ConstPtr, MutPtr, UnsafeCell};
}

pub use std::hint::spin_loop;

/// The present time, which is the real one.
#[must_use]
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Threads.
pub mod thread {
    // `panicking` is std's, because all threads of a model run on one system thread.
    pub use loom::thread::{Builder, JoinHandle, Thread, current, park, spawn, yield_now};
    pub use std::thread::panicking;
}

/// A small number that no other thread of the model has.
#[must_use]
pub fn thread_index() -> usize {
    loom::thread_local! {
        static INDEX: usize = crate::model::next_thread_index();
    }
    INDEX.try_with(|index| *index).unwrap_or(0)
}
