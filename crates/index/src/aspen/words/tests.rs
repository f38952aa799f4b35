//! The map of words against a model, with keys that prefer each format.

use super::{Batch, Change, Cursor, Keys, Separators, Words};
use crate::contract::Direction;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tremula_sync::atomic::Ordering;

pub(super) type Small = Words<1>;

pub(super) fn put<const UNITS: usize>(words: &Words<UNITS>, key: u64, value: u64) -> Option<u64> {
    words.change(key, |_| Change::Put(value))
}

/// All entries, as walks in both directions show them.
pub(super) fn contents<const UNITS: usize>(words: &Words<UNITS>) -> Vec<(u64, u64)> {
    let [up, mut down] = [Direction::Ascending, Direction::Descending].map(|direction| {
        let mut cursor = Some(Cursor::new(Keys {
            first: 0,
            last: u64::MAX,
        }));
        let (mut all, mut batch) = (Vec::new(), Batch::new());
        while cursor.is_some() {
            words.advance(&mut cursor, direction, &mut batch);
            all.extend_from_slice(&batch);
        }
        all
    });
    down.reverse();
    assert_eq!(up, down, "both directions show the same");
    up
}

/// Key sets, smooth and skewed: the key with a number below 2^16.
pub(super) fn key(set: usize, number: u64) -> u64 {
    match set {
        0 => number,
        1 => number.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        2 => 1 << (number % 64) | number >> 6,
        3 => ((number % 7) << 48) | (number / 7),
        4 => u64::MAX - number * number,
        5 => (number / 100) * 1_000_000 + number % 100,
        6 => number.reverse_bits(),
        _ => 1_700_000_000_000_000 + number * 977,
    }
}

pub(super) const SETS: usize = 8;

fn behaves_like_a_model<const UNITS: usize>(cases: u32, length: usize) {
    let operation = (0..10_u8, 0..1_u64 << 12, 0..1_u64 << 12, any::<u64>());
    let input = (
        0..SETS,
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
            let key_of = |number| key(set, number);
            match what {
                0..5 => prop_assert_eq!(
                    put(&words, key_of(number), value),
                    model.insert(key_of(number), value)
                ),
                5..8 => prop_assert_eq!(
                    words.remove(key_of(other)),
                    model.remove(&key_of(other))
                ),
                8 if value % 16 == 0 => {
                    let (a, b) = (key_of(number), key_of(other));
                    let keys = Keys { first: a.min(b), last: a.max(b) };
                    let mut removed = 0_usize;
                    let count = words.remove_range(words.lock(&[keys]), keys, |_| removed += 1);
                    let before = model.len();
                    model.retain(|key, _| !(keys.first..=keys.last).contains(key));
                    prop_assert_eq!((count, removed), (before - model.len(), before - model.len()));
                }
                8 => prop_assert_eq!(
                    words.pop(Direction::Descending, |_| ()),
                    model.pop_last()
                ),
                _ => prop_assert_eq!(
                    words.get(key_of(other)),
                    model.get(&key_of(other)).copied()
                ),
            }
            if model.len() < 40 {
                words.check_at_rest();
                prop_assert_eq!(contents(&words), Vec::from_iter(model.clone()), "{} {} {}", what, number, other);
            }
        }
        words.check_at_rest();
        prop_assert_eq!(contents(&words), Vec::from_iter(model));
    });
}

#[test]
fn random_operations_match_a_model() {
    behaves_like_a_model::<8>(60, 3000);
}

#[test]
fn random_operations_on_small_leaves_match_a_model() {
    behaves_like_a_model::<1>(60, 3000);
}

#[test]
fn many_keys_of_each_set_come_and_go() {
    for set in 0..SETS {
        let words = Words::<8>::new();
        let mut model = BTreeMap::new();
        for number in 0..60_000_u64 {
            let number = number.wrapping_mul(48_271) % (1 << 16);
            let key = key(set, number);
            assert_eq!(
                put(&words, key, number),
                model.insert(key, number),
                "set {set}"
            );
        }
        words.check_at_rest();
        for (key, value) in &model {
            assert_eq!(words.get(*key), Some(*value), "set {set}");
            let missing = key.wrapping_add(1);
            assert_eq!(
                words.get(missing),
                model.get(&missing).copied(),
                "set {set}"
            );
        }
        assert_eq!(contents(&words), Vec::from_iter(model.clone()));
        for (at, key) in model.keys().enumerate() {
            if at % 8 != 0 {
                assert!(words.remove(*key).is_some(), "set {set}");
            }
        }
        words.check_at_rest();
        assert_eq!(words.len(), model.len().div_ceil(8), "set {set}");
        while words.pop(Direction::Ascending, |_| ()).is_some() {}
        words.check_at_rest();
    }
}

/// Fails if a leaf is cut in the middle where a run ends in it: then none but the last run fills
/// its leaves.
#[test]
fn runs_that_grow_before_others_fill_dense_leaves() {
    const RUNS: u64 = 4;
    const LENGTH: u64 = 10_000;
    let words = Words::<8>::new();
    for step in 0..LENGTH {
        for run in 0..RUNS {
            put(&words, (run << 40) + step, step);
        }
    }
    words.check_at_rest();
    let (leaves, full) = (words.leaf_count(), (RUNS * LENGTH / 252) as usize);
    assert!(leaves < full + 30, "{leaves} leaves, {full} would do");
}

#[test]
fn ends_of_the_numbers_are_keys_like_others() {
    let words = Small::new();
    for key in [0, u64::MAX, 1, u64::MAX - 1] {
        assert_eq!(put(&words, key, key), None);
        assert_eq!(words.get(key), Some(key));
    }
    words.check_at_rest();
    for key in [u64::MAX, 0] {
        assert_eq!(words.remove(key), Some(key));
        assert_eq!(words.get(key), None);
        assert_eq!(put(&words, key, 7), None);
    }
    words.check_at_rest();
    assert_eq!(
        words.pop(Direction::Descending, |_| ()),
        Some((u64::MAX, 7))
    );
    assert_eq!(words.pop(Direction::Ascending, |_| ()), Some((0, 7)));
}

/// Fails if routes are not mended, so that lookups are led astray again and again.
#[test]
fn lookups_are_not_led_astray_for_long_after_splits_and_merges() {
    let words = Words::<8>::new();
    for key in 0..512 {
        put(&words, key, key);
    }
    let astray = || {
        let before = words.counters.detours.load(Ordering::Relaxed);
        for round in 0..10 {
            for key in 0..512 {
                assert_eq!(words.get(key).is_some(), round < 10);
                put(&words, key, key);
            }
        }
        words.counters.detours.load(Ordering::Relaxed) - before
    };
    let mut key = 1;
    for _ in 0..60 {
        key = (key * 37 + 11) % 512;
        let held = words.hold(key);
        if held.leaf.low() < key {
            words.split_apart(held, key);
        } else {
            held.lock.unchanged();
        }
    }
    words.check_at_rest();
    let leaves = words.leaf_count() as u64;
    let split = astray();
    for key in 0..512 {
        words.settle(key);
    }
    words.check_at_rest();
    let merged = astray();
    assert!(
        split < 2 * leaves && merged < 2 * leaves,
        "{leaves} leaves: {split}, {merged}"
    );
}

/// A step looks a leaf up and locks it a moment later. Fails if it then takes a leaf that was
/// merged meanwhile and is in use for other keys.
#[test]
fn a_leaf_that_is_in_use_elsewhere_is_not_locked_for_its_old_keys() {
    let words = Small::new();
    let key = |number: u64| number << 40;
    let leaf_of = |number: u64| words.borders.leaf_of(key(number));
    for number in 0..2000 {
        put(&words, key(number), number);
    }
    let found: Vec<_> = (900..1100)
        .map(|number| (number, leaf_of(number)))
        .collect();
    for (number, id) in &found {
        let held = words.hold_if_free(*id, key(*number)).unwrap();
        held.lock.unchanged();
    }
    for number in 500..1500 {
        assert_eq!(words.remove(key(number)), Some(number));
    }
    let merged = |(number, id): &&(u64, u32)| leaf_of(*number) != *id;
    let (number, id) = *found.iter().find(merged).unwrap();
    assert!(words.hold_if_free(id, key(number)).is_none(), "in no use");
    let again = (2000..20_000).find(|number| {
        put(&words, key(*number), *number);
        leaf_of(*number) == id
    });
    assert!(words.hold_if_free(id, key(number)).is_none(), "elsewhere");
    let held = words.hold_if_free(id, key(again.unwrap())).unwrap();
    held.lock.unchanged();
}
