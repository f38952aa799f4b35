//! A map whose leaves compute where a key lies, and are found by routes that may be wrong.
//!
//! ```text
//!   key ──> route table ──────> leaf: keys from … to …, version ──> block: 24 8 31 24 …
//!           (a hint: may be      (the truth, one cache line)         slots, in the format
//!            out of date)        half a cache line                   that the leaf has chosen
//!               ▲
//!               └─ mended from the separators, a B+tree, by a thread led astray
//! ```
//!
//! *Routes are hints, leaves are truth.* A leaf knows which keys belong to it, and has a version.
//! However a thread has come to a leaf: if the key belongs to it and the version is still the same
//! after the search, the answer is right. So on the way to a leaf nothing is locked, validated, or
//! kept from being freed: a lookup of a number with a value of one word writes nothing, waits for
//! no fence, and follows one pointer into memory that is not in the cache.
//!
//! All this needs keys that their heads determine ([`KeyHead::IS_KEY`]): integers, and whatever has
//! a byte form of up to eight bytes. Of other keys the map is an [`OlcBTree`], which compares their
//! heads first if they have any.
//!
//! Keys that are their bytes and can be made of them again (`String`, `Vec<u8>`, `Box<str>`,
//! `Box<[u8]>`, `OsString`, `CString`, [`ByteString`](crate::key::ByteString)) lie in the leaves of
//! that tree themselves, without what the keys of the leaf begin with alike: such a leaf is one of
//! *text* (`b_tree/text`). It keeps no key as an object: what is shown to a visitor, or returned,
//! is made of the bytes. So a key takes no allocation, unless more than 128 bytes are its own.
//!
//! # The formats of a leaf
//!
//! A leaf has up to 254 entries in a block of 512 bytes to 4 KiB. Whenever it is filled anew (it
//! grows, splits, merges), it chooses:
//!
//! - *linear*, for keys that are spread evenly: slots in ascending order with gaps. A number with
//!   few bits, kept with the block's address, computes at which slot a key belongs; eight
//!   comparisons from there on find it. An insertion moves entries up to the next gap.
//! - *dense*, for numbers that lie close together: an array of values, without keys. Such a leaf
//!   grows at its end without being filled anew, and entries that have come to lie close together
//!   in a wider leaf are divided between two dense ones.
//! - *sorted*, for all others: the same slots, found by comparing samples, then those of a segment.
//!
//! A leaf to which several threads append has a fourth one, *hot*, and no block: a hash table of 64
//! buckets, each with a lock of its own.
//!
//! # How it adapts
//!
//! A writer that has had to wait for a leaf notes it. When that has happened often and lately
//! (the statistic of the contention-adapting tree: 250 for each wait, less 1 for each change, more
//! than 1000 in all), the leaf is split between the keys that were waited for last, down to leaves
//! of a few entries, and the new leaf gets a line of the cache for itself. If all waited for one
//! key, no split would help, and none is made. A leaf that has become quiet looks every 4,096
//! changes whether it is small, and is merged with its neighbour if that is quiet too.
//!
//! A writer that has not waited writes nothing for this: how often a leaf has changed is its
//! version.
//!
//! If the writers that waited last all brought new keys to one end of the leaf, a split between
//! keys would not help. Then the keys beyond that end get a hot leaf, in which threads meet only if
//! their keys are in one bucket. When a bucket is full, the thread that finds it so *drains* the
//! leaf: it takes all buckets' locks for a moment, takes out as many entries as fill leaves, gives
//! the table its new range, and puts the entries in order in new leaves, while others go on
//! appending. A late key below the cut waits for these leaves. So it is at the high end of the map,
//! at the low end, and in the middle, where each of many tables of rows has a counter of its own.
//!
//! A hot leaf becomes ordinary when one thread alone has filled it eight times in a row, or 1,000
//! scans in a row have found it unchanged. An operation that needs a leaf as a whole (a step, a
//! range removal, a pop, a scan that takes locks) makes it ordinary at once. Scans and visits do
//! not: they lock the buckets for the time that copying the entries takes.
//!
//! # Memory
//!
//! Blocks lie in regions of the map, which ask the system for huge pages from 2 MiB on. A block
//! grows and shrinks where it is, if it can. A region of 2 MiB of which no block is in use is given
//! back to the system, but its addresses stay with the map until it is dropped. The leaves of text,
//! and their blocks, lie in such regions, too.
//!
//! # What `shape()` shows
//!
//! Of a map of numbers: the leaves of each format; what blocks take, how much of that is free, how
//! much the system gave in pages, past the allocator, and how much in huge pages (0 if the system
//! refuses them); `splits` for lack of room and `contention_splits`; `merges`; leaves that were
//! `heated` and `cooled`, and the `drains` of hot ones; `waits` of writers; `detours` of threads
//! that a route led astray; `snapshots` that were taken beside writers, and the `copied_leaves`
//! that writers preserved for them.
//! Of other maps the figures of a `b_tree`; with leaves of text also what these and their blocks
//! take.
//!
//! # When not to use it
//!
//! - Keys of more than eight bytes, or without a byte form: it is a `b_tree` then; for byte strings
//!   that is one with leaves of text, which takes the least memory for them.
//! - A map of a few entries: an empty one takes some kilobytes.
//! - Keys whose heads follow no line, such as powers: its leaves are sorted then, and a lookup
//!   takes as long as in `b_tree`.
//!
//! # Invariants
//!
//! 1. The leaves in use divide all numbers among them: each has those from its `low` to its `last`,
//!    and the next one begins right behind. Both change only under the leaf's lock; a split or
//!    merge also holds the lock of the leaf on the other side of the border.
//! 2. The separators have the `low` of every leaf in use, with its number. A split adds the border
//!    before the left leaf gives up the keys, a merge removes it while both leaves are locked. So a
//!    thread that finds a leaf by the separators which is not, or not yet, that of its key only has
//!    to look again.
//! 3. A leaf's lock guards its range, its place, its bits and its block. A reader validates the
//!    version after it has read all that it uses.
//! 4. A leaf, a block and a route table stay mapped until the map is dropped, so a reader never
//!    reads freed memory. What is out of use is used again; the version of a leaf goes on.
//! 5. A thread that holds locks waits only for the lock of the next leaf to the right, which it
//!    finds by the separators. A scan that holds a hot leaf waits for no other leaf.
//! 6. The code of the user runs before the first change of an operation, or after the last lock was
//!    given back.
//! 7. The lock of a hot leaf is locked, and nobody has its guard. A thread that holds the locks of
//!    all buckets holds the leaf, as if it had that guard. The range and the leaf of a table change
//!    only then; while the table is in no use, all buckets are obsolete. So a thread that has come
//!    to a bucket needs to know only that the bucket is not obsolete and that the table covers the
//!    key, at one version of the bucket.
//!
//! # Consistency
//!
//! Every operation is linearizable except `len`, `shape` and [`range`](OrderedIndex::range), which
//! shows the entries of each batch, all of one leaf, as of one moment. A scan or snapshot validates
//! all leaves at the end. After a few failures a short scan locks them from left to right. A
//! snapshot or long scan then stops no writer: one that changes a leaf which the snapshot has not
//! reached notes what the key held, and copies the leaf once fifteen keys have changed there. So it
//! takes memory for what is written meanwhile, and for the copy that it returns: none if it is read
//! [in parts](OrderedIndex::begin_snapshot). A range is removed under the lock of its first leaf,
//! which takes over the keys of those that become empty.
//!
//! The map is not lock-free: a thread that comes to a leaf that is being changed waits.
//!
//! # Sources
//!
//! Optimistic locks: Leis, Scheibner, Kemper, Neumann, "The ART of practical synchronization",
//! DaMoN 2016. Computed places and gaps that repeat a neighbour: Ding et al., "ALEX: An Updatable
//! Adaptive Learned Index", SIGMOD 2020. Formats that a leaf chooses: "B-Trees Are Back", SIGMOD
//! 2025. Routes that may be stale: Mathew, Min, "HydraList", VLDB 2020; Kim et al., "PACTree", SOSP
//! 2021. Leaves that are hash tables where threads append: Cha, Hao, Wang, Zhang, Akella, Yu,
//! "Blink-hash: An Adaptive Hybrid Index for In-Memory Time-Series Databases", VLDB 2023. Splits
//! where threads meet: Winblad, Sagonas, "Contention adapting search trees", ISPDC
//! 2015. A hash table in the order of its keys: Celis, "Robin Hood Hashing", 1986. Uneven splits:
//! Glombiewski, Seeger, Graefe, "Waves of misery after index creation", BTW 2019.

#[cfg(all(test, not(any(loom, shuttle))))]
mod boxed_tests;
mod numbers;
#[cfg(all(test, not(any(loom, shuttle))))]
mod snapshot_tests;
mod words;

use crate::b_tree::OlcBTree;
use crate::bulk::{Ascending, NotSorted};
use crate::contract::{Direction, KeyRange, OrderedIndex, Shape, Storable, Update};
use crate::form::{Form, Sought};
use crate::key::head::head_is_key;
use crate::key::{ByteHead, ByteKey, KeyHead, NoHead, TextHead};
use crate::kit::Parameters;
use crate::snapshot::{self, NOT_BEGUN_HERE, SnapshotCursor};
use crate::transactional::{self, Adapted, Part, Steps, Transaction, Transactional, View};
use numbers::Numbers;
use std::ops::{Bound, ControlFlow};
pub(crate) use words::Reading;

/// Units of 512 bytes in the largest block of a leaf.
pub const DEFAULT_UNITS: usize = 8;

/// A concurrent ordered map whose leaves compute where a key lies. The [module](self) says how it
/// works.
///
/// `H` provides the heads of keys: [`ByteHead`] those of their byte forms;
/// [`BuiltInHead`](crate::key::BuiltInHead) those of numbers and strings, found at run time:
/// [`OrderedMap::new`](crate::OrderedMap::new) makes maps of any keys with it. `UNITS` is the
/// number of units of 512 bytes in the largest block of a leaf, from 1 to 8.
///
/// ```
/// use tremula_index::{Aspen, Direction, KeyRange, OrderedIndex};
///
/// let map = Aspen::<u64, u64>::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let map = &map;
///         scope.spawn(move || {
///             for i in 0..1000 {
///                 map.insert(i * 4 + thread, thread);
///             }
///         });
///     }
/// });
/// assert_eq!(map.len(), 4000);
///
/// // The three largest keys, as of one moment.
/// let mut last = Vec::new();
/// map.scan(KeyRange::all(), Direction::Descending, 3, &mut last);
/// assert_eq!(last, [(3999, 3), (3998, 2), (3997, 1)]);
/// ```
pub struct Aspen<K, V, H = ByteHead, const UNITS: usize = DEFAULT_UNITS> {
    map: Map<K, V, H, UNITS>,
}

/// The map that the keys allow. Those that have heads are in leaves of text where that is possible.
#[expect(
    clippy::large_enum_variant,
    reason = "a map has one of them, and is not one of many"
)]
enum Map<K, V, H, const UNITS: usize> {
    Numbers(Numbers<Parameters<K, V, H>, UNITS>),
    Headed(OlcBTree<K, V, TextHead<H>>),
    Compared(OlcBTree<K, V, NoHead>),
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>, const UNITS: usize> Map<K, V, H, UNITS> {
    fn new() -> Self {
        if !H::suits() {
            Self::Compared(OlcBTree::default())
        } else if head_is_key::<K, H>() {
            Self::Numbers(Numbers::new())
        } else {
            Self::Headed(OlcBTree::default())
        }
    }
}

impl<K: ByteKey, V: Storable, const UNITS: usize> Aspen<K, V, ByteHead, UNITS> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K, V, H, const UNITS: usize> Aspen<K, V, H, UNITS>
where
    K: Ord + Storable,
    V: Storable,
    H: KeyHead<K>,
{
    /// A map of entries whose keys ascend strictly. O(n).
    ///
    /// # Errors
    ///
    /// [`NotSorted`] names the first entry that is out of order; the entries are dropped.
    ///
    /// ```
    /// use tremula_index::{Aspen, NotSorted, OrderedIndex};
    ///
    /// let squares = Aspen::<u64, u64>::from_sorted((0..1000).map(|n| (n * n, n)))?;
    /// assert_eq!(squares.next(&900), Some((961, 31)));
    ///
    /// let unsorted = Aspen::<u64, ()>::from_sorted([(1, ()), (3, ()), (2, ())]);
    /// assert_eq!(unsorted.err().map(|error| error.position), Some(2));
    /// # Ok::<(), NotSorted>(())
    /// ```
    pub fn from_sorted(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self, NotSorted> {
        let map = match Map::new() {
            Map::Numbers(numbers) => {
                for entry in Ascending::new(entries.into_iter()) {
                    let (key, value) = entry?;
                    numbers.insert(key, value);
                }
                Map::Numbers(numbers)
            }
            Map::Headed(_) => Map::Headed(OlcBTree::from_sorted(entries)?),
            Map::Compared(_) => Map::Compared(OlcBTree::from_sorted(entries)?),
        };
        Ok(Self { map })
    }
}

#[cfg(any(test, loom, shuttle))]
#[doc(hidden)]
impl<K, V, H, const UNITS: usize> Aspen<K, V, H, UNITS>
where
    K: Ord + Storable,
    V: Storable,
    H: KeyHead<K>,
{
    /// Makes a leaf hot at its high end, as threads do that append to it: for models.
    pub fn heat(&self, key: &K) {
        if let Map::Numbers(numbers) = &self.map {
            numbers.heat(key);
        }
    }
}

impl<K, V, H, const UNITS: usize> Default for Aspen<K, V, H, UNITS>
where
    K: Ord + Storable,
    V: Storable,
    H: KeyHead<K>,
{
    fn default() -> Self {
        Self { map: Map::new() }
    }
}

/// Calls the same method of the map that the keys allow, or two different ones.
macro_rules! on_map {
    ($self:ident, $map:ident => $work:expr) => {
        match &$self.map {
            Map::Numbers($map) => $work,
            Map::Headed($map) => $work,
            Map::Compared($map) => $work,
        }
    };
    ($self:ident, $map:ident => $numbers:expr, $compared:expr) => {
        match &$self.map {
            Map::Numbers($map) => $numbers,
            Map::Headed($map) => $compared,
            Map::Compared($map) => $compared,
        }
    };
}

impl<K, V, H, const UNITS: usize> OrderedIndex<K, V> for Aspen<K, V, H, UNITS>
where
    K: Ord + Storable,
    V: Storable,
    H: KeyHead<K>,
{
    fn engine(&self) -> &'static str {
        "aspen"
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        on_map!(self, map => map.get_with(key, read).is_some(), OrderedIndex::get_with(map, key, read))
    }

    fn get(&self, key: &K) -> Option<V> {
        on_map!(self, map => map.get_with(key, V::clone), OrderedIndex::get(map, key))
    }

    fn contains_key(&self, key: &K) -> bool {
        on_map!(self, map => map.get_with(key, |_| ()).is_some(), OrderedIndex::contains_key(map, key))
    }

    fn can_seek(&self, form: &dyn Form<K>) -> bool {
        on_map!(self, map => map.can_seek(form), OrderedIndex::can_seek(map, form))
    }

    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool {
        on_map!(
            self,
            map => map.get_with(Sought::Form(form), read).is_some(),
            OrderedIndex::seek(map, form, read)
        )
    }

    fn get_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
        on_map!(self, map => map.get_many(keys, out), OrderedIndex::get_many(map, keys, out));
    }

    fn insert(&self, key: K, value: V) -> Option<V> {
        on_map!(self, map => map.insert(key, value), OrderedIndex::insert(map, key, value))
    }

    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        on_map!(self, map => map.insert_if_absent(key, value), OrderedIndex::insert_if_absent(map, key, value))
    }

    fn remove(&self, key: &K) -> Option<V> {
        on_map!(self, map => map.remove(key), OrderedIndex::remove(map, key))
    }

    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        on_map!(self, map => map.update(key, decide), OrderedIndex::update(map, key, decide))
    }

    fn first(&self) -> Option<(K, V)> {
        on_map!(
            self,
            map => map.nearest(KeyRange::all(), Direction::Ascending),
            OrderedIndex::first(map)
        )
    }

    fn last(&self) -> Option<(K, V)> {
        on_map!(
            self,
            map => map.nearest(KeyRange::all(), Direction::Descending),
            OrderedIndex::last(map)
        )
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        let above = KeyRange::new(Bound::Excluded(key), Bound::Unbounded);
        on_map!(
            self,
            map => map.nearest(above, Direction::Ascending),
            OrderedIndex::next(map, key)
        )
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        let below = KeyRange::new(Bound::Unbounded, Bound::Excluded(key));
        on_map!(
            self,
            map => map.nearest(below, Direction::Descending),
            OrderedIndex::prev(map, key)
        )
    }

    fn step_with(&self, key: &K, direction: Direction, read: &mut dyn FnMut(&K, &V)) -> bool {
        on_map!(
            self,
            map => map.step_with(key, direction, read),
            OrderedIndex::step_with(map, key, direction, read)
        )
    }

    fn pop_first(&self) -> Option<(K, V)> {
        on_map!(
            self,
            map => map.pop(Direction::Ascending, |_, _| ()),
            OrderedIndex::pop_first(map)
        )
    }

    fn pop_last(&self) -> Option<(K, V)> {
        on_map!(
            self,
            map => map.pop(Direction::Descending, |_, _| ()),
            OrderedIndex::pop_last(map)
        )
    }

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        on_map!(
            self,
            map => map.scan(range, direction, limit, out),
            OrderedIndex::scan(map, range, direction, limit, out)
        );
    }

    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        on_map!(
            self,
            map => map.visit(range, direction, visit),
            OrderedIndex::range(map, range, direction, visit)
        );
    }

    fn begin_snapshot(&self, range: KeyRange<'_, K>) -> Option<SnapshotCursor<K, V>> {
        match &self.map {
            Map::Numbers(map) => {
                let reading = map.begin_snapshot(range)?;
                Some(SnapshotCursor(snapshot::Reading::Aspen(reading)))
            }
            Map::Headed(map) => OrderedIndex::begin_snapshot(map, range),
            Map::Compared(map) => OrderedIndex::begin_snapshot(map, range),
        }
    }

    fn read_snapshot(
        &self,
        cursor: &mut SnapshotCursor<K, V>,
        wanted: usize,
        out: &mut Vec<(K, V)>,
    ) -> bool {
        match &self.map {
            Map::Numbers(map) => {
                let snapshot::Reading::Aspen(reading) = &mut cursor.0 else {
                    panic!("{NOT_BEGUN_HERE}");
                };
                map.read_snapshot(reading, wanted, out)
            }
            Map::Headed(map) => OrderedIndex::read_snapshot(map, cursor, wanted, out),
            Map::Compared(map) => OrderedIndex::read_snapshot(map, cursor, wanted, out),
        }
    }

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        on_map!(
            self,
            map => map.remove_range(range, |_| ()),
            OrderedIndex::remove_range(map, range)
        )
    }

    fn len(&self) -> usize {
        on_map!(self, map => map.len(), OrderedIndex::len(map))
    }

    fn shape(&self) -> Shape {
        on_map!(
            self,
            map => Shape::new(self.engine(), map.figures()),
            Shape::new(self.engine(), OrderedIndex::shape(map).figures)
        )
    }

    fn transactional(&self) -> Option<&dyn Transactional<K, V>> {
        Some(self)
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            on_map!(self, map => map.check_at_rest(), OrderedIndex::check_invariants(map));
        }
    }
}

impl<K, V, H, const UNITS: usize> Steps<K, V> for Aspen<K, V, H, UNITS>
where
    K: Ord + Storable,
    V: Storable,
    H: KeyHead<K>,
{
    fn pop_with(&self, direction: Direction, note: &mut dyn FnMut(&K, &V)) -> Option<(K, V)> {
        on_map!(self, map => map.pop(direction, note), Steps::pop_with(map, direction, note))
    }

    fn remove_range_with(
        &self,
        range: KeyRange<'_, K>,
        note: &mut dyn FnMut(&dyn View<K, V>),
    ) -> usize {
        on_map!(
            self,
            map => map.remove_range(range, |held| transactional::show(held, range, note)),
            Steps::remove_range_with(map, range, note)
        )
    }

    fn atomically(
        &self,
        over: &[KeyRange<'_, K>],
        step: &mut dyn FnMut(&mut dyn Transaction<K, V>),
    ) {
        on_map!(self, map => map.atomically(over, step), Steps::atomically(map, over, step));
    }

    fn walk(&self, visit: &mut dyn FnMut(&Part<K>) -> ControlFlow<()>) -> Adapted {
        on_map!(self, map => map.walk(visit), Steps::walk(map, visit))
    }
}
