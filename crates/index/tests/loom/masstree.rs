//! Masstree. Nodes hold three entries here. The trees are bulk-loaded, because that takes the
//! fewest steps.
//!
//! Where a writer meets a reader, the reader is the spawned thread; the models of the version lock
//! explain why.

use std::ops::Bound;
use tremula_index::{ByteKey, Direction, KeyRange, Masstree, OrderedIndex, Update};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

/// Keys that a slice determines: values are in the leaves.
type Numbers = Masstree<u32, u32>;
/// Keys of any length: records and layers.
type Strings = Masstree<&'static str, u32>;

/// A tree of these keys, each its own value. All leaves except the last are full.
fn numbers(keys: impl IntoIterator<Item = u32>) -> Arc<Numbers> {
    Arc::new(Masstree::from_sorted(keys.into_iter().map(|key| (key, key))).unwrap())
}

/// A tree of these keys, with their places as values.
fn strings(keys: &[&'static str]) -> Arc<Strings> {
    Arc::new(Masstree::from_sorted(keys.iter().copied().zip(0..)).unwrap())
}

fn figure<K: ByteKey>(tree: &Masstree<K, u32>, name: &str) -> u64 {
    tree.shape().get(name).unwrap()
}

fn values<K: ByteKey>(tree: &Masstree<K, u32>) -> Vec<u32> {
    let entries = tree.snapshot(KeyRange::all()).unwrap();
    entries.into_iter().map(|(_, value)| value).collect()
}

/// A reader of keys that stay, each its own value.
fn reader(tree: &Arc<Numbers>, keys: &'static [u32]) -> thread::JoinHandle<()> {
    let tree = Arc::clone(tree);
    thread::spawn(move || {
        for key in keys {
            assert_eq!(tree.get(key), Some(*key));
        }
    })
}

#[test]
fn an_insertion_is_seen_whole_or_not_at_all() {
    check("an_insertion_is_seen_whole_or_not_at_all", 4, || {
        let tree = numbers([10]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            assert!(matches!(other.get(&5), None | Some(5)));
            assert_eq!(other.get(&10), Some(10));
        });
        assert_eq!(tree.insert(5, 5), None);
        reader.join().unwrap();
        assert_eq!(figure(&tree, "restarts"), 0);
        assert_eq!(values(&tree), [5, 10]);
    });
}

#[test]
fn a_slot_that_is_filled_again_is_not_taken_for_what_it_was() {
    check(
        "a_slot_that_is_filled_again_is_not_taken_for_what_it_was",
        4,
        || {
            let tree = numbers([1, 2]);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                assert!(matches!(other.get(&2), None | Some(2)));
                assert_eq!(other.get(&1), Some(1));
            });
            assert_eq!(tree.remove(&2), Some(2));
            assert_eq!(tree.insert(7, 7), None);
            reader.join().unwrap();
            assert_eq!(values(&tree), [1, 7]);
        },
    );
}

#[test]
fn a_root_that_splits_hides_nothing_from_a_reader() {
    check("a_root_that_splits_hides_nothing_from_a_reader", 2, || {
        let tree = numbers([10, 20, 30]);
        let reader = reader(&tree, &[10, 30]);
        assert_eq!(tree.insert(15, 15), None);
        assert_eq!(figure(&tree, "splits"), 1);
        reader.join().unwrap();
        assert_eq!(values(&tree), [10, 15, 20, 30]);
    });
}

#[test]
fn a_reader_follows_entries_to_the_right() {
    check("a_reader_follows_entries_to_the_right", 2, || {
        let tree = numbers([10, 20, 30, 40]);
        assert_eq!(figure(&tree, "leaves"), 2);
        let reader = reader(&tree, &[20, 30]);
        // The left leaf is full.
        assert_eq!(tree.insert(15, 15), None);
        assert_eq!(figure(&tree, "leaves"), 3);
        reader.join().unwrap();
        assert_eq!(values(&tree), [10, 15, 20, 30, 40]);
    });
}

#[test]
fn leaves_that_merge_hide_nothing_from_a_reader() {
    check("leaves_that_merge_hide_nothing_from_a_reader", 1, || {
        let tree = numbers([10, 20, 30, 40]);
        let reader = reader(&tree, &[20, 10]);
        // The right leaf becomes empty, and then the root has only one child.
        assert_eq!(tree.remove(&40), Some(40));
        assert_eq!(figure(&tree, "merges"), 1);
        assert_eq!(figure(&tree, "inner_nodes"), 0);
        reader.join().unwrap();
        assert_eq!(values(&tree), [10, 20, 30]);
    });
}

#[test]
fn a_layer_that_is_made_hides_nothing_from_a_reader() {
    check(
        "a_layer_that_is_made_hides_nothing_from_a_reader",
        4,
        || {
            let tree = strings(&["aspen tremula"]);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                assert_eq!(other.get(&"aspen tremula"), Some(0));
                assert!(matches!(other.get(&"aspen tremuloides"), None | Some(1)));
            });
            assert_eq!(tree.insert("aspen tremuloides", 1), None);
            assert_eq!(figure(&tree, "layers"), 2);
            reader.join().unwrap();
            assert_eq!(values(&tree), [0, 1]);
        },
    );
}

#[test]
fn a_layer_that_goes_hides_nothing_from_a_reader() {
    check("a_layer_that_goes_hides_nothing_from_a_reader", 3, || {
        let tree = strings(&["aspen tremula", "aspen tremuloides"]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            assert_eq!(other.get(&"aspen tremula"), Some(0));
        });
        assert_eq!(tree.remove(&"aspen tremuloides"), Some(1));
        assert_eq!(figure(&tree, "layers"), 1);
        reader.join().unwrap();
        assert_eq!(values(&tree), [0]);
    });
}

#[test]
fn an_insertion_meets_the_end_of_its_layer() {
    check("an_insertion_meets_the_end_of_its_layer", 2, || {
        let tree = strings(&["aspen tremula", "aspen tremuloides"]);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert("aspen trembling", 2), None);
        });
        assert_eq!(tree.remove(&"aspen tremuloides"), Some(1));
        writer.join().unwrap();
        assert_eq!(values(&tree), [2, 0]);
        assert_eq!(tree.len(), 2);
    });
}

#[test]
fn of_two_keys_that_need_a_layer_none_is_lost() {
    check("of_two_keys_that_need_a_layer_none_is_lost", 3, || {
        let tree = strings(&["aspen tremula"]);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || {
            assert_eq!(other.insert("aspen tremuloides", 1), None);
        });
        assert_eq!(tree.insert("aspen trembling", 2), None);
        writer.join().unwrap();
        assert_eq!(values(&tree), [2, 0, 1]);
    });
}

#[test]
fn insertions_into_a_full_leaf_are_not_lost() {
    check("insertions_into_a_full_leaf_are_not_lost", 2, || {
        let tree = numbers([10, 20, 30]);
        let other = Arc::clone(&tree);
        let writer = thread::spawn(move || assert_eq!(other.insert(25, 25), None));
        assert_eq!(tree.insert(15, 15), None);
        writer.join().unwrap();
        assert_eq!(values(&tree), [10, 15, 20, 25, 30]);
        assert_eq!(tree.len(), 5);
    });
}

#[test]
fn a_value_that_is_replaced_is_read_whole() {
    check("a_value_that_is_replaced_is_read_whole", 4, || {
        let tree = Arc::new(Masstree::<u32, String>::new());
        tree.insert(1, "a".to_owned());
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let value = other.get(&1).unwrap();
            assert!(value == "a" || value == "b");
        });
        assert_eq!(tree.insert(1, "b".to_owned()).as_deref(), Some("a"));
        reader.join().unwrap();
    });
}

#[test]
fn decisions_come_one_after_another() {
    check("masstree::decisions_come_one_after_another", 3, || {
        let tree = numbers([]);
        let increment = |tree: &Numbers| {
            let mut calls = 0;
            tree.update(1, &mut |count| {
                calls += 1;
                Update::Put(count.unwrap_or(&0) + 1)
            });
            assert_eq!(calls, 1);
        };
        let other = Arc::clone(&tree);
        let thread = thread::spawn(move || increment(&other));
        increment(&tree);
        thread.join().unwrap();
        assert_eq!(values(&tree), [2]);
    });
}

#[test]
fn a_scan_of_two_leaves_is_of_one_moment() {
    check("a_scan_of_two_leaves_is_of_one_moment", 2, || {
        let tree = numbers([10, 20, 30, 40]);
        let other = Arc::clone(&tree);
        let scanner = thread::spawn(move || {
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut entries = Vec::new();
                other.scan(KeyRange::all(), direction, usize::MAX, &mut entries);
                entries.sort_unstable();
                let (first, last) = (entries[0].1, entries[3].1);
                // The first is written before the last.
                assert!((first, last) != (10, 41), "{entries:?}");
            }
        });
        tree.insert(10, 11);
        tree.insert(40, 41);
        scanner.join().unwrap();
    });
}

#[test]
fn a_range_goes_at_one_moment() {
    check("masstree::a_range_goes_at_one_moment", 2, || {
        let tree = numbers([10, 20, 30, 40, 50]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let (first, second) = (other.get(&30), other.get(&40));
            assert!(first.is_some() || second.is_none(), "{first:?}, {second:?}");
        });
        // Something stays in each leaf, so that neither is merged.
        let range = KeyRange::new(Bound::Included(&30), Bound::Included(&40));
        assert_eq!(tree.remove_range(range), 2);
        reader.join().unwrap();
        assert_eq!(values(&tree), [10, 20, 50]);
    });
}

#[test]
fn a_batch_of_lookups_misses_nothing_that_stays() {
    check(
        "masstree::a_batch_of_lookups_misses_nothing_that_stays",
        2,
        || {
            let tree = numbers([10, 20, 30, 40]);
            let other = Arc::clone(&tree);
            let reader = thread::spawn(move || {
                let mut found = Vec::new();
                other.get_many(&[30, 35, 40], &mut found);
                assert_eq!(found, [Some(30), None, Some(40)]);
            });
            assert_eq!(tree.insert(15, 15), None);
            reader.join().unwrap();
        },
    );
}

#[test]
fn an_entry_is_popped_once() {
    check("masstree::an_entry_is_popped_once", 3, || {
        let tree = numbers([1, 2]);
        let other = Arc::clone(&tree);
        let popper = thread::spawn(move || other.pop_first());
        let here = tree.pop_last();
        let there = popper.join().unwrap();
        let mut popped = [here.unwrap().1, there.unwrap().1];
        popped.sort_unstable();
        assert_eq!(popped, [1, 2]);
        assert!(values(&tree).is_empty());
    });
}
