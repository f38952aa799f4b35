//! Epoch reclamation: memory that lock-free readers may still be looking at is freed only
//! once they have all moved on.
//!
//! This is `crossbeam-epoch` (its default, global collector). A checker runs all the threads
//! of a model on one thread of the system, where that crate's own thread-locals would mix
//! them up; there a stand-in with the same two calls frees when nobody is pinned.
//!
//! ```
//! use tremula_sync::epoch;
//!
//! let guard = epoch::pin();
//! let unlinked = Box::new(1);
//! guard.defer(move || drop(unlinked)); // once everyone pinned now has unpinned
//! ```

#[cfg(not(any(loom, shuttle)))]
pub use crossbeam_epoch::{Guard, pin};

#[cfg(any(loom, shuttle))]
pub use stand_in::{Guard, pin};

#[cfg(any(loom, shuttle))]
mod stand_in {
    use std::cell::{Cell, RefCell};

    thread_local! {
        static PINNED: Cell<usize> = const { Cell::new(0) };
        static GARBAGE: RefCell<Vec<Box<dyn FnOnce()>>> = const { RefCell::new(Vec::new()) };
    }

    /// While it lives, nothing is freed that was reachable when it was made.
    #[derive(Debug)]
    pub struct Guard(());

    /// Pins the current thread.
    #[must_use]
    pub fn pin() -> Guard {
        PINNED.set(PINNED.get() + 1);
        Guard(())
    }

    impl Guard {
        /// Runs `work` once every guard of now is gone.
        ///
        /// # Safety
        ///
        /// `work` is sound to run then, on whichever thread drops the last guard.
        pub unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
            let work: Box<dyn FnOnce() + '_> = Box::new(move || {
                work();
            });
            // SAFETY: the caller promises that the work may run later; this only forgets the
            // lifetime that would say so.
            let work =
                unsafe { std::mem::transmute::<Box<dyn FnOnce() + '_>, Box<dyn FnOnce()>>(work) };
            GARBAGE.with_borrow_mut(|garbage| garbage.push(work));
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            PINNED.set(PINNED.get() - 1);
            if PINNED.get() == 0 {
                for work in GARBAGE.take() {
                    work();
                }
            }
        }
    }

    /// Forgets what a failed model left behind.
    pub(crate) fn reset() {
        PINNED.set(0);
        std::mem::forget(GARBAGE.take());
    }
}

#[cfg(any(loom, shuttle))]
pub(crate) use stand_in::reset;
