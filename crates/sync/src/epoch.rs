//! Epoch reclamation: memory that lock-free readers may still be looking at is freed only after all
//! of them have unpinned.
//!
//! This is the default, global collector of `crossbeam-epoch`. A checker runs all threads of a
//! model on one system thread, where the thread-locals of that crate would mix the model's threads
//! up, and it does not see that crate's fences. So under a checker a stand-in with the same calls
//! keeps everything until the model has ended; the sanitizers check that nothing is freed too
//! early.
//!
//! ```
//! use tremula_sync::epoch;
//!
//! let guard = epoch::pin();
//! let unlinked = Box::new(1);
//! guard.defer(move || drop(unlinked)); // once everyone pinned now has unpinned
//! ```

#[cfg(not(any(loom, shuttle, sim)))]
pub use crossbeam_epoch::{Guard, pin};

#[cfg(any(loom, shuttle))]
pub use stand_in::{Guard, pin};

#[cfg(any(loom, shuttle))]
pub(crate) use stand_in::{collect, forget};

#[cfg(sim)]
pub use of_the_run::{Guard, pin};

/// In a simulation, one collector of ours for each run: nothing is left over for the next.
#[cfg(sim)]
mod of_the_run {
    use crate::LazyLock;
    pub use crate::reclaim::CollectedGuard as Guard;
    use crate::reclaim::Collector;

    /// Pins the current thread.
    #[must_use]
    pub fn pin() -> Guard {
        /// For threads outside of a simulation.
        static OUTSIDE: LazyLock<Collector> = LazyLock::new(Collector::new);
        crate::sim::of_the_run(Collector::new)
            .unwrap_or_else(|| &OUTSIDE)
            .pin()
    }
}

#[cfg(any(loom, shuttle))]
mod stand_in {
    use std::cell::RefCell;

    thread_local! {
        static GARBAGE: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
    }

    /// While it lives, nothing is freed that was reachable when the guard was made.
    #[derive(Debug)]
    pub struct Guard(());

    /// Pins the current thread.
    #[must_use]
    pub fn pin() -> Guard {
        Guard(())
    }

    impl Guard {
        /// Runs `work` after all present guards are gone: here, when the model has ended.
        ///
        /// # Safety
        ///
        /// `work` is sound to run then.
        pub unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
            let work: Box<dyn FnOnce() + '_> = Box::new(move || {
                work();
            });
            // SAFETY: the caller promises that the work may run later; the transmute only erases
            // the lifetime that does not allow it.
            let work =
                unsafe { std::mem::transmute::<Box<dyn FnOnce() + '_>, Box<dyn FnOnce()>>(work) };
            GARBAGE.with_borrow_mut(|garbage| garbage.push(work));
        }
    }

    /// Frees what a model has retired, and what that work retires. All threads have ended.
    pub(crate) fn collect() {
        loop {
            let garbage = GARBAGE.take();
            if garbage.is_empty() {
                return;
            }
            for work in garbage {
                work();
            }
        }
    }

    /// Forgets what a failed model has retired.
    pub(crate) fn forget() {
        std::mem::forget(GARBAGE.take());
    }
}
