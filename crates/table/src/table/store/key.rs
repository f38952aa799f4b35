//! The keys of the ordered engines.

use crate::term::{Term, TermHead};
use std::cmp::Ordering;
use tremula_index::key::KeyHead;

/// A term in the term order with its head beside it: most comparisons end with the heads and touch
/// no other memory.
#[derive(Clone)]
pub(super) struct OrderedKey {
    head: u64,
    pub(super) term: Term,
}

impl OrderedKey {
    #[inline]
    pub(super) fn new(term: Term) -> Self {
        Self {
            head: TermHead::head(&term),
            term,
        }
    }
}

impl Ord for OrderedKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match self.head.cmp(&other.head) {
            Ordering::Equal => self.term.cmp(&other.term),
            decided => decided,
        }
    }
}

impl PartialOrd for OrderedKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedKey {}

/// For the engines that keep heads of their own: the one that the key has already.
pub(super) enum KeptHead {}

impl KeyHead<OrderedKey> for KeptHead {
    const IS_KEY: bool = false;

    #[inline]
    fn head(key: &OrderedKey) -> u64 {
        key.head
    }

    #[inline]
    fn key(_: u64) -> Option<OrderedKey> {
        None
    }
}
