//! `crossbeam_skiplist::SkipMap`: a lock-free skip list.
//!
//! Its `insert` does not report whether the key was present, so `compare_insert` is used, which
//! passes the value that it finds to a closure. For a moment, a lookup misses a key whose value is
//! being replaced (its issue 1023). Where keys are read and updated concurrently its answers are
//! therefore wrong, and it gets no figure.

use crate::{contestants::Subject, keys::Key};
use crossbeam_skiplist::SkipMap;
use std::{cell::Cell, ops::Bound};

/// The map.
pub(super) struct Table<K>(SkipMap<K, u64>);

impl<K: Ord> Default for Table<K> {
    fn default() -> Self {
        Self(SkipMap::new())
    }
}

impl<K: Key> Subject<K> for Table<K> {
    #[inline]
    fn insert(&self, key: &K, value: u64) -> bool {
        let new = Cell::new(true);
        self.0.compare_insert(key.clone(), value, |_| {
            new.set(false);
            true
        });
        new.get()
    }

    fn insert_is_one_step(&self) -> bool {
        false
    }

    #[inline]
    fn update(&self, key: &K, value: u64) {
        self.0.insert(key.clone(), value);
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.0.remove(key).is_some()
    }

    #[inline]
    fn get(&self, key: &K) -> Option<u64> {
        self.0.get(key).map(|entry| *entry.value())
    }

    #[inline]
    fn next(&self, key: &K) -> Option<K> {
        let entry = self.0.lower_bound(Bound::Excluded(key))?;
        Some(entry.key().clone())
    }

    #[inline]
    fn scan<F>(&self, from: Option<&K>, limit: usize, mut visit: F)
    where
        F: FnMut(K::View<'_>, u64),
    {
        let low = from.map_or(Bound::Unbounded, Bound::Included);
        for entry in self.0.range((low, Bound::Unbounded)).take(limit) {
            visit(entry.key().view(), *entry.value());
        }
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&K>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(K::View<'_>, u64),
    {
        let high = from.map_or(Bound::Unbounded, Bound::Included);
        let range = self.0.range((Bound::Unbounded, high));
        for entry in range.rev().take(limit) {
            visit(entry.key().view(), *entry.value());
        }
        true
    }

    fn length(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
