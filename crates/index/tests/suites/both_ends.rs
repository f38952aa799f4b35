//! The iterator of `OrderedMap::range`, driven from both ends while the map changes, on every
//! engine of the table that the test program names `Tested`.
//!
//! Each test here fails on: a key from one end that does not lie strictly between the last keys
//! that the two ends returned; a key that was present throughout and never comes; an entry after
//! the iterator has returned `None`.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::Tested;
use crate::support::suite::Random;
use std::sync::atomic::{AtomicBool, Ordering};
use tremula_index::ordered_map::Range;
use tremula_index::{OrderedIndex, OrderedMap};

type Map = OrderedMap<i64, i64, Box<dyn OrderedIndex<i64, i64>>>;
type Ends<'a> = Range<i64, i64, &'a Map>;

/// A map of the keys from 0 to `count` - 1.
fn map_of(engine: Tested, count: i64) -> Map {
    let map = OrderedMap::with_engine(engine);
    (&map).extend((0..count).map(|key| (key, key)));
    map
}

pub(crate) fn the_front_never_goes_back_behind_what_it_took_from_the_batch_of_the_back() {
    for engine in Tested::ALL {
        let map = map_of(engine, 10);
        let mut range = map.range(..);
        assert_eq!(range.next_back(), Some((9, 9)));
        assert_eq!(range.next(), Some((0, 0)));
        assert_eq!(range.next(), Some((1, 1)));
        map.insert(-1, -1);
        let rest: Vec<_> = range.map(|(key, _)| key).collect();
        assert_eq!(rest, Vec::from_iter(2..9), "{engine}");
    }
}

pub(crate) fn the_back_never_goes_back_behind_what_it_took_from_the_batch_of_the_front() {
    for engine in Tested::ALL {
        let map = map_of(engine, 10);
        let mut range = map.range(..);
        assert_eq!(range.next(), Some((0, 0)));
        assert_eq!(range.next_back(), Some((9, 9)));
        assert_eq!(range.next_back(), Some((8, 8)));
        map.insert(100, 100);
        let rest: Vec<_> = range.rev().map(|(key, _)| key).collect();
        assert_eq!(rest, Vec::from_iter((1..8).rev()), "{engine}");
    }
}

/// The batches of the two ends have met at different keys, and both still hold entries.
pub(crate) fn ends_that_have_met_share_what_both_have_copied() {
    for engine in Tested::ALL {
        let map = map_of(engine, 50);
        let mut range = map.range(..);
        // The first batch of each end: from 0 to 31, and from 49 to 32.
        assert_eq!(range.next(), Some((0, 0)));
        assert_eq!(range.next_back(), Some((49, 49)));
        map.remove_range(..);
        (&map).extend((-100..200).map(|key| (key, -1)));
        let (mut low, mut high) = (1, 48);
        for step in 0.. {
            let entry = if step % 3 == 0 {
                range.next_back()
            } else {
                range.next()
            };
            if low > high {
                assert_eq!(entry, None, "{engine}");
                break;
            }
            let key = if step % 3 == 0 {
                high -= 1;
                high + 1
            } else {
                low += 1;
                low - 1
            };
            assert_eq!(entry, Some((key, key)), "{engine}");
        }
    }
}

pub(crate) fn a_range_that_has_ended_stays_ended() {
    fn fused<I: std::iter::FusedIterator>(range: I) -> I {
        range
    }
    for engine in Tested::ALL {
        for count in [0, 1, 31, 32, 33, 96, 200] {
            let map = map_of(engine, count);
            let mut range = fused(map.range(..));
            assert_eq!(range.by_ref().count(), count as usize, "{engine}");
            (&map).extend([(-5, 0), (1000, 0)]);
            assert_eq!(range.next(), None, "{engine}, {count} entries");
            assert_eq!(range.next_back(), None, "{engine}, {count} entries");

            let mut range = fused(map.range(0..500));
            assert_eq!(range.by_ref().rev().count(), count as usize, "{engine}");
            map.insert(499, 0);
            assert_eq!(range.next_back(), None, "{engine}, {count} entries");
            assert_eq!(range.next(), None, "{engine}, {count} entries");
        }
    }
}

/// Multiples of this are present throughout.
const LASTING: i64 = 16;

/// Takes all entries of `range` between `low` and `high`, from both ends at random.
fn drive(mut range: Ends<'_>, low: i64, high: i64, random: &mut Random, context: &str) {
    let (mut front, mut back) = (low - 1, high);
    let mut lasting = Vec::new();
    // One end for a while, then the other, so that one end uses up the other's batch.
    let mut from_front = true;
    loop {
        if random.below(8) == 0 {
            from_front = random.below(2) == 0;
        }
        let entry = if from_front {
            range.next()
        } else {
            range.next_back()
        };
        let Some((key, _)) = entry else { break };
        assert!(
            front < key && key < back,
            "{context}: {key} is not between {front} and {back}"
        );
        *if from_front { &mut front } else { &mut back } = key;
        if key % LASTING == 0 {
            lasting.push(key);
        }
    }
    assert_eq!((range.next(), range.next_back()), (None, None), "{context}");
    lasting.sort_unstable();
    let expected = (low..high).filter(|key| key % LASTING == 0);
    assert_eq!(lasting, Vec::from_iter(expected), "{context}");
}

pub(crate) fn ends_driven_at_random_keep_the_order_while_another_thread_inserts_and_removes() {
    const KEYS: i64 = 400;
    for engine in Tested::ALL {
        let map: Map = OrderedMap::with_engine(engine);
        (&map).extend(
            (0..KEYS)
                .filter(|key| key % LASTING == 0)
                .map(|key| (key, 0)),
        );
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random::new(1);
                while !done.load(Ordering::Relaxed) {
                    let key = i64::from(random.below(KEYS as u32));
                    if key % LASTING == 0 {
                        continue;
                    }
                    // Rare, so that there is space for new keys where the two ends meet.
                    if random.below(8) == 0 {
                        map.insert(key, 1);
                    } else {
                        map.remove(&key);
                    }
                }
            });
            let mut random = Random::new(2);
            for round in 0..100 {
                let low = i64::from(random.below(KEYS as u32));
                let high = low + i64::from(random.below((KEYS - low) as u32 + 1));
                let context = format!("{engine}, round {round}, {low}..{high}");
                drive(map.range(low..high), low, high, &mut random, &context);
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}

/// The same without another thread: the map changes between any two entries.
pub(crate) fn ends_driven_at_random_keep_the_order_while_the_same_thread_inserts_and_removes() {
    const KEYS: i64 = 150;
    for engine in Tested::ALL {
        let mut random = Random::new(3);
        for round in 0..60 {
            let map: Map = OrderedMap::with_engine(engine);
            (&map).extend((0..KEYS).map(|key| (key * 10, 0)));
            let mut range = map.range(..);
            let (mut front, mut back) = (i64::MIN, i64::MAX);
            loop {
                let from_front = random.below(2) == 0;
                let entry = if from_front {
                    range.next()
                } else {
                    range.next_back()
                };
                let Some((key, _)) = entry else { break };
                assert!(
                    front < key && key < back,
                    "{engine}, round {round}: {key} is not between {front} and {back}"
                );
                *if from_front { &mut front } else { &mut back } = key;
                // On either side of the last key of this end.
                let mut near = || key + i64::from(random.below(40)) - 20;
                map.insert(near(), 0);
                map.remove(&near());
            }
            assert_eq!((range.next(), range.next_back()), (None, None));
        }
    }
}

/// The tests of this suite.
macro_rules! every_test {
    () => {
        every_test! {
            the_front_never_goes_back_behind_what_it_took_from_the_batch_of_the_back,
            the_back_never_goes_back_behind_what_it_took_from_the_batch_of_the_front,
            ends_that_have_met_share_what_both_have_copied,
            a_range_that_has_ended_stays_ended,
            ends_driven_at_random_keep_the_order_while_another_thread_inserts_and_removes,
            ends_driven_at_random_keep_the_order_while_the_same_thread_inserts_and_removes,
        }
    };
    ($($test:ident,)*) => {
        $(#[test]
        fn $test() {
            suite::$test();
        })*
    };
}
pub(crate) use every_test;
