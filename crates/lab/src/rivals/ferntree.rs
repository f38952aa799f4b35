//! `ferntree::Tree`: a B+tree with optimistic lock coupling.
//!
//! The adapter uses the operations meant for concurrent use: optimistic lookups, and inserts and
//! removes that leave what they displace to the crate's reclamation. Each slot keeps a text behind
//! a pointer. A scan takes a shared lock on each leaf.

use crate::{contestants::Subject, keys::Key};
use ::ferntree::{OptimisticRead, Tree};
use std::ops::Bound;

/// The tree.
pub(super) struct Table<K: OptimisticRead>(Tree<K, u64>);

impl<K: Key + OptimisticRead> Default for Table<K> {
    fn default() -> Self {
        Self(Tree::new())
    }
}

impl<K: Key + OptimisticRead> Subject<K> for Table<K> {
    #[inline]
    fn insert(&self, key: &K, value: u64) -> bool {
        !self.0.insert_defer(key.clone(), value)
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.0.remove_defer(key)
    }

    #[inline]
    fn get(&self, key: &K) -> Option<u64> {
        self.0.get_optimistic(key)
    }

    #[inline]
    fn next(&self, key: &K) -> Option<K> {
        let mut range = self.0.range(Bound::Excluded(key), Bound::Unbounded);
        range.next().map(|(key, _)| key.clone())
    }

    #[inline]
    fn scan<F>(&self, from: Option<&K>, limit: usize, mut visit: F)
    where
        F: FnMut(K::View<'_>, u64),
    {
        let low = from.map_or(Bound::Unbounded, Bound::Included);
        let mut range = self.0.range(low, Bound::Unbounded);
        for _ in 0..limit {
            let Some((key, value)) = range.next() else {
                return;
            };
            visit(key.view(), *value);
        }
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&K>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(K::View<'_>, u64),
    {
        let high = from.map_or(Bound::Unbounded, Bound::Included);
        let mut range = self.0.range_rev(Bound::Unbounded, high);
        for _ in 0..limit {
            let Some((key, value)) = range.next() else {
                break;
            };
            visit(key.view(), *value);
        }
        true
    }

    fn length(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
