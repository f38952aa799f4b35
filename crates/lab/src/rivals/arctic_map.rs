//! `arctic::ConcurrentMap` of the crate `arctic-map`: a lock-free adaptive radix tree.
//!
//! No key may be a prefix of another. Text keys therefore must not contain a zero byte, which the
//! crate checks at every call, and the crate ends each with one; addresses contain none. The map
//! reports no length.
//!
//! It takes part twice, because the crate can free memory in several ways. By default that is the
//! work of `seize`, whose readers need no fence where the system has `membarrier`: seize's own
//! default, so that the crate's feature `opt-membarrier` changes nothing there. The other way are
//! *hazard keys*, of which each thread announces one; with that feature this needs no fence either.
//! A thread can then hold one result at a time, and at most 256 threads may use maps at the same
//! time.

use crate::{contestants::Subject, keys::Key};
use arctic::{
    ConcurrentMap, Order,
    concurrent::{
        Smr,
        smr::{Hazard, Seize},
    },
    key::{BoxedSlice, NonNull, Slice},
};
use std::ops::ControlFlow;

/// The map with integers as keys, which frees memory by `S`.
pub(super) struct Integers<S = Seize>(ConcurrentMap<u64, u64, S>);

impl Default for Integers {
    fn default() -> Self {
        Self(ConcurrentMap::new())
    }
}

impl Integers<Hazard<u64, u64>> {
    pub(super) fn with_hazard_keys() -> Self {
        let hazards = Hazard::default();
        hazards.enable_membarrier();
        Self(ConcurrentMap::with_smr(hazards))
    }
}

impl<S: Smr<u64, u64> + Sync> Subject<u64> for Integers<S> {
    #[inline]
    fn insert(&self, key: &u64, value: u64) -> bool {
        self.0.upsert(*key, value).old().is_none()
    }

    #[inline]
    fn remove(&self, key: &u64) -> bool {
        self.0.remove(key).is_some()
    }

    #[inline]
    fn get(&self, key: &u64) -> Option<u64> {
        self.0.get(key).map(|value| *value)
    }

    #[inline]
    fn next(&self, key: &u64) -> Option<u64> {
        let above = self.0.range(key.checked_add(1)?..);
        let mut entries = above.entries(Order::Ascend);
        entries.lend().map(|(key, _)| key)
    }

    #[inline]
    fn scan<F>(&self, from: Option<&u64>, limit: usize, mut visit: F)
    where
        F: FnMut(u64, u64),
    {
        let range = self.0.range(from.copied().unwrap_or(0)..);
        let mut left = limit;
        let _ = range
            .entries(Order::Ascend)
            .try_fold((), |(), (key, value)| {
                visit(key, *value);
                left -= 1;
                if left == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&u64>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(u64, u64),
    {
        let range = self.0.range(..=from.copied().unwrap_or(u64::MAX));
        let mut left = limit;
        let _ = range
            .entries(Order::Descend)
            .try_fold((), |(), (key, value)| {
                visit(key, *value);
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

/// The map's own form of a text.
type Text = BoxedSlice<NonNull>;

/// The map with texts as keys, which frees memory by `S`.
pub(super) struct Texts<S = Seize>(ConcurrentMap<Text, u64, S>);

impl Default for Texts {
    fn default() -> Self {
        Self(ConcurrentMap::new())
    }
}

impl Texts<Hazard<Text, u64>> {
    pub(super) fn with_hazard_keys() -> Self {
        let hazards = Hazard::default();
        hazards.enable_membarrier();
        Self(ConcurrentMap::with_smr(hazards))
    }
}

/// The text as a key of the map.
#[inline]
fn prefix_free(key: &String) -> &Slice<NonNull> {
    Slice::new(key.as_bytes()).expect("addresses have no zero byte")
}

impl<S: Smr<Text, u64> + Sync> Subject<String> for Texts<S> {
    #[inline]
    fn insert(&self, key: &String, value: u64) -> bool {
        self.0.upsert(prefix_free(key), value).old().is_none()
    }

    #[inline]
    fn remove(&self, key: &String) -> bool {
        self.0.remove(prefix_free(key)).is_some()
    }

    #[inline]
    fn get(&self, key: &String) -> Option<u64> {
        self.0.get(prefix_free(key)).map(|value| *value)
    }

    #[inline]
    fn next(&self, key: &String) -> Option<String> {
        // The map has no range that excludes its lower bound.
        let range = self.0.range(prefix_free(key)..);
        let mut entries = range.entries(Order::Ascend);
        loop {
            let (next, _) = entries.lend()?;
            if next.as_bytes() != key.as_bytes() {
                return Some(String::own(next.as_bytes()));
            }
        }
    }

    #[inline]
    fn scan<F>(&self, from: Option<&String>, limit: usize, mut visit: F)
    where
        F: FnMut(&[u8], u64),
    {
        let lowest = String::new();
        let range = self.0.range(prefix_free(from.unwrap_or(&lowest))..);
        let mut left = limit;
        let _ = range
            .entries(Order::Ascend)
            .try_fold((), |(), (key, value)| {
                visit(key.as_bytes(), *value);
                left -= 1;
                if left == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
    }

    fn length(&self) -> Option<u64> {
        None
    }
}
