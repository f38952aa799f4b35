//! Every interleaving of joins, splits and queries over several base nodes with updates and with
//! each other, and of operations that share the contents of base nodes.

use std::ops::Bound;
use tremula_index::{Direction, KeyRange, LfcaTree, OrderedIndex};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

type Tree = LfcaTree<u32, u32>;

/// A tree with these keys, each its own value, split at these other keys.
fn tree(keys: impl IntoIterator<Item = u32>, splits: impl IntoIterator<Item = u32>) -> Arc<Tree> {
    let tree = Tree::new();
    for key in keys {
        tree.insert(key, key);
    }
    for key in splits {
        tree.split_now(&key);
    }
    Arc::new(tree)
}

fn figure(tree: &Tree, name: &str) -> u64 {
    tree.shape().get(name).unwrap()
}

fn keys(tree: &Tree) -> Vec<u32> {
    let entries = tree.snapshot(KeyRange::all()).unwrap();
    entries.into_iter().map(|(key, _)| key).collect()
}

#[test]
fn updates_of_one_base_node_are_not_lost() {
    check("updates_of_one_base_node_are_not_lost", 3, || {
        let tree = tree([1, 2], []);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert(3, 3), None);
            assert_eq!(other.remove(&1), Some(1));
        });
        assert_eq!(tree.insert(4, 4), None);
        writer.join().unwrap();
        assert_eq!(keys(&tree), [2, 3, 4]);
        assert_eq!(tree.len(), 3);
    });
}

#[test]
fn a_split_of_an_lfca_tree_loses_no_write() {
    check("a_split_of_an_lfca_tree_loses_no_write", 3, || {
        let tree = tree([1, 2], []);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert(3, 3), None);
            assert_eq!(other.get(&2), Some(2));
        });
        tree.split_now(&1);
        writer.join().unwrap();
        assert_eq!(keys(&tree), [1, 2, 3]);
    });
}

#[test]
fn a_join_of_an_lfca_tree_loses_no_write_to_the_neighbour() {
    check(
        "a_join_of_an_lfca_tree_loses_no_write_to_the_neighbour",
        3,
        || {
            // The writer finds the neighbour at every step of the join, and helps.
            let tree = tree([1, 2], [1]);
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || {
                assert_eq!(other.insert(3, 3), None);
                assert_eq!(other.get(&3), Some(3));
            });
            let joined = tree.join_now(&1);
            writer.join().unwrap();
            assert_eq!(keys(&tree), [1, 2, 3]);
            assert_eq!(figure(&tree, "base_nodes"), 2 - u64::from(joined));
        },
    );
}

#[test]
fn a_join_of_an_lfca_tree_loses_no_write_to_the_main_node() {
    check(
        "a_join_of_an_lfca_tree_loses_no_write_to_the_main_node",
        3,
        || {
            let tree = tree([1, 2], [1]);
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || {
                assert_eq!(other.insert(0, 0), None);
                assert_eq!(other.remove(&1), Some(1));
            });
            tree.join_now(&1);
            writer.join().unwrap();
            assert_eq!(keys(&tree), [0, 2]);
        },
    );
}

#[test]
fn a_join_below_a_grandparent_is_helped() {
    check("a_join_below_a_grandparent_is_helped", 2, || {
        // Three base nodes: the join has a grandparent, whose mark is removed again.
        let tree = tree([1, 2, 3], [1, 3]);
        assert_eq!(figure(&tree, "base_nodes"), 3);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.remove(&2), Some(2));
            assert_eq!(other.insert(4, 4), None);
        });
        let joined = tree.join_now(&3);
        writer.join().unwrap();
        assert_eq!(keys(&tree), [1, 3, 4]);
        assert_eq!(figure(&tree, "base_nodes"), 3 - u64::from(joined));
        // Nothing prevents a second join.
        assert!(tree.join_now(&1));
        assert_eq!(keys(&tree), [1, 3, 4]);
    });
}

#[test]
fn joins_of_an_lfca_tree_meet() {
    check("joins_of_an_lfca_tree_meet", 2, || {
        // Both threads need the middle base node, and one thread unlinks the route node above the
        // other's.
        let tree = tree([1, 2, 3], [1, 3]);
        let other = Arc::clone(&tree);
        let joiner = thread::spawn(move || other.join_now(&1));
        tree.join_now(&3);
        joiner.join().unwrap();
        assert_eq!(keys(&tree), [1, 2, 3]);
        assert_eq!(figure(&tree, "base_nodes") + figure(&tree, "joins"), 3);
    });
}

#[test]
fn a_join_hides_nothing_from_a_scan_and_shows_nothing_twice() {
    check(
        "a_join_hides_nothing_from_a_scan_and_shows_nothing_twice",
        2,
        || {
            let tree = tree([1, 2], [1]);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                assert_eq!(keys(&other), [1, 2]);
                assert_eq!(other.last(), Some((2, 2)));
            });
            tree.join_now(&2);
            reader.join().unwrap();
        },
    );
}

#[test]
fn a_scan_does_not_read_both_the_main_node_of_a_join_and_what_took_it_in() {
    let name = "a_scan_does_not_read_both_the_main_node_of_a_join_and_what_took_it_in";
    check(name, 2, || {
        // The main node is on the side where the scan begins.
        let tree = tree([1, 2], [1]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || assert_eq!(keys(&other), [1, 2]));
        tree.join_now(&1);
        reader.join().unwrap();
    });
}

#[test]
fn a_scan_over_two_base_nodes_is_of_one_moment() {
    check("a_scan_over_two_base_nodes_is_of_one_moment", 3, || {
        // The token moves from one base node to the other; in between there are two tokens.
        let tree = tree([1, 2], [1]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let seen = keys(&other);
            assert!(matches!(seen[..], [1, 2] | [0, 1, 2] | [0, 1]), "{seen:?}");
        });
        assert_eq!(tree.insert(0, 0), None);
        assert_eq!(tree.remove(&2), Some(2));
        reader.join().unwrap();
        assert_eq!(keys(&tree), [0, 1]);
    });
}

#[test]
fn a_removed_range_goes_at_once() {
    check("a_removed_range_goes_at_once", 2, || {
        let tree = tree([1, 2, 3], [1]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let seen = keys(&other);
            assert!(matches!(seen[..], [1, 2, 3] | [3]), "{seen:?}");
        });
        let range = KeyRange::new(Bound::Unbounded, Bound::Included(&2));
        assert_eq!(tree.remove_range(range), 2);
        reader.join().unwrap();
        assert_eq!(keys(&tree), [3]);
        assert_eq!(tree.len(), 1);
    });
}

#[test]
fn a_lookup_sees_a_removed_range_go() {
    check("a_lookup_sees_a_removed_range_go", 2, || {
        let tree = tree([1, 2, 3], [1]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let first = other.get(&1);
            assert!(first.is_some() || other.get(&2).is_none());
            assert_eq!(other.get(&3), Some(3));
        });
        let range = KeyRange::new(Bound::Unbounded, Bound::Included(&2));
        assert_eq!(tree.remove_range(range), 2);
        reader.join().unwrap();
    });
}

#[test]
fn what_is_written_behind_a_removed_range_stays() {
    check("what_is_written_behind_a_removed_range_stays", 2, || {
        // The writer helps to freeze the range. What it inserts later must not count as removed.
        let tree = tree([1, 2], [1]);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            let was_there = other.insert(2, 20).is_some();
            (was_there, other.get(&2).is_some())
        });
        let removed = tree.remove_range(KeyRange::all());
        let (was_there, is_there) = writer.join().unwrap();
        let left = keys(&tree);
        match removed {
            // The insertion came first, or replaced an entry that was then removed.
            2 => assert!(if was_there {
                left.is_empty()
            } else {
                is_there && left == [2]
            }),
            _ => panic!("{removed} removed"),
        }
        assert_eq!(tree.len(), left.len());
    });
}

#[test]
fn a_range_is_frozen_while_a_join_is_under_way() {
    check("a_range_is_frozen_while_a_join_is_under_way", 2, || {
        let tree = tree([1, 2], [1]);
        let other = Arc::clone(&tree);
        let joiner = thread::spawn(move || other.join_now(&1));
        let snapshot = tree.capture(KeyRange::all());
        joiner.join().unwrap();
        tree.remove_range(KeyRange::all());
        assert_eq!(snapshot.to_vec(), [(1, 1), (2, 2)]);
    });
}

#[test]
fn a_snapshot_keeps_its_nodes_while_others_write() {
    check("a_snapshot_keeps_its_nodes_while_others_write", 3, || {
        let tree = tree([1, 2], []);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert(2, 20), Some(2));
            assert_eq!(other.insert(2, 21), Some(20));
        });
        let snapshot = tree.capture(KeyRange::all());
        let first = snapshot.to_vec();
        assert!(matches!(first[..], [(1, 1), (2, 2 | 20 | 21)]), "{first:?}");
        writer.join().unwrap();
        assert_eq!(snapshot.to_vec(), first);
        assert_eq!(tree.get(&2), Some(21));
    });
}

#[test]
fn the_last_of_two_snapshots_frees_what_they_share() {
    check("the_last_of_two_snapshots_frees_what_they_share", 3, || {
        // Values with reference counts, which loom checks: one too many or too few fails the model.
        let tree = Arc::new(LfcaTree::<u32, String>::new());
        for key in 1..=3 {
            tree.insert(key, key.to_string());
        }
        let snapshot = tree.capture(KeyRange::all());
        let second = snapshot.clone();
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.remove(&3).as_deref(), Some("3"));
            drop(second);
        });
        tree.insert(1, "one".to_owned());
        assert_eq!(snapshot.get(&3).as_deref(), Some("3"));
        drop(snapshot);
        writer.join().unwrap();
        assert_eq!(tree.get(&1).as_deref(), Some("one"));
        assert_eq!(tree.len(), 2);
    });
}

#[test]
fn a_pop_is_never_told_that_there_is_nothing() {
    check("a_pop_is_never_told_that_there_is_nothing", 2, || {
        // A key is always present, in one base node or the other.
        let tree = tree([1, 2], [1]);
        tree.remove(&2);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert(2, 2), None);
            // The pop may have been first.
            other.remove(&1);
        });
        let popped = tree.pop_last();
        assert!(popped.is_some());
        writer.join().unwrap();
    });
}

#[test]
fn an_update_shows_each_value_once() {
    check("an_update_shows_each_value_once", 3, || {
        let tree = tree([1], []);
        let other = Arc::clone(&tree);
        let add = |tree: &Tree| {
            tree.update(1, &mut |value| {
                tremula_index::Update::Put(value.copied().unwrap_or(0) + 10)
            })
        };
        let writer = thread::spawn(move || add(&other));
        add(&tree);
        writer.join().unwrap();
        assert_eq!(tree.get(&1), Some(21));
    });
}

#[test]
fn a_neighbour_in_the_next_base_node_is_of_one_moment() {
    check(
        "a_neighbour_in_the_next_base_node_is_of_one_moment",
        3,
        || {
            // 3 is inserted before 2 is removed, so there is always a key above 1.
            let tree = tree([1, 2], [1]);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                assert!(other.next(&1).is_some());
                let mut entries = Vec::new();
                other.scan(KeyRange::all(), Direction::Descending, 1, &mut entries);
                assert_eq!(entries.len(), 1);
            });
            assert_eq!(tree.insert(3, 3), None);
            assert_eq!(tree.remove(&2), Some(2));
            reader.join().unwrap();
        },
    );
}
