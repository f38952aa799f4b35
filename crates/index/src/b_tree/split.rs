//! Splits of a full leaf that a key has to go into, and of full inner nodes on the way down.

use super::invariants::{check_before_split, check_changed, check_linked, check_made};
use super::node::{InnerRef, Kind, LeafRef, NodeRef};
use super::point::locked;
use super::tree::{Place, Position, Tree, count};
use crate::kit::{SearchKey, Spec, StoredKey};
use std::ptr::NonNull;
use tremula_sync::Restart;
use tremula_sync::reclaim::Guard;

/// The number of insertions, each right above the last, that count as a run that will go on.
const RUN: u32 = 8;

/// Whether a key at index `at` of the last leaf counts as one at the end: keys that several threads
/// append come nearly in order.
fn is_near_the_end(at: usize, count: usize) -> bool {
    at >= count - count / 8
}

/// The index at which to split a full leaf that a key has to go into at `at`: the entries from
/// there on go to the right.
///
/// This is the middle, unless the insertions seem to go on upwards or downwards from `at`: then the
/// leaf is split at `at`, so that they find room there and leave full leaves behind.
fn split_index<S: Spec>(leaf: LeafRef<'_, S>, at: usize) -> usize {
    let count = leaf.count();
    let (next, run) = leaf.insertions();
    let runs_upwards = run >= RUN && next == at;
    let appends = leaf.next().is_none() && is_near_the_end(at, count);
    if at == 0 || at == count || runs_upwards || appends {
        at
    } else {
        count / 2
    }
}

/// Where to split a full leaf that a key has to go into at `at`, if an operation has already split
/// `splits` leaves for it: there; but after a few splits in the middle. For a key that contradicts
/// itself may go to the full half of every split elsewhere, and the operation would not end.
pub(super) fn place_of_split<S: Spec>(leaf: LeafRef<'_, S>, at: usize, splits: &mut u32) -> usize {
    *splits = splits.saturating_add(1);
    if *splits > 8 { leaf.count() / 2 } else { at }
}

impl<S: Spec> Tree<S> {
    /// Splits a full leaf under its parent, which has room, or under a new root. The caller has
    /// locked the leaf and the parent. The key of `probe` belongs at index `at`. Calls `made` with
    /// the new leaf before another thread can reach it, and returns the result.
    pub(super) fn split_leaf<'g, R>(
        &self,
        leaf: LeafRef<'g, S>,
        at: usize,
        parent: Option<(InnerRef<'_, S>, usize)>,
        probe: &SearchKey<'_, S>,
        guard: &Guard<'_>,
        made: impl FnOnce(LeafRef<'g, S>) -> R,
    ) -> R {
        check_before_split(leaf.node(), parent.map(|(parent, _)| parent));
        let (entries, middle) = (leaf.count(), split_index(leaf, at));
        // The separator is a copy of the lowest key that goes to the right. It is made first,
        // because the clone may panic.
        let separator = if middle < entries {
            // SAFETY: the key is in a leaf that this thread has locked.
            unsafe { leaf.key(middle).to_separator() }
        } else {
            StoredKey::copy_of(probe)
        };
        // What is noted is of the keys of this leaf alone.
        self.settle_changes(leaf, guard);
        let right = leaf.new_beside();
        right.set_settled(leaf.settled());
        leaf.copy_upper(middle, right, guard);
        let next = leaf.next();
        right.set_next(next);
        right.set_prev(leaf);
        check_made(right.node());
        let made = made(right);
        if let Some(next) = next {
            // SAFETY: the right neighbour of a leaf that this thread has locked stays linked.
            unsafe { LeafRef::<S>::from_raw(next) }.set_prev(right);
        }
        leaf.set_next(NonNull::new(right.as_ptr()));
        leaf.truncate(middle, guard);
        leaf.node().moved();
        check_changed([leaf.node()]);
        check_linked(right);
        self.adopt(leaf.node(), parent, separator, right.node());
        count(&self.counters.leaves);
        made
    }

    /// Like [`split_leaf`](Self::split_leaf), for a full inner node.
    fn split_inner(&self, inner: InnerRef<'_, S>, parent: Option<(InnerRef<'_, S>, usize)>) {
        check_before_split(inner.node(), parent.map(|(parent, _)| parent));
        let separators = inner.count();
        let middle = separators / 2;
        let separator = inner.key(middle);
        let right = InnerRef::new(inner.level(), inner.child(middle + 1));
        for at in middle + 1..separators {
            right.store_separator(at - middle - 1, inner.key(at));
            right.store_child(at - middle, inner.child(at + 1));
        }
        right.node().seal(separators - middle - 1);
        check_made(right.node());
        inner.node().seal(middle);
        inner.node().moved();
        check_changed([inner.node()]);
        self.adopt(inner.node(), parent, separator, right.node());
        count(&self.counters.inner_nodes);
    }

    /// Links a new right neighbour of `left` under the parent, or under a new root.
    fn adopt(
        &self,
        left: NodeRef<'_, S>,
        parent: Option<(InnerRef<'_, S>, usize)>,
        separator: StoredKey<S>,
        right: NodeRef<'_, S>,
    ) {
        match parent {
            Some((parent, index)) => {
                parent.insert(index, separator, right);
                check_changed([parent.node()]);
            }
            None => {
                let root = InnerRef::new(left.level() + 1, NonNull::new(left.as_ptr()));
                root.insert(0, separator, right);
                self.set_root(root.node(), left);
                count(&self.counters.inner_nodes);
            }
        }
        count(&self.counters.splits);
    }

    /// Goes down to the leaf of a key, and splits the first full node on the way. An inner node is
    /// split before it has to take a separator, so that no split has to propagate upwards.
    pub(super) fn split_down(&self, probe: &SearchKey<'_, S>, guard: &Guard<'_>) {
        self.retry(|| self.try_split_down(probe, guard));
    }

    fn try_split_down(&self, probe: &SearchKey<'_, S>, guard: &Guard<'_>) -> Result<(), Restart> {
        self.split_first_full(self.root(guard)?, 0, probe, guard)
    }

    /// Goes down from the root to the node of `level` that is responsible for a key, and splits the
    /// first full node on the way. Reads no lock below that level.
    pub(super) fn split_first_full(
        &self,
        mut here: Place<'_, S>,
        level: u32,
        probe: &SearchKey<'_, S>,
        guard: &Guard<'_>,
    ) -> Result<(), Restart> {
        let position = Position::At(*probe);
        loop {
            let (node, version) = (here.node, here.version);
            // Whether a leaf of text has room is known when it is locked.
            if node.is_full() || S::is_text() && node.level() == 0 {
                // The parent, which is locked first, was not full when the descent passed it.
                let parent_lock = match &here.parent {
                    Some(parent) => Some(parent.inner.lock().upgrade(parent.version)?),
                    None => None,
                };
                let lock = node.lock().upgrade(version)?;
                let parent = here.parent.as_ref().zip(parent_lock.as_ref());
                let parent = parent.map(|(parent, _lock)| (parent.inner, parent.index));
                match node.kind() {
                    Kind::Leaf(leaf) => {
                        let found = leaf.find(probe, locked)?;
                        if S::is_text() && (found.is_ok() || leaf.has_room(probe)) {
                            lock.unchanged();
                            if let Some(lock) = parent_lock {
                                lock.unchanged();
                            }
                            return Ok(());
                        }
                        let at = found.unwrap_or_else(|at| at);
                        self.split_leaf(leaf, at, parent, probe, guard, |_| ());
                    }
                    Kind::Inner(inner) => self.split_inner(inner, parent),
                }
                return Ok(());
            }
            match node.kind() {
                Kind::Inner(inner) if inner.level() > level => {
                    let index = position.child(inner, inner.still(version))?;
                    here = self.enter(inner, version, index)?;
                }
                _ => return Ok(()),
            }
        }
    }
}
