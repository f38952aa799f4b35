//! Containers: sequential ordered maps that split and join in logarithmic time. Each base node of
//! the contention-adapting tree holds one, and so does the one lock of [`Locked`](crate::Locked).
//!
//! [`BTree`] is the default. Other crates of this family implement [`Container`] too.

mod b_tree;

pub use b_tree::{BTree, Headed};

use crate::contract::{Direction, KeyRange, Update};
use crate::form::Form;
use std::ops::ControlFlow;

/// Keys that a container no longer needs: the stored key of a removed entry, a key passed for an
/// entry that is already there, and copies of keys that separated two nodes.
///
/// `K::drop` is user code and may call the index that the container is a part of. So no operation
/// of a container drops a key: it keeps the key here. The thread that holds the lock takes the keys
/// out with [`Container::take_dropped`], and drops them after it has released the lock.
pub struct Dropped<K> {
    /// Most operations leave at most one key, which needs no allocation. `None` only if `more` is
    /// empty.
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

    /// Keeps a key, unless dropping it does nothing.
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

    /// Takes all keys out.
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
/// `n` is the number of entries. If `K::cmp`, `K::clone` or a closure panics, the container stays
/// valid, and the operation has either happened or not begun.
///
/// No operation drops a key: see [`Dropped`]. The exception: if user code panics in an operation,
/// the key that the operation was given is dropped at once.
pub trait Container<K: Ord + Clone, V>: Default + Send + Sync {
    /// A key that separates two containers, with all that a join needs to know of it.
    type Separator;

    /// The name of the container in reports.
    const NAME: &'static str;

    /// The value under `key`. O(log n).
    fn get(&self, key: &K) -> Option<&V>;

    /// Whether the container can look for a borrowed form of a key.
    #[doc(hidden)]
    fn can_seek(form: &dyn Form<K>) -> bool;

    /// The value under the key that a form stands for. O(log n).
    #[doc(hidden)]
    fn seek(&self, form: &dyn Form<K>) -> Option<&V>;

    /// Stores `value` under `key` and returns the value that it replaced. A key that is already
    /// stored stays. O(log n).
    fn insert(&mut self, key: K, value: V) -> Option<V>;

    /// Does what [`insert`](Self::insert) does, but takes the key and the value only when all user
    /// code has run: if that panics, the caller still has both. It may also leave a key that is
    /// already stored. (As provided, it takes both at once, and user code that panics loses them.)
    #[doc(hidden)]
    fn insert_from(&mut self, key: &mut Option<K>, value: &mut Option<V>) -> Option<V> {
        self.insert(key.take()?, value.take()?)
    }

    /// Stores `value` under `key` if the key is absent. O(log n).
    ///
    /// # Errors
    ///
    /// Returns `value` if the key is present.
    fn insert_if_absent(&mut self, key: K, value: V) -> Result<(), V>;

    /// Removes `key`. O(log n).
    fn remove(&mut self, key: &K) -> Option<V>;

    /// Removes `key`, and returns the stored key, or a copy of it, with the value. O(log n).
    fn remove_entry(&mut self, key: &K) -> Option<(K, V)> {
        let mut stored = None;
        let _ = self.visit(KeyRange::only(key), Direction::Ascending, &mut |key, _| {
            stored = Some(key.clone());
            ControlFlow::Break(())
        });
        let value = self.remove(key)?;
        // The order of the keys contradicts itself if one search finds the key and the other not.
        Some((stored.unwrap_or_else(|| key.clone()), value))
    }

    /// Calls `decide` once with the value under `key` and applies its decision. Returns the value
    /// that was replaced or removed, and the change in the number of entries: −1, 0 or 1.
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

    /// Visits the entries of `range` in `direction` until `visit` breaks, and returns whether it
    /// broke. O(log n + visited).
    fn visit<'a>(
        &'a self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&'a K, &'a V) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// Moves all entries of `range` into a new container, by two splits and a join. O(log n).
    fn split_range(&mut self, range: KeyRange<'_, K>) -> Self;

    /// Splits near the middle: `self` keeps the lower part, and the upper part is returned with a
    /// copy of its smallest key. `None` if there are fewer than two entries. O(log n).
    fn split(&mut self) -> Option<(K, Self)>;

    /// The separator for a join at `key`, which lies above all keys of the lower container and at
    /// or below all keys of the upper one, as the key that [`split`](Self::split) returns. O(1).
    fn separator(key: K) -> Self::Separator;

    /// The same, but takes the key only when all user code has run: if that panics, the caller
    /// still has it. (As provided, it takes the key at once.)
    #[doc(hidden)]
    fn separator_from(key: &mut Option<K>) -> Option<Self::Separator> {
        key.take().map(Self::separator)
    }

    /// Appends `upper`. Runs no user code. O(log n).
    fn join_at(&mut self, separator: Self::Separator, upper: Self);

    /// Appends `upper` at the key that separates the two. O(log n). If
    /// [`separator`](Self::separator) panics, `upper` is dropped.
    fn join(&mut self, key: K, upper: Self) {
        self.join_at(Self::separator(key), upper);
    }

    /// Takes out the keys that operations have dropped since the last call. O(1).
    fn take_dropped(&mut self) -> Dropped<K>;

    /// Adds keys to those that operations have dropped.
    fn keep_dropped(&mut self, dropped: Dropped<K>);

    /// Whether there are no entries. O(1).
    fn is_empty(&self) -> bool;

    /// Counts the entries. O(n / node size).
    fn count(&self) -> usize;

    /// The number of levels: 0 when empty, 1 for a single node. O(log n).
    fn depth(&self) -> usize;

    /// The bytes of the nodes, without what keys and values own elsewhere. O(n / node size).
    fn bytes(&self) -> usize;

    /// Panics if a structural invariant does not hold. For tests. O(n).
    #[doc(hidden)]
    fn check(&self);
}
