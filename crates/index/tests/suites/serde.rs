//! What serde's formats get of an `OrderedMap` and an `OrderedSet`, on every engine of the table
//! that the test program names `Tested`.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::Tested;
use crate::support::suite::{Random, scaled};
use serde::ser::{Impossible, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use tremula_index::{OrderedIndex, OrderedMap, OrderedSet, Scans};

type Boxed<K, V> = Box<dyn OrderedIndex<K, V>>;
type Map<K, V> = OrderedMap<K, V, Boxed<K, V>>;

/// A map is written as a `BTreeMap` of the same entries, a set as a `BTreeSet` of the same keys;
/// and both come back.
pub(crate) fn maps_and_sets_are_written_as_those_of_std() {
    for engine in Tested::ALL {
        let mut random = Random::new(1);
        // No entry, one, and more than the batches of a range have.
        for entries in [0, 1, 40, 5_000] {
            let map: Map<i64, String> = OrderedMap::with_engine(engine);
            let set = OrderedSet::of(OrderedMap::with_engine(engine));
            let (mut map_model, mut set_model) = (BTreeMap::new(), BTreeSet::new());
            for _ in 0..entries {
                let key = i64::from(random.below(10_000)) - 5_000;
                map.insert(key, key.to_string());
                map_model.insert(key, key.to_string());
                set.insert(key);
                set_model.insert(key);
            }
            let text = serde_json::to_string(&map).unwrap();
            assert_eq!(text, serde_json::to_string(&map_model).unwrap(), "{engine}");
            let read: OrderedMap<i64, String> = serde_json::from_str(&text).unwrap();
            assert_eq!(map, read, "{engine}");

            let text = serde_json::to_string(&set).unwrap();
            assert_eq!(text, serde_json::to_string(&set_model).unwrap(), "{engine}");
            let read: OrderedSet<i64> = serde_json::from_str(&text).unwrap();
            assert_eq!(set, read, "{engine}");
        }
    }
}

/// A format that begins with a length learns it. Fails where a map is written straight from an
/// iterator that does not know how much is left.
pub(crate) fn the_length_is_given_before_the_entries() {
    for engine in Tested::ALL {
        let map: Map<u32, u32> = OrderedMap::with_engine(engine);
        let set = OrderedSet::of(OrderedMap::with_engine(engine));
        for length in 0..100 {
            assert_eq!(map.serialize(Length), Ok(length), "{engine}");
            assert_eq!(set.serialize(Length), Ok(length), "{engine}");
            map.insert(length as u32, 0);
            set.insert(length as u32);
        }
    }
}

/// While a thread writes to the first key, and then the same to the last key, the first one is at
/// most one write ahead of the last at every moment. What is written of a map shows that too if the
/// engine promises one moment: if the entries were read in batches, the last key could be as of a
/// later moment, and ahead of the first. Whatever the engine promises, the keys that are always
/// there come, once each and in order, among those that come and go.
pub(crate) fn a_map_is_written_as_its_engine_promises() {
    const LAST: u32 = 1_000;
    for engine in Tested::ALL {
        let map: Map<u32, u32> = OrderedMap::with_engine(engine);
        (&map).extend((0..=LAST).filter(|key| key % 2 == 0).map(|key| (key, 0)));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 1.. {
                    if done.load(Relaxed) {
                        break;
                    }
                    map.insert(0, round);
                    let comes_and_goes = round * 2 % LAST + 1;
                    map.insert(comes_and_goes, round);
                    map.insert(LAST, round);
                    map.remove(&comes_and_goes);
                }
            });
            for _ in 0..scaled(300) {
                let text = serde_json::to_string(&map).unwrap();
                // Not read into a map, which would hide a wrong order and a key that comes twice.
                let entries = in_order_of_the_text(&text);
                assert!(
                    entries.windows(2).all(|pair| pair[0].0 < pair[1].0),
                    "{engine}: out of order"
                );
                let stays = entries.iter().filter(|(key, _)| key % 2 == 0);
                assert_eq!(stays.count() as u32, LAST / 2 + 1, "{engine}");
                let (first, last) = (entries[0].1, entries[entries.len() - 1].1);
                if engine.facts().scans == Scans::OneMoment {
                    assert!(
                        first == last || first == last + 1,
                        "{engine}: {first}, {last}"
                    );
                }
            }
            done.store(true, Relaxed);
            writer.join().unwrap();
        });
    }
}

/// The entries of a map in JSON, in the order in which they come.
fn in_order_of_the_text(text: &str) -> Vec<(u32, u32)> {
    let inside = text.trim_start_matches('{').trim_end_matches('}');
    inside
        .split(',')
        .map(|entry| {
            let (key, value) = entry.split_once(':').unwrap();
            (
                key.trim_matches('"').parse().unwrap(),
                value.parse().unwrap(),
            )
        })
        .collect()
}

/// `Serialize` of a value may write to the map that it is in. Fails, by a panic in a debug build
/// and by hanging in a release build, if a lock of the map is held meanwhile.
pub(crate) fn the_code_of_a_value_may_call_the_map() {
    for engine in Tested::ALL {
        let home = Arc::new(OnceLock::new());
        let map = Arc::new(OrderedMap::with_engine(engine));
        for key in 0..100 {
            map.insert(key, Caller(Arc::clone(&home)));
        }
        home.set(Arc::downgrade(&map)).ok().unwrap();
        let text = serde_json::to_string(&*map).unwrap();
        assert_eq!(text.matches("true").count(), 100, "{engine}");
        assert!(map.is_empty(), "{engine}");
    }
}

/// A value that removes the first entry of its map when it is written.
#[derive(Clone)]
struct Caller(Arc<OnceLock<Weak<Map<u32, Caller>>>>);

impl Serialize for Caller {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let map = self.0.get().and_then(Weak::upgrade);
        serializer.serialize_bool(map.is_some_and(|map| map.pop_first().is_some()))
    }
}

/// A format that consists of the length of a map or a sequence, and refuses all else.
struct Length;

/// What came instead of a map or a sequence with a length.
type Refused = std::fmt::Error;

/// The length that was given, and how many entries are still to come.
struct Left {
    length: usize,
    left: usize,
}

impl Left {
    fn begin(length: Option<usize>) -> Result<Self, Refused> {
        let length = length.ok_or(std::fmt::Error)?;
        Ok(Self {
            length,
            left: length,
        })
    }

    fn count(&mut self) -> Result<(), Refused> {
        self.left = self.left.checked_sub(1).ok_or(std::fmt::Error)?;
        Ok(())
    }

    fn finish(self) -> Result<usize, Refused> {
        match self.left {
            0 => Ok(self.length),
            _ => Err(std::fmt::Error),
        }
    }
}

impl SerializeMap for Left {
    type Ok = usize;
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _key: &T) -> Result<(), Refused> {
        self.count()
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, _value: &T) -> Result<(), Refused> {
        Ok(())
    }

    fn end(self) -> Result<usize, Refused> {
        self.finish()
    }
}

impl SerializeSeq for Left {
    type Ok = usize;
    type Error = Refused;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, _element: &T) -> Result<(), Refused> {
        self.count()
    }

    fn end(self) -> Result<usize, Refused> {
        self.finish()
    }
}

/// Methods of a serializer that refuse what they are given.
macro_rules! refuse {
    ($($method:ident($($Type:ty),*) -> $Result:ty;)*) => {
        $(fn $method(self, $(_: $Type),*) -> Result<$Result, Refused> {
            Err(std::fmt::Error)
        })*
    };
}

impl Serializer for Length {
    type Ok = usize;
    type Error = Refused;
    type SerializeMap = Left;
    type SerializeSeq = Left;
    type SerializeStruct = Impossible<usize, Refused>;
    type SerializeStructVariant = Impossible<usize, Refused>;
    type SerializeTuple = Impossible<usize, Refused>;
    type SerializeTupleStruct = Impossible<usize, Refused>;
    type SerializeTupleVariant = Impossible<usize, Refused>;

    fn serialize_map(self, length: Option<usize>) -> Result<Left, Refused> {
        Left::begin(length)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Left, Refused> {
        Left::begin(length)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _value: &T) -> Result<usize, Refused> {
        Err(std::fmt::Error)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _value: &T,
    ) -> Result<usize, Refused> {
        Err(std::fmt::Error)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<usize, Refused> {
        Err(std::fmt::Error)
    }

    refuse! {
        serialize_bool(bool) -> usize;
        serialize_i8(i8) -> usize;
        serialize_i16(i16) -> usize;
        serialize_i32(i32) -> usize;
        serialize_i64(i64) -> usize;
        serialize_u8(u8) -> usize;
        serialize_u16(u16) -> usize;
        serialize_u32(u32) -> usize;
        serialize_u64(u64) -> usize;
        serialize_f32(f32) -> usize;
        serialize_f64(f64) -> usize;
        serialize_char(char) -> usize;
        serialize_str(&str) -> usize;
        serialize_bytes(&[u8]) -> usize;
        serialize_none() -> usize;
        serialize_unit() -> usize;
        serialize_unit_struct(&'static str) -> usize;
        serialize_unit_variant(&'static str, u32, &'static str) -> usize;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }
}

/// The tests of this suite.
macro_rules! every_test {
    () => {
        every_test! {
            maps_and_sets_are_written_as_those_of_std,
            the_length_is_given_before_the_entries,
            a_map_is_written_as_its_engine_promises,
            the_code_of_a_value_may_call_the_map,
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
