//! Every engine against the contract of an ordered index: one suite (`support/suite.rs`), run
//! for each engine with each container.
#![cfg(not(any(loom, shuttle)))]

mod support;

use support::{
    bw_of_spread_leaves, bw_with_deltas, bw_with_merge_deltas, restless, restless_bw, restless_lfca,
};
use tremula_index::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_index::container::{Avl, BTree};
use tremula_index::key::{ByteHead, NoHead};
use tremula_index::lfca_tree::LfcaTreeConfig;
use tremula_index::{
    Art, BackgroundSkipList, BwTree, ByteKey, CaTree, LfcaTree, Locked, Masstree, OlcBTree,
    SkipList, Storable,
};

/// Runs the suite for the engine that a generic function makes.
macro_rules! engine {
    ($name:ident, $make:path) => {
        mod $name {
            use super::support::suite;
            use super::*;

            #[test]
            fn random_operations_match_a_model() {
                suite::model::<u64, u64, _>($make);
            }

            #[test]
            fn random_operations_on_strings_match_a_model() {
                suite::model::<String, String, _>($make);
            }

            #[test]
            fn random_operations_on_pairs_match_a_model() {
                suite::model::<(u8, String), u64, _>($make);
            }

            #[test]
            fn random_operations_on_byte_strings_without_values_match_a_model() {
                suite::model::<Box<[u8]>, (), _>($make);
            }

            #[test]
            fn writers_of_disjoint_keys_do_not_disturb_one_another() {
                suite::disjoint_writers($make);
            }

            #[test]
            fn no_increment_is_lost() {
                suite::counters($make);
            }

            #[test]
            fn of_threads_that_insert_one_key_if_absent_one_wins() {
                suite::one_winner($make);
            }

            #[test]
            fn a_key_inserted_if_absent_serves_as_a_lock() {
                suite::keys_as_locks($make);
            }

            #[test]
            fn each_entry_is_popped_once() {
                suite::pops($make);
            }

            #[test]
            fn the_closure_of_range_may_write() {
                suite::range_may_write($make);
            }

            #[test]
            fn everything_made_is_dropped_once() {
                suite::drops($make);
            }
        }
    };
}

/// Runs the tests of panics for the engine that a generic function makes.
macro_rules! engine_under_panics {
    ($name:ident, $make:path) => {
        #[test]
        fn $name() {
            support::suite::panics($make);
        }
    };
}

fn locked_avl<K, V>() -> Locked<K, V, Avl<K, V>>
where
    K: Ord + Clone + Send + Sync,
    V: Clone + Send + Sync,
{
    Locked::new()
}

fn locked_b_tree<K, V>() -> Locked<K, V, BTree<K, V>>
where
    K: Ord + Clone + Send + Sync,
    V: Clone + Send + Sync,
{
    Locked::new()
}

/// A tree that adapts as it does for users.
fn ca_tree<K, V>() -> CaTree<K, V>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    CaTree::new()
}

/// A tree that keeps splitting and joining.
fn restless_ca_tree<K, V>() -> CaTree<K, V>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    CaTree::with_config(restless())
}

/// The same on the other container.
fn restless_ca_tree_avl<K, V>() -> CaTree<K, V, Avl<K, V>>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    CaTree::with_config(restless())
}

/// A lock-free tree that adapts as it does for users.
fn lfca_tree<K: ByteKey, V: Storable>() -> LfcaTree<K, V> {
    LfcaTree::new()
}

/// One that keeps splitting and joining, with keys that can only be compared.
fn restless_lfca_tree<K: Ord + Storable, V: Storable>() -> LfcaTree<K, V, NoHead> {
    LfcaTree::with_config(restless_lfca())
}

/// One that splits at every other update, though nobody is in the way.
fn splitting_lfca_tree<K: Ord + Storable, V: Storable>() -> LfcaTree<K, V, NoHead> {
    LfcaTree::with_config(LfcaTreeConfig {
        uncontended: 1,
        ..restless_lfca()
    })
}

fn skip_list<K: ByteKey, V: Storable>() -> SkipList<K, V, ByteHead> {
    SkipList::new()
}

fn skip_list_without_heads<K: Ord + Storable, V: Storable>() -> SkipList<K, V, NoHead> {
    SkipList::new()
}

/// A list whose towers a thread of its own builds.
fn background_skip_list<K: ByteKey, V: Storable>() -> BackgroundSkipList<K, V> {
    BackgroundSkipList::new()
}

/// A tree of pages.
fn b_tree<K: ByteKey, V>() -> OlcBTree<K, V>
where
    V: Clone + Send + Sync + 'static,
{
    OlcBTree::new()
}

/// The same with nodes so small that it keeps splitting and merging them.
fn low_b_tree<K: ByteKey, V>() -> OlcBTree<K, V, ByteHead, 0>
where
    V: Clone + Send + Sync + 'static,
{
    OlcBTree::new()
}

/// And with keys that can only be compared.
fn low_b_tree_without_heads<K, V>() -> OlcBTree<K, V, NoHead, 0>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    OlcBTree::new()
}

/// A radix tree.
fn art<K: ByteKey, V: Storable>() -> Art<K, V> {
    Art::new()
}

/// A trie of B+trees.
fn masstree<K: ByteKey, V: Storable>() -> Masstree<K, V> {
    Masstree::new()
}

/// The same with nodes so small that it keeps splitting and merging them.
fn low_masstree<K: ByteKey, V: Storable>() -> Masstree<K, V, 3> {
    Masstree::new()
}

/// A tree of chains of deltas.
fn bw_tree<K: ByteKey, V: Storable>() -> BwTree<K, V> {
    BwTree::new()
}

/// The same with nodes so small that it keeps splitting and merging them.
fn low_bw_tree<K: ByteKey, V: Storable>() -> BwTree<K, V> {
    BwTree::with_config(restless_bw())
}

/// The same in the original Bw-tree's ways: heap-allocated deltas, epochs of the tree, replayed
/// consolidations, plain searches.
fn original_bw_tree<K: ByteKey, V: Storable>() -> BwTree<K, V> {
    BwTree::with_config(BwTreeConfig {
        switches: BwTreeSwitches::OFF,
        ..restless_bw()
    })
}

/// A tree with one of the optimisations only.
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

/// A tree whose merges are helped by whoever meets them.
fn bw_tree_of_merge_deltas<K: ByteKey, V: Storable>() -> BwTree<K, V> {
    BwTree::with_config(bw_with_merge_deltas())
}

/// A tree of spread leaves.
fn bw_tree_of_spread_leaves<K: ByteKey, V: Storable>() -> BwTree<K, V> {
    BwTree::with_config(bw_of_spread_leaves())
}

/// And with keys that can only be compared.
fn low_bw_tree_without_heads<K: Ord + Storable, V: Storable>() -> BwTree<K, V, NoHead> {
    BwTree::with_config(restless_bw())
}

engine!(ca_tree_on_b_tree, ca_tree);
engine!(restless_ca_tree_on_b_tree, restless_ca_tree);
engine!(restless_ca_tree_on_avl, restless_ca_tree_avl);
engine!(lock_free_ca_tree, lfca_tree);
engine!(restless_lock_free_ca_tree, restless_lfca_tree);
engine!(splitting_lock_free_ca_tree, splitting_lfca_tree);
engine!(skip_list_, skip_list);
engine!(background_skip_list_, background_skip_list);
engine!(skip_list_without_heads_, skip_list_without_heads);
engine!(locked_on_avl, locked_avl);
engine!(locked_on_b_tree, locked_b_tree);
engine!(b_tree_of_pages, b_tree);
engine!(b_tree_of_small_nodes, low_b_tree);
engine!(b_tree_without_heads, low_b_tree_without_heads);
engine!(radix_tree, art);
engine!(masstree_, masstree);
engine!(masstree_of_small_nodes, low_masstree);
engine!(bw_tree_, bw_tree);
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

engine_under_panics!(panics_leave_locked_on_avl_usable, locked_avl);
engine_under_panics!(panics_leave_locked_on_b_tree_usable, locked_b_tree);
engine_under_panics!(panics_leave_ca_tree_usable, restless_ca_tree);
engine_under_panics!(panics_leave_ca_tree_on_avl_usable, restless_ca_tree_avl);
engine_under_panics!(panics_leave_lock_free_ca_tree_usable, restless_lfca_tree);
engine_under_panics!(
    panics_leave_lock_free_ca_tree_of_many_base_nodes_usable,
    splitting_lfca_tree
);
engine_under_panics!(panics_leave_skip_list_usable, skip_list_without_heads);
engine_under_panics!(panics_leave_b_tree_usable, low_b_tree);
engine_under_panics!(
    panics_leave_b_tree_without_heads_usable,
    low_b_tree_without_heads
);
engine_under_panics!(panics_leave_radix_tree_usable, art);
engine_under_panics!(panics_leave_masstree_usable, masstree);
engine_under_panics!(panics_leave_masstree_of_small_nodes_usable, low_masstree);
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
