//! Keys of any length while threads write, look up and scan them. Keys have long beginnings in
//! common, which end elsewhere from one group of keys to the next, and some are too long for a
//! leaf; so leaves get shorter and longer prefixes, and other blocks, all the time.
//!
//! Each value has the number of its key and a generation. Every fourth key is stable: it is there
//! from before the threads start, and its generation never goes back. The test fails on a key that
//! is torn or under a wrong value, on a stable key that is lost or goes back, and on a scan that is
//! out of order or lacks a stable key.

use super::suite::{Random, join_all, scaled};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use tremula_index::{Direction, KeyRange, OrderedIndex, Update};

const KEYS: u64 = if cfg!(tremula_tsan) { 1_000 } else { 6_000 };
const STABLE: u64 = 4;
const WRITERS: u32 = 2;

/// Keys of a group have the same beginning: the group's number, and a part of [`BEGINNING`].
const GROUP: u64 = 64;
const BEGINNING: &str = "/what/all/keys/of/a/group/have/in/common/";

/// The number of a key, and a generation.
type Value = (u64, u64);

fn key(number: u64) -> String {
    let group = number / GROUP;
    let beginning = &BEGINNING[..group as usize * 7 % BEGINNING.len()];
    let mut key = format!("{group:04}{beginning}{:02}", number % GROUP);
    if number % 16 == 5 {
        key += &"x".repeat(200);
    }
    key
}

/// What one thread has seen of the stable keys.
struct Witness(Vec<u64>);

impl Witness {
    fn new() -> Self {
        Self(vec![0; KEYS as usize])
    }

    fn see(&mut self, seen: &str, &(number, generation): &Value) -> u64 {
        assert_eq!(seen, key(number), "a key is torn, or under another's value");
        if number.is_multiple_of(STABLE) {
            let last = &mut self.0[number as usize];
            assert!(*last <= generation, "key {number} goes back");
            *last = generation;
        }
        number
    }

    /// The numbers of a range of stable keys, both inclusive, as something has shown it.
    fn see_range(&mut self, entries: &[(String, Value)], low: u64, high: u64) {
        let mut stable = low;
        let mut last = None;
        for (key, value) in entries {
            let number = self.see(key, value);
            assert!(last < Some(number), "{number} comes after {last:?}");
            last = Some(number);
            if number.is_multiple_of(STABLE) {
                assert_eq!(number, stable, "a stable key is missing");
                stable += STABLE;
            }
        }
        assert_eq!(stable, high + STABLE, "stable keys are missing at the end");
    }
}

pub(crate) fn run(index: &impl OrderedIndex<String, Value>) {
    for number in (0..KEYS).step_by(STABLE as usize) {
        index.insert(key(number), (number, 0));
    }
    let writing = AtomicU32::new(WRITERS);
    thread::scope(|scope| {
        let writing = &writing;
        let writers = (0..WRITERS).map(|seed| {
            scope.spawn(move || {
                let _done = Done(writing);
                write(index, Random::new(seed));
            })
        });
        let readers = (0..2).map(|seed| {
            scope.spawn(move || {
                let (mut random, mut witness) = (Random::new(WRITERS + seed), Witness::new());
                while writing.load(SeqCst) > 0 {
                    look_up(index, &mut random, &mut witness);
                    scan(index, &mut random, &mut witness);
                }
            })
        });
        join_all(writers.chain(readers).collect());
    });
    let mut all = Vec::new();
    let everything = (KeyRange::all(), Direction::Ascending, usize::MAX);
    index.scan(everything.0, everything.1, everything.2, &mut all);
    Witness::new().see_range(&all, 0, KEYS - STABLE);
    assert_eq!(index.len(), all.len());
}

/// Says that a writer has ended, also if it has panicked.
struct Done<'a>(&'a AtomicU32);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn write(index: &impl OrderedIndex<String, Value>, mut random: Random) {
    for turn in 1..=u64::from(scaled(100_000)) {
        // For a time keys come, then they go: so leaves are split, and merged again.
        let comes = turn / 2_000 % 2 == 0;
        let number = u64::from(random.below(KEYS as u32));
        if number.is_multiple_of(STABLE) {
            index.update(key(number), &mut |old| {
                let (_, generation) = old.expect("a stable key is there");
                Update::Put((number, generation + 1))
            });
        } else if comes == (random.below(8) > 0) {
            let old = index.insert(key(number), (number, turn));
            assert!(old.is_none_or(|(old, _)| old == number));
        } else if random.below(8) > 0 {
            let old = index.remove(&key(number));
            assert!(old.is_none_or(|(old, _)| old == number));
        } else {
            let low = number - number % STABLE;
            let (low, high) = (key(low), key(low + STABLE));
            let between = KeyRange::new(Bound::Excluded(&low), Bound::Excluded(&high));
            assert!(index.remove_range(between) < STABLE as usize);
        }
    }
}

fn look_up(index: &impl OrderedIndex<String, Value>, random: &mut Random, witness: &mut Witness) {
    for _ in 0..50 {
        let number = u64::from(random.below((KEYS - STABLE) as u32));
        let sought = key(number);
        match index.get(&sought) {
            Some(value) => assert_eq!(witness.see(&sought, &value), number),
            None => assert!(!number.is_multiple_of(STABLE), "stable {number} is lost"),
        }
        let (next, value) = index.next(&sought).expect("a stable key lies above");
        let next = witness.see(&next, &value);
        let stable = number - number % STABLE + STABLE;
        assert!(
            number < next && next <= stable,
            "{next} comes after {number}"
        );
    }
}

fn scan(index: &impl OrderedIndex<String, Value>, random: &mut Random, witness: &mut Witness) {
    let mut stable = |below: u64| u64::from(random.below((below / STABLE) as u32)) * STABLE;
    let low = stable(KEYS / 2);
    let high = low + stable(KEYS / 2);
    let (from, to) = (key(low), key(high));
    let range = KeyRange::new(Bound::Included(&from), Bound::Included(&to));
    let mut entries = Vec::new();
    match random.below(4) {
        0 => entries = index.snapshot(range).expect("as of one moment"),
        1 => {
            index.scan(range, Direction::Descending, usize::MAX, &mut entries);
            entries.reverse();
        }
        2 => index.scan(range, Direction::Ascending, usize::MAX, &mut entries),
        _ => index.range(range, Direction::Ascending, &mut |key, value| {
            entries.push((key.clone(), *value));
            ControlFlow::Continue(())
        }),
    }
    witness.see_range(&entries, low, high);
}
