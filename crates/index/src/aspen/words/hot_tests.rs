//! Hot leaves against a model, and with threads that take turns, so that both take part in filling
//! each table.

use super::hot::End;
use super::tests::{Small, contents, key, put};
use super::{Batch, Change, Cursor, Keys, Words};
use crate::contract::Direction;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;
use tremula_sync::atomic::Ordering;

const THREADS: u64 = 2;
/// Keys that a thread inserts before it waits for the others.
const TURN: u64 = 20;

/// Eight entries around a key, so that its leaf can become hot.
fn seeded<const UNITS: usize>(around: u64) -> Words<UNITS> {
    let words = Words::new();
    for number in 0..8 {
        put(&words, around + number, number);
    }
    words
}

/// Each thread inserts keys in turn with the others: those that `key` makes of ascending numbers.
fn insert_in_turns<const UNITS: usize>(
    words: &Words<UNITS>,
    turns: u64,
    key: impl Fn(u64) -> u64 + Sync,
) {
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (key, barrier) = (&key, &barrier);
            scope.spawn(move || {
                for turn in 0..turns {
                    for number in 0..TURN {
                        let number = (turn * TURN + number) * THREADS + thread;
                        assert_eq!(put(words, key(number), number), None);
                    }
                    barrier.wait();
                }
            });
        }
    });
}

fn counted<const UNITS: usize>(words: &Words<UNITS>, name: &str) -> u64 {
    let figures = words.figures(0);
    figures.iter().find(|(other, _)| *other == name).unwrap().1
}

fn last<const UNITS: usize>(words: &Words<UNITS>) -> Option<(u64, u64)> {
    let mut entry = None;
    words.collect(Keys::ALL, Direction::Descending, 1, &mut entry);
    entry
}

/// What is in the map: `key` of each number below `count`, and the eight entries of the seed.
fn check_all<const UNITS: usize>(
    words: &Words<UNITS>,
    seed: u64,
    count: u64,
    key: impl Fn(u64) -> u64,
) {
    words.check_at_rest();
    let seeds = (0..8).map(|number| (seed + number, number));
    let mut model: BTreeMap<u64, u64> = seeds.collect();
    model.extend((0..count).map(|number| (key(number), number)));
    for (key, value) in &model {
        assert_eq!(words.get(*key), Some(*value));
    }
    assert_eq!(contents(words), Vec::from_iter(model));
}

#[test]
fn what_threads_append_is_drained_into_ordinary_leaves() {
    type Case = (u64, End, fn(u64) -> u64);
    let keys: [Case; 4] = [
        (0, End::High, |number| 8 + number),
        (0, End::High, |number| (1 + number) << 10),
        (1 << 60, End::Low, |number| (1 << 60) - 1 - number),
        (1 << 60, End::Low, |number| (1 << 60) - ((1 + number) << 10)),
    ];
    for (seed, end, key) in keys {
        let words = seeded::<8>(seed);
        words.heat_at(seed + 4, end);
        insert_in_turns(&words, 500, key);
        assert!(counted(&words, "drains") > 10, "{end:?}");
        assert_eq!(
            (counted(&words, "heated"), counted(&words, "cooled")),
            (1, 0)
        );
        assert_eq!(counted(&words, "hot_leaves"), 1);
        let leaves = words.leaf_count() as u64;
        assert!(leaves < 500 * TURN * THREADS / 120, "{leaves} leaves");
        check_all(&words, seed, 500 * TURN * THREADS, key);
    }
}

/// Many tables of rows in one map, each with a counter of its own.
#[test]
fn leaves_in_the_middle_become_hot_too() {
    const BEFORE: u64 = 400;
    let row = |number: u64| (1 + number / 2 % 8) << 48 | (BEFORE + number / 16 * 2 + number % 2);
    let words = Words::<8>::new();
    for number in 0..BEFORE {
        for table in 1..=8 {
            put(&words, table << 48 | number, number);
        }
    }
    for table in 1..=8 {
        words.heat_at(table << 48 | (BEFORE - 1), End::High);
    }
    let before = words.len();
    insert_in_turns(&words, 500, row);
    words.check_at_rest();
    assert_eq!(words.len(), before + 500 * (TURN * THREADS) as usize);
    assert!(counted(&words, "drains") > 8);
    assert_eq!(counted(&words, "hot_leaves"), 8);
    for number in 0..500 * TURN * THREADS {
        assert_eq!(words.get(row(number)), Some(number));
    }
}

/// Fails if a leaf stays hot although nobody fights over it any more.
#[test]
fn a_leaf_that_one_thread_fills_alone_becomes_ordinary() {
    for (seed, end) in [(0, End::High), (1 << 60, End::Low)] {
        let words = seeded::<8>(seed);
        words.heat_at(seed, end);
        let key = |number: u64| match end {
            End::High => 8 + number,
            End::Low => (1 << 60) - 1 - number,
        };
        for number in 0..10_000 {
            assert_eq!(put(&words, key(number), number), None);
        }
        assert_eq!(
            (counted(&words, "hot_leaves"), counted(&words, "cooled")),
            (0, 1)
        );
        check_all(&words, seed, 10_000, key);
    }
}

/// Fails if looking at the end makes a leaf ordinary that threads append to, or if a leaf stays hot
/// that is looked at and nothing else.
#[test]
fn polling_the_end_does_not_make_a_leaf_flap() {
    let words = seeded::<8>(0);
    words.heat_at(7, End::High);
    insert_in_turns(&words, 100, |number| {
        for _ in 0..3 {
            assert!(last(&words).is_some());
        }
        let mut cursor = Some(Cursor::new(Keys::new(number + 7, u64::MAX)));
        let mut batch = Batch::new();
        words.advance(&mut cursor, Direction::Ascending, &mut batch);
        number + 8
    });
    assert!(counted(&words, "drains") > 3);
    assert_eq!(
        (counted(&words, "heated"), counted(&words, "cooled")),
        (1, 0)
    );
    assert_eq!(counted(&words, "locked_scans"), 0);
    let greatest = 100 * TURN * THREADS + 7;
    for _ in 0..1001 {
        assert_eq!(last(&words).map(|entry| entry.0), Some(greatest));
    }
    assert_eq!(
        (counted(&words, "hot_leaves"), counted(&words, "cooled")),
        (0, 1)
    );
    words.check_at_rest();
}

/// Threads that meet at the end, as fast as they can.
#[test]
fn threads_that_append_at_once_make_a_hot_leaf() {
    let words = Words::<8>::new();
    let next = std::sync::atomic::AtomicU64::new(1);
    let inserted = std::sync::atomic::AtomicU64::new(0);
    let beginning = std::time::Instant::now();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (words, next, inserted) = (&words, &next, &inserted);
            scope.spawn(move || {
                while words.counters.drains.load(Ordering::Relaxed) < 3
                    && beginning.elapsed().as_secs() < 60
                {
                    for _ in 0..100 {
                        let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        assert_eq!(put(words, number << 10 | thread, number), None);
                        inserted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let figures = words.figures(0);
    assert!(
        counted(&words, "drains") >= 3,
        "within a minute: {figures:?}"
    );
    words.check_at_rest();
    let all = contents(&words);
    assert_eq!(all.len() as u64, inserted.into_inner());
    assert!(all.iter().all(|(key, value)| key >> 10 == *value));
}

fn hot_leaves_behave_like_a_model<const UNITS: usize>(cases: u32, length: usize) {
    let operation = (0..14_u8, 0..1_u64 << 10, 0..1_u64 << 10, any::<u64>());
    let input = (
        0..super::tests::SETS,
        prop::collection::vec(operation, 1..length),
        any::<bool>(),
    );
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |((set, operations, ordered) in input)| {
        let words = Words::<UNITS>::new();
        let mut model = BTreeMap::new();
        for (step, (what, number, other, value)) in operations.into_iter().enumerate() {
            let number = if ordered { step as u64 } else { number };
            let (a, b) = (key(set, number), key(set, other));
            let keys = Keys::new(a.min(b), a.max(b));
            match what {
                0..4 => prop_assert_eq!(put(&words, a, value), model.insert(a, value)),
                // By another thread, so that the leaf is not one thread's.
                4 => {
                    let old = thread::scope(|scope| scope.spawn(|| put(&words, a, value)).join());
                    prop_assert_eq!(old.unwrap(), model.insert(a, value));
                }
                5..7 => prop_assert_eq!(words.remove(b), model.remove(&b)),
                7 => prop_assert_eq!(words.get(b), model.get(&b).copied()),
                8 if value % 2 == 0 => words.heat_at(b, End::High),
                8 => words.heat_at(b, End::Low),
                9 => prop_assert_eq!(last(&words), model.last_key_value().map(|(k, v)| (*k, *v))),
                10 => {
                    for direction in [Direction::Ascending, Direction::Descending] {
                        let mut found = Found(Vec::new());
                        words.collect(keys, direction, 20, &mut found);
                        let range = model.range(keys.first..=keys.last).map(|(k, v)| (*k, *v));
                        let expected: Vec<_> = match direction {
                            Direction::Ascending => range.take(20).collect(),
                            Direction::Descending => range.rev().take(20).collect(),
                        };
                        prop_assert_eq!(found.0, expected);
                    }
                }
                11 if value % 16 == 0 => {
                    let count = words.remove_range(words.lock(&[keys]), keys, |_| ());
                    let before = model.len();
                    model.retain(|key, _| !(keys.first..=keys.last).contains(key));
                    prop_assert_eq!(count, before - model.len());
                }
                11 if value % 16 == 1 => {
                    prop_assert_eq!(words.pop(Direction::Descending, |_| ()), model.pop_last());
                }
                11 if value % 16 == 2 => {
                    prop_assert_eq!(words.pop(Direction::Ascending, |_| ()), model.pop_first());
                }
                12 => {
                    let old = words.change(b, |_| Change::Remove);
                    prop_assert_eq!(old, model.remove(&b));
                }
                _ => {
                    words.change(b, |old| {
                        assert_eq!(old, model.get(&b).copied());
                        Change::Keep
                    });
                }
            }
            if step % 64 == 0 {
                words.check_at_rest();
                prop_assert_eq!(contents(&words), Vec::from_iter(model.clone()));
            }
        }
        words.check_at_rest();
        prop_assert_eq!(contents(&words), Vec::from_iter(model));
    });
}

struct Found(Vec<(u64, u64)>);

impl super::Sink for Found {
    fn take(&mut self, entries: &[(u64, u64)]) {
        self.0.extend_from_slice(entries);
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

#[test]
fn random_operations_with_hot_leaves_match_a_model() {
    hot_leaves_behave_like_a_model::<8>(60, 2000);
}

#[test]
fn random_operations_with_small_hot_leaves_match_a_model() {
    hot_leaves_behave_like_a_model::<1>(60, 2000);
}

/// Fails if a step or a merge takes a hot leaf for one that is locked for a moment.
#[test]
fn steps_go_over_hot_leaves() {
    let words = Small::new();
    for number in 0..400 {
        put(&words, number << 20, number);
    }
    for number in [40, 100, 101, 250, 399] {
        words.heat_at(number << 20, End::High);
    }
    assert!(counted(&words, "hot_leaves") > 0);
    let mut locks = words.lock(&[Keys::new(50 << 20, 60 << 20), Keys::new(99 << 20, u64::MAX)]);
    let place = locks.place(120 << 20);
    assert_eq!(locks.put(place, 7), Some(120));
    assert_eq!(locks.get(399 << 20), Some(399));
    locks.release();
    assert_eq!(words.get(120 << 20), Some(7));
    words.check_at_rest();
    words.merge(40 << 20);
    assert_eq!(words.len(), 400);
}
