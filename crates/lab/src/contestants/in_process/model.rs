//! Compares each answer of a table to random operations with that of a `BTreeMap`.

use crate::{
    case::Case,
    contestants::subject::{Subject, Task},
    keys::{Key, KeySet, Keys},
    workload::{Purpose, generator},
};
use rand::{Rng, RngExt};
use std::{collections::BTreeMap, fmt::Debug, ops::Bound};

/// Enough for the nodes of every table to split and merge.
const KEYS: u64 = 2000;

/// Enough for every key to be inserted, removed and looked up several times.
const OPERATIONS: usize = 16_000;

/// The longest of the short scans.
const LONGEST_SCAN: usize = 100;

/// How many keys are looked up in one call.
const BATCH: usize = 16;

/// Some keys of the case's set; consecutive integers if the case has no key set to choose.
pub(super) fn keys_of(case: &Case, seed: u64) -> Keys<Vec<u64>, Vec<String>> {
    match case.key_set.parse::<KeySet>() {
        Ok(set) => match set.make(KEYS, 0, 1, seed, 0) {
            Keys::Integers(keys) => Keys::Integers(keys.loaded),
            Keys::Texts(keys) => Keys::Texts(keys.loaded),
        },
        Err(_) => Keys::Integers((0..KEYS).collect()),
    }
}

/// Does random operations with these keys.
pub(super) struct Check<'a, K> {
    pub(super) keys: &'a [K],
    pub(super) seed: u64,
}

impl<K: Key> Task<K> for Check<'_, K> {
    type Output = Result<(), String>;

    fn run<S: Subject<K>>(self, make: impl Fn() -> S) -> Self::Output {
        let table = make();
        let mut model = BTreeMap::new();
        let random = &mut generator(self.seed, Purpose::Stream, 0, 0);
        for _ in 0..OPERATIONS {
            operate(&table, &mut model, self.keys, random)?;
        }
        let all = |table: &S| {
            let mut seen = Vec::new();
            table.scan(None, usize::MAX, |key, value| {
                seen.push((K::own(key), value));
            });
            seen
        };
        let entries: Vec<_> = model.clone().into_iter().collect();
        same_entries("the whole table", &all(&table), &entries)?;
        for key in model.keys() {
            same(&format!("remove {key:?}"), table.remove(key), true)?;
        }
        same_entries("the emptied table", &all(&table), &[])
    }
}

/// Does one operation on the table and on its model.
fn operate<K: Key, S: Subject<K>>(
    table: &S,
    model: &mut BTreeMap<K, u64>,
    keys: &[K],
    random: &mut impl Rng,
) -> Result<(), String> {
    let key = &keys[random.random_range(0..keys.len())];
    // A key gets a new value each time, so that a stale one is noticed.
    let value = random.random::<u64>();
    match random.random_range(0..16) {
        0..6 => {
            let new = model.insert(key.clone(), value).is_none();
            same(&format!("insert {key:?}"), table.insert(key, value), new)
        }
        6..9 => {
            let there = model.remove(key).is_some();
            same(&format!("remove {key:?}"), table.remove(key), there)
        }
        9 => {
            if let Some(old) = model.get_mut(key) {
                table.update(key, value);
                *old = value;
            }
            Ok(())
        }
        10..12 => same(
            &format!("get {key:?}"),
            table.get(key),
            model.get(key).copied(),
        ),
        12 => {
            let first = random.random_range(0..keys.len());
            let batch = &keys[first..keys.len().min(first + BATCH)];
            let mut found = Vec::new();
            table.get_many(batch, &mut found);
            let expected = batch.iter().map(|key| model.get(key).copied()).collect();
            same(&format!("get_many {batch:?}"), found, expected)
        }
        13..15 => {
            let above = (Bound::Excluded(key), Bound::Unbounded);
            let next = model.range(above).next().map(|(key, _)| key.clone());
            same(&format!("next {key:?}"), table.next(key), next)
        }
        _ => {
            let limit = random.random_range(1..=LONGEST_SCAN);
            let mut seen = Vec::new();
            table.scan(Some(key), limit, |key, value| {
                seen.push((K::own(key), value));
            });
            let entries = model.range(key..).take(limit);
            let expected: Vec<_> = entries.map(|(key, value)| (key.clone(), *value)).collect();
            same_entries(&format!("scan of {limit} from {key:?}"), &seen, &expected)?;
            let length = table.length().unwrap_or(model.len() as u64);
            same("length", length, model.len() as u64)
        }
    }
}

/// Names the first entry that differs.
fn same_entries<K: Key>(
    what: &str,
    found: &[(K, u64)],
    expected: &[(K, u64)],
) -> Result<(), String> {
    let places = 0..found.len().max(expected.len());
    let other = |place: &usize| found.get(*place) != expected.get(*place);
    places.into_iter().find(other).map_or(Ok(()), |place| {
        let what = format!("{what}, entry {place}");
        same(&what, found.get(place), expected.get(place))
    })
}

fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, expected {expected:?}"))
    }
}
