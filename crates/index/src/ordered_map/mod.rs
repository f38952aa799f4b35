//! The methods of an ordered index that a Rust program expects.

mod by_form;
mod range;
mod snapshot;
mod traits;

pub use by_form::FormRange;
pub use range::{Drain, IntoIter, Range};
pub use snapshot::SnapshotIter;

use crate::contract::{Direction, KeyRange, Shape, Update};
use crate::form::{FormOf, KeyForm};
use crate::key::{BuiltInHead, ByteHead};
use crate::{
    Art, Aspen, ByteKey, CaTree, LfcaTree, Locked, Masstree, NotSorted, OlcBTree, OrderedIndex,
    RegisteredEngine, Storable,
};
use std::marker::PhantomData;
use std::ops::{ControlFlow, Deref, RangeBounds};

/// A concurrent ordered map: an engine with the methods that a Rust program expects.
///
/// The engine is [`Aspen`] unless another is named, or `Box<dyn OrderedIndex<K, V>>` if it is
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
pub struct OrderedMap<K, V, E = Aspen<K, V, BuiltInHead>> {
    engine: E,
    entry: PhantomData<fn(K) -> V>,
}

impl<K, V> OrderedMap<K, V>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// An empty map on [`Aspen`], which takes any keys: numbers go to leaves that compute where a
    /// key lies, and all others to a B+tree, which compares the heads of strings first.
    #[must_use]
    pub fn new() -> Self {
        Self::empty()
    }

    /// A map of entries that are in strictly ascending order of their keys.
    ///
    /// # Errors
    ///
    /// [`NotSorted`] names the first entry that is out of order.
    ///
    /// ```
    /// use tremula_index::OrderedMap;
    ///
    /// let map = OrderedMap::from_sorted([(1, 'a'), (2, 'b')])?;
    /// assert_eq!(map.last(), Some((2, 'b')));
    /// let error = OrderedMap::from_sorted([(1, 'a'), (1, 'b')]).unwrap_err();
    /// assert_eq!(error.position, 1);
    /// # Ok::<(), tremula_index::NotSorted>(())
    /// ```
    pub fn from_sorted(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self, NotSorted> {
        Aspen::from_sorted(entries).map(Self::on)
    }
}

impl<K, V> OrderedMap<K, V, Box<dyn OrderedIndex<K, V>>>
where
    K: Ord + Storable,
    V: Storable,
{
    /// An empty map on `engine`, which may be chosen at run time.
    ///
    /// An engine that compares takes any `K: Ord`. An engine that needs the byte form of a key
    /// ([`Keys::Bytes`](crate::Keys::Bytes), as `art` and `masstree` do) takes the *built-in keys*,
    /// whose form it knows by itself: integers, `bool`, `char`, `String`, `Vec<u8>`, their boxed,
    /// counted (`Arc`), `'static` and `Cow` forms, `CString`, `OsString`. For all other keys with a
    /// byte form there is [`with_byte_engine`](Self::with_byte_engine).
    ///
    /// # Panics
    ///
    /// If the engine needs the byte form of a key and `K` is not built in.
    ///
    /// ```
    /// use tremula_index::{Engine, OrderedMap};
    ///
    /// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
    /// enum Planet { Mercury, Venus, Earth }
    ///
    /// let moons = OrderedMap::with_engine(Engine::BTree);
    /// moons.insert(Planet::Earth, 1);
    /// assert_eq!(moons.get(&Planet::Mercury), None);
    ///
    /// let map = OrderedMap::with_engine("locked".parse::<Engine>()?);
    /// map.insert(1, 'a');
    /// assert_eq!(map.shape().engine, "locked");
    /// # let _ = Planet::Venus;
    /// # Ok::<(), tremula_index::UnknownEngine>(())
    /// ```
    #[must_use]
    pub fn with_engine(engine: impl RegisteredEngine) -> Self {
        Self::on(engine.create_for())
    }

    /// An empty map on `engine`, whatever it is, for keys with a byte form.
    ///
    /// ```
    /// use std::cmp::Reverse;
    /// use tremula_index::{Engine, OrderedMap};
    ///
    /// let latest = OrderedMap::with_byte_engine(Engine::Art);
    /// latest.insert(("plan".to_owned(), Reverse(1)), "a draft");
    /// latest.insert(("plan".to_owned(), Reverse(2)), "the plan");
    /// assert_eq!(latest.first().map(|(_, text)| text), Some("the plan"));
    /// ```
    #[must_use]
    pub fn with_byte_engine(engine: impl RegisteredEngine) -> Self
    where
        K: ByteKey,
    {
        Self::on(engine.create())
    }
}

/// A map on a [`CaTree`], made by [`OrderedMap::empty`].
pub type CaTreeMap<K, V> = OrderedMap<K, V, CaTree<K, V>>;

/// A map on an [`Aspen`], as [`OrderedMap::new`] makes it. Keys with a byte form that are not built
/// in take [`ByteHead`] as a third parameter.
pub type AspenMap<K, V, H = BuiltInHead> = OrderedMap<K, V, Aspen<K, V, H>>;

/// A map on an [`LfcaTree`], made by [`OrderedMap::empty`]. Keys without a byte form take
/// [`NoHead`](crate::key::NoHead) as a third parameter.
pub type LfcaTreeMap<K, V, H = ByteHead> = OrderedMap<K, V, LfcaTree<K, V, H>>;

/// A map on an [`OlcBTree`], made by [`OrderedMap::empty`]. Keys without a byte form take
/// [`NoHead`](crate::key::NoHead) as a third parameter.
///
/// ```
/// use tremula_index::OlcBTreeMap;
///
/// struct Cache {
///     pages: OlcBTreeMap<u64, Vec<u8>>,
/// }
///
/// let cache = Cache { pages: OlcBTreeMap::empty() };
/// cache.pages.insert(4096, vec![0; 8]);
/// assert!(cache.pages.contains_key(&4096));
/// ```
pub type OlcBTreeMap<K, V, H = ByteHead> = OrderedMap<K, V, OlcBTree<K, V, H>>;

/// A map on an [`Art`], made by [`OrderedMap::empty`].
pub type ArtMap<K, V> = OrderedMap<K, V, Art<K, V>>;

/// A map on a [`Masstree`], made by [`OrderedMap::empty`].
pub type MasstreeMap<K, V> = OrderedMap<K, V, Masstree<K, V>>;

/// A map on a [`Locked`] tree, made by [`OrderedMap::empty`].
pub type LockedMap<K, V> = OrderedMap<K, V, Locked<K, V>>;

impl<K: Ord + Clone, V: Clone, E: OrderedIndex<K, V> + Default> OrderedMap<K, V, E> {
    /// An empty map on an engine of type `E`, in its default configuration.
    ///
    /// ```
    /// let map = tremula_index::ArtMap::<String, u64>::empty();
    /// map.insert("aspen".to_owned(), 7);
    /// assert_eq!(map.get("aspen"), Some(7));
    /// ```
    #[must_use]
    pub fn empty() -> Self {
        Self::on(E::default())
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

    /// A copy of the value under `key`, which may be a borrowed form ([`KeyForm`]).
    ///
    /// ```
    /// let map: tremula_index::OrderedMap<String, u32> = [("oak".to_owned(), 7)].into();
    /// assert_eq!(map.get("oak"), Some(7)); // allocates nothing
    /// ```
    #[inline]
    pub fn get<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        match key.as_key() {
            Some(key) => self.engine.get(key),
            None => self.get_with(key, V::clone),
        }
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
    pub fn get_with<Q, R>(&self, key: &Q, read: impl FnOnce(&V) -> R) -> Option<R>
    where
        Q: KeyForm<K> + ?Sized,
    {
        let mut read = Some(read);
        let mut result = None;
        let read = &mut |value: &V| result = read.take().map(|read| read(value));
        match key.as_key() {
            Some(key) => self.engine.get_with(key, read),
            None => self.engine.seek(&FormOf(key), read),
        };
        result
    }

    /// Whether `key` is present.
    #[inline]
    pub fn contains_key<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> bool {
        match key.as_key() {
            Some(key) => self.engine.contains_key(key),
            None => self.engine.seek(&FormOf(key), &mut |_| ()),
        }
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

    /// Removes `key` and returns its value. If `key` is a borrowed form, copies the stored entry
    /// first.
    #[inline]
    pub fn remove<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<V> {
        match key.as_key() {
            Some(key) => self.engine.remove(key),
            None => self.engine.remove(&self.stored_key(key)?),
        }
    }

    /// Removes `key` if `condition` holds for its value, as one atomic step, and returns the value.
    /// `condition` is called at most once, under the same conditions as the closure of
    /// [`update`](Self::update). Copies the key; if `key` is a borrowed form, the stored entry.
    ///
    /// ```
    /// let stock = tremula_index::OrderedMap::from([("nuts", 3), ("bolts", 0)]);
    /// assert_eq!(stock.remove_if(&"nuts", |left| *left == 0), None);
    /// assert_eq!(stock.remove_if(&"bolts", |left| *left == 0), Some(0));
    /// ```
    pub fn remove_if<Q>(&self, key: &Q, condition: impl FnOnce(&V) -> bool) -> Option<V>
    where
        Q: KeyForm<K> + ?Sized,
    {
        let key = match key.as_key() {
            Some(key) => key.clone(),
            None => self.stored_key(key)?,
        };
        self.update(key, |value| match value {
            Some(value) if condition(value) => Update::Remove,
            _ => Update::Keep,
        })
    }

    /// Replaces the value under `key` by `new` if it equals `current`, as one atomic step, and
    /// returns the old value. `V::eq` may run under a lock, as the closure of
    /// [`update`](Self::update) may.
    ///
    /// # Errors
    ///
    /// A copy of the value under `key` that differs from `current`; `None` if the key is absent.
    ///
    /// ```
    /// let seats = tremula_index::OrderedMap::from([(12, "free"), (13, "taken")]);
    /// assert_eq!(seats.compare_exchange(12, &"free", "taken"), Ok("free"));
    /// assert_eq!(seats.compare_exchange(12, &"free", "taken"), Err(Some("taken")));
    /// assert_eq!(seats.compare_exchange(99, &"free", "taken"), Err(None));
    /// ```
    pub fn compare_exchange(&self, key: K, current: &V, new: V) -> Result<V, Option<V>>
    where
        V: PartialEq,
    {
        // A value that is not stored is dropped here, after the locks are released: its `Drop` may
        // call the map.
        let mut new = Some(new);
        let mut found = None;
        let replaced = self.update(key, |value| {
            if value == Some(current) {
                return new.take().map_or(Update::Keep, Update::Put);
            }
            found = value.cloned();
            Update::Keep
        });
        replaced.ok_or(found)
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

    /// The entry with the smallest key, under the name that `BTreeMap` has for it.
    pub fn first_key_value(&self) -> Option<(K, V)> {
        self.first()
    }

    /// The entry with the largest key, under the name that `BTreeMap` has for it.
    pub fn last_key_value(&self) -> Option<(K, V)> {
        self.last()
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
    pub fn next<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<(K, V)> {
        match key.as_key() {
            Some(key) => self.engine.next(key),
            None => self.nearest(key, false, Direction::Ascending),
        }
    }

    /// The entry with the largest key strictly below `key`, which need not be present.
    #[inline]
    pub fn prev<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<(K, V)> {
        match key.as_key() {
            Some(key) => self.engine.prev(key),
            None => self.nearest(key, false, Direction::Descending),
        }
    }

    /// The entry with the smallest key that is `key` or above it. Copies that entry only.
    ///
    /// ```
    /// let grades = tremula_index::OrderedMap::from([(50, "pass"), (70, "good"), (90, "best")]);
    /// assert_eq!(grades.at_or_above(&70), Some((70, "good")));
    /// assert_eq!(grades.at_or_above(&71), Some((90, "best")));
    /// assert_eq!(grades.at_or_below(&71), Some((70, "good")));
    /// assert_eq!(grades.at_or_below(&49), None);
    /// ```
    pub fn at_or_above<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<(K, V)> {
        self.nearest(key, true, Direction::Ascending)
    }

    /// The entry with the largest key that is `key` or below it. Copies that entry only.
    pub fn at_or_below<Q: KeyForm<K> + ?Sized>(&self, key: &Q) -> Option<(K, V)> {
        self.nearest(key, true, Direction::Descending)
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
    pub fn range(&self, range: impl RangeBounds<K>) -> Range<K, V, &Self> {
        Self::range_of(self, range)
    }

    /// What [`range`](Self::range) returns, with a map that the iterator keeps: in an `Arc`, say.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tremula_index::OrderedMap;
    ///
    /// let map = Arc::new(OrderedMap::from([(1, 'a'), (2, 'b'), (3, 'c')]));
    /// let range = OrderedMap::range_of(map, 2..); // may outlive this function
    /// assert!(range.eq([(2, 'b'), (3, 'c')]));
    /// ```
    pub fn range_of<M: Deref<Target = Self>>(map: M, range: impl RangeBounds<K>) -> Range<K, V, M> {
        let (low, high) = (range.start_bound().cloned(), range.end_bound().cloned());
        Range::new(map, low, high)
    }

    /// All entries, as [`range`](Self::range) returns them.
    pub fn iter(&self) -> Range<K, V, &Self> {
        self.range(..)
    }

    /// All keys, in the order and with the consistency of [`range`](Self::range). Copies the values
    /// too.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// All values, in the order of their keys and with the consistency of [`range`](Self::range).
    pub fn values(&self) -> impl DoubleEndedIterator<Item = V> {
        self.iter().map(|(_, value)| value)
    }

    /// Shows each entry of `range` to `visit` in the order of `direction`, until `visit` breaks,
    /// and returns what it broke with. The consistency is that of [`range`](Self::range). `visit`
    /// runs with no lock held, and may call the map.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use tremula_index::{Direction, OrderedMap};
    ///
    /// let map = OrderedMap::from([(1, "ash"), (2, "elm"), (3, "oak")]);
    /// let found = map.for_each(.., Direction::Descending, |key, tree| {
    ///     if tree.starts_with('e') { ControlFlow::Break(*key) } else { ControlFlow::Continue(()) }
    /// });
    /// assert_eq!(found, ControlFlow::Break(2));
    /// ```
    pub fn for_each<B>(
        &self,
        range: impl RangeBounds<K>,
        direction: Direction,
        mut visit: impl FnMut(&K, &V) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut result = ControlFlow::Continue(());
        self.engine
            .range(bounds(&range), direction, &mut |key, value| {
                result = visit(key, value);
                match result {
                    ControlFlow::Continue(()) => ControlFlow::Continue(()),
                    ControlFlow::Break(_) => ControlFlow::Break(()),
                }
            });
        result
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

    /// A copy of all entries of `range`, ascending, as of one moment; `None` from an engine that
    /// cannot give one. [`snapshot_iter`](Self::snapshot_iter) needs no room for all at once.
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

    /// Removes each entry of `range` for which `keep` returns `false`, and returns how many it
    /// removed. Each entry is decided and removed in one atomic step, but the entries one after the
    /// other: an entry that another thread inserts meanwhile may be missed. `keep` runs under the
    /// same conditions as the closure of [`update`](Self::update).
    ///
    /// ```
    /// let map: tremula_index::OrderedMap<_, _> = (0..10).map(|i| (i, i * i)).collect();
    /// assert_eq!(map.retain(2.., |_, square| square % 2 == 0), 4);
    /// assert!(map.keys().eq([0, 1, 2, 4, 6, 8]));
    /// ```
    pub fn retain(
        &self,
        range: impl RangeBounds<K>,
        mut keep: impl FnMut(&K, &V) -> bool,
    ) -> usize {
        let removed = self.range(range).filter(|(key, _)| {
            let gone = self.update(key.clone(), |value| match value {
                Some(value) if !keep(key, value) => Update::Remove,
                _ => Update::Keep,
            });
            gone.is_some()
        });
        removed.count()
    }

    /// Removes the entries of `range` one after the other, and returns each. An entry that another
    /// thread inserts meanwhile may stay; one that another thread removes first is not returned.
    /// Dropping the iterator removes the rest. [`remove_range`](Self::remove_range) removes all in
    /// one step.
    ///
    /// ```
    /// let queue = tremula_index::OrderedMap::from([(1, "a"), (5, "b"), (9, "c")]);
    /// assert!(queue.drain(..6).eq([(1, "a"), (5, "b")]));
    /// assert_eq!(queue.len(), 1);
    /// ```
    pub fn drain(&self, range: impl RangeBounds<K>) -> Drain<'_, K, V, E> {
        Drain::new(self.range(range))
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
