//! The invariants about the state of the tree ([module](super)), as functions. Each panics and
//! names the invariant if it does not hold. Only a debug build calls them.
//!
//! A writer that splits or merges nodes checks them before it releases their locks.
//! [`Masstree::check_at_rest`] checks a tree that no other thread uses.
//!
//! The other invariants are about the order of events. Tests check them:
//!
//! - 3: the loom model `a_slot_that_is_filled_again_is_not_taken_for_what_it_was`,
//! - 7: shuttle programs that scan upwards and downwards at once,
//! - 8: loom models in which a reader meets a change, and the tests of reclamation,
//! - 9: the tests of panics.

use super::Masstree;
use super::node::{Node, NodeRef};
use super::record::Entry;
use super::slices::Slices;
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::kit::CHANGES_ARE_CHECKED;
use tremula_sync::VersionLock;

/// Invariant 1, for a leaf or an inner node whose lock the caller holds.
fn slices_ascend<const W: usize>(node: &Node<W>) {
    let slices: Vec<u64> = if node.level() == 0 {
        node.entries(node.order()).map(|entry| entry.0).collect()
    } else {
        (0..node.separators()).map(|at| node.slice(at)).collect()
    };
    let ascend = slices.is_sorted_by(|a, b| a < b);
    assert!(
        ascend,
        "invariant 1 of Masstree: slices do not ascend: {slices:x?}"
    );
}

fn is_held(lock: &VersionLock) -> bool {
    lock.try_lock().map(|lock| lock.unchanged()).is_err()
}

/// Invariant 2, for a node whose `version` is about to be locked.
#[inline]
pub(super) fn check_before_change<const W: usize>(node: &Node<W>) {
    if CHANGES_ARE_CHECKED {
        let is_locked = is_held(node.lock());
        assert!(
            is_locked,
            "invariant 2 of Masstree: a version is locked, and the lock is not held"
        );
    }
}

/// Invariant 4, for a leaf and its right neighbour. The caller holds the leaf's lock.
fn leaves_keep_their_bounds<const W: usize>(leaf: &Node<W>) {
    // SAFETY: the neighbour of a leaf that the caller has locked is linked.
    let next = leaf
        .next()
        .map(|next| unsafe { NodeRef::from_raw(next) }.low());
    let inside = |slice: u64| leaf.low() <= slice && next.is_none_or(|next| slice < next);
    let all_inside = leaf.entries(leaf.order()).all(|entry| inside(entry.0));
    assert!(
        all_inside && inside(leaf.low()),
        "invariant 4 of Masstree: a slice is in the wrong leaf"
    );
}

/// Invariant 5, for a node that is linked or has just been unlinked.
fn obsolete_is_what_was_unlinked<const W: usize>(node: &Node<W>, is_linked: bool) {
    let obsolete = [node.version(), node.lock()].map(VersionLock::is_obsolete);
    assert!(
        obsolete == [!is_linked; 2],
        "invariant 5 of Masstree: a node is obsolete and linked, or neither"
    );
}

/// Invariant 6, for a leaf that the caller has locked.
fn neighbours_lead_to_each_other<const W: usize>(leaf: NodeRef<'_, W>) {
    // SAFETY: the neighbour of a leaf that the caller has locked is linked.
    let next = leaf.next().map(|next| unsafe { NodeRef::from_raw(next) });
    let leads_back = next.is_none_or(|next| next.prev() == Some(leaf.pointer()));
    assert!(
        leads_back,
        "invariant 6 of Masstree: the right neighbour of a leaf does not lead back"
    );
}

/// Checks a node that the caller has changed and still holds.
#[inline]
pub(super) fn check_changed<const W: usize>(node: NodeRef<'_, W>) {
    if CHANGES_ARE_CHECKED {
        slices_ascend(node.get());
        if node.level() == 0 {
            leaves_keep_their_bounds(node.get());
            neighbours_lead_to_each_other(node);
        }
    }
}

/// Checks a node that the caller has just unlinked.
#[inline]
pub(super) fn check_unlinked<const W: usize>(node: NodeRef<'_, W>) {
    if CHANGES_ARE_CHECKED {
        obsolete_is_what_was_unlinked(node.get(), false);
    }
}

impl<K: ByteKey, V: Storable, const W: usize> Masstree<K, V, W> {
    /// Checks the whole tree. No other thread may use the tree meanwhile.
    pub(super) fn check_at_rest(&self) {
        let _guard = self.collector.pin();
        let mut layers = vec![(self.root(), Vec::new())];
        while let Some((root, path)) = layers.pop() {
            let mut leaves = Vec::new();
            check_below(root, 0, &mut leaves);
            for (number, leaf) in leaves.iter().enumerate() {
                let at = |number: usize| leaves.get(number).map(|leaf| leaf.pointer());
                let neighbours = (number.checked_sub(1).and_then(at), at(number + 1));
                let linked = (leaf.prev(), leaf.next()) == neighbours;
                assert!(
                    linked,
                    "invariant 6 of Masstree: a leaf leads past its neighbour"
                );
                let known = if K::HEAD_IS_KEY {
                    0
                } else {
                    leaf.order().count()
                };
                for (slice, word) in leaf.entries(leaf.order()).take(known) {
                    let path: Vec<u64> = path.iter().copied().chain([slice]).collect();
                    // SAFETY: the tree is at rest.
                    match unsafe { Entry::<K, W>::of_word_alone(word) } {
                        Entry::Layer(root) => layers.push((root, path)),
                        Entry::Record(record) => {
                            let agrees = record.get().key().with_bytes(|bytes| {
                                let at = |layer: usize| {
                                    Slices::<K>::at(bytes, layer * Slices::<K>::STEP)
                                };
                                path.iter()
                                    .enumerate()
                                    .all(|(layer, slice)| at(layer) == *slice)
                            });
                            assert!(
                                agrees,
                                "invariant 1 of Masstree: a key is not under its slices"
                            );
                        }
                    }
                }
            }
        }
    }
}

/// Checks a node at rest, whose least slice is `low`, and the nodes below it; appends the leaves.
fn check_below<'g, const W: usize>(
    node: NodeRef<'g, W>,
    low: u64,
    leaves: &mut Vec<NodeRef<'g, W>>,
) {
    slices_ascend(node.get());
    obsolete_is_what_was_unlinked(node.get(), true);
    let held = [node.version(), node.lock()].map(is_held);
    assert!(
        held == [false; 2],
        "invariant 2 of Masstree: a node at rest is locked"
    );
    if node.level() == 0 {
        assert!(
            node.low() == low,
            "invariant 4 of Masstree: a leaf does not begin at its separator"
        );
        leaves_keep_their_bounds(node.get());
        neighbours_lead_to_each_other(node);
        leaves.push(node);
        return;
    }
    for at in 0..=node.separators() {
        let child = node
            .child(at)
            .expect("an inner node has one child more than separators");
        // SAFETY: the child of a node at rest is linked.
        let child = unsafe { NodeRef::from_raw(child) };
        assert!(
            child.level() + 1 == node.level(),
            "invariant 5 of Masstree: leaves are not all at one depth"
        );
        check_below(
            child,
            at.checked_sub(1).map_or(low, |at| node.slice(at)),
            leaves,
        );
    }
}
