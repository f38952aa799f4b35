//! Four threads and more on a tree that keeps changing its grain, under random schedules.
//!
//! The tree's thresholds are so low that writes split and scans join all the time.
#![cfg(shuttle)]

use std::ops::Bound;
use tremula_index::ca_tree::CaTreeConfig;
use tremula_index::{CaTree, Direction, KeyRange, OrderedIndex};
use tremula_sync::model::check;
use tremula_sync::{Arc, StatisticsConfig, thread};

type Tree = CaTree<u32, u32>;

/// Every second write splits, every scan over several base nodes may join.
fn restless() -> Tree {
    let statistics = StatisticsConfig {
        contended: 2,
        uncontended: -1,
        split_above: 1,
        join_below: -1,
        bias_after: 1,
    };
    CaTree::with_config(CaTreeConfig {
        statistics,
        range_discount: 4,
        max_route_depth: 4,
    })
}

/// A restless tree with the even keys below `end`, each its own value.
fn evens(end: u32) -> Arc<Tree> {
    let tree = restless();
    for key in (0..end).step_by(2) {
        tree.insert(key, key);
    }
    Arc::new(tree)
}

fn join_all(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

fn keys_of(entries: &[(u32, u32)]) -> Vec<u32> {
    entries.iter().map(|(key, _)| *key).collect()
}

/// Checks a scan: in order, and no even key of `range` missing.
fn check_scan(entries: &[(u32, u32)], low: u32, high: u32) {
    let keys = keys_of(entries);
    assert!(keys.is_sorted_by(|a, b| a < b), "out of order: {keys:?}");
    for even in (low..high).filter(|key| key % 2 == 0) {
        assert!(keys.contains(&even), "{even} is missing from {keys:?}");
    }
}

#[test]
fn scans_see_every_stable_key_while_the_tree_splits_and_joins() {
    check(
        "scans_see_every_stable_key_while_the_tree_splits_and_joins",
        30_000,
        || {
            let tree = evens(12);
            let mut threads = Vec::new();
            for number in 0..2 {
                let tree = Arc::clone(&tree);
                threads.push(thread::spawn(move || {
                    for key in [1, 5, 9] {
                        tree.insert(key + 2 * number, key);
                        tree.remove(&(key + 2 * number));
                    }
                }));
            }
            let ascending = Arc::clone(&tree);
            threads.push(thread::spawn(move || {
                for _ in 0..2 {
                    let mut entries = Vec::new();
                    let range = KeyRange::new(Bound::Included(&2), Bound::Excluded(&10));
                    ascending.scan(range, Direction::Ascending, usize::MAX, &mut entries);
                    check_scan(&entries, 2, 10);
                }
            }));
            let descending = Arc::clone(&tree);
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
            assert_eq!(
                keys_of(&tree.snapshot(KeyRange::all()).unwrap()),
                [0, 2, 4, 6, 8, 10]
            );
            assert_eq!(tree.len(), 6);
        },
    );
}

#[test]
fn a_snapshot_is_of_one_moment() {
    check("a_snapshot_is_of_one_moment", 30_000, || {
        // The first key is always written before the last one, far away.
        let tree = evens(12);
        let writer = Arc::clone(&tree);
        let mover = Arc::clone(&tree);
        let mut threads = vec![
            thread::spawn(move || {
                for generation in 100..104 {
                    writer.insert(0, generation);
                    writer.insert(10, generation);
                }
            }),
            thread::spawn(move || {
                // A token that is always somewhere.
                for (to, from) in [(1, 11), (11, 1), (3, 11)] {
                    mover.insert(to, 0);
                    mover.remove(&from);
                }
            }),
        ];
        tree.insert(11, 0);
        for _ in 0..2 {
            let tree = Arc::clone(&tree);
            threads.push(thread::spawn(move || {
                for _ in 0..2 {
                    let entries = tree.snapshot(KeyRange::all()).unwrap();
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

#[test]
fn every_entry_is_popped_once_from_either_end() {
    check("every_entry_is_popped_once_from_either_end", 20_000, || {
        let tree = evens(20);
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let tree = Arc::clone(&tree);
                thread::spawn(move || {
                    let mut popped = Vec::new();
                    while let Some((key, _)) = if number % 2 == 0 {
                        tree.pop_first()
                    } else {
                        tree.pop_last()
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
        assert!(tree.is_empty());
    });
}

#[test]
fn ranges_are_removed_whole_while_neighbours_are_written() {
    check(
        "ranges_are_removed_whole_while_neighbours_are_written",
        20_000,
        || {
            let tree = evens(16);
            let remover = Arc::clone(&tree);
            let mut threads = vec![thread::spawn(move || {
                let range = KeyRange::new(Bound::Included(&4), Bound::Excluded(&12));
                assert_eq!(remover.remove_range(range), 4);
            })];
            for number in 0..2 {
                let tree = Arc::clone(&tree);
                threads.push(thread::spawn(move || {
                    for key in [1, 13] {
                        tree.insert(key + 2 * number, key);
                    }
                }));
            }
            let scanner = Arc::clone(&tree);
            threads.push(thread::spawn(move || {
                let range = KeyRange::new(Bound::Included(&4), Bound::Excluded(&12));
                let entries = scanner.snapshot(range).unwrap();
                assert!(
                    matches!(keys_of(&entries)[..], [] | [4, 6, 8, 10]),
                    "{entries:?}"
                );
            }));
            join_all(threads);
            let left = keys_of(&tree.snapshot(KeyRange::all()).unwrap());
            assert_eq!(left, [0, 1, 2, 3, 12, 13, 14, 15]);
        },
    );
}

#[test]
fn increments_are_not_lost_across_adaptations() {
    check("increments_are_not_lost_across_adaptations", 20_000, || {
        let tree = evens(8);
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let tree = Arc::clone(&tree);
                thread::spawn(move || {
                    for key in [0, 4, 6] {
                        tree.update(key, &mut |value| {
                            tremula_index::Update::Put(value.copied().unwrap_or(0) + 100)
                        });
                    }
                    if number == 0 {
                        tree.scan(KeyRange::all(), Direction::Ascending, 8, &mut Vec::new());
                    }
                })
            })
            .collect();
        join_all(threads);
        for key in [0, 4, 6] {
            assert_eq!(tree.get(&key), Some(key + 400));
        }
    });
}
