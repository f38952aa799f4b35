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
//! A key is cut into *slices* of eight bytes (`slices`), each of them a number. A layer is a B+tree
//! over the slices at one depth. If only one key goes on from a slice, the leaf has that key's
//! *record* (the key and its value); if two or more do, the leaf has the layer of their next
//! slices. If one slice is the whole key, as it is for any integer, there is no record: the value
//! is in the leaf.
//!
//! A node takes five cache lines, which are prefetched together. A leaf never moves its entries to
//! keep them sorted: their order is in one word, the *permutation*. An insertion fills a free slot
//! and publishes it with one store, and lookups that are in the leaf at that time continue. They
//! also continue when a value is replaced, and when a layer replaces a record. Only if entries
//! leave their slots do they have to look again.
//!
//! # Invariants
//!
//! The invariants about the state of a tree are functions (`invariants`).
//!
//! 1. No two entries of a layer have the same slice. Slices ascend as the keys do.
//! 2. A thread writes a node under the node's `lock`. If entries leave slots, or if the slices that
//!    the node is responsible for change, it also holds the node's `version`. Both are
//!    [`VersionLock`]s: lookups validate `version`, scans validate `lock`. No thread locks a
//!    `version` without the `lock`.
//! 3. A slot that has become free is filled only after `version` has changed. So if a lookup reads
//!    a live slot and `version` is still valid afterwards, the word that it read belongs to the
//!    slice.
//! 4. The least slice of a leaf never changes. A split gives the upper part to a new right
//!    neighbour, and a merge empties the right one of two neighbours under one parent. So a thread
//!    that finds a leaf changed goes right while the next leaf begins at or below the slice (the
//!    B-link).
//! 5. The root of a layer stays the same node as long as the layer exists: when it is split, its
//!    contents move down; when one child is left, that child's contents move up. A node is obsolete
//!    exactly when it has been unlinked; the root of a layer is unlinked with its layer.
//! 6. `a.next == b` and `b.prev == a` are both changed under the lock of the left one, `a`. So a
//!    thread that holds a leaf also keeps its right neighbour linked. A thread that goes left
//!    follows `prev` and checks that the `next` of that leaf leads back.
//! 7. A thread may block on a lock while it holds others only if it is the one thread that holds
//!    `holders_of_many`: a removal of a range, or a scan that writers have disturbed too often. Any
//!    other thread tries the lock; if it is held, the thread releases all its locks and starts
//!    over.
//! 8. A thread follows a pointer only if it has validated the node that contains the pointer after
//!    it read the pointer. Unlinked nodes, records and values go to the tree's collector, each from
//!    the thread that unlinked it.
//! 9. User code (clones, byte forms, closures) runs before the first change of an operation or
//!    after the last. If it panics, the operation has happened as a whole or not at all.
//!
//! # Unlike the paper
//!
//! - Where keys have no fixed length, a slice is seven bytes and their count, so that it is unique
//!   in its layer. The paper keeps lengths beside slices and lets up to ten entries share one.
//! - Records have the full keys; the paper keeps suffixes in a bag of the leaf. Keys are values of
//!   a Rust type here, and scans show them by reference. A key without a suffix costs nothing for
//!   it.
//! - Sparse leaves are merged, and a layer with one key left is folded into the leaf above. In the
//!   paper only empty leaves and layers go, the latter by a background task.
//! - Scans and removals of ranges are atomic.
//!
//! # Consistency
//!
//! All operations are linearizable, except `range` (each batch is), `len` and `shape`. A lookup
//! writes nothing and locks nothing. A scan notes the version of each leaf that it visits and
//! validates all of them at its end; if writers keep disturbing it, it locks the leaves (counted as
//! `locked_scans`).
//!
//! # When to use it
//!
//! For strings with long common prefixes, looked up, inserted and scanned by many threads at once:
//! the cost of a lookup hardly depends on the length of the common prefix, and insertions do not
//! disturb lookups. For point operations on integers only, a radix tree ([`Art`](crate::Art)) takes
//! fewer steps; for scans only, take [`OlcBTree`](crate::OlcBTree) with its wide leaves. If a
//! writer is descheduled while it holds the lock of a leaf, all other writers of that leaf wait.
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

/// The capacity of a node in entries or separators, in the default configuration: as many as the
/// permutation word can order.
pub const DEFAULT_WIDTH: usize = if cfg!(any(loom, shuttle)) {
    3
} else {
    order::MOST
};

/// A concurrent ordered map for keys with a byte form: a trie of B+trees. See the
/// [module](self) for how it works, and for when to use it.
///
/// `WIDTH`, from 3 to 15, is the capacity of a leaf. Less than the default is for tests, which need
/// nodes that split and merge often.
///
/// Point operations take O(log n) steps in each layer. A key of *l* bytes has at most *l* / 7
/// layers (*l* / 8 if all keys are of one length). A scan takes that plus O(1) per entry. A range
/// removal locks all leaves of the range.
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
    /// Held by a thread that may block on the lock of a leaf while it holds another leaf.
    holders_of_many: Mutex<()>,
    len: CachePadded<StripedCounter>,
    restarts: StripedCounter,
    counters: Counters,
    /// Invariant in both: a shared reference can insert.
    entry: PhantomData<AtomicPtr<(K, V)>>,
    /// Frees what was unlinked. The last field, so that it is dropped last.
    collector: Collector,
}

impl<K: ByteKey, V: Storable> Masstree<K, V> {
    /// An empty tree of nodes of the default width. A tree of other nodes is made by
    /// [`default`](Default::default).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: ByteKey, V: Storable, const WIDTH: usize> Masstree<K, V, WIDTH> {
    /// A tree of these entries, whose keys ascend strictly. Each entry is appended, so leaves
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
    /// assert_eq!(unsorted.err().map(|error| error.position), Some(1));
    /// # Ok::<(), NotSorted>(())
    /// ```
    pub fn from_sorted(entries: impl IntoIterator<Item = (K, V)>) -> Result<Self, NotSorted> {
        let tree = Self::default();
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
