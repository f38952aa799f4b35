//! A B+tree with optimistic lock coupling: readers write nothing, writers lock one leaf.
//!
//! ```text
//!                 [ 40 | 90 ]                    inner node: separators, children
//!               /      |      \
//!      [ 10 | 25 ]   [ 60 ]   [ 120 | 200 ]      heads beside one another, hints to search
//!      /    |    \    …    …    …     …    …      them
//!   leaf ⇄ leaf ⇄ leaf ⇄ …                       leaf: heads, keys, values; linked both ways
//! ```
//!
//! A node is a header and arrays (`layout`). It has the *head* of each key, a number that never
//! contradicts the order of the keys ([`KeyHead`]); for strings, what it shows begins behind the
//! bytes that all keys of the node have in common (`node::window`). Where the head does not
//! determine the key, the node also has a pointer to the key, which a search follows only where
//! heads are equal. A value of one word lies in its slot; any other lies in a box that is never
//! written again. So all that a thread reads optimistically is atomic, or immutable and kept by the
//! collector.
//!
//! Where the heads say so ([`KeyHead::read_back`]), leaves of strings have another form (`text`):
//! they hold the bytes of the keys, and make keys of them.
//!
//! A descent notes the version of a node, chooses the child, notes the version of the child, and
//! then validates the version of the node. At the moment of that validation the child was
//! responsible for the key. A read validates the leaf at the end; a write turns the version that
//! it noted into a lock. A write locks only the leaf, unless the leaf is full or becomes underfull:
//! then it also locks the parent, and for a merge a neighbour.
//!
//! # Invariants
//!
//! 1. A node's lock guards all of the node except `prev`, and `waits`, which is only a figure:
//!    keys, values or children, count, `next`. A reader validates what it has read of these before
//!    it relies on it or follows a pointer.
//! 2. The keys of a child lie at or above the separator to its left and below the separator to its
//!    right. A separator need not be a key. A child is one level below its parent.
//! 3. Heads ascend, and keys ascend strictly. Beyond the count every head is the greatest head. A
//!    hint equals the head that it stands for (`kit::heads`).
//! 4. The range of keys that a node is responsible for changes only under the locks of the node
//!    and of its parent (for the root: under its own lock, together with the link to the root).
//!    `moves` counts these changes. A thread that finds a leaf changed, or has waited for its lock,
//!    learns from `moves` whether the leaf is still responsible for the same keys.
//! 5. Only the thread that holds the lock of the root changes the link to the root.
//! 6. If `a` is the left neighbour of `b`, `a.next == b` and `b.prev == a`; both change under the
//!    lock of `a`. So a thread that holds a leaf keeps the leaf's right neighbour linked. A thread
//!    that goes left follows `prev` and checks that the `next` of that leaf leads back.
//! 7. A merge moves all entries of the right one of two neighbours under one parent into the left
//!    one, and unlinks the right one. So the first leaf is never unlinked.
//! 8. A thread that holds a lock waits for another only to lock leaves from left to right. A thread
//!    that holds the lock of a parent, or goes in another direction, only tries.
//! 9. Unlinked nodes, keys and values are retired, each by the one thread that unlinked it. The
//!    lock of a node is obsolete exactly if the node has been unlinked.
//! 10. Comparisons, clones and closures run before the first change of an operation: if one
//!     panics, nothing has happened. Only the copy of what was removed is made after the change,
//!     and the search for a node to merge: if these panic, the operation has happened. A step over
//!     several entries is many operations in this sense; if it panics, it undoes them.
//! 11. A thread that holds the lock of an inner node waits for no lock (8), so it soon releases it.
//!     So a thread that holds leaves may wait for an inner node: a step does, to find the leaf of a
//!     key. It never reads the lock of a leaf that it may hold, because it would wait for itself:
//!     it compares addresses, from the root on, which may be that leaf.
//! 12. Before a thread changes the entries of a leaf, it notes what they are for snapshots, or
//!     settles the leaf (`snapshots`).
//!
//! # What the published tree lacks
//!
//! - *Appends leave leaves half full.* Here a leaf that overflows at its end is split there, and
//!   stays full. The same holds at its beginning, and wherever insertions follow one another.
//! - *Scans descend again for each leaf.* Here leaves are linked, both ways.
//! - *Nodes never merge.* Here a node less than a quarter full is merged with a neighbour, or takes
//!   entries from it; empty leaves are unlinked; the root shrinks.
//! - *Contended writers start again at the root.* Here they wait for the leaf, see by `moves` that
//!   it is still responsible for their key, and go on there.
//! - *A search touches as many cache lines as a binary search has steps.* Here hints say which two
//!   lines to look at: a lookup waits for the leaf's header, its heads and the value.
//!
//! # Consistency
//!
//! Every operation is linearizable except `len`, `shape` and
//! [`range`](crate::OrderedIndex::range). Each batch of `range`, up to 64 entries of one leaf, is
//! as of one moment, but the visit as a whole is not. A visit delays the freeing of what others
//! remove by at most 16 batches. A scan or snapshot notes the version of each leaf that it reads
//! and validates all of them at the end: there was a moment at which all leaves were as it read
//! them. After a few failures it locks the leaves from left to right (`locked_scans` counts that);
//! but where it wants many entries, and writers have come between, it takes a number, and writers
//! note what it lacks before they change it (`snapshots`): so it neither stops them nor is stopped.
//! A range is removed under the locks of all of its leaves. A step
//! ([`Transactional`]) locks the leaves of all its ranges, and those that it
//! splits off them before any other thread can reach them, and unlocks them when it has ended.
//!
//! Reads that meet no writer write nothing to shared memory. A reader or writer that meets a writer
//! waits or starts again: the tree is not lock-free, and a thread that is suspended while it holds
//! a leaf blocks the threads that come to that leaf.
//!
//! # When to use it
//!
//! For ordered access to much data: short and long scans in both directions, neighbours, ranges
//! removed at once, batches of lookups. For integer keys it needs the least memory of the engines.
//! For keys that can be compared but have no byte form ([`NoHead`](crate::key::NoHead)) it is the
//! fastest.
//!
//! Not where all operations are single lookups and insertions of integers or short keys: a radix
//! tree waits for fewer cache misses. Where long snapshots of a part that is being written to are
//! frequent, each leaf is copied once for each of them; most of these copies are made by the
//! threads that take the snapshots.
//! Removing from the front of a long queue moves the rest of a leaf each time.
//!
//! # Sources
//!
//! Optimistic lock coupling: Leis, Scheibner, Kemper, Neumann, "The ART of practical
//! synchronization", DaMoN 2016; Leis, Haubenschild, Neumann, "Optimistic lock coupling: a
//! scalable and efficient general-purpose synchronization method", IEEE Data Eng. Bull. 2019.
//! Links between leaves: Lehman and Yao, "Efficient locking for concurrent operations on
//! B-trees", TODS 1981. The published tree and what it lacks: Wang, Pavlo, Lim, Leis, Zhang,
//! Kaminsky, Andersen, "Building a Bw-Tree takes more than just buzz words", SIGMOD 2018.

mod batch;
mod ends;
mod finger;
mod invariants;
mod layout;
mod load;
mod merge;
mod node;
mod point;
mod range;
mod scan;
mod shape;
#[cfg(all(test, not(any(loom, shuttle))))]
mod snapshot_tests;
mod snapshots;
mod split;
#[cfg(all(test, not(any(loom, shuttle))))]
mod step_tests;
mod steps;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod text;
mod transactional;
mod tree;
mod undo;
#[cfg(all(test, not(any(loom, shuttle))))]
mod window_tests;

use crate::bulk::NotSorted;
use crate::contract::{Direction, KeyRange, OrderedIndex, Shape, Storable, Update};
use crate::form::{Form, Sought};
use crate::key::head::head_of_form;
use crate::key::{ByteHead, ByteKey, KeyHead};
use crate::kit::Parameters;
use crate::snapshot::{self, NOT_BEGUN_HERE, SnapshotCursor};
use crate::transactional::Transactional;
pub(crate) use snapshots::Reading;
use std::ops::{Bound, ControlFlow};
use tree::Tree;

/// The bytes of a node in the default configuration: a page, so that a lookup needs one address
/// translation for a leaf. A node holds 240 entries where the head is the key, 160 with boxed keys.
pub const DEFAULT_NODE_BYTES: usize = 4096;

/// How full [`OlcBTree::from_sorted`] makes the nodes, in percent: each has room for a few
/// insertions.
pub const DEFAULT_FILL: usize = 90;

/// A concurrent ordered map: a B+tree whose readers write nothing to shared memory. The
/// [module](self) says how it works and when to use it.
///
/// Keys are compared by their heads first, which `H` provides: [`ByteHead`] for all keys that have
/// a byte form, [`NoHead`](crate::key::NoHead) for keys that can only be compared. `NODE_BYTES` is
/// the size of a node, rounded down to a useful size; the smallest node holds 16 entries.
///
/// Point operations take O(log n) and write to one leaf, of which they may move all entries.
///
/// ```
/// use std::ops::ControlFlow;
/// use tremula_index::{Direction, KeyRange, OlcBTree, OrderedIndex};
///
/// let tree = OlcBTree::<u64, u64>::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let tree = &tree;
///         scope.spawn(move || {
///             for i in 0..1000 {
///                 tree.insert(i * 4 + thread, thread);
///             }
///         });
///     }
/// });
/// assert_eq!(tree.len(), 4000);
///
/// // The three largest keys, as of one moment.
/// let mut last = Vec::new();
/// tree.scan(KeyRange::all(), Direction::Descending, 3, &mut last);
/// assert_eq!(last, [(3999, 3), (3998, 2), (3997, 1)]);
///
/// // Sixteen lookups whose cache misses overlap.
/// let mut found = Vec::new();
/// tree.get_many(&Vec::from_iter(0..16), &mut found);
/// assert!(found.iter().all(Option::is_some));
/// ```
pub struct OlcBTree<K, V, H = ByteHead, const NODE_BYTES: usize = DEFAULT_NODE_BYTES> {
    tree: Tree<Parameters<K, V, H, NODE_BYTES>>,
}

impl<K: ByteKey, V: Storable> OlcBTree<K, V> {
    /// An empty tree of nodes of the default size, for keys with a byte form. A tree of other keys,
    /// with [`NoHead`](crate::key::NoHead) say, or of other nodes is made by
    /// [`default`](Default::default).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>, const NODE_BYTES: usize>
    OlcBTree<K, V, H, NODE_BYTES>
{
    /// A tree of entries that come in strictly ascending order of their keys, with nodes nine
    /// tenths full. O(n); several times as fast as inserting them.
    ///
    /// # Errors
    ///
    /// [`NotSorted`] names the first entry that is out of order; the entries are dropped.
    ///
    /// ```
    /// use tremula_index::{NotSorted, OlcBTree, OrderedIndex};
    ///
    /// let squares = OlcBTree::<u64, u64>::from_sorted((0..1000).map(|n| (n, n * n)))?;
    /// assert_eq!(squares.get(&12), Some(144));
    ///
    /// let unsorted = OlcBTree::<u64, ()>::from_sorted([(1, ()), (3, ()), (2, ())]);
    /// assert_eq!(unsorted.err().map(|error| error.position), Some(2));
    /// # Ok::<(), NotSorted>(())
    /// ```
    pub fn from_sorted(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self, NotSorted> {
        Self::from_sorted_filled(entries, DEFAULT_FILL)
    }

    /// [`from_sorted`](Self::from_sorted) with nodes filled to `percent`, at least to two entries:
    /// 100 for entries that will only be read, less to leave room for insertions.
    ///
    /// # Errors
    ///
    /// [`NotSorted`] names the first entry that is out of order; the entries are dropped.
    ///
    /// ```
    /// use tremula_index::OlcBTree;
    ///
    /// let packed = OlcBTree::<u64, u64>::from_sorted_filled((0..1000).map(|n| (n, n)), 100)?;
    /// # Ok::<(), tremula_index::NotSorted>(())
    /// ```
    pub fn from_sorted_filled(
        entries: impl IntoIterator<Item = (K, V)>,
        percent: usize,
    ) -> Result<Self, NotSorted> {
        let tree = Tree::from_sorted(entries.into_iter(), percent)?;
        Ok(Self { tree })
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>, const NODE_BYTES: usize> Default
    for OlcBTree<K, V, H, NODE_BYTES>
{
    fn default() -> Self {
        Self { tree: Tree::new() }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>, const NODE_BYTES: usize> OrderedIndex<K, V>
    for OlcBTree<K, V, H, NODE_BYTES>
{
    fn engine(&self) -> &'static str {
        "b_tree"
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        self.tree.get_with(key, read).is_some()
    }

    fn get(&self, key: &K) -> Option<V> {
        self.tree.get_with(key, V::clone)
    }

    fn contains_key(&self, key: &K) -> bool {
        self.tree.get_with(key, |_| ()).is_some()
    }

    fn can_seek(&self, form: &dyn Form<K>) -> bool {
        head_of_form::<K, H>(form).is_some()
    }

    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool {
        self.tree.get_with(Sought::Form(form), read).is_some()
    }

    fn get_many(&self, keys: &[K], out: &mut Vec<Option<V>>) {
        self.tree.get_many(keys, out);
    }

    fn insert(&self, key: K, value: V) -> Option<V> {
        self.tree.insert(key, value)
    }

    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        self.tree.insert_if_absent(key, value)
    }

    fn remove(&self, key: &K) -> Option<V> {
        self.tree.remove(key)
    }

    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        self.tree.update(key, decide)
    }

    fn first(&self) -> Option<(K, V)> {
        self.tree.nearest(KeyRange::all(), Direction::Ascending)
    }

    fn last(&self) -> Option<(K, V)> {
        self.tree.nearest(KeyRange::all(), Direction::Descending)
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        let above = KeyRange::new(Bound::Excluded(key), Bound::Unbounded);
        self.tree.nearest(above, Direction::Ascending)
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        let below = KeyRange::new(Bound::Unbounded, Bound::Excluded(key));
        self.tree.nearest(below, Direction::Descending)
    }

    fn step_with(&self, key: &K, direction: Direction, read: &mut dyn FnMut(&K, &V)) -> bool {
        self.tree.step_with(key, direction, read).is_some()
    }

    fn pop_first(&self) -> Option<(K, V)> {
        self.tree.pop(Direction::Ascending, |_| ())
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.tree.pop(Direction::Descending, |_| ())
    }

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        self.tree.scan(range, direction, limit, out);
    }

    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        self.tree.visit(range, direction, visit);
    }

    fn begin_snapshot(&self, range: KeyRange<'_, K>) -> Option<SnapshotCursor<K, V>> {
        let reading = self.tree.begin_snapshot(range);
        Some(SnapshotCursor(snapshot::Reading::BTree(reading)))
    }

    fn read_snapshot(
        &self,
        cursor: &mut SnapshotCursor<K, V>,
        wanted: usize,
        out: &mut Vec<(K, V)>,
    ) -> bool {
        let snapshot::Reading::BTree(reading) = &mut cursor.0 else {
            panic!("{NOT_BEGUN_HERE}");
        };
        self.tree.read_snapshot(reading, wanted, out)
    }

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        self.tree.remove_range(range)
    }

    fn len(&self) -> usize {
        self.tree.entries()
    }

    fn shape(&self) -> Shape {
        self.tree.describe(self.engine())
    }

    fn transactional(&self) -> Option<&dyn Transactional<K, V>> {
        Some(self)
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.tree.check_at_rest();
        }
    }
}
