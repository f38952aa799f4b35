//! The invariants of the tree ([module](super)) that speak of its state, as functions: each panics
//! and names the invariant if it does not hold.
//!
//! In a debug build, an operation checks the inner nodes that it has changed. It compares no keys:
//! that is user code, and keys may lie. [`Node::check`] checks all of a tree.
//!
//! The others speak of what an operation does, and are held by tests: 4 by
//! `removals_merge_small_nodes`, 5 by the tests of panics and by those of drops that call.

use super::keys::Row;
use super::node::{Inner, Node};
use crate::contract::KeyRange;
use crate::key::KeyHead;
use crate::kit::{CHANGES_ARE_CHECKED, Sought};
use std::ops::Bound;

impl<K, V, H: KeyHead<K>, const N: usize> Inner<K, V, H, N> {
    /// Invariant 1, of the children of a node.
    fn leaves_are_at_one_depth(&self) {
        let mut heights = self.children().iter().map(Node::height);
        let first = heights.next();
        assert!(
            heights.all(|height| Some(height) == first),
            "invariant 1 of BTree: leaves are at different depths"
        );
    }

    /// Checks a node that an operation has changed, and the sizes of its children. The node itself
    /// may be empty: then the caller unlinks it.
    #[inline]
    pub(super) fn check_changed(&self) {
        if CHANGES_ARE_CHECKED {
            self.leaves_are_at_one_depth();
            self.children().iter().for_each(Node::size_fits);
        }
    }
}

impl<K, V, H: KeyHead<K>, const N: usize> Node<K, V, H, N> {
    /// Invariant 2, of the size of a node.
    fn size_fits(&self) {
        assert!(
            (1..=N).contains(&self.len()),
            "invariant 2 of BTree: a node is empty or too large"
        );
    }
}

/// Invariants 2 and 3, of the keys of a node, which all lie within `range`.
fn keys_ascend<K: Ord, H: KeyHead<K>>(keys: &Row<'_, K, H>, range: KeyRange<'_, K>, of: &str) {
    assert!(
        keys.is_ascending(),
        "invariant 2 of BTree: the keys of {of} do not ascend"
    );
    assert!(
        keys.keys.iter().all(|key| range.contains(key)),
        "invariant 3 of BTree: a key of {of} lies on the wrong side of a key above"
    );
}

impl<K: Ord, V, H: KeyHead<K>, const N: usize> Node<K, V, H, N> {
    /// Panics, and names the invariant, unless the invariants hold in this subtree, whose keys all
    /// lie within `range`.
    pub(super) fn check(&self, range: KeyRange<'_, K>) {
        self.size_fits();
        let inner = match self {
            Self::Leaf(leaf) => return keys_ascend(&leaf.keys(), range, "a leaf"),
            Self::Inner(inner) => inner,
        };
        inner.leaves_are_at_one_depth();
        let keys = inner.keys();
        keys_ascend(&keys, range, "an inner node");
        for (at, child) in inner.children().iter().enumerate() {
            let low = match at.checked_sub(1) {
                Some(before) => Bound::Included(Sought::Key(&keys.keys[before])),
                None => range.low,
            };
            let high = keys
                .keys
                .get(at)
                .map_or(range.high, |key| Bound::Excluded(Sought::Key(key)));
            child.check(KeyRange::between(low, high));
        }
    }
}
