//! What is looked for.

use crate::contract::KeyRange;
use crate::key::KeyHead;
use std::marker::PhantomData;
use std::ops::Bound;

/// A key, and its head.
pub(in crate::lfca_tree) struct Probe<'k, K, H> {
    head: u64,
    key: &'k K,
    heads: PhantomData<fn(H)>,
}

impl<K, H> Clone for Probe<'_, K, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H> Copy for Probe<'_, K, H> {}

impl<'k, K, H: KeyHead<K>> Probe<'k, K, H> {
    #[inline]
    pub(in crate::lfca_tree) fn new(key: &'k K) -> Self {
        Self {
            head: H::head(key),
            key,
            heads: PhantomData,
        }
    }

    #[inline]
    pub(in crate::lfca_tree) fn head(&self) -> u64 {
        self.head
    }

    #[inline]
    pub(in crate::lfca_tree) fn key(&self) -> &'k K {
        self.key
    }
}

/// A range between two probes.
pub(in crate::lfca_tree) struct Span<'k, K, H> {
    pub(super) low: Bound<Probe<'k, K, H>>,
    pub(super) high: Bound<Probe<'k, K, H>>,
}

impl<K, H> Clone for Span<'_, K, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H> Copy for Span<'_, K, H> {}

impl<'k, K, H: KeyHead<K>> Span<'k, K, H> {
    pub(in crate::lfca_tree) fn new(range: KeyRange<'k, K>) -> Self {
        Self {
            low: range.low.map(Probe::new),
            high: range.high.map(Probe::new),
        }
    }
}
