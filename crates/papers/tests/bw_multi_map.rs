//! The Bw-tree with many values under one key, against `BTreeMap<K, BTreeSet<V>>`, and under
//! several threads.
#![cfg(not(any(loom, shuttle)))]

mod support;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use support::counted::{Counted, Ledger};
use support::restless_bw;
use support::suite::{Random, join_all, scaled};
use support::values::Key;
use tremula_index::key::{ByteHead, KeyHead, NoHead};
use tremula_index::{Direction, KeyRange};
use tremula_papers::BwMultiMap;

type Model<K, V> = BTreeMap<K, BTreeSet<V>>;

const THREADS: u32 = 4;

/// An operation; the numbers stand for keys and values.
#[derive(Clone, Debug)]
enum Operation {
    Insert(u32, u32),
    Remove(u32, u32),
    RemoveAll(u32),
    RemoveRange(Bound<u32>, Bound<u32>),
    Look(u32, u32),
    Range(Bound<u32>, Bound<u32>, Direction, usize),
    /// Inserts consecutive values of a key: the first, and how many.
    Fill(u32, u32),
}

/// Few keys with many values, so that the values of one key take many leaves.
fn operation(keys: u32, values: u32) -> impl Strategy<Value = Operation> {
    use Operation::*;
    let key = move || 0..keys;
    let value = move || 0..values;
    let bound = move || {
        prop_oneof![
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    };
    let direction = prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)];
    prop_oneof![
        12 => (key(), value()).prop_map(|(key, value)| Insert(key, value)),
        8 => (key(), value()).prop_map(|(key, value)| Remove(key, value)),
        1 => key().prop_map(RemoveAll),
        1 => (bound(), bound()).prop_map(|(low, high)| RemoveRange(low, high)),
        6 => (key(), value()).prop_map(|(key, value)| Look(key, value)),
        3 => (bound(), bound(), direction, 0..values as usize)
            .prop_map(|(low, high, direction, limit)| Range(low, high, direction, limit)),
        2 => (key(), 1..=values / 2).prop_map(|(key, count)| Fill(key, count)),
    ]
}

/// The pairs of a range, in order.
fn pairs<K: Key, V: Key>(model: &Model<K, V>, range: KeyRange<'_, K>) -> Vec<(K, V)> {
    let all = model
        .iter()
        .flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
    all.filter(|(key, _)| range.contains(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Does an operation on map and model, and compares the results.
fn apply<K: Key, V: Key, H: KeyHead<K>>(
    map: &BwMultiMap<K, V, H>,
    model: &mut Model<K, V>,
    operation: &Operation,
) {
    match operation {
        Operation::Insert(key, value) => {
            let (key, value) = (K::make(*key), V::make(*value));
            let is_new = model.entry(key.clone()).or_default().insert(value.clone());
            assert_eq!(map.insert(key, value), is_new);
        }
        Operation::Remove(key, value) => {
            let (key, value) = (K::make(*key), V::make(*value));
            let was_there = model.entry(key.clone()).or_default().remove(&value);
            assert_eq!(map.remove(&key, &value), was_there);
        }
        Operation::RemoveAll(key) => {
            let key = K::make(*key);
            let removed = model.remove(&key).unwrap_or_default();
            assert_eq!(map.remove_all(&key), removed.len());
        }
        Operation::RemoveRange(low, high) => {
            let (low, high) = (low.map(K::make), high.map(K::make));
            let range = KeyRange::new(low.as_ref(), high.as_ref());
            assert_eq!(map.remove_range(range), pairs(model, range).len());
            model.retain(|key, _| !range.contains(key));
        }
        Operation::Look(key, value) => {
            let (key, value) = (K::make(*key), V::make(*value));
            let values = model.get(&key).cloned().unwrap_or_default();
            assert_eq!(map.contains(&key, &value), values.contains(&value));
            assert_eq!(map.contains_key(&key), !values.is_empty());
            assert_eq!(map.count(&key), values.len());
            assert_eq!(map.values(&key), Vec::from_iter(values));
        }
        Operation::Range(low, high, direction, limit) => {
            let (low, high) = (low.map(K::make), high.map(K::make));
            let range = KeyRange::new(low.as_ref(), high.as_ref());
            let mut expected = pairs(model, range);
            assert_eq!(map.snapshot(range), expected);
            if *direction == Direction::Descending {
                expected.reverse();
            }
            let mut seen = Vec::new();
            map.range(range, *direction, |key, value| {
                seen.push((key.clone(), value.clone()));
                if seen.len() > *limit {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            expected.truncate(limit + 1);
            assert_eq!(seen, expected);
        }
        Operation::Fill(key, count) => {
            for number in 0..*count {
                let (key, value) = (K::make(*key), V::make(number));
                let is_new = model.entry(key.clone()).or_default().insert(value.clone());
                assert_eq!(map.insert(key, value), is_new);
            }
        }
    }
}

fn equals_its_model<K: Key, V: Key, H: KeyHead<K>>(make: impl Fn() -> BwMultiMap<K, V, H>) {
    for (keys, values, length, cases) in [(4, 60, 120, 150), (1_000, 4, 120, 60)] {
        let config = ProptestConfig {
            cases: scaled(cases).max(5),
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let sequences = prop::collection::vec(operation(keys, values), 1..=length);
        let result = TestRunner::new(config).run(&sequences, |operations| {
            let map = make();
            let mut model = Model::new();
            for operation in &operations {
                apply(&map, &mut model, operation);
            }
            let all = pairs(&model, KeyRange::all());
            assert_eq!((map.len(), map.is_empty()), (all.len(), all.is_empty()));
            assert_eq!(map.snapshot(KeyRange::all()), all);
            for (key, values) in &model {
                let mut seen = BTreeSet::new();
                map.for_each_value(key, |value| {
                    assert!(seen.insert(value.clone()), "shown twice");
                    ControlFlow::Continue(())
                });
                assert_eq!(seen, *values);
            }
            Ok(())
        });
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn pairs_of_numbers_are_as_in_the_model() {
    equals_its_model(|| BwMultiMap::<u64, u64>::with_config(restless_bw()));
    equals_its_model(BwMultiMap::<u64, u64>::new);
}

#[test]
fn pairs_of_strings_are_as_in_the_model() {
    equals_its_model(|| BwMultiMap::<String, String, ByteHead>::with_config(restless_bw()));
}

/// Keys that their heads determine with values that do not fit a word, and the other way round.
#[test]
fn pairs_of_numbers_and_strings_are_as_in_the_model() {
    equals_its_model(|| BwMultiMap::<u64, String>::with_config(restless_bw()));
    equals_its_model(|| BwMultiMap::<String, u64>::with_config(restless_bw()));
    equals_its_model(|| BwMultiMap::<u64, u64, NoHead>::with_config(restless_bw()));
}

/// Keys and values with ties in their first parts.
#[test]
fn pairs_that_can_only_be_compared_are_as_in_the_model() {
    type Map = BwMultiMap<(u8, String), (u8, String), NoHead>;
    equals_its_model(|| Map::with_config(restless_bw()));
}

/// Runs `work` in threads, with the number of each.
fn in_threads<R: Send>(work: impl Fn(u32) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        join_all(threads)
    })
}

/// All threads insert the same pairs under few keys, and then remove them. It would fail if an
/// insertion or removal of one pair succeeded twice, or never.
#[test]
fn each_pair_is_inserted_and_removed_by_one_thread() {
    let map = BwMultiMap::<u64, u64>::with_config(restless_bw());
    let pairs = scaled(4_000) as usize;
    let start = Barrier::new(THREADS as usize);
    let wins = in_threads(|_| {
        start.wait();
        let inserted = (0..pairs as u64).filter(|n| map.insert(n % 3, *n)).count();
        // Each thread has tried to insert all pairs before any thread removes one.
        start.wait();
        let removed = (0..pairs as u64)
            .filter(|n| map.remove(&(n % 3), n))
            .count();
        (inserted, removed)
    });
    let (inserted, removed): (Vec<_>, Vec<_>) = wins.into_iter().unzip();
    assert_eq!(inserted.iter().sum::<usize>(), pairs);
    assert_eq!(removed.iter().sum::<usize>(), pairs);
    assert!(map.is_empty());
    assert_eq!(map.snapshot(KeyRange::all()), []);
}

/// Some threads insert values, others remove all values of a key: each inserted value was removed
/// once, or is still there.
#[test]
fn what_is_removed_together_was_there_once() {
    let map = BwMultiMap::<u64, u64>::with_config(restless_bw());
    let removed = AtomicUsize::new(0);
    let each = scaled(6_000);
    in_threads(|number| {
        let mut random = Random::new(number);
        for turn in 0..each {
            let value = u64::from(number) << 32 | u64::from(turn);
            assert!(map.insert(random.below(3).into(), value));
            if random.below(40) == 0 {
                removed.fetch_add(map.remove_all(&random.below(3).into()), Relaxed);
            }
        }
    });
    let left = map.len();
    assert_eq!(map.snapshot(KeyRange::all()).len(), left);
    assert_eq!(removed.into_inner() + left, (THREADS * each) as usize);
}

/// A writer moves a window of values upwards under one key: it inserts the next value before it
/// removes the last. A reader that sees the values as of one moment sees a window without a gap, of
/// one length or one more. It would fail if leaves were seen as of different moments.
#[test]
fn the_values_of_a_key_are_of_one_moment() {
    const WINDOW: u64 = 40;
    let map = BwMultiMap::<u64, u64>::with_config(restless_bw());
    (0..WINDOW).for_each(|value| assert!(map.insert(1, value)));
    // Neighbouring keys, which must not be seen.
    (0..WINDOW).for_each(|value| assert!(map.insert(0, value) && map.insert(2, value)));
    let is_over = AtomicBool::new(false);
    in_threads(|number| {
        if number == 0 {
            let begun = Instant::now();
            for value in WINDOW..u64::from(scaled(20_000)) {
                assert!(map.insert(1, value));
                assert!(map.remove(&1, &(value - WINDOW)));
                if begun.elapsed() > Duration::from_secs(30) {
                    break;
                }
            }
            is_over.store(true, Relaxed);
            return;
        }
        let begun = Instant::now();
        while !is_over.load(Relaxed) && begun.elapsed() < Duration::from_secs(60) {
            let values = map.values(&1);
            let (first, length) = (values[0], values.len() as u64);
            assert!(values.iter().copied().eq(first..first + length));
            assert!(length == WINDOW || length == WINDOW + 1, "{length}");
            let count = map.count(&1) as u64;
            assert!(count == WINDOW || count == WINDOW + 1, "{count}");
            assert!(map.contains_key(&1));
        }
    });
}

/// Every key and value, made by any thread, is dropped once.
#[test]
fn keys_and_values_are_dropped_once() {
    let ledger = Ledger::default();
    {
        let map = BwMultiMap::<Counted<u64>, Counted<u64>>::with_config(restless_bw());
        in_threads(|number| {
            let mut random = Random::new(number);
            for _ in 0..scaled(8_000) {
                let key = ledger.make(random.below(8).into());
                let value = ledger.make(random.below(300).into());
                match random.below(20) {
                    0..=9 => _ = map.insert(key, value),
                    10..=17 => _ = map.remove(&key, &value),
                    18 => _ = map.values(&key),
                    _ => _ = map.remove_all(&key),
                }
            }
        });
        // One copy of each key and each value, and the fences.
        assert!(ledger.alive() >= 2 * map.len());
    }
    let begun = Instant::now();
    while ledger.alive() > 0 && begun.elapsed() < Duration::from_secs(60) {
        tremula_sync::epoch::pin().flush();
        thread::yield_now();
    }
    ledger.assert_settled();
}
