//! Sets of keys that are hard on leaves which compute where a key lies: on every engine.
//!
//! An engine may choose how it stores keys by how they are spread. Each set here is filled in a
//! random and in ascending order, looked up with hits and with the neighbours of hits, scanned both
//! ways, thinned out to a half, and filled again; after each step it is compared with a `BTreeMap`.
//! A test fails on a key that is lost, found where it is not, or out of order, and on a broken
//! invariant of the engine.
#![cfg(not(any(loom, shuttle)))]

mod support;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use support::suite::Random;
use tremula_index::key::{ByteHead, TotalF64};
use tremula_index::{Aspen, ByteKey, Direction, KeyRange, OrderedIndex, Storable, kit};

/// Keys of a set, fewer if some are equal.
const KEYS: u64 = 2_000;

/// A number that looks random, another one for each number.
fn scatter(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (number ^ (number >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ (number >> 32)
}

/// A set of numbers: the name, and the key of each number from 0 on.
type Set = (&'static str, fn(u64) -> u64);

const SETS: [Set; 16] = [
    ("uniform", scatter),
    ("log-normal", |number| {
        // The sum of eight uniform numbers is nearly normal.
        let sum: u64 = (0..8).map(|part| scatter(8 * number + part) >> 56).sum();
        (2_f64.powf(sum as f64 / 40.0) * 1000.0) as u64 + number % 7
    }),
    ("prefixes in clusters", |number| {
        ((number % 7) << 48) + number / 7
    }),
    ("one run", |number| number),
    ("runs with holes", |number| {
        number / 100 * 1_000 + number % 100
    }),
    ("runs with single holes", |number| number + number / 9),
    ("pairs far apart", |number| {
        ((number / 2) << 40) + number % 2
    }),
    ("time stamps", |number| {
        1_700_000_000_000_000 + number * 1_000 + scatter(number) % 900
    }),
    ("bits reversed", |number| number.reverse_bits()),
    ("the last byte differs", |number| {
        0x0123_4567_89AB_CD00 + number % 256
    }),
    ("around 0", |number| number * number % 5_000),
    ("around the greatest", |number| {
        u64::MAX - number * number % 5_000
    }),
    ("both ends", |number| {
        if number % 2 == 0 {
            number
        } else {
            u64::MAX - number
        }
    }),
    ("powers of two", |number| {
        (1 << (number % 64)) | (number / 64)
    }),
    ("squares", |number| number * number * number),
    ("steps of 2^32", |number| number << 32),
];

fn shuffled(keys: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..keys).collect();
    let mut random = Random::new(1);
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, random.below(at as u32 + 1) as usize);
    }
    numbers
}

/// Compares a map with its model: lookups of these keys and of those beside them, and scans.
fn compare<K: Ord + Storable + Debug>(
    what: &str,
    map: &dyn OrderedIndex<K, u64>,
    model: &BTreeMap<K, u64>,
    probes: &[K],
) {
    assert_eq!(map.len(), model.len(), "{what}");
    for key in probes {
        assert_eq!(map.get(key), model.get(key).copied(), "{what}: {key:?}");
    }
    let mut many = Vec::new();
    map.get_many(probes, &mut many);
    let expected: Vec<_> = probes.iter().map(|key| model.get(key).copied()).collect();
    assert_eq!(many, expected, "{what}");
    let own = |(key, value): (&K, &u64)| (key.clone(), *value);
    for key in probes.iter().step_by(7) {
        let above = (Bound::Excluded(key), Bound::Unbounded);
        let next = model.range(above).next().map(own);
        assert_eq!(map.next(key), next, "{what}: behind {key:?}");
        let prev = model.range(..key).next_back().map(own);
        assert_eq!(map.prev(key), prev, "{what}: before {key:?}");
    }
    let mut entries = Vec::new();
    map.scan(
        KeyRange::all(),
        Direction::Ascending,
        usize::MAX,
        &mut entries,
    );
    assert!(
        entries.iter().map(|(key, value)| (key, value)).eq(model),
        "{what}"
    );
    entries.clear();
    map.scan(
        KeyRange::all(),
        Direction::Descending,
        usize::MAX,
        &mut entries,
    );
    let backwards = model.iter().rev();
    assert!(
        entries
            .iter()
            .map(|(key, value)| (key, value))
            .eq(backwards),
        "{what}"
    );
    for window in probes.windows(2).step_by(97) {
        let (low, high) = (&window[0], &window[1]);
        if low < high {
            entries.clear();
            let range = KeyRange::new(Bound::Included(low), Bound::Excluded(high));
            map.scan(range, Direction::Descending, 50, &mut entries);
            let expected: Vec<_> = model.range(low..high).rev().take(50).map(own).collect();
            assert_eq!(entries, expected, "{what}: from {low:?} to {high:?}");
        }
    }
}

/// Takes a set through its life on an empty map: `key` makes the key of a number, `beside` those
/// around it.
fn live<K: Ord + Storable + Debug>(
    what: &str,
    map: &dyn OrderedIndex<K, u64>,
    check: &dyn Fn(),
    order: &[u64],
    key: &dyn Fn(u64) -> K,
    beside: &dyn Fn(u64) -> [K; 2],
) {
    let mut model = BTreeMap::new();
    let probes: Vec<K> = (0..KEYS)
        .flat_map(|number| {
            let [below, above] = beside(number);
            [below, key(number), above]
        })
        .collect();
    let compare = |model: &BTreeMap<K, u64>| {
        check();
        compare(what, map, model, &probes);
    };
    for number in order {
        let key = key(*number);
        assert_eq!(
            map.insert(key.clone(), *number),
            model.insert(key, *number),
            "{what}"
        );
    }
    compare(&model);
    for number in order.iter().step_by(2) {
        let key = key(*number);
        assert_eq!(map.remove(&key), model.remove(&key), "{what}: {key:?}");
    }
    compare(&model);
    for number in order.iter().rev() {
        let key = key(*number);
        assert_eq!(
            map.insert(key.clone(), *number),
            model.insert(key, *number),
            "{what}"
        );
    }
    compare(&model);
    let ends = model
        .keys()
        .nth(model.len() / 3)
        .zip(model.keys().nth(model.len() / 2));
    let (low, high) = ends.map(|(low, high)| (low.clone(), high.clone())).unwrap();
    let gone = map.remove_range(KeyRange::new(Bound::Included(&low), Bound::Excluded(&high)));
    let before = model.len();
    model.retain(|key, _| *key < low || *key >= high);
    assert_eq!(gone, before - model.len(), "{what}");
    compare(&model);
    while let Some(entry) = map.pop_first() {
        assert_eq!(Some(entry), model.pop_first(), "{what}");
        if let Some(entry) = map.pop_last() {
            assert_eq!(Some(entry), model.pop_last(), "{what}");
        }
    }
    assert!(model.is_empty(), "{what}");
    check();
}

/// Every set in both orders, as keys of one type: `make` makes a key of a number.
fn every_set<K: ByteKey + Debug, I: kit::Implementation<K, u64>>(
    engine: &str,
    map: impl Fn() -> I,
    make: impl Fn(u64) -> K,
) {
    let (ascending, random): (Vec<u64>, _) = ((0..KEYS).collect(), shuffled(KEYS));
    for (set, number_of) in SETS {
        for order in [&ascending, &random] {
            let key = |number| make(number_of(number));
            let beside = |number| {
                let number = number_of(number);
                [make(number.wrapping_sub(1)), make(number.wrapping_add(1))]
            };
            let map = map();
            let check = || map.check_invariants();
            live(
                &format!("{engine}, {set}"),
                &map,
                &check,
                order,
                &key,
                &beside,
            );
        }
    }
}

/// The tests of one engine: numbers with every set.
macro_rules! engine {
    ($name:ident, $make:expr) => {
        #[test]
        fn $name() {
            every_set::<u64, _>(stringify!($name), $make, |number| number);
        }
    };
}

/// The same for a registered engine, in the configuration that users get.
macro_rules! registered {
    ($name:ident, $Index:ident, $($facts:ident),*) => {
        engine!($name, $Index::<_, _>::new);
    };
}

mod numbers {
    use super::{ByteHead, every_set};
    use tremula_index::*;

    tremula_index::index_engines!(each registered);

    engine!(aspen_of_small_leaves, Aspen::<_, _, ByteHead, 1>::default);
    engine!(
        aspen_of_leaves_of_three_units,
        Aspen::<_, _, ByteHead, 3>::default
    );
}

/// The same numbers as keys of other types, whose heads lie otherwise.
fn keys_of_other_types<const UNITS: usize>() {
    fn run<const UNITS: usize, K: ByteKey + Debug>(name: &str, make: impl Fn(u64) -> K) {
        every_set(name, Aspen::<K, u64, ByteHead, UNITS>::default, make);
    }
    run::<UNITS, _>("i64", |number| number.cast_signed());
    run::<UNITS, _>("u32", |number| number as u32);
    run::<UNITS, _>("u16", |number| number as u16);
    run::<UNITS, _>("u128", |number| {
        (u128::from(number) << 64) | u128::from(!number)
    });
    run::<UNITS, _>("i128", |number| i128::from(number.cast_signed()) << 3);
    run::<UNITS, _>("(u32, u32)", |number| {
        ((number >> 32) as u32, number as u32)
    });
    run::<UNITS, _>("(u8, u16)", |number| ((number >> 16) as u8, number as u16));
    run::<UNITS, _>("[u8; 8]", u64::to_le_bytes);
    run::<UNITS, _>("TotalF64", |number| TotalF64(f64::from_bits(number)));
}

#[test]
fn keys_of_other_types_in_leaves_of_eight_units() {
    keys_of_other_types::<8>();
}

#[test]
fn keys_of_other_types_in_small_leaves() {
    keys_of_other_types::<1>();
}

/// How many leaves an Aspen of these keys has of each format: linear, dense, sorted.
fn formats(keys: impl IntoIterator<Item = u64>) -> [u64; 3] {
    let map = Aspen::<u64, u64>::new();
    for key in keys {
        map.insert(key, key);
    }
    kit::Implementation::check_invariants(&map);
    let shape = OrderedIndex::shape(&map);
    let kinds = ["linear_leaves", "dense_leaves", "sorted_leaves"];
    kinds.map(|kind| shape.get(kind).unwrap())
}

const MANY: u64 = 50_000;

#[test]
fn numbers_that_lie_close_together_are_in_dense_leaves() {
    for (what, [linear, dense, sorted]) in [
        ("ascending", formats(0..MANY)),
        ("descending", formats((0..MANY).rev())),
        ("in random order", formats(shuffled(MANY))),
        (
            "every ninth missing",
            formats((0..MANY).filter(|key| key % 9 != 4)),
        ),
        ("far up", formats((0..MANY).map(|key| (3 << 60) + key))),
    ] {
        let others = linear + sorted;
        assert!(
            dense > 20 * others && dense < MANY / 60,
            "{what}: {linear} linear, {dense} dense, {sorted} sorted"
        );
    }
}

/// While they are few, they are in linear leaves, which reach farther than a dense one can.
#[test]
fn half_of_all_numbers_in_random_order_come_to_dense_leaves() {
    let half = shuffled(2 * MANY).into_iter().take(MANY as usize);
    let [linear, dense, sorted] = formats(half);
    assert!(
        3 * dense > linear + sorted,
        "{linear} linear, {dense} dense, {sorted} sorted"
    );
}

#[test]
fn numbers_that_are_spread_evenly_are_in_linear_leaves() {
    for (what, [linear, dense, sorted]) in [
        ("uniform", formats((0..MANY).map(scatter))),
        (
            "equal steps",
            formats(shuffled(MANY).into_iter().map(|key| key * 1_000_003)),
        ),
        (
            "time stamps",
            formats((0..MANY).map(|key| 1_700_000_000_000_000 + key * 1_000 + scatter(key) % 900)),
        ),
    ] {
        assert!(
            linear > 9 * sorted && dense == 0 && linear < MANY / 60,
            "{what}: {linear} linear, {dense} dense, {sorted} sorted"
        );
    }
}

#[test]
fn numbers_of_which_each_is_much_greater_than_the_one_before_are_in_sorted_leaves() {
    // In each group of 64 the distances double.
    let doubling = (0..MANY).map(|number| ((number / 40) << 48) | (1 << (number % 40)));
    let [linear, dense, sorted] = formats(doubling);
    assert!(
        sorted > linear + dense && sorted < MANY / 20,
        "{linear} linear, {dense} dense, {sorted} sorted"
    );
}
