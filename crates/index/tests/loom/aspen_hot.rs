//! Every interleaving of a thread with changes of a hot leaf: insertions, removals, drains, and
//! that it becomes ordinary. A hot leaf has two buckets of two entries here. Readers beside drains
//! have too many interleavings: the random schedules of shuttle have those.

use std::ops::Bound;
use tremula_index::key::ByteHead;
use tremula_index::{Aspen, Direction, KeyRange, OrderedIndex};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

/// Leaves of three entries.
type Map = Aspen<u64, u32, ByteHead, 1>;

/// Keys far apart, which no dense leaf takes. Of those in a hot leaf, the numbers 1 and 4 are in
/// one bucket, 2, 3 and 5 in the other.
const A: [u64; 6] = [10, 37, 59, 91, 140, 210];

fn far(number: usize) -> u64 {
    A[number] << 40
}

/// An ordinary leaf of the number 0, and a hot one of these numbers.
fn hot(numbers: impl IntoIterator<Item = usize>) -> Arc<Map> {
    let map = Map::default();
    map.insert(far(0), 0);
    map.heat(&far(0));
    for number in numbers {
        map.insert(far(number), number as u32);
    }
    assert_eq!(figure(&map, "hot_leaves"), 1);
    Arc::new(map)
}

/// The same, with one number more that another thread has inserted: so it is not one thread's.
fn shared_hot(numbers: impl IntoIterator<Item = usize>, by_other: usize) -> Arc<Map> {
    let map = hot(numbers);
    let other = Arc::clone(&map);
    let writer = thread::spawn(move || other.insert(far(by_other), by_other as u32));
    assert_eq!(writer.join().unwrap(), None);
    map
}

fn figure(map: &Map, name: &str) -> u64 {
    map.shape().get(name).unwrap()
}

fn values(map: &Map) -> Vec<u32> {
    let entries = map.snapshot(KeyRange::all()).unwrap();
    entries.into_iter().map(|(_, value)| value).collect()
}

/// A reader of keys that stay.
fn reader(map: &Arc<Map>, numbers: &'static [usize]) -> thread::JoinHandle<()> {
    let map = Arc::clone(map);
    thread::spawn(move || {
        for number in numbers {
            assert_eq!(map.get(&far(*number)), Some(*number as u32));
        }
    })
}

#[test]
fn a_removal_from_a_hot_leaf_hides_no_neighbour() {
    check("a_removal_from_a_hot_leaf_hides_no_neighbour", 3, || {
        let map = hot([2, 3]);
        let reader = reader(&map, &[3]);
        assert_eq!(map.remove(&far(2)), Some(2));
        reader.join().unwrap();
        assert_eq!(values(&map), [0, 3]);
    });
}

#[test]
fn of_two_insertions_of_a_key_into_a_hot_leaf_one_is_first() {
    let name = "of_two_insertions_of_a_key_into_a_hot_leaf_one_is_first";
    check(name, 3, || {
        let map = hot([]);
        let other = Arc::clone(&map);
        let writer = thread::spawn(move || other.insert(far(2), 2));
        let mine = map.insert(far(2), 22);
        match (mine, writer.join().unwrap()) {
            (None, Some(22)) => assert_eq!(values(&map), [0, 2]),
            (Some(2), None) => assert_eq!(values(&map), [0, 22]),
            both => panic!("{both:?}"),
        }
        assert_eq!(map.len(), 2);
    });
}

/// The late key belongs below the cut.
#[test]
fn a_late_insertion_finds_its_way_while_a_hot_leaf_is_drained() {
    let name = "a_late_insertion_finds_its_way_while_a_hot_leaf_is_drained";
    check(name, 1, || {
        let map = shared_hot([2], 3);
        let other = Arc::clone(&map);
        let writer = thread::spawn(move || assert_eq!(other.insert(far(1), 1), None));
        assert_eq!(map.insert(far(5), 5), None);
        writer.join().unwrap();
        assert_eq!(figure(&map, "drains"), 1);
        assert_eq!(values(&map), [0, 1, 2, 3, 5]);
        assert_eq!(map.get(&far(1)), Some(1));
        assert_eq!(map.len(), 5);
    });
}

#[test]
fn an_insertion_goes_on_behind_the_cut_while_a_hot_leaf_is_drained() {
    let name = "an_insertion_goes_on_behind_the_cut_while_a_hot_leaf_is_drained";
    check(name, 1, || {
        let map = shared_hot([2], 3);
        let other = Arc::clone(&map);
        let writer = thread::spawn(move || assert_eq!(other.insert(far(4), 4), None));
        assert_eq!(map.insert(far(5), 5), None);
        writer.join().unwrap();
        assert_eq!(values(&map), [0, 2, 3, 4, 5]);
    });
}

#[test]
fn a_writer_follows_its_key_out_of_a_leaf_that_becomes_ordinary() {
    let name = "a_writer_follows_its_key_out_of_a_leaf_that_becomes_ordinary";
    check(name, 1, || {
        let map = hot([2, 3]);
        let other = Arc::clone(&map);
        let writer = thread::spawn(move || assert_eq!(other.insert(far(3), 33), Some(3)));
        assert_eq!(map.insert(far(5), 5), None);
        writer.join().unwrap();
        assert_eq!(values(&map), [0, 2, 33, 5]);
    });
}

fn a_scan_is_of_one_moment(name: &str, preemptions: usize, direction: Direction, first: usize) {
    check(name, preemptions, move || {
        let map = hot([1, 2]);
        let other = Arc::clone(&map);
        let scanner = thread::spawn(move || {
            let mut entries = Vec::new();
            let low = far(first);
            let range = KeyRange::new(Bound::Included(&low), Bound::Unbounded);
            other.scan(range, direction, 9, &mut entries);
            entries.sort_unstable();
            // The first is written before the last.
            let pair = (entries[0].1, entries[entries.len() - 1].1);
            assert!(pair.0 >= 10 || pair.1 < 10, "{pair:?}");
        });
        map.insert(far(first), 10);
        map.insert(far(2), 12);
        scanner.join().unwrap();
    });
}

#[test]
fn a_scan_of_a_hot_leaf_is_of_one_moment() {
    let name = "a_scan_of_a_hot_leaf_is_of_one_moment";
    a_scan_is_of_one_moment(name, 2, Direction::Ascending, 1);
}

#[test]
fn a_scan_up_to_a_hot_leaf_is_of_one_moment() {
    let name = "a_scan_up_to_a_hot_leaf_is_of_one_moment";
    a_scan_is_of_one_moment(name, 2, Direction::Ascending, 0);
}

#[test]
fn a_scan_down_from_a_hot_leaf_is_of_one_moment() {
    let name = "a_scan_down_from_a_hot_leaf_is_of_one_moment";
    a_scan_is_of_one_moment(name, 1, Direction::Descending, 0);
}

#[test]
fn a_range_with_a_hot_leaf_is_removed_at_once() {
    check("a_range_with_a_hot_leaf_is_removed_at_once", 1, || {
        let map = hot([2]);
        let other = Arc::clone(&map);
        let remover = thread::spawn(move || other.remove_range(KeyRange::all()));
        assert_eq!(map.insert(far(4), 4), None);
        let removed = remover.join().unwrap();
        assert_eq!(removed + map.len(), 3);
        assert_eq!(values(&map).len(), map.len());
    });
}

/// The first key is removed before the second one is inserted.
#[test]
fn a_snapshot_of_a_hot_leaf_is_of_one_moment() {
    check("a_snapshot_of_a_hot_leaf_is_of_one_moment", 2, || {
        let map = hot([1]);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            let seen = values(&other);
            assert!(
                [&[0, 1][..], &[0], &[0, 2]].contains(&&seen[..]),
                "{seen:?}"
            );
        });
        assert_eq!(map.remove(&far(1)), Some(1));
        assert_eq!(map.insert(far(2), 2), None);
        reader.join().unwrap();
        assert_eq!(values(&map), [0, 2]);
    });
}
