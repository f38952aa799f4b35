//! What a run has once, such as its registry of threads: made when it is first needed, and dropped
//! when the run has ended.

use std::any::TypeId;
use std::collections::HashMap;

/// What a run has once.
pub(crate) trait OfTheRun: Send + Sync + 'static {
    /// Whether something that may outlive the run refers to it, such as a guard.
    fn is_in_use(&self) -> bool;
}

/// The values of a run, and in which order they were made.
#[derive(Default)]
pub(super) struct Once(HashMap<TypeId, (usize, *mut dyn OfTheRun)>);

impl Once {
    pub(super) fn get(&self, key: TypeId) -> Option<*mut dyn OfTheRun> {
        self.0.get(&key).map(|(_, value)| *value)
    }

    /// Keeps a value that comes from a box; returns it, or the one that the run has already.
    pub(super) fn keep(&mut self, key: TypeId, value: *mut dyn OfTheRun) -> *mut dyn OfTheRun {
        let number = self.0.len();
        self.0.entry(key).or_insert((number, value)).1
    }

    /// Drops the values, the last one first. If something refers to one of them, all stay.
    ///
    /// # Safety
    ///
    /// No thread of the run goes on.
    pub(super) unsafe fn end(self) {
        let mut all: Vec<_> = self.0.into_values().collect();
        // SAFETY: they come from boxes, and no thread uses them.
        if all.iter().any(|(_, value)| unsafe { &**value }.is_in_use()) {
            return;
        }
        all.sort_by_key(|(number, _)| *number);
        for (_, value) in all.into_iter().rev() {
            // SAFETY: as before; nothing refers to it.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}
