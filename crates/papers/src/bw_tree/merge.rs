//! Merging a small node with a neighbour, and taking levels away from the root.

use super::Position;
use super::base::{BaseRef, Draft, Fences};
use super::descend::Place;
use super::hold::Holds;
use super::invariants::check_merged;
use super::node::{Claim, Entry, View};
use super::reclaim::Guard;
use super::word::Word;
use super::{ROOT, Tree};
use tremula_index::kit::{OwnedKey, Spec, StoredKey};

impl<S: Spec> Tree<S> {
    /// Merges a small node into the one on its left, or, if it is its parent's first child, the one
    /// on its right into it. Then it does the same to the parent, if that has become small. Gives
    /// up when another thread is at work there.
    pub(super) fn merge(&self, small: &Place<'_, S>, guard: &Guard) {
        let mut id = small.id;
        let mut base = small.view.base;
        while id != ROOT {
            let level = base.level + 1;
            let parent = parent_of(self, base, level, guard);
            if parent.view.base.level != level {
                return;
            }
            let mut left = 0;
            if parent.view.count() > 0 {
                match self.merge_under(&parent, id, guard) {
                    Some(count) => left = count,
                    None => return,
                }
            }
            if left > self.merge_below(level) {
                return;
            }
            (id, base) = (parent.id, parent.view.base);
        }
        while self.lower_root(guard) {}
    }

    /// Merges a child with its neighbour; returns how many separators the parent has left, if it
    /// did.
    fn merge_under(&self, parent: &Place<'_, S>, id: usize, guard: &Guard) -> Option<usize> {
        let pair = parent.view.pair(id)?;
        let is_merged = if self.config.switches.held_merges {
            self.merge_held(parent, &pair, guard)
        } else {
            self.merge_by_steps(parent, &pair, guard)
        };
        is_merged.then_some(pair.others.len())
    }

    /// Merges two children of a node while it holds all three; returns whether it did.
    fn merge_held(&self, parent: &Place<'_, S>, pair: &Pair<S>, guard: &Guard) -> bool {
        let mut holds = Holds::new(self);
        if !holds.try_hold(parent.id, parent.word) {
            return false;
        }
        // SAFETY: the children of a held node stay in use.
        let nodes = unsafe {
            let left = self.visit_whole(pair.left, guard);
            left.zip(self.visit_whole(pair.right, guard))
        };
        let Some((left, right)) = nodes else {
            return false;
        };
        if !self.may_merge(&left, &right)
            || !holds.try_hold(left.id, left.word)
            || !holds.try_hold(right.id, right.word)
        {
            return false;
        }
        let merged = self.merged(&left.view, &right.view, || pair.separator);
        let shorter = self.without(parent, pair);
        check_merged(&left, &right);
        self.check_replaced(&left, || merged.word(), guard);
        self.check_replaced(parent, || shorter.word(), guard);
        // A thread that still comes to the right node finds its old contents, which no thread
        // changes: its entries are also in the left node, which is held until no thread comes to
        // the right one any more.
        holds.set(left.id, merged.word());
        holds.release(parent.id, shorter.word());
        holds.release(right.id, Word::REMOVED);
        holds.release(left.id, merged.word());
        merged.give();
        let keeps_chain = shorter.give();
        drop(holds);
        // SAFETY: the chains have just been unlinked; new base nodes have the entries that are
        // left. No node leads to the right node any more.
        unsafe {
            self.retire_left(&left, guard);
            self.retire_right(&right, guard);
            if !keeps_chain {
                self.retire_parent(parent, pair.separator, guard);
            }
        }
        self.counters.merges.add(1);
        true
    }

    /// Whether two nodes are neighbours and fit into one.
    pub(super) fn may_merge(&self, left: &Place<'_, S>, right: &Place<'_, S>) -> bool {
        let counts = [left.view.count(), right.view.count()];
        let most = self.split_above(left.view.base.level);
        let most = if counts.contains(&0) {
            most + 1
        } else {
            most - most / 4
        };
        left.view.right() == right.id && counts.iter().sum::<usize>() < most
    }

    /// What two neighbours become; calls `separator` for the separator between them if they are
    /// inner nodes.
    pub(super) fn merged(
        &self,
        left: &View<'_, S>,
        right: &View<'_, S>,
        separator: impl FnOnce() -> StoredKey<S>,
    ) -> Merged<S> {
        let fences = left.fences();
        // Between inner nodes a copy of the separator moves down.
        // SAFETY: it is an entry of a node that can be read.
        let moved = (fences.level > 0).then(|| unsafe { OwnedKey::<S>::copy_of(separator()) });
        let mut entries = Vec::new();
        left.entries(&mut entries);
        entries.extend(moved.as_ref().map(|moved| Entry {
            key: moved.stored(),
            value: std::ptr::without_provenance_mut(right.base.first_child),
        }));
        right.entries(&mut entries);
        let fences = Fences {
            high: right.high(),
            right: right.right(),
            ..fences
        };
        let options = self.options(fences.level);
        Merged {
            base: Draft::of_entries(fences, &entries, options),
            moved,
        }
    }

    /// Retires the left one of two nodes that have been merged, and the fence where they met.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    pub(super) unsafe fn retire_left(&self, left: &Place<'_, S>, guard: &Guard) {
        // SAFETY: passed on to the caller. The fence has no owner now.
        unsafe {
            self.retire(left.word, guard);
            if let Some(high) = left.view.high() {
                self.retire_key(high, guard);
            }
        }
    }

    /// Retires the right one of two nodes that have been merged, its id, and its copy of the fence
    /// where they met.
    ///
    /// # Safety
    ///
    /// No reachable node leads to it any more, and it is retired once.
    pub(super) unsafe fn retire_right(&self, right: &Place<'_, S>, guard: &Guard) {
        // SAFETY: passed on to the caller. The fence has no owner now.
        unsafe {
            self.retire(right.word, guard);
            if let Some(low) = right.view.base.low() {
                self.retire_key(low, guard);
            }
            self.table.retire(right.id, guard);
        }
    }

    /// Retires the parent of two nodes that have been merged, and the separator between them.
    ///
    /// # Safety
    ///
    /// Both have been unlinked, and are retired once.
    pub(super) unsafe fn retire_parent(
        &self,
        parent: &Place<'_, S>,
        separator: StoredKey<S>,
        guard: &Guard,
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            self.retire(parent.word, guard);
            self.retire_key(separator, guard);
        }
    }

    /// An inner node without the separator between two of its children: a delta on its chain, or a
    /// new base node.
    pub(super) fn without(&self, place: &Place<'_, S>, pair: &Pair<S>) -> Shorter<S> {
        let view = &place.view;
        let by_delta = self.place_in_inner(view).and_then(|claim| {
            let delta = view.without_separator(place.word, pair.separator, pair.right)?;
            Some((claim, delta))
        });
        match by_delta {
            Some((claim, delta)) => Shorter::Delta(claim.write(view.base, delta), claim),
            None => Shorter::Base(Draft::of_entries(
                view.fences(),
                &pair.others,
                self.options(view.base.level),
            )),
        }
    }

    /// Replaces the root by its only child, if it has only one; returns whether it did.
    fn lower_root(&self, guard: &Guard) -> bool {
        // SAFETY: the root is always in use.
        let Some(root) = (unsafe { self.visit(ROOT, guard) }) else {
            return false;
        };
        let base = root.view.base;
        if base.level == 0 || root.view.count() > 0 {
            return false;
        }
        let mut holds = Holds::new(self);
        if !holds.try_hold(ROOT, root.word) {
            return false;
        }
        let child_id = base.first_child;
        // SAFETY: the child of a held node stays in use.
        let Some(child) = (unsafe { self.visit_whole(child_id, guard) }) else {
            return false;
        };
        // A child that has been split has a neighbour that the root does not know yet.
        if child.view.high().is_some() || !holds.try_hold(child_id, child.word) {
            return false;
        }
        let copy = self.copy(&child.view);
        self.check_replaced(&root, || copy.word(), guard);
        holds.set(ROOT, copy.word());
        holds.release(child_id, Word::REMOVED);
        holds.release(ROOT, copy.word());
        copy.give();
        drop(holds);
        // SAFETY: both chains have just been unlinked, and the new base node has the entries that
        // are left.
        unsafe {
            self.retire(child.word, guard);
            self.retire(root.word, guard);
            self.table.retire(child_id, guard);
        }
        self.counters.merges.add(1);
        true
    }
}

/// Two neighbours among the children of an inner node.
pub(super) struct Pair<S: Spec> {
    pub(super) left: usize,
    pub(super) right: usize,
    pub(super) separator: StoredKey<S>,
    /// The other separators of the node.
    others: Vec<Entry<S>>,
}

impl<S: Spec> View<'_, S> {
    /// A child of an inner node with the one to its left, or, if it is the first one, to its right.
    pub(super) fn pair(&self, child: usize) -> Option<Pair<S>> {
        let mut others = Vec::new();
        self.entries(&mut others);
        let first = std::iter::once(self.base.first_child);
        let children: Vec<_> = first.chain(others.iter().map(Entry::child)).collect();
        let index = children.iter().position(|other| *other == child)?;
        // The index of the separator between the two.
        let at = index.max(1) - 1;
        let (left, right) = (children[at], *children.get(at + 1)?);
        let separator = others.remove(at).key;
        Some(Pair {
            left,
            right,
            separator,
            others,
        })
    }
}

/// The node that two nodes are about to become. No other thread has seen it; dropping it frees it.
pub(super) struct Merged<S: Spec> {
    base: Draft<S>,
    /// The separator between inner nodes.
    moved: Option<OwnedKey<S>>,
}

impl<S: Spec> Merged<S> {
    pub(super) fn word(&self) -> Word {
        self.base.word()
    }

    /// Passes ownership to the mapping table.
    pub(super) fn give(self) {
        self.base.give();
        if let Some(moved) = self.moved {
            moved.give();
        }
    }
}

/// An inner node without one of its separators. No other thread has seen it; dropping it frees it.
pub(super) enum Shorter<S: Spec> {
    Delta(Word, Claim<S>),
    Base(Draft<S>),
}

impl<S: Spec> Shorter<S> {
    pub(super) fn word(&self) -> Word {
        match self {
            Self::Delta(word, _) => *word,
            Self::Base(draft) => draft.word(),
        }
    }

    /// Passes ownership to the mapping table; returns whether it continues the old chain.
    pub(super) fn give(self) -> bool {
        match self {
            Self::Delta(_, claim) => {
                claim.forget();
                true
            }
            Self::Base(draft) => {
                draft.give();
                false
            }
        }
    }
}

/// The parent of a node, by its low fence.
fn parent_of<'g, S: Spec>(
    tree: &Tree<S>,
    base: BaseRef<'_, S>,
    level: u32,
    guard: &'g Guard,
) -> Place<'g, S> {
    match base.low() {
        None => tree.descend(&Position::First, level, guard),
        // SAFETY: fences live as long as their node can be read.
        Some(low) => unsafe { low.search(|low| tree.descend(&Position::At(low), level, guard)) },
    }
}
