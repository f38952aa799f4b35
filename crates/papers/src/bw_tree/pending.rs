//! Deleted keys that wait for their leaf to be consolidated.
//!
//! A search compares with a deleted key on its way through the chain, so the key lives as long as
//! the chain. If no thread wrote to that leaf any more, the key would live as long as the tree. So
//! writers note leaves with deleted keys, if keys have a `Drop`, and a later operation on the tree,
//! even a read, consolidates those leaves. Most have been consolidated by then.

use super::Tree;
use super::descend::Place;
use super::free::FirstPanic;
use super::node::{Change, View};
use super::reclaim::Guard;
use super::word::Word;
use std::cell::Cell;
use std::mem::needs_drop;
use std::ops::Deref;
use tremula_index::kit::Spec;
use tremula_sync::atomic::{AtomicBool, Ordering};
use tremula_sync::{CachePadded, Mutex, thread_index};

/// While there are noted leaves, a thread consolidates them once in this many of its operations, on
/// average: a fraction of the number of operations within which a key should be dropped.
const OPERATIONS: u32 = 512;

/// The lists of noted leaves: few of the threads that delete keys at once share one.
const LISTS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

tremula_sync::system::thread_local! {
    /// The operations of this thread until it looks, and the state of its random numbers: with
    /// these, no pattern of operations on several trees leaves one of them out.
    static UNTIL: Cell<(u32, u32)> = const { Cell::new((1, 1)) };
}

/// The leaves of a tree that have deleted keys.
#[derive(Default)]
pub(super) struct Pending {
    /// Whether there are any. Where many threads delete keys, each of them writes it every few
    /// microseconds, so a thread reads it only when its count is over.
    any: AtomicBool,
    /// Their ids at the time when they were noted, in a list for each thread.
    leaves: [CachePadded<Mutex<Vec<usize>>>; LISTS],
}

impl Pending {
    fn note(&self, leaf: usize) {
        self.leaves[thread_index() % LISTS].lock().push(leaf);
        // Relaxed, here and below: a thread that misses it sees it the next time.
        if !self.any.load(Ordering::Relaxed) {
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this operation is to consolidate them.
    #[inline]
    fn is_due(&self) -> bool {
        // A checker's threads are all one thread of the system, which share the count.
        !cfg!(any(loom, shuttle)) && count_down() && self.any.load(Ordering::Relaxed)
    }

    fn take(&self) -> Vec<usize> {
        // In this order: a leaf that is noted in between is taken, or sets the flag again.
        self.any.store(false, Ordering::Relaxed);
        let mut taken = Vec::new();
        for leaves in &self.leaves {
            taken.append(&mut leaves.lock());
        }
        taken
    }
}

/// Counts an operation of this thread; returns whether it is to look.
fn count_down() -> bool {
    let (left, random) = UNTIL.get();
    if left > 1 {
        UNTIL.set((left - 1, random));
        return false;
    }
    // Weyl's sequence.
    let random = random.wrapping_add(0x9E37_79B9);
    UNTIL.set((1 + (random >> 16) % (2 * OPERATIONS - 1), random));
    true
}

/// An operation on a tree, pinned. When it ends, it may consolidate the leaves that were noted.
pub(super) struct Pinned<'t, S: Spec> {
    tree: &'t Tree<S>,
    guard: Guard<'t>,
}

impl<'t, S: Spec> Deref for Pinned<'t, S> {
    type Target = Guard<'t>;

    #[inline]
    fn deref(&self) -> &Guard<'t> {
        &self.guard
    }
}

impl<S: Spec> Drop for Pinned<'_, S> {
    #[inline]
    fn drop(&mut self) {
        let tree = self.tree;
        if Tree::<S>::DROPS_KEYS && tree.pending.is_due() && !tremula_sync::thread::panicking() {
            tree.consolidate_noted(&self.guard);
        }
    }
}

impl<S: Spec> Tree<S> {
    /// Whether user code can observe when a key is dropped.
    const DROPS_KEYS: bool = !S::HEAD_IS_KEY && needs_drop::<S::Key>();

    #[inline]
    pub(super) fn pin(&self) -> Pinned<'_, S> {
        Pinned {
            tree: self,
            guard: self.reclamation.pin(),
        }
    }

    /// Notes a leaf whose newest delta has deleted a key, unless a delta below that has done so
    /// already. `word` is the leaf's word.
    #[inline]
    pub(super) fn note_deletion(&self, id: usize, word: Word, guard: &Guard) {
        if Self::DROPS_KEYS {
            // SAFETY: the word was published during this pin.
            let view = unsafe { View::<S>::of(word, guard) };
            let is_noted = view.is_some_and(|view| {
                let below = view.deltas().skip(1);
                { below }.any(|delta| delta.change == Change::Delete)
            });
            if !is_noted {
                self.pending.note(id);
            }
        }
    }

    /// Consolidates the leaves that were noted, if they still have deleted keys. If a comparison of
    /// keys panics, the operation that ends is not affected: that leaf is left as it is.
    #[cold]
    #[inline(never)]
    fn consolidate_noted(&self, guard: &Guard) {
        let mut panics = FirstPanic::default();
        for leaf in self.pending.take() {
            panics.catch(|| self.consolidate_noted_leaf(leaf, guard));
        }
        panics.forget();
    }

    fn consolidate_noted_leaf(&self, leaf: usize, guard: &Guard) {
        let Some(place) = self.has_deleted_keys(leaf, guard) else {
            return;
        };
        self.help_merge(place.word, guard);
        self.consolidate(&place, guard);
        if self.has_deleted_keys(leaf, guard).is_some() {
            // Another thread holds it, or it was split by a delta.
            self.pending.note(leaf);
        }
    }

    /// The leaf with this id, if there is one and it has deleted keys.
    fn has_deleted_keys<'g>(&self, id: usize, guard: &'g Guard) -> Option<Place<'g, S>> {
        let word = self.table.peek(id)?;
        // SAFETY: the word was read during the pin; whatever is in the table is freed through the
        // epoch.
        let view = unsafe { View::of(word, guard) }?;
        let has_deleted =
            view.base.level == 0 && (view.all_deltas()).any(|delta| delta.change == Change::Delete);
        has_deleted.then_some(Place { id, word, view })
    }
}
