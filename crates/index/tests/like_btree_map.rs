//! What the documentation of `std::collections::BTreeMap` shows of each stable method, done with an
//! `OrderedMap`. A test has the name of the method.
//!
//! An `OrderedMap` returns copies, because another thread may remove an entry at any time. So what
//! hands out references into the map has no counterpart of the same name:
//!
//! | `BTreeMap` | here |
//! |---|---|
//! | `get_mut`, `first_entry`, `last_entry`, `entry` with `and_modify` | `update` |
//! | `entry` with `or_insert`, `or_insert_with`, `or_default` | `get_or_insert_with` |
//! | `get_key_value`, `remove_entry` | `get`, `remove`: the key is not handed out |
//! | `iter_mut`, `range_mut`, `values_mut` | `for_each` with `update` |
//! | `map[&key]` | `get` |
//! | `append`, `split_off` | `drain` and `extend` |
//! | `Hash`, `PartialOrd`, `Ord` | of a `snapshot` |
#![cfg(not(any(loom, shuttle)))]

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use tremula_index::{Direction, OrderedMap, Update};

#[test]
fn new() {
    let map = OrderedMap::new();
    map.insert(1, "a");
    assert_eq!(map.get(&1), Some("a"));
}

#[test]
fn clear() {
    let map = OrderedMap::from([(1, "a")]);
    map.clear();
    assert!(map.is_empty());
}

#[test]
fn get() {
    let map = OrderedMap::from([(1, "a")]);
    assert_eq!(map.get(&1), Some("a"));
    assert_eq!(map.get(&2), None);
}

#[test]
fn get_mut() {
    let map = OrderedMap::from([(1, "a".to_owned())]);
    let upper =
        |text: Option<&String>| text.map_or(Update::Keep, |t| Update::Put(t.to_uppercase()));
    map.update(1, upper);
    map.update(2, upper);
    assert!(map.iter().eq([(1, "A".to_owned())]));
}

#[test]
fn first_key_value() {
    let map = OrderedMap::new();
    assert_eq!(map.first_key_value(), None);
    map.insert(1, "b");
    map.insert(2, "a");
    assert_eq!(map.first_key_value(), Some((1, "b")));
}

#[test]
fn last_key_value() {
    let map = OrderedMap::from([(1, "b"), (2, "a")]);
    assert_eq!(map.last_key_value(), Some((2, "a")));
}

#[test]
fn first_entry() {
    let map = OrderedMap::from([(1, "a"), (2, "b")]);
    if let Some((key, _)) = map.first() {
        map.update(key, |value| {
            if value.is_some() {
                Update::Put("first")
            } else {
                Update::Keep
            }
        });
    }
    assert_eq!((map.get(&1), map.get(&2)), (Some("first"), Some("b")));
}

#[test]
fn pop_first() {
    let map = OrderedMap::from([(1, "a"), (2, "b")]);
    while let Some((key, _)) = map.pop_first() {
        assert!(map.iter().all(|(other, _)| other > key));
    }
    assert!(map.is_empty());
}

#[test]
fn pop_last() {
    let map = OrderedMap::from([(1, "a"), (2, "b")]);
    while let Some((key, _)) = map.pop_last() {
        assert!(map.iter().all(|(other, _)| other < key));
    }
    assert!(map.is_empty());
}

#[test]
fn contains_key() {
    let map = OrderedMap::from([(1, "a")]);
    assert!(map.contains_key(&1));
    assert!(!map.contains_key(&2));
}

#[test]
fn insert() {
    let map = OrderedMap::new();
    assert_eq!(map.insert(37, "a"), None);
    assert!(!map.is_empty());
    map.insert(37, "b");
    assert_eq!(map.insert(37, "c"), Some("b"));
    assert_eq!(map.get(&37), Some("c"));
}

#[test]
fn remove() {
    let map = OrderedMap::from([(1, "a")]);
    assert_eq!(map.remove(&1), Some("a"));
    assert_eq!(map.remove(&1), None);
}

#[test]
fn retain() {
    let map: OrderedMap<i32, i32> = (0..8).map(|x| (x, x * 10)).collect();
    map.retain(.., |key, _| key % 2 == 0);
    assert!(map.into_iter().eq([(0, 0), (2, 20), (4, 40), (6, 60)]));
}

#[test]
fn append() {
    let a = OrderedMap::from([(1, "a"), (2, "b"), (3, "c")]);
    let b = OrderedMap::from([(3, "d"), (4, "e"), (5, "f")]);
    (&a).extend(b.drain(..));
    assert_eq!((a.len(), b.len()), (5, 0));
    assert_eq!(a.get(&3), Some("d"));
}

#[test]
fn range() {
    let map = OrderedMap::from([(3, "a"), (5, "b"), (8, "c")]);
    assert!(
        map.range((Included(4), Included(8)))
            .eq([(5, "b"), (8, "c")])
    );
    assert_eq!(map.range(4..).next(), Some((5, "b")));
    assert_eq!(map.range((Excluded(5), Unbounded)).next(), Some((8, "c")));
}

#[test]
fn range_mut() {
    let balances = OrderedMap::from([("Alice", 0), ("Bob", 0), ("Carol", 0), ("Cheryl", 0)]);
    let _ = balances.for_each("B".."Cheryl", Direction::Ascending, |name, _| {
        balances.update(*name, |balance| {
            balance.map_or(Update::Keep, |b| Update::Put(b + 100))
        });
        ControlFlow::<()>::Continue(())
    });
    let expected = [("Alice", 0), ("Bob", 100), ("Carol", 100), ("Cheryl", 0)];
    assert!(balances.iter().eq(expected));
}

#[test]
fn entry() {
    let count = OrderedMap::new();
    for x in ["a", "b", "a", "c", "a", "b"] {
        count.update(x, |seen| Update::Put(seen.copied().unwrap_or(0) + 1));
    }
    assert_eq!((count.get(&"a"), count.get(&"c")), (Some(3), Some(1)));
    assert_eq!(count.get_or_insert_with("d", || 7), 7);
    assert_eq!(count.get_or_insert_with("d", || 8), 7);
}

#[test]
fn split_off() {
    let a = OrderedMap::from([(1, "a"), (2, "b"), (3, "c"), (17, "d"), (41, "e")]);
    let b: OrderedMap<_, _> = a.drain(3..).collect();
    assert!(a.iter().eq([(1, "a"), (2, "b")]));
    assert!(b.iter().eq([(3, "c"), (17, "d"), (41, "e")]));
}

#[test]
fn extract_if() {
    let map: OrderedMap<i32, i32> = (0..8).map(|x| (x, x)).collect();
    let even: Vec<i32> = map.keys().filter(|key| key % 2 == 0).collect();
    let extracted: Vec<i32> = even
        .into_iter()
        .filter_map(|key| map.remove(&key))
        .collect();
    assert_eq!(extracted, [0, 2, 4, 6]);
    assert!(map.keys().eq([1, 3, 5, 7]));
}

#[test]
fn into_keys_and_into_values() {
    let map = || OrderedMap::from([(2, "b"), (1, "a")]);
    assert!(map().into_iter().map(|(key, _)| key).eq([1, 2]));
    assert!(map().into_iter().map(|(_, value)| value).eq(["a", "b"]));
}

#[test]
fn iter() {
    let map = OrderedMap::from([(3, "c"), (2, "b"), (1, "a")]);
    assert_eq!(map.iter().next(), Some((1, "a")));
    let mut seen = Vec::new();
    for (key, value) in &map {
        seen.push((key, value));
    }
    assert_eq!(seen, [(1, "a"), (2, "b"), (3, "c")]);
}

#[test]
fn keys_and_values() {
    let map = OrderedMap::from([(2, "goodbye"), (1, "hello")]);
    assert_eq!(map.keys().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(map.values().collect::<Vec<_>>(), ["hello", "goodbye"]);
    assert_eq!(map.values().next_back(), Some("goodbye"));
}

#[test]
fn len() {
    let map = OrderedMap::new();
    assert_eq!(map.len(), 0);
    map.insert(1, "a");
    assert_eq!(map.len(), 1);
}

#[test]
fn from_array_is_from_iterator() {
    let one = OrderedMap::from([(1, 2), (3, 4)]);
    let two: OrderedMap<_, _> = [(3, 4), (1, 2)].into_iter().collect();
    assert_eq!(one, two);
}

#[test]
fn clone_eq_and_debug() {
    let map = OrderedMap::from([(1, "a"), (2, "b")]);
    let copy = map.clone();
    assert_eq!(map, copy);
    copy.remove(&1);
    assert_ne!(map, copy);
    assert_eq!(format!("{map:?}"), r#"{1: "a", 2: "b"}"#);
    assert_eq!(format!("{:?}", OrderedMap::<u8, u8>::default()), "{}");
}

/// A value whose `Drop` looks into the map that it is compared in.
#[derive(Clone)]
struct Looks(Weak<OrderedMap<u8, Looks>>, u8);

impl PartialEq for Looks {
    fn eq(&self, other: &Self) -> bool {
        self.1 == other.1
    }
}

impl Drop for Looks {
    fn drop(&mut self) {
        if let Some(map) = self.0.upgrade() {
            assert!(map.len() <= 1);
            map.contains_key(&1);
        }
    }
}

#[test]
fn a_value_that_is_not_exchanged_may_call_the_map_when_it_is_dropped() {
    let map = Arc::new(OrderedMap::new());
    let value = |number| Looks(Arc::downgrade(&map), number);
    map.insert(1, value(1));
    assert!(map.compare_exchange(1, &value(2), value(3)).is_err());
    assert!(map.compare_exchange(2, &value(2), value(3)).is_err());
    assert!(map.compare_exchange(1, &value(1), value(3)).is_ok());
    assert_eq!(map.get_with(&1, |value| value.1), Some(3));
}

#[test]
fn entries_of_two_maps_compare() {
    let snapshot = |map: &OrderedMap<i32, i32>| map.snapshot(..).unwrap();
    let (small, large) = (OrderedMap::from([(1, 2)]), OrderedMap::from([(1, 3)]));
    assert!(snapshot(&small) < snapshot(&large));
}
