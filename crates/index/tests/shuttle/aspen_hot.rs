//! Threads that append to a hot leaf, which is drained and becomes ordinary again and again, beside
//! threads that read. A hot leaf has two buckets of two entries here, an ordinary one three.

use tremula_index::key::ByteHead;
use tremula_index::{Aspen, Direction, KeyRange, OrderedIndex};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

type Map = Aspen<u64, u64, ByteHead, 1>;

/// A map of one entry, of whose leaf the high end is hot.
fn hot() -> Arc<Map> {
    let map = Map::default();
    map.insert(1, 1);
    map.heat(&1);
    Arc::new(map)
}

/// Keys far apart or close together.
fn key(number: u64, shift: u32) -> u64 {
    number << shift
}

/// Fails if a lookup misses what its thread has inserted, or if a scan shows a key twice, out of
/// order, or not at all though the thread's own earlier ones are there.
fn threads_append_and_look(name: &str, shift: u32) {
    check(name, 3_000, move || {
        let map = hot();
        let threads: Vec<_> = (0..2)
            .map(|thread| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    for number in 0..7 {
                        let number = 2 + number * 2 + thread;
                        assert_eq!(map.insert(key(number, shift), number), None);
                        assert_eq!(map.get(&key(number, shift)), Some(number));
                    }
                })
            })
            .collect();
        let other = Arc::clone(&map);
        let watcher = thread::spawn(move || {
            for round in 0..4 {
                let mut entries = Vec::new();
                let direction = [Direction::Ascending, Direction::Descending][round % 2];
                let limit = [999, usize::MAX][round / 2];
                other.scan(KeyRange::all(), direction, limit, &mut entries);
                entries.sort_unstable();
                assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0));
                // Each thread inserts in order.
                for thread in 0..2 {
                    let own = entries.iter().map(|(_, number)| *number);
                    let own: Vec<_> = own.filter(|n| *n > 1 && n % 2 == thread).collect();
                    let all: Vec<_> = (0..own.len() as u64).map(|n| 2 + n * 2 + thread).collect();
                    assert_eq!(own, all);
                }
                other.last();
            }
        });
        for thread in threads {
            thread.join().unwrap();
        }
        watcher.join().unwrap();
        let entries = map.snapshot(KeyRange::all()).unwrap();
        assert_eq!((entries.len(), map.len()), (15, 15));
        for number in 2..16 {
            assert_eq!(map.get(&key(number, shift)), Some(number));
        }
    });
}

#[test]
fn threads_append_spread_keys_to_a_hot_leaf() {
    threads_append_and_look("threads_append_spread_keys_to_a_hot_leaf", 40);
}

#[test]
fn threads_append_close_keys_to_a_hot_leaf() {
    threads_append_and_look("threads_append_close_keys_to_a_hot_leaf", 4);
}

/// Fails if a reader finds a leaf empty while its entries move.
#[test]
fn a_drain_and_cooling_hide_nothing_from_a_reader() {
    let name = "a_drain_and_cooling_hide_nothing_from_a_reader";
    check(name, 3_000, || {
        let map = hot();
        map.insert(key(2, 40), 2);
        map.insert(key(3, 40), 3);
        let other = Arc::clone(&map);
        let reader = thread::spawn(move || {
            for number in [2, 3, 2, 3] {
                assert_eq!(other.get(&key(number, 40)), Some(number));
            }
        });
        let writers: Vec<_> = [4, 8]
            .map(|from| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    for number in from..from + 4 {
                        map.insert(key(number, 40), number);
                    }
                })
            })
            .into();
        for writer in writers {
            writer.join().unwrap();
        }
        reader.join().unwrap();
        map.remove_range(KeyRange::new(
            std::ops::Bound::Included(&key(4, 40)),
            std::ops::Bound::Unbounded,
        ));
        assert_eq!(map.len(), 3);
    });
}

/// Fails if a thread that waits for a leaf goes on waiting when the leaf has become hot.
#[test]
fn a_leaf_becomes_hot_while_threads_insert() {
    check("a_leaf_becomes_hot_while_threads_insert", 3_000, || {
        let map = Map::default();
        map.insert(key(1, 40), 1);
        map.insert(key(2, 40), 2);
        let map = Arc::new(map);
        let threads: Vec<_> = [3, 4]
            .map(|number| {
                let map = Arc::clone(&map);
                thread::spawn(move || {
                    assert_eq!(map.get(&key(2, 40)), Some(2));
                    assert_eq!(map.insert(key(number, 40), number), None);
                    assert_eq!(map.insert(key(number + 2, 40), number + 2), None);
                    assert_eq!(map.get(&key(number, 40)), Some(number));
                })
            })
            .into();
        map.heat(&key(2, 40));
        for thread in threads {
            thread.join().unwrap();
        }
        for number in 1..7 {
            assert_eq!(map.get(&key(number, 40)), Some(number));
        }
        assert_eq!(map.len(), 6);
    });
}
