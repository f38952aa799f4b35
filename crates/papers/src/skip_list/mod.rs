//! A lock-free skip list.
//!
//! ```text
//! level 2   base ───────────────────────────> 30 ──────────────────────> end
//! level 1   base ──────> 10 ────────────────> 30 ──────> 40 ───────────> end
//! level 0   base ──> 5 ─> 10 ──> 20 ──> 25 ─> 30 ──> 35 ─> 40 ──> 50 ──> end
//! ```
//!
//! Every entry is a node of its own with a *tower* of links. Level 0 links all nodes in the order
//! of their keys. Each higher level links about every second node of the level below. A search
//! begins on the highest level and goes down where the next key is too great: expected O(log n).
//!
//! # When to take it, and when not
//!
//! Threads that insert and remove next to each other rarely conflict: an insertion writes one link,
//! a removal one, and nothing is ever moved, split or rebalanced. So the worst time of an operation
//! is close to its usual one. For all else take another engine: a search misses the cache about
//! once for each node that it visits and a scan once for each entry, where a B+tree has a whole
//! leaf of entries in a row. Scans are not of one moment.
//!
//! # Consistency
//!
//! The operations on one key, `insert`, `insert_if_absent`, `remove`, `update` and `get`, are
//! linearizable. Lookups wait for no other thread and write nothing shared. `first`, `last`, `next`
//! and `prev` return an entry that was the neighbour at one moment of the call, with a value that
//! it had during the call. `pop_first` and `pop_last` remove an entry that was the first or last at
//! one moment of the call, each entry once. `scan`, `range` and `remove_range` go from entry to
//! entry, in order and without duplicates. They miss no entry that is present during the whole
//! call, but are not of one moment. `snapshot` returns `None`.
//!
//! # Invariants
//!
//! 1. On every level the keys of the nodes whose link is not marked ascend strictly. A node that is
//!    linked on some level is linked on level 0, or removed.
//! 2. The links of a removed node are marked, the highest level first. A marked link never changes.
//!    So a link that is not marked shows that its node was linked on all levels below at that time.
//! 3. A lookup goes down the tower of a node only if it read the node's link on the upper level
//!    unmarked: at that time the node was on level 0. Every node that was behind it then and is not
//!    removed stays reachable from it, if necessary through other removed nodes. So lookups never
//!    restart. A search that changes links restarts if a link that it wants to change is marked.
//! 4. An entry is present from the moment when its node is linked on level 0 (for a vacant node: is
//!    filled) until its `REMOVED` bit is set. A thread fills or removes an entry, or changes its
//!    value, only while it holds the entry's lock, or before other threads can see the node.
//! 5. The state of a node counts its *keepers*: the levels that it is linked on, the levels that
//!    its builder has yet to link it on, and the tasks of the list's own thread that will unlink
//!    it. On each level, one exchange of the link in front of the node links it, and one unlinks
//!    it. The thread that takes away the last keeper retires the node.
//! 6. A thread that pins after a node was retired never reaches it. On each level the thread
//!    reaches only nodes that were linked there at some time since it pinned: an unmarked link
//!    belongs to a linked node, a marked link is as it was when its node was last linked, and the
//!    thread goes down only by an unmarked link (invariant 2).
//!
//! Only the first invariant depends on what `K::cmp` and the heads say. The builder of a node (the
//! inserter, or the list's own thread) and its remover each end with a step that shows which of
//! them ends second. That thread searches for the node, and so unlinks it on every level. If the
//! order of keys is inconsistent, or a comparison panics, the search may miss the node. Then the
//! node stays linked, and kept, until another search passes it or the list is dropped.
//!
//! Sources: Pugh, "Skip lists", CACM 1990; Harris, "A pragmatic implementation of non-blocking
//! linked-lists", DISC 2001; Fraser, "Practical lock-freedom", 2004, section 4.3.3.

mod background;
mod edit;
mod invariants;
mod map;
mod node;
mod search;

pub use background::BackgroundSkipList;
use background::Backlog;
use node::{MOST_LEVELS, Node};
use std::array;
use std::ptr;
use tremula_index::Storable;
use tremula_index::key::{ByteHead, KeyHead};
use tremula_index::kit::{Parameters, Spec};
use tremula_sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};
use tremula_sync::reclaim::Collector;
use tremula_sync::{CachePadded, StripedCounter};

/// The number of seeds for the heights of towers. Threads are spread over them.
const SEEDS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

/// A lock-free ordered map. See the [module](self) for when to use it.
///
/// `H` says where the heads of keys come from: [`ByteHead`] for keys with a byte form,
/// [`NoHead`](tremula_index::key::NoHead) for those that can only be compared.
///
/// ```
/// use tremula_index::OrderedIndex;
/// use tremula_papers::SkipList;
///
/// let index = SkipList::<u32, &'static str>::new();
/// index.insert(2, "two");
/// index.insert(1, "one");
/// assert_eq!(index.first(), Some((1, "one")));
/// ```
pub struct SkipList<K: Ord + Storable, V: Storable, H: KeyHead<K> = ByteHead> {
    list: List<Parameters<K, V, H>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> SkipList<K, V, H> {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        let list = List::new(None);
        Self { list }
    }

    /// Checks invariants 1 and 5 of a list at rest, except the order of keys, and returns the keys
    /// of the nodes linked on each level.
    ///
    /// # Panics
    ///
    /// One of the two does not hold.
    #[cfg(loom)]
    pub fn linked_keys(&self) -> [Vec<K>; MOST_LEVELS] {
        self.list.linked_keys()
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Default for SkipList<K, V, H> {
    fn default() -> Self {
        Self::new()
    }
}

/// The algorithm behind [`SkipList`].
struct List<S: Spec> {
    /// The beginning of each level: a tower without a node, whose links are never marked.
    base: CachePadded<[AtomicPtr<Node<S>>; MOST_LEVELS]>,
    /// The height of the highest tower ever built.
    levels: CachePadded<AtomicUsize>,
    len: StripedCounter,
    /// The states of the random generators for the heights of towers.
    seeds: [CachePadded<AtomicU64>; SEEDS],
    /// Whether removed nodes may be linked above the lowest level although no thread will search
    /// for them any more. That takes keys without a consistent order, or comparisons that panic.
    strays: AtomicBool,
    /// The tasks of the list's own thread, if it has one.
    backlog: Option<Box<Backlog<S>>>,
    /// Frees unlinked nodes and values.
    collector: Collector,
}

// SAFETY: the list owns its nodes and shares keys and values between threads; these are `Send` and
// `Sync`.
unsafe impl<S: Spec> Send for List<S> {}
// SAFETY: shared keys and values are `Sync`; everything else is atomics and locks.
unsafe impl<S: Spec> Sync for List<S> {}

impl<S: Spec> List<S> {
    fn new(backlog: Option<Box<Backlog<S>>>) -> Self {
        Self {
            base: CachePadded::new(array::from_fn(|_| AtomicPtr::new(ptr::null_mut()))),
            levels: CachePadded::new(AtomicUsize::new(1)),
            len: StripedCounter::new(),
            // Any numbers except 0.
            seeds: array::from_fn(|index| {
                let seed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                CachePadded::new(AtomicU64::new(seed))
            }),
            strays: AtomicBool::new(false),
            backlog,
            collector: Collector::new(),
        }
    }
}

impl<S: Spec> Drop for List<S> {
    fn drop(&mut self) {
        // A stray may be linked on any of its levels. It is freed on the lowest of these.
        let levels = if self.strays.load(Relaxed) {
            MOST_LEVELS
        } else {
            1
        };
        for level in (0..levels).rev() {
            let mut link = self.base().load(level);
            // SAFETY: no other thread has the list. A node that is linked on the lowest level is
            // freed there. A node that is linked only above has as many keepers as levels
            // (invariant 5), and is freed on the last of them. All other nodes have been retired,
            // and are freed with the collector.
            unsafe {
                while let Some(node) = link.node() {
                    let next = node.tower().load(level).unmarked();
                    if level == 0 || node.release() {
                        link.free();
                    }
                    link = next;
                }
            }
        }
    }
}
