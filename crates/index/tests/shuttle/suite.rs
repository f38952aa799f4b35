//! What every engine must withstand under random schedules of four threads and more, written
//! against [`OrderedIndex`] alone.

use std::ops::Bound;
use tremula_index::{Direction, KeyRange, OrderedIndex};
use tremula_sync::{Arc, thread};

/// An index to test, shared by the threads of a schedule.
pub(crate) type Index = Arc<dyn OrderedIndex<u32, u32>>;

/// Makes an index that keeps changing its shape.
pub(crate) type Make = fn() -> Index;

/// Runs tests of the suite on the engine that an expression makes.
macro_rules! engine {
    ($name:ident, $make:expr, [$($test:ident),* $(,)?]) => {
        mod $name {
            use super::*;

            $(#[test]
            fn $test() {
                let name = concat!(stringify!($name), "::", stringify!($test));
                suite::$test(name, || tremula_sync::Arc::new($make) as suite::Index);
            })*
        }
    };
}

/// Runs the tests of the suite that a registered engine promises to pass, in its default
/// configuration: with the small nodes and low thresholds that engines have under random schedules.
macro_rules! registered {
    ($name:ident, $Index:ident, $keys:ident, OneMoment) => {
        engine!(
            $name,
            $Index::<_, _>::new(),
            [
                scans_see_every_stable_key_while_the_index_changes,
                a_snapshot_is_of_one_moment,
                every_entry_is_popped_once_from_either_end,
                ranges_are_removed_whole_while_neighbours_are_written,
                increments_are_not_lost,
                ranges_that_overlap_are_removed_once,
                what_is_put_before_a_range_goes_goes_with_it,
            ]
        );
    };
    ($name:ident, $Index:ident, $keys:ident, Ordered) => {
        engine!(
            $name,
            $Index::<_, _>::new(),
            [
                scans_see_every_stable_key_while_the_index_changes,
                every_entry_is_popped_once_from_either_end,
                increments_are_not_lost,
            ]
        );
    };
}

pub(crate) use {engine, registered};

/// An index with the even keys below `end`, each its own value.
pub(crate) fn evens(make: Make, end: u32) -> Index {
    let index = make();
    for key in (0..end).step_by(2) {
        index.insert(key, key);
    }
    index
}

/// Runs a test of this module under random schedules.
pub(crate) fn check(name: &str, engine: Make, schedules: usize, test: fn(Make)) {
    tremula_sync::model::check(name, schedules, move || test(engine));
}

pub(crate) fn join_all(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

fn keys_of(entries: &[(u32, u32)]) -> Vec<u32> {
    entries.iter().map(|(key, _)| *key).collect()
}

/// The keys of a quiescent index.
pub(crate) fn keys(index: &Index) -> Vec<u32> {
    let mut entries = Vec::new();
    index.scan(
        KeyRange::all(),
        Direction::Ascending,
        usize::MAX,
        &mut entries,
    );
    keys_of(&entries)
}

/// Checks that a scan is in order and misses no even key of `range`.
fn check_scan(entries: &[(u32, u32)], low: u32, high: u32) {
    let keys = keys_of(entries);
    assert!(keys.is_sorted_by(|a, b| a < b), "out of order: {keys:?}");
    for even in (low..high).filter(|key| key % 2 == 0) {
        assert!(keys.contains(&even), "{even} is missing from {keys:?}");
    }
}

pub(crate) fn scans_see_every_stable_key_while_the_index_changes(name: &str, make: Make) {
    check(name, make, 30_000, |make| {
        let index = evens(make, 12);
        let mut threads = Vec::new();
        for number in 0..2 {
            let index = Arc::clone(&index);
            threads.push(thread::spawn(move || {
                for key in [1, 5, 9] {
                    index.insert(key + 2 * number, key);
                    index.remove(&(key + 2 * number));
                }
            }));
        }
        let ascending = Arc::clone(&index);
        threads.push(thread::spawn(move || {
            for _ in 0..2 {
                let mut entries = Vec::new();
                let range = KeyRange::new(Bound::Included(&2), Bound::Excluded(&10));
                ascending.scan(range, Direction::Ascending, usize::MAX, &mut entries);
                check_scan(&entries, 2, 10);
            }
        }));
        let descending = Arc::clone(&index);
        threads.push(thread::spawn(move || {
            for _ in 0..2 {
                let mut entries = Vec::new();
                descending.scan(
                    KeyRange::all(),
                    Direction::Descending,
                    usize::MAX,
                    &mut entries,
                );
                entries.reverse();
                check_scan(&entries, 0, 12);
            }
        }));
        join_all(threads);
        assert_eq!(keys(&index), [0, 2, 4, 6, 8, 10]);
        assert_eq!(index.len(), 6);
    });
}

pub(crate) fn a_snapshot_is_of_one_moment(name: &str, make: Make) {
    check(name, make, 30_000, |make| {
        // The first key is always written before the last one, far away.
        let index = evens(make, 12);
        let writer = Arc::clone(&index);
        let mover = Arc::clone(&index);
        let mut threads = vec![
            thread::spawn(move || {
                for generation in 100..104 {
                    writer.insert(0, generation);
                    writer.insert(10, generation);
                }
            }),
            thread::spawn(move || {
                // A token that is always present at some key.
                for (to, from) in [(1, 11), (11, 1), (3, 11)] {
                    mover.insert(to, 0);
                    mover.remove(&from);
                }
            }),
        ];
        index.insert(11, 0);
        for _ in 0..2 {
            let index = Arc::clone(&index);
            threads.push(thread::spawn(move || {
                for _ in 0..2 {
                    let entries = index.snapshot(KeyRange::all()).unwrap();
                    let value = |key| entries.iter().find(|(other, _)| *other == key).unwrap().1;
                    let (first, last) = (value(0).max(99), value(10).max(99));
                    assert!(
                        first == last || first == last + 1,
                        "{first} and {last}: {entries:?}"
                    );
                }
            }));
        }
        join_all(threads);
    });
}

pub(crate) fn every_entry_is_popped_once_from_either_end(name: &str, make: Make) {
    check(name, make, 20_000, |make| {
        let index = evens(make, 20);
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let index = Arc::clone(&index);
                thread::spawn(move || {
                    let mut popped = Vec::new();
                    while let Some((key, _)) = if number % 2 == 0 {
                        index.pop_first()
                    } else {
                        index.pop_last()
                    } {
                        popped.push(key);
                    }
                    popped
                })
            })
            .collect();
        let mut popped: Vec<_> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        popped.sort_unstable();
        assert_eq!(popped, (0..20).step_by(2).collect::<Vec<_>>());
        assert!(index.is_empty());
    });
}

pub(crate) fn ranges_are_removed_whole_while_neighbours_are_written(name: &str, make: Make) {
    check(name, make, 20_000, |make| {
        let index = evens(make, 16);
        let remover = Arc::clone(&index);
        let mut threads = vec![thread::spawn(move || {
            let range = KeyRange::new(Bound::Included(&4), Bound::Excluded(&12));
            assert_eq!(remover.remove_range(range), 4);
        })];
        for number in 0..2 {
            let index = Arc::clone(&index);
            threads.push(thread::spawn(move || {
                for key in [1, 13] {
                    index.insert(key + 2 * number, key);
                }
            }));
        }
        let scanner = Arc::clone(&index);
        threads.push(thread::spawn(move || {
            let range = KeyRange::new(Bound::Included(&4), Bound::Excluded(&12));
            let entries = scanner.snapshot(range).unwrap();
            assert!(
                matches!(keys_of(&entries)[..], [] | [4, 6, 8, 10]),
                "{entries:?}"
            );
        }));
        join_all(threads);
        let left = keys(&index);
        assert_eq!(left, [0, 1, 2, 3, 12, 13, 14, 15]);
    });
}

pub(crate) fn increments_are_not_lost(name: &str, make: Make) {
    check(name, make, 20_000, |make| {
        let index = evens(make, 8);
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let index = Arc::clone(&index);
                thread::spawn(move || {
                    for key in [0, 4, 6] {
                        index.update(key, &mut |value| {
                            tremula_index::Update::Put(value.copied().unwrap_or(0) + 100)
                        });
                    }
                    if number == 0 {
                        index.scan(KeyRange::all(), Direction::Ascending, 8, &mut Vec::new());
                    }
                })
            })
            .collect();
        join_all(threads);
        for key in [0, 4, 6] {
            assert_eq!(index.get(&key), Some(key + 400));
        }
    });
}

pub(crate) fn ranges_that_overlap_are_removed_once(name: &str, make: Make) {
    check(name, make, 8_000, |make| {
        let index = evens(make, 16);
        let threads: Vec<_> = [(0, 10), (4, 14), (6, 8)]
            .into_iter()
            .map(|(low, high)| {
                let index = Arc::clone(&index);
                thread::spawn(move || {
                    let range = KeyRange::new(Bound::Included(&low), Bound::Excluded(&high));
                    index.remove_range(range)
                })
            })
            .collect();
        let removed: usize = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        assert_eq!(removed, 7);
        assert_eq!(keys(&index), [14]);
        assert_eq!(index.len(), 1);
    });
}

/// A key is put below all others, into a node that has to make room for it, while everything is
/// removed. If the thread that puts it then still finds the last of the others, the removal comes
/// later, and has to take the new key as well.
pub(crate) fn what_is_put_before_a_range_goes_goes_with_it(name: &str, make: Make) {
    check(name, make, 8_000, |make| {
        let index = make();
        for key in 10..18 {
            index.insert(key, key);
        }
        let (remover, writer) = (Arc::clone(&index), Arc::clone(&index));
        let remover = thread::spawn(move || remover.remove_range(KeyRange::all()));
        let writer = thread::spawn(move || {
            writer.insert(5, 5);
            writer.get(&17).is_some()
        });
        let (removed, put_before) = (remover.join().unwrap(), writer.join().unwrap());
        let is_left = index.get(&5).is_some();
        assert!(!(put_before && is_left));
        assert_eq!(removed, 8 + usize::from(!is_left));
    });
}
