//! The OpenBw-Tree with deltas that the default does not have, in inner nodes and for splits, and
//! with spread leaves. Under loom an inner node has at most one delta, and a spread leaf two
//! sub-chains of one delta each: one of odd keys, one of even ones.

use super::bw_tree::{Tree, assert_sound, figure, keys};
use std::sync::atomic::{AtomicBool, Ordering};
use tremula_index::OrderedIndex;
use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

fn with_deltas(keys: impl IntoIterator<Item = u32>) -> Arc<Tree> {
    let switches = BwTreeSwitches {
        whole_inner_nodes: false,
        whole_splits: false,
        ..BwTreeSwitches::ON
    };
    let config = BwTreeConfig::default();
    filled(BwTreeConfig { switches, ..config }, keys)
}

/// Every leaf that has two entries is spread when it is consolidated.
fn with_spread_leaves(keys: impl IntoIterator<Item = u32>) -> Arc<Tree> {
    let config = BwTreeConfig {
        leaf_contention: 0,
        ..BwTreeConfig::default()
    };
    filled(config, keys)
}

pub(super) fn filled(config: BwTreeConfig, keys: impl IntoIterator<Item = u32>) -> Arc<Tree> {
    let tree = Tree::with_config(config);
    for key in keys {
        tree.insert(key, key);
    }
    Arc::new(tree)
}

/// Two leaves are split at once: one separator comes as a delta, the other with a new base node. It
/// would fail if a split delta hid keys that it does not move, or the parent led to the wrong
/// child.
#[test]
fn separators_of_a_bw_tree_are_prepended_while_their_node_is_consolidated() {
    check(
        "separators_of_a_bw_tree_are_prepended_while_their_node_is_consolidated",
        2,
        || {
            let tree = with_deltas([10, 20, 30, 40, 50, 60, 25, 70]);
            let splits = figure(&tree, "splits");
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || assert_eq!(other.insert(26, 26), None));
            assert_eq!(tree.insert(80, 80), None);
            assert_eq!(tree.get(&30), Some(30));
            writer.join().unwrap();
            assert_eq!(figure(&tree, "splits"), splits + 2, "nothing was split");
            assert_sound(&tree, &[10, 20, 25, 26, 30, 40, 50, 60, 70, 80]);
        },
    );
}

/// A writer comes to a leaf while it gets a split delta, once for a key that moves, once for one
/// that does not.
#[test]
fn a_split_delta_of_a_bw_tree_loses_no_write() {
    check("a_split_delta_of_a_bw_tree_loses_no_write", 2, || {
        let tree = with_deltas([10, 20, 30, 40, 50, 60, 25]);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert(28, 28), None);
            assert_eq!(other.insert(10, 11), Some(10));
            assert_eq!(other.get(&25), Some(25));
        });
        assert_eq!(tree.insert(26, 26), None);
        assert_eq!(tree.get(&30), Some(30));
        writer.join().unwrap();
        assert_eq!(tree.get(&10), Some(11));
        assert_sound(&tree, &[10, 20, 25, 26, 28, 30, 40, 50, 60]);
    });
}

/// One thread empties a leaf, which is merged, so that its separator is deleted. The other splits a
/// leaf under the same parent, so that another separator is inserted.
#[test]
fn a_separator_of_a_bw_tree_is_deleted_while_another_is_inserted() {
    check(
        "a_separator_of_a_bw_tree_is_deleted_while_another_is_inserted",
        2,
        || {
            let tree = with_deltas([10, 20, 30, 40, 50, 60, 70, 80, 90, 100]);
            for key in [40, 50] {
                tree.remove(&key);
            }
            let other = Arc::clone(&tree);
            let remover = thread::spawn(move || assert_eq!(other.remove(&60), Some(60)));
            assert_eq!(tree.insert(110, 110), None);
            remover.join().unwrap();
            assert_sound(&tree, &[10, 20, 30, 70, 80, 90, 100, 110]);
        },
    );
}

/// A writer has come to a spread leaf, which another thread replaces. It would fail if a sub-chain
/// could be written to once it has been copied.
#[test]
fn a_delta_of_a_bw_tree_is_not_lost_when_a_spread_leaf_is_replaced() {
    check(
        "a_delta_of_a_bw_tree_is_not_lost_when_a_spread_leaf_is_replaced",
        3,
        || {
            let tree = with_spread_leaves([2, 3]);
            assert_eq!(figure(&tree, "spread_leaves"), 1);
            let other = Arc::clone(&tree);
            // 3 by its index and 6 by its hash have the same sub-chain, which has room for one
            // delta.
            let writer = thread::spawn(move || {
                assert_eq!(other.insert(6, 6), None);
                assert_eq!(other.get(&6), Some(6));
            });
            assert_eq!(tree.insert(3, 33), Some(3));
            assert_eq!(tree.get(&3), Some(33));
            writer.join().unwrap();
            assert_eq!(tree.get(&3), Some(33));
            assert_sound(&tree, &[2, 3, 6]);
        },
    );
}

/// A scan makes a spread leaf whole, while one thread changes both of its sub-chains.
#[test]
fn a_snapshot_of_a_spread_leaf_of_a_bw_tree_is_of_one_moment() {
    check(
        "a_snapshot_of_a_spread_leaf_of_a_bw_tree_is_of_one_moment",
        3,
        || {
            let tree = with_spread_leaves([2, 3]);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                let seen = keys(&other);
                assert!(
                    [&[2, 3][..], &[2, 3, 4], &[2, 3, 4, 5]].contains(&&*seen),
                    "{seen:?}"
                );
            });
            tree.insert(4, 4);
            tree.insert(5, 5);
            reader.join().unwrap();
            assert_sound(&tree, &[2, 3, 4, 5]);
        },
    );
}

/// Two threads compete for a leaf: in some interleaving it is spread. When one of them goes on
/// alone, the leaf is made whole again in all interleavings.
#[test]
fn a_leaf_of_a_bw_tree_that_is_fought_over_is_spread_until_it_is_quiet() {
    static SPREAD: AtomicBool = AtomicBool::new(false);
    check(
        "a_leaf_of_a_bw_tree_that_is_fought_over_is_spread_until_it_is_quiet",
        2,
        || {
            let tree = filled(BwTreeConfig::default(), [1, 2]);
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || assert_eq!(other.insert(4, 4), None));
            assert_eq!(tree.insert(5, 5), None);
            writer.join().unwrap();
            let spreads = figure(&tree, "spreads");
            SPREAD.fetch_or(spreads > 0, Ordering::Relaxed);
            for key in 6..12 {
                tree.insert(key, key);
            }
            assert_eq!(figure(&tree, "spread_leaves"), 0);
            assert_eq!(figure(&tree, "spreads"), spreads);
            assert_eq!(figure(&tree, "made_whole"), spreads);
            assert_sound(&tree, &[1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
        },
    );
    assert!(SPREAD.load(Ordering::Relaxed), "no leaf was ever spread");
}
