//! Merges: of a sparse node with a neighbour, of a root with its only child, of a layer with the
//! leaf above it.

use super::Masstree;
use super::descend::{Parent, Step};
use super::invariants::{check_changed, check_unlinked};
use super::node::{Node, NodeRef, is_underfull};
use super::record::{Entry, is_layer, word_of_layer};
use super::shape::count;
use super::slices::Slices;
use crate::byte_keyed::Trie as _;
use crate::contract::Storable;
use crate::key::ByteKey;
use tremula_sync::Restart;
use tremula_sync::reclaim::Guard;

/// How often a merge is tried while other threads write there. The next thread that removes
/// something there tries again.
const ATTEMPTS: usize = 8;

/// The outcome of an attempt to merge a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MergeOutcome {
    /// The node is full enough, or the root.
    Enough,
    /// Two neighbours were merged, so their parent may have become sparse.
    Merged,
    /// The node is the only child of its parent, which has to be merged first.
    OnlyChild,
}

/// Whether the entries of two leaves may go into one. Some slots stay free, so that the leaf is not
/// split again at once.
fn fit<const W: usize>(left: usize, right: usize) -> bool {
    left == 0 || right == 0 || left + right <= W - W / 8
}

impl<K: ByteKey, V: Storable, const W: usize> Masstree<K, V, W> {
    /// Merges the nodes that the removal of the key with these bytes has left sparse, from the
    /// deepest layer upwards. If it gives up, the tree is still correct.
    #[cold]
    pub(super) fn tidy(&self, bytes: &[u8], guard: &Guard<'_>) {
        let attempt = || self.layers_of(bytes, guard);
        let mut layers = self.attempt(ATTEMPTS, attempt).unwrap_or_default();
        while let Some(root) = layers.pop() {
            let depth = layers.len() * Slices::<K>::STEP;
            self.merge_upwards(root, Slices::<K>::at(bytes, depth), 0, guard);
            let Some(above) = layers.last() else {
                return;
            };
            let slice = Slices::<K>::at(bytes, depth - Slices::<K>::STEP);
            if !self.fold(*above, slice, root, guard) {
                return;
            }
        }
    }

    /// The roots of the layers on the way of a key.
    fn layers_of<'g>(
        &'g self,
        bytes: &[u8],
        guard: &'g Guard<'_>,
    ) -> Result<Vec<NodeRef<'g, W>>, Restart> {
        let mut root = self.root();
        let mut layers = Vec::new();
        loop {
            layers.push(root);
            if K::HEAD_IS_KEY {
                return Ok(layers);
            }
            let slice = Slices::<K>::at(bytes, (layers.len() - 1) * Slices::<K>::STEP);
            let (leaf, version) = root.reach(slice)?;
            let Some(word) = leaf.word_of(version, slice)? else {
                return Ok(layers);
            };
            // SAFETY: validated by `word_of`, and the leaf was linked since the guard was pinned.
            match unsafe { Entry::<K, W>::of_word(word, guard) } {
                Entry::Record(_) => return Ok(layers),
                Entry::Layer(next) => root = next,
            }
        }
    }

    /// Folds a layer that has at most one key left: that key's record, or nothing, replaces the
    /// layer in the leaf above. Returns whether it did.
    fn fold(
        &self,
        above: NodeRef<'_, W>,
        slice: u64,
        root: NodeRef<'_, W>,
        guard: &Guard<'_>,
    ) -> bool {
        let attempt = || {
            if root.version().is_obsolete() || root.count() > 1 {
                return Ok(false);
            }
            self.try_fold(above, slice, root, guard)
        };
        self.attempt(ATTEMPTS, attempt).unwrap_or(false)
    }

    fn try_fold(
        &self,
        above: NodeRef<'_, W>,
        slice: u64,
        root: NodeRef<'_, W>,
        guard: &Guard<'_>,
    ) -> Result<bool, Restart> {
        let (leaf, lock) = above.lock_leaf(slice)?;
        let order = leaf.order();
        let slot = leaf.find(order, slice);
        let is_here = |slot: &usize| leaf.word(*slot) == word_of_layer(root);
        let Some(slot) = slot.filter(is_here) else {
            lock.unchanged();
            return Ok(false);
        };
        // Only tried, because this thread holds the leaf above.
        let Ok(root_lock) = root.get().lock().try_lock() else {
            lock.unchanged();
            return Err(Restart);
        };
        let mut words = root.entries(root.order()).map(|entry| entry.1);
        let last = words.next();
        // A layer is valid at one depth only, so only a record can move up.
        if root.level() > 0 || words.next().is_some() || last.is_some_and(is_layer) {
            root_lock.unchanged();
            lock.unchanged();
            return Ok(false);
        }
        let root_change = root.get().change();
        match last {
            Some(record) => leaf.publish_word(slot, record),
            None => {
                let _change = leaf.get().change();
                leaf.set_order(order.removed(leaf.rank(order, slice)));
            }
        }
        root_change.obsolete();
        root_lock.obsolete();
        check_unlinked(root);
        drop(lock);
        // SAFETY: no pointer leads to the root any more, and this thread, which held its lock,
        // unlinked it.
        unsafe { root.retire(guard) };
        count(&self.counters.folds);
        Ok(true)
    }

    /// Merges sparse nodes on the way of a slice, from this level upwards, as far as necessary.
    fn merge_upwards(&self, root: NodeRef<'_, W>, slice: u64, level: u64, guard: &Guard<'_>) {
        let mut outcome = self.merge_node(root, slice, level, guard);
        if outcome == MergeOutcome::OnlyChild {
            self.merge_upwards(root, slice, level + 1, guard);
            outcome = self.merge_node(root, slice, level, guard);
        }
        if outcome == MergeOutcome::Merged {
            self.merge_upwards(root, slice, level + 1, guard);
        }
    }

    fn merge_node(
        &self,
        root: NodeRef<'_, W>,
        slice: u64,
        level: u64,
        guard: &Guard<'_>,
    ) -> MergeOutcome {
        let attempt = || self.try_merge(root, slice, level, guard);
        self.attempt(ATTEMPTS, attempt)
            .unwrap_or(MergeOutcome::Enough)
    }

    fn try_merge(
        &self,
        root: NodeRef<'_, W>,
        slice: u64,
        level: u64,
        guard: &Guard<'_>,
    ) -> Result<MergeOutcome, Restart> {
        if root.version().is_obsolete() {
            return Ok(MergeOutcome::Enough);
        }
        let mut step = Step::at_root(root)?;
        while step.node.level() > level {
            step = step.descend(slice)?;
        }
        let Some(parent) = step.parent else {
            if step.node.level() > 0 && step.node.separators() == 0 {
                shrink(&step, guard)?;
                return Ok(MergeOutcome::Merged);
            }
            return Ok(MergeOutcome::Enough);
        };
        let is_sparse = is_underfull(step.node.count(), W);
        step.node.version().validate(step.version)?;
        if !is_sparse {
            return Ok(MergeOutcome::Enough);
        }
        let separators = parent.node.separators();
        parent.node.version().validate(parent.version)?;
        if separators == 0 {
            return Ok(MergeOutcome::OnlyChild);
        }
        self.merge_pair(&parent, guard)
    }

    /// Merges the child at `parent.at` with the emptier one of its neighbours under the same
    /// parent. Inner nodes that do not fit into one share out their children; leaves stay as they
    /// are.
    fn merge_pair(
        &self,
        parent: &Parent<'_, W>,
        guard: &Guard<'_>,
    ) -> Result<MergeOutcome, Restart> {
        let inner = parent.node;
        let _parent_lock = inner.get().lock_at(parent.version)?;
        let child = |at| match inner.child(at) {
            // SAFETY: the children of a locked node are linked.
            Some(child) => unsafe { NodeRef::from_raw(child) },
            None => unreachable!("an inner node has one child more than separators"),
        };
        // The index of the separator between the two nodes to merge.
        let at = match (parent.at.checked_sub(1), parent.at < inner.separators()) {
            (Some(left), true) if child(left).count() < child(parent.at + 1).count() => left,
            (_, true) => parent.at,
            (Some(left), false) => left,
            (None, false) => return Ok(MergeOutcome::OnlyChild),
        };
        let (left, right) = (child(at), child(at + 1));
        // Only tried, because this thread holds the parent.
        let _left_lock = left.get().lock().try_lock()?;
        let right_lock = right.get().lock().try_lock()?;
        // In a merge of inner nodes, the separator between them comes down.
        let (counts, down) = ((left.count(), right.count()), usize::from(left.level() > 0));
        let fit = if down > 0 {
            counts.0 + down + counts.1 <= W
        } else {
            fit::<W>(counts.0, counts.1)
        };
        if !fit && down == 0 {
            right_lock.unchanged();
            return Ok(MergeOutcome::Enough);
        }
        let _change = inner.get().change();
        let _left_change = left.get().change();
        let right_change = right.get().change();
        if !fit {
            share(inner, at, left, right);
            [inner, left, right].into_iter().for_each(check_changed);
            return Ok(MergeOutcome::Enough);
        }
        if left.level() == 0 {
            merge_leaves(left, right);
        } else {
            merge_inner(inner.slice(at), left, right);
        }
        inner.remove_child(at);
        [inner, left].into_iter().for_each(check_changed);
        right_change.obsolete();
        right_lock.obsolete();
        check_unlinked(right);
        // SAFETY: this thread has just changed the pointers from the parent and from the
        // neighbours, and no other thread unlinks a node that this thread has locked.
        unsafe { right.retire(guard) };
        count(&self.counters.merges);
        Ok(MergeOutcome::Merged)
    }
}

/// Moves the contents of the only child of a layer's root into the root.
fn shrink<const W: usize>(step: &Step<'_, W>, guard: &Guard<'_>) -> Result<(), Restart> {
    let root = step.node;
    let _lock = root.get().lock_at(step.version)?;
    let Some(child) = root.child(0) else {
        return Err(Restart);
    };
    // SAFETY: the child of a locked node is linked.
    let child = unsafe { NodeRef::<W>::from_raw(child) };
    let child_lock = child.get().lock().try_lock()?;
    let _change = root.get().change();
    let child_change = child.get().change();
    if child.level() == 0 {
        root.set_entries(child.entries(child.order()));
    } else {
        let (separators, children) = child.branches();
        root.set_branches(child.level(), &separators, &children);
    }
    check_changed(root);
    child_change.obsolete();
    child_lock.obsolete();
    check_unlinked(child);
    // SAFETY: only the root pointed to it; it had no neighbours.
    unsafe { child.retire(guard) };
    Ok(())
}

/// Moves all entries of a leaf to its left neighbour, and unlinks the leaf from its neighbours.
fn merge_leaves<const W: usize>(left: NodeRef<'_, W>, right: NodeRef<'_, W>) {
    for (slice, word) in right.entries(right.order()) {
        let order = left.order();
        left.insert(order, order.count(), slice, word);
    }
    let next = right.next();
    left.set_next(next);
    if let Some(next) = next {
        // SAFETY: a neighbour cannot be unlinked while the leaf to its left is locked.
        unsafe { NodeRef::<W>::from_raw(next) }.set_prev(Some(left.pointer()));
    }
}

/// The separators and children of two neighbours, with the separator between them.
fn both<const W: usize>(
    separator: u64,
    left: &Node<W>,
    right: &Node<W>,
) -> (Vec<u64>, Vec<Option<std::ptr::NonNull<Node<W>>>>) {
    let (mut separators, mut children) = left.branches();
    let (rights, right_children) = right.branches();
    separators.push(separator);
    separators.extend(rights);
    children.extend(right_children);
    (separators, children)
}

/// Moves all children of an inner node to its left neighbour.
fn merge_inner<const W: usize>(separator: u64, left: NodeRef<'_, W>, right: NodeRef<'_, W>) {
    let (separators, children) = both(separator, left.get(), right.get());
    left.set_branches(left.level(), &separators, &children);
}

/// Shares out the children of two neighbours evenly.
fn share<const W: usize>(
    parent: NodeRef<'_, W>,
    at: usize,
    left: NodeRef<'_, W>,
    right: NodeRef<'_, W>,
) {
    let (separators, children) = both(parent.slice(at), left.get(), right.get());
    let half = separators.len() / 2;
    let level = left.level();
    left.set_branches(level, &separators[..half], &children[..=half]);
    right.set_branches(level, &separators[half + 1..], &children[half + 1..]);
    parent.set_separator(at, separators[half]);
}
