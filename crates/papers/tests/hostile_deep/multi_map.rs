//! The multi-map as a subject of the suite.

use super::subject::{MOST, Subject, bound, direction};
use super::support::suite::Random;
use super::temper;
use super::values::{Key, PLAIN};
use std::ops::ControlFlow;
use tremula_index::KeyRange;
use tremula_index::key::KeyHead;
use tremula_papers::BwMultiMap;

/// A map of many values under one key. The values are keys, too, because they must be ordered.
pub(crate) struct MultiMap<const FORM: u8, H: KeyHead<Key<FORM>>>(
    pub(crate) BwMultiMap<Key<FORM>, Key<PLAIN>, H>,
);

impl<const FORM: u8, H: KeyHead<Key<FORM>>> Subject for MultiMap<FORM, H> {
    fn operations(&self) -> &'static [&'static str] {
        &[
            "insert",
            "insert",
            "insert",
            "insert",
            "insert",
            "remove",
            "remove",
            "remove",
            "remove_all",
            "remove_range",
            "contains",
            "contains_key",
            "count",
            "values",
            "snapshot",
            "for_each_value",
            "range",
            "range",
            "len",
            "shape",
        ]
    }

    fn operate(&self, operation: &str, random: &mut Random) {
        let Self(map) = self;
        let (key, other, value) = (Key::any(), Key::any(), Key::any());
        let bounds = (bound(random, &key), bound(random, &other));
        let range = KeyRange::new(bounds.0.as_ref(), bounds.1.as_ref());
        let mut left = random.below(MOST as u32);
        let mut visit = |value: &Key<PLAIN>| {
            value.number();
            temper::call();
            left = left.saturating_sub(1);
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        match operation {
            "insert" => _ = map.insert(key, value),
            "remove" => _ = map.remove(&key, &value),
            "remove_all" => _ = map.remove_all(&key),
            "remove_range" if random.below(4) == 0 => _ = map.remove_range(range),
            "contains" => _ = map.contains(&key, &value),
            "contains_key" => _ = map.contains_key(&key),
            "count" => _ = map.count(&key),
            "values" => map.values(&key).iter().for_each(|value| _ = value.number()),
            "snapshot" => drop(map.snapshot(range)),
            "for_each_value" => map.for_each_value(&key, visit),
            "range" => map.range(range, direction(random), |key, value| {
                key.number();
                visit(value)
            }),
            "shape" => drop(map.shape()),
            _ => _ = map.len(),
        }
    }

    fn call(&self) {
        let Self(map) = self;
        let key = Key::any();
        map.insert(Key::any(), Key::any());
        map.remove(&key, &Key::any());
        map.contains_key(&key);
    }
}
