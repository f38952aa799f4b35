//! The keys of the ordered engines.

use super::Kept;
use crate::match_spec::KeyBound;
use crate::term::{Term, TermHead};
use std::cmp::Ordering;
use tremula_index::key::KeyHead;
use tremula_index::kit::InPlace;

/// A key of an ordered engine: a term, or a bound of a search. The engines keep its head beside it
/// ([`KeptHead`]), so that most comparisons do not touch it.
#[derive(Clone)]
pub(in super::super) enum OrderedKey {
    Key(Term),
    /// An end of a range. Never stored.
    Bound(Box<KeyBound>),
}

const _: () = assert!(size_of::<OrderedKey>() == size_of::<Term>());

impl OrderedKey {
    pub(in super::super) fn bound(bound: &KeyBound) -> Self {
        Self::Bound(Box::new(bound.clone()))
    }

    /// The term of a stored key.
    #[inline]
    pub(in super::super) fn term(&self) -> &Term {
        match self {
            Self::Key(term) => term,
            Self::Bound(bound) => unreachable!("{bound:?} is stored as a key"),
        }
    }

    /// As [`term`](Self::term), by value.
    #[inline]
    pub(super) fn into_term(self) -> Term {
        match self {
            Self::Key(term) => term,
            Self::Bound(bound) => unreachable!("{bound:?} is stored as a key"),
        }
    }
}

impl Ord for OrderedKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Key(one), Self::Key(two)) => one.cmp(two),
            (Self::Bound(bound), Self::Key(key)) => bound.cmp_key(key),
            (Self::Key(key), Self::Bound(bound)) => bound.cmp_key(key).reverse(),
            (Self::Bound(one), Self::Bound(two)) => one.cmp(two),
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

/// The heads of terms: most comparisons end at these and touch no other memory.
pub(super) enum KeptHead {}

impl KeyHead<OrderedKey> for KeptHead {
    type Word = u64;
    const IS_KEY: bool = false;

    #[inline]
    fn head(key: &OrderedKey) -> u64 {
        match key {
            OrderedKey::Key(term) => TermHead::head(term),
            OrderedKey::Bound(bound) => bound.head(),
        }
    }

    const SOME_ARE_KEYS: bool = true;

    #[inline]
    fn is_only_of_one(head: u64) -> bool {
        TermHead::is_only_of_one(head)
    }

    #[inline]
    fn key(head: u64) -> Option<OrderedKey> {
        TermHead::key(head).map(OrderedKey::Key)
    }

    #[inline]
    fn in_place<V: 'static>() -> Option<InPlace<V>> {
        InPlace::of::<Kept>()
    }
}
