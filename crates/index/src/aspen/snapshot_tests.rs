//! Snapshots beside writers, of words and of values in boxes.

use super::{Aspen, Map};
use crate::contract::Storable;
use crate::key::{ByteHead, ByteKey};
use crate::snapshot_tests::{self, Progress, Subject};
use crate::{Direction, KeyRange, OrderedIndex};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Leaves of few entries.
type Small<K, V> = Aspen<K, V, ByteHead, 1>;

impl<K: ByteKey + Storable, V: Storable> Subject<K, V> for Small<K, V> {
    fn taken(&self, range: KeyRange<'_, K>, limit: usize) -> Vec<(K, V)> {
        let Map::Numbers(numbers) = &self.map else {
            panic!("keys that their heads determine");
        };
        numbers.snapshot_beside_writers(range, Direction::Ascending, limit)
    }

    fn check_at_rest(&self) {
        let Map::Numbers(numbers) = &self.map else {
            panic!("keys that their heads determine");
        };
        numbers.check_at_rest();
    }
}

#[test]
fn a_snapshot_shows_all_that_came_before_what_it_shows() {
    snapshot_tests::shows_all_that_came_before_what_it_shows::<u64, Small<_, _>>();
}

#[test]
fn a_snapshot_shows_a_step_whole_or_not_at_all() {
    snapshot_tests::shows_a_step_whole_or_not_at_all::<Small<_, _>>();
}

#[test]
fn a_snapshot_shows_the_removal_of_a_range_whole_or_not_at_all() {
    snapshot_tests::shows_the_removal_of_a_range_whole_or_not_at_all::<Small<_, _>>();
}

/// Threads append in turns of their own to a leaf that is hot again and again: of each thread a
/// snapshot shows a beginning, without a gap, and in order.
#[test]
fn a_snapshot_of_a_hot_leaf_shows_all_that_came_before_what_it_shows() {
    const THREADS: u64 = 2;
    const EACH: u64 = if cfg!(miri) { 60 } else { 60_000 };
    /// Each key that a thread appends goes once the thread is this far ahead.
    const BEHIND: u64 = 500;
    let map = &Small::<u64, Box<u64>>::default();
    for key in 0..8 {
        map.insert(key, Box::new(key));
    }
    let next = &AtomicU64::new(8);
    let progress = &Progress::default();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut mine = Vec::new();
                progress.write(EACH, |turn| {
                    if turn % 1000 == 0 && map.shape().get("hot_leaves") == Some(0) {
                        map.heat(&next.load(Ordering::SeqCst));
                    }
                    let key = next.fetch_add(1, Ordering::SeqCst);
                    // What came before: the key that this thread appended last.
                    let value = thread << 32 | mine.last().copied().unwrap_or(0);
                    assert!(map.insert(key, Box::new(value)).is_none());
                    mine.push(key);
                    if let Some(old) = mine.len().checked_sub(BEHIND as usize) {
                        assert!(map.remove(&mine[old]).is_some());
                    }
                });
            });
        }
        for direction in [Direction::Ascending, Direction::Descending] {
            scope.spawn(move || {
                progress.look_until(THREADS as usize, || {
                    let Map::Numbers(numbers) = &map.map else {
                        panic!("keys that their heads determine");
                    };
                    let range = KeyRange::new(Bound::Included(&8), Bound::Unbounded);
                    let mut taken = numbers.snapshot_beside_writers(range, direction, usize::MAX);
                    if direction == Direction::Descending {
                        taken.reverse();
                    }
                    assert!(taken.is_sorted_by(|one, other| one.0 < other.0));
                    for thread in 0..THREADS {
                        let of_thread = taken.iter().filter(|(_, value)| **value >> 32 == thread);
                        let of_thread: Vec<_> = of_thread.collect();
                        for pair in of_thread.windows(2) {
                            let before = *pair[1].1 & u64::from(u32::MAX);
                            assert_eq!(before, pair[0].0, "a gap before {}", pair[1].0);
                        }
                        assert!(of_thread.len() <= BEHIND as usize);
                    }
                });
            });
        }
    });
    let figures = map.shape();
    for name in ["heated", "drains", "snapshots", "copied_leaves"] {
        assert!(figures.get(name) > Some(0), "{name} in {figures:?}");
    }
    map.check_at_rest();
}
