//! A key that an operation is given, and a range of keys.

use super::{Position, Spec, StoredKey};
use crate::contract::{Direction, KeyRange};
use crate::form::Sought;
use crate::key::KeyHead;
use crate::key::head::{hash_of_sought, head_of_sought};
use std::cmp::Ordering;
use std::ops::Bound;

/// A key that is looked for, with its head.
#[derive(Clone, Copy)]
pub struct SearchKey<'k, S: Spec> {
    // Written as `<S as Spec>::Key`, so that `derive` does not require keys that are `Copy`.
    /// The key, or a borrowed form of it.
    pub key: Sought<'k, <S as Spec>::Key>,
    /// Its head.
    pub head: u64,
}

impl<'k, S: Spec> SearchKey<'k, S> {
    /// A key with the head that `S::Head` computes.
    #[inline]
    pub fn new(key: impl Into<Sought<'k, S::Key>>) -> Self {
        let key = key.into();
        Self {
            key,
            head: head_of_sought::<S::Key, S::Head>(key),
        }
    }

    /// A key whose head is known. An operation, and everything that it leaves in the index, uses
    /// one head for the key, whatever the user's code returns when it is called again.
    #[inline]
    pub fn with_head(key: &'k S::Key, head: u64) -> Self {
        Self {
            key: Sought::Key(key),
            head,
        }
    }

    /// A hash of the key. Equal keys have equal hashes.
    #[inline]
    pub fn hash(&self) -> u64 {
        hash_of_sought::<S::Key, S::Head>(self.key, self.head)
    }

    /// How this key compares with one in a node.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`].
    #[inline]
    pub unsafe fn compare(&self, stored: StoredKey<S>) -> Ordering {
        let known = stored.has_head();
        if known && self.head != stored.head {
            return self.head.cmp(&stored.head);
        }
        if known && S::Head::is_only_of_one(self.head) {
            return Ordering::Equal;
        }
        // SAFETY: passed on to the caller.
        unsafe { stored.with(|key| self.key.compare(key)) }
    }
}

/// A range of keys that an operation looks for, with the heads of its bounds.
#[derive(Clone, Copy)]
pub struct SearchRange<'k, S: Spec> {
    /// Where it begins.
    pub low: Bound<SearchKey<'k, S>>,
    /// Where it ends.
    pub high: Bound<SearchKey<'k, S>>,
}

impl<'k, S: Spec> SearchRange<'k, S> {
    /// A range with the heads that `S::Head` computes.
    #[inline]
    pub fn new(range: KeyRange<'k, S::Key>) -> Self {
        Self {
            low: range.low.map(SearchKey::new),
            high: range.high.map(SearchKey::new),
        }
    }

    /// Where a walk over the range begins.
    #[inline]
    pub fn start(&self, direction: Direction) -> Position<SearchKey<'k, S>> {
        Position::start(self.low, self.high, direction)
    }
}

impl<S: Spec> Position<SearchKey<'_, S>> {
    /// Whether this position is at or to the right of a fence or separator.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`].
    #[inline]
    pub unsafe fn is_behind(&self, fence: StoredKey<S>) -> bool {
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                Self::First => false,
                Self::At(key) => key.compare(fence).is_ge(),
                Self::Below(key) => key.compare(fence).is_gt(),
                Self::Last => true,
            }
        }
    }
}
