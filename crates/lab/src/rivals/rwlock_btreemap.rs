//! The standard library's `BTreeMap` under `parking_lot`'s readers-writer lock, which most programs
//! use.
//!
//! A scan visits entries in place, under the read lock; a snapshot copies them all under it.

use crate::{contestants::Subject, keys::Key};
use parking_lot::RwLock;
use std::{collections::BTreeMap, ops::Bound};

/// The map.
#[derive(Debug)]
pub(super) struct Table<K>(RwLock<BTreeMap<K, u64>>);

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Key> Subject<K> for Table<K> {
    #[inline]
    fn insert(&self, key: &K, value: u64) -> bool {
        // Copied before the lock is taken.
        let key = key.clone();
        self.0.write().insert(key, value).is_none()
    }

    #[inline]
    fn update(&self, key: &K, value: u64) {
        if let Some(place) = self.0.write().get_mut(key) {
            *place = value;
        }
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.0.write().remove(key).is_some()
    }

    #[inline]
    fn get(&self, key: &K) -> Option<u64> {
        self.0.read().get(key).copied()
    }

    #[inline]
    fn next(&self, key: &K) -> Option<K> {
        let above = (Bound::Excluded(key), Bound::Unbounded);
        self.0
            .read()
            .range(above)
            .next()
            .map(|(key, _)| key.clone())
    }

    #[inline]
    fn scan<F>(&self, from: Option<&K>, limit: usize, mut visit: F)
    where
        F: FnMut(K::View<'_>, u64),
    {
        let low = from.map_or(Bound::Unbounded, Bound::Included);
        for (key, value) in self.0.read().range((low, Bound::Unbounded)).take(limit) {
            visit(key.view(), *value);
        }
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&K>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(K::View<'_>, u64),
    {
        let high = from.map_or(Bound::Unbounded, Bound::Included);
        let map = self.0.read();
        for (key, value) in map.range((Bound::Unbounded, high)).rev().take(limit) {
            visit(key.view(), *value);
        }
        true
    }

    fn snapshot(&self) -> Option<Vec<(K, u64)>> {
        let map = self.0.read();
        Some(
            map.iter()
                .map(|(key, value)| (key.clone(), *value))
                .collect(),
        )
    }

    fn length(&self) -> Option<u64> {
        Some(self.0.read().len() as u64)
    }
}
