//! The OpenBw-Tree. Under loom a leaf has room for two deltas, is split above three entries, and
//! merged with one or none; inner nodes likewise.

use std::ops::{Bound, ControlFlow};
use tremula_index::{Direction, KeyRange, OrderedIndex, Update};
use tremula_papers::BwTree;
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

pub(super) type Tree = BwTree<u32, u32>;

fn tree(keys: impl IntoIterator<Item = u32>) -> Arc<Tree> {
    let tree = Tree::new();
    for key in keys {
        tree.insert(key, key);
    }
    Arc::new(tree)
}

pub(super) fn keys(tree: &Tree) -> Vec<u32> {
    let entries = tree.snapshot(KeyRange::all()).unwrap();
    entries.into_iter().map(|(key, _)| key).collect()
}

/// What is in the quiescent tree, found in all ways.
pub(super) fn assert_sound(tree: &Tree, expected: &[u32]) {
    assert_eq!(keys(tree), expected);
    let mut backward = Vec::new();
    tree.scan(
        KeyRange::all(),
        Direction::Descending,
        usize::MAX,
        &mut backward,
    );
    assert!(backward.iter().map(|(key, _)| key).rev().eq(expected));
    assert!(expected.iter().all(|key| tree.contains_key(key)));
    assert_eq!(tree.len(), expected.len());
}

pub(super) fn figure(tree: &Tree, name: &str) -> u64 {
    tree.shape().get(name).unwrap()
}

#[test]
fn a_delta_of_a_bw_tree_is_not_lost_in_a_consolidation() {
    check(
        "a_delta_of_a_bw_tree_is_not_lost_in_a_consolidation",
        3,
        || {
            let tree = tree([2]);
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || assert_eq!(other.insert(1, 1), None));
            assert_eq!(tree.insert(2, 3), Some(2));
            assert_eq!(tree.get(&2), Some(3));
            writer.join().unwrap();
            assert_sound(&tree, &[1, 2]);
        },
    );
}

/// At most two of three writers find a place in the area; a writer that finds none consolidates.
#[test]
fn an_area_of_a_bw_tree_is_claimed_while_it_is_replaced() {
    check(
        "an_area_of_a_bw_tree_is_claimed_while_it_is_replaced",
        2,
        || {
            let tree = tree([]);
            let writers = [1, 2].map(|key| {
                let tree = Arc::clone(&tree);
                thread::spawn(move || assert_eq!(tree.insert(key, key), None))
            });
            assert_eq!(tree.insert(3, 3), None);
            for writer in writers {
                writer.join().unwrap();
            }
            assert_sound(&tree, &[1, 2, 3]);
        },
    );
}

/// The right leaf is found before and after the root has its separator.
#[test]
fn a_split_of_a_bw_tree_loses_no_write() {
    check("a_split_of_a_bw_tree_loses_no_write", 2, || {
        let tree = tree([1, 2, 3, 4, 5]);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert(6, 6), None);
            assert_eq!(other.get(&5), Some(5));
        });
        assert_eq!(tree.insert(7, 7), None);
        assert_eq!(tree.get(&4), Some(4));
        writer.join().unwrap();
        assert_sound(&tree, &[1, 2, 3, 4, 5, 6, 7]);
        assert!(figure(&tree, "leaves") >= 2);
    });
}

/// One thread empties a leaf, which is merged. The other splits a leaf under the same parent, which
/// is full.
#[test]
fn a_merge_of_a_bw_tree_meets_a_split_of_its_parent() {
    check(
        "a_merge_of_a_bw_tree_meets_a_split_of_its_parent",
        3,
        || {
            let tree = tree(1..=12);
            for key in [1, 2] {
                tree.remove(&key);
            }
            let (other, third) = (Arc::clone(&tree), Arc::clone(&tree));
            let remover = thread::spawn(move || assert_eq!(other.remove(&3), Some(3)));
            let writer = thread::spawn(move || assert_eq!(third.insert(13, 13), None));
            remover.join().unwrap();
            writer.join().unwrap();
            assert_sound(&tree, &Vec::from_iter(4..=13));
        },
    );
}

#[test]
fn readers_of_a_bw_tree_find_what_is_merged() {
    check("readers_of_a_bw_tree_find_what_is_merged", 3, || {
        let tree = tree([1, 2, 3, 4, 5, 6]);
        for key in [2, 3, 4] {
            tree.remove(&key);
        }
        let merges = figure(&tree, "merges");
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let mut seen = Vec::new();
            other.range(KeyRange::all(), Direction::Descending, &mut |key, _| {
                seen.push(*key);
                ControlFlow::Continue(())
            });
            assert!(seen == [6, 5, 1] || seen == [6, 1], "{seen:?}");
            assert_eq!(other.get(&6), Some(6));
        });
        assert_eq!(tree.remove(&5), Some(5));
        reader.join().unwrap();
        assert_sound(&tree, &[1, 6]);
        assert!(figure(&tree, "merges") > merges, "nothing was merged");
    });
}

/// A reader has read the id of a leaf. The leaf is merged away, and then another leaf is split. It
/// would fail if the new leaf had the id that the reader still has: then the reader would miss its
/// key.
#[test]
fn an_id_of_a_bw_tree_is_not_used_again_too_early() {
    check("an_id_of_a_bw_tree_is_not_used_again_too_early", 2, || {
        let tree = tree([1, 2, 3, 4, 5, 6]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || assert_eq!(other.get(&4), Some(4)));
        let range = KeyRange::new(Bound::Unbounded, Bound::Included(&3));
        assert_eq!(tree.remove_range(range), 3);
        assert_eq!(figure(&tree, "leaves"), 1, "nothing was merged");
        for key in 7..=9 {
            assert_eq!(tree.insert(key, key), None);
        }
        assert_eq!(figure(&tree, "leaves"), 2, "nothing was split");
        reader.join().unwrap();
        assert_sound(&tree, &[4, 5, 6, 7, 8, 9]);
    });
}

#[test]
fn a_scan_of_a_bw_tree_upwards_meets_a_merge() {
    check("a_scan_of_a_bw_tree_upwards_meets_a_merge", 3, || {
        let tree = tree([1, 2, 3, 4, 5, 6]);
        for key in [2, 3, 4] {
            tree.remove(&key);
        }
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let mut seen = Vec::new();
            other.range(KeyRange::all(), Direction::Ascending, &mut |key, _| {
                seen.push(*key);
                ControlFlow::Continue(())
            });
            assert!(seen == [1, 5, 6] || seen == [1, 6], "{seen:?}");
            let seen = keys(&other);
            assert!(seen == [1, 5, 6] || seen == [1, 6], "{seen:?}");
        });
        assert_eq!(tree.remove(&5), Some(5));
        reader.join().unwrap();
        assert_sound(&tree, &[1, 6]);
    });
}

#[test]
fn a_range_of_a_bw_tree_is_removed_at_one_moment() {
    check("a_range_of_a_bw_tree_is_removed_at_one_moment", 3, || {
        let tree = tree([1, 2, 3, 4, 5]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            // In this order: the leaf of 2 may not change before that of 4, nor the other way
            // round.
            let (second, first) = (other.contains_key(&2), other.contains_key(&4));
            assert!(second || !first, "the beginning was removed before the end");
            let seen = keys(&other);
            assert!(seen == [1, 2, 3, 4, 5] || seen == [1, 5], "{seen:?}");
        });
        let range = KeyRange::new(Bound::Included(&2), Bound::Included(&4));
        assert_eq!(tree.remove_range(range), 3);
        reader.join().unwrap();
        assert_sound(&tree, &[1, 5]);
    });
}

/// A write may come between the leaves of a snapshot, which then starts again.
#[test]
fn a_snapshot_of_a_bw_tree_is_of_one_moment() {
    check("a_snapshot_of_a_bw_tree_is_of_one_moment", 3, || {
        let tree = tree([1, 2, 3, 4, 5]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let seen = other.snapshot(KeyRange::all()).unwrap();
            let (first, last) = (seen[0].1, seen[4].1);
            assert!(last == 5 || first == 11, "{seen:?}");
        });
        tree.insert(1, 11);
        tree.insert(5, 15);
        reader.join().unwrap();
        assert_sound(&tree, &[1, 2, 3, 4, 5]);
    });
}

#[test]
fn updates_of_a_bw_tree_come_one_after_another() {
    check("updates_of_a_bw_tree_come_one_after_another", 3, || {
        let tree = tree([1]);
        let other = Arc::clone(&tree);
        let increment = |tree: &Tree| {
            tree.update(1, &mut |value| Update::Put(value.copied().unwrap() + 1));
        };
        let updater = thread::spawn(move || increment(&other));
        increment(&tree);
        updater.join().unwrap();
        assert_eq!(tree.get(&1), Some(3));
    });
}

#[test]
fn a_write_to_a_bw_tree_waits_for_an_update_of_its_leaf() {
    check(
        "a_write_to_a_bw_tree_waits_for_an_update_of_its_leaf",
        3,
        || {
            let tree = tree([1]);
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || assert_eq!(other.insert(2, 2), None));
            tree.update(1, &mut |value| Update::Put(value.copied().unwrap() + 1));
            writer.join().unwrap();
            assert_sound(&tree, &[1, 2]);
            assert_eq!(tree.get(&1), Some(2));
        },
    );
}

/// Two threads split one leaf: the second one gives its id back, and the next split takes it.
#[test]
fn an_id_of_a_bw_tree_that_was_given_back_is_used_again() {
    check(
        "an_id_of_a_bw_tree_that_was_given_back_is_used_again",
        2,
        || {
            let tree = tree([1, 2, 3, 4, 5]);
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || assert_eq!(other.insert(6, 6), None));
            assert_eq!(tree.insert(7, 7), None);
            writer.join().unwrap();
            for key in 8..12 {
                assert_eq!(tree.insert(key, key), None);
            }
            assert_sound(&tree, &Vec::from_iter(1..12));
            let nodes = figure(&tree, "leaves") + figure(&tree, "inner_nodes");
            assert_eq!(figure(&tree, "ids_live"), nodes);
        },
    );
}
