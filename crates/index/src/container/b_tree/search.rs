//! Searching down the tree.

use super::BTree;
use super::keys::{Probe, SearchKey};
use super::node::{Leaf, Node};
use crate::key::KeyHead;

impl<K: Ord, V, H: KeyHead<K>, const N: usize> BTree<K, V, H, N> {
    /// The only leaf that can hold `key`.
    #[inline]
    pub(super) fn leaf_of(&self, key: impl Probe<K, H>) -> Option<&Leaf<K, V, H, N>> {
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Leaf(leaf) => return Some(leaf),
                Node::Inner(inner) => node = &inner.children()[inner.keys().at_or_below(key)],
            }
        }
    }

    /// The value under `key`.
    #[inline]
    pub(super) fn value_of(&self, key: impl Probe<K, H>) -> Option<&V> {
        let leaf = self.leaf_of(key)?;
        let at = leaf.keys().find(key).ok()?;
        Some(&leaf.values()[at])
    }

    /// The entry with the smallest key above `key`.
    #[inline]
    pub(super) fn entry_above(&self, key: &K) -> Option<(&K, &V)> {
        let key = SearchKey::new(key);
        let mut node = self.root.as_ref()?;
        // The subtree next to the path on its right.
        let mut right = None;
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = inner.keys().at_or_below(key);
                    right = inner.children().get(at + 1).or(right);
                    node = &inner.children()[at];
                }
                Node::Leaf(leaf) => {
                    let at = leaf.keys().at_or_below(key);
                    return match leaf.keys().keys.get(at) {
                        Some(key) => Some((key, &leaf.values()[at])),
                        None => right.map(Node::first),
                    };
                }
            }
        }
    }

    /// The entry with the largest key below `key`.
    #[inline]
    pub(super) fn entry_below(&self, key: &K) -> Option<(&K, &V)> {
        let key = SearchKey::new(key);
        let mut node = self.root.as_ref()?;
        // The subtree next to the path on its left.
        let mut left = None;
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = inner.keys().below(key);
                    left = at.checked_sub(1).map(|at| &inner.children()[at]).or(left);
                    node = &inner.children()[at];
                }
                Node::Leaf(leaf) => {
                    return match leaf.keys().below(key).checked_sub(1) {
                        Some(at) => Some((&leaf.keys().keys[at], &leaf.values()[at])),
                        None => left.map(Node::last),
                    };
                }
            }
        }
    }
}
