//! Merges by deltas, as in the paper: in steps, which any thread that meets the merge helps to
//! take.
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
//! Each step is one compare-and-swap. The merge deltas are the heads of their chains, and no delta
//! is prepended to them. So every writer sees that there is a merge to finish first.
//!
//! - Under the *abort delta* the parent's separators do not change: the parent is not split or
//!   merged, and no splits below it are posted. By invariant 4 the two nodes stay neighbours. If
//!   the left one is split meanwhile, the half next to the right node, which the parent does not
//!   know, is the left node now. Helpers find it by the links.
//! - Under the *merge delta* the left node is still read, but not written to.
//! - Under the *remove delta* the right node is neither read nor written to: from step 4 on its
//!   contents may be out of date. A thread that comes to it takes the steps that are left, and
//!   descends anew.
//!
//! In the paper the remove delta comes first. Here the merge delta does, because nodes may be held:
//! a thread that wants to put one of these two deltas on a held node cannot, and the merge stops
//! there. So only writers of the left node may have to wait for a thread that holds the right one:
//! *a thread that meets a remove delta can take the steps that are left*. A thread that holds
//! leaves and waits for a leaf to their right never waits for a thread that waits for it: a merge
//! delta makes it wait only for the holder of a leaf that is still further to the right.
//!
//! # Why it happens once
//!
//! A helper may be slow, and try what others have done long ago. That has no effect: each exchange
//! expects a word that was read when the merge had not yet come as far.
//!
//! - The abort delta is there from the first step to the last. Meanwhile the parent and the left
//!   node stay in use, because all that would remove one of them begins with the parent's word. A
//!   thread that finds the abort delta gone is done.
//! - Two nodes lead to the right one: the left node until step 4, and the parent until step 5. So a
//!   thread that meets any of the deltas has been pinned since before step 5, when all three ids
//!   were in use: their words exist.
//! - The merge delta is put on a node that leads to the right one; after step 4 no node ever does
//!   so again. The remove delta is put on a right node that had none. A replaced word does not come
//!   back while the helper is pinned (invariant 1). So if an exchange succeeds, its step had not
//!   been taken.
//! - A thread that finds a remove delta, and then no merge delta on the way from the left node to
//!   the right neighbour of the right one, knows that step 4 has been taken.
//!
//! User code (comparisons and clones of keys) runs while step 4 is prepared. If it panics, the
//! merge stays as it is, for the next thread to help. From step 4 to step 5 none runs, so the
//! thread that has taken the one comes to the other: in a tree that is dropped, no entry is in two
//! nodes.

use super::Tree;
use super::base::{LINE, NO_NODE};
use super::descend::Place;
use super::invariants::check_merged;
use super::merge::Pair;
use super::node::View;
use super::reclaim::Guard;
use super::word::{Kind, Word};
use std::ptr::{self, NonNull};
use tremula_index::kit::Spec;
use tremula_sync::Arc;

struct Merge {
    parent: usize,
    /// The child in front of the right one. If it has been split since, its last half is the left
    /// node.
    left: usize,
    right: usize,
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
    /// The node's chain.
    pub(super) next: Word,
}

const _: () = assert!(align_of::<MergeDelta>() == LINE);

impl MergeDelta {
    /// Whether the node can be read through the chain below.
    pub(super) fn can_be_read(&self) -> bool {
        self.phase != Phase::Remove
    }

    /// # Safety
    ///
    /// The word leads to a merge delta, and no other thread has it, or uses it ever again.
    pub(super) unsafe fn of_word(word: Word) -> Box<Self> {
        // SAFETY: it came from a box.
        unsafe { Box::from_raw(word.address()) }
    }
}

/// A merge delta on a node, and the node below it.
struct Marked<'g, S: Spec> {
    word: Word,
    below: Place<'g, S>,
}

/// The state of a merge's left node.
enum Left<'g, S: Spec> {
    /// It leads to the right node, and has no merge delta.
    Open(Place<'g, S>),
    /// It has the merge delta.
    Marked(Marked<'g, S>),
    /// No node leads to the right node.
    Over,
}

impl<S: Spec> Tree<S> {
    /// Merges two children of a node, if they fit into one; returns whether it did. If one of the
    /// two is held, it leaves the merge to others.
    pub(super) fn merge_by_steps(
        &self,
        parent: &Place<'_, S>,
        pair: &Pair<S>,
        guard: &Guard,
    ) -> bool {
        if !parent.word.is_open() {
            self.help_merge(parent.word, guard);
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
        });
        may_merge && self.mark(Phase::Abort, &merge, parent) && self.help(&merge, guard)
    }

    /// Finishes the merge that a word is a step of, if it is one; `false` if another thread holds
    /// one of the nodes. The word was read during the pin.
    #[cold]
    #[inline(never)]
    pub(super) fn help_merge(&self, word: Word, guard: &Guard) -> bool {
        if word.kind() != Kind::MergeDelta {
            return true;
        }
        // SAFETY: merge deltas are retired after they were unlinked.
        let step = unsafe { &*word.address::<MergeDelta>() };
        self.help(&step.of, guard)
    }

    /// Takes the steps that are left of a merge of which the caller has met one; `false` if another
    /// thread holds one of the nodes. Otherwise lock-free.
    fn help(&self, merge: &Arc<Merge>, guard: &Guard) -> bool {
        while let Some(abort) = self.step_on(merge.parent, merge, guard) {
            // The remove delta is looked for before the merge delta, which was put first.
            let remove = self.step_on(merge.right, merge, guard);
            let can_go_on = match (self.left_of(merge, remove.as_ref(), guard), remove) {
                (Left::Open(left), _) => self.mark_below(Phase::Merge, merge, &left, guard),
                (Left::Marked(_), None) => self
                    .peek_node(merge.right, guard)
                    .is_none_or(|right| self.mark_below(Phase::Remove, merge, &right, guard)),
                (Left::Marked(left), Some(right)) => {
                    self.merge_into_left(merge, &abort, &left, &right, guard);
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

    /// A node of a merge as it is now, without helping; `None` if it cannot be read.
    fn peek_node<'g>(&self, id: usize, guard: &'g Guard) -> Option<Place<'g, S>> {
        let word = self.table.load(id);
        // SAFETY: the word was read during the pin, and ids are not used again before its end.
        let view = unsafe { View::of(word, guard) }?;
        Some(Place { id, word, view })
    }

    /// The delta of a merge that a node has now.
    fn step_on<'g>(&self, id: usize, merge: &Merge, guard: &'g Guard) -> Option<Marked<'g, S>> {
        Self::step_of(merge, id, self.table.load(id), guard)
    }

    /// The merge delta that a word of a node leads to, if it belongs to this merge.
    fn step_of<'g>(
        merge: &Merge,
        id: usize,
        word: Word,
        guard: &'g Guard,
    ) -> Option<Marked<'g, S>> {
        if word.kind() != Kind::MergeDelta {
            return None;
        }
        // SAFETY: the word was read during the pin; merge deltas, and what is below them, are
        // retired after they were unlinked.
        unsafe {
            let step = &*word.address::<MergeDelta>();
            // The merge lives as long as any of its deltas, and the caller has met one.
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

    /// Follows the links to the left node of a merge. The caller has read the right node's remove
    /// delta, if any, before.
    fn left_of<'g>(
        &self,
        merge: &Merge,
        remove: Option<&Marked<'_, S>>,
        guard: &'g Guard,
    ) -> Left<'g, S> {
        let end = remove.map(|remove| remove.below.view.right());
        let mut id = merge.left;
        while id != NO_NODE && Some(id) != end {
            let Some(place) = self.peek_node(id, guard) else {
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
                // Other threads were faster, and this walk has perhaps gone too far.
                break;
            }
        }
        Left::Over
    }

    /// Puts a delta of a merge on one of its nodes, unless another thread changes that node;
    /// returns whether it did.
    fn mark(&self, phase: Phase, merge: &Arc<Merge>, place: &Place<'_, S>) -> bool {
        let step = Box::leak(Box::new(MergeDelta {
            phase,
            of: Arc::clone(merge),
            next: place.word,
        }));
        let word = Word::merge_delta(NonNull::from(step));
        let is_put = self.table.exchange(place.id, place.word, word);
        if !is_put {
            // SAFETY: no other thread has seen it.
            drop(unsafe { MergeDelta::of_word(word) });
        }
        is_put
    }

    /// Puts a delta of a merge on one of the two nodes, or prepares the node for it; `false` if
    /// another thread holds the node.
    fn mark_below(
        &self,
        phase: Phase,
        merge: &Arc<Merge>,
        place: &Place<'_, S>,
        guard: &Guard,
    ) -> bool {
        if place.word.kind() == Kind::MergeDelta {
            // It belongs to a merge of two nodes below this one.
            return self.help_merge(place.word, guard);
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

    /// Gives the left node the entries of both, and the right node's fence and link.
    fn merge_into_left(
        &self,
        merge: &Merge,
        abort: &Marked<'_, S>,
        left: &Marked<'_, S>,
        right: &Marked<'_, S>,
        guard: &Guard,
    ) {
        let separator = || Self::pair_of(merge, abort).separator;
        let merged = self.merged(&left.below.view, &right.below.view, separator);
        check_merged(&left.below, &right.below);
        self.check_replaced(&left.below, || merged.word(), guard);
        if !(self.table).exchange(left.below.id, left.word, merged.word()) {
            return;
        }
        merged.give();
        // SAFETY: the chain and the delta have just been unlinked; the new base node has the
        // entries that are left.
        unsafe {
            self.retire_left(&left.below, guard);
            Self::retire_step(left.word, guard);
        }
    }

    /// Removes the separator between the two from the parent, and the abort delta with it. Then no
    /// node leads to the right one.
    fn delete_separator(
        &self,
        merge: &Merge,
        abort: &Marked<'_, S>,
        right: &Marked<'_, S>,
        guard: &Guard,
    ) {
        let pair = Self::pair_of(merge, abort);
        let shorter = self.without(&abort.below, &pair);
        self.check_replaced(&abort.below, || shorter.word(), guard);
        if !(self.table).exchange(abort.below.id, abort.word, shorter.word()) {
            return;
        }
        // A thread that comes to the right node before this store finds the abort delta gone.
        self.table.store(right.below.id, Word::REMOVED);
        let keeps_chain = shorter.give();
        // SAFETY: this thread has just unlinked the chains and the deltas. The parent has the
        // separators that are left, and the left node the entries of the right one.
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

    /// The two nodes, and what their parent has under the abort delta.
    fn pair_of(merge: &Merge, abort: &Marked<'_, S>) -> Pair<S> {
        match abort.below.view.pair(merge.right) {
            Some(pair) => pair,
            None => unreachable!("a separator stays where it is under an abort delta"),
        }
    }

    /// Frees a merge delta once no thread can be looking at it.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    unsafe fn retire_step(word: Word, guard: &Guard) {
        // SAFETY: passed on to the caller; any thread may drop a merge delta at any time.
        unsafe { guard.defer_unchecked(move || drop(MergeDelta::of_word(word))) };
    }
}
