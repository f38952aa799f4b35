//! The keys of the ordered engines.

use crate::match_spec::KeyBound;
use crate::term::{Term, TermHead};
use std::cmp::Ordering;
use tremula_index::key::KeyHead;

/// A place in the term order with its head beside it: most comparisons end with the heads and
/// touch no other memory.
#[derive(Clone)]
pub(super) struct OrderedKey {
    head: u64,
    at: At,
}

/// What is at a place.
#[derive(Clone)]
enum At {
    Key(Term),
    /// No key, but where a range begins or ends. Never stored.
    Bound(Box<KeyBound>),
}

const _: () = assert!(size_of::<OrderedKey>() == 24);

impl OrderedKey {
    #[inline]
    pub(super) fn new(term: Term) -> Self {
        Self {
            head: TermHead::head(&term),
            at: At::Key(term),
        }
    }

    pub(super) fn bound(bound: &KeyBound) -> Self {
        Self {
            head: bound.head(),
            at: At::Bound(Box::new(bound.clone())),
        }
    }

    /// The key that is stored.
    pub(super) fn into_term(self) -> Term {
        match self.at {
            At::Key(term) => term,
            At::Bound(bound) => unreachable!("{bound:?} is stored as a key"),
        }
    }
}

impl Ord for OrderedKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match self.head.cmp(&other.head) {
            Ordering::Equal => match (&self.at, &other.at) {
                (At::Key(one), At::Key(two)) => one.cmp(two),
                (At::Bound(bound), At::Key(key)) => bound.cmp_key(key),
                (At::Key(key), At::Bound(bound)) => bound.cmp_key(key).reverse(),
                (At::Bound(one), At::Bound(two)) => one.cmp(two),
            },
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
