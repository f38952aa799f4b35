//! The engines and the container of this crate against the contract of an ordered index: the suite
//! of `tremula-index` (`support/suite.rs` there).
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/engines.rs"]
mod rows;
mod support;

use rows::{engine, engine_under_panics, registered, registered_under_panics};
use support::{bw_of_spread_leaves, bw_with_deltas, bw_with_merge_deltas, restless, restless_bw};
use tremula_index::key::NoHead;
use tremula_index::{ByteKey, CaTree, Locked, Storable};
use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_papers::*;

fn locked_avl<K, V>() -> Locked<K, V, NoHead, Avl<K, V>>
where
    K: Ord + Clone + Send + Sync,
    V: Clone + Send + Sync,
{
    Locked::default()
}

/// The same on the other container.
fn restless_ca_tree_avl<K, V>() -> CaTree<K, V, NoHead, Avl<K, V>>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    CaTree::with_config(restless())
}

fn skip_list_without_heads<K: Ord + Storable, V: Storable>() -> SkipList<K, V, NoHead> {
    SkipList::new()
}

/// Nodes so small that the tree keeps splitting and merging them.
fn low_bw_tree<K: ByteKey, V: Storable>() -> BwTree<K, V> {
    BwTree::with_config(restless_bw())
}

/// As [`low_bw_tree`], with all optimisations off: deltas on the heap, epochs of the tree, replayed
/// consolidations, plain searches.
fn original_bw_tree<K: ByteKey, V: Storable>() -> BwTree<K, V> {
    BwTree::with_config(BwTreeConfig {
        switches: BwTreeSwitches::OFF,
        ..restless_bw()
    })
}

/// A tree with only one of the optimisations.
macro_rules! bw_tree_with {
    ($($name:ident: $switch:ident;)*) => {$(
        fn $name<K: ByteKey, V: Storable>() -> BwTree<K, V> {
            BwTree::with_config(BwTreeConfig {
                switches: BwTreeSwitches { $switch: true, ..BwTreeSwitches::OFF },
                ..restless_bw()
            })
        }
    )*};
}

bw_tree_with! {
    preallocating_bw_tree: preallocation;
    bw_tree_of_local_epochs: local_epochs;
    bw_tree_of_sorted_runs: fast_consolidation;
    bw_tree_of_shortcuts: search_shortcuts;
    bw_tree_of_filters: chain_filter;
    bw_tree_of_whole_inner_nodes: whole_inner_nodes;
    bw_tree_of_whole_splits: whole_splits;
    bw_tree_that_spreads_leaves: spread_leaves;
    bw_tree_of_held_merges: held_merges;
}

/// A tree with deltas of every kind, and keys that can only be compared.
fn bw_tree_of_deltas<K: Ord + Storable, V: Storable>() -> BwTree<K, V, NoHead> {
    BwTree::with_config(bw_with_deltas())
}

/// A tree with merges by deltas, which any thread that meets them helps.
fn bw_tree_of_merge_deltas<K: ByteKey, V: Storable>() -> BwTree<K, V> {
    BwTree::with_config(bw_with_merge_deltas())
}

/// A tree of spread leaves.
fn bw_tree_of_spread_leaves<K: ByteKey, V: Storable>() -> BwTree<K, V> {
    BwTree::with_config(bw_of_spread_leaves())
}

/// A tree of small nodes, with keys that can only be compared.
fn low_bw_tree_without_heads<K: Ord + Storable, V: Storable>() -> BwTree<K, V, NoHead> {
    BwTree::with_config(restless_bw())
}

tremula_papers::paper_engines!(each registered);

engine!(restless_ca_tree_on_avl, restless_ca_tree_avl);
engine!(skip_list_without_heads, skip_list_without_heads);
engine!(locked_on_avl, locked_avl);
engine!(bw_tree_of_small_nodes, low_bw_tree);
engine!(bw_tree_without_heads, low_bw_tree_without_heads);
engine!(bw_tree_without_optimisations, original_bw_tree);
engine!(bw_tree_with_preallocation, preallocating_bw_tree);
engine!(bw_tree_with_local_epochs, bw_tree_of_local_epochs);
engine!(bw_tree_with_fast_consolidation, bw_tree_of_sorted_runs);
engine!(bw_tree_with_search_shortcuts, bw_tree_of_shortcuts);
engine!(bw_tree_with_chain_filter, bw_tree_of_filters);
engine!(bw_tree_with_whole_inner_nodes, bw_tree_of_whole_inner_nodes);
engine!(bw_tree_with_whole_splits, bw_tree_of_whole_splits);
engine!(bw_tree_with_spread_leaves, bw_tree_that_spreads_leaves);
engine!(bw_tree_with_held_merges, bw_tree_of_held_merges);
engine!(bw_tree_with_deltas_of_every_kind, bw_tree_of_deltas);
engine!(bw_tree_with_merge_deltas, bw_tree_of_merge_deltas);
engine!(bw_tree_of_spread_leaves_only, bw_tree_of_spread_leaves);

mod panics_leave_usable {
    use super::*;

    tremula_papers::paper_engines!(each registered_under_panics);
}

engine_under_panics!(panics_leave_locked_on_avl_usable, locked_avl);
engine_under_panics!(panics_leave_ca_tree_on_avl_usable, restless_ca_tree_avl);
engine_under_panics!(panics_leave_skip_list_usable, skip_list_without_heads);
engine_under_panics!(panics_leave_bw_tree_usable, low_bw_tree);
engine_under_panics!(
    panics_leave_bw_tree_without_optimisations_usable,
    original_bw_tree
);
engine_under_panics!(
    panics_leave_bw_tree_with_deltas_of_every_kind_usable,
    bw_tree_of_deltas
);
engine_under_panics!(
    panics_leave_bw_tree_with_merge_deltas_usable,
    bw_tree_of_merge_deltas
);
engine_under_panics!(
    panics_leave_bw_tree_without_heads_usable,
    low_bw_tree_without_heads
);
