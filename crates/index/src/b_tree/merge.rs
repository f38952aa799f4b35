//! Merges of underfull nodes with their neighbours. Where both do not fit into one node, they share
//! their entries evenly.

use super::invariants::{check_before_merge, check_changed, check_unlinked};
use super::node::{Header, InnerRef, Kind, LeafRef, NodeRef};
use super::tree::{Parent, Tree, count, discount};
use crate::kit::{SearchKey, Spec, StoredKey};
use std::ptr::NonNull;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Backoff, Restart, VersionGuard};

/// How often a merge that meets other writers is tried. If no attempt succeeds, the node stays
/// underfull until an entry is removed from it again.
const ATTEMPTS: u32 = 64;

/// How often [`Tree::rebalance`] goes up because a node is an only child. A tree has fewer only
/// children one below the other, unless other threads keep making them.
const MAX_ONLY_CHILDREN: u32 = 16;

/// What has been done about an underfull node.
enum Mended {
    /// All that there was to do.
    Enough,
    /// It has been merged, so its parent has one child fewer and may be underfull now.
    Merged,
    /// Nothing, because its parent has no other child: the parent has to be merged first.
    OnlyChild,
}

impl<S: Spec> Tree<S> {
    /// Merges the leaf of a key if it is underfull, and then the underfull nodes above it.
    #[cold]
    pub(super) fn rebalance(&self, probe: &SearchKey<'_, S>, guard: &Guard<'_>) {
        let mut level = 0;
        let mut only_children = 0;
        loop {
            match self.mend(probe, level, guard) {
                Mended::Merged => level += 1,
                Mended::OnlyChild if only_children < MAX_ONLY_CHILDREN => {
                    only_children += 1;
                    level += 1;
                }
                // The only child below has neighbours under its parent now.
                Mended::Enough if level > 0 && only_children > 0 => {
                    only_children -= 1;
                    level = 0;
                }
                Mended::Enough | Mended::OnlyChild => return,
            }
        }
    }

    fn mend(&self, probe: &SearchKey<'_, S>, level: u32, guard: &Guard<'_>) -> Mended {
        let backoff = Backoff::new();
        for _ in 0..ATTEMPTS {
            if let Ok(done) = self.try_to_mend(probe, level, guard) {
                return done;
            }
            self.restarted();
            backoff.wait();
        }
        Mended::Enough
    }

    fn try_to_mend(
        &self,
        probe: &SearchKey<'_, S>,
        level: u32,
        guard: &Guard<'_>,
    ) -> Result<Mended, Restart> {
        let here = self.descend_to(probe, level, guard)?;
        let Some(parent) = here.parent else {
            if let Kind::Inner(root) = here.node.kind()
                && root.count() == 0
            {
                let lock = root.lock().upgrade(here.version)?;
                self.shrink(root, lock, guard);
            }
            return Ok(Mended::Enough);
        };
        if !here.node.is_underfull() {
            here.node.lock().validate(here.version)?;
            return Ok(Mended::Enough);
        }
        let children = parent.inner.count() + 1;
        parent.inner.lock().validate(parent.version)?;
        if children == 1 {
            return Ok(Mended::OnlyChild);
        }
        self.mend_pair(&parent, guard)
    }

    /// Makes the only child of the root the new root.
    fn shrink(&self, root: InnerRef<'_, S>, lock: VersionGuard<'_>, guard: &Guard<'_>) {
        let Some(child) = root.child(0) else {
            return;
        };
        // SAFETY: the children of a node that this thread has locked are linked.
        self.set_root(unsafe { NodeRef::from_raw(child) }, root.node());
        lock.obsolete();
        check_unlinked(root.node());
        discount(&self.counters.inner_nodes);
        // SAFETY: only the link to the root led to it, and now leads elsewhere.
        unsafe { root.node().retire(guard) };
    }

    /// Merges the child that the descent went on to with the emptier one of its neighbours under
    /// the same parent, or makes the two share their entries evenly.
    fn mend_pair(&self, parent: &Parent<'_, S>, guard: &Guard<'_>) -> Result<Mended, Restart> {
        let inner = parent.inner;
        let _parent_lock = inner.lock().upgrade(parent.version)?;
        let child = |at| {
            let child = inner.child(at)?;
            // SAFETY: the children of a node that this thread has locked are linked.
            Some(unsafe { NodeRef::<S>::from_raw(child) })
        };
        let left = parent.index.checked_sub(1);
        let right = (parent.index < inner.count()).then_some(parent.index);
        let entries = |at: Option<usize>, offset| {
            let node = child(at? + offset)?;
            Some(node.count())
        };
        // The index of the separator between the two.
        let at = match (left, right) {
            (Some(left), Some(right)) => {
                if entries(Some(left), 0) < entries(Some(right), 1) {
                    left
                } else {
                    right
                }
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => return Ok(Mended::OnlyChild),
        };
        let (Some(left), Some(right)) = (child(at), child(at + 1)) else {
            unreachable!("an inner node has one child more than separators");
        };
        // Only tried, because this thread holds the lock of the parent.
        let _left_lock = left.lock().try_lock()?;
        let right_lock = right.lock().try_lock()?;
        check_before_merge(left, right, inner);
        let pair = Pair { inner, at };
        match (left.kind(), right.kind()) {
            (Kind::Leaf(left), Kind::Leaf(right)) => {
                let now = self.snapshots.now();
                self.settle(left, now, guard);
                self.settle(right, now, guard);
                let fit = fits(left.count() + right.count(), left.node());
                if !fit || left.take_over(right, guard).is_err() {
                    self.share_leaves(&pair, left, right, guard);
                    return Ok(Mended::Enough);
                }
                unlink_leaf(left, right);
                discount(&self.counters.leaves);
            }
            (Kind::Inner(left), Kind::Inner(right)) => {
                if !fits(left.count() + 1 + right.count(), left.node()) {
                    self.share_inner(&pair, left, right);
                    return Ok(Mended::Enough);
                }
                merge_inner(&pair, left, right);
                discount(&self.counters.inner_nodes);
            }
            _ => unreachable!("all children of a node are of one level"),
        }
        let separator = inner.key(at);
        inner.remove(at);
        right_lock.obsolete();
        check_changed([left, inner.node()]);
        check_unlinked(right);
        if right.level() == 0 {
            // SAFETY: this thread has just unlinked it. (Between inner nodes, it has moved down.)
            unsafe { separator.retire(guard) };
            self.era.end();
        }
        // SAFETY: neither the parent nor a neighbour leads to it any more, and no other thread
        // unlinks a node that this thread has locked.
        unsafe { right.retire(guard) };
        count(&self.counters.merges);
        Ok(Mended::Merged)
    }

    /// Gives both leaves the same number of entries, unless the longer ones do not fit into one.
    fn share_leaves(
        &self,
        pair: &Pair<'_, S>,
        left: LeafRef<'_, S>,
        right: LeafRef<'_, S>,
        guard: &Guard<'_>,
    ) {
        let (lefts, rights) = (left.count(), right.count());
        let half = (lefts + rights) / 2;
        // A copy of the key that will be the lowest on the right. It is made first, because the
        // clone may panic.
        // SAFETY: this thread has locked both leaves.
        let separator = unsafe {
            if half < lefts {
                left.key(half).to_separator()
            } else {
                right.key(half - lefts).to_separator()
            }
        };
        if left.share(right, half, guard).is_err() {
            // SAFETY: it is in no node.
            unsafe { separator.free() };
            return;
        }
        left.node().moved();
        right.node().moved();
        let old = pair.inner.key(pair.at);
        pair.inner.replace_separator(pair.at, separator);
        check_changed([left.node(), right.node(), pair.inner.node()]);
        // SAFETY: this thread has just unlinked it, under the lock of the parent.
        unsafe { old.retire(guard) };
        count(&self.counters.borrows);
    }

    /// Gives both inner nodes the same number of children. Separators rotate through the parent.
    fn share_inner(&self, pair: &Pair<'_, S>, left: InnerRef<'_, S>, right: InnerRef<'_, S>) {
        let (lefts, rights) = (left.count(), right.count());
        let separators: Vec<_> = (0..lefts)
            .map(|at| left.key(at))
            .chain([pair.inner.key(pair.at)])
            .chain((0..rights).map(|at| right.key(at)))
            .collect();
        let children: Vec<_> = (0..=lefts)
            .map(|at| left.child(at))
            .chain((0..=rights).map(|at| right.child(at)))
            .collect();
        let half = separators.len() / 2;
        refill(left, &separators[..half], &children[..=half]);
        refill(right, &separators[half + 1..], &children[half + 1..]);
        left.node().moved();
        right.node().moved();
        pair.inner.replace_separator(pair.at, separators[half]);
        check_changed([left.node(), right.node(), pair.inner.node()]);
        count(&self.counters.borrows);
    }
}

/// The separator between two neighbours: its index in their parent.
struct Pair<'g, S: Spec> {
    inner: InnerRef<'g, S>,
    at: usize,
}

/// Whether a node may get this number of keys by a merge. It keeps some room, so that it is not
/// split again at once.
fn fits<S: Spec>(keys: usize, node: NodeRef<'_, S>) -> bool {
    keys <= node.capacity() - node.capacity() / 8
}

/// Unlinks a leaf, all entries of which are in its left neighbour now, from its neighbours.
fn unlink_leaf<S: Spec>(left: LeafRef<'_, S>, right: LeafRef<'_, S>) {
    left.node().moved();
    let next = right.next();
    left.set_next(next);
    if let Some(next) = next {
        // SAFETY: the right neighbour of a leaf that this thread has locked stays linked.
        unsafe { LeafRef::<S>::from_raw(next) }.set_prev(left);
    }
}

/// Moves all children of an inner node, and the separator from the parent, to its left neighbour.
fn merge_inner<S: Spec>(pair: &Pair<'_, S>, left: InnerRef<'_, S>, right: InnerRef<'_, S>) {
    let (lefts, rights) = (left.count(), right.count());
    left.store_separator(lefts, pair.inner.key(pair.at));
    left.store_child(lefts + 1, right.child(0));
    for at in 0..rights {
        left.store_separator(lefts + 1 + at, right.key(at));
        left.store_child(lefts + 2 + at, right.child(at + 1));
    }
    left.node().seal(lefts + 1 + rights);
    left.node().moved();
}

fn refill<S: Spec>(
    inner: InnerRef<'_, S>,
    separators: &[StoredKey<S>],
    children: &[Option<NonNull<Header>>],
) {
    for (at, separator) in separators.iter().enumerate() {
        inner.store_separator(at, *separator);
    }
    for (at, child) in children.iter().enumerate() {
        inner.store_child(at, *child);
    }
    inner.node().seal(separators.len());
}
