//! Tests of fingers, of keys that are in their heads, and of values that are kept in place.

use super::OlcBTree;
use crate::key::KeyHead;
use crate::kit::{InPlace, IsOneWord};
use crate::{Direction, KeyRange, OrderedIndex, Update};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Keys below this are in their heads; of the others, four each have one head.
const IN_HEADS: u64 = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

/// A value that is one pointer, and counts its drops.
#[derive(Clone)]
struct Shared(Arc<Inner>);

struct Inner {
    number: u64,
    alive: Arc<AtomicUsize>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl IsOneWord for Shared {
    type Word = Arc<Inner>;

    fn word(&self) -> &Arc<Inner> {
        &self.0
    }
}

/// A value that is as wide as a pointer, and is none.
#[derive(Clone)]
struct Liar(#[expect(dead_code, reason = "only its size matters")] u64);

impl IsOneWord for Liar {
    type Word = Arc<u64>;

    fn word(&self) -> &Arc<u64> {
        static OTHER: std::sync::LazyLock<Arc<u64>> = std::sync::LazyLock::new(|| Arc::new(0));
        &OTHER
    }
}

enum Heads {}

impl KeyHead<Key> for Heads {
    type Word = u64;
    const IS_KEY: bool = false;
    const SOME_ARE_KEYS: bool = true;

    fn is_only_of_one(head: u64) -> bool {
        head < IN_HEADS
    }

    fn head(key: &Key) -> u64 {
        key.0.min(IN_HEADS) + key.0.saturating_sub(IN_HEADS) / 4
    }

    fn key(head: u64) -> Option<Key> {
        (head < IN_HEADS).then_some(Key(head))
    }

    fn in_place<V: 'static>() -> Option<InPlace<V>> {
        InPlace::of::<Shared>().or_else(InPlace::of::<Liar>)
    }
}

/// Nodes of sixteen entries.
type Tree = OlcBTree<Key, Shared, Heads, 0>;

struct Maker(Arc<AtomicUsize>);

impl Maker {
    fn make(&self, number: u64) -> Shared {
        let alive = Arc::clone(&self.0);
        alive.fetch_add(1, Ordering::Relaxed);
        Shared(Arc::new(Inner { number, alive }))
    }
}

/// A small random generator.
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

fn step(tree: &Tree, key: &Key, direction: Direction) -> Option<(u64, u64)> {
    let mut found = None;
    let read = &mut |key: &Key, value: &Shared| found = Some((key.0, value.0.number));
    assert_eq!(tree.step_with(key, direction, read), found.is_some());
    found
}

fn step_in(model: &BTreeMap<u64, u64>, key: u64, direction: Direction) -> Option<(u64, u64)> {
    let found = match direction {
        Direction::Ascending => model.range((Bound::Excluded(key), Bound::Unbounded)).next(),
        Direction::Descending => model.range(..key).next_back(),
    };
    found.map(|(key, number)| (*key, *number))
}

/// Fails if a step, or another operation, does not do what it does to a `BTreeMap`, or a value is
/// dropped twice, or never.
#[test]
fn steps_and_values_in_place_follow_the_model_in_two_trees() {
    let maker = Maker(Arc::default());
    let mut trees = [(); 2].map(|()| (Tree::default(), BTreeMap::<u64, u64>::new()));
    let (mut random, mut at) = (Random(3), Key(0));
    for turn in 0..60_000_u64 {
        let (tree, model) = &mut trees[random.below(2) as usize];
        let grows = turn % 20_000 < 9_000;
        let number = IN_HEADS - 300 + random.below(600);
        let key = Key(number);
        match random.below(if grows { 8 } else { 10 }) {
            0..3 if grows => {
                let old = tree.insert(key, maker.make(turn));
                assert_eq!(old.map(|old| old.0.number), model.insert(number, turn));
            }
            3 if grows => {
                let absent = tree.insert_if_absent(key, maker.make(turn)).is_ok();
                assert_eq!(absent, !model.contains_key(&number));
                model.entry(number).or_insert(turn);
            }
            0..3 => {
                let old = tree.remove(&key).map(|old| old.0.number);
                assert_eq!(old, model.remove(&number));
            }
            3 => {
                let mut seen = None;
                tree.update(key, &mut |old| {
                    seen = old.map(|old| old.0.number);
                    Update::Put(maker.make(turn))
                });
                assert_eq!(seen, model.insert(number, turn));
            }
            4 => {
                let found = tree.get(&key).map(|found| found.0.number);
                assert_eq!(found, model.get(&number).copied());
            }
            way => {
                let from = if way == 5 { key } else { at.clone() };
                for _ in 0..random.below(8) {
                    let direction = match random.below(4) {
                        0 => Direction::Descending,
                        _ => Direction::Ascending,
                    };
                    let found = step(tree, &from, direction);
                    assert_eq!(found, step_in(model, from.0, direction), "{from:?}");
                    if let Some((key, _)) = found {
                        at = Key(key);
                    }
                }
            }
        }
        if turn % 20_000 == 19_999 {
            tree.remove_range(KeyRange::all());
            model.clear();
        }
    }
    for (tree, model) in &trees {
        tree.tree.check_at_rest();
        let all = tree.snapshot(KeyRange::all()).unwrap();
        let all = all.into_iter().map(|(key, value)| (key.0, value.0.number));
        assert!(all.eq(model.iter().map(|(key, number)| (*key, *number))));
    }
    drop(trees);
    assert_eq!(maker.0.load(Ordering::Relaxed), 0);
}

/// Fails, under a checker of addresses, if a step looks at a leaf that has been freed since the
/// last step: with its tree, or alone.
#[test]
fn a_step_does_not_look_at_a_leaf_that_is_gone() {
    let maker = Maker(Arc::default());
    for _ in 0..20 {
        let tree = Tree::default();
        for number in 0..64 {
            tree.insert(Key(number), maker.make(number));
        }
        // The finger is in the last leaf, which is merged into its neighbour.
        assert_eq!(step(&tree, &Key(62), Direction::Ascending), Some((63, 63)));
        for number in 0..62 {
            tree.remove(&Key(number));
        }
        for _ in 0..4 {
            tremula_sync::reclaim::turn_next();
            assert!(tree.get(&Key(63)).is_some());
        }
        assert_eq!(step(&tree, &Key(63), Direction::Descending), Some((62, 62)));
        assert_eq!(step(&tree, &Key(62), Direction::Ascending), Some((63, 63)));
    }
}

/// Fails if a reader sees a value that is dropped, or half of one, or a step misses a key that
/// stays.
#[test]
fn readers_and_steps_beside_writers_see_whole_values() {
    let maker = Maker(Arc::default());
    let tree = Tree::default();
    for number in (0..400).step_by(2) {
        tree.insert(Key(number), maker.make(number));
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (tree, done, maker) = (&tree, &done, &maker);
            scope.spawn(move || {
                let mut random = Random(seed);
                for _ in 0..60_000 {
                    let number = random.below(400);
                    // Even keys stay.
                    if number.is_multiple_of(2) || random.below(2) == 0 {
                        tree.insert(Key(number), maker.make(number));
                    } else {
                        tree.remove(&Key(number));
                    }
                }
                done.store(true, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let mut at = 0;
                while let Some((key, number)) = step(&tree, &Key(at), Direction::Ascending) {
                    assert!(key == number && key > at && key <= at + 2 - at % 2);
                    at = key;
                }
                assert!(at >= 398);
                let found = tree.get(&Key(200)).map(|found| found.0.number);
                assert_eq!(found, Some(200));
            }
        });
    });
    drop(tree);
    assert_eq!(maker.0.load(Ordering::Relaxed), 0);
}

#[test]
fn a_value_that_is_not_one_word_is_refused() {
    let tree = OlcBTree::<Key, Liar, Heads, 0>::default();
    let insert = || tree.insert(Key(1), Liar(7));
    assert!(catch_unwind(AssertUnwindSafe(insert)).is_err());
    assert_eq!(tree.len(), 0);
    assert!(!tree.contains_key(&Key(1)));
}
