//! The radix tree. Under loom bytes are below 8, and nodes grow at 3, 4 and 5 children. The trees
//! are bulk-loaded, because that takes the fewest steps.
//!
//! Where a writer meets a reader, the reader is the spawned thread; the models of the version lock
//! explain why.

use tremula_index::{Art, Direction, KeyRange, OrderedIndex, Update};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

/// Keys of two bytes: values are in the slots of nodes at depth 1.
type Short = Art<[u8; 2], u32>;
/// Keys of any length: values are in leaves.
type Long = Art<&'static [u8], u32>;

/// A tree of keys that consist of 0 and one of these bytes, which is also the value.
fn short(bytes: impl IntoIterator<Item = u8>) -> Arc<Short> {
    let entries = bytes.into_iter().map(|byte| ([0, byte], byte.into()));
    Arc::new(Art::from_sorted(entries).unwrap())
}

fn long(keys: &[&'static [u8]]) -> Arc<Long> {
    let entries = keys.iter().copied().zip(0..);
    Arc::new(Art::from_sorted(entries).unwrap())
}

fn figure<K: tremula_index::ByteKey>(tree: &Art<K, u32>, name: &str) -> u64 {
    tree.shape().get(name).unwrap()
}

fn values<K: tremula_index::ByteKey>(tree: &Art<K, u32>) -> Vec<u32> {
    let entries = tree.snapshot(KeyRange::all()).unwrap();
    entries.into_iter().map(|(_, value)| value).collect()
}

/// A reader of `keys` that all stay, with these values.
fn reader(tree: &Arc<Short>, bytes: &'static [u8]) -> thread::JoinHandle<()> {
    let tree = Arc::clone(tree);
    thread::spawn(move || {
        for byte in bytes {
            assert_eq!(tree.get(&[0, *byte]), Some((*byte).into()));
        }
    })
}

#[test]
fn growth_hides_nothing_from_a_reader() {
    check("growth_hides_nothing_from_a_reader", 4, || {
        let tree = short([1, 2, 3]);
        let reader = reader(&tree, &[1, 3]);
        assert_eq!(tree.insert([0, 0], 0), None);
        assert_eq!(figure(&tree, "growths"), 1);
        reader.join().unwrap();
        assert_eq!(values(&tree), [0, 1, 2, 3]);
    });
}

#[test]
fn growth_into_a_full_node_hides_nothing_from_a_reader() {
    check(
        "growth_into_a_full_node_hides_nothing_from_a_reader",
        4,
        || {
            let tree = short([1, 2, 3, 4, 5]);
            let reader = reader(&tree, &[5]);
            assert_eq!(tree.insert([0, 0], 0), None);
            assert_eq!(figure(&tree, "nodes_256"), 2);
            reader.join().unwrap();
        },
    );
}

#[test]
fn shrinking_hides_nothing_from_a_reader() {
    check("shrinking_hides_nothing_from_a_reader", 4, || {
        let tree = short([1, 2, 3, 4, 5, 6]);
        assert_eq!(tree.remove(&[0, 1]), Some(1));
        let reader = reader(&tree, &[5, 6]);
        assert_eq!(tree.remove(&[0, 2]), Some(2));
        assert_eq!(figure(&tree, "shrinks"), 1);
        reader.join().unwrap();
        assert_eq!(values(&tree), [3, 4, 5, 6]);
    });
}

#[test]
fn a_shift_of_slots_is_not_seen_half_done() {
    check("a_shift_of_slots_is_not_seen_half_done", 4, || {
        let tree = short([2, 3]);
        let reader = reader(&tree, &[2, 3]);
        assert_eq!(tree.insert([0, 1], 1), None);
        reader.join().unwrap();
    });
}

#[test]
fn a_value_moves_between_leaf_and_slot_unseen() {
    check("a_value_moves_between_leaf_and_slot_unseen", 4, || {
        let tree = short([1]);
        let reader = reader(&tree, &[1, 1]);
        assert_eq!(tree.insert([0, 2], 2), None);
        assert_eq!(tree.remove(&[0, 2]), Some(2));
        reader.join().unwrap();
        assert_eq!(figure(&tree, "leaves"), 1);
    });
}

#[test]
fn a_cut_prefix_hides_nothing_from_a_reader() {
    check("a_cut_prefix_hides_nothing_from_a_reader", 4, || {
        let tree = long(&[&[1, 2, 3, 4], &[1, 2, 3, 5]]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            assert_eq!(other.get(&&[1, 2, 3, 4][..]), Some(0));
            // With the old prefix at its new place, this would be taken for another key.
            assert_eq!(other.get(&&[1, 3, 4][..]), None);
        });
        assert_eq!(tree.insert(&[1, 3], 2), None);
        assert_eq!(figure(&tree, "splits"), 1);
        reader.join().unwrap();
        assert_eq!(values(&tree), [0, 1, 2]);
    });
}

#[test]
fn a_joined_prefix_hides_nothing_from_a_reader() {
    check("a_joined_prefix_hides_nothing_from_a_reader", 4, || {
        let tree = long(&[&[1], &[1, 2, 3, 4], &[1, 2, 3, 5]]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            assert_eq!(other.get(&&[1, 2, 3, 5][..]), Some(2));
            assert_eq!(other.get(&&[1, 2, 4, 5][..]), None);
        });
        assert_eq!(tree.remove(&&[1][..]), Some(0));
        assert_eq!(figure(&tree, "merges"), 1);
        reader.join().unwrap();
        assert_eq!(values(&tree), [1, 2]);
    });
}

#[test]
fn insertions_into_a_node_that_must_grow_are_not_lost() {
    check(
        "insertions_into_a_node_that_must_grow_are_not_lost",
        3,
        || {
            let tree = short([1, 2, 3]);
            let other = Arc::clone(&tree);
            let writer = thread::spawn(move || assert_eq!(other.insert([0, 4], 4), None));
            assert_eq!(tree.insert([0, 5], 5), None);
            writer.join().unwrap();
            assert_eq!(values(&tree), [1, 2, 3, 4, 5]);
            assert_eq!(tree.len(), 5);
        },
    );
}

#[test]
fn an_insertion_meets_the_removal_of_its_node() {
    check("an_insertion_meets_the_removal_of_its_node", 3, || {
        let tree = long(&[&[1, 2, 3], &[1, 2, 4]]);
        let other = Arc::clone(&tree);
        let remover = thread::spawn(move || assert_eq!(other.remove(&&[1, 2, 3][..]), Some(0)));
        assert_eq!(tree.insert(&[1, 2, 5], 2), None);
        remover.join().unwrap();
        assert_eq!(values(&tree), [1, 2]);
    });
}

#[test]
fn decisions_come_one_after_another() {
    check("decisions_come_one_after_another", 3, || {
        let tree = long(&[&[1, 1]]);
        let increment = |tree: &Long| {
            let mut calls = 0;
            tree.update(&[1, 2], &mut |count| {
                calls += 1;
                Update::Put(count.unwrap_or(&0) + 1)
            });
            assert_eq!(calls, 1);
        };
        let other = Arc::clone(&tree);
        let thread = thread::spawn(move || increment(&other));
        increment(&tree);
        thread.join().unwrap();
        assert_eq!(values(&tree), [0, 2]);
    });
}

#[test]
fn a_range_goes_at_one_moment() {
    check("a_range_goes_at_one_moment", 3, || {
        let tree = long(&[&[1, 1], &[1, 2], &[2, 1], &[2, 2]]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let first = other.get(&&[1, 2][..]);
            let second = other.get(&&[2, 1][..]);
            assert!(first.is_some() || second.is_none(), "{first:?}, {second:?}");
        });
        let (low, high): (&[u8], &[u8]) = (&[1, 2], &[2, 1]);
        let range = KeyRange::new(
            std::ops::Bound::Included(&low),
            std::ops::Bound::Included(&high),
        );
        assert_eq!(tree.remove_range(range), 2);
        reader.join().unwrap();
        assert_eq!(values(&tree), [0, 3]);
    });
}

#[test]
fn a_scan_under_writers_is_of_one_moment() {
    check("a_scan_under_writers_is_of_one_moment", 2, || {
        let tree = long(&[&[1, 1], &[1, 2], &[2, 1], &[2, 2]]);
        let other = Arc::clone(&tree);
        let scanner = thread::spawn(move || {
            for direction in [Direction::Ascending, Direction::Descending] {
                let mut entries = Vec::new();
                other.scan(KeyRange::all(), direction, usize::MAX, &mut entries);
                entries.sort_unstable();
                let [first, last] = [entries[0].1, entries[3].1];
                // The first is always written before the last.
                assert!(first == last - 3 || first == last - 2, "{entries:?}");
            }
        });
        for generation in 1..=2 {
            tree.insert(&[1, 1], generation);
            tree.insert(&[2, 2], generation + 3);
        }
        scanner.join().unwrap();
    });
}

#[test]
fn a_batch_of_lookups_misses_nothing_that_stays() {
    check("a_batch_of_lookups_misses_nothing_that_stays", 3, || {
        let tree = short([1, 2, 3]);
        let other = Arc::clone(&tree);
        let reader = thread::spawn(move || {
            let mut found = Vec::new();
            other.get_many(&[[0, 3], [0, 7], [0, 1]], &mut found);
            assert_eq!(found, [Some(3), None, Some(1)]);
        });
        assert_eq!(tree.insert([0, 4], 4), None);
        reader.join().unwrap();
    });
}

#[test]
fn an_entry_is_popped_once() {
    check("art::an_entry_is_popped_once", 3, || {
        let tree = short([1, 2]);
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
