//! Many values under one key.

use super::{BwTree, BwTreeConfig};
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use tremula_index::key::{ByteHead, KeyHead, NoHead};
use tremula_index::kit::{
    Implementation as OrderedIndex, OwnPacking, Packed, gives_no_key, head_is_key,
};
use tremula_index::{Direction, KeyRange, Shape, Storable};

/// A key with one of its values, or with a place below or above all of them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pair<K, V> {
    key: K,
    value: Edge<V>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Edge<V> {
    Below,
    /// Stored pairs have this.
    At(V),
    Above,
}

impl<K, V> Pair<K, V> {
    fn new(key: K, value: V) -> Self {
        Self {
            key,
            value: Edge::At(value),
        }
    }

    fn below(key: &K) -> Self
    where
        K: Clone,
    {
        Self {
            key: key.clone(),
            value: Edge::Below,
        }
    }

    fn above(key: &K) -> Self
    where
        K: Clone,
    {
        Self {
            key: key.clone(),
            value: Edge::Above,
        }
    }

    /// Shows it to `read`, if it is a stored pair, as all are that come from a tree.
    fn show<R>(&self, read: impl FnOnce(&K, &V) -> R) -> Option<R> {
        match &self.value {
            Edge::At(value) => Some(read(&self.key, value)),
            Edge::Below | Edge::Above => None,
        }
    }
}

/// The head of a pair is that of its key. If the head determines the key, and the value fits a
/// word, the word beside the head is the value: nothing is allocated for the pair.
struct PairHead<H>(PhantomData<fn() -> H>);

impl<H> PairHead<H> {
    /// Whether head and word are the key and the value.
    #[inline]
    fn is_in_words<K, V: 'static>() -> bool
    where
        H: KeyHead<K>,
    {
        head_is_key::<K, H>() && Packed::<V>::is_word()
    }
}

impl<K: 'static, V: 'static, H: KeyHead<K>> KeyHead<Pair<K, V>> for PairHead<H> {
    type Word = u64;
    const IS_KEY: bool = false;

    // SAFETY: whether key and value are in words is a constant, `is_in_words`. If so, `pack`
    // returns the value, which owns nothing, and `with_packed` makes the pair anew each time.
    // Otherwise the three methods are those of `NoHead`.
    const OWN_PACKING: Option<OwnPacking<Self, Pair<K, V>>> =
        Some(unsafe { OwnPacking::promised() });

    #[inline]
    fn head(pair: &Pair<K, V>) -> u64 {
        H::head(&pair.key)
    }

    #[inline]
    fn key(_: u64) -> Option<Pair<K, V>> {
        None
    }

    #[inline]
    fn pack(pair: Pair<K, V>) -> *mut () {
        match pair.value {
            Edge::At(value) if Self::is_in_words::<K, V>() => Packed::new(value).word(),
            // Stored pairs have a value, so this pair is not in words.
            _ => NoHead::pack(pair),
        }
    }

    #[inline]
    unsafe fn with_packed<R>(head: u64, word: *mut (), read: impl FnOnce(&Pair<K, V>) -> R) -> R {
        if !Self::is_in_words::<K, V>() {
            // SAFETY: passed on to the caller.
            return unsafe { NoHead::with_packed(head, word, read) };
        }
        let Some(key) = H::key(head) else {
            gives_no_key(head)
        };
        // SAFETY: the word is the value, which owns nothing.
        read(&Pair::new(key, unsafe { Packed::of_word(word).take() }))
    }

    #[inline]
    unsafe fn free_packed(word: *mut ()) {
        if !Self::is_in_words::<K, V>() {
            // SAFETY: passed on to the caller.
            unsafe { <NoHead as KeyHead<Pair<K, V>>>::free_packed(word) };
        }
    }

    fn bytes_beside() -> usize {
        if Self::is_in_words::<K, V>() {
            0
        } else {
            <NoHead as KeyHead<Pair<K, V>>>::bytes_beside()
        }
    }
}

/// The bounds of a range of keys, as pairs.
struct Bounds<K, V> {
    low: Bound<Pair<K, V>>,
    high: Bound<Pair<K, V>>,
}

impl<K: Clone, V> Bounds<K, V> {
    fn of(range: &KeyRange<'_, K>) -> Self {
        Self {
            low: match range.low {
                Bound::Included(key) => Bound::Included(Pair::below(key.key())),
                Bound::Excluded(key) => Bound::Included(Pair::above(key.key())),
                Bound::Unbounded => Bound::Unbounded,
            },
            high: match range.high {
                Bound::Included(key) => Bound::Excluded(Pair::above(key.key())),
                Bound::Excluded(key) => Bound::Excluded(Pair::below(key.key())),
                Bound::Unbounded => Bound::Unbounded,
            },
        }
    }

    fn of_key(key: &K) -> Self {
        Self::of(&KeyRange::new(Bound::Included(key), Bound::Included(key)))
    }

    fn range(&self) -> KeyRange<'_, Pair<K, V>> {
        KeyRange::new(self.low.as_ref(), self.high.as_ref())
    }
}

/// An ordered map with many values under one key: a set of pairs on a [`BwTree`], which threads
/// share by reference.
///
/// The values of a key are distinct and sorted. To store a value twice, add something that
/// distinguishes the two, such as a number. The usual use is an index on a column: the column's
/// value is the key, and the rows that have it are the values.
///
/// # Consistency
///
/// These are linearizable: [`insert`](Self::insert), [`remove`](Self::remove),
/// [`remove_all`](Self::remove_all), [`remove_range`](Self::remove_range),
/// [`contains`](Self::contains), [`contains_key`](Self::contains_key), [`count`](Self::count),
/// [`values`](Self::values) and [`snapshot`](Self::snapshot). Those on many pairs read or remove
/// all of them at one moment. These are not: [`for_each_value`](Self::for_each_value),
/// [`range`](Self::range), [`len`](Self::len), [`is_empty`](Self::is_empty) and
/// [`shape`](Self::shape). A walk shows each leaf as of one moment, the next leaf as of a later
/// one. Reads wait for no writer, unless a scan of many leaves keeps meeting changes.
///
/// # Complexity
///
/// O(log n) for one pair, n being the number of pairs of all keys: the number of values of a key
/// does not matter. O(log n + m) for m pairs. To search, the map makes pairs and bounds of copies
/// of the key and the value, which allocates for strings.
///
/// # User code
///
/// `Ord` and `Clone` of keys and values may run while leaves are held: they must be brief, and must
/// not use the same map. They may panic: the operation then happened or did not. Closures run while
/// no leaf is held.
///
/// # Differences from the paper
///
/// The paper (Wang et al., SIGMOD 2018, section 3.1) keeps pairs in leaves that are ordered by key
/// only. A reader of a key walks the chain from the newest delta to the oldest and collects the
/// inserted values, *S_present*, and the deleted ones, *S_deleted*; each value belongs to the set
/// that it is met in first. The key has S_present ∪ (S_base − S_deleted). The paper's shortcut in
/// the base node does not work then: an equal key no longer determines the place. And all pairs of
/// a key have to be gathered to know whether one is there.
///
/// This tree is ordered by key and then value: a pair is what a key is elsewhere. So each pair has
/// deltas of its own, of which the newest counts. To read a part of a leaf, the map sorts the
/// newest delta of each pair (an insertion is in S_present, a deletion in S_deleted) and merges
/// them with the base node without the pairs in S_deleted. The shortcut and splits *between the
/// values of one key* come for free, and so does the linearizability of the tree's operations.
///
/// This costs a word a pair. If head and word determine key and value, as with numbers, a pair
/// takes 24 bytes of its leaf; the paper's layout would take 16. Other pairs are allocated
/// separately, as keys are. A [`BwTree`] with as many numeric keys shows the least that the paper's
/// layout could cost: it takes less memory, and one thread inserts and reads faster.
///
/// ```
/// use std::ops::{Bound, ControlFlow};
/// use tremula_index::{Direction, KeyRange};
/// use tremula_papers::BwMultiMap;
///
/// let people_by_town = BwMultiMap::<String, u64>::new();
/// for (town, person) in [("Kiruna", 7), ("Umeå", 3), ("Kiruna", 2), ("Luleå", 5)] {
///     assert!(people_by_town.insert(town.to_owned(), person));
/// }
/// let kiruna = "Kiruna".to_owned();
/// assert!(!people_by_town.insert(kiruna.clone(), 7), "that pair is there");
/// assert_eq!(people_by_town.values(&kiruna), [2, 7]);
///
/// // Everybody from Kiruna to Luleå, by town.
/// let last = "Luleå".to_owned();
/// let range = KeyRange::new(Bound::Included(&kiruna), Bound::Included(&last));
/// let mut people = Vec::new();
/// people_by_town.range(range, Direction::Ascending, |_, person| {
///     people.push(*person);
///     ControlFlow::Continue(())
/// });
/// assert_eq!(people, [2, 7, 5]);
///
/// assert!(people_by_town.remove(&kiruna, &2));
/// assert_eq!(people_by_town.remove_all(&kiruna), 1);
/// assert!(!people_by_town.contains_key(&kiruna));
/// ```
pub struct BwMultiMap<K: Ord + Storable, V: Ord + Storable, H: KeyHead<K> = ByteHead> {
    pairs: BwTree<Pair<K, V>, (), PairHead<H>>,
}

impl<K: Ord + Storable, V: Ord + Storable, H: KeyHead<K>> BwMultiMap<K, V, H> {
    /// An empty map in the default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::with_config(BwTreeConfig::default())
    }

    /// An empty map whose tree consolidates, splits and merges as `config` says; unreasonable
    /// values are replaced by the nearest reasonable ones.
    #[must_use]
    pub fn with_config(config: BwTreeConfig) -> Self {
        Self {
            pairs: BwTree::with_config(config),
        }
    }

    /// Adds a value to those of a key; `false` if it is there already.
    ///
    /// Linearizable. O(log n).
    pub fn insert(&self, key: K, value: V) -> bool {
        (self.pairs)
            .insert_if_absent(Pair::new(key, value), ())
            .is_ok()
    }

    /// Removes a value from those of a key; `false` if it is not there.
    ///
    /// Linearizable. O(log n).
    pub fn remove(&self, key: &K, value: &V) -> bool {
        let pair = Pair::new(key.clone(), value.clone());
        self.pairs.remove(&pair).is_some()
    }

    /// Removes all values of a key at one moment; returns how many there were.
    ///
    /// Linearizable. O(log n + m), m being the values. Writers of the leaves with these values wait
    /// meanwhile.
    pub fn remove_all(&self, key: &K) -> usize {
        self.pairs.remove_range(Bounds::of_key(key).range())
    }

    /// Removes all values of the keys of a range at one moment; returns how many there were.
    ///
    /// Linearizable. As [`remove_all`](Self::remove_all).
    pub fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        self.pairs.remove_range(Bounds::of(&range).range())
    }

    /// Whether a value is among those of a key.
    ///
    /// Linearizable. O(log n).
    pub fn contains(&self, key: &K, value: &V) -> bool {
        let pair = Pair::new(key.clone(), value.clone());
        self.pairs.contains_key(&pair)
    }

    /// Whether a key has a value.
    ///
    /// Linearizable. O(log n).
    pub fn contains_key(&self, key: &K) -> bool {
        self.at_one_moment(&Bounds::of_key(key), 1, |_| ()) > 0
    }

    /// How many values a key has.
    ///
    /// Linearizable. O(log n + m), m being the values; copies none.
    pub fn count(&self, key: &K) -> usize {
        self.at_one_moment(&Bounds::of_key(key), usize::MAX, |_| ())
    }

    /// Copies of the values of a key, in their order, as of one moment.
    ///
    /// Linearizable. O(log n + m), m being the values.
    pub fn values(&self, key: &K) -> Vec<V> {
        let mut values = Vec::new();
        self.at_one_moment(&Bounds::of_key(key), usize::MAX, |pair| {
            values.extend(pair.show(|_, value| value.clone()));
        });
        values
    }

    /// Copies of the pairs of a range of keys, in their order, as of one moment.
    ///
    /// Linearizable. O(log n + m), m being the pairs.
    pub fn snapshot(&self, range: KeyRange<'_, K>) -> Vec<(K, V)> {
        let mut pairs = Vec::new();
        self.at_one_moment(&Bounds::of(&range), usize::MAX, |pair| {
            pairs.extend(pair.show(|key, value| (key.clone(), value.clone())));
        });
        pairs
    }

    /// Shows the values of a key to `visit`, in their order, until it breaks.
    ///
    /// Not as of one moment: each leaf is, the next leaf as of a later one. A value that is there
    /// all the time is shown once. O(log n + m), m being the number of values shown; copies none.
    /// The thread stays pinned meanwhile: what others remove is not freed before the end.
    pub fn for_each_value(&self, key: &K, mut visit: impl FnMut(&V) -> ControlFlow<()>) {
        let range = KeyRange::new(Bound::Included(key), Bound::Included(key));
        self.range(range, Direction::Ascending, |_, value| visit(value));
    }

    /// Shows the pairs of a range of keys to `visit`, by key and then value, in the order of
    /// `direction`, until it breaks.
    ///
    /// As [`for_each_value`](Self::for_each_value).
    pub fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        mut visit: impl FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        let bounds = Bounds::of(&range);
        (self.pairs).range(bounds.range(), direction, &mut |pair, ()| {
            (pair.show(|key, value| visit(key, value))).unwrap_or(ControlFlow::Continue(()))
        });
    }

    /// The number of pairs; exact while no thread writes. O(1).
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is no pair; exact while no thread writes. O(1).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The present figures of the tree, as [`BwTree`]'s; an entry is a pair. O(nodes).
    pub fn shape(&self) -> Shape {
        self.pairs.tree.describe("bw_multi_map")
    }

    /// Shows the first pairs within bounds, all as of one moment; returns how many it showed.
    fn at_one_moment(
        &self,
        bounds: &Bounds<K, V>,
        limit: usize,
        mut show: impl FnMut(&Pair<K, V>),
    ) -> usize {
        let guard = &self.pairs.tree.pin();
        let mut found = Vec::new();
        let (range, direction) = (bounds.range(), Direction::Ascending);
        (self.pairs.tree).collect(&range, direction, limit, &mut found, guard);
        for entry in &found {
            // SAFETY: what was in the tree during a pin is not freed before its end.
            unsafe { entry.key.with(&mut show) };
        }
        found.len()
    }
}

impl<K: Ord + Storable, V: Ord + Storable, H: KeyHead<K>> Default for BwMultiMap<K, V, H> {
    fn default() -> Self {
        Self::new()
    }
}
