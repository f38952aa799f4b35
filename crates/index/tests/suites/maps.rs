//! The methods of `OrderedMap` that are made of an index's operations, beside those of a
//! `BTreeMap`, on every engine of the table that the test program names `Tested`.
//!
//! Each test here fails where a method returns something else than the `BTreeMap`, or leaves other
//! entries behind.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::Tested;
use crate::support::suite::Random;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tremula_index::{Direction, Keys, OrderedIndex, OrderedMap, OrderedSet};

type Map = OrderedMap<i64, u32, Box<dyn OrderedIndex<i64, u32>>>;

/// Keys are below this, so that most operations meet some.
const KEYS: u32 = 200;

fn key(random: &mut Random) -> i64 {
    random.below(KEYS).into()
}

/// A range within the keys, which may be empty but is never reversed: a `BTreeMap` panics on that.
fn range(random: &mut Random) -> std::ops::Range<i64> {
    let low = key(random);
    low..low + i64::from(random.below(40))
}

/// Whether an entry is to stay.
fn is_kept(key: i64, value: u32) -> bool {
    (key + i64::from(value)) % 3 != 0
}

/// One random operation on both maps.
fn operate(map: &Map, model: &mut BTreeMap<i64, u32>, random: &mut Random) {
    let at = key(random);
    let value = random.below(10);
    match random.below(12) {
        0..=3 => assert_eq!(map.insert(at, value), model.insert(at, value)),
        4 => {
            let expected = match model.get(&at) {
                Some(found) if found % 2 == 0 => model.remove(&at),
                _ => None,
            };
            assert_eq!(map.remove_if(&at, |found| found % 2 == 0), expected);
        }
        5 => {
            let expected = match model.get_mut(&at) {
                Some(found) if *found == value => Ok(std::mem::replace(found, 77)),
                found => Err(found.copied()),
            };
            assert_eq!(map.compare_exchange(at, &value, 77), expected);
        }
        6 => {
            let expected = *model.entry(at).or_insert(value);
            assert_eq!(map.get_or_insert_with(at, || value), expected);
        }
        7 => {
            let range = range(random);
            let before = model.len();
            model.retain(|key, value| !range.contains(key) || is_kept(*key, *value));
            let removed = map.retain(range, |key, value| is_kept(*key, *value));
            assert_eq!(removed, before - model.len());
        }
        8 => {
            let range = range(random);
            let expected: Vec<_> = model.range(range.clone()).map(|(k, v)| (*k, *v)).collect();
            model.retain(|key, _| !range.contains(key));
            let taken = random.below(4) as usize;
            let mut drain = map.drain(range);
            let front: Vec<_> = drain.by_ref().take(taken).collect();
            assert_eq!(front, expected[..taken.min(expected.len())]);
            let last = expected[front.len()..].last().copied();
            assert_eq!(drain.next_back(), last);
        }
        9 => {
            let owned = |(key, value): (&i64, &u32)| (*key, *value);
            assert_eq!(map.at_or_above(&at), model.range(at..).next().map(owned));
            let below = model.range(..=at).next_back().map(owned);
            assert_eq!(map.at_or_below(&at), below);
            assert_eq!(map.first_key_value(), model.first_key_value().map(owned));
            assert_eq!(map.last_key_value(), model.last_key_value().map(owned));
        }
        10 => {
            let range = range(random);
            let expected: Vec<_> = model.range(range.clone()).map(|(k, v)| (*k, *v)).collect();
            assert_eq!(map.range(range.clone()).last(), expected.last().copied());
            assert_eq!(
                map.range(range.clone()).min(),
                expected.iter().min().copied()
            );
            assert_eq!(
                map.range(range.clone()).max(),
                expected.iter().max().copied()
            );
            let mut entries = map.range(range);
            for left in (0..=expected.len()).rev() {
                let (low, high) = entries.size_hint();
                assert!(low <= left && high.is_none_or(|high| high == left));
                entries.next();
            }
            assert_eq!(entries.size_hint(), (0, Some(0)));
        }
        _ => {
            let range = range(random);
            let mut visited = Vec::new();
            let stop = map.for_each(range.clone(), Direction::Descending, |key, value| {
                visited.push((*key, *value));
                if *value == 9 {
                    ControlFlow::Break(*key)
                } else {
                    ControlFlow::Continue(())
                }
            });
            let all: Vec<_> = model.range(range).rev().map(|(k, v)| (*k, *v)).collect();
            let nine = all.iter().position(|(_, value)| *value == 9);
            assert_eq!(visited, all[..nine.map_or(all.len(), |at| at + 1)]);
            let expected = nine.map_or(ControlFlow::Continue(()), |at| {
                ControlFlow::Break(all[at].0)
            });
            assert_eq!(stop, expected);
        }
    }
}

pub(crate) fn methods_of_maps_do_what_those_of_a_btree_map_do() {
    for engine in Tested::ALL {
        let map: Map = OrderedMap::with_engine(engine);
        let mut model = BTreeMap::new();
        let mut random = Random::new(5);
        for _ in 0..4000 {
            operate(&map, &mut model, &mut random);
            assert_eq!(map.len(), model.len(), "{engine}");
        }
        assert!(map.keys().eq(model.keys().copied()), "{engine}");
        assert!(map.values().eq(model.values().copied()), "{engine}");
        assert!(map.keys().rev().eq(model.keys().rev().copied()), "{engine}");
        assert_eq!(format!("{map:?}"), format!("{model:?}"), "{engine}");
    }
}

/// A key of which an engine can know nothing but its order, which is not that of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id(std::cmp::Reverse<u16>, Part);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Whole,
    Half(i8),
}

/// Fails where an engine takes such a key for one whose head is the key, or demands more of it than
/// its order.
pub(crate) fn a_key_with_an_order_and_no_more_suits_every_engine_that_compares() {
    for engine in Tested::ALL {
        let make = || OrderedMap::<Id, u64, _>::with_engine(engine);
        if engine.facts().keys == Keys::Bytes {
            let told = std::panic::catch_unwind(make).map(drop).unwrap_err();
            let told = told.downcast_ref::<String>().expect("a sentence");
            assert!(
                told.contains(engine.name()) && told.contains("with_byte_engine"),
                "{told}"
            );
            assert!(told.contains("Id"), "{told}");
            continue;
        }
        let (map, mut model) = (make(), BTreeMap::new());
        let mut random = Random::new(11);
        for step in 0..3000 {
            let part = match random.below(3) {
                0 => Part::Whole,
                half => Part::Half(half as i8 - 2),
            };
            let key = Id(std::cmp::Reverse(random.below(300) as u16), part);
            if random.below(3) == 0 {
                assert_eq!(map.remove(&key), model.remove(&key), "{engine}");
            } else {
                assert_eq!(map.insert(key, step), model.insert(key, step), "{engine}");
            }
        }
        assert!(map.iter().eq(model), "{engine}");
    }
}

pub(crate) fn an_owned_iterator_hands_out_every_entry_from_either_end() {
    for engine in Tested::ALL {
        let map: Map = OrderedMap::with_engine(engine);
        (&map).extend((0..100).map(|key| (key, 1)));
        let mut entries = map.into_iter();
        let (mut low, mut high) = (0, 100);
        let mut random = Random::new(6);
        while low < high {
            assert_eq!(entries.len() as i64, high - low, "{engine}");
            let entry = if random.below(2) == 0 {
                low += 1;
                (entries.next(), low - 1)
            } else {
                high -= 1;
                (entries.next_back(), high)
            };
            assert_eq!(entry.0, Some((entry.1, 1)), "{engine}");
        }
        assert_eq!(
            (entries.next(), entries.next_back()),
            (None, None),
            "{engine}"
        );
    }
}

pub(crate) fn maps_are_equal_if_their_entries_are_whatever_their_engines_are() {
    let one = OrderedMap::from([(1, 10), (2, 20)]);
    for engine in Tested::ALL {
        let map: Map = OrderedMap::with_engine(engine);
        (&map).extend([(2, 20), (1, 10)]);
        assert_eq!(map, one, "{engine}");
        map.insert(3, 30);
        assert_ne!(map, one, "{engine}");
        map.remove(&3);
        map.insert(2, 21);
        assert_ne!(map, one, "{engine}");
    }
    let copy = one.clone();
    assert_eq!(copy, one);
    copy.insert(2, 0);
    assert_eq!(one.get(&2), Some(20));
}

pub(crate) fn a_range_may_own_its_map() {
    for engine in Tested::ALL {
        let map: Map = OrderedMap::with_engine(engine);
        (&map).extend((0..100).map(|key| (key, 0)));
        let range = OrderedMap::range_of(std::sync::Arc::new(map), 10..);
        let keys = std::thread::spawn(move || range.map(|(key, _)| key).sum::<i64>());
        assert_eq!(keys.join().unwrap(), (10..100).sum(), "{engine}");
    }
}

pub(crate) fn a_pointer_to_an_index_is_an_index() {
    fn first<I: OrderedIndex<i64, u32>>(index: I) -> Option<(i64, u32)> {
        index.first()
    }
    for engine in Tested::ALL {
        let index = std::sync::Arc::new(engine.create::<i64, u32>());
        let map = OrderedMap::on(std::sync::Arc::clone(&index));
        map.insert(1, 10);
        assert_eq!(first(&*index), Some((1, 10)), "{engine}");
        assert_eq!(first(index), Some((1, 10)), "{engine}");
    }
}

pub(crate) fn methods_of_sets_do_what_those_of_a_btree_set_do() {
    for engine in Tested::ALL {
        let set = OrderedSet::of(OrderedMap::with_engine(engine));
        let mut model = std::collections::BTreeSet::new();
        let mut random = Random::new(7);
        for _ in 0..4000 {
            let at = key(&mut random);
            match random.below(10) {
                0..=3 => assert_eq!(set.insert(at), model.insert(at)),
                4 => assert_eq!(set.remove(&at), model.remove(&at)),
                5 => assert_eq!(set.contains(&at), model.contains(&at)),
                6 => {
                    assert_eq!(set.at_or_above(&at), model.range(at..).next().copied());
                    assert_eq!(
                        set.at_or_below(&at),
                        model.range(..=at).next_back().copied()
                    );
                    assert_eq!(set.next(&at), model.range(at + 1..).next().copied());
                    assert_eq!(set.prev(&at), model.range(..at).next_back().copied());
                    assert_eq!(
                        (set.first(), set.last()),
                        (model.first().copied(), model.last().copied())
                    );
                }
                7 => {
                    let range = range(&mut random);
                    let expected: Vec<_> = model.range(range.clone()).copied().collect();
                    assert!(set.range(range.clone()).eq(expected.iter().copied()));
                    let first: Vec<_> = expected.iter().copied().take(3).collect();
                    assert_eq!(set.scan(range.clone(), Direction::Ascending, 3), first);
                    model.retain(|key| !range.contains(key));
                    if at % 2 == 0 {
                        assert_eq!(set.remove_range(range), expected.len());
                    } else {
                        assert!(set.drain(range).eq(expected));
                    }
                }
                8 => {
                    let before = model.len();
                    model.retain(|key| *key < 20 || key % 7 != at % 7);
                    let removed = set.retain(20.., |key| key % 7 != at % 7);
                    assert_eq!(removed, before - model.len());
                }
                _ => assert_eq!(
                    (set.pop_first(), set.pop_last()),
                    (model.pop_first(), model.pop_last())
                ),
            }
            assert_eq!(set.len(), model.len(), "{engine}");
        }
        assert!(set.iter().eq(model.iter().copied()), "{engine}");
        assert_eq!(format!("{set:?}"), format!("{model:?}"), "{engine}");
        assert!(set.into_iter().eq(model), "{engine}");
    }
}

/// The tests of this suite.
macro_rules! every_test {
    () => {
        every_test! {
            methods_of_maps_do_what_those_of_a_btree_map_do,
            a_key_with_an_order_and_no_more_suits_every_engine_that_compares,
            an_owned_iterator_hands_out_every_entry_from_either_end,
            maps_are_equal_if_their_entries_are_whatever_their_engines_are,
            a_range_may_own_its_map,
            a_pointer_to_an_index_is_an_index,
            methods_of_sets_do_what_those_of_a_btree_set_do,
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
