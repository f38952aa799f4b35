//! Snapshots beside writers.

use super::OlcBTree;
use super::snapshots::Reading;
use crate::contract::Storable;
use crate::key::{ByteHead, ByteString};
use crate::snapshot_tests::{self, Key, Subject};
use crate::{KeyRange, OrderedIndex, Update};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Nodes of sixteen entries.
type Low<K, V> = OlcBTree<K, V, ByteHead, 0>;

/// The size of nodes in which more keys may change than are noted.
const LARGE: usize = 2048;

impl<K: crate::key::ByteKey + Storable, V: Storable> Subject<K, V> for Low<K, V> {
    fn taken(&self, range: KeyRange<'_, K>, limit: usize) -> Vec<(K, V)> {
        self.tree.snapshot_beside_writers(range, limit)
    }

    fn check_at_rest(&self) {
        self.tree.check_at_rest();
    }
}

impl Key for ByteString {
    fn of(writer: u32, number: u32) -> Self {
        Self::from(format!("entry:{number:05}:{writer}").as_str())
    }
}

#[test]
fn a_snapshot_shows_all_that_came_before_what_it_shows() {
    snapshot_tests::shows_all_that_came_before_what_it_shows::<_, Low<ByteString, u32>>();
}

#[test]
fn a_snapshot_shows_a_step_whole_or_not_at_all() {
    snapshot_tests::shows_a_step_whole_or_not_at_all::<Low<_, _>>();
}

#[test]
fn a_snapshot_shows_the_removal_of_a_range_whole_or_not_at_all() {
    snapshot_tests::shows_the_removal_of_a_range_whole_or_not_at_all::<Low<_, _>>();
}

/// A value whose clones panic on demand.
struct Fragile(u32);

thread_local! {
    static PANICS: Cell<bool> = const { Cell::new(false) };
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!PANICS.get(), "a clone that panics");
        Self(self.0)
    }
}

#[test]
fn a_snapshot_that_panics_ends() {
    let tree = Low::<u32, Fragile>::default();
    for key in 0..100 {
        tree.insert(key, Fragile(key));
    }
    PANICS.set(true);
    let taken = || {
        tree.tree
            .snapshot_beside_writers(KeyRange::all(), usize::MAX)
    };
    assert!(catch_unwind(AssertUnwindSafe(taken)).is_err());
    // No snapshot is under way any more, so a write copies nothing.
    tree.insert_if_absent(200, Fragile(200)).ok().unwrap();
    PANICS.set(false);
    tree.tree.check_at_rest();
    let values = taken().into_iter().map(|(_, value)| value.0);
    assert!(values.eq((0..100).chain([200])));
}

#[test]
fn a_note_that_panics_changes_nothing() {
    let tree = Low::<u32, Fragile>::default();
    for key in 0..10 {
        tree.insert(key, Fragile(key));
    }
    let mut cursor = tree.begin_snapshot(KeyRange::all()).unwrap();
    PANICS.set(true);
    for key in 0..10 {
        let insert = || tree.insert(key, Fragile(100));
        assert!(catch_unwind(AssertUnwindSafe(insert)).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| tree.remove(&key))).is_err());
    }
    PANICS.set(false);
    tree.insert(3, Fragile(100));
    let mut entries = Vec::new();
    while tree.read_snapshot(&mut cursor, 1, &mut entries) {}
    assert!(entries.into_iter().map(|(_, value)| value.0).eq(0..10));
    assert_eq!(tree.get(&3).map(|value| value.0), Some(100));
}

/// A snapshot of some leaves, read part by part while these change. Each part of the program speaks
/// of another leaf.
#[test]
fn a_snapshot_undoes_what_is_noted_whatever_becomes_of_leaves() {
    let tree = OlcBTree::<u32, u32, ByteHead, LARGE>::from_sorted((0..1000).map(|n| (n * 10, n)));
    let tree = tree.unwrap();
    let copied = || tree.shape().get("copied_leaves").unwrap();
    let expected = Vec::from_iter((0..1000).map(|n| (n * 10, n)));
    let (mut cursor, mut shown) = (tree.begin_snapshot(KeyRange::all()).unwrap(), Vec::new());
    let mut read_up_to = |last: u32| {
        while shown.last().is_none_or(|(key, _)| *key < last)
            && tree.read_snapshot(&mut cursor, 1, &mut shown)
        {}
        assert!(expected.starts_with(&shown) && shown.last().is_some_and(|(key, _)| *key >= last));
        shown.len() * 10
    };
    // Replaced, removed, inserted; and both of these again, which need no more than two notes.
    let noted = |first: u32| {
        let before = copied();
        tree.insert(first, 7);
        tree.remove(&(first + 10));
        tree.insert(first + 5, 7);
        tree.remove(&(first + 20));
        tree.insert(first + 20, 7);
        tree.insert(first + 20, 8);
        assert_eq!(copied(), before, "all is noted");
    };
    noted(0);
    noted(5000);
    let mut next = read_up_to(0) as u32;
    // More keys than are noted: one copy, and the rest of the changes needs none.
    let before = copied();
    for key in next..next + 300 {
        tree.insert(key, 7);
    }
    assert!(
        (1..5).contains(&(copied() - before)),
        "{} copies",
        copied() - before
    );
    next = read_up_to(next + 300) as u32;
    // A split of a leaf in which something is noted.
    noted(next);
    let before = tree.shape().get("splits");
    for key in next..next + 400 {
        tree.insert(key, 7);
    }
    assert!(tree.shape().get("splits") > before);
    next = read_up_to(next + 400) as u32;
    // Leaves that merge while something is noted in them.
    noted(next);
    let before = tree.shape().get("merges");
    for key in next + 30..next + 3000 {
        tree.remove(&key);
    }
    assert!(tree.shape().get("merges") > before);
    // And a later snapshot, for which other things are noted in the same leaves.
    let later = tree.snapshot(KeyRange::all()).unwrap();
    let mut second = tree.begin_snapshot(KeyRange::all()).unwrap();
    tree.insert(5000, 9);
    tree.remove(&9000);
    tree.insert(9001, 9);
    read_up_to(9990);
    let mut all = Vec::new();
    while tree.read_snapshot(&mut second, 100, &mut all) {}
    assert_eq!(all, later);
    tree.tree.check_at_rest();
}

/// Nothing is left of a snapshot that was dropped, half read or not at all.
#[test]
fn snapshots_that_are_dropped_end() {
    let tree = Low::<u32, std::sync::Arc<()>>::default();
    let value = std::sync::Arc::new(());
    for key in 0..200 {
        tree.insert(key, value.clone());
    }
    let (half, none) = (
        tree.begin_snapshot(KeyRange::all()),
        tree.begin_snapshot(KeyRange::all()),
    );
    let (mut half, none) = (half.unwrap(), none.unwrap());
    let mut entries = Vec::new();
    assert!(tree.read_snapshot(&mut half, 50, &mut entries));
    assert!((50..200).contains(&entries.len()));
    drop(entries);
    for key in (0..200).step_by(2) {
        tree.insert(key, std::sync::Arc::new(()));
    }
    assert_eq!((half.held(), none.held()), (0, 0), "all is noted");
    tree.remove_range(KeyRange::new(Bound::Included(&100), Bound::Unbounded));
    assert!(half.held() > 0 && none.held() >= 100);
    let kept = std::sync::Arc::strong_count(&value);
    assert!(kept >= 200, "{kept} of what is noted and copied");
    drop((half, none));
    let guards = || (0..2000).for_each(|_| drop(tree.get(&0)));
    // The next one finds them gone.
    let next = tree.begin_snapshot(KeyRange::all());
    assert_eq!(tree.tree.snapshots.under_way(), 1);
    drop(next);
    // What was replaced is freed when readers have gone.
    let left = (0..100).any(|_| {
        tree.remove_range(KeyRange::all());
        tree.insert(1, std::sync::Arc::new(()));
        guards();
        std::sync::Arc::strong_count(&value) == 1
    });
    assert!(
        left,
        "{} copies are left",
        std::sync::Arc::strong_count(&value)
    );
}

#[test]
#[should_panic(expected = "a snapshot is read from the index that has begun it")]
fn a_snapshot_of_another_tree_is_refused() {
    let (one, other) = (Low::<u32, u32>::default(), Low::<u32, u32>::default());
    let mut cursor = one.begin_snapshot(KeyRange::all()).unwrap();
    let _others = other.begin_snapshot(KeyRange::all());
    other.read_snapshot(&mut cursor, 1, &mut Vec::new());
}

/// What is done, and numbers of two keys.
type Operation = (u8, u16, u16);

/// A key of the tests that know all entries.
trait Numbered: crate::key::ByteKey + Storable + std::fmt::Debug {
    fn numbered(number: u16) -> Self;
}

impl Numbered for u32 {
    fn numbered(number: u16) -> Self {
        number.into()
    }
}

impl Numbered for ByteString {
    fn numbered(number: u16) -> Self {
        Self::from(format!("entry:{number:05}").as_str())
    }
}

fn inclusive<'k, K: Ord>(low: &'k K, high: &'k K) -> KeyRange<'k, K> {
    KeyRange::new(Bound::Included(low), Bound::Included(high))
}

/// A tree, what it has to hold, and snapshots under way with what they have to show.
struct Pair<'t, K: Numbered, const NODE_BYTES: usize> {
    tree: &'t OlcBTree<K, u32, ByteHead, NODE_BYTES>,
    model: BTreeMap<K, u32>,
    under_way: Vec<UnderWay<K>>,
    writes: u32,
}

struct UnderWay<K> {
    reading: Reading<K, u32>,
    shown: Vec<(K, u32)>,
    expected: Vec<(K, u32)>,
}

impl<K: Numbered, const NODE_BYTES: usize> Pair<'_, K, NODE_BYTES> {
    fn insert(&mut self, key: K) {
        self.writes += 1;
        let before = self.model.insert(key.clone(), self.writes);
        assert_eq!(self.tree.insert(key, self.writes), before);
    }

    fn change(&mut self, (what, number, other): Operation) {
        let (key, end) = (
            K::numbered(number),
            K::numbered(number.saturating_add(other % 200)),
        );
        match what {
            0..6 => self.insert(key),
            6 => (number..number + 20).for_each(|number| self.insert(K::numbered(number))),
            7..9 => assert_eq!(self.tree.remove(&key), self.model.remove(&key)),
            // So that leaves become small and are merged.
            9..11 => (number..number + 30).map(K::numbered).for_each(|key| {
                assert_eq!(self.tree.remove(&key), self.model.remove(&key));
            }),
            11 => {
                let removed = self.tree.remove_range(inclusive(&key, &end));
                let before = self.model.len();
                self.model
                    .retain(|other, _| !(&key..=&end).contains(&other));
                assert_eq!(removed, before - self.model.len());
            }
            12 if other % 2 == 0 => assert_eq!(self.tree.pop_first(), self.model.pop_first()),
            12 => assert_eq!(self.tree.pop_last(), self.model.pop_last()),
            13 => {
                self.writes += 1;
                let value = self.writes;
                self.tree.update(key.clone(), &mut |_| Update::Put(value));
                self.model.insert(key, value);
            }
            14 => {
                // A step over two keys and a range behind them.
                let far = K::numbered(other.saturating_add(1 << 12));
                let over = [KeyRange::only(&key), inclusive(&far, &far)];
                self.writes += 1;
                let value = self.writes;
                self.tree
                    .transactional()
                    .unwrap()
                    .atomically(&over, &mut |step| {
                        step.remove(&key);
                        step.insert(far.clone(), value);
                    });
                self.model.remove(&key);
                self.model.insert(far, value);
            }
            15 => self.begin(key, end),
            16 => {
                self.read(number.into(), (other % 64).into());
            }
            _ => self.complete(number.into()),
        }
    }

    fn begin(&mut self, low: K, high: K) {
        let within = self.model.range(&low..=&high);
        let expected = within.map(|(key, value)| (key.clone(), *value)).collect();
        self.under_way.push(UnderWay {
            reading: self.tree.tree.begin_snapshot(inclusive(&low, &high)),
            shown: Vec::new(),
            expected,
        });
    }

    /// Reads some entries of a snapshot. Returns whether it goes on.
    fn read(&mut self, number: usize, wanted: usize) -> bool {
        let count = self.under_way.len().max(1);
        let Some(one) = self.under_way.get_mut(number % count) else {
            return false;
        };
        let (tree, before) = (&self.tree.tree, one.shown.len());
        let goes_on = tree.read_snapshot(&mut one.reading, wanted, &mut one.shown);
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
        }
        if !self.under_way.is_empty() {
            self.under_way.swap_remove(number % count);
        }
    }
}

/// Everything is done by one thread, so a snapshot has to show exactly what was there when it
/// began. Others that were completed meanwhile have settled the leaves of their ranges.
fn shows_what_was_there_when_it_began<K: Numbered, const NODE_BYTES: usize>() {
    let operation = || (0..18_u8, 0..1_u16 << 10, 0..1_u16 << 12);
    let operations = |most| prop::collection::vec(operation(), 1..most);
    let config = ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(before in operations(300), meanwhile in operations(600))| {
        let tree = OlcBTree::<_, _, _, NODE_BYTES>::default();
        let mut pair = Pair {
            tree: &tree,
            model: BTreeMap::new(),
            under_way: Vec::new(),
            writes: 0,
        };
        before.into_iter().for_each(|operation| pair.change(operation));
        pair.begin(K::numbered(0), K::numbered(u16::MAX));
        meanwhile.into_iter().for_each(|operation| pair.change(operation));
        while !pair.under_way.is_empty() {
            pair.complete(1);
        }
        tree.tree.check_at_rest();
    });
}

#[test]
fn a_snapshot_of_integers_shows_what_was_there_when_it_began() {
    shows_what_was_there_when_it_began::<u32, 0>();
    shows_what_was_there_when_it_began::<u32, LARGE>();
}

#[test]
fn a_snapshot_of_byte_strings_shows_what_was_there_when_it_began() {
    shows_what_was_there_when_it_began::<ByteString, 0>();
    shows_what_was_there_when_it_began::<ByteString, LARGE>();
}
