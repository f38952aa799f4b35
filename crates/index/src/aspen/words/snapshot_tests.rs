//! Snapshots while their map is changed between any two leaves that they read. One thread does
//! both, so a snapshot has to show exactly what was there when it began.

use super::hot::End;
use super::tests::{SETS, Small, key, put};
use super::{Keys, Words};
use crate::contract::Direction;
use proptest::prelude::*;
use std::collections::BTreeMap;

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

/// A map, and what it has to hold.
struct Pair<'a, const UNITS: usize> {
    words: &'a Words<UNITS>,
    model: BTreeMap<u64, u64>,
    set: usize,
}

impl<const UNITS: usize> Pair<'_, UNITS> {
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
            _ => self.is_seen(Keys::ALL, Direction::Ascending, usize::MAX, &[]),
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
    let operation = || (0..16_u8, 0..1_u64 << 10, 0..1_u64 << 10);
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
        let mut pair = Pair { words: &words, model: BTreeMap::new(), set };
        (before.into_iter()).for_each(|operation| pair.change(operation));
        let (from, to, [is_whole, is_down, is_limited], limit) = shape;
        let keys = if is_whole { Keys::ALL } else { pair.range(from, to) };
        let direction = [Direction::Ascending, Direction::Descending][usize::from(is_down)];
        let limit = if is_limited { limit } else { usize::MAX };
        pair.is_seen(keys, direction, limit, &meanwhile);
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
        let mut pair = Pair {
            words: &words,
            model: BTreeMap::new(),
            set: 0,
        };
        (0..200).for_each(|number| pair.put(MIDDLE + number * 1000, number));
        for round in 0..40 {
            let beyond = |number: u64| match end {
                End::High => MIDDLE + 300_000 + number * 7,
                End::Low => MIDDLE - 300_000 - number * 7,
            };
            words.heat_at(beyond(round * 500), end);
            // Not at each leaf, or the snapshot would never come to the last one.
            let mut next = round * 500..(round + 1) * 500;
            let expected: Vec<_> = pair.model.iter().map(|(a, b)| (*a, *b)).collect();
            let mut shown = Vec::new();
            let (all, upwards) = (Keys::ALL, Direction::Ascending);
            words.collect_leaf_by_leaf(all, upwards, usize::MAX, &mut shown, || {
                for number in next.by_ref().take(100) {
                    pair.put(beyond(number), number);
                }
            });
            assert_eq!(shown, expected);
        }
        words.check_at_rest();
    }
}
