//! Freeing what was unlinked, and the rules of ownership.
//!
//! The only user code that runs here is `Drop`: neither an order nor a hash decides what is freed.
//! A *cell* is an entry of the base node, or one that a delta has inserted; it has a key of its
//! own. A delta that updates or deletes refers to the cell that was alive below it, with its value:
//! `View::find` ensures both. So at most one delta replaces a value, and its writer frees the value
//! or hands it out; at most one delta deletes a key, which is freed with its chain. In an inner
//! node cells are identified by the ids of the children.
//!
//! A value's `Drop` may panic. Everything else is freed nevertheless, and then the first panic
//! resumes.

use super::base::{Base, BaseRef, free_base};
use super::node::{Change, Delta, Entry, View};
use super::reclaim::Guard;
use super::steps::MergeDelta;
use super::word::{Kind, Word};
use std::alloc::{Layout, dealloc};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use tremula_index::Storable;
use tremula_index::kit::{OwnedKey, OwnedValue, Spec, StoredKey};

/// The first panic of several drops. The others are leaked.
#[derive(Default)]
pub(super) struct FirstPanic(Option<Box<dyn Any + Send>>);

impl FirstPanic {
    /// Runs users' `Drop`; keeps its panic.
    #[inline]
    pub(super) fn catch(&mut self, work: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            match &mut self.0 {
                first @ None => *first = Some(panic),
                // What the panic holds may panic when it is dropped.
                Some(_) => std::mem::forget(panic),
            }
        }
    }

    /// Leaks the panic.
    pub(super) fn forget(self) {
        // What the panic holds may panic when it is dropped.
        std::mem::forget(self.0);
    }

    /// Resumes the panic that was kept, unless the thread is panicking already.
    #[inline]
    pub(super) fn resume(self) {
        let Some(panic) = self.0 else {
            return;
        };
        if tremula_sync::thread::panicking() {
            std::mem::forget(panic);
        } else {
            resume_unwind(panic);
        }
    }

    /// # Safety
    ///
    /// The caller owns the value, and no thread uses it ever again.
    unsafe fn free_value<V: Storable>(&mut self, word: *mut ()) {
        // SAFETY: passed on to the caller.
        let value = unsafe { OwnedValue::<V>::of_word(word) };
        self.catch(|| drop(value));
    }

    /// # Safety
    ///
    /// The caller owns the key, and no thread uses it ever again.
    unsafe fn free_key<S: Spec>(&mut self, key: StoredKey<S>) {
        if !S::HEAD_IS_KEY {
            // SAFETY: passed on to the caller.
            let key = unsafe { OwnedKey::of_stored(key) };
            self.catch(|| drop(key));
        }
    }
}

/// Frees a chain: base node, deltas, and the keys that deltas have deleted. Neither the entries
/// that are left nor the fences are freed. The values that deltas replaced belong to the writers of
/// these deltas.
///
/// # Safety
///
/// The word leads to a base node or delta, the chain was unlinked, and no other thread has it;
/// another node has the entries that were left.
pub(super) unsafe fn free_chain<S: Spec>(word: Word) {
    let mut panic = FirstPanic::default();
    // SAFETY: passed on to the caller.
    unsafe { free_chain_with::<S>(word, &mut panic) };
    panic.resume();
}

/// # Safety
///
/// As for [`free_chain`].
unsafe fn free_chain_with<S: Spec>(word: Word, panic: &mut FirstPanic) {
    // SAFETY: the caller alone has the chain.
    unsafe {
        if word.kind() == Kind::Base {
            let base = BaseRef::of(NonNull::new_unchecked(word.address::<Base<S>>()));
            for sub_chain in base.sub_chains() {
                free_deltas::<S>(sub_chain.load(), panic);
            }
        }
        let base = free_deltas::<S>(word, panic);
        free_base(NonNull::new_unchecked(base.address::<Base<S>>()));
    }
}

/// Frees the deltas of a chain, and the keys that they have deleted; returns the word of the base
/// node.
///
/// # Safety
///
/// As for [`free_chain`].
unsafe fn free_deltas<S: Spec>(mut word: Word, panic: &mut FirstPanic) -> Word {
    // SAFETY: passed on to the caller. At most one delta deletes a key: see the module.
    unsafe {
        while word.kind() == Kind::Delta {
            let at = word.address::<Delta<S>>();
            // Nothing below is left to free, but the base node. Most chains of words end here.
            if !(*at).owns {
                return Word::base((*at).base);
            }
            let (change, key) = ((*at).change, (*at).key);
            let (next, on_heap) = ((*at).next, (*at).on_heap);
            if on_heap {
                dealloc(at.cast(), Layout::new::<Delta<S>>());
            }
            if change == Change::Delete {
                panic.free_key(key);
            }
            word = next;
        }
    }
    word
}

/// Frees a node with everything in it.
///
/// # Safety
///
/// The word is the head of a linked node, and no other thread has the tree, or uses it ever again.
pub(super) unsafe fn free_node<S: Spec>(mut word: Word, guard: &Guard, panic: &mut FirstPanic) {
    // SAFETY: the caller alone has it, and each of its cells once.
    unsafe {
        let step = (word.kind() == Kind::MergeDelta).then(|| MergeDelta::of_word(word));
        if let Some(step) = &step {
            word = step.next;
        }
        let Some(view) = View::<S>::of(word, guard) else {
            return;
        };
        if let Some(low) = view.base.low() {
            panic.free_key(low);
        }
        if let Some(high) = view.high() {
            panic.free_key(high);
        }
        for entry in view.cells() {
            panic.free_key(entry.key);
            if view.base.level == 0 {
                panic.free_value::<S::Value>(entry.value);
            }
        }
        free_chain_with::<S>(word, panic);
    }
}

/// Entries that no node has any more.
pub(super) struct Removed<S: Spec>(pub(super) Vec<Entry<S>>);

impl<S: Spec> Removed<S> {
    /// # Safety
    ///
    /// No other thread has the entries.
    pub(super) unsafe fn free(self) {
        let mut panic = FirstPanic::default();
        for entry in self.0 {
            // SAFETY: the caller's promise.
            unsafe {
                panic.free_key(entry.key);
                panic.free_value::<S::Value>(entry.value);
            }
        }
        panic.resume();
    }
}
