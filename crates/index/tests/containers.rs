//! Every container in the suite `suites/containers.rs`.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/containers.rs"]
mod suite;
mod support;

use suite::container;
use tremula_index::container::BTree;
use tremula_index::key::{ByteHead, NoHead};

container!(b_tree, BTree);
/// A tree of narrow nodes: deep while it is small.
type NarrowBTree<K, V> = BTree<K, V, NoHead, 4>;

container!(narrow_b_tree, NarrowBTree);

/// The same with heads, which distinguish some keys and not others.
type HeadedBTree<K, V> = BTree<K, V, ByteHead, 4>;

container!(headed_b_tree, HeadedBTree);
