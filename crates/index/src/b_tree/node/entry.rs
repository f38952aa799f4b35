//! Entries as they are in a leaf.

use super::{LeafKey, LooseKey};
use crate::kit::{PackedValue, Spec, on_unwind};
use std::mem::needs_drop;
use tremula_sync::reclaim::Guard;

/// An entry as it is in a leaf: words that own nothing.
#[derive(Clone, Copy)]
pub(in crate::b_tree) struct Entry<S: Spec> {
    pub(in crate::b_tree) key: LeafKey<S>,
    pub(in crate::b_tree) value: PackedValue<S>,
}

/// What has to be freed of an entry that is in no leaf any more.
#[derive(Clone, Copy)]
pub(in crate::b_tree) struct LooseEntry<S: Spec> {
    pub(in crate::b_tree) key: LooseKey<S>,
    pub(in crate::b_tree) value: PackedValue<S>,
}

impl<S: Spec> Entry<S> {
    /// Copies of key and value.
    ///
    /// # Safety
    ///
    /// As for [`LeafKey::with`] and [`PackedValue::with`].
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
    /// As for [`LooseKey::retire`] and [`PackedValue::hand_out`].
    pub(in crate::b_tree) unsafe fn hand_out(self, guard: &Guard<'_>) -> (S::Key, S::Value) {
        let has_drop = needs_drop::<S::Key>() || needs_drop::<S::Value>();
        // SAFETY: passed on to the caller. What is retired lives as long as this guard.
        unsafe {
            if S::is_text() {
                // The key is a copy in any case.
                let key = self.key.to_key();
                self.key.loose().retire(guard);
                (key, self.value.hand_out(guard))
            } else if has_drop && guard.is_alone() {
                (self.key.stored().take(), self.value.take())
            } else {
                self.loose().retire(guard);
                self.to_pair()
            }
        }
    }

    /// What has to be freed of the entry when it has been removed.
    ///
    /// # Safety
    ///
    /// As for [`LeafKey::with`].
    #[inline]
    pub(in crate::b_tree) unsafe fn loose(self) -> LooseEntry<S> {
        LooseEntry {
            // SAFETY: passed on to the caller.
            key: unsafe { self.key.loose() },
            value: self.value,
        }
    }
}

impl<S: Spec> LooseEntry<S> {
    /// Retires key and value.
    ///
    /// # Safety
    ///
    /// As for [`LooseKey::retire`] and [`PackedValue::retire`].
    unsafe fn retire(self, guard: &Guard<'_>) {
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
    /// As for [`LooseKey::free`] and [`PackedValue::take`].
    pub(in crate::b_tree) unsafe fn free(self) {
        // SAFETY: passed on to the caller.
        let free_key = || unsafe { self.key.free() };
        // SAFETY: passed on to the caller.
        on_unwind(free_key, || drop(unsafe { self.value.take() }));
        free_key();
    }
}
