//! Every interleaving of a reader with changes of leaves, whose routes may be stale meanwhile; and
//! of two writers. A leaf of one unit has three slots here, a window of a search two.
//!
//! Where a writer meets a reader, the reader is the spawned thread; the models of the version lock
//! explain why. The checker lets a relaxed load see each value that the order of writes allows. So
//! a reader that does not validate what it has read fails here, and so does a writer whose stores
//! are not ordered behind its lock. It takes a `SeqCst` access for `AcqRel`, which only makes it
//! stricter.

use std::ops::Bound;
use tremula_index::key::ByteHead;
use tremula_index::{Aspen, Direction, KeyRange, OrderedIndex, Storable, Update};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

type Map<V, const UNITS: usize> = Aspen<u64, V, ByteHead, UNITS>;
/// Leaves of three entries.
type Small = Map<u32, 1>;

/// Keys far apart, which no dense leaf takes.
const A: [u64; 10] = [10, 37, 59, 91, 140, 210, 330, 500, 800, 1300];

fn far(number: usize) -> u64 {
    A[number] << 40
}

/// A map of these numbers of [`far`] keys, each with its number as its value.
fn map<const UNITS: usize>(numbers: impl IntoIterator<Item = usize>) -> Arc<Map<u32, UNITS>> {
    let map = Map::default();
    for number in numbers {
        map.insert(far(number), number as u32);
    }
    Arc::new(map)
}

/// Scans of a limit like this one validate leaves, or lock them. Those without one preserve them.
const SHORT: usize = 9;

/// Three leaves: 2, and 5, and 6 to 8. The last one is full.
fn three_leaves() -> Arc<Small> {
    let map = map(0..9);
    for number in [0, 1, 3, 4] {
        map.remove(&far(number));
    }
    assert_eq!(figure(&map, "leaves"), 3);
    map
}

fn figure<V: Storable, const UNITS: usize>(map: &Map<V, UNITS>, name: &str) -> u64 {
    map.shape().get(name).unwrap()
}

fn values<const UNITS: usize>(map: &Map<u32, UNITS>) -> Vec<u32> {
    let entries = map.snapshot(KeyRange::all()).unwrap();
    entries.into_iter().map(|(_, value)| value).collect()
}

/// A reader of far keys that stay.
fn reader<const UNITS: usize>(
    map: &Arc<Map<u32, UNITS>>,
    numbers: &'static [usize],
) -> thread::JoinHandle<()> {
    let map = Arc::clone(map);
    thread::spawn(move || {
        for number in numbers {
            assert_eq!(map.get(&far(*number)), Some(*number as u32));
        }
    })
}

/// The bound of preemptions of a model that takes minutes: one less, except in a deep run.
fn long(preemptions: usize) -> usize {
    preemptions - usize::from(std::env::var_os("TREMULA_DEEP").is_none())
}

#[test]
fn an_insertion_hides_no_neighbour_that_it_moves() {
    check("an_insertion_hides_no_neighbour_that_it_moves", 3, || {
        let map = map::<1>([0, 2]);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            assert!(matches!(other.get(&far(1)), None | Some(1)));
            assert_eq!(other.get(&far(2)), Some(2));
        });
        assert_eq!(map.insert(far(1), 1), None);
        reader.join().unwrap();
        assert_eq!(figure(&map, "fills"), 1);
        assert_eq!(values(&map), [0, 1, 2]);
    });
}

#[test]
fn a_removal_hides_no_neighbour() {
    check("a_removal_hides_no_neighbour", 3, || {
        let map = map::<1>(0..3);
        let reader = reader(&map, &[2, 0]);
        assert_eq!(map.remove(&far(1)), Some(1));
        reader.join().unwrap();
        assert_eq!(values(&map), [0, 2]);
    });
}

#[test]
fn a_dense_leaf_shows_an_entry_whole_or_not_at_all() {
    check("a_dense_leaf_shows_an_entry_whole_or_not_at_all", 3, || {
        let map = Small::default();
        map.insert(0, 10);
        map.insert(1, 11);
        map.remove(&1);
        assert_eq!(figure(&map, "dense_leaves"), 1);
        let map = Arc::new(map);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            assert!(matches!(other.get(&1), None | Some(21)));
            assert_eq!(other.get(&0), Some(10));
        });
        assert_eq!(map.insert(1, 21), None);
        reader.join().unwrap();
        assert_eq!(values(&map), [10, 21]);
    });
}

#[test]
fn a_reader_finds_everything_while_a_leaf_grows() {
    check("a_reader_finds_everything_while_a_leaf_grows", 1, || {
        let map = map::<2>(0..3);
        let fills = figure(&map, "fills");
        let reader = reader(&map, &[0, 2]);
        map.insert(far(3), 3);
        reader.join().unwrap();
        assert_eq!(
            (figure(&map, "fills"), figure(&map, "splits")),
            (fills + 1, 0)
        );
        assert_eq!(values(&map), [0, 1, 2, 3]);
    });
}

#[test]
fn a_reader_finds_everything_while_a_leaf_changes_its_format() {
    let name = "a_reader_finds_everything_while_a_leaf_changes_its_format";
    check(name, 2, || {
        let map = Small::default();
        map.insert(0, 10);
        map.insert(1, 11);
        assert_eq!(figure(&map, "dense_leaves"), 1);
        let map = Arc::new(map);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            assert_eq!(other.get(&1), Some(11));
            assert_eq!(other.get(&2), None);
        });
        map.insert(far(0), 0);
        reader.join().unwrap();
        assert_eq!(figure(&map, "dense_leaves"), 0);
        assert_eq!(values(&map), [10, 11, 0]);
    });
}

#[test]
fn a_stale_route_hides_nothing_while_a_leaf_splits() {
    let name = "a_stale_route_hides_nothing_while_a_leaf_splits";
    check(name, long(1), || {
        let map = map::<1>([0, 2, 3]);
        let reader = reader(&map, &[3]);
        map.insert(far(1), 1);
        reader.join().unwrap();
        assert_eq!(figure(&map, "splits"), 1);
        assert_eq!(values(&map), [0, 1, 2, 3]);
    });
}

#[test]
fn a_batch_of_lookups_misses_no_neighbour_that_an_insertion_moves() {
    let name = "a_batch_of_lookups_misses_no_neighbour_that_an_insertion_moves";
    check(name, 2, || {
        let map = map::<1>([0, 2]);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            let mut found = Vec::new();
            other.get_many(&[far(2), far(0)], &mut found);
            assert_eq!(found, [Some(2), Some(0)]);
        });
        map.insert(far(1), 1);
        reader.join().unwrap();
    });
}

#[test]
fn a_key_that_moves_is_removed_once() {
    check("a_key_that_moves_is_removed_once", 1, || {
        let map = map::<1>([0, 2, 3]);
        let other = Arc::clone(&map);
        let remover = thread::spawn(move || assert_eq!(other.remove(&far(3)), Some(3)));
        map.insert(far(1), 1);
        remover.join().unwrap();
        assert_eq!(values(&map), [0, 1, 2]);
        assert_eq!(map.len(), 3);
    });
}

#[test]
fn a_writer_that_waited_for_a_leaf_follows_the_key() {
    check(
        "a_writer_that_waited_for_a_leaf_follows_the_key",
        long(2),
        || {
            let map = map::<1>([0, 2, 3]);
            let other = Arc::clone(&map);
            let writer = thread::spawn(move || assert_eq!(other.insert(far(3), 33), Some(3)));
            map.insert(far(1), 1);
            writer.join().unwrap();
            assert_eq!(values(&map), [0, 1, 2, 33]);
        },
    );
}

#[test]
fn a_merge_hides_nothing_from_a_reader() {
    check("a_merge_hides_nothing_from_a_reader", 2, || {
        let map = three_leaves();
        let reader = reader(&map, &[5]);
        // The first leaf becomes empty, and takes over the second one.
        assert_eq!(map.remove(&far(2)), Some(2));
        reader.join().unwrap();
        assert_eq!(figure(&map, "merges"), 1);
        assert_eq!(values(&map), [5, 6, 7, 8]);
    });
}

#[test]
fn a_merge_takes_no_writer_s_entry_away() {
    check("a_merge_takes_no_writer_s_entry_away", 2, || {
        let map = three_leaves();
        let other = Arc::clone(&map);
        let writer = thread::spawn(move || assert_eq!(other.insert(far(5), 55), Some(5)));
        assert_eq!(map.remove(&far(2)), Some(2));
        writer.join().unwrap();
        assert_eq!(values(&map), [55, 6, 7, 8]);
        assert_eq!(map.len(), 4);
    });
}

/// The route of the key leads to a leaf that was merged, and comes to use again for other keys.
#[test]
fn a_route_to_a_leaf_that_is_used_again_hides_nothing() {
    let name = "a_route_to_a_leaf_that_is_used_again_hides_nothing";
    check(name, long(2), || {
        let map = three_leaves();
        assert_eq!(map.remove(&far(2)), Some(2));
        assert_eq!(figure(&map, "merges"), 1);
        let detours = figure(&map, "detours");
        let reader = reader(&map, &[5]);
        // The last leaf splits, and the right part has the number that is free.
        assert_eq!(map.insert(far(9), 9), None);
        reader.join().unwrap();
        assert_eq!((figure(&map, "leaves"), figure(&map, "splits")), (3, 3));
        assert!(figure(&map, "detours") > detours);
        assert_eq!(values(&map), [5, 6, 7, 8, 9]);
    });
}

/// The block of a leaf that is merged is freed and given to the leaf that splits, while the reader
/// may still be looking into it.
#[test]
fn a_block_that_is_used_again_is_not_taken_for_what_it_was() {
    let name = "a_block_that_is_used_again_is_not_taken_for_what_it_was";
    check(name, long(1), || {
        let map = three_leaves();
        let blocks = figure(&map, "free_block_bytes");
        let reader = reader(&map, &[5]);
        // The first leaf takes over the second one, and the third one splits.
        assert_eq!(map.remove(&far(2)), Some(2));
        assert_eq!(map.insert(far(9), 9), None);
        reader.join().unwrap();
        assert_eq!((figure(&map, "merges"), figure(&map, "splits")), (1, 3));
        assert_eq!(figure(&map, "free_block_bytes"), blocks);
        assert_eq!(values(&map), [5, 6, 7, 8, 9]);
    });
}

fn a_scan_is_of_one_moment(name: &str, direction: Direction, limit: usize) {
    two_leaves_are_of_one_moment(name, move |map, range| {
        let mut entries = Vec::new();
        map.scan(range, direction, limit, &mut entries);
        entries.sort_unstable();
        entries
    });
}

fn two_leaves_are_of_one_moment(
    name: &str,
    scan: impl Fn(&Small, KeyRange<'_, u64>) -> Vec<(u64, u32)> + Copy + Send + Sync + 'static,
) {
    check(name, 2, move || {
        let map = three_leaves();
        let other = Arc::clone(&map);
        let scanner = thread::spawn(move || {
            let high = far(5);
            let entries = scan(
                &other,
                KeyRange::new(Bound::Unbounded, Bound::Included(&high)),
            );
            // The first is written before the last.
            let pair = (entries[0].1, entries[1].1);
            assert!(matches!(pair, (2 | 22, 5) | (22, 55)), "{pair:?}");
        });
        map.insert(far(2), 22);
        map.insert(far(5), 55);
        scanner.join().unwrap();
    });
}

#[test]
fn a_scan_of_two_leaves_upwards_is_of_one_moment() {
    let name = "a_scan_of_two_leaves_upwards_is_of_one_moment";
    a_scan_is_of_one_moment(name, Direction::Ascending, SHORT);
}

#[test]
fn a_scan_of_two_leaves_downwards_is_of_one_moment() {
    let name = "a_scan_of_two_leaves_downwards_is_of_one_moment";
    a_scan_is_of_one_moment(name, Direction::Descending, SHORT);
}

#[test]
fn a_snapshot_of_two_leaves_of_numbers_is_of_one_moment() {
    let name = "a_snapshot_of_two_leaves_of_numbers_is_of_one_moment";
    a_scan_is_of_one_moment(name, Direction::Ascending, usize::MAX);
}

#[test]
fn a_snapshot_of_numbers_that_is_read_in_parts_is_of_one_moment() {
    let name = "a_snapshot_of_numbers_that_is_read_in_parts_is_of_one_moment";
    two_leaves_are_of_one_moment(name, |map, range| {
        let mut entries = Vec::new();
        let mut cursor = map.begin_snapshot(range).unwrap();
        while map.read_snapshot(&mut cursor, 1, &mut entries) {}
        entries
    });
}

/// More keys of a leaf than can be noted, so that a writer has to copy it.
#[test]
fn a_snapshot_of_a_leaf_that_changes_often_is_of_one_moment() {
    let name = "a_snapshot_of_a_leaf_that_changes_often_is_of_one_moment";
    check(name, long(3), || {
        let map = three_leaves();
        let other = Arc::clone(&map);
        let scanner = thread::spawn(move || {
            let (mut entries, mut cursor) = (Vec::new(), other.begin_snapshot(KeyRange::all()));
            let cursor = cursor.as_mut().unwrap();
            while other.read_snapshot(cursor, 1, &mut entries) {}
            let values: Vec<_> = entries.iter().map(|(_, value)| *value).collect();
            // 6 is written first, then 8 is removed, then 7 is written.
            let moments: [&[u32]; 4] = [
                &[2, 5, 6, 7, 8],
                &[2, 5, 66, 7, 8],
                &[2, 5, 66, 7],
                &[2, 5, 66, 77],
            ];
            assert!(moments.contains(&&*values), "{values:?}");
        });
        map.insert(far(6), 66);
        map.remove(&far(8));
        map.insert(far(7), 77);
        scanner.join().unwrap();
    });
}

#[test]
fn the_first_entry_is_popped_and_no_later_one() {
    check(
        "the_first_entry_is_popped_and_no_later_one",
        long(2),
        || {
            // An empty leaf before one that has an entry.
            let map = map::<1>(0..6);
            for number in 0..5 {
                map.remove(&far(number));
            }
            assert_eq!(figure(&map, "leaves"), 2);
            let other = Arc::clone(&map);
            let popper = thread::spawn(move || {
                let (_, value) = other.pop_first().unwrap();
                // When 4 comes, 0 has come before it.
                assert!(matches!(value, 0 | 5), "{value}");
            });
            map.insert(far(0), 0);
            map.insert(far(4), 4);
            popper.join().unwrap();
        },
    );
}

#[test]
fn of_two_insertions_into_one_leaf_none_is_lost() {
    check("of_two_insertions_into_one_leaf_none_is_lost", 3, || {
        let map = map::<1>([1]);
        let other = Arc::clone(&map);
        let writer = thread::spawn(move || assert_eq!(other.insert(far(0), 0), None));
        assert_eq!(map.insert(far(2), 2), None);
        writer.join().unwrap();
        assert_eq!(values(&map), [0, 1, 2]);
        assert_eq!(map.len(), 3);
    });
}

#[test]
fn of_two_insertions_into_a_full_leaf_none_is_lost() {
    check(
        "of_two_insertions_into_a_full_leaf_none_is_lost",
        long(1),
        || {
            let map = map::<1>([0, 2, 4]);
            let other = Arc::clone(&map);
            let writer = thread::spawn(move || assert_eq!(other.insert(far(3), 3), None));
            assert_eq!(map.insert(far(1), 1), None);
            writer.join().unwrap();
            assert_eq!(values(&map), [0, 1, 2, 3, 4]);
        },
    );
}

#[test]
fn leaves_that_split_at_once_are_both_found() {
    check("leaves_that_split_at_once_are_both_found", 2, || {
        // Two full leaves. Only one of the two threads that split may mend routes at a time.
        let map = map::<1>([0, 1, 2, 4, 5, 6]);
        assert_eq!(figure(&map, "leaves"), 2);
        let other = Arc::clone(&map);
        let writer = thread::spawn(move || assert_eq!(other.insert(far(7), 7), None));
        assert_eq!(map.insert(far(3), 3), None);
        writer.join().unwrap();
        for number in 0..8 {
            assert_eq!(map.get(&far(number)), Some(number as u32));
        }
    });
}

#[test]
fn decisions_about_one_key_come_one_after_another() {
    check("aspen::decisions_come_one_after_another", 3, || {
        let map = map::<1>([]);
        let increment = |map: &Small| {
            let mut calls = 0;
            map.update(far(0), &mut |count| {
                calls += 1;
                Update::Put(count.unwrap_or(&0) + 1)
            });
            assert_eq!(calls, 1);
        };
        let other = Arc::clone(&map);
        let thread = thread::spawn(move || increment(&other));
        increment(&map);
        thread.join().unwrap();
        assert_eq!(values(&map), [2]);
    });
}

#[test]
fn a_boxed_value_is_read_whole_while_it_is_replaced() {
    check(
        "a_boxed_value_is_read_whole_while_it_is_replaced",
        3,
        || {
            let map = Arc::new(Map::<String, 1>::default());
            map.insert(1, "a".to_owned());
            let other = Arc::clone(&map);
            let reader = thread::spawn(move || {
                let value = other.get(&1).unwrap();
                assert!(value == "a" || value == "b");
            });
            assert_eq!(map.insert(1, "b".to_owned()).as_deref(), Some("a"));
            reader.join().unwrap();
        },
    );
}

#[test]
fn a_boxed_value_is_scanned_whole_while_it_is_removed() {
    check(
        "a_boxed_value_is_scanned_whole_while_it_is_removed",
        long(2),
        || {
            let map = Arc::new(Map::<String, 1>::default());
            map.insert(1, "a".to_owned());
            let other = Arc::clone(&map);
            let reader = thread::spawn(move || {
                let entries = other.snapshot(KeyRange::all()).unwrap();
                assert!(entries.iter().all(|(_, value)| value == "a"));
            });
            assert_eq!(map.remove_range(KeyRange::all()), 1);
            reader.join().unwrap();
            assert!(map.is_empty());
        },
    );
}

#[test]
fn a_step_over_two_leaves_is_seen_whole() {
    check("a_step_over_two_leaves_is_seen_whole", 2, || {
        let map = three_leaves();
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            let first = other.get(&far(2));
            let second = other.get(&far(5));
            assert!(first == Some(2) || second == Some(50));
        });
        let (two, five) = (far(2), far(5));
        let over = [KeyRange::only(&two), KeyRange::only(&five)];
        let steps = OrderedIndex::transactional(&*map).unwrap();
        steps.atomically(&over, &mut |step| {
            step.insert(two, 20);
            step.insert(five, 50);
        });
        reader.join().unwrap();
        assert_eq!(values(&map), [20, 50, 6, 7, 8]);
    });
}

/// Fails if a scan that met a leaf before the step takes it for unchanged after the step.
#[test]
fn a_scan_sees_a_step_over_two_leaves_whole() {
    a_step_is_seen_whole("a_scan_sees_a_step_over_two_leaves_whole", SHORT);
}

/// Fails if a leaf counts as preserved for a snapshot that began after the step had it.
#[test]
fn a_snapshot_sees_a_step_over_two_leaves_whole() {
    a_step_is_seen_whole("a_snapshot_sees_a_step_over_two_leaves_whole", usize::MAX);
}

fn a_step_is_seen_whole(name: &str, limit: usize) {
    check(name, 2, move || {
        let map = three_leaves();
        let other = Arc::clone(&map);
        let (two, five) = (far(2), far(5));
        let scanner = thread::spawn(move || {
            let mut entries = Vec::new();
            let range = KeyRange::new(Bound::Unbounded, Bound::Included(&five));
            other.scan(range, Direction::Ascending, limit, &mut entries);
            let pair = (entries[0].1, entries[1].1);
            assert!(matches!(pair, (2, 5) | (20, 50)), "{pair:?}");
        });
        let over = [KeyRange::only(&two), KeyRange::only(&five)];
        let steps = OrderedIndex::transactional(&*map).unwrap();
        steps.atomically(&over, &mut |step| {
            step.insert(two, 20);
            step.insert(five, 50);
        });
        scanner.join().unwrap();
        assert_eq!(values(&map), [20, 50, 6, 7, 8]);
    });
}

#[test]
fn a_snapshot_of_numbers_shows_all_while_leaves_are_merged() {
    let name = "a_snapshot_of_numbers_shows_all_while_leaves_are_merged";
    check(name, long(1), || {
        let map = three_leaves();
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            let seen = values(&other);
            assert!([&[2, 5, 6, 7, 8][..], &[2, 6, 7, 8]].contains(&&seen[..]));
        });
        map.remove(&far(5));
        reader.join().unwrap();
        assert_eq!(values(&map), [2, 6, 7, 8]);
    });
}
