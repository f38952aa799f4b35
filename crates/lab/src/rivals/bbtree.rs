//! `bbtree::BBTreeMap`: a B+tree whose inner nodes are read optimistically, and whose leaves have
//! latches.
//!
//! It has no length and no snapshot: a scan goes from leaf to leaf, and latches one at a time.
//! Lookups of integers, and those of texts that end within the bytes that a leaf keeps of each,
//! take no latch. They read what a writer may be changing at that moment, and check afterwards. The
//! crate says itself that such a read is undefined behaviour by Rust's rules, checked or not, and
//! that it examines the compiled code instead. A batch of lookups has a length that the compiler
//! knows.

use crate::{contestants::Subject, keys::Key};
use ::bbtree::BBTreeMap;
use std::ops::{Bound, ControlFlow};

/// The map.
pub(super) struct Table<K>(BBTreeMap<K, u64>);

/// How many keys one call looks up.
const BATCH: usize = 16;

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self(BBTreeMap::new())
    }
}

impl<K: Key> Subject<K> for Table<K> {
    #[inline]
    fn insert(&self, key: &K, value: u64) -> bool {
        match self.0.insert(key.clone(), value) {
            Ok(old) => old.is_none(),
            Err(_) => panic!("there is memory"),
        }
    }

    #[inline]
    fn remove(&self, key: &K) -> bool {
        self.0.remove(key).is_some()
    }

    #[inline]
    fn get(&self, key: &K) -> Option<u64> {
        self.0.get_copied(key)
    }

    #[inline]
    fn get_many(&self, keys: &[K], out: &mut Vec<Option<u64>>) {
        let (batches, rest) = keys.as_chunks::<BATCH>();
        for batch in batches {
            out.extend(self.0.get_many_copied(batch.each_ref()));
        }
        out.extend(rest.iter().map(|key| self.get(key)));
    }

    #[inline]
    fn next(&self, key: &K) -> Option<K> {
        let above = (Bound::Excluded(key), Bound::Unbounded);
        self.0
            .scan::<K, K>(above, |key, _| ControlFlow::Break(key.clone()))
    }

    #[inline]
    fn scan<F>(&self, from: Option<&K>, limit: usize, mut visit: F)
    where
        F: FnMut(K::View<'_>, u64),
    {
        let low = from.map_or(Bound::Unbounded, Bound::Included);
        let mut left = limit;
        self.0.scan::<K, ()>((low, Bound::Unbounded), |key, value| {
            visit(key.view(), *value);
            left -= 1;
            if left == 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&K>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(K::View<'_>, u64),
    {
        let high = from.map_or(Bound::Unbounded, Bound::Included);
        let mut left = limit;
        self.0
            .scan_rev::<K, ()>((Bound::Unbounded, high), |key, value| {
                visit(key.view(), *value);
                left -= 1;
                if left == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
        true
    }

    fn length(&self) -> Option<u64> {
        None
    }
}
