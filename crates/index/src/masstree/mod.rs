//! Masstree: a trie whose nodes are B+trees, for keys with a byte form of any length.
//!
//! ```text
//!   layer 0     [ "person" | "tremul" | … ]            inner nodes: separators, children
//!                 /                  \
//!   leaf ⇄ leaf [ "popl·1"  "populus+"  "tremula+" ] ⇄ leaf     slices, in any order, and
//!                    |          |           |                   a permutation that orders them
//!                 record      layer 1     record
//!                 "popl"        |         "tremula nigra"
//!                      leaf [ "·alba"  " tremul+" ]             the next bytes of the keys that
//!                                |         |                    begin with "populus"
//!                             record     record
//! ```
//!
//! A key is cut into *slices* of eight bytes (`slices`), each a number. A layer is a B+tree over
//! the slices at one depth: where only one key goes on from a slice, the leaf has that key's
//! *record* (the key and its value), and where two or more do, the layer of their next slices. A
//! key that one slice tells, as it does any integer, has no record: its value is in the leaf.
//!
//! A node takes five cache lines, which are asked for at once. A leaf keeps its entries where they
//! were put and has their order in one word, the *permutation*: an insertion fills a free slot
//! and publishes it with one store. Lookups that are under way in that leaf go on as if nothing
//! had happened. So they do when a value is replaced, and when a layer is put in the place of a
//! record. Only where entries move, or go, they have to look again.
//!
//! # Invariants
//!
//! Those that speak of the state of a tree are functions (`invariants`).
//!
//! 1. No two entries of a layer have the same slice. Slices ascend as the keys do.
//! 2. A thread writes a node under its `lock`; if entries leave slots, or if the slices that the
//!    node is responsible for change, under its `version`, too. Both are [`VersionLock`]s: lookups
//!    validate the second, scans the first. No thread locks a `version` without the `lock`.
//! 3. A slot that has become free is filled only after `version` has changed. So what a lookup
//!    read of a slot that was live belongs to the slice, if the version is still valid.
//! 4. The least slice of a leaf never changes. A split gives the upper part to a new right
//!    neighbour, a merge empties the right one of two neighbours under one parent. So a thread
//!    that finds a leaf changed goes right until the next leaf begins behind the slice (the
//!    B-link).
//! 5. The root of a layer stays the same node as long as the layer exists: when it is split its
//!    contents move down, when one child is left they move up. It is obsolete exactly when its
//!    layer has been unlinked; any other node, when it has been unlinked.
//! 6. `a.next == b` and `b.prev == a` are both changed under the lock of the left one, `a`. So a
//!    thread that holds a leaf also keeps its right neighbour linked. A thread that goes left
//!    follows `prev` and checks that the `next` of that leaf leads back.
//! 7. A thread that holds a lock waits for another only if it holds many leaves: so do removals of
//!    ranges, and scans that writers have disturbed too often, one at a time. Any other thread
//!    tries the lock; if it is held, the thread releases all its locks and starts over.
//! 8. A thread follows a pointer only if it has validated, after it read the pointer, the node that
//!    it read it from. Unlinked nodes, records and values go to the tree's collector, each by the
//!    one thread that unlinked it.
//! 9. Clones, byte forms and closures run before the first change of an operation, or after the
//!    last: whichever panics, the operation has happened or has not.
//!
//! # Unlike the paper
//!
//! - A slice of a key of no fixed length has seven bytes and their count, so that it is unique in
//!   its layer; the paper keeps lengths beside slices and lets up to ten entries share one.
//! - Full keys are kept in records, not suffixes in a bag of the leaf: keys are values of a Rust
//!   type, and scans show them by reference. A key without a suffix costs nothing for it.
//! - Leaves that become sparse are merged, and a layer with one key left is undone; there, only
//!   empty leaves and layers go, the latter by a background task.
//! - Scans and removals of ranges are of one moment.
//!
//! # Consistency
//!
//! All operations are linearizable, except `range` (each batch is), `len` and `shape`. A lookup
//! writes nothing and locks nothing. A scan notes the version of each leaf that it visits and
//! validates all of them at its end; if writers keep disturbing it, it locks the leaves
//! (`locked_scans` counts that).
//!
//! # When to use it
//!
//! For strings that have long beginnings in common, looked up, inserted and scanned by many
//! threads at once: the cost of a lookup hardly depends on how much the keys have in common, and
//! insertions do not disturb lookups. Where point operations on integers are all that is done, a
//! radix tree ([`Art`](crate::Art)) takes fewer steps; where scans are, the wide leaves of
//! [`OlcBTree`](crate::OlcBTree) do. A writer that is descheduled while it holds the lock of a
//! leaf holds up those who write there.
//!
//! # Source
//!
//! Mao, Kohler, Morris, "Cache craftiness for fast multicore key-value storage", EuroSys 2012.
//!
//! [`VersionLock`]: tremula_sync::VersionLock

mod descend;
mod invariants;
mod lookup;
mod merge;
mod node;
mod order;
mod ranges;
mod record;
mod shape;
mod slices;
mod split;
mod walk;
mod write;

use crate::bulk::{Ascending, NotSorted};
use crate::byte_keyed::{AsGiven, Lookups, Trie, Walks, Writes, ordered_index};
use crate::contract::{Direction, KeyRange, OrderedIndex, Shape, Storable, Update};
use crate::key::ByteKey;
use node::{Node, NodeRef};
use shape::Counters;
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use tremula_sync::atomic::AtomicPtr;
use tremula_sync::reclaim::Collector;
use tremula_sync::{CachePadded, Mutex, StripedCounter};

/// The entries of a leaf, and the separators of an inner node, in the default configuration: as
/// many as the word that orders them has room for.
pub const DEFAULT_WIDTH: usize = if cfg!(any(loom, shuttle)) {
    3
} else {
    order::MOST
};

/// A concurrent ordered map for keys with a byte form: a trie of B+trees. See the
/// [module](self) for how it works, and for when to use it.
///
/// `WIDTH`, from 3 to 15, is how many entries a leaf has at most; less than the default is for
/// tests, which want to see nodes split and merge.
///
/// Point operations take O(log n) steps in each layer, of which a key of *l* bytes has *l* / 7 at
/// most (*l* / 8 if all keys are of one length); a scan takes that and O(1) an entry. A range
/// removal locks all the leaves that it has to do with.
///
/// ```
/// use tremula_index::{Masstree, OrderedIndex};
///
/// let tree = Masstree::<String, u64>::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let tree = &tree;
///         scope.spawn(move || {
///             for n in 0..1000 {
///                 tree.insert(format!("https://tremula.example/{n}/{thread}"), n);
///             }
///         });
///     }
/// });
/// assert_eq!(tree.len(), 4000);
/// let next = tree.next(&"https://tremula.example/41".to_owned());
/// assert_eq!(next, Some(("https://tremula.example/41/0".to_owned(), 41)));
/// ```
pub struct Masstree<K: ByteKey, V: Storable, const WIDTH: usize = DEFAULT_WIDTH> {
    root: Box<Node<WIDTH>>,
    /// Held by whoever waits for the lock of a leaf while holding another.
    holders_of_many: Mutex<()>,
    len: CachePadded<StripedCounter>,
    restarts: StripedCounter,
    counters: Counters,
    /// Invariant in both: a shared reference can insert.
    entry: PhantomData<AtomicPtr<(K, V)>>,
    /// Keeps what was unlinked; dropped last.
    collector: Collector,
}

impl<K: ByteKey, V: Storable, const WIDTH: usize> Masstree<K, V, WIDTH> {
    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self {
            root: Box::new(Node::new(0)),
            holders_of_many: Mutex::new(()),
            len: CachePadded::new(StripedCounter::new()),
            restarts: StripedCounter::new(),
            counters: Counters::default(),
            entry: PhantomData,
            collector: Collector::new(),
        }
    }

    /// A tree of these entries, whose keys ascend strictly: each is appended, so that leaves
    /// become full. O(n log n).
    ///
    /// # Errors
    ///
    /// [`NotSorted`] names the first entry whose key is not above the one before it; the entries
    /// are dropped.
    ///
    /// ```
    /// use tremula_index::{Masstree, NotSorted, OrderedIndex};
    ///
    /// let squares = Masstree::<u64, u64>::from_sorted((0..1000).map(|n| (n * n, n)))?;
    /// assert_eq!(squares.next(&50), Some((64, 8)));
    ///
    /// let unsorted = Masstree::<&str, ()>::from_sorted([("b", ()), ("a", ())]);
    /// assert_eq!(unsorted.err(), Some(NotSorted { position: 1 }));
    /// # Ok::<(), NotSorted>(())
    /// ```
    pub fn from_sorted(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self, NotSorted> {
        let tree = Self::new();
        for entry in Ascending::new(entries.into_iter()) {
            let (key, value) = entry?;
            tree.insert(key, value);
        }
        Ok(tree)
    }

    #[inline]
    fn root(&self) -> NodeRef<'_, WIDTH> {
        NodeRef::of(&self.root)
    }
}

impl<K: ByteKey, V: Storable, const WIDTH: usize> Default for Masstree<K, V, WIDTH> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: ByteKey, V: Storable, const WIDTH: usize> Trie<K, V> for Masstree<K, V, WIDTH> {
    type Form = AsGiven;

    #[inline]
    fn collector(&self) -> &Collector {
        &self.collector
    }

    #[inline]
    fn restarts(&self) -> &StripedCounter {
        &self.restarts
    }
}

impl<K: ByteKey, V: Storable, const WIDTH: usize> OrderedIndex<K, V> for Masstree<K, V, WIDTH> {
    ordered_index!("masstree");
}
