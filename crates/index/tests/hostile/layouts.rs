//! Honest keys and values with odd layouts: of no size, of three bytes, of a thousand, aligned to
//! 128 bytes, with a niche. An engine that lays them out by hand must keep them apart, aligned and
//! whole.

use super::Tested;
use std::fmt::Debug;
use std::ops::{Bound, ControlFlow};
use tremula_index::{ByteKey, Direction, KeyRange, OrderedIndex, Update};

/// A key or value that is aligned to 128 bytes.
#[repr(align(128))]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Aligned(u8);

impl ByteKey for Aligned {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&[self.0])
    }
}

/// Whether a value is aligned as its type requires.
fn is_aligned<T>(place: &T) -> bool {
    std::ptr::from_ref(place)
        .addr()
        .is_multiple_of(align_of::<T>())
}

/// Calls every operation on maps of these keys, which ascend, with clones of this value.
fn keep<K, V>(keys: &[K], value: V)
where
    K: ByteKey + Debug,
    V: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    for engine in Tested::ALL {
        let map = engine.create::<K, V>();
        for key in keys {
            assert_eq!(map.insert(key.clone(), value.clone()), None, "{engine}");
            assert_eq!(map.insert(key.clone(), value.clone()), Some(value.clone()));
            assert!(map.insert_if_absent(key.clone(), value.clone()).is_err());
        }
        keeps_what_it_has(&*map, keys, &value);
        let (half, rest) = keys.split_at(keys.len() / 2);
        for key in half {
            assert_eq!(map.remove(key), Some(value.clone()), "{engine}");
        }
        for key in rest {
            map.update(key.clone(), &mut |old| {
                old.cloned().map_or(Update::Keep, Update::Put)
            });
        }
        keeps_what_it_has(&*map, rest, &value);
        let last = keys.last().cloned();
        assert_eq!(map.pop_last().map(|(key, _)| key), last, "{engine}");
        assert_eq!(map.remove_range(KeyRange::all()), rest.len() - 1);
        assert!(map.is_empty());
    }
}

fn keeps_what_it_has<K, V>(map: &dyn OrderedIndex<K, V>, keys: &[K], value: &V)
where
    K: ByteKey + Debug,
    V: Clone + Debug + PartialEq + 'static,
{
    let engine = map.engine();
    for key in keys {
        assert_eq!(map.get(key).as_ref(), Some(value), "{engine}");
        assert!(map.get_with(key, &mut |found| {
            assert!(is_aligned(found) && found == value, "{engine}");
        }));
    }
    for direction in [Direction::Ascending, Direction::Descending] {
        let mut seen = Vec::new();
        map.range(KeyRange::all(), direction, &mut |key, found| {
            assert!(is_aligned(key) && is_aligned(found), "{engine}");
            assert_eq!(found, value, "{engine}");
            seen.push(key.clone());
            ControlFlow::Continue(())
        });
        if direction == Direction::Descending {
            seen.reverse();
        }
        assert_eq!(seen, keys, "{engine}");
    }
    if let [low, .., high] = keys {
        let range = KeyRange::new(Bound::Excluded(low), Bound::Excluded(high));
        let inside = map.snapshot(range).map(|entries| entries.len());
        assert!(
            inside.is_none_or(|inside| inside == keys.len() - 2),
            "{engine}"
        );
    }
}

fn three_bytes() -> Vec<[u8; 3]> {
    (0..=255).map(|byte| [7, byte, byte]).collect()
}

#[test]
fn keys_and_values_of_a_wide_alignment_are_kept() {
    let keys: Vec<_> = (0..200).map(Aligned).collect();
    keep(&keys, Aligned(7));
}

#[test]
fn values_of_a_thousand_bytes_are_kept() {
    keep(&three_bytes(), [3_u8; 1000]);
}

#[test]
fn values_of_no_size_are_kept() {
    keep(&three_bytes(), ());
    keep(&three_bytes(), [0_u8; 0]);
}

#[test]
fn values_with_a_niche_are_kept() {
    keep(&three_bytes(), Some(Box::new(5_u64)));
    keep(&three_bytes(), None::<Box<u64>>);
}

#[test]
fn values_of_three_bytes_are_kept() {
    keep(&three_bytes(), [1_u8; 3]);
}

#[test]
fn a_key_of_no_size_is_kept() {
    keep(&[()], Aligned(7));
    keep(&[[0_u8; 0]], Some(Box::new(5_u64)));
}
