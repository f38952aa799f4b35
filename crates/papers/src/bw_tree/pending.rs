//! Deleted keys that wait for their leaf to be consolidated.
//!
//! A key that a delta has deleted is compared with on the way through the chain: it lives as long as
//! the chain. If nobody wrote to that leaf any more, it would live as long as the tree. So leaves
//! with deleted keys are noted, where dropping a key means anything, and operations on the tree, reads
//! among them, consolidate those leaves a while later. Most have been by then.

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
use tremula_sync::Mutex;
use tremula_sync::atomic::{AtomicBool, Ordering};

/// On average, a thread consolidates the leaves that were noted once in so many of its operations,
/// while there are any: a fraction of the operations within which a key is to be dropped.
const OPERATIONS: u32 = 512;

tremula_sync::system::thread_local! {
    /// Operations of this thread until it looks, and the state of its random numbers: so that no
    /// pattern of operations on several trees leaves one of them out.
    static UNTIL: Cell<(u32, u32)> = const { Cell::new((1, 1)) };
}

/// The leaves of a tree that have deleted keys.
#[derive(Default)]
pub(super) struct Pending {
    /// Whether there are any. It is hardly ever written, so that looking at it costs little.
    any: AtomicBool,
    /// Their ids, when they were noted.
    leaves: Mutex<Vec<usize>>,
}

impl Pending {
    fn note(&self, leaf: usize) {
        self.leaves.lock().push(leaf);
        // Relaxed, here and below: a thread that misses it sees it the next time.
        if !self.any.load(Ordering::Relaxed) {
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it is this thread's turn to see to them.
    #[inline]
    fn is_due(&self) -> bool {
        // A checker's threads are all one thread of the system.
        !cfg!(any(loom, shuttle)) && self.any.load(Ordering::Relaxed) && count_down()
    }

    fn take(&self) -> Vec<usize> {
        // In this order: what is noted in between is taken, or sets it again.
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.leaves.lock())
    }
}

/// Whether the thread's operations are over until it looks.
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

/// An operation on a tree: its pin. When it ends, and it is time, deleted keys are seen to.
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
            tree.see_to_deleted_keys(&self.guard);
        }
    }
}

impl<S: Spec> Tree<S> {
    /// Whether anybody can tell when a key is dropped.
    const DROPS_KEYS: bool = !S::HEAD_IS_KEY && needs_drop::<S::Key>();

    /// Begins an operation.
    #[inline]
    pub(super) fn pin(&self) -> Pinned<'_, S> {
        Pinned {
            tree: self,
            guard: self.reclamation.pin(),
        }
    }

    /// Notes a leaf from which a delta, its newest, has deleted a key, unless one below that has been
    /// noted. The word is the leaf's.
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

    /// Consolidates the leaves that were noted, if they have deleted keys still. If keys panic when
    /// they are compared, that is nothing to the operation that ends: their leaf is left as it is.
    #[cold]
    #[inline(never)]
    fn see_to_deleted_keys(&self, guard: &Guard) {
        let mut panics = FirstPanic::default();
        for leaf in self.pending.take() {
            panics.catch(|| self.see_to_leaf(leaf, guard));
        }
        panics.forget();
    }

    fn see_to_leaf(&self, leaf: usize, guard: &Guard) {
        let Some(place) = self.has_deleted_keys(leaf, guard) else {
            return;
        };
        self.make_way(place.word, guard);
        self.consolidate(&place, guard);
        if self.has_deleted_keys(leaf, guard).is_some() {
            // Somebody holds it, or it was split by a delta.
            self.pending.note(leaf);
        }
    }

    /// A leaf with deleted keys, if this is the id of one.
    fn has_deleted_keys<'g>(&self, id: usize, guard: &'g Guard) -> Option<Place<'g, S>> {
        let word = self.table.peek(id)?;
        // SAFETY: the word was read during the pin; whatever is in the table is freed by the epoch.
        let view = unsafe { View::of(word, guard) }?;
        let has_deleted =
            view.base.level == 0 && (view.all_deltas()).any(|delta| delta.change == Change::Delete);
        has_deleted.then_some(Place { id, word, view })
    }
}
