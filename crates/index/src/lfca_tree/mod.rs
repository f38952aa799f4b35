//! The lock-free contention-adapting search tree: a compare-and-swap replaces the immutable
//! contents of a base node as a whole.
//!
//! Source: Winblad, Sagonas and Jonsson, "Lock-free contention adapting search trees", SPAA 2018.
//!
//! ```text
//!              route 50                 route nodes: a key, two links, a mark for joins
//!             /        \
//!        route 20      base C           base nodes: immutable; contents, statistics, and their
//!        /      \        |              role in a join or a query
//!     base A   base B    v
//!     [… 20)   [20 … 50) [50 …]         contents: an immutable B+tree of nodes with counts
//! ```
//!
//! An update follows the route nodes to a base node and makes a tree that differs from its contents
//! by one entry: a leaf and the path to it are new, and the rest is shared. A compare-and-swap on
//! the link to the base node then replaces it by a new one with that tree. If another thread was
//! faster, the update starts again. The statistics of a base node count how often this happens, and
//! pass from a base node to the one that replaces it. A base node whose statistics exceed a limit
//! is *split* in two under a new route node. One whose statistics fall below another limit is
//! *joined* with its neighbour, and the route node between them is unlinked.
//!
//! # When to use it, and when not
//!
//! For long scans, and for snapshots, while other threads write: neither waits for writers or makes
//! them wait. A [snapshot](LfcaTree::capture) costs one compare-and-swap for each base node,
//! whatever the number of entries. The price: an update allocates and copies a leaf and its path.
//! Where scans are short, [`CaTree`](crate::CaTree) updates faster, and much faster if there are
//! more threads than cores. A thread that is preempted during an operation holds back the epoch:
//! the memory that other threads replace meanwhile is not freed, and their copies go to memory that
//! is in no cache.
//!
//! # Consistency
//!
//! All operations are linearizable, except `range` (each batch is), `len` and `shape`. Lookups are
//! wait-free and write nothing shared. Scans, `first`, `last`, `next` and `prev` write nothing
//! shared either, unless they keep meeting changes: then they freeze their range (`ranges`), and
//! other threads help them. All other operations are lock-free, with two exceptions. While the
//! closure of an `update` runs, changes of its base node wait (lookups and scans do not). A `pop`
//! that finds an empty base node at its end of the tree waits for a join that another thread has
//! begun.
//!
//! # Invariants
//!
//! Those that speak of the state of a tree are functions (`invariants`).
//!
//! 1. The key of a route node is above all keys to its left, and at or below all keys to its right.
//!    It never changes.
//! 2. A base node never changes, and is linked only once: no link leads back to an old one. The
//!    range of keys that it is responsible for does not change while it is linked. So a pinned
//!    thread that finds a base node linked at two moments knows the contents of its range at all
//!    moments between.
//! 3. A base node is linked by its `parent`, or is the root if it has none. It is not linked longer
//!    than its parent is.
//! 4. A base node is replaced only if its role allows it (`BaseNode::is_replaceable`): it is not
//!    part of a join or of a query that is under way, and no `update` holds it. Once a role allows
//!    replacement, it always does. A thread that must replace a base node whose role does not allow
//!    it helps first (`Tree::help`).
//! 5. The link to a route node changes only by the join that the route node is marked with, and by
//!    no later one: that mark is never removed. So while a join is under way, the route nodes below
//!    and beside a marked route node stay; only base nodes change.
//! 6. A descent may pass route nodes that are being unlinked. The base node at its end was linked
//!    at some moment during the descent, but the boundaries that the descent passed may be too
//!    narrow, because a join may have moved them outwards. A thread that goes on at such a boundary
//!    comes to the same base node again.
//! 7. Between the commit and the end of a join, its base nodes may hold too little or too much for
//!    their ranges. They are not readable then (`BaseNode::is_readable`), except for lookups, which
//!    need only one key.
//! 8. Unlinked nodes go to the collector of the tree, because a pinned thread may still read them.
//!    Nodes of contents are shared by trees and snapshots, and have counts: see `contents`. If a
//!    thread is alone in the tree at the end of its operation, it frees at once what it has
//!    unlinked, so that it owns the value that it removed.

mod adapt;
mod contents;
mod descend;
mod invariants;
mod map;
mod node;
mod ranges;
mod snapshot;
mod update;

pub use snapshot::Snapshot;

use crate::contract::{KeyRange, Storable};
use crate::key::{ByteHead, ByteKey, KeyHead};
use crate::kit::{Packed, Parameters, Spec};
use adapt::Adaptations;
use contents::Root;
use node::{BaseNode, Link, Node, Role, allocate};
use tremula_sync::StripedCounter;
use tremula_sync::reclaim::Collector;

/// How an [`LfcaTree`] adapts.
///
/// ```
/// use tremula_index::LfcaTree;
/// use tremula_index::lfca_tree::LfcaTreeConfig;
///
/// let fine = LfcaTreeConfig::default().split_above(100).max_route_depth(20);
/// let tree = LfcaTree::<u64, u64>::with_config(fine);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LfcaTreeConfig {
    /// The change of a base node's statistics when an update meets another there. The paper's value
    /// is 250.
    pub contended: i32,
    /// Their change when an update meets no other. The paper's value is −1.
    pub uncontended: i32,
    /// A base node whose statistics are above this is split. The paper's value is 1000.
    pub split_above: i32,
    /// A base node whose statistics are below this is joined. The paper's value is −1000.
    pub join_below: i32,
    /// A query that freezes several base nodes lowers the statistics of each by this: a tree that
    /// is used for long ranges stays coarse. The paper's value is 100.
    pub range_discount: i32,
    /// The most route nodes on a path: a base node below that many is not split.
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

impl LfcaTreeConfig {
    /// Sets the change of a base node's statistics when an update meets another there.
    #[must_use]
    pub const fn contended(mut self, contended: i32) -> Self {
        self.contended = contended;
        self
    }

    /// Sets the change of a base node's statistics when an update meets no other.
    #[must_use]
    pub const fn uncontended(mut self, uncontended: i32) -> Self {
        self.uncontended = uncontended;
        self
    }

    /// Sets the statistics above which a base node is split.
    #[must_use]
    pub const fn split_above(mut self, split_above: i32) -> Self {
        self.split_above = split_above;
        self
    }

    /// Sets the statistics below which a base node is joined.
    #[must_use]
    pub const fn join_below(mut self, join_below: i32) -> Self {
        self.join_below = join_below;
        self
    }

    /// Sets by how much a query that freezes several base nodes lowers the statistics of each.
    #[must_use]
    pub const fn range_discount(mut self, range_discount: i32) -> Self {
        self.range_discount = range_discount;
        self
    }

    /// Sets the most route nodes on a path.
    #[must_use]
    pub const fn max_route_depth(mut self, max_route_depth: usize) -> Self {
        self.max_route_depth = max_route_depth;
        self
    }
}

/// A lock-free ordered map that splits where it is contended and joins where it is not. See the
/// [module](self) for how it works, and for when to use it.
///
/// `H` says where the heads of keys come from: [`ByteHead`] for keys with a byte form,
/// [`NoHead`](crate::key::NoHead) for those that can only be compared.
///
/// Point operations take O(log n). Each splits or joins at most one base node, in O(log n).
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

impl<K: ByteKey, V: Storable> LfcaTree<K, V> {
    /// An empty tree in the default configuration, for keys with a byte form. A tree of other keys,
    /// with [`NoHead`](crate::key::NoHead) say, is made by [`default`](Default::default).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> LfcaTree<K, V, H> {
    /// An empty tree that adapts as `config` says.
    #[must_use]
    pub fn with_config(config: LfcaTreeConfig) -> Self {
        let tree = Tree::new(config);
        Self { tree }
    }

    /// The entries of `range` as they are at one moment during this call. Copies no entry:
    /// O(base nodes), whatever the number of entries. Linearizable.
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

    /// Splits the base node that is responsible for `key`, if it has two entries and no other
    /// thread interferes.
    #[cfg(any(loom, shuttle))]
    pub fn split_now(&self, key: &K) {
        self.tree.split_now(key);
    }

    /// Joins the base node that is responsible for `key` with its neighbour, if no other thread
    /// interferes. Returns whether it did.
    #[cfg(any(loom, shuttle))]
    pub fn join_now(&self, key: &K) -> bool {
        self.tree.join_now(key)
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Default for LfcaTree<K, V, H> {
    fn default() -> Self {
        Self::with_config(LfcaTreeConfig::default())
    }
}

/// The algorithm behind [`LfcaTree`].
struct Tree<S: Spec> {
    root: Link<S>,
    len: StripedCounter,
    config: LfcaTreeConfig,
    adaptations: Adaptations,
    /// Frees what has been unlinked.
    collector: Collector,
}

// SAFETY: the tree owns its nodes. Threads share its keys and values, which are `Send` and `Sync`.
unsafe impl<S: Spec> Send for Tree<S> {}
// SAFETY: as for `Send`; and shared nodes change only through atomics.
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

    /// The bytes of an entry outside its node: key and value, where they are not words, and their
    /// counts.
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
            // SAFETY: no other thread has the tree. Each linked node came from a box and is linked
            // once, and a linked base node owns a count of its contents. The collector frees what
            // was unlinked.
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
