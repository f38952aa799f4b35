//! Iterators over a range of a map.

use super::OrderedMap;
use crate::OrderedIndex;
use crate::contract::{Direction, FIRST_BATCH, KeyRange, LAST_BATCH};
use std::iter::FusedIterator;
use std::ops::{Bound, Deref};

/// The entries that one end of a [`Range`] has copied and not yet returned, and the size of its
/// next batch.
struct Batch<K, V> {
    entries: std::vec::IntoIter<(K, V)>,
    size: usize,
}

impl<K, V> Batch<K, V> {
    fn new() -> Self {
        Self {
            entries: Vec::new().into_iter(),
            size: FIRST_BATCH,
        }
    }
}

/// An iterator over a range of an [`OrderedMap`], made by [`OrderedMap::range`] and by
/// [`OrderedMap::range_of`]. `M` leads to the map: a reference to it, or an `Arc` that owns it.
///
/// `last`, `min` and `max` take one entry from an end; they do not walk. The lower bound of
/// `size_hint` is the number of entries that are already copied; an upper bound is known once the
/// ends have met.
pub struct Range<K, V, M> {
    map: M,
    /// The part of the range that neither end has copied yet, unless `met`.
    low: Bound<K>,
    high: Bound<K>,
    /// Whether a scan has found the end of what neither end had copied. From then on neither end
    /// scans: an end that takes entries from the other end's batch passes `low` or `high` without
    /// moving it, and a later scan would return keys beyond those already returned.
    met: bool,
    front: Batch<K, V>,
    back: Batch<K, V>,
}

impl<K, V, M> Range<K, V, M> {
    pub(super) fn new(map: M, low: Bound<K>, high: Bound<K>) -> Self {
        Self {
            map,
            low,
            high,
            met: false,
            front: Batch::new(),
            back: Batch::new(),
        }
    }
}

impl<K, V, E, M> Range<K, V, M>
where
    K: Ord + Clone,
    V: Clone,
    E: OrderedIndex<K, V>,
    M: Deref<Target = OrderedMap<K, V, E>>,
{
    /// Copies the next entries at one end, unless the ends have met. The remaining range then
    /// excludes them.
    fn fill(&mut self, direction: Direction) {
        if self.met {
            return;
        }
        let mut entries = Vec::new();
        let size = match direction {
            Direction::Ascending => self.front.size,
            Direction::Descending => self.back.size,
        };
        let range = KeyRange::new(self.low.as_ref(), self.high.as_ref());
        self.map.engine.scan(range, direction, size, &mut entries);
        self.met = entries.len() < size;
        let Some((last, _)) = entries.last() else {
            return;
        };
        let last = Bound::Excluded(last.clone());
        let batch = Batch {
            entries: entries.into_iter(),
            size: (size * 2).min(LAST_BATCH),
        };
        match direction {
            Direction::Ascending => (self.low, self.front) = (last, batch),
            Direction::Descending => (self.high, self.back) = (last, batch),
        }
    }
}

impl<K, V, E, M> Iterator for Range<K, V, M>
where
    K: Ord + Clone,
    V: Clone,
    E: OrderedIndex<K, V>,
    M: Deref<Target = OrderedMap<K, V, E>>,
{
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        if self.front.entries.len() == 0 {
            self.fill(Direction::Ascending);
        }
        // If this end's batch is empty, the ends have met: the next entry comes from the far side
        // of the other end's batch.
        self.front
            .entries
            .next()
            .or_else(|| self.back.entries.next_back())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let copied = self.front.entries.len() + self.back.entries.len();
        (copied, self.met.then_some(copied))
    }

    fn last(mut self) -> Option<(K, V)> {
        self.next_back()
    }

    fn min(mut self) -> Option<(K, V)>
    where
        (K, V): Ord,
    {
        self.next()
    }

    fn max(mut self) -> Option<(K, V)>
    where
        (K, V): Ord,
    {
        self.next_back()
    }
}

impl<K, V, E, M> DoubleEndedIterator for Range<K, V, M>
where
    K: Ord + Clone,
    V: Clone,
    E: OrderedIndex<K, V>,
    M: Deref<Target = OrderedMap<K, V, E>>,
{
    fn next_back(&mut self) -> Option<(K, V)> {
        if self.back.entries.len() == 0 {
            self.fill(Direction::Descending);
        }
        self.back
            .entries
            .next()
            .or_else(|| self.front.entries.next_back())
    }
}

/// Once an end has found that nothing remains, neither end returns anything again.
impl<K, V, E, M> FusedIterator for Range<K, V, M>
where
    K: Ord + Clone,
    V: Clone,
    E: OrderedIndex<K, V>,
    M: Deref<Target = OrderedMap<K, V, E>>,
{
}

/// An iterator that removes the entries of a range, made by [`OrderedMap::drain`].
pub struct Drain<'a, K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> {
    range: Range<K, V, &'a OrderedMap<K, V, E>>,
}

impl<'a, K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> Drain<'a, K, V, E> {
    pub(super) fn new(range: Range<K, V, &'a OrderedMap<K, V, E>>) -> Self {
        Self { range }
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> Iterator for Drain<'_, K, V, E> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let map = self.range.map;
        self.range
            .find_map(|(key, _)| map.remove(&key).map(|value| (key, value)))
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> DoubleEndedIterator for Drain<'_, K, V, E> {
    fn next_back(&mut self) -> Option<(K, V)> {
        let map = self.range.map;
        let mut from_back = self.range.by_ref().rev();
        from_back.find_map(|(key, _)| map.remove(&key).map(|value| (key, value)))
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> FusedIterator for Drain<'_, K, V, E> {}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> Drop for Drain<'_, K, V, E> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

/// An iterator over the entries of a map that it owns, made by
/// [`OrderedMap::into_iter`](IntoIterator::into_iter). It takes the entries out of the map, from
/// either end; dropping it drops the rest.
pub struct IntoIter<K, V, E> {
    map: OrderedMap<K, V, E>,
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> OrderedMap<K, V, E> {
    /// All keys of a map that is not needed any more, as its `into_iter` returns entries.
    ///
    /// ```
    /// use tremula_index::OrderedMap;
    ///
    /// let map = OrderedMap::from([("heron", 2), ("wren", 1)]);
    /// assert!(map.into_keys().rev().eq(["wren", "heron"]));
    /// ```
    pub fn into_keys(self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator {
        self.into_iter().map(|(key, _)| key)
    }

    /// All values of a map that is not needed any more, in the order of their keys.
    ///
    /// ```
    /// use tremula_index::OrderedMap;
    ///
    /// let map = OrderedMap::from([("heron", 2), ("wren", 1)]);
    /// assert!(map.into_values().eq([2, 1]));
    /// ```
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.into_iter().map(|(_, value)| value)
    }
}

impl<K, V, E> IntoIter<K, V, E> {
    pub(super) fn new(map: OrderedMap<K, V, E>) -> Self {
        Self { map }
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> Iterator for IntoIter<K, V, E> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.map.pop_first()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.map.len();
        (left, Some(left))
    }

    fn last(mut self) -> Option<(K, V)> {
        self.next_back()
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> DoubleEndedIterator for IntoIter<K, V, E> {
    fn next_back(&mut self) -> Option<(K, V)> {
        self.map.pop_last()
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> ExactSizeIterator for IntoIter<K, V, E> {}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> FusedIterator for IntoIter<K, V, E> {}
