//! The methods of an ordered index that a Rust program expects.

use crate::contract::{Direction, FIRST_BATCH, KeyRange, LAST_BATCH, Shape, Update};
use crate::{ByteKey, CaTree, OrderedIndex, RegisteredEngine};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// A concurrent ordered map: an engine with the methods that a Rust program expects.
///
/// The engine is [`CaTree`] unless another is named, or `Box<dyn OrderedIndex<K, V>>` if it is
/// chosen at run time ([`with_engine`](OrderedMap::with_engine)). All methods take `&self`; share
/// the map by reference or in an `Arc`. The engine determines consistency, complexity and what user
/// code may do: see [`OrderedIndex`].
///
/// ```
/// use tremula_index::OrderedMap;
///
/// let ages = OrderedMap::new();
/// ages.insert("Ada", 36);
/// ages.insert("Grace", 85);
/// ages.insert("Alan", 41);
///
/// assert_eq!(ages.get(&"Ada"), Some(36));
/// let a: Vec<_> = ages.range("A".."B").collect();
/// assert_eq!(a, [("Ada", 36), ("Alan", 41)]);
/// assert_eq!(ages.range(..).next_back(), Some(("Grace", 85)));
/// ```
pub struct OrderedMap<K, V, E = CaTree<K, V>> {
    engine: E,
    entry: PhantomData<fn(K) -> V>,
}

impl<K, V> OrderedMap<K, V>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// An empty map on a contention-adapting tree.
    #[must_use]
    pub fn new() -> Self {
        Self::on(CaTree::new())
    }
}

impl<K, V> OrderedMap<K, V, Box<dyn OrderedIndex<K, V>>>
where
    K: ByteKey,
    V: Clone + Send + Sync + 'static,
{
    /// An empty map on `engine`, which may be chosen at run time.
    ///
    /// ```
    /// use tremula_index::{Engine, OrderedMap};
    ///
    /// let map = OrderedMap::with_engine("locked".parse::<Engine>()?);
    /// map.insert(1, 'a');
    /// assert_eq!(map.shape().engine, "locked");
    /// # Ok::<(), tremula_index::UnknownEngine>(())
    /// ```
    #[must_use]
    pub fn with_engine(engine: impl RegisteredEngine) -> Self {
        Self::on(engine.create())
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> OrderedMap<K, V, E> {
    /// A map on this engine, which may already have entries.
    pub const fn on(engine: E) -> Self {
        Self {
            engine,
            entry: PhantomData,
        }
    }

    /// The engine.
    pub const fn engine(&self) -> &E {
        &self.engine
    }

    /// Returns the engine and drops the rest of the map.
    pub fn into_engine(self) -> E {
        self.engine
    }

    /// A copy of the value under `key`.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.engine.get(key)
    }

    /// Calls `read` with the value under `key` and returns its result. Copies nothing. `read` may
    /// run under a lock: keep it brief, and do not call the map from it. If it does, a debug build
    /// panics, and a release build waits for ever on some engines.
    ///
    /// ```
    /// let map = tremula_index::OrderedMap::new();
    /// map.insert(1, "a long text".to_owned());
    /// assert_eq!(map.get_with(&1, |text| text.len()), Some(11));
    /// ```
    #[inline]
    pub fn get_with<R>(&self, key: &K, read: impl FnOnce(&V) -> R) -> Option<R> {
        let mut read = Some(read);
        let mut result = None;
        self.engine.get_with(key, &mut |value| {
            result = read.take().map(|read| read(value))
        });
        result
    }

    /// Whether `key` is present.
    #[inline]
    pub fn contains_key(&self, key: &K) -> bool {
        self.engine.contains_key(key)
    }

    /// For each of `keys` in turn, a copy of its value or `None`. Each lookup is linearizable by
    /// itself; they are not all of one moment. Faster than single lookups on an engine that
    /// overlaps their cache misses.
    ///
    /// ```
    /// let map: tremula_index::OrderedMap<_, _> = (0..100).map(|i| (i, i * i)).collect();
    /// assert_eq!(map.get_many(&[7, 700]), [Some(49), None]);
    /// ```
    pub fn get_many(&self, keys: &[K]) -> Vec<Option<V>> {
        let mut values = Vec::with_capacity(keys.len());
        self.engine.get_many(keys, &mut values);
        values
    }

    /// Stores `value` under `key` and returns the value that it replaced.
    #[inline]
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.engine.insert(key, value)
    }

    /// Stores `value` under `key` if the key is absent.
    ///
    /// # Errors
    ///
    /// Returns `value` if the key is present.
    #[inline]
    pub fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        self.engine.insert_if_absent(key, value)
    }

    /// Removes `key` and returns its value.
    #[inline]
    pub fn remove(&self, key: &K) -> Option<V> {
        self.engine.remove(key)
    }

    /// Shows the value under `key`, or `None`, to `decide` exactly once and carries out what it
    /// decides, as one atomic step. Returns the value that was replaced or removed. `decide`
    /// may run under a lock: keep it brief, and do not call the map from it. If it does, a debug
    /// build panics, and a release build waits for ever on some engines.
    ///
    /// ```
    /// use tremula_index::{OrderedMap, Update};
    ///
    /// let words = OrderedMap::new();
    /// for word in ["tree", "leaf", "tree"] {
    ///     words.update(word, |count| Update::Put(count.copied().unwrap_or(0) + 1));
    /// }
    /// assert_eq!(words.get(&"tree"), Some(2));
    /// ```
    pub fn update(&self, key: K, decide: impl FnOnce(Option<&V>) -> Update<V>) -> Option<V> {
        let mut decide = Some(decide);
        self.engine.update(key, &mut |value| {
            decide.take().map_or(Update::Keep, |decide| decide(value))
        })
    }

    /// The value under `key`; if the key is absent, first stores what `make` returns. `make` runs
    /// under the same conditions as the closure of [`update`](Self::update).
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        let mut result = None;
        self.update(key, |value| match value {
            Some(value) => {
                result = Some(value.clone());
                Update::Keep
            }
            None => {
                let value = make();
                result = Some(value.clone());
                Update::Put(value)
            }
        });
        match result {
            Some(value) => value,
            None => unreachable!("an engine calls the closure of update"),
        }
    }

    /// The entry with the smallest key.
    pub fn first(&self) -> Option<(K, V)> {
        self.engine.first()
    }

    /// The entry with the largest key.
    pub fn last(&self) -> Option<(K, V)> {
        self.engine.last()
    }

    /// The entry with the smallest key strictly above `key`, which need not be present.
    #[inline]
    pub fn next(&self, key: &K) -> Option<(K, V)> {
        self.engine.next(key)
    }

    /// The entry with the largest key strictly below `key`, which need not be present.
    #[inline]
    pub fn prev(&self, key: &K) -> Option<(K, V)> {
        self.engine.prev(key)
    }

    /// Removes and returns the entry with the smallest key.
    pub fn pop_first(&self) -> Option<(K, V)> {
        self.engine.pop_first()
    }

    /// Removes and returns the entry with the largest key.
    pub fn pop_last(&self) -> Option<(K, V)> {
        self.engine.pop_last()
    }

    /// The entries of `range`, from both ends as needed. Holds no lock between two calls: each
    /// batch that it copies out is as of one moment, later batches as of later moments. Keys come
    /// in order, without duplicates, and every key that is present throughout comes. Use
    /// [`snapshot`](Self::snapshot) for one moment.
    ///
    /// Whatever other threads do meanwhile, a key always lies strictly between the last keys that
    /// the two ends have returned. The iterator is fused: after it has returned `None` at either
    /// end, it returns only `None`.
    ///
    /// ```
    /// let map: tremula_index::OrderedMap<_, _> = (0..100).map(|i| (i, i * i)).collect();
    /// let squares: Vec<_> = map.range(3..6).map(|(_, square)| square).collect();
    /// assert_eq!(squares, [9, 16, 25]);
    /// assert_eq!(map.range(..=50).rev().next(), Some((50, 2500)));
    /// ```
    pub fn range(&self, range: impl RangeBounds<K>) -> Range<'_, K, V, E> {
        Range {
            engine: &self.engine,
            low: range.start_bound().cloned(),
            high: range.end_bound().cloned(),
            met: false,
            front: Batch::new(),
            back: Batch::new(),
        }
    }

    /// All entries, as [`range`](Self::range) gives them.
    pub fn iter(&self) -> Range<'_, K, V, E> {
        self.range(..)
    }

    /// The first `limit` entries of `range` in this direction, as of one moment if the engine
    /// promises it ([`Scans::OneMoment`](crate::Scans::OneMoment)).
    pub fn scan(
        &self,
        range: impl RangeBounds<K>,
        direction: Direction,
        limit: usize,
    ) -> Vec<(K, V)> {
        let mut entries = Vec::new();
        self.engine
            .scan(bounds(&range), direction, limit, &mut entries);
        entries
    }

    /// All entries of `range`, ascending, as of one moment; `None` from an engine that cannot
    /// give one.
    pub fn snapshot(&self, range: impl RangeBounds<K>) -> Option<Vec<(K, V)>> {
        self.engine.snapshot(bounds(&range))
    }

    /// Removes every entry of `range` and returns how many there were: as one atomic step if the
    /// engine promises it ([`Scans::OneMoment`](crate::Scans::OneMoment)).
    ///
    /// ```
    /// let map: tremula_index::OrderedMap<_, _> = (0..100).map(|i| (i, ())).collect();
    /// assert_eq!(map.remove_range(10..), 90);
    /// assert_eq!(map.len(), 10);
    /// ```
    pub fn remove_range(&self, range: impl RangeBounds<K>) -> usize {
        self.engine.remove_range(bounds(&range))
    }

    /// Removes every entry.
    pub fn clear(&self) {
        self.engine.remove_range(KeyRange::all());
    }

    /// The number of entries: exact when quiescent.
    pub fn len(&self) -> usize {
        self.engine.len()
    }

    /// Whether there are no entries, as exact as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.engine.is_empty()
    }

    /// What the engine looks like now.
    pub fn shape(&self) -> Shape {
        self.engine.shape()
    }
}

fn bounds<K>(range: &impl RangeBounds<K>) -> KeyRange<'_, K> {
    KeyRange::new(range.start_bound(), range.end_bound())
}

impl<K, V> Default for OrderedMap<K, V>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> fmt::Debug for OrderedMap<K, V, E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OrderedMap")
            .field("shape", &self.shape())
            .finish_non_exhaustive()
    }
}

impl<K, V> FromIterator<(K, V)> for OrderedMap<K, V>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
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

impl<'a, K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> IntoIterator for &'a OrderedMap<K, V, E> {
    type Item = (K, V);
    type IntoIter = Range<'a, K, V, E>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

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

/// An iterator over a range of an [`OrderedMap`], made by [`OrderedMap::range`].
pub struct Range<'a, K, V, E> {
    engine: &'a E,
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

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> Range<'_, K, V, E> {
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
        self.engine.scan(range, direction, size, &mut entries);
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

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> Iterator for Range<'_, K, V, E> {
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
}

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> DoubleEndedIterator for Range<'_, K, V, E> {
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
impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V>> FusedIterator for Range<'_, K, V, E> {}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_range_gives_each_entry_once_whichever_ends_are_taken() {
        let map: OrderedMap<u32, u32> = (0..500).map(|key| (key, key)).collect();
        for pattern in 1..64_u32 {
            let mut range = map.range(100..400);
            let (mut low, mut high) = (100, 400);
            for step in 0.. {
                let from_front = pattern >> (step % 6) & 1 == 1;
                let entry = if from_front {
                    range.next()
                } else {
                    range.next_back()
                };
                if low == high {
                    assert_eq!(entry, None);
                    break;
                }
                let expected = if from_front {
                    low += 1;
                    low - 1
                } else {
                    high -= 1;
                    high
                };
                assert_eq!(
                    entry,
                    Some((expected, expected)),
                    "pattern {pattern:b}, step {step}"
                );
            }
        }
    }

    #[test]
    fn a_range_may_be_sent_to_another_thread() {
        let map: OrderedMap<u32, u32> = (0..5).map(|key| (key, key)).collect();
        let range = map.range(..);
        let sum: u32 = std::thread::scope(|scope| {
            scope
                .spawn(move || range.map(|(key, _)| key).sum())
                .join()
                .unwrap()
        });
        assert_eq!(sum, 10);
    }
}
