//! A collector for models: it keeps everything until it is dropped.
//!
//! A checker runs all threads of a model on one system thread, where thread-locals would mix the
//! model's threads up; and the steps of the real algorithm would multiply the interleavings of
//! every model that uses it. The sanitizers and the algorithm's own models check that nothing is
//! freed too early.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

/// Keeps what one structure has unlinked until the collector is dropped.
#[derive(Default)]
pub struct Collector {
    garbage: RefCell<Vec<Box<dyn FnOnce()>>>,
    guards: Cell<usize>,
}

// SAFETY: all threads of a model run on one system thread, and a checker never switches threads in
// the middle of a borrow.
unsafe impl Send for Collector {}
// SAFETY: as for `Send`.
unsafe impl Sync for Collector {}

/// Shows that a thread is inside a structure.
pub struct Guard<'c> {
    collector: &'c Collector,
    /// The guard must stay on its thread.
    not_send: PhantomData<*const ()>,
}

impl Collector {
    /// A collector with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a guard.
    #[must_use]
    pub fn pin(&self) -> Guard<'_> {
        self.guards.set(self.guards.get() + 1);
        Guard {
            collector: self,
            not_send: PhantomData,
        }
    }
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Collector").finish_non_exhaustive()
    }
}

impl Guard<'_> {
    /// Runs `work` when the collector is dropped.
    ///
    /// # Safety
    ///
    /// It must be sound to run `work` then.
    pub unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        let work: Box<dyn FnOnce() + '_> = Box::new(move || {
            work();
        });
        // SAFETY: the caller promises that the work may run later; the transmute only erases the
        // lifetime that does not allow it.
        let work =
            unsafe { std::mem::transmute::<Box<dyn FnOnce() + '_>, Box<dyn FnOnce()>>(work) };
        self.collector.garbage.borrow_mut().push(work);
    }

    /// Whether this is the only guard. Always false under loom, which does not see the fences of
    /// the real pin and lets a thread that pins later read an old link.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        cfg!(not(loom)) && self.collector.guards.get() == 1
    }
}

/// There are no turns here.
pub const fn turn_next() {}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.collector.guards.set(self.collector.guards.get() - 1);
    }
}

impl std::fmt::Debug for Guard<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if crate::thread::panicking() {
            // The model has failed: it may not be sound to run what it has retired.
            std::mem::forget(self.garbage.take());
            return;
        }
        loop {
            let garbage = self.garbage.take();
            if garbage.is_empty() {
                return;
            }
            for work in garbage {
                work();
            }
        }
    }
}
