//! A set of ordered keys.

use crate::contract::Shape;
use crate::key::BuiltInHead;
use crate::ordered_map::FormRange;
use crate::ordered_map::{self, Range};
use crate::{
    Aspen, ByteKey, Direction, KeyForm, NotSorted, OrderedIndex, OrderedMap, RegisteredEngine,
    Storable,
};
use std::fmt;
use std::iter::Map;
use std::ops::RangeBounds;

/// A concurrent ordered set: an [`OrderedMap`] whose values are empty. Its methods have the
/// consistency and the cost of the map's methods of the same names.
///
/// ```
/// use tremula_index::OrderedSet;
///
/// let seen = OrderedSet::new();
/// assert!(seen.insert("wren"));
/// assert!(!seen.insert("wren"));
/// seen.insert("heron");
/// assert!(seen.contains(&"heron"));
/// assert!(seen.iter().eq(["heron", "wren"]));
/// ```
pub struct OrderedSet<K, E = Aspen<K, (), BuiltInHead>> {
    map: OrderedMap<K, (), E>,
}

/// The keys that an iterator over the map of an [`OrderedSet`] gives.
pub type Keys<I, K> = Map<I, fn((K, ())) -> K>;

/// An iterator over a range of an [`OrderedSet`], made by [`OrderedSet::range`].
pub type Iter<'a, K, E> = Keys<Range<K, (), &'a OrderedMap<K, (), E>>, K>;

fn key<K>((key, ()): (K, ())) -> K {
    key
}

impl<K: Ord + Storable> OrderedSet<K> {
    /// An empty set on the engine that [`OrderedMap::new`] takes.
    #[must_use]
    pub fn new() -> Self {
        Self::of(OrderedMap::new())
    }

    /// A set of keys that ascend strictly.
    ///
    /// # Errors
    ///
    /// [`NotSorted`] names the first key that is out of order.
    pub fn from_sorted(keys: impl IntoIterator<Item = K>) -> Result<Self, NotSorted> {
        OrderedMap::from_sorted(keys.into_iter().map(|key| (key, ()))).map(Self::of)
    }
}

impl<K: Ord + Storable> OrderedSet<K, Box<dyn OrderedIndex<K, ()>>> {
    /// An empty set on `engine`, which may be chosen at run time: see
    /// [`OrderedMap::with_engine`].
    ///
    /// # Panics
    ///
    /// If the engine needs the byte form of a key and `K` is not built in.
    ///
    /// ```
    /// use tremula_index::{Engine, OrderedSet};
    ///
    /// let words = OrderedSet::with_engine(Engine::Art);
    /// assert!(words.insert("aspen"));
    /// ```
    #[must_use]
    pub fn with_engine(engine: impl RegisteredEngine) -> Self {
        Self::of(OrderedMap::with_engine(engine))
    }

    /// An empty set on `engine`, whatever it is, for keys with a byte form.
    #[must_use]
    pub fn with_byte_engine(engine: impl RegisteredEngine) -> Self
    where
        K: ByteKey,
    {
        Self::of(OrderedMap::with_byte_engine(engine))
    }
}

impl<K: Ord + Clone, E: OrderedIndex<K, ()>> OrderedSet<K, E> {
    /// A set of the keys of this map.
    pub const fn of(map: OrderedMap<K, (), E>) -> Self {
        Self { map }
    }

    /// The map from the keys to nothing.
    pub const fn map(&self) -> &OrderedMap<K, (), E> {
        &self.map
    }

    /// The map out of its set.
    pub fn into_map(self) -> OrderedMap<K, (), E> {
        self.map
    }

    /// Whether `key` is present.
    #[inline]
    pub fn contains<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> bool {
        self.map.contains_key(key)
    }

    /// Inserts `key`, and returns whether it was absent. A key that is already present is itself
    /// kept.
    #[inline]
    pub fn insert(&self, key: K) -> bool {
        self.map.insert_if_absent(key, ()).is_ok()
    }

    /// Removes `key`, and returns whether it was present.
    #[inline]
    pub fn remove<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> bool {
        self.map.remove(key).is_some()
    }

    /// The smallest key.
    pub fn first(&self) -> Option<K> {
        self.map.first().map(key)
    }

    /// The largest key.
    pub fn last(&self) -> Option<K> {
        self.map.last().map(key)
    }

    /// The smallest key strictly above `key`, which need not be present.
    pub fn next<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<K> {
        self.map.next(key).map(self::key)
    }

    /// The largest key strictly below `key`, which need not be present.
    pub fn prev<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<K> {
        self.map.prev(key).map(self::key)
    }

    /// The smallest key that is `key` or above it.
    pub fn at_or_above<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<K> {
        self.map.at_or_above(key).map(self::key)
    }

    /// The largest key that is `key` or below it.
    pub fn at_or_below<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<K> {
        self.map.at_or_below(key).map(self::key)
    }

    /// Removes and returns the smallest key.
    pub fn pop_first(&self) -> Option<K> {
        self.map.pop_first().map(key)
    }

    /// Removes and returns the largest key.
    pub fn pop_last(&self) -> Option<K> {
        self.map.pop_last().map(key)
    }

    /// The keys of `range`, as [`OrderedMap::range`] returns entries.
    pub fn range(&self, range: impl RangeBounds<K>) -> Iter<'_, K, E> {
        self.map.range(range).map(key)
    }

    /// All keys, as [`range`](Self::range) returns them.
    pub fn iter(&self) -> Iter<'_, K, E> {
        self.range(..)
    }

    /// The keys between two borrowed forms: see [`OrderedMap::range_by`].
    ///
    /// ```
    /// use tremula_index::OrderedSet;
    ///
    /// let trees: OrderedSet<String> = ["ash", "elm", "oak"].map(str::to_owned).into();
    /// assert!(trees.contains("elm"));
    /// assert!(trees.range_by("b"..).eq(["elm", "oak"]));
    /// ```
    pub fn range_by<'q, Q: KeyForm<K> + ?Sized + 'q>(
        &self,
        range: impl FormRange<'q, Q>,
    ) -> impl DoubleEndedIterator<Item = K> {
        self.map.range_by(range).map(key)
    }

    /// The first `limit` keys of `range` in this direction: see [`OrderedMap::scan`].
    pub fn scan(&self, range: impl RangeBounds<K>, direction: Direction, limit: usize) -> Vec<K> {
        let entries = self.map.scan(range, direction, limit);
        entries.into_iter().map(key).collect()
    }

    /// All keys of `range` as of one moment: see [`OrderedMap::snapshot`].
    pub fn snapshot(&self, range: impl RangeBounds<K>) -> Option<Vec<K>> {
        let entries = self.map.snapshot(range)?;
        Some(entries.into_iter().map(key).collect())
    }

    /// Removes every key of `range`, and returns how many there were: see
    /// [`OrderedMap::remove_range`].
    pub fn remove_range(&self, range: impl RangeBounds<K>) -> usize {
        self.map.remove_range(range)
    }

    /// Removes each key of `range` for which `keep` returns `false`, and returns how many it
    /// removed: see [`OrderedMap::retain`].
    pub fn retain(&self, range: impl RangeBounds<K>, mut keep: impl FnMut(&K) -> bool) -> usize {
        self.map.retain(range, |key, ()| keep(key))
    }

    /// Removes the keys of `range` one after the other, and returns each: see
    /// [`OrderedMap::drain`].
    pub fn drain(&self, range: impl RangeBounds<K>) -> Keys<ordered_map::Drain<'_, K, (), E>, K> {
        self.map.drain(range).map(key)
    }

    /// Removes every key.
    pub fn clear(&self) {
        self.map.clear();
    }

    /// The number of keys: exact when quiescent.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are no keys, as exact as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// What the engine looks like now.
    pub fn shape(&self) -> Shape {
        self.map.shape()
    }
}

impl<K: Ord + Storable> Default for OrderedSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone + fmt::Debug, E: OrderedIndex<K, ()>> fmt::Debug for OrderedSet<K, E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self).finish()
    }
}

impl<K: Ord + Clone, E: OrderedIndex<K, ()> + Default> Clone for OrderedSet<K, E> {
    fn clone(&self) -> Self {
        Self::of(self.map.clone())
    }
}

impl<K, E, F> PartialEq<OrderedSet<K, F>> for OrderedSet<K, E>
where
    K: Ord + Clone,
    E: OrderedIndex<K, ()>,
    F: OrderedIndex<K, ()>,
{
    fn eq(&self, other: &OrderedSet<K, F>) -> bool {
        self.map == other.map
    }
}

impl<K: Ord + Clone, E: OrderedIndex<K, ()>> Eq for OrderedSet<K, E> {}

impl<K: Ord + Storable, const N: usize> From<[K; N]> for OrderedSet<K> {
    fn from(keys: [K; N]) -> Self {
        keys.into_iter().collect()
    }
}

impl<K: Ord + Storable> FromIterator<K> for OrderedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = Self::new();
        set.extend(keys);
        set
    }
}

impl<K: Ord + Clone, E: OrderedIndex<K, ()>> Extend<K> for OrderedSet<K, E> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.map.extend(keys.into_iter().map(|key| (key, ())));
    }
}

/// As `BTreeSet` does, for keys that are cheap to copy.
impl<'a, K: Ord + Copy, E: OrderedIndex<K, ()>> Extend<&'a K> for OrderedSet<K, E> {
    fn extend<I: IntoIterator<Item = &'a K>>(&mut self, keys: I) {
        self.extend(keys.into_iter().copied());
    }
}

impl<'a, K: Ord + Clone, E: OrderedIndex<K, ()>> IntoIterator for &'a OrderedSet<K, E> {
    type Item = K;
    type IntoIter = Iter<'a, K, E>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Ord + Clone, E: OrderedIndex<K, ()>> IntoIterator for OrderedSet<K, E> {
    type Item = K;
    type IntoIter = Keys<ordered_map::IntoIter<K, (), E>, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.map.into_iter().map(key)
    }
}
