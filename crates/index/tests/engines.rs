//! Every engine against the contract of an ordered index: one suite (`support/suite.rs`), run
//! for each engine with each container.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/engines.rs"]
mod rows;
mod support;

use rows::{engine, engine_under_panics, registered, registered_under_panics};
use support::{restless, restless_lfca};
use tremula_index::key::{ByteHead, NoHead};
use tremula_index::*;

/// A tree that keeps splitting and joining.
fn restless_ca_tree<K, V>() -> CaTree<K, V>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    CaTree::with_config(restless())
}

/// A lock-free tree that keeps splitting and joining, with keys that can only be compared.
fn restless_lfca_tree<K: Ord + Storable, V: Storable>() -> LfcaTree<K, V, NoHead> {
    LfcaTree::with_config(restless_lfca())
}

/// A lock-free tree that splits at every other update, even without contention.
fn splitting_lfca_tree<K: Ord + Storable, V: Storable>() -> LfcaTree<K, V, NoHead> {
    LfcaTree::with_config(restless_lfca().uncontended(1))
}

/// A B-tree with nodes so small that it keeps splitting and merging them.
fn low_b_tree<K: ByteKey, V>() -> OlcBTree<K, V, ByteHead, 0>
where
    V: Clone + Send + Sync + 'static,
{
    OlcBTree::default()
}

/// The same with keys that can only be compared.
fn low_b_tree_without_heads<K, V>() -> OlcBTree<K, V, NoHead, 0>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    OlcBTree::default()
}

/// An Aspen with leaves of at most one unit.
fn low_aspen<K: ByteKey, V: Storable>() -> Aspen<K, V, ByteHead, 1> {
    Aspen::default()
}

/// A trie of B+trees with nodes so small that it keeps splitting and merging them.
fn low_masstree<K: ByteKey, V: Storable>() -> Masstree<K, V, 3> {
    Masstree::default()
}

tremula_index::index_engines!(each registered);

engine!(restless_ca_tree_on_b_tree, restless_ca_tree);
engine!(restless_lock_free_ca_tree, restless_lfca_tree);
engine!(splitting_lock_free_ca_tree, splitting_lfca_tree);
engine!(b_tree_of_small_nodes, low_b_tree);
engine!(b_tree_without_heads, low_b_tree_without_heads);
engine!(aspen_of_small_leaves, low_aspen);
engine!(masstree_of_small_nodes, low_masstree);

mod panics_leave_usable {
    use super::*;

    tremula_index::index_engines!(each registered_under_panics);
}

engine_under_panics!(panics_leave_ca_tree_usable, restless_ca_tree);
engine_under_panics!(panics_leave_lock_free_ca_tree_usable, restless_lfca_tree);
engine_under_panics!(
    panics_leave_lock_free_ca_tree_of_many_base_nodes_usable,
    splitting_lfca_tree
);
engine_under_panics!(panics_leave_b_tree_usable, low_b_tree);
engine_under_panics!(
    panics_leave_b_tree_without_heads_usable,
    low_b_tree_without_heads
);
engine_under_panics!(panics_leave_aspen_of_small_leaves_usable, low_aspen);
engine_under_panics!(panics_leave_masstree_of_small_nodes_usable, low_masstree);
