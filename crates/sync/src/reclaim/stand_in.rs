//! A collector for models: it keeps everything until it is dropped.
//!
//! A checker runs all the threads of a model on one thread of the system, where thread-locals would
//! mix them up, and the steps of the real algorithm would multiply the interleavings of every model
//! above. That memory is not freed too early is for the sanitizers, and for the algorithm's own
//! models, to see.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

/// Keeps what one structure has unlinked; here, until it is dropped.
#[derive(Default)]
pub struct Collector {
    garbage: RefCell<Vec<Box<dyn FnOnce()>>>,
    /// The guards that live.
    guards: Cell<usize>,
}

// SAFETY: all threads of a model are one thread of the system, and none is switched in the middle
// of a borrow.
unsafe impl Send for Collector {}
// SAFETY: as above.
unsafe impl Sync for Collector {}

/// A thread is inside a structure.
pub struct Guard<'c> {
    collector: &'c Collector,
    /// It stays on its thread.
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
    /// `work` is sound to run then.
    pub unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        let work: Box<dyn FnOnce() + '_> = Box::new(move || {
            work();
        });
        // SAFETY: the caller promises that the work may run later; this only forgets the lifetime
        // that would say so.
        let work =
            unsafe { std::mem::transmute::<Box<dyn FnOnce() + '_>, Box<dyn FnOnce()>>(work) };
        self.collector.garbage.borrow_mut().push(work);
    }

    /// Whether this is the only guard. loom lets a thread that pins later read an old link, since
    /// it does not see the fences of the real pin: there nobody is ever alone.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        cfg!(not(loom)) && self.collector.guards.get() == 1
    }
}

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
            // A model that failed: nothing can be said of what it has retired.
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
