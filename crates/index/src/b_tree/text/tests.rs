//! Tests of leaves of text against a model.

use super::assemble::{Assembled, Run};
use super::block::{MOST_UNITS, UNIT_WORDS};
use super::edit::MOST_INLINE;
use super::{CAPACITY, Figures, Full, Heap, KeyScratch, MOST_PREFIX, TextLeaf};
use crate::b_tree::point::locked;
use crate::kit::Retire;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ptr;

/// No other thread has the leaves of these tests, so what is retired is freed at once.
struct Alone;

impl Retire for Alone {
    unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        work();
    }
}

/// A leaf whose values are numbers, and the number of its entries.
struct Counted {
    leaf: Box<TextLeaf>,
    count: usize,
}

fn word(value: u64) -> *mut () {
    ptr::without_provenance_mut(value as usize)
}

impl Counted {
    fn new() -> Self {
        let leaf = Box::new(TextLeaf::new(Heap::NONE));
        Self { leaf, count: 0 }
    }

    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        TextLeaf::prefetch(&raw const *self.leaf);
        // SAFETY: this test has the leaf alone.
        let found = unsafe { self.leaf.find(self.leaf.aim(key), self.count, key, locked) };
        found.expect("no other thread changes the leaf")
    }

    fn value(&self, at: usize) -> u64 {
        // SAFETY: this test has the leaf alone.
        unsafe { self.leaf.entry(at).value().addr() as u64 }
    }

    fn get(&self, key: &[u8]) -> Option<u64> {
        self.find(key).ok().map(|at| self.value(at))
    }

    fn insert(&mut self, key: &[u8], value: u64) -> Result<Option<u64>, Full> {
        // SAFETY: this test has the leaf alone.
        unsafe {
            match self.find(key) {
                Ok(at) => {
                    let old = self.value(at);
                    self.leaf.set_value(at, word(value));
                    Ok(Some(old))
                }
                Err(at) => {
                    let has_room = self.leaf.has_room(self.count, key);
                    assert_eq!(has_room, {
                        let runs = [Run::new(&self.leaf, 0..self.count)];
                        self.count < CAPACITY
                            && (has_room || Assembled::new(&runs, Some(key)).is_ok())
                    });
                    self.leaf.insert(at, self.count, key, word(value), &Alone)?;
                    self.count += 1;
                    Ok(None)
                }
            }
        }
    }

    fn remove(&mut self, key: &[u8]) -> Option<u64> {
        let at = self.find(key).ok()?;
        let value = self.value(at);
        self.remove_run(at, at + 1);
        Some(value)
    }

    fn remove_run(&mut self, from: usize, to: usize) {
        // SAFETY: this test has the leaf alone.
        unsafe {
            (from..to).for_each(|at| self.leaf.entry(at).loose().retire(&Alone));
            self.leaf.remove_run(from, to, self.count, &Alone);
        }
        self.count -= to - from;
    }

    /// Moves the entries from an index on to a new leaf.
    fn divide(&mut self, at: usize) -> Self {
        let mut right = Self::new();
        // SAFETY: this test has the leaves alone.
        unsafe {
            let moved = Assembled::new(&[Run::new(&self.leaf, at..self.count)], None);
            right.take(moved.expect("a part of a leaf has room in another"));
            self.leaf.remove_run(at, self.count, self.count, &Alone);
        }
        self.count = at;
        right
    }

    fn take(&mut self, assembled: Assembled) {
        self.count = assembled.count();
        assembled.give_to(&self.leaf, &Alone);
    }

    /// Moves all entries of the right neighbour here, if they have room.
    fn join(&mut self, right: &mut Self) -> Result<(), Full> {
        if self.count + right.count > CAPACITY {
            return Err(Full);
        }
        let runs = [
            Run::new(&self.leaf, 0..self.count),
            Run::new(&right.leaf, 0..right.count),
        ];
        // SAFETY: this test has the leaves alone.
        let assembled = unsafe { Assembled::new(&runs, None)? };
        self.take(assembled);
        right.count = 0;
        Ok(())
    }

    /// Gives each of two neighbours the same number of entries, if they have room.
    fn share(&mut self, right: &mut Self) -> Result<(), Full> {
        let half = (self.count + right.count) / 2;
        let (left, more) = (half.min(self.count), half.saturating_sub(self.count));
        let runs = [
            Run::new(&self.leaf, 0..left),
            Run::new(&right.leaf, 0..more),
        ];
        let others = [
            Run::new(&self.leaf, left..self.count),
            Run::new(&right.leaf, more..right.count),
        ];
        // SAFETY: this test has the leaves alone.
        let (lower, higher) =
            unsafe { (Assembled::new(&runs, None)?, Assembled::new(&others, None)?) };
        self.take(lower);
        right.take(higher);
        Ok(())
    }

    fn entries(&self) -> Vec<(Vec<u8>, u64)> {
        let pair = |at| {
            let mut key = b"before".to_vec();
            // SAFETY: this test has the leaf alone.
            unsafe { self.leaf.entry(at).append_key(&mut key) };
            (key.split_off(6), self.value(at))
        };
        (0..self.count).map(pair).collect()
    }

    fn agrees(&self, model: &BTreeMap<Vec<u8>, u64>) {
        // SAFETY: this test has the leaf alone.
        unsafe { self.leaf.check(self.count) };
        let model: Vec<_> = model.clone().into_iter().collect();
        assert!(
            self.entries() == model,
            "the entries are those of the model"
        );
    }

    fn skip(&self) -> usize {
        self.leaf.figures().skip
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // SAFETY: this test has the leaf alone.
        unsafe {
            (0..self.count).for_each(|at| self.leaf.entry(at).loose().free());
            self.leaf.free_block();
        }
    }
}

/// What keys begin with: longer than the longest prefix, with zeros in it.
const COMMON: &[u8] =
    b"user:000\0\x00123:\0\0\0\0\0\0\0\0\xff\xff\xff\xffan:address@of.mail:with/a/very\
    /long/path:/that:goes/on:and/on:and:on";

/// A key that begins like many others, and is the beginning of others.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let common = prop_oneof![
        6 => Just(20),
        3 => prop::sample::select(vec![0_usize, 7, 8, 9, 15, 16, 24, 33, 40, 71, 72, 73, 80]),
        1 => 0..=COMMON.len(),
    ];
    let byte = prop::sample::select(vec![0, 0, b'a', b'b', b':', 255]);
    let end = prop_oneof![
        20 => prop::collection::vec(byte.clone(), 0..8),
        3 => prop::collection::vec(any::<u8>(), 0..40),
        2 => prop::collection::vec(byte.clone(), 60..200),
        1 => (200..70_000_usize, byte).prop_map(|(length, byte)| vec![byte; length]),
    ];
    (common, end).prop_map(|(common, end)| [&COMMON[..common], &end].concat())
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<u8>, u64),
    Remove(prop::sample::Index),
    RemoveRun(prop::sample::Index, usize),
    Get(Vec<u8>),
    Divide(prop::sample::Index),
    Share,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (key(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value.into())),
        6 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => (any::<prop::sample::Index>(), 0..40_usize)
            .prop_map(|(from, length)| Step::RemoveRun(from, length)),
        4 => key().prop_map(Step::Get),
        1 => any::<prop::sample::Index>().prop_map(Step::Divide),
        1 => Just(Step::Share),
    ]
}

/// Takes the greater half of a leaf and of its model away.
fn halve(leaf: &mut Counted, model: &mut BTreeMap<Vec<u8>, u64>) {
    let middle = leaf.count / 2;
    let right = leaf.divide(middle);
    let first = right.entries().swap_remove(0).0;
    let others = model.split_off(&first);
    right.agrees(&others);
    for at in 0..right.count {
        // SAFETY: this test has the leaf alone; `right` frees the same keys, and is not dropped.
        unsafe { right.leaf.entry(at).loose().free() };
    }
    // SAFETY: as for the keys.
    unsafe { right.leaf.free_block() };
    std::mem::forget(right);
}

proptest! {
    #[test]
    fn a_leaf_agrees_with_a_model(steps in prop::collection::vec(step(), 1..400)) {
        let (mut leaf, mut model) = (Counted::new(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Insert(key, value) => {
                    if leaf.insert(&key, value) == Err(Full) {
                        leaf.agrees(&model);
                        prop_assert!(leaf.count > 1, "a leaf of one entry has room for another");
                        halve(&mut leaf, &mut model);
                        if leaf.insert(&key, value).is_err() {
                            continue;
                        }
                        model.insert(key, value);
                    } else {
                        model.insert(key, value);
                    }
                }
                Step::Remove(index) => {
                    if leaf.count > 0 {
                        let key = model.keys().nth(index.index(model.len())).cloned();
                        let key = key.expect("a key of the model");
                        prop_assert_eq!(leaf.remove(&key), model.remove(&key));
                        prop_assert_eq!(leaf.remove(&key), None);
                    }
                }
                Step::RemoveRun(from, length) => {
                    let from = from.index(leaf.count + 1);
                    let to = leaf.count.min(from + length);
                    let keys: Vec<_> = model.keys().skip(from).take(to - from).cloned().collect();
                    model.retain(|key, _| !keys.contains(key));
                    leaf.remove_run(from, to);
                }
                Step::Get(key) => {
                    prop_assert_eq!(leaf.get(&key), model.get(&key).copied());
                    let below = model.range(..key.clone()).count();
                    let found = if model.contains_key(&key) { Ok(below) } else { Err(below) };
                    prop_assert_eq!(leaf.find(&key), found);
                }
                Step::Divide(index) => {
                    let mut right = leaf.divide(index.index(leaf.count + 1));
                    let at = right.entries().first().map(|(key, _)| key.clone());
                    let others = at.map_or_else(BTreeMap::new, |at| model.split_off(&at));
                    leaf.agrees(&model);
                    right.agrees(&others);
                    model.extend(others);
                    leaf.join(&mut right).expect("what was one leaf has room in one");
                }
                Step::Share => {
                    let mut right = leaf.divide(leaf.count / 8);
                    leaf.share(&mut right).expect("parts of a leaf have room in leaves");
                    prop_assert_eq!(leaf.count, model.len() / 2);
                    leaf.join(&mut right).expect("what was one leaf has room in one");
                }
            }
            leaf.agrees(&model);
        }
        for (key, value) in &model {
            prop_assert_eq!(leaf.get(key), Some(*value));
        }
    }

    #[test]
    fn figures_come_back_from_their_word(skip in 0..=MOST_PREFIX, next in 0..=512_usize, live in 0..=512_usize) {
        let figures = Figures { skip, next, live };
        prop_assert_eq!(Figures::of_word(figures.to_word()), figures);
    }
}

fn address(number: usize) -> Vec<u8> {
    format!(
        "person.{:07}@mail{}.example",
        number * 7919 % 10_000_000,
        number % 3
    )
    .into_bytes()
}

#[test]
fn a_leaf_of_addresses_is_filled_to_its_slots() {
    let mut leaf = Counted::new();
    let mut number = 0;
    while leaf.insert(&address(number), number as u64) != Err(Full) {
        number += 1;
    }
    assert_eq!((leaf.count, number), (CAPACITY, CAPACITY));
    assert!(leaf.skip() >= "person.".len());
    assert!(leaf.leaf.block().length() * 8 <= MOST_UNITS * UNIT_WORDS * 8);
    assert_eq!(leaf.get(&address(17)), Some(17));
}

#[test]
fn a_key_without_the_prefix_makes_it_shorter() {
    let mut leaf = Counted::new();
    for number in 0..40 {
        assert_eq!(leaf.insert(&address(number), 1), Ok(None));
    }
    assert!(leaf.skip() >= 7);
    assert_eq!(leaf.insert(b"per", 2), Ok(None));
    assert_eq!(leaf.skip(), 3);
    assert_eq!(leaf.find(b"per"), Ok(0));
    assert_eq!(leaf.insert(b"", 3), Ok(None));
    assert_eq!(leaf.skip(), 0);
    assert_eq!(
        (leaf.get(b""), leaf.get(b"per"), leaf.get(b"pers")),
        (Some(3), Some(2), None)
    );
}

#[test]
fn a_key_that_makes_all_suffixes_too_long_finds_the_leaf_full() {
    let mut leaf = Counted::new();
    let long =
        |number: u32| format!("{}{number:08}{}", "p".repeat(70), "s".repeat(20)).into_bytes();
    let mut number = 0;
    while leaf.insert(&long(number), 1).is_ok() {
        number += 1;
    }
    assert_eq!(leaf.skip(), MOST_PREFIX);
    let before = leaf.entries();
    assert_eq!(leaf.insert(b"a", 1), Err(Full));
    assert!(leaf.entries() == before, "nothing has happened");
    // As a tree does it: the leaf is divided where the key belongs.
    let mut right = leaf.divide(0);
    assert_eq!(leaf.insert(b"a", 1), Ok(None));
    assert_eq!(right.insert(&long(number / 2), 2), Ok(Some(1)));
}

#[test]
fn suffixes_that_become_long_lie_aside_and_come_back() {
    let mut leaf = Counted::new();
    let nearly = |last: u8| [&[b'x'; 40][..], &[last], &[b'y'; MOST_INLINE - 10]].concat();
    let mut last = 0;
    while leaf.insert(&nearly(last), last.into()).is_ok() {
        last += 1;
    }
    assert_eq!(leaf.skip(), 40);
    leaf.remove_run(2, leaf.count);
    assert_eq!(leaf.insert(b"x", 99), Ok(None));
    assert_eq!(leaf.skip(), 1);
    assert!(leaf.leaf.slot(1).length().is_none(), "lies aside");
    let model = BTreeMap::from([(b"x".to_vec(), 99), (nearly(0), 0), (nearly(1), 1)]);
    leaf.agrees(&model);
    assert_eq!(leaf.remove(&nearly(0)), Some(0));
    assert_eq!(leaf.get(&nearly(1)), Some(1));
}

#[test]
fn keys_of_several_leaves_come_one_after_the_other_into_one_scratch() {
    let leaves = ["", "person.", "other-people."].map(|prefix| {
        let mut leaf = Counted::new();
        // Of every length up to one that lies aside; the last ones lie at the end of the block.
        for length in (0..=MOST_INLINE + 1).step_by(5).chain(0..7) {
            let number = leaf.count as u8;
            let key = [prefix.as_bytes(), &[number], &vec![b'z' - number; length]].concat();
            assert_eq!(leaf.insert(&key, 1), Ok(None));
        }
        leaf
    });
    let mut scratch = KeyScratch::new();
    let keys = leaves.each_ref().map(Counted::entries);
    let mut read = |leaf: usize, at: usize| {
        // SAFETY: this test has the leaves alone.
        unsafe { leaves[leaf].leaf.entry(at).read_key(&mut scratch) };
        assert!(*scratch.bytes() == keys[leaf][at].0, "{leaf}, {at}");
    };
    for at in 0..keys[0].len() {
        (0..3).for_each(|leaf| read(leaf, at));
    }
    for leaf in [1, 0, 2] {
        (0..keys[leaf].len()).for_each(|at| read(leaf, at));
    }
}

#[test]
fn a_leaf_whose_entries_come_and_go_keeps_a_small_block() {
    let mut leaf = Counted::new();
    for number in 0..20_000 {
        assert_eq!(leaf.insert(&address(number), number as u64), Ok(None));
        if number >= 10 {
            assert_eq!(leaf.remove(&address(number - 10)), Some(number as u64 - 10));
        }
    }
    assert_eq!(leaf.count, 10);
    assert!(leaf.leaf.block().length() * 8 <= 2 * UNIT_WORDS * 8);
    leaf.remove_run(0, 10);
    assert_eq!(leaf.count, 0);
    assert_eq!(leaf.insert(b"z", 1), Ok(None));
    assert_eq!(leaf.get(b"z"), Some(1));
}

#[test]
fn two_leaves_that_do_not_fit_into_one_stay_as_they_are() {
    let mut left = Counted::new();
    let key =
        |first: char, number: u32| format!("{first}{number:03}{}", "t".repeat(100)).into_bytes();
    let mut right = Counted::new();
    for number in 0..25 {
        assert_eq!(left.insert(&key('a', number), 1), Ok(None));
        assert_eq!(right.insert(&key('b', number), 2), Ok(None));
    }
    assert_eq!(left.join(&mut right), Err(Full));
    assert_eq!((left.count, right.count), (25, 25));
    assert_eq!(
        (left.get(&key('a', 7)), right.get(&key('b', 7))),
        (Some(1), Some(2))
    );
    right.remove_run(5, 25);
    assert_eq!(left.share(&mut right), Ok(()));
    assert_eq!((left.count, right.count), (15, 15));
}
