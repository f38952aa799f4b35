//! Every container under panics in user code: the suite `suites/container_panics.rs`.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/container_panics.rs"]
mod suite;
mod support;

use suite::panics;
use tremula_index::container::BTree;
use tremula_index::key::{ByteHead, NoHead};

/// A tree of narrow nodes: deep while it is small.
type NarrowBTree<K, V> = BTree<K, V, NoHead, 4>;

#[test]
fn panics_leave_b_tree_as_it_was() {
    panics::<BTree<_, _>>();
}

#[test]
fn panics_leave_narrow_b_tree_as_it_was() {
    panics::<NarrowBTree<_, _>>();
}

#[test]
fn panics_leave_headed_b_tree_as_it_was() {
    panics::<BTree<_, _, ByteHead, 4>>();
}
