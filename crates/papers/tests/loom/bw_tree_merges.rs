//! The OpenBw-Tree with the deltas of the paper's merges: any thread that meets them helps. Under
//! loom a leaf has room for two deltas, is split above three entries, and merged with one or none.
//! So ascending inserts make leaves of three entries, then of four, and one with the last entry.

use super::bw_tree::{Tree, assert_sound, figure, keys};
use super::bw_tree_deltas::filled;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicUsize, Ordering};
use tremula_index::{Direction, KeyRange, OrderedIndex};
use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

/// The default, but for the merges; leaves are spread only in the test that is about that.
const SWITCHES: BwTreeSwitches = BwTreeSwitches {
    held_merges: false,
    spread_leaves: false,
    ..BwTreeSwitches::ON
};

fn tree(keys: impl IntoIterator<Item = u32>) -> Arc<Tree> {
    tree_with(SWITCHES, keys)
}

fn tree_with(switches: BwTreeSwitches, keys: impl IntoIterator<Item = u32>) -> Arc<Tree> {
    let config = BwTreeConfig::default();
    filled(BwTreeConfig { switches, ..config }, keys)
}

/// Leaves of [10 20 30], [40 70], [80]: removing the last key removes the last leaf, too.
fn three_leaves(switches: BwTreeSwitches) -> Arc<Tree> {
    let tree = tree_with(switches, [10, 20, 30, 40, 50, 60, 70, 80]);
    for key in [50, 60] {
        tree.remove(&key);
    }
    assert_eq!((figure(&tree, "leaves"), figure(&tree, "merges")), (3, 0));
    tree
}

/// A write to the right node before, during and after the merge.
#[test]
fn a_write_to_a_node_of_a_bw_tree_that_is_being_merged_away_is_not_lost() {
    static MERGES: AtomicUsize = AtomicUsize::new(0);
    check(
        "a_write_to_a_node_of_a_bw_tree_that_is_being_merged_away_is_not_lost",
        3,
        || {
            let tree = three_leaves(SWITCHES);
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || {
                assert_eq!(other.insert(90, 90), None);
                assert_eq!(other.get(&90), Some(90));
            });
            assert_eq!(tree.remove(&80), Some(80));
            assert_eq!(tree.get(&80), None);
            writer.join().unwrap();
            MERGES.fetch_add(figure(&tree, "merges") as usize, Ordering::Relaxed);
            assert_sound(&tree, &[10, 20, 30, 40, 70, 90]);
        },
    );
    assert!(
        MERGES.load(Ordering::Relaxed) > 0,
        "nothing was ever merged"
    );
}

/// The left node is written to, and split, during the merge: the half next to the right node
/// absorbs it.
#[test]
fn the_left_node_of_a_merge_in_a_bw_tree_is_split_meanwhile() {
    static BOTH: AtomicUsize = AtomicUsize::new(0);
    check(
        "the_left_node_of_a_merge_in_a_bw_tree_is_split_meanwhile",
        3,
        || {
            let tree = three_leaves(SWITCHES);
            let splits = figure(&tree, "splits");
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || {
                for key in [50, 60] {
                    assert_eq!(other.insert(key, key), None);
                }
            });
            assert_eq!(tree.remove(&80), Some(80));
            writer.join().unwrap();
            if figure(&tree, "splits") > splits && figure(&tree, "merges") > 0 {
                BOTH.fetch_add(1, Ordering::Relaxed);
            }
            assert_sound(&tree, &[10, 20, 30, 40, 50, 60, 70]);
        },
    );
    assert!(BOTH.load(Ordering::Relaxed) > 0, "never split and merged");
}

/// Two children of a node are merged, and another child is split: its separator fills the node,
/// which is split, too. It would fail if one of the two changes of the parent were lost, or the
/// parent were split while it has the abort delta.
#[test]
fn the_parent_of_a_merge_in_a_bw_tree_is_split_meanwhile() {
    static BOTH: AtomicUsize = AtomicUsize::new(0);
    check(
        "the_parent_of_a_merge_in_a_bw_tree_is_split_meanwhile",
        3,
        || {
            let tree = tree((10..=150).step_by(10));
            for key in [40, 50, 60, 10] {
                tree.remove(&key);
            }
            let (merges, splits) = (figure(&tree, "merges"), figure(&tree, "splits"));
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || assert_eq!(other.insert(160, 160), None));
            assert_eq!(tree.remove(&20), Some(20));
            writer.join().unwrap();
            // One split of the leaf, one of its parent.
            if figure(&tree, "splits") == splits + 2 && figure(&tree, "merges") > merges {
                BOTH.fetch_add(1, Ordering::Relaxed);
            }
            let left = [30, 70].into_iter().chain((80..=160).step_by(10));
            assert_sound(&tree, &Vec::from_iter(left));
        },
    );
    assert!(BOTH.load(Ordering::Relaxed) > 0, "never split and merged");
}

/// A reader of the right node and a writer of the left one meet the merge, and help: it happens
/// once.
#[test]
fn three_threads_help_one_merge_of_a_bw_tree() {
    check("three_threads_help_one_merge_of_a_bw_tree", 3, || {
        let tree = three_leaves(SWITCHES);
        let (left, right) = (Arc::clone(&tree), Arc::clone(&tree));
        let writer = thread::spawn(move || assert_eq!(left.insert(70, 71), Some(70)));
        let reader = thread::spawn(move || assert_eq!(right.get(&90), None));
        assert_eq!(tree.remove(&80), Some(80));
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(figure(&tree, "merges"), 1);
        assert_eq!(tree.get(&70), Some(71));
        assert_sound(&tree, &[10, 20, 30, 40, 70]);
    });
}

/// A writer that came to the parent before it knew the right node writes to the left one, after
/// that has absorbed the right one. Then it comes to the right one, to which the parent still
/// leads, and must not find its old contents.
#[test]
fn what_a_node_of_a_bw_tree_had_is_not_read_when_it_is_being_merged_away() {
    check(
        "what_a_node_of_a_bw_tree_had_is_not_read_when_it_is_being_merged_away",
        3,
        || {
            let tree = tree([10, 20, 30, 40, 50, 60, 70]);
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || {
                assert_eq!(other.insert(90, 90), None);
                assert_eq!(other.get(&90), Some(90));
            });
            assert_eq!(tree.insert(80, 80), None);
            assert_eq!(tree.remove(&70), Some(70));
            assert_eq!(tree.remove(&80), Some(80));
            writer.join().unwrap();
            assert_sound(&tree, &[10, 20, 30, 40, 50, 60, 90]);
        },
    );
}

/// Walks and snapshots in both directions meet a merge.
#[test]
fn scans_of_a_bw_tree_meet_a_merge() {
    for direction in [Direction::Ascending, Direction::Descending] {
        check("scans_of_a_bw_tree_meet_a_merge", 3, move || {
            let tree = three_leaves(SWITCHES);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                let mut seen = Vec::new();
                other.range(KeyRange::all(), direction, &mut |key, _| {
                    seen.push(*key);
                    ControlFlow::Continue(())
                });
                if direction == Direction::Descending {
                    seen.reverse();
                }
                for seen in [seen, keys(&other)] {
                    let all = [10, 20, 30, 40, 70, 80];
                    assert!(seen == all || seen == all[..5], "{seen:?}");
                }
            });
            assert_eq!(tree.remove(&80), Some(80));
            reader.join().unwrap();
            assert_eq!(figure(&tree, "merges"), 1);
            assert_sound(&tree, &[10, 20, 30, 40, 70]);
        });
    }
}

/// A range removal holds the left node, and then wants the right one, which is being merged into
/// it.
#[test]
fn a_range_is_removed_from_nodes_of_a_bw_tree_that_are_being_merged() {
    check(
        "a_range_is_removed_from_nodes_of_a_bw_tree_that_are_being_merged",
        3,
        || {
            let tree = three_leaves(SWITCHES);
            let other = Arc::clone(&tree);
            let remover = thread::spawn(move || {
                let range = KeyRange::new(Bound::Included(&70), Bound::Unbounded);
                let removed = other.remove_range(range);
                assert!(removed == 1 || removed == 2, "{removed}");
                assert_eq!(other.get(&70), None);
            });
            tree.remove(&80);
            remover.join().unwrap();
            assert_sound(&tree, &[10, 20, 30, 40]);
        },
    );
}

/// The last entry is popped from a node that is being merged away.
#[test]
fn entries_are_popped_from_nodes_of_a_bw_tree_that_are_being_merged() {
    check(
        "entries_are_popped_from_nodes_of_a_bw_tree_that_are_being_merged",
        3,
        || {
            let tree = three_leaves(SWITCHES);
            let other = Arc::clone(&tree);
            let popper = thread::spawn(move || {
                let popped = other.pop_last();
                assert!(popped == Some((80, 80)) || popped == Some((70, 70)));
                popped == Some((80, 80))
            });
            let removed = tree.remove(&80).is_some();
            let popped = popper.join().unwrap();
            assert!(removed != popped);
            let all = [10, 20, 30, 40, 70];
            assert_sound(&tree, &all[..if popped { 5 } else { 4 }]);
        },
    );
}

/// The left node is a spread leaf, and a sub-chain of it is written to.
#[test]
fn a_spread_leaf_of_a_bw_tree_takes_in_another() {
    check("a_spread_leaf_of_a_bw_tree_takes_in_another", 3, || {
        let config = BwTreeConfig {
            leaf_contention: 0,
            switches: BwTreeSwitches {
                spread_leaves: true,
                ..SWITCHES
            },
            ..BwTreeConfig::default()
        };
        // The last two are written again, so the leaf of three is spread. (4 and 6 have different
        // sub-chains, 4 and 5 the same: a leaf with only one busy sub-chain becomes whole.)
        let tree = filled(config, [1, 2, 3, 4, 6, 1, 2]);
        tree.remove(&4);
        assert_eq!(figure(&tree, "spread_leaves"), 2);
        let merges = figure(&tree, "merges");
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            for key in [2, 1] {
                assert_eq!(other.insert(key, key + 20), Some(key));
            }
        });
        assert_eq!(tree.remove(&6), Some(6));
        writer.join().unwrap();
        assert!(figure(&tree, "merges") > merges);
        assert_eq!((tree.get(&1), tree.get(&2)), (Some(21), Some(22)));
        assert_sound(&tree, &[1, 2, 3]);
    });
}

/// The deltas of a merge delete one separator, and another comes as a delta.
#[test]
fn a_merge_of_a_bw_tree_meets_deltas_of_its_parent() {
    static BOTH: AtomicUsize = AtomicUsize::new(0);
    check("a_merge_of_a_bw_tree_meets_deltas_of_its_parent", 3, || {
        let switches = BwTreeSwitches {
            whole_inner_nodes: false,
            whole_splits: false,
            ..SWITCHES
        };
        let tree = three_leaves(switches);
        tree.insert(11, 11);
        let (merges, splits) = (figure(&tree, "merges"), figure(&tree, "splits"));
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || assert_eq!(other.insert(12, 12), None));
        assert_eq!(tree.remove(&80), Some(80));
        writer.join().unwrap();
        if figure(&tree, "splits") > splits && figure(&tree, "merges") > merges {
            BOTH.fetch_add(1, Ordering::Relaxed);
        }
        assert_sound(&tree, &[10, 11, 12, 20, 30, 40, 70]);
    });
    assert!(BOTH.load(Ordering::Relaxed) > 0, "never split and merged");
}
