//! Snapshots while their map is changed between any two leaves that they read. One thread does
//! both, so a snapshot has to show exactly what was there when it began.

use super::hot::End;
use super::tests::{SETS, Small, key, put};
use super::{Keys, Reading, Words};
use crate::contract::Direction;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tremula_sync::atomic::Ordering;

/// What is done, and numbers of two keys.
type Operation = (u8, u64, u64);

impl super::ranges::Sink for Vec<(u64, u64)> {
    fn take(&mut self, entries: &[(u64, u64)]) {
        self.extend_from_slice(entries);
    }

    fn clear(&mut self) {
        Vec::clear(self);
    }
}

/// A map, what it has to hold, and snapshots that are read meanwhile.
struct Pair<'a, const UNITS: usize> {
    words: &'a Words<UNITS>,
    model: BTreeMap<u64, u64>,
    set: usize,
    under_way: Vec<UnderWay>,
}

struct UnderWay {
    reading: Reading,
    shown: Vec<(u64, u64)>,
    expected: Vec<(u64, u64)>,
}

impl<'a, const UNITS: usize> Pair<'a, UNITS> {
    fn new(words: &'a Words<UNITS>, set: usize) -> Self {
        Self {
            words,
            model: BTreeMap::new(),
            set,
            under_way: Vec::new(),
        }
    }

    fn put(&mut self, key: u64, value: u64) {
        assert_eq!(put(self.words, key, value), self.model.insert(key, value));
    }

    fn remove(&mut self, key: u64) {
        assert_eq!(self.words.remove(key), self.model.remove(&key));
    }

    fn range(&self, number: u64, other: u64) -> Keys {
        let (a, b) = (key(self.set, number), key(self.set, other));
        Keys::new(a.min(b), a.max(b))
    }

    fn change(&mut self, (what, number, other): Operation) {
        match what {
            0..6 => self.put(key(self.set, number), other),
            6..10 => self.remove(key(self.set, number)),
            // So that leaves become small and are merged.
            10..12 => (number..number + 40).for_each(|number| self.remove(key(self.set, number))),
            12 if other % 4 == 0 => {
                let keys = self.range(number, other);
                let removed = self
                    .words
                    .remove_range(self.words.lock(&[keys]), keys, |_| ());
                let before = self.model.len();
                self.model
                    .retain(|key, _| !(keys.first..=keys.last).contains(key));
                assert_eq!(removed, before - self.model.len());
            }
            12 => assert_eq!(
                self.words.pop(Direction::Descending, |_| ()),
                self.model.pop_last()
            ),
            13 => {
                let end = [End::Low, End::High][number as usize % 2];
                self.words.heat_at(key(self.set, number), end);
            }
            14 => {
                let last = self.model.last_key_value().map_or(0, |(key, _)| *key);
                for key in (1..300).filter_map(|step| last.checked_add(step * (1 + other))) {
                    self.put(key, number);
                }
            }
            15 => self.is_seen(Keys::ALL, Direction::Ascending, usize::MAX, &[]),
            16 => self.begin(self.range(number, other)),
            17 => {
                self.read(number as usize, other as usize % 64);
            }
            _ => self.complete(number as usize),
        }
    }

    fn begin(&mut self, keys: Keys) {
        let within = self.model.range(keys.first..=keys.last);
        self.under_way.push(UnderWay {
            expected: within.map(|(key, value)| (*key, *value)).collect(),
            shown: Vec::new(),
            reading: self.words.begin_snapshot(Some(keys)),
        });
    }

    /// Reads some entries of a snapshot. Returns whether it goes on.
    fn read(&mut self, number: usize, wanted: usize) -> bool {
        let count = self.under_way.len().max(1);
        let Some(one) = self.under_way.get_mut(number % count) else {
            return false;
        };
        let before = one.shown.len();
        let goes_on = (self.words).read_snapshot(&mut one.reading, wanted, &mut one.shown);
        assert!(one.shown.len() - before >= wanted || !goes_on);
        assert!(one.expected.starts_with(&one.shown));
        goes_on
    }

    /// Reads all of a snapshot, or drops it.
    fn complete(&mut self, number: usize) {
        let count = self.under_way.len().max(1);
        if !number.is_multiple_of(8) {
            while self.read(number, number % 64 + 1) {}
            let one = self.under_way.get(number % count);
            assert!(one.is_none_or(|one| one.shown == one.expected));
            assert!(one.is_none_or(|one| one.reading.held() == 0));
        }
        if !self.under_way.is_empty() {
            self.under_way.swap_remove(number % count);
        }
    }

    /// Takes a snapshot, and does the operations between its leaves.
    fn is_seen(
        &mut self,
        keys: Keys,
        direction: Direction,
        limit: usize,
        operations: &[Operation],
    ) {
        let within = self.model.range(keys.first..=keys.last);
        let within = within.map(|(key, value)| (*key, *value));
        let expected: Vec<_> = match direction {
            Direction::Ascending => within.take(limit).collect(),
            Direction::Descending => within.rev().take(limit).collect(),
        };
        let (mut shown, words) = (Vec::new(), self.words);
        let mut operations = operations.chunks(4);
        words.collect_leaf_by_leaf(keys, direction, limit, &mut shown, || {
            for operation in operations.next().unwrap_or_default() {
                self.change(*operation);
            }
        });
        assert_eq!(shown, expected);
    }
}

fn a_snapshot_shows_what_was_there<const UNITS: usize>(cases: u32) {
    let operation = || (0..19_u8, 0..1_u64 << 10, 0..1_u64 << 10);
    let input = (
        0..SETS,
        prop::collection::vec(operation(), 1..500),
        prop::collection::vec(operation(), 1..300),
        (
            0..1_u64 << 10,
            0..1_u64 << 10,
            any::<[bool; 3]>(),
            0..500_usize,
        ),
    );
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |((set, before, meanwhile, shape) in input)| {
        let words = Words::<UNITS>::new();
        let mut pair = Pair::new(&words, set);
        (before.into_iter()).for_each(|operation| pair.change(operation));
        let (from, to, [is_whole, is_down, is_limited], limit) = shape;
        let keys = if is_whole { Keys::ALL } else { pair.range(from, to) };
        let direction = [Direction::Ascending, Direction::Descending][usize::from(is_down)];
        let limit = if is_limited { limit } else { usize::MAX };
        pair.is_seen(keys, direction, limit, &meanwhile);
        pair.begin(Keys::ALL);
        meanwhile.into_iter().for_each(|operation| pair.change(operation));
        while !pair.under_way.is_empty() {
            pair.complete(1);
        }
        assert_eq!(words.snapshots.now(), 0, "none is under way");
        words.check_at_rest();
        pair.is_seen(Keys::ALL, Direction::Ascending, usize::MAX, &[]);
    });
}

#[test]
fn a_snapshot_of_small_leaves_shows_what_was_there() {
    a_snapshot_shows_what_was_there::<1>(300);
}

#[test]
fn a_snapshot_shows_what_was_there_when_it_began() {
    a_snapshot_shows_what_was_there::<8>(100);
}

/// A hot leaf that is drained, and becomes ordinary, behind and before the leaves that were read.
#[test]
fn a_snapshot_shows_what_a_hot_leaf_held() {
    const MIDDLE: u64 = 1 << 40;
    for end in [End::High, End::Low] {
        let words = Small::new();
        let mut pair = Pair::new(&words, 0);
        (0..200).for_each(|number| pair.put(MIDDLE + number * 1000, number));
        let beyond = |number: u64| match end {
            End::High => MIDDLE + 300_000 + number * 7,
            End::Low => MIDDLE - 300_000 - number * 7,
        };
        let mut numbers = 0_u64..;
        // Few keys a snapshot, so that leaves are drained of buckets that no writer has come to
        // since it began.
        for _ in 0..300 {
            if words.figures(0).contains(&("hot_leaves", 0)) {
                words.heat_at(beyond(numbers.start), end);
            }
            let expected: Vec<_> = pair.model.iter().map(|(a, b)| (*a, *b)).collect();
            let mut meanwhile = numbers.by_ref().take(20);
            let mut shown = Vec::new();
            let (all, upwards) = (Keys::ALL, Direction::Ascending);
            words.collect_leaf_by_leaf(all, upwards, usize::MAX, &mut shown, || {
                for number in meanwhile.by_ref().take(10) {
                    pair.put(beyond(number), number);
                }
            });
            assert_eq!(shown, expected);
        }
        let drains = words.counters.drains.load(Ordering::Relaxed);
        assert!(drains > 5, "{drains} drains");
        words.check_at_rest();
    }
}

/// A hot leaf under a snapshot that is read a few entries at a time.
#[test]
fn a_snapshot_of_a_hot_leaf_is_read_in_parts() {
    let words = Small::new();
    let mut pair = Pair::new(&words, 0);
    (0..200).for_each(|number| pair.put(number * 1000, number));
    words.heat_at(199_000, End::High);
    (0..100).for_each(|number| pair.put(200_000 + number, number));
    assert!(words.figures(0).contains(&("hot_leaves", 1)));
    pair.begin(Keys::ALL);
    let mut numbers = 0..;
    while pair.read(0, 1) {
        let number = numbers.next().unwrap_or_default();
        pair.put(200_000 + number * 3, 0);
        pair.remove(number * 1000);
    }
    pair.complete(1);
    words.check_at_rest();
}

/// A snapshot that begins in the middle of a step shows all of it, since its leaves are locked
/// until then.
#[test]
fn a_snapshot_that_begins_in_a_step_shows_all_of_it() {
    let words = Small::new();
    let mut pair = Pair::new(&words, 0);
    let key = |number: u64| number << 40;
    (0..100).for_each(|number| pair.put(key(number), number));
    pair.begin(Keys::ALL);
    let mut step = words.lock(&[Keys::ALL]);
    let change = |step: &mut super::step::Locks<'_, 1>, model: &mut BTreeMap<u64, u64>, at| {
        assert_eq!(
            step.put(step.place(key(at)), 1000),
            model.insert(key(at), 1000)
        );
        assert_eq!(
            step.take(step.place(key(at + 1))),
            model.remove(&key(at + 1))
        );
        let new = key(at) + 1;
        assert_eq!(step.put(step.place(new), 7), model.insert(new, 7));
    };
    change(&mut step, &mut pair.model, 10);
    let reading = words.begin_snapshot(Some(Keys::ALL));
    change(&mut step, &mut pair.model, 80);
    step.release();
    pair.under_way.push(UnderWay {
        reading,
        shown: Vec::new(),
        expected: pair
            .model
            .iter()
            .map(|(key, value)| (*key, *value))
            .collect(),
    });
    pair.put(key(50), 50);
    pair.complete(1);
    pair.complete(1);
    assert!(pair.under_way.is_empty());
}

#[test]
#[should_panic(expected = "a snapshot is read from the index that has begun it")]
fn a_snapshot_of_another_map_is_refused() {
    let (one, other) = (Small::new(), Small::new());
    let mut reading = one.begin_snapshot(Some(Keys::ALL));
    other.read_snapshot(&mut reading, 1, &mut Vec::new());
}
