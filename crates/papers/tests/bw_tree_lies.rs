//! The OpenBw-Tree with keys that lie or panic: their order changes from one comparison to the
//! next, is no order, or differs from that of their bytes. Answers may be anything then. But all
//! that was put into the tree is dropped once, and each operation ends, as do those after it.
//!
//! These tests would fail if what is freed depended on comparisons: then two deletions of "another"
//! key free one key, and a key that is "there" twice is in two nodes.
#![cfg(not(any(loom, shuttle)))]

mod support;

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use support::counted::{Counted, Ledger};
use support::misled::{text_of, unless_misled};
use support::suite::{Random, scaled};
use support::{bw_of_spread_leaves, bw_with_deltas, bw_with_merge_deltas, restless_bw};
use tremula_index::key::{ByteHead, KeyHead, NoHead};
use tremula_index::{ByteKey, Direction, KeyRange, OrderedIndex, Update};
use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_papers::{BwMultiMap, BwTree};

/// The text of the panic of a key.
const OF_A_KEY: &str = "a key panics";

/// What keys do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Honest,
    /// One call in twenty gives any answer; one in two hundred panics.
    Random,
    /// Any comparison with some of the keys says less, like floats of which one is not a number.
    Nowhere,
    /// Pairs of keys with different bytes are always equal.
    Twins,
}

thread_local! {
    static MANNER: Cell<Manner> = const { Cell::new(Manner::Honest) };
    static RANDOM: Cell<u32> = const { Cell::new(1) };
}

/// A random number below another.
fn below(bound: u32) -> u32 {
    let mut random = RANDOM.get();
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    RANDOM.set(random);
    random % bound
}

/// Whether a call of a key's code answers at random.
fn lies() -> bool {
    if MANNER.get() != Manner::Random {
        return false;
    }
    if below(200) == 0 {
        resume_unwind(Box::new(OF_A_KEY));
    }
    below(20) == 0
}

#[derive(Clone)]
struct Key {
    number: u64,
    text: String,
    _counted: Counted<()>,
}

impl Key {
    fn new(number: u64, ledger: &Ledger) -> Self {
        let word = if number.is_multiple_of(2) {
            "key"
        } else {
            "KEY"
        };
        let shown = match MANNER.get() {
            Manner::Twins => number / 2,
            _ => number,
        };
        Self {
            number,
            text: format!("{word} number {shown:06}"),
            _counted: ledger.make(()),
        }
    }
}

impl Key {
    fn is_nowhere(&self) -> bool {
        self.number.is_multiple_of(23)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if lies() {
            return [Ordering::Less, Ordering::Equal, Ordering::Greater][below(3) as usize];
        }
        match MANNER.get() {
            Manner::Nowhere if self.is_nowhere() || other.is_nowhere() => Ordering::Less,
            Manner::Twins => (self.number / 2).cmp(&(other.number / 2)),
            _ => self.number.cmp(&other.number),
        }
    }
}

impl ByteKey for Key {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        if lies() {
            return read(&self.text.as_bytes()[..below(8) as usize]);
        }
        // All keys begin with the same eight bytes.
        read(format!("the key {}", self.text).as_bytes())
    }
}

type Value = Counted<u64>;

/// Each switch alone off and alone on, and the configurations with small nodes.
fn configurations() -> Vec<BwTreeConfig> {
    let mut all = vec![
        BwTreeConfig::default(),
        restless_bw(),
        bw_with_deltas(),
        bw_with_merge_deltas(),
        bw_of_spread_leaves(),
        BwTreeConfig {
            leaf_split: 40,
            ..bw_of_spread_leaves()
        },
    ];
    let mut switch = |turn: fn(&mut BwTreeSwitches)| {
        for mut switches in [BwTreeSwitches::ON, BwTreeSwitches::OFF] {
            turn(&mut switches);
            all.push(BwTreeConfig {
                switches,
                ..restless_bw()
            });
        }
    };
    switch(|switches| switches.preallocation ^= true);
    switch(|switches| switches.local_epochs ^= true);
    switch(|switches| switches.fast_consolidation ^= true);
    switch(|switches| switches.search_shortcuts ^= true);
    switch(|switches| switches.chain_filter ^= true);
    switch(|switches| switches.whole_inner_nodes ^= true);
    switch(|switches| switches.whole_splits ^= true);
    switch(|switches| switches.spread_leaves ^= true);
    switch(|switches| switches.held_merges ^= true);
    all
}

fn operate<H: KeyHead<Key>>(
    tree: &BwTree<Key, Value, H>,
    number: u64,
    what: u32,
    (keys, values): (&Ledger, &Ledger),
) {
    let key = || Key::new(number, keys);
    let value = || values.make(number);
    match what {
        0..5 => drop(tree.insert(key(), value())),
        5..9 => drop(tree.remove(&key())),
        9 => drop(tree.update(key(), &mut |_| Update::Put(value()))),
        10 => drop(tree.update(key(), &mut |_| Update::Remove)),
        11 => drop(tree.insert_if_absent(key(), value())),
        12 => {
            let (low, high) = (key(), Key::new(number + 40, keys));
            let range = KeyRange::new(Bound::Included(&low), Bound::Excluded(&high));
            if number.is_multiple_of(8) {
                tree.remove_range(range);
            } else {
                tree.scan(range, Direction::Descending, 30, &mut Vec::new());
            }
        }
        13 => drop((tree.pop_first(), tree.pop_last())),
        14 => drop((tree.next(&key()), tree.prev(&key()))),
        _ => {
            let direction = [Direction::Ascending, Direction::Descending][number as usize % 2];
            tree.range(KeyRange::all(), direction, &mut |_, _| {
                ControlFlow::Continue(())
            });
            tree.scan(KeyRange::all(), direction, 10_000, &mut Vec::new());
            tree.get(&key());
        }
    }
}

/// Operates on trees with keys of a manner; all keys and values are dropped once.
fn all_is_dropped_once<H: KeyHead<Key>>(manner: Manner) {
    for (at, config) in configurations().into_iter().enumerate() {
        for seed in 0..3 {
            let (keys, values) = (&Ledger::default(), &Ledger::default());
            let mut random = Random::new(seed);
            RANDOM.set(seed + 1);
            MANNER.set(manner);
            let tree = BwTree::<Key, Value, H>::with_config(config);
            for _ in 0..scaled(600) {
                let number = u64::from(random.below(if seed == 1 { 400 } else { 60 }));
                let what = random.below(16);
                let operation = || operate(&tree, number, what, (keys, values));
                if let Err(panic) = catch_unwind(AssertUnwindSafe(operation)) {
                    assert_eq!(
                        text_of(&*panic),
                        Some(OF_A_KEY),
                        "{manner:?}, configuration {at}: not the key has panicked"
                    );
                }
            }
            MANNER.set(Manner::Honest);
            drop(tree);
            let left = (keys.alive(), values.alive());
            assert_eq!(left, (0, 0), "{manner:?}, configuration {at}, seed {seed}");
            keys.assert_settled();
            values.assert_settled();
        }
    }
}

#[test]
fn keys_that_say_anything_and_panic_are_dropped_once() {
    all_is_dropped_once::<NoHead>(Manner::Random);
    all_is_dropped_once::<ByteHead>(Manner::Random);
}

#[test]
fn keys_that_are_nowhere_are_dropped_once() {
    all_is_dropped_once::<NoHead>(Manner::Nowhere);
    all_is_dropped_once::<ByteHead>(Manner::Nowhere);
}

/// In a spread leaf equal keys hash to different sub-chains.
#[test]
fn keys_that_are_equal_with_other_bytes_are_dropped_once() {
    all_is_dropped_once::<NoHead>(Manner::Twins);
    all_is_dropped_once::<ByteHead>(Manner::Twins);
}

#[test]
fn pairs_of_keys_that_lie_are_dropped_once() {
    for manner in [Manner::Random, Manner::Nowhere, Manner::Twins] {
        for config in configurations() {
            let keys = &Ledger::default();
            let mut random = Random::new(5);
            RANDOM.set(7);
            MANNER.set(manner);
            let map = BwMultiMap::<Key, u64>::with_config(config);
            for _ in 0..scaled(600) {
                let key = Key::new(random.below(20).into(), keys);
                let value = u64::from(random.below(20));
                let what = random.below(16);
                unless_misled(|| match what {
                    0..9 => _ = map.insert(key, value),
                    9..14 => _ = map.remove(&key, &value),
                    14 => drop(map.values(&key)),
                    _ => _ = map.remove_all(&key),
                });
            }
            MANNER.set(Manner::Honest);
            drop(map);
            keys.assert_settled();
        }
    }
}

/// A head type that claims that heads determine keys, and then returns none.
struct KeylessHead;

impl KeyHead<Key> for KeylessHead {
    type Word = u64;
    const IS_KEY: bool = true;

    fn head(key: &Key) -> u64 {
        key.number
    }

    fn key(_: u64) -> Option<Key> {
        None
    }
}

impl KeyHead<u64> for KeylessHead {
    type Word = u64;
    const IS_KEY: bool = true;

    fn head(key: &u64) -> u64 {
        *key
    }

    fn key(_: u64) -> Option<u64> {
        None
    }
}

/// It would fail if the tree read a key word that it has not written.
#[test]
fn heads_that_do_not_tell_the_key_end_in_a_panic() {
    for config in configurations() {
        let tree = BwTree::<u64, u64, KeylessHead>::with_config(config);
        for number in 0..50 {
            let insert = || tree.insert(number, number);
            assert!(unless_misled(insert).is_none());
            unless_misled(|| tree.remove(&number));
        }
        unless_misled(|| tree.first());
    }
}

/// It would fail if the tree made keys with a `Drop` of their own from their heads.
#[test]
fn keys_with_a_drop_of_their_own_are_kept_whatever_is_said_of_their_heads() {
    let keys = &Ledger::default();
    for config in configurations() {
        let tree = BwTree::<Key, u64, KeylessHead>::with_config(config);
        for number in 0..50 {
            tree.insert(Key::new(number, keys), number);
        }
        assert_eq!(tree.first().map(|(key, _)| key.number), Some(0));
        assert_eq!(tree.remove(&Key::new(7, keys)), Some(7));
    }
    keys.assert_settled();
}
