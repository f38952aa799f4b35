//! `artmap::ArtMap`: an adaptive radix tree with optimistic lock coupling, for keys of any length.
//! It allocates each entry.
//!
//! Integers are passed as their eight bytes, most significant first.

use crate::{contestants::Subject, keys::Key};
use ::artmap::ArtMap;
use std::ops::Bound;

/// The map with integers as keys.
#[derive(Default)]
pub(super) struct Integers(ArtMap<[u8; 8], u64>);

impl Subject<u64> for Integers {
    #[inline]
    fn insert(&self, key: &u64, value: u64) -> bool {
        self.0.insert(key.to_be_bytes(), value).is_none()
    }

    #[inline]
    fn remove(&self, key: &u64) -> bool {
        self.0.remove(&key.to_be_bytes()).is_some()
    }

    #[inline]
    fn get(&self, key: &u64) -> Option<u64> {
        self.0.get_value(&key.to_be_bytes())
    }

    #[inline]
    fn next(&self, key: &u64) -> Option<u64> {
        let above = (Bound::Excluded(key.to_be_bytes()), Bound::Unbounded);
        let next = self.0.range(above).next();
        next.map(|entry| u64::from_be_bytes(*entry.key()))
    }

    #[inline]
    fn scan<F>(&self, from: Option<&u64>, limit: usize, mut visit: F)
    where
        F: FnMut(u64, u64),
    {
        let low = from.map_or(Bound::Unbounded, |key| Bound::Included(key.to_be_bytes()));
        let mut left = limit;
        self.0.scan((low, Bound::Unbounded), |key, value| {
            visit(u64::from_be_bytes(*key), *value);
            left -= 1;
            left > 0
        });
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&u64>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(u64, u64),
    {
        let high = from.map_or(Bound::Unbounded, |key| Bound::Included(key.to_be_bytes()));
        let range = self.0.range((Bound::Unbounded, high));
        for entry in range.rev().take(limit) {
            visit(u64::from_be_bytes(*entry.key()), *entry);
        }
        true
    }

    fn length(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

/// The map with texts as keys.
#[derive(Default)]
pub(super) struct Texts(ArtMap<String, u64>);

impl Subject<String> for Texts {
    #[inline]
    fn insert(&self, key: &String, value: u64) -> bool {
        self.0.insert(key.clone(), value).is_none()
    }

    #[inline]
    fn remove(&self, key: &String) -> bool {
        self.0.remove(key.as_str()).is_some()
    }

    #[inline]
    fn get(&self, key: &String) -> Option<u64> {
        self.0.get_value(key.as_str())
    }

    #[inline]
    fn next(&self, key: &String) -> Option<String> {
        let above = (Bound::Excluded(key.as_str()), Bound::Unbounded);
        let next = self.0.range::<_, str>(above).next();
        next.map(|entry| entry.key().clone())
    }

    #[inline]
    fn scan<F>(&self, from: Option<&String>, limit: usize, mut visit: F)
    where
        F: FnMut(&[u8], u64),
    {
        let low = from.map_or(Bound::Unbounded, |key| Bound::Included(key.as_str()));
        let mut left = limit;
        self.0
            .scan::<_, str, _>((low, Bound::Unbounded), |key, value| {
                visit(key.view(), *value);
                left -= 1;
                left > 0
            });
    }

    #[inline]
    fn scan_down<F>(&self, from: Option<&String>, limit: usize, mut visit: F) -> bool
    where
        F: FnMut(&[u8], u64),
    {
        let high = from.map_or(Bound::Unbounded, |key| Bound::Included(key.as_str()));
        let range = self.0.range::<_, str>((Bound::Unbounded, high));
        for entry in range.rev().take(limit) {
            visit(entry.key().view(), *entry);
        }
        true
    }

    fn length(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
