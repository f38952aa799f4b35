//! Splits of full leaves, and of full inner nodes on the way down to them.

use super::Masstree;
use super::descend::Step;
use super::invariants::check_changed;
use super::node::{NodeRef, Word};
use super::order::Order;
use super::shape::count;
use crate::contract::Storable;
use crate::key::ByteKey;
use tremula_sync::{Restart, retry};

/// In the last leaf of a layer, a slice for one of the last two positions counts as appended,
/// because slices that several threads append come nearly in order.
const NEARLY_LAST: usize = 2;

/// The rank at which to split a full leaf: the entries from there on go to the right.
///
/// It is the middle, unless the insertions seem to continue upwards or downwards from this slice:
/// then the split leaves a full leaf behind and space where they continue. The slice may be the
/// first of the leaf because another thread has inserted it meanwhile. In that case at least one
/// entry has to stay on the left, or the right leaf would begin where the left one does.
fn rank_to_split<const W: usize>(leaf: NodeRef<'_, W>, order: Order, slice: u64) -> usize {
    let (entries, at) = (order.count(), leaf.rank(order, slice));
    let descends = at == 0 && leaf.slice(order.slot(0)) != slice;
    let appends = leaf.next().is_none() && at + NEARLY_LAST >= entries && W > 2 * NEARLY_LAST;
    if descends || at == entries || appends {
        at
    } else {
        entries / 2
    }
}

impl<K: ByteKey, V: Storable, const W: usize> Masstree<K, V, W> {
    /// Descends to the leaf of a slice, and splits the first full node on the way. Full inner nodes
    /// are split before they have to take a separator, so no split has to go up.
    #[cold]
    pub(super) fn split_down(&self, root: NodeRef<'_, W>, slice: u64) {
        // If the layer has been unlinked there is nothing to split; the insertion notices that by
        // itself.
        let attempt = || match self.try_split_down(root, slice) {
            Err(Restart) if !root.version().is_obsolete() => Err(Restart),
            _ => Ok(()),
        };
        retry(attempt, || self.restarts.add(1));
    }

    fn try_split_down(&self, root: NodeRef<'_, W>, slice: u64) -> Result<(), Restart> {
        let mut step = Step::at_root(root)?;
        loop {
            if step.node.count() >= W {
                return self.split(&step, slice);
            }
            if step.node.level() == 0 {
                return Ok(());
            }
            step = step.descend(slice)?;
        }
    }

    /// Splits a node that was full when it was read, if it still is.
    fn split(&self, step: &Step<'_, W>, slice: u64) -> Result<(), Restart> {
        // The parent is locked first. It was not full when the descent passed it.
        let parent_lock = match &step.parent {
            Some(parent) => Some(parent.node.get().lock_at(parent.version)?),
            None => None,
        };
        let node = step.node;
        let _lock = node.get().lock_at(step.version)?;
        if node.count() < W {
            return Err(Restart);
        }
        let _change = node.get().change();
        match (&step.parent, parent_lock) {
            (Some(parent), Some(_)) => {
                let _parent_change = parent.node.get().change();
                let (separator, right) = if node.level() == 0 {
                    split_leaf(node, slice)
                } else {
                    split_inner(node)
                };
                parent.node.insert_child(parent.at, separator, right);
                check_changed(parent.node);
                check_changed(right);
            }
            _ => grow(node, slice),
        }
        check_changed(node);
        count(&self.counters.splits);
        Ok(())
    }
}

/// Moves the upper part of a full leaf, whose `version` the caller holds, to a new right neighbour.
fn split_leaf<'g, const W: usize>(leaf: NodeRef<'g, W>, slice: u64) -> (u64, NodeRef<'g, W>) {
    let order = leaf.order();
    let middle = rank_to_split(leaf, order, slice);
    let (low, right) = right_part(leaf, order, middle, slice);
    right.set_next(leaf.next());
    right.set_prev(Some(leaf.pointer()));
    if let Some(next) = leaf.next() {
        // SAFETY: a neighbour cannot be unlinked while this leaf is locked.
        unsafe { NodeRef::from_raw(next) }.set_prev(Some(right.pointer()));
    }
    leaf.set_next(Some(right.pointer()));
    leaf.set_order(order.truncated(middle));
    (low, right)
}

/// A new leaf of the entries of another from rank `middle` on. If that is the end, the new leaf
/// begins with `slice`.
fn right_part<'g, const W: usize>(
    leaf: NodeRef<'g, W>,
    order: Order,
    middle: usize,
    slice: u64,
) -> (u64, NodeRef<'g, W>) {
    let entries: Vec<(u64, Word)> = leaf.entries(order).skip(middle).collect();
    let low = entries.first().map_or(slice, |entry| entry.0);
    let right = NodeRef::new(low);
    right.set_entries(entries);
    (low, right)
}

/// Moves the upper half of an inner node, whose `version` the caller holds, to a new right
/// neighbour.
fn split_inner<'g, const W: usize>(inner: NodeRef<'g, W>) -> (u64, NodeRef<'g, W>) {
    let (separators, children) = inner.branches();
    let middle = separators.len() / 2;
    let right = NodeRef::new(0);
    let level = inner.level();
    right.set_branches(level, &separators[middle + 1..], &children[middle + 1..]);
    inner.set_branches(level, &separators[..middle], &children[..=middle]);
    (separators[middle], right)
}

/// Moves the contents of the full root of a layer to two new nodes, whose parent the root becomes.
fn grow<const W: usize>(root: NodeRef<'_, W>, slice: u64) {
    let level = root.level();
    let left = NodeRef::new(0);
    let (separator, right) = if level == 0 {
        left.set_entries(root.entries(root.order()));
        split_leaf(left, slice)
    } else {
        let (separators, children) = root.branches();
        left.set_branches(level, &separators, &children);
        split_inner(left)
    };
    let children = [left, right].map(|node| Some(node.pointer()));
    root.set_branches(level + 1, &[separator], &children);
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::OrderedIndex;

    /// A thread that inserts a slice finds its leaf full and goes to split it. Before it has the
    /// locks, other threads split the leaf, insert the slice, and fill the leaf that begins with
    /// it.
    #[test]
    fn a_split_for_a_slice_that_begins_its_leaf_by_now_moves_only_a_part_to_the_right() {
        let tree = Masstree::<u64, u64, 3>::default();
        for (keys, slice) in [([5, 6, 7], 8), ([8, 9, 10], 8)] {
            for key in keys {
                tree.insert(key, key);
            }
            let _guard = tree.collector.pin();
            tree.split_down(tree.root(), slice);
        }
        tree.check_at_rest();
        assert!((5..=10).all(|key| tree.get(&key) == Some(key)));
    }
}
