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
//! A node is a header and arrays (`layout`). Of a key it has the *head*, a number that never
//! disagrees with the order of the keys ([`KeyHead`]); only where that does not tell the key is
//! there a pointer to it, too, which is followed only where heads are equal. A value that is a
//! word lies in its slot, others in a box that is never written again. So what is read
//! optimistically is atomics, or immutable and kept by the epoch.
//!
//! The way down is hand over hand: a node's version is noted, the child is chosen, the child's
//! version is noted, and then the node's is validated. So at the moment of that validation the
//! child was responsible for the key. Reads validate the leaf in the end; a write makes the
//! version that it noted a lock. Only the leaf is locked, unless it is full or runs empty: then
//! its parent is too, and a neighbour.
//!
//! # Invariants
//!
//! 1. A node's lock guards all of it but `prev`: its keys, values or children, its count, `next`.
//!    What readers use of it has been validated, before a pointer among it is followed.
//! 2. The keys of a child lie at or above the separator to its left and below the one to its
//!    right. A separator need not be a key.
//! 3. Heads ascend, and keys ascend strictly. Places beyond the count hold the greatest head;
//!    a hint is the head that it stands for (`kit::heads`).
//! 4. What a node is responsible for changes only under its own lock and that of its parent
//!    (of the root: under its own, with the root's link). `moves` counts these changes, so that
//!    who finds a leaf changed, or waits for its lock, can tell whether it is still the one.
//! 5. The root's link is changed only by the holder of the lock of the node that it leads to.
//! 6. The row of the leaves: `a.next == b` and `b.prev == a` are both changed under the lock of
//!    the left one, `a`. So whoever holds a leaf also keeps its right neighbour linked. Who goes
//!    left follows `prev` and looks whether that leaf's `next` leads back.
//! 7. A merge empties the right one of two neighbours under one parent into the left one. So the
//!    first leaf is the same one for ever.
//! 8. Nobody waits for a lock while holding one, but for who locks leaves from left to right
//!    along the row. Who has a parent, or goes another way, only tries.
//! 9. Unlinked nodes, keys and values go to the epoch, each by the one thread that unlinked it.
//! 10. Comparisons, clones and closures run before the first change of an operation: whichever
//!     panics, nothing has happened.
//!
//! # What is done about the published one's faults
//!
//! - *Appends leave leaves half full.* A leaf that overflows at its end is split there, and
//!   stays full; likewise at its beginning, and wherever insertions have followed one another.
//! - *Scans descend again for each leaf.* Leaves are linked, both ways.
//! - *Nodes never merge.* A node less than a quarter full is merged with a neighbour, or they
//!   share out what they have; empty leaves are unlinked; the root shrinks.
//! - *Contended writers start again at the root.* They wait for the leaf, see by `moves` that it
//!   is still theirs, and go on there.
//! - *A search touches as many cache lines as a binary search has steps.* Hints tell the two
//!   lines to look at: a lookup waits for the leaf's header, its heads and the value.
//!
//! # Consistency
//!
//! Every operation is linearizable, but [`range`](crate::OrderedIndex::range) as a whole, whose batches
//! of up to 64 entries, each of one leaf, are each of one moment; and `len` and `shape`. A visit by
//! `range` keeps what others remove from being freed for at most 16 batches. A scan
//! or snapshot notes the version of each leaf that it reads and validates all of them in the
//! end: there was a moment at which all was so. After a few failures it locks the leaves from
//! left to right (`locked_scans` counts that). A range is removed under the locks of all of its
//! leaves.
//!
//! Reads that meet no writer write nothing to shared memory. A reader or writer that meets one
//! waits or starts again: the tree is not lock-free, and a thread that is suspended while it
//! holds a leaf holds up those who come to that leaf.
//!
//! # When to use it
//!
//! For ordered access to much data: short and long scans in both directions, neighbours, ranges
//! removed at once, batches of lookups; for integer keys at 17 to 25 bytes an entry, the least of
//! the engines. For keys that can be compared and have no byte form it is the fastest one
//! ([`NoHead`](crate::key::NoHead)).
//!
//! Not where single lookups and insertions of integers or short keys are all that is done: a
//! radix tree waits for fewer cache misses. Not where long snapshots of a part that is being
//! written to are frequent: each locks its range in the end, where
//! [`CaTree`](crate::CaTree) makes room for them. Removing from the front of a long queue moves
//! the rest of a leaf each time.
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
mod layout;
mod load;
mod merge;
mod node;
mod point;
mod range;
mod scan;
mod shape;
mod split;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod tree;

use crate::bulk::NotSorted;
use crate::contract::{Direction, KeyRange, OrderedIndex, Shape, Storable, Update};
use crate::key::{ByteHead, KeyHead};
use crate::kit::Parameters;
use std::ops::{Bound, ControlFlow};
use tree::Tree;

/// The bytes of a node in the default configuration: a page, so that a lookup needs one
/// translation of an address for a leaf. It holds 240 entries where the head is the key, 160
/// with boxed keys.
pub const DEFAULT_NODE_BYTES: usize = 4096;

/// How full [`OlcBTree::from_sorted`] makes the nodes, in percent: a few insertions into each
/// find room.
pub const DEFAULT_FILL: usize = 90;

/// A concurrent ordered map: a B+tree whose readers leave no trace. See the [module](self) for
/// how, and for when to use it.
///
/// Keys are compared by their heads first, which `H` gives: [`ByteHead`] for all keys that have a
/// byte form, [`NoHead`](crate::key::NoHead) for those that can only be compared. `NODE_BYTES` is
/// the size of a node, rounded down to what is of use; the least holds 16 entries.
///
/// Point operations take O(log n) and write to one leaf, of which up to all entries are moved.
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
pub struct OlcBTree<K, V, H = ByteHead, const NODE_BYTES: usize = DEFAULT_NODE_BYTES>
where
    K: Ord + Storable,
    V: Storable,
    H: KeyHead<K>,
{
    tree: Tree<Parameters<K, V, H, NODE_BYTES>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>, const NODE_BYTES: usize>
    OlcBTree<K, V, H, NODE_BYTES>
{
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self { tree: Tree::new() }
    }

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
    /// assert_eq!(unsorted.err(), Some(NotSorted { position: 2 }));
    /// # Ok::<(), NotSorted>(())
    /// ```
    pub fn from_sorted(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self, NotSorted> {
        Self::from_sorted_filled(entries, DEFAULT_FILL)
    }

    /// [`from_sorted`](Self::from_sorted) with nodes filled to so many percent: 100 for what will
    /// only be read, less where insertions are to find room. Less than two entries are never put
    /// into a node.
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
        Self::new()
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

    fn pop_first(&self) -> Option<(K, V)> {
        self.tree.pop(Direction::Ascending)
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.tree.pop(Direction::Descending)
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

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        self.tree.remove_range(range)
    }

    fn len(&self) -> usize {
        self.tree.entries()
    }

    fn shape(&self) -> Shape {
        self.tree.describe(self.engine())
    }
}
