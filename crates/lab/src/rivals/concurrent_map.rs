//! `concurrent_map::ConcurrentMap`: a lock-free B+tree that replaces nodes by copies.
//!
//! It cannot be shared by reference: each thread has a clone with its own state of reclamation.
//! Every operation looks up its thread's clone. Scans show copies.

use crate::{contestants::Subject, keys::Key};
use ::concurrent_map::{ConcurrentMap, Minimum};
use parking_lot::Mutex;
use std::ops::Bound;
use thread_local::ThreadLocal;

/// The map.
pub(super) struct Table<K: Key + Minimum> {
    original: Mutex<ConcurrentMap<K, u64>>,
    clones: ThreadLocal<ConcurrentMap<K, u64>>,
}

impl<K: Key + Minimum> Default for Table<K> {
    fn default() -> Self {
        Self {
            original: Mutex::new(ConcurrentMap::new()),
            clones: ThreadLocal::new(),
        }
    }
}

impl<K: Key + Minimum> Table<K> {
    #[inline]
    fn map(&self) -> &ConcurrentMap<K, u64> {
        self.clones.get_or(|| self.original.lock().clone())
    }
}

impl<K: Key + Minimum> Subject<K> for Table<K> {
    #[inline]
    fn insert(&self, key: &K, value: u64) -> bool {
        self.map().insert(key.clone(), value).is_none()
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.map().remove(key).is_some()
    }

    #[inline]
    fn get(&self, key: &K) -> Option<u64> {
        self.map().get(key)
    }

    #[inline]
    fn next(&self, key: &K) -> Option<K> {
        self.map().get_gt(key).map(|(key, _)| key)
    }

    #[inline]
    fn scan<F>(&self, from: Option<&K>, limit: usize, mut visit: F)
    where
        F: FnMut(K::View<'_>, u64),
    {
        let low = from.map_or(Bound::Unbounded, Bound::Included);
        let range = self.map().range::<K, _>((low, Bound::Unbounded));
        for (key, value) in range.take(limit) {
            visit(key.view(), value);
        }
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&K>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(K::View<'_>, u64),
    {
        let high = from.map_or(Bound::Unbounded, Bound::Included);
        let range = self.map().range::<K, _>((Bound::Unbounded, high));
        for (key, value) in range.rev().take(limit) {
            visit(key.view(), value);
        }
        true
    }

    fn length(&self) -> Option<u64> {
        Some(self.map().len() as u64)
    }
}
