//! A map of keys whose hashes collide, against a model and beside writers.

use super::{HashIndex, Sought};
use crate::key::KeyHead;
use crate::{Direction, Update};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Even keys are in their heads.
enum Heads {}

impl KeyHead<u64> for Heads {
    type Word = u64;
    const IS_KEY: bool = false;
    const SOME_ARE_KEYS: bool = true;

    fn is_only_of_one(head: u64) -> bool {
        head > 0
    }

    fn head(key: &u64) -> u64 {
        if key.is_multiple_of(2) { key + 2 } else { 0 }
    }

    fn key(head: u64) -> Option<u64> {
        head.checked_sub(2)
    }
}

type Map = HashIndex<u64, Arc<u64>, Heads>;

/// Pairs of keys have one hash; the hashes of four pairs in five lie close together, at either end
/// of a shard.
fn hash(key: u64) -> u64 {
    let pair = key / 2;
    let mixed = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match pair % 5 {
        0 | 1 => pair,
        2 | 3 => u64::MAX - pair,
        _ => mixed,
    }
}

fn sought<R>(key: u64, work: impl FnOnce(&Sought<'_, u64>) -> R) -> R {
    let compare = |other: &u64| other.cmp(&key);
    work(&Sought::new(hash(key), Heads::head(&key), &compare))
}

fn put(map: &Map, key: u64, value: u64) -> Option<u64> {
    let put = |_: Option<&Arc<u64>>| Update::Put(Arc::new(value));
    sought(key, |sought| map.update(sought, || key, put)).map(|old| *old)
}

fn remove(map: &Map, key: u64) -> Option<u64> {
    let remove = |_: Option<&Arc<u64>>| Update::Remove;
    sought(key, |sought| map.update(sought, || key, remove)).map(|old| *old)
}

fn get(map: &Map, key: u64) -> Option<u64> {
    sought(key, |sought| map.get_with(sought, |value| **value))
}

fn next(map: &Map, key: u64, direction: Direction) -> Option<u64> {
    sought(key, |from| {
        let (low, high) = match direction {
            Direction::Ascending => (Some(from), None),
            Direction::Descending => (None, Some(from)),
        };
        map.first_between(low, high, direction, |key, _| *key)
    })
}

fn all(map: &Map) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    map.scan(None, None, Direction::Ascending, usize::MAX, &mut all);
    all.into_iter().map(|(key, value)| (key, *value)).collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        let Self(state) = self;
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*state >> 33) % bound
    }
}

/// Fails if an operation does not do what it does to a `BTreeMap` by hash and key, or an invariant
/// does not hold.
#[test]
fn random_operations_follow_a_model() {
    for shards in [1, 4] {
        let map = Map::new(shards);
        // The map takes no hash of zero.
        let place = |key: u64| (hash(key).max(1), key);
        let mut model = BTreeMap::new();
        let mut random = Random(5);
        for turn in 0..60_000_u64 {
            let grows = turn % 20_000 < 12_000;
            let key = random.below(3_000);
            match random.below(8) {
                0..3 if grows => assert_eq!(put(&map, key, turn), model.insert(place(key), turn)),
                0..3 => assert_eq!(remove(&map, key), model.remove(&place(key))),
                3 => assert_eq!(remove(&map, key), model.remove(&place(key))),
                4 => {
                    let behind = (
                        std::ops::Bound::Excluded(place(key)),
                        std::ops::Bound::Unbounded,
                    );
                    let wanted = model.range(behind).next().map(|((_, key), _)| *key);
                    assert_eq!(next(&map, key, Direction::Ascending), wanted);
                }
                5 => {
                    let wanted = model
                        .range(..place(key))
                        .next_back()
                        .map(|((_, key), _)| *key);
                    assert_eq!(next(&map, key, Direction::Descending), wanted);
                }
                _ => assert_eq!(get(&map, key), model.get(&place(key)).copied()),
            }
            if turn % 5_000 == 0 {
                assert_eq!(map.figures().entries, model.len());
            }
        }
        let wanted = model.iter().map(|((_, key), value)| (*key, *value));
        assert!(all(&map).into_iter().eq(wanted));
        assert_eq!(map.len(), model.len());
        assert_eq!(map.take_all().into_iter().flatten().count(), model.len());
        assert_eq!((map.len(), map.figures().places), (0, 0));
    }
}

/// Fails if a lookup misses a key that stays, while its entry moves to other places and tables, or
/// a value is freed while a reader looks at it, or never.
#[test]
fn a_key_that_stays_is_found_while_others_come_and_go() {
    let map = Map::new(1);
    let value = Arc::new(7);
    for key in (0..40).step_by(4) {
        let put = |_: Option<&Arc<u64>>| Update::Put(Arc::clone(&value));
        sought(key, |sought| map.update(sought, || key, put));
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (map, done) = (&map, &done);
            scope.spawn(move || {
                let mut random = Random(seed);
                for turn in 0..60_000 {
                    let key = random.below(400);
                    if key.is_multiple_of(4) && key < 40 {
                        continue;
                    }
                    // The table grows and shrinks in turns.
                    if random.below(8) < if turn % 4_000 < 2_000 { 6 } else { 1 } {
                        put(map, key, key);
                    } else {
                        remove(map, key);
                    }
                }
                done.store(true, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for key in (0..40).step_by(4) {
                    assert_eq!(get(&map, key), Some(7), "{key}");
                }
                let seen = all(&map);
                assert!(
                    seen.iter()
                        .all(|(key, value)| *value == *key || *value == 7)
                );
                assert_eq!(seen.iter().filter(|(_, value)| *value == 7).count(), {
                    let other = seen.contains(&(7, 7));
                    10 + usize::from(other)
                });
            }
        });
    });
    map.figures();
    drop(map.take_all());
    drop(map);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Fails if entries that were taken out are lost, or freed twice, when nobody goes on with them.
#[test]
fn what_is_taken_out_is_freed_whenever_the_rest_is_dropped() {
    for steps in [0, 3, 100] {
        let map = Map::new(2);
        let value = Arc::new(0);
        for key in 0..50 {
            let put = |_: Option<&Arc<u64>>| Update::Put(Arc::clone(&value));
            sought(key, |sought| map.update(sought, || key, put));
        }
        let mut taken = map.take_all();
        put(&map, 1, 1);
        for part in &mut taken {
            part.by_ref().take(steps).for_each(drop);
        }
        drop(map);
        drop(taken);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
