//! The lock-free contention-adapting search tree: immutable contents, replaced as a whole by one
//! compare-and-swap.
//!
//! Source: Winblad, Sagonas and Jonsson, "Lock-free contention adapting search trees", SPAA 2018.
//!
//! ```text
//!              route 50                 route nodes: a key, two links, a mark for joins
//!             /        \
//!        route 20      base C           base nodes: immutable; contents, statistics, what they
//!        /      \        |              have to do with a join or a query
//!     base A   base B    v
//!     [… 20)   [20 … 50) [50 …]         contents: an immutable B+tree of nodes with counts
//! ```
//!
//! An update follows the route nodes to a base node, makes a tree that differs from its contents by
//! an entry (a leaf and the path to it are new, all else is shared), and replaces the base node by
//! one with that tree, by a compare-and-swap on the link to it. If another thread was faster it
//! starts again. How often that happens is what the statistics tell, which a base node hands on to
//! the next. Above a limit it is *split* in two under a new route node; below another it is
//! *joined* with its neighbour, and the route node between them disappears.
//!
//! # When to take it, and when not
//!
//! For long scans, and for snapshots, while others write: neither ever waits for writers, nor keeps
//! them waiting, and a [snapshot](LfcaTree::capture) costs a compare-and-swap a base node, however
//! many entries there are. The price is that an update allocates and copies a leaf and its path:
//! where scans are short, [`CaTree`](crate::CaTree) updates faster, and many times faster where
//! there are more threads than cores. A thread that is preempted in the middle of an operation
//! holds the epoch, what the others replace meanwhile piles up, and their copies go to memory that
//! no cache has.
//!
//! # Consistency
//!
//! All operations are linearizable, except `range` (each batch is), `len` and `shape`. Lookups are
//! wait-free and write nothing shared. Scans, `first`, `last`, `next` and `prev` write nothing
//! shared either, unless they keep meeting changes: then they freeze (`ranges`) their range, in
//! which others help. All other operations are lock-free, with two exceptions: while the closure
//! of an `update` runs, changes of its base node wait (lookups and scans do not); and a `pop` that
//! finds its end of the tree empty waits for a join that another thread is in the middle of.
//!
//! # Invariants
//!
//! 1. A route node's key is above all keys to its left and at or below all keys to its right. It
//!    never changes.
//! 2. A base node never changes, and is linked once: there is no way back to an old one. The range
//!    of keys that it is responsible for does not change while it is linked. Whoever is pinned and
//!    finds it linked at two moments knows its range's contents throughout.
//! 3. A base node is linked by its `parent`, or is the root. It is linked no longer than that is.
//! 4. A base node is replaced only if its role allows it (`BaseNode::is_replaceable`): it is not
//!    part of a join that is under way, of a query that is, or held by an `update`. Once allowed,
//!    this stays so. Whoever is kept from replacing one helps (`LfcaTree::help`) first.
//! 5. The link to a route node changes only by the join that it is marked with, and never again
//!    after: that mark is never taken away. So what is below a marked route node, or beside it,
//!    stays there while the join is under way, but for base nodes.
//! 6. A descent may pass route nodes that are being unlinked. The base node that it ends at was
//!    linked at some moment meanwhile, but the boundaries that it passed may be too narrow, for a
//!    join may have moved them outwards. Whoever goes on at such a boundary comes to the same base
//!    node again.
//! 7. Between commit and end of a join its parts are not all there is in their ranges, or more:
//!    they are not readable (`BaseNode::is_readable`), but for lookups, which look for one key.
//! 8. Unlinked nodes go to the tree's collector: a thread that is pinned may still read them. Nodes
//!    of contents are shared by trees and snapshots, and have counts: see `contents`. A thread that
//!    is alone in the tree when its operation is done frees at once what it has unlinked, so that
//!    the value that it removed is its own.

mod adapt;
mod contents;
mod descend;
mod map;
mod node;
mod ranges;
mod snapshot;
mod update;

pub use snapshot::Snapshot;

use crate::contract::{KeyRange, Storable};
use crate::key::{ByteHead, KeyHead};
use crate::kit::{Packed, Parameters, Spec};
use adapt::Adaptations;
use contents::Root;
use node::{BaseNode, Link, Node, Role, allocate};
use tremula_sync::StripedCounter;
use tremula_sync::reclaim::Collector;

/// How an [`LfcaTree`] adapts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LfcaTreeConfig {
    /// What the statistics of a base node change by when an update met another there. The paper's
    /// value is 250.
    pub contended: i32,
    /// What they change by when it did not. The paper's value is −1.
    pub uncontended: i32,
    /// A base node whose statistics are above this is split. The paper's value is 1000.
    pub split_above: i32,
    /// A base node whose statistics are below this is joined. The paper's value is −1000.
    pub join_below: i32,
    /// By how much a query that had to freeze several base nodes lowers the statistics of each: a
    /// tree that is used for long ranges stays coarse. The paper's value is 100.
    pub range_discount: i32,
    /// Route nodes on the longest path; a base node below that many is not split.
    pub max_route_depth: usize,
}

impl Default for LfcaTreeConfig {
    fn default() -> Self {
        Self {
            contended: 250,
            uncontended: -1,
            split_above: 1000,
            join_below: -1000,
            range_discount: 100,
            max_route_depth: 16,
        }
    }
}

/// A lock-free ordered map that splits where it is fought over and joins where it is quiet. See
/// the [module](self) for how, and for when to use it.
///
/// `H` says where the heads of keys come from: [`ByteHead`] for keys with a byte form,
/// [`NoHead`](crate::key::NoHead) for those that can only be compared.
///
/// Point operations take O(log n), and split or join at most one base node, in O(log n).
///
/// ```
/// use tremula_index::{Direction, KeyRange, LfcaTree, OrderedIndex};
///
/// let tree = LfcaTree::<u64, String>::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let tree = &tree;
///         scope.spawn(move || {
///             for i in 0..1000 {
///                 tree.insert(i * 4 + thread, format!("from {thread}"));
///             }
///         });
///     }
/// });
/// assert_eq!(tree.len(), 4000);
/// assert_eq!(tree.next(&41).map(|(key, _)| key), Some(42));
/// ```
pub struct LfcaTree<K: Ord + Storable, V: Storable, H: KeyHead<K> = ByteHead> {
    tree: Tree<Parameters<K, V, H>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> LfcaTree<K, V, H> {
    /// An empty tree in the default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::with_config(LfcaTreeConfig::default())
    }

    /// An empty tree that adapts as `config` says.
    #[must_use]
    pub fn with_config(config: LfcaTreeConfig) -> Self {
        let tree = Tree::new(config);
        Self { tree }
    }

    /// The entries of `range` as they are at one moment of this call. Nothing is copied until it is
    /// read: O(base nodes), whatever the number of entries. Linearizable.
    ///
    /// ```
    /// use std::ops::{Bound, ControlFlow};
    /// use tremula_index::{Direction, KeyRange, LfcaTree, OrderedIndex};
    ///
    /// let tree = LfcaTree::<u64, u64>::new();
    /// (0..1000).for_each(|key| drop(tree.insert(key, key)));
    /// let upper = tree.capture(KeyRange::new(Bound::Included(&900), Bound::Unbounded));
    /// tree.insert(950, 0);
    /// let mut sum = 0;
    /// upper.range(KeyRange::all(), Direction::Ascending, |_, value| {
    ///     sum += value;
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(sum, (900..1000).sum());
    /// ```
    #[must_use]
    pub fn capture(&self, range: KeyRange<'_, K>) -> Snapshot<K, V, H> {
        let trees = if range.is_empty() {
            Vec::new()
        } else {
            self.tree.share_range(range, &self.tree.collector.pin())
        };
        Snapshot::new(range, trees)
    }

    /// Splits the base node that is responsible for `key`, if nobody is in the way and it has two
    /// entries.
    #[cfg(any(loom, shuttle))]
    pub fn split_now(&self, key: &K) {
        self.tree.split_now(key);
    }

    /// Joins the base node that is responsible for `key` with its neighbour, if nobody is in the
    /// way. Returns whether it did.
    #[cfg(any(loom, shuttle))]
    pub fn join_now(&self, key: &K) -> bool {
        self.tree.join_now(key)
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Default for LfcaTree<K, V, H> {
    fn default() -> Self {
        Self::new()
    }
}

/// The algorithm behind [`LfcaTree`].
struct Tree<S: Spec> {
    root: Link<S>,
    len: StripedCounter,
    config: LfcaTreeConfig,
    adaptations: Adaptations,
    /// What has been unlinked.
    collector: Collector,
}

// SAFETY: the tree owns its nodes, and shares keys and values between threads: they are `Send`
// and `Sync`.
unsafe impl<S: Spec> Send for Tree<S> {}
// SAFETY: as above; nodes are immutable but for atomics.
unsafe impl<S: Spec> Sync for Tree<S> {}

impl<S: Spec> Tree<S> {
    fn new(config: LfcaTreeConfig) -> Self {
        let base = allocate(Node::Base(BaseNode {
            contents: Root::EMPTY,
            statistics: 0,
            parent: None,
            role: Role::Normal,
        }));
        Self {
            root: Link::new(base.as_ptr()),
            len: StripedCounter::new(),
            config,
            adaptations: Adaptations::default(),
            collector: Collector::new(),
        }
    }

    /// The bytes that an entry has outside its node: key and value, where they are not words, and
    /// their counts.
    fn bytes_beside() -> usize {
        const COUNTS: usize = 2 * size_of::<usize>();
        let key = if S::HEAD_IS_KEY || Packed::<S::Key>::is_word() {
            0
        } else {
            size_of::<S::Key>() + COUNTS
        };
        let value = if Packed::<S::Value>::is_word() {
            0
        } else {
            size_of::<S::Value>() + COUNTS
        };
        key + value
    }
}

impl<S: Spec> Drop for Tree<S> {
    fn drop(&mut self) {
        let mut nodes = vec![self.root.load()];
        while let Some(node) = nodes.pop() {
            // SAFETY: what was unlinked goes with the collector. Nobody else has the tree. Each linked node came from a box and is linked
            // once; a linked base node has the count of its contents.
            unsafe {
                match node.as_ref() {
                    Node::Route(route) => nodes.extend([route.left.load(), route.right.load()]),
                    Node::Base(base) => drop(base.contents.own()),
                }
                node::free(node);
            }
        }
    }
}
