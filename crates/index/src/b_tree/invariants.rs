//! The invariants of the tree ([module](super)) that speak of its state, as functions: each panics,
//! and names the invariant, if it does not hold. Only a debug build calls them.
//!
//! A writer that splits or merges nodes checks them before it releases their locks. It runs no user
//! code there, and does not check the order of keys and heads, because the user's code may lie.
//! [`Tree::check_at_rest`] checks a tree that no other thread uses, with the order of its keys.
//!
//! The others speak of the order in which things happen, and tests hold them:
//!
//! - 1 by the models of loom in which a reader meets a change, such as
//!   `a_reader_never_sees_half_an_insertion`,
//! - 4, as far as it speaks of `moves`, by `a_writer_that_waited_for_a_leaf_follows_its_key`,
//! - 8 by the programs of shuttle that scan and remove ranges while leaves split and merge,
//! - 9, as far as it speaks of retiring, by the tests of reclamation,
//! - 10 by the tests of panics,
//! - 11 by `no_thread_sees_a_part_of_a_step_that_splits`, which would not end.

use super::layout::Plan;
use super::node::{InnerRef, Kind, LeafRef, NodeRef};
use super::tree::Tree;
use crate::key::KeyHead;
use crate::kit::{CHANGES_ARE_CHECKED, STRIDE, SearchKey, Spec, StoredKey};
use tremula_sync::atomic::Ordering;
use tremula_sync::{VersionGuard, VersionLock};

fn is_held(lock: &VersionLock) -> bool {
    !lock.is_obsolete() && lock.try_lock().map(VersionGuard::unchanged).is_err()
}

/// Whether a node is a leaf of text, which has invariants of its own.
fn is_text<S: Spec>(node: NodeRef<'_, S>) -> bool {
    S::is_text() && node.level() == 0
}

/// Invariant 2, of a node at rest.
fn keys_are_between_separators<S: Spec>(
    node: NodeRef<'_, S>,
    low: Option<StoredKey<S>>,
    high: Option<StoredKey<S>>,
) {
    // SAFETY: the keys of a tree at rest, and of its inner nodes, live as long as the tree.
    let is_inside = |key: SearchKey<'_, S>| unsafe {
        low.is_none_or(|low| key.compare(low).is_ge())
            && high.is_none_or(|high| key.compare(high).is_lt())
    };
    // SAFETY: as for `is_inside`.
    let key_is_inside = |at| unsafe {
        match node.kind() {
            Kind::Leaf(leaf) => leaf.key(at).search(is_inside),
            Kind::Inner(inner) => inner.key(at).search(is_inside),
        }
    };
    assert!(
        (0..node.count()).all(key_is_inside),
        "invariant 2 of OlcBTree: a key is in the wrong child"
    );
}

/// Invariant 2, of a child of an inner node.
fn child_is_one_level_below<S: Spec>(inner: InnerRef<'_, S>, child: NodeRef<'_, S>) {
    assert!(
        child.level() + 1 == inner.level(),
        "invariant 2 of OlcBTree: a child is not one level below its parent"
    );
}

/// Invariant 3, as far as it speaks of unused heads and of hints.
fn hints_equal_their_heads<S: Spec>(node: NodeRef<'_, S>) {
    if is_text(node) {
        return;
    }
    let capacity = const { Plan::of::<S>().capacity };
    let (count, heads) = (node.count(), node.heads());
    assert!(
        count <= node.capacity() && (count..capacity).all(|at| heads.load(at) == u64::MAX),
        "invariant 3 of OlcBTree: a head beyond the count is not the greatest"
    );
    let firsts = (STRIDE..capacity).step_by(STRIDE).map(|at| heads.load(at));
    let hints = node.hints().iter().map(|hint| hint.load(Ordering::Relaxed));
    assert!(
        hints.eq(firsts
            .chain(std::iter::repeat(u64::MAX))
            .take(node.hints().len())),
        "invariant 3 of OlcBTree: a hint differs from the head that it stands for"
    );
}

/// Invariant 3, as far as it speaks of order, of a node at rest.
fn keys_ascend<S: Spec>(node: NodeRef<'_, S>) {
    if is_text(node) {
        return;
    }
    let keys: Vec<_> = (0..node.count()).map(|at| node.key(at)).collect();
    // SAFETY: the keys of a tree at rest live as long as the tree.
    let ascend = unsafe {
        let is_own = |key: &StoredKey<S>| !key.has_head() || key.head == key.with(S::Head::head);
        keys.is_sorted_by(|a, b| a.head <= b.head && a.with(|a| b.with(|b| a < b)))
            && keys.iter().all(is_own)
    };
    assert!(
        ascend,
        "invariant 3 of OlcBTree: keys or heads do not ascend"
    );
}

/// Invariant 1 of `node::window`, of a node that the caller has locked, or that is at rest.
fn windows_show_keys<S: Spec>(node: NodeRef<'_, S>) {
    if let (true, Kind::Leaf(leaf)) = (is_text(node), node.kind()) {
        // SAFETY: the caller has locked the leaf, or it is at rest.
        return unsafe { leaf.text().check(leaf.count()) };
    }
    assert!(
        node.windows_show_keys(),
        "invariant 1 of the windows of OlcBTree: a head does not show its key behind the prefix"
    );
}

/// Invariant 4, of a node whose range of keys is about to change, and of its parent.
fn range_changes_under_locks<S: Spec>(node: NodeRef<'_, S>, parent: Option<InnerRef<'_, S>>) {
    assert!(
        is_held(node.lock()) && parent.is_none_or(|parent| is_held(parent.lock())),
        "invariant 4 of OlcBTree: a range changes, and the node or its parent is not locked"
    );
}

/// Invariant 6, of a leaf that the caller has locked, or has not yet linked under a parent.
fn neighbours_lead_to_each_other<S: Spec>(leaf: LeafRef<'_, S>) {
    // SAFETY: the right neighbour of such a leaf stays linked.
    let next = leaf
        .next()
        .map(|next| unsafe { LeafRef::<S>::from_raw(next) });
    let leads_back = |next: LeafRef<'_, S>| next.prev().is_some_and(|prev| *prev == *leaf);
    assert!(
        next.is_none_or(leads_back),
        "invariant 6 of OlcBTree: the right neighbour of a leaf does not lead back"
    );
}

/// Invariant 9, of a node that is linked or has just been unlinked.
fn obsolete_is_what_was_unlinked<S: Spec>(node: NodeRef<'_, S>, is_linked: bool) {
    assert!(
        node.lock().is_obsolete() != is_linked,
        "invariant 9 of OlcBTree: a node is obsolete and linked, or neither"
    );
}

/// Checks a node that is about to be split, and its parent.
#[inline]
pub(super) fn check_before_split<S: Spec>(node: NodeRef<'_, S>, parent: Option<InnerRef<'_, S>>) {
    if CHANGES_ARE_CHECKED {
        range_changes_under_locks(node, parent);
    }
}

/// Checks neighbours that are about to be merged, or to share their entries, and their parent.
#[inline]
pub(super) fn check_before_merge<S: Spec>(
    left: NodeRef<'_, S>,
    right: NodeRef<'_, S>,
    parent: InnerRef<'_, S>,
) {
    if CHANGES_ARE_CHECKED {
        range_changes_under_locks(left, Some(parent));
        range_changes_under_locks(right, Some(parent));
        if let Kind::Leaf(left) = left.kind() {
            assert!(
                left.next() == Some(right.as_non_null()),
                "invariant 7 of OlcBTree: a merge does not empty the right one of two neighbours"
            );
        }
    }
}

/// Checks a node that the caller has just filled, and has not yet linked.
#[inline]
pub(super) fn check_made<S: Spec>(node: NodeRef<'_, S>) {
    if CHANGES_ARE_CHECKED {
        hints_equal_their_heads(node);
        windows_show_keys(node);
    }
}

/// Checks the link from a new leaf to the right. Another thread may change its entries by now.
#[inline]
pub(super) fn check_linked<S: Spec>(leaf: LeafRef<'_, S>) {
    if CHANGES_ARE_CHECKED {
        neighbours_lead_to_each_other(leaf);
    }
}

/// Checks nodes that the caller has changed and still holds.
#[inline]
pub(super) fn check_changed<S: Spec, const N: usize>(nodes: [NodeRef<'_, S>; N]) {
    if CHANGES_ARE_CHECKED {
        for node in nodes {
            hints_equal_their_heads(node);
            windows_show_keys(node);
            if let Kind::Leaf(leaf) = node.kind() {
                neighbours_lead_to_each_other(leaf);
            }
        }
    }
}

/// Checks a node that the caller has just unlinked.
#[inline]
pub(super) fn check_unlinked<S: Spec>(node: NodeRef<'_, S>) {
    if CHANGES_ARE_CHECKED {
        obsolete_is_what_was_unlinked(node, false);
    }
}

impl<S: Spec> Tree<S> {
    /// Checks invariant 5 before the link to the root changes.
    #[inline]
    pub(super) fn check_before_new_root(&self, root: NodeRef<'_, S>) {
        if CHANGES_ARE_CHECKED {
            assert!(
                is_held(root.lock()),
                "invariant 5 of OlcBTree: the link to the root changes, and the root is not locked"
            );
        }
    }

    /// Panics, and names the invariant, if one does not hold. No other thread may use the tree
    /// meanwhile.
    pub(super) fn check_at_rest(&self) {
        let guard = &self.collector.pin();
        let root = self.root(guard).expect("no thread disturbs a tree at rest");
        let (mut leaves, mut inner_nodes, mut entries) = (Vec::new(), 0, 0);
        let mut ahead = vec![(root.node, None, None)];
        while let Some((node, low, high)) = ahead.pop() {
            keys_are_between_separators(node, low, high);
            hints_equal_their_heads(node);
            windows_show_keys(node);
            keys_ascend(node);
            obsolete_is_what_was_unlinked(node, true);
            match node.kind() {
                Kind::Leaf(leaf) => {
                    entries += leaf.count();
                    leaves.push(leaf);
                }
                Kind::Inner(inner) => {
                    inner_nodes += 1;
                    for at in (0..=inner.count()).rev() {
                        let child = inner.child(at).expect("a node has all its children");
                        // SAFETY: the children of a tree at rest are linked.
                        let child = unsafe { NodeRef::from_raw(child) };
                        child_is_one_level_below(inner, child);
                        let low = at.checked_sub(1).map_or(low, |at| Some(inner.key(at)));
                        let high = (at < inner.count()).then(|| inner.key(at)).or(high);
                        ahead.push((child, low, high));
                    }
                }
            }
        }
        for (number, leaf) in leaves.iter().enumerate() {
            neighbours_lead_to_each_other(*leaf);
            let next = leaves.get(number + 1).map(|next| next.as_non_null());
            assert!(
                leaf.next() == next,
                "invariant 6 of OlcBTree: a leaf leads past its neighbour"
            );
        }
        assert!(
            *leaves[0] == *self.first(guard) && leaves[0].prev().is_none(),
            "invariant 7 of OlcBTree: the first leaf is not the one that the tree began with"
        );
        let shape = self.describe("");
        let counted = ["leaves", "inner_nodes", "entries"].map(|name| shape.get(name));
        let found = [leaves.len(), inner_nodes, entries].map(|count| Some(count as u64));
        assert_eq!(counted, found, "OlcBTree has miscounted its parts");
    }
}
