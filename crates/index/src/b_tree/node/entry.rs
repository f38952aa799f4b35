//! Entries as they are in a leaf.

use crate::kit::{PackedValue, Spec, StoredKey, on_unwind};
use std::mem::needs_drop;
use tremula_sync::reclaim::Guard;

/// An entry as it is in a leaf: words that own nothing.
#[derive(Clone, Copy)]
pub(in crate::b_tree) struct Entry<S: Spec> {
    pub(in crate::b_tree) key: StoredKey<S>,
    pub(in crate::b_tree) value: PackedValue<S>,
}

impl<S: Spec> Entry<S> {
    /// Copies of key and value.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`] and [`PackedValue::with`].
    #[inline]
    pub(in crate::b_tree) unsafe fn to_pair(self) -> (S::Key, S::Value) {
        // SAFETY: passed on to the caller.
        unsafe { (self.key.to_key(), self.value.with(S::Value::clone)) }
    }

    /// Hands out key and value after they have been unlinked. If no other thread can be reading
    /// them, it hands out the originals. Otherwise it hands out copies, and retires the originals.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::retire`] and [`PackedValue::hand_out`].
    pub(in crate::b_tree) unsafe fn hand_out(self, guard: &Guard<'_>) -> (S::Key, S::Value) {
        let has_drop = needs_drop::<S::Key>() || needs_drop::<S::Value>();
        // SAFETY: passed on to the caller. What is retired lives as long as this guard.
        unsafe {
            if has_drop && guard.is_alone() {
                (self.key.take(), self.value.take())
            } else {
                self.retire(guard);
                self.to_pair()
            }
        }
    }

    /// Retires key and value.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::retire`] and [`PackedValue::retire`].
    pub(in crate::b_tree) unsafe fn retire(self, guard: &Guard<'_>) {
        // SAFETY: passed on to the caller.
        unsafe {
            self.key.retire(guard);
            self.value.retire(guard);
        }
    }

    /// Frees key and value.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::free`] and [`PackedValue::take`].
    pub(in crate::b_tree) unsafe fn free(self) {
        // SAFETY: passed on to the caller.
        let free_key = || unsafe { self.key.free() };
        // SAFETY: passed on to the caller.
        on_unwind(free_key, || drop(unsafe { self.value.take() }));
        free_key();
    }
}
