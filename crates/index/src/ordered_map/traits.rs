//! What a map has in common with other collections.

use super::{IntoIter, OrderedMap, Range};
use crate::{OrderedIndex, Storable};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};

impl<K, V> Default for OrderedMap<K, V>
where
    K: Ord + Storable,
    V: Storable,
{
    fn default() -> Self {
        Self::new()
    }
}

/// Shows the entries, as [`OrderedMap::range`] returns them.
impl<K, V, E> fmt::Debug for OrderedMap<K, V, E>
where
    K: Ord + Clone + fmt::Debug,
    V: Clone + fmt::Debug,
    E: OrderedIndex<K, V>,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self).finish()
    }
}

/// A copy has the entries of one moment if the engine promises it
/// ([`Scans::OneMoment`](crate::Scans::OneMoment)), else those that a range returns.
impl<K, V, E> Clone for OrderedMap<K, V, E>
where
    K: Ord + Clone,
    V: Clone,
    E: OrderedIndex<K, V> + Default,
{
    fn clone(&self) -> Self {
        let mut copy = Self::on(E::default());
        match self.snapshot(..) {
            Some(entries) => copy.extend(entries),
            None => copy.extend(self),
        }
        copy
    }
}

/// Compares the entries one after the other: if other threads write meanwhile, the maps may have
/// been equal at no moment.
impl<K, V, E, F> PartialEq<OrderedMap<K, V, F>> for OrderedMap<K, V, E>
where
    K: Ord + Clone,
    V: Clone + PartialEq,
    E: OrderedIndex<K, V>,
    F: OrderedIndex<K, V>,
{
    fn eq(&self, other: &OrderedMap<K, V, F>) -> bool {
        self.iter().eq(other)
    }
}

impl<K, V, E> Eq for OrderedMap<K, V, E>
where
    K: Ord + Clone,
    V: Clone + Eq,
    E: OrderedIndex<K, V>,
{
}

/// A panic in user code leaves every map usable: see [`OrderedIndex`].
impl<K, V, E> UnwindSafe for OrderedMap<K, V, E> {}
impl<K, V, E> RefUnwindSafe for OrderedMap<K, V, E> {}

impl<K, V, const N: usize> From<[(K, V); N]> for OrderedMap<K, V>
where
    K: Ord + Storable,
    V: Storable,
{
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K, V> FromIterator<(K, V)> for OrderedMap<K, V>
where
    K: Ord + Storable,
    V: Storable,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let map = Self::new();
        (&map).extend(entries);
        map
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> Extend<(K, V)> for &OrderedMap<K, V, E> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> Extend<(K, V)> for OrderedMap<K, V, E> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

/// As `BTreeMap` does, for entries that are cheap to copy.
impl<'a, K: Ord + Copy, V: Copy, E: OrderedIndex<K, V>> Extend<(&'a K, &'a V)>
    for OrderedMap<K, V, E>
{
    fn extend<I: IntoIterator<Item = (&'a K, &'a V)>>(&mut self, entries: I) {
        self.extend(entries.into_iter().map(|(key, value)| (*key, *value)));
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> IntoIterator for &OrderedMap<K, V, E> {
    type Item = (K, V);
    type IntoIter = Range<K, V, Self>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> IntoIterator for OrderedMap<K, V, E> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V, E>;

    fn into_iter(self) -> Self::IntoIter {
        IntoIter::new(self)
    }
}
