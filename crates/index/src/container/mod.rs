//! Sequential ordered maps that split and join in logarithmic time: what a base node of the
//! contention-adapting tree, or the one lock of [`Locked`](crate::Locked), has inside.
//!
//! [`BTree`] is the default. Other crates of this family have further ones: see [`Container`].

mod b_tree;

pub use b_tree::{BTree, Headed};

use crate::contract::{Direction, KeyRange, Update};
use std::ops::ControlFlow;

/// Keys that a container has let go of: a stored key whose entry was removed, a key that was given
/// for an entry that is already there, and copies of keys that separated two nodes.
///
/// `K::drop` is user code and may call the index that the container is a part of. So a container
/// drops no key in an operation: it keeps the keys here, until the thread that holds the lock takes
/// them out with [`Container::take_dropped`], and drops them after it has released the lock.
pub struct Dropped<K> {
    /// Most operations let go of one key at most: it needs no allocation. `None` only if there are no
    /// others.
    first: Option<K>,
    #[allow(
        clippy::box_collection,
        reason = "a writer takes the keys out after every operation, and a null pointer is taken sooner"
    )]
    more: Option<Box<Vec<K>>>,
}

impl<K> Dropped<K> {
    #[doc(hidden)]
    pub const fn new() -> Self {
        Self {
            first: None,
            more: None,
        }
    }

    /// Keeps a key, unless to drop it does nothing.
    #[doc(hidden)]
    #[inline]
    pub fn keep(&mut self, key: K) {
        if !const { std::mem::needs_drop::<K>() } {
            return;
        }
        if self.first.is_none() {
            self.first = Some(key);
        } else {
            self.keep_another(key);
        }
    }

    #[cold]
    fn keep_another(&mut self, key: K) {
        self.more.get_or_insert_default().push(key);
    }

    #[doc(hidden)]
    pub fn append(&mut self, other: &mut Self) {
        if const { std::mem::needs_drop::<K>() } {
            other.take().into_keys().for_each(|key| self.keep(key));
        }
    }

    /// Takes all of them out.
    #[doc(hidden)]
    #[inline]
    pub fn take(&mut self) -> Self {
        if !const { std::mem::needs_drop::<K>() } || self.first.is_none() {
            return Self::new();
        }
        Self {
            first: self.first.take(),
            more: self.more.take(),
        }
    }

    fn into_keys(self) -> impl Iterator<Item = K> {
        let more = self.more.map(|more| *more).unwrap_or_default();
        self.first.into_iter().chain(more)
    }
}

/// A sequential ordered map with split and join.
///
/// `n` is the number of entries. A panic in `K::cmp`, `K::clone` or a closure leaves the
/// container valid, with the operation either done or not begun.
///
/// An operation drops no key: see [`Dropped`]. Only when user code panics in an operation, the key
/// that it was given is dropped at once.
pub trait Container<K: Ord + Clone, V>: Default + Send + Sync {
    /// What a container needs to know of a key that separates two others.
    type Separator;

    /// The container's name, for reports.
    const NAME: &'static str;

    /// The value under `key`. O(log n).
    fn get(&self, key: &K) -> Option<&V>;

    /// Stores `value` under `key`, keeping the key that is there, and returns the value that
    /// it replaced. O(log n).
    fn insert(&mut self, key: K, value: V) -> Option<V>;

    /// Stores `value` under `key` if the key is absent, else hands `value` back. O(log n).
    ///
    /// # Errors
    ///
    /// Hands `value` back if the key is present.
    fn insert_if_absent(&mut self, key: K, value: V) -> Result<(), V>;

    /// Removes `key`. O(log n).
    fn remove(&mut self, key: &K) -> Option<V>;

    /// Shows the value under `key` to `decide`, once, and does what it says. Returns the value
    /// replaced or removed, and by how much the number of entries changed: −1, 0 or 1.
    /// O(log n).
    fn update(
        &mut self,
        key: K,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
    ) -> (Option<V>, i8);

    /// The entry with the smallest key. O(log n).
    fn first(&self) -> Option<(&K, &V)>;

    /// The entry with the largest key. O(log n).
    fn last(&self) -> Option<(&K, &V)>;

    /// The entry with the smallest key strictly above `key`. O(log n).
    fn next(&self, key: &K) -> Option<(&K, &V)>;

    /// The entry with the largest key strictly below `key`. O(log n).
    fn prev(&self, key: &K) -> Option<(&K, &V)>;

    /// Removes the entry with the smallest key. O(log n).
    fn pop_first(&mut self) -> Option<(K, V)>;

    /// Removes the entry with the largest key. O(log n).
    fn pop_last(&mut self) -> Option<(K, V)>;

    /// Visits the entries of `range` in the order of `direction` until `visit` breaks; returns
    /// whether it broke. O(log n + visited).
    fn visit<'a>(
        &'a self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&'a K, &'a V) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// Takes out every entry of `range` as a container of its own, by two splits and a join.
    /// O(log n).
    fn split_range(&mut self, range: KeyRange<'_, K>) -> Self;

    /// Splits near the middle: `self` keeps the lower part; the upper part is returned with a
    /// copy of its smallest key. `None` if there are fewer than two entries. O(log n).
    fn split(&mut self) -> Option<(K, Self)>;

    /// Makes ready to join two containers at `key`, which lies above all keys of the lower and at
    /// or below all of the upper, as [`split`](Self::split) returns it. O(1).
    fn separator(key: K) -> Self::Separator;

    /// Appends `upper`. Runs no user code. O(log n).
    fn join_at(&mut self, separator: Self::Separator, upper: Self);

    /// Appends `upper` at the key that separates the two. O(log n). Should
    /// [`separator`](Self::separator) panic, `upper` is dropped.
    fn join(&mut self, key: K, upper: Self) {
        self.join_at(Self::separator(key), upper);
    }

    /// Takes out the keys that operations have let go of since the last call. O(1).
    fn take_dropped(&mut self) -> Dropped<K>;

    /// Keeps these keys with those that operations have let go of.
    fn keep_dropped(&mut self, dropped: Dropped<K>);

    /// Whether there are no entries. O(1).
    fn is_empty(&self) -> bool;

    /// The number of entries, counted. O(n / node size).
    fn count(&self) -> usize;

    /// The number of levels: 0 when empty, 1 for a single node. O(log n).
    fn depth(&self) -> usize;

    /// The bytes of the nodes, without what keys and values own elsewhere.
    /// O(n / node size).
    fn bytes(&self) -> usize;

    /// Panics if a structural invariant does not hold. For tests. O(n).
    #[doc(hidden)]
    fn check(&self);
}
