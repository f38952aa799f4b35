//! `scc::TreeIndex`: a B+tree whose readers take no lock.
//!
//! Its `insert` refuses a present key, and its `upsert` does not report whether the key was
//! present. An insert that finds the key therefore descends the tree twice; an update does not. Its
//! length is not used, because it counts the entries by walking over them.

use crate::{contestants::Subject, keys::Key};
use scc::{Guard, TreeIndex};
use std::ops::Bound;

/// The index.
pub(super) struct Table<K>(TreeIndex<K, u64>);

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self(TreeIndex::new())
    }
}

impl<K: Key> Subject<K> for Table<K> {
    #[inline]
    fn insert(&self, key: &K, value: u64) -> bool {
        match self.0.insert_sync(key.clone(), value) {
            Ok(()) => true,
            Err((key, value)) => {
                self.0.upsert_sync(key, value);
                false
            }
        }
    }

    fn insert_is_one_step(&self) -> bool {
        false
    }

    #[inline]
    fn update(&self, key: &K, value: u64) {
        self.0.upsert_sync(key.clone(), value);
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.0.remove_sync(key)
    }

    #[inline]
    fn get(&self, key: &K) -> Option<u64> {
        self.0.peek_with(key, |_, value| *value)
    }

    #[inline]
    fn next(&self, key: &K) -> Option<K> {
        let guard = Guard::new();
        let above = (Bound::Excluded(key), Bound::Unbounded);
        let next = self.0.range::<K, _>(above, &guard).next();
        next.map(|(key, _)| key.clone())
    }

    #[inline]
    fn scan<F>(&self, from: Option<&K>, limit: usize, mut visit: F)
    where
        F: FnMut(K::View<'_>, u64),
    {
        let guard = Guard::new();
        let low = from.map_or(Bound::Unbounded, Bound::Included);
        let range = self.0.range::<K, _>((low, Bound::Unbounded), &guard);
        for (key, value) in range.take(limit) {
            visit(key.view(), *value);
        }
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&K>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(K::View<'_>, u64),
    {
        let guard = Guard::new();
        let high = from.map_or(Bound::Unbounded, Bound::Included);
        let range = self.0.range::<K, _>((Bound::Unbounded, high), &guard);
        for (key, value) in range.rev().take(limit) {
            visit(key.view(), *value);
        }
        true
    }

    fn length(&self) -> Option<u64> {
        None
    }
}
