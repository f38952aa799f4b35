//! The real primitives: std's atomics and threads, `parking_lot`'s locks.

#[cfg(tremula_tsan)]
pub use super::watched_arc::Arc;
use parking_lot::lock_api::RawRwLock as _;
pub use parking_lot::{Mutex, MutexGuard, RwLock};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
pub use std::hint::spin_loop;
#[cfg(not(tremula_tsan))]
pub use std::sync::Arc;
pub use std::thread_local;

/// Atomic types, orderings and fences.
pub mod atomic {
    pub use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize,
        Ordering, compiler_fence, fence,
    };
}

/// Interior mutability that a checker can watch.
pub mod cell {
    pub use crate::primitives::plain_cell::{ConstPtr, MutPtr, UnsafeCell};
}

/// The present time.
#[inline]
#[must_use]
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Threads.
pub mod thread {
    pub use std::thread::{
        Builder, JoinHandle, Thread, current, panicking, park, park_timeout, sleep, spawn,
        yield_now,
    };
}

/// A readers-writer lock of one word, without data.
pub(crate) struct RawRwLock(parking_lot::RawRwLock);

impl RawRwLock {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::RawRwLock::INIT)
    }

    #[inline]
    pub(crate) fn try_lock_shared(&self) -> bool {
        self.0.try_lock_shared()
    }

    pub(crate) fn lock_shared(&self) {
        if !comes_soon(|| self.try_lock_shared()) {
            self.0.lock_shared();
        }
    }

    /// # Safety
    ///
    /// The calling thread holds the lock in shared mode.
    #[inline]
    pub(crate) unsafe fn unlock_shared(&self) {
        // SAFETY: passed on to the caller.
        unsafe { self.0.unlock_shared() }
    }

    #[inline]
    pub(crate) fn try_lock_exclusive(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    pub(crate) fn lock_exclusive(&self) {
        if !comes_soon(|| self.try_lock_exclusive()) {
            self.0.lock_exclusive();
        }
    }

    /// # Safety
    ///
    /// The calling thread holds the lock in exclusive mode.
    #[inline]
    pub(crate) unsafe fn unlock_exclusive(&self) {
        // SAFETY: passed on to the caller.
        unsafe { self.0.unlock_exclusive() }
    }
}

/// Tries ten times to take a lock, with a few pauses of the processor between the first tries, and
/// lets other threads run between the later ones. Returns whether it has the lock.
///
/// It looks at the lock sooner than `parking_lot` does. What these locks protect takes a fraction
/// of a microsecond, and a longer wait is time lost.
#[cold]
fn comes_soon(try_lock: impl Fn() -> bool) -> bool {
    (0..10).any(|step| {
        if step < 3 {
            (0..1 << step).for_each(|_| std::hint::spin_loop());
        } else {
            std::thread::yield_now();
        }
        try_lock()
    })
}

/// The indices of ended threads, smallest first, and the first index never given out.
static FREE: Mutex<(BinaryHeap<Reverse<usize>>, usize)> = Mutex::new((BinaryHeap::new(), 0));

struct ThreadIndex(usize);

impl ThreadIndex {
    fn take() -> Self {
        let mut free = FREE.lock();
        if let Some(Reverse(index)) = free.0.pop() {
            return Self(index);
        }
        free.1 += 1;
        Self(free.1 - 1)
    }
}

impl Drop for ThreadIndex {
    fn drop(&mut self) {
        FREE.lock().0.push(Reverse(self.0));
    }
}

/// A small number that no other living thread has. Numbers of ended threads are given out
/// again, smallest first, so that they stay dense.
#[inline]
#[must_use]
pub fn thread_index() -> usize {
    thread_local! {
        static INDEX: ThreadIndex = ThreadIndex::take();
    }
    // A thread that is being torn down shares number 0: callers tolerate sharing.
    INDEX.try_with(|index| index.0).unwrap_or(0)
}
