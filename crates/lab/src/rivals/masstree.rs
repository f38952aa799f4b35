//! `masstree::MassTree`: a trie of B+trees, for byte strings of up to 256 bytes; values are in the
//! leaves.
//!
//! Its scan by whole leaves, which is its fastest one, has shown keys out of order while other
//! threads insert. The check of every scan notices that. Its descending scan leaves out texts that
//! begin as its bound does, if the bound itself is not in the tree; so only integers, which have
//! one layer, are scanned in descending order.

use crate::{contestants::Subject, keys::Key};
use ::masstree::{MassTree, RangeBound};

/// The tree.
pub(super) struct Table(MassTree<u64>);

impl Default for Table {
    fn default() -> Self {
        Self(MassTree::new())
    }
}

impl Table {
    #[inline]
    fn put(&self, key: &[u8], value: u64) -> bool {
        self.0.insert(key, value).is_none()
    }

    #[inline]
    fn take(&self, key: &[u8]) -> bool {
        // `remove` gives up after a number of attempts.
        loop {
            if let Ok(removed) = self.0.remove(key) {
                return removed.is_some();
            }
        }
    }

    #[inline]
    fn visit(&self, low: RangeBound<'_>, limit: usize, mut visit: impl FnMut(&[u8], u64)) {
        let guard = self.0.guard();
        let mut left = limit;
        let visit = |key: &[u8], value| {
            visit(key, value);
            left -= 1;
            left > 0
        };
        self.0
            .scan_intra_leaf_batch(low, RangeBound::Unbounded, visit, &guard);
    }
}

impl Subject<u64> for Table {
    #[inline]
    fn insert(&self, key: &u64, value: u64) -> bool {
        self.put(&key.to_be_bytes(), value)
    }

    #[inline]
    fn remove(&self, key: &u64) -> bool {
        self.take(&key.to_be_bytes())
    }

    #[inline]
    fn get(&self, key: &u64) -> Option<u64> {
        self.0.get(&key.to_be_bytes())
    }

    #[inline]
    fn next(&self, key: &u64) -> Option<u64> {
        let mut next = None;
        self.visit(RangeBound::Excluded(&key.to_be_bytes()), 1, |key, _| {
            next = integer(key);
        });
        next
    }

    #[inline]
    fn scan<F>(&self, from: Option<&u64>, limit: usize, mut visit: F)
    where
        F: FnMut(u64, u64),
    {
        let from = from.copied().map(u64::to_be_bytes);
        let low = from
            .as_ref()
            .map_or(RangeBound::Unbounded, |key| RangeBound::Included(key));
        self.visit(low, limit, |key, value| {
            // No thread inserted a key of another length. Showing 0 makes the check find it out of
            // order.
            visit(integer(key).unwrap_or(0), value);
        });
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&u64>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(u64, u64),
    {
        let from = from.copied().map(u64::to_be_bytes);
        let high = from
            .as_ref()
            .map_or(RangeBound::Unbounded, |key| RangeBound::Included(key));
        let guard = self.0.guard();
        let mut left = limit;
        let visit = |key: &[u8], value| {
            // As in `scan`: a key of another length is out of order.
            visit(integer(key).unwrap_or(u64::MAX), value);
            left -= 1;
            left > 0
        };
        self.0
            .scan_rev_batch(RangeBound::Unbounded, high, visit, &guard);
        true
    }

    fn length(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

#[inline]
fn integer(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

impl Subject<String> for Table {
    #[inline]
    fn insert(&self, key: &String, value: u64) -> bool {
        self.put(key.as_bytes(), value)
    }

    #[inline]
    fn remove(&self, key: &String) -> bool {
        self.take(key.as_bytes())
    }

    #[inline]
    fn get(&self, key: &String) -> Option<u64> {
        self.0.get(key.as_bytes())
    }

    #[inline]
    fn next(&self, key: &String) -> Option<String> {
        let mut next = None;
        self.visit(RangeBound::Excluded(key.as_bytes()), 1, |key, _| {
            next = Some(String::own(key));
        });
        next
    }

    #[inline]
    fn scan<F>(&self, from: Option<&String>, limit: usize, visit: F)
    where
        F: FnMut(&[u8], u64),
    {
        let low = from.map_or(RangeBound::Unbounded, |key| {
            RangeBound::Included(key.as_bytes())
        });
        self.visit(low, limit, visit);
    }

    fn length(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
