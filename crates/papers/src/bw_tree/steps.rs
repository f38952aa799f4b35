//! Merges by deltas, as the paper has them: in steps, each of which whoever meets it helps to take.
//!
//! ```text
//!              the word of      parent           left                right
//!   1. abort delta              abort -> P       L                   R
//!   2. merge delta              abort -> P       merge -> L          R
//!   3. remove delta             abort -> P       merge -> L          remove -> R
//!   4. one node                 abort -> P       L and R             remove -> R
//!   5. separator deleted        P'               L and R             (nothing)
//! ```
//!
//! Each step is one compare-and-swap. The deltas are the heads of their chains: nothing is prepended to
//! them, and so they tell every writer that there is a merge to be finished first.
//!
//! - Under the *abort delta* the parent's separators stay as they are: so it is not split, nor merged, nor
//!   told of splits below it. By invariant 4 the two nodes stay neighbours: if the left one is split
//!   meanwhile, a half of it that the parent does not know is the left one now. It is found by the
//!   links.
//! - Under the *merge delta* the left node is still read, but not written to.
//! - Under the *remove delta* the right node is neither read nor written to: from step 4 on what is
//!   there may be out of date. Whoever comes to it takes the steps that are left, and descends anew.
//!
//! The paper has the remove delta first. Here the merge delta is, since nodes may be held: who wants to put
//! one of these two deltas on a node that is held cannot, and the merge stays where it is. So it is only
//! writers of the left node who may wait for one who holds the right one: *whoever meets a remove delta can
//! take the steps that are left*. And who holds leaves and waits for a leaf to the right of them, waits
//! for nobody who waits for him: a merge delta makes him wait for one who holds a leaf that is yet further
//! to the right.
//!
//! # Why it happens once
//!
//! A helper may be slow, and do what others have done long ago. None of that has an effect: each exchange
//! expects a word that was read while the merge was not yet as far.
//!
//! - The abort delta is there from the first step to the last. While it is, parent and left node stay
//!   in use, for all that would take one of them away begins with the parent's word. Whoever finds it gone
//!   is done.
//! - No node leads to the right one but the left node until step 4, and the parent until step 5. So who meets
//!   any of the deltas is pinned since before step 5, when all three ids were in use: their words are there.
//! - The merge delta is put on a node that leads to the right one, which after step 4 none ever does again.
//!   The remove delta is put on a right node that had none. What has been replaced does not come back
//!   while the helper is pinned (invariant 1): if an exchange succeeds, its step had not been taken.
//! - Who finds a remove delta, and then on the way from the left node to what is behind the right one no
//!   merge delta, knows that step 4 has been taken.
//!
//! User code (comparisons and clones of keys) runs while steps 4 and 5 are prepared. If it panics the merge
//! stays as it is, for the next one to help.

use super::Tree;
use super::base::{LINE, NO_NODE};
use super::descend::Place;
use super::merge::Pair;
use super::node::View;
use super::reclaim::Guard;
use super::word::{Kind, Word};
use std::ptr::{self, NonNull};
use tremula_index::kit::Spec;
use tremula_sync::Arc;
use tremula_sync::atomic::{AtomicBool, Ordering};

/// A merge that is under way.
struct Merge {
    parent: usize,
    /// The child in front of the right one. If it has been split since, the left node is one of its
    /// halves.
    left: usize,
    right: usize,
    /// Whether what the right node has belongs to the left one already.
    is_moved: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Abort,
    Merge,
    Remove,
}

/// One of the deltas of a merge.
#[repr(align(64))]
pub(super) struct MergeDelta {
    phase: Phase,
    of: Arc<Merge>,
    /// The chain of the node.
    pub(super) next: Word,
}

const _: () = assert!(align_of::<MergeDelta>() == LINE);

impl MergeDelta {
    /// Whether the node can be read as it is below.
    pub(super) fn can_be_read(&self) -> bool {
        self.phase != Phase::Remove
    }

    /// Whether the entries of the node belong to another one now.
    pub(super) fn is_empty(&self) -> bool {
        // Relaxed: who asks has the tree alone.
        self.phase == Phase::Remove && self.of.is_moved.load(Ordering::Relaxed)
    }

    /// # Safety
    ///
    /// The word leads to a step, and nobody else has that, or uses it ever again.
    pub(super) unsafe fn of_word(word: Word) -> Box<Self> {
        // SAFETY: it came from a box.
        unsafe { Box::from_raw(word.address()) }
    }
}

/// A step of a merge, and what is below it.
struct Marked<'g, S: Spec> {
    word: Word,
    below: Place<'g, S>,
}

/// What there is of a merge's left node.
enum Left<'g, S: Spec> {
    /// It leads to the right one, and has no merge delta.
    Open(Place<'g, S>),
    /// It has.
    Marked(Marked<'g, S>),
    /// No node leads to the right one.
    Over,
}

impl<S: Spec> Tree<S> {
    /// Merges two children of a node, if they fit into one; whether it did. Leaves the merge to
    /// others if one of the two is held.
    pub(super) fn merge_by_steps(
        &self,
        parent: &Place<'_, S>,
        pair: &Pair<S>,
        guard: &Guard,
    ) -> bool {
        if !parent.word.is_open() {
            self.make_way(parent.word, guard);
            return false;
        }
        // SAFETY: they were in use when the word of their parent was read, during this pin.
        let nodes = unsafe {
            let left = self.visit_whole(pair.left, guard);
            left.zip(self.visit_whole(pair.right, guard))
        };
        let may_merge = nodes.is_some_and(|(left, right)| {
            left.word.is_open() && right.word.is_open() && self.may_merge(&left, &right)
        });
        let merge = Arc::new(Merge {
            parent: parent.id,
            left: pair.left,
            right: pair.right,
            is_moved: AtomicBool::new(false),
        });
        may_merge && self.mark(Phase::Abort, &merge, parent) && self.help(&merge, guard)
    }

    /// Finishes the merge that a word is a step of, if it is one; `false` if somebody holds one of
    /// the nodes. The word was read during the pin.
    #[cold]
    #[inline(never)]
    pub(super) fn make_way(&self, word: Word, guard: &Guard) -> bool {
        if word.kind() != Kind::MergeDelta {
            return true;
        }
        // SAFETY: steps are retired when they have been unlinked.
        let step = unsafe { &*word.address::<MergeDelta>() };
        self.help(&step.of, guard)
    }

    /// Takes the steps that are left of a merge of which the caller has met one; `false` if
    /// somebody holds one of the nodes. Else lock-free.
    fn help(&self, merge: &Arc<Merge>, guard: &Guard) -> bool {
        while let Some(abort) = self.step_on(merge.parent, merge, guard) {
            // It is looked for before the merge delta is, which came first.
            let remove = self.step_on(merge.right, merge, guard);
            let can_go_on = match (self.left_of(merge, remove.as_ref(), guard), remove) {
                (Left::Open(left), _) => self.mark_below(Phase::Merge, merge, &left, guard),
                (Left::Marked(_), None) => self
                    .glance(merge.right, guard)
                    .is_none_or(|right| self.mark_below(Phase::Remove, merge, &right, guard)),
                (Left::Marked(left), Some(right)) => {
                    self.unite(merge, &abort, &left, &right, guard);
                    true
                }
                (Left::Over, Some(right)) => {
                    self.delete_separator(merge, &abort, &right, guard);
                    true
                }
                (Left::Over, None) => true,
            };
            if !can_go_on {
                return false;
            }
        }
        true
    }

    /// A node of a merge as it is now, whatever becomes of it; `None` if it cannot be read.
    fn glance<'g>(&self, id: usize, guard: &'g Guard) -> Option<Place<'g, S>> {
        let word = self.table.load(id);
        // SAFETY: the word was read during the pin, and ids are not used again before its end.
        let view = unsafe { View::of(word, guard) }?;
        Some(Place { id, word, view })
    }

    /// The step of a merge that a node has now.
    fn step_on<'g>(&self, id: usize, merge: &Merge, guard: &'g Guard) -> Option<Marked<'g, S>> {
        Self::step_of(merge, id, self.table.load(id), guard)
    }

    /// The step that a word of a node leads to, if it is one of this merge.
    fn step_of<'g>(
        merge: &Merge,
        id: usize,
        word: Word,
        guard: &'g Guard,
    ) -> Option<Marked<'g, S>> {
        if word.kind() != Kind::MergeDelta {
            return None;
        }
        // SAFETY: the word was read during the pin; steps, and what is below them, are retired when
        // they have been unlinked.
        unsafe {
            let step = &*word.address::<MergeDelta>();
            // The merge lives as long as any of its steps, of which the caller has met one.
            if !ptr::eq(&raw const *step.of, merge) {
                return None;
            }
            let below = Place {
                id,
                word: step.next,
                view: View::of(step.next, guard)?,
            };
            Some(Marked { word, below })
        }
    }

    /// Looks for the left node of a merge, which the links lead to. The right one's remove delta, if it
    /// had it, was read before.
    fn left_of<'g>(
        &self,
        merge: &Merge,
        remove: Option<&Marked<'_, S>>,
        guard: &'g Guard,
    ) -> Left<'g, S> {
        let end = remove.map(|remove| remove.below.view.right());
        let mut id = merge.left;
        while id != NO_NODE && Some(id) != end {
            let Some(place) = self.glance(id, guard) else {
                break;
            };
            if let Some(found) = Self::step_of(merge, id, place.word, guard) {
                return Left::Marked(found);
            }
            id = place.view.right();
            if id == merge.right {
                return Left::Open(place);
            }
            if remove.is_none() && self.step_on(merge.right, merge, guard).is_some() {
                // Others are faster. This has perhaps come too far.
                break;
            }
        }
        Left::Over
    }

    /// Puts a delta of a merge on one of its nodes, unless somebody changes that; whether it could.
    fn mark(&self, phase: Phase, merge: &Arc<Merge>, place: &Place<'_, S>) -> bool {
        let step = Box::leak(Box::new(MergeDelta {
            phase,
            of: Arc::clone(merge),
            next: place.word,
        }));
        let word = Word::merge_delta(NonNull::from(step));
        let is_put = self.table.exchange(place.id, place.word, word);
        if !is_put {
            // SAFETY: nobody has seen it.
            drop(unsafe { MergeDelta::of_word(word) });
        }
        is_put
    }

    /// Puts a delta of a merge on one of the two nodes, or makes it ready for that; `false` if
    /// somebody holds it.
    fn mark_below(
        &self,
        phase: Phase,
        merge: &Arc<Merge>,
        place: &Place<'_, S>,
        guard: &Guard,
    ) -> bool {
        if place.word.kind() == Kind::MergeDelta {
            // Of two nodes below this one.
            return self.make_way(place.word, guard);
        }
        if !place.word.is_open() {
            return false;
        }
        if place.view.base.is_spread() {
            self.make_whole(place, guard);
        } else {
            self.mark(phase, merge, place);
        }
        true
    }

    /// Gives the left node what both have, and the right one's fence and link.
    fn unite(
        &self,
        merge: &Merge,
        abort: &Marked<'_, S>,
        left: &Marked<'_, S>,
        right: &Marked<'_, S>,
        guard: &Guard,
    ) {
        let separator = || Self::pair_of(merge, abort).separator;
        let merged = self.merged(&left.below.view, &right.below.view, separator);
        if !(self.table).exchange(left.below.id, left.word, merged.word()) {
            return;
        }
        merged.give();
        // Relaxed: see `is_empty`.
        merge.is_moved.store(true, Ordering::Relaxed);
        // SAFETY: chain and delta have just been unlinked; the new base node has what is left.
        unsafe {
            self.retire_left(&left.below, guard);
            Self::retire_step(left.word, guard);
        }
    }

    /// Takes the separator between the two from the parent, and the abort delta with it. Nothing leads
    /// to the right node then.
    fn delete_separator(
        &self,
        merge: &Merge,
        abort: &Marked<'_, S>,
        right: &Marked<'_, S>,
        guard: &Guard,
    ) {
        let pair = Self::pair_of(merge, abort);
        let shorter = self.without(&abort.below, &pair);
        if !(self.table).exchange(abort.below.id, abort.word, shorter.word()) {
            return;
        }
        // Whoever comes before this finds that the abort delta is gone.
        self.table.store(right.below.id, Word::REMOVED);
        let keeps_chain = shorter.give();
        // SAFETY: chains and deltas have just been unlinked, by this thread alone. The parent has what
        // is left of it, and the left node what was left of the right one.
        unsafe {
            self.retire_right(&right.below, guard);
            if !keeps_chain {
                self.retire_parent(&abort.below, pair.separator, guard);
            }
            Self::retire_step(abort.word, guard);
            Self::retire_step(right.word, guard);
        }
        self.counters.merges.add(1);
    }

    /// The nodes of a merge as their parent has them, under the abort delta.
    fn pair_of(merge: &Merge, abort: &Marked<'_, S>) -> Pair<S> {
        match abort.below.view.pair(merge.right) {
            Some(pair) => pair,
            None => unreachable!("a separator stays where it is under an abort delta"),
        }
    }

    /// Frees a step once nobody can be looking at it.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    unsafe fn retire_step(word: Word, guard: &Guard) {
        // SAFETY: passed on to the caller; a step may be dropped by any thread at any time.
        unsafe { guard.defer_unchecked(move || drop(MergeDelta::of_word(word))) };
    }
}
