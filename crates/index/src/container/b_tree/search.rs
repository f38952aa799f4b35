//! Searching within a node, and down the tree.

use super::BTree;
use super::node::{Leaf, Node};
use std::cmp::Ordering;

/// How many of the ascending `keys` lie below `key`, or at it if `or_equal`.
#[inline]
fn rank<K: Ord>(keys: &[K], key: &K, or_equal: bool) -> usize {
    let below = |other: &K| match other.cmp(key) {
        Ordering::Less => true,
        Ordering::Equal => or_equal,
        Ordering::Greater => false,
    };
    if const { !std::mem::needs_drop::<K>() && size_of::<K>() <= SAMPLED_BYTES } {
        rank_sampled(keys, below)
    } else {
        // Branches on purpose: a comparison of such keys may miss the cache, and a predicted
        // branch lets the next one begin meanwhile. (`partition_point` chooses without.)
        let (mut low, mut high) = (0, keys.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if below(&keys[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Keys of at most this many bytes are searched by sampling.
const SAMPLED_BYTES: usize = 16;

/// Every so many keys are compared first: with keys of eight bytes, one on each cache line.
const SAMPLE: usize = 8;

/// Counts the runs of [`SAMPLE`] keys that lie wholly below, then the keys below in the next
/// run: about 2 × 8 comparisons in a node of 64, against 6 of a binary search. But none of them
/// waits for another, so the node's cache lines arrive together instead of one after the other,
/// and nothing is there to be mispredicted.
#[inline]
fn rank_sampled<K>(keys: &[K], below: impl Fn(&K) -> bool) -> usize {
    let runs = keys.chunks_exact(SAMPLE);
    let whole: usize = runs.map(|run| usize::from(below(&run[SAMPLE - 1]))).sum();
    let rest = &keys[whole * SAMPLE..];
    let rest = &rest[..rest.len().min(SAMPLE)];
    whole * SAMPLE
        + rest
            .iter()
            .map(|other| usize::from(below(other)))
            .sum::<usize>()
}

/// How many of `keys` lie below `key`.
#[inline]
pub(super) fn below<K: Ord>(keys: &[K], key: &K) -> usize {
    rank(keys, key, false)
}

/// How many of `keys` lie at or below `key`: in an inner node, the child that `key` belongs
/// to.
#[inline]
pub(super) fn at_or_below<K: Ord>(keys: &[K], key: &K) -> usize {
    rank(keys, key, true)
}

/// Where `key` is among the keys of a leaf, or where it belongs.
#[inline]
pub(super) fn find<K: Ord>(keys: &[K], key: &K) -> Result<usize, usize> {
    let at = below(keys, key);
    if keys
        .get(at)
        .is_some_and(|found| found.cmp(key) == Ordering::Equal)
    {
        Ok(at)
    } else {
        Err(at)
    }
}

pub(super) fn is_ascending<K: Ord>(keys: &[K]) -> bool {
    keys.is_sorted_by(|a, b| a < b)
}

impl<K: Ord, V, const N: usize> BTree<K, V, N> {
    /// The leaf that `key` is in, if it is anywhere.
    #[inline]
    pub(super) fn leaf_of(&self, key: &K) -> Option<&Leaf<K, V, N>> {
        let mut node = self.root.as_ref()?;
        loop {
            match node {
                Node::Leaf(leaf) => return Some(leaf),
                Node::Inner(inner) => node = &inner.children()[at_or_below(inner.keys(), key)],
            }
        }
    }

    /// The entry with the smallest key above `key`.
    #[inline]
    pub(super) fn entry_above(&self, key: &K) -> Option<(&K, &V)> {
        let mut node = self.root.as_ref()?;
        // The nearest subtree to the right of the path.
        let mut right = None;
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = at_or_below(inner.keys(), key);
                    right = inner.children().get(at + 1).or(right);
                    node = &inner.children()[at];
                }
                Node::Leaf(leaf) => {
                    let at = at_or_below(leaf.keys(), key);
                    return match leaf.keys().get(at) {
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
        let mut node = self.root.as_ref()?;
        // The nearest subtree to the left of the path.
        let mut left = None;
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = below(inner.keys(), key);
                    left = at.checked_sub(1).map(|at| &inner.children()[at]).or(left);
                    node = &inner.children()[at];
                }
                Node::Leaf(leaf) => {
                    return match below(leaf.keys(), key).checked_sub(1) {
                        Some(at) => Some((&leaf.keys()[at], &leaf.values()[at])),
                        None => left.map(Node::last),
                    };
                }
            }
        }
    }
}
