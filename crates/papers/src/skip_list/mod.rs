//! A lock-free skip list.
//!
//! ```text
//! level 2   base ───────────────────────────> 30 ──────────────────────> end
//! level 1   base ──────> 10 ────────────────> 30 ──────> 40 ───────────> end
//! level 0   base ──> 5 ─> 10 ──> 20 ──> 25 ─> 30 ──> 35 ─> 40 ──> 50 ──> end
//! ```
//!
//! Every entry is a node of its own, with a *tower* of links: on level 0 it follows all nodes in
//! the order of their keys, on each level above about every second of those below. A search
//! begins on the highest level and goes down where the next key would be too great: O(log n)
//! expected.
//!
//! # When to take it, and when not
//!
//! Threads that insert and remove next to one another hardly meet: an insertion writes one link,
//! a removal one, and nothing is ever moved, split or rebalanced, so the worst time of an
//! operation is close to its usual one. For all else take another engine: a search misses the
//! cache once for nearly every node that it looks at, a scan once an entry, where a B+tree has
//! a whole leaf of entries in a row; and scans are not of one moment.
//!
//! # Consistency
//!
//! The operations on one key, `insert`, `insert_if_absent`, `remove`, `update`, `get`, are
//! linearizable; lookups wait for nobody and write nothing shared. `first`, `last`, `next` and
//! `prev` give the neighbour that there was at one moment of the call, with a value that it had
//! during the call. `pop_first` and `pop_last` remove an entry that was the first or last at one
//! moment of the call, each entry once. `scan`, `range` and `remove_range` go from entry to entry:
//! in order, without duplicates, and none that is there throughout is missed, but not of one
//! moment. `snapshot` gives `None`.
//!
//! # Invariants
//!
//! 1. On every level the keys of unmarked nodes ascend strictly from the base to the end. A node
//!    with a link on a level is reachable on level 0, or was removed.
//! 2. A removed node's links are marked, highest level first, and then never change. So a link
//!    that is not marked says that its node was on all levels below at that time.
//! 3. A lookup goes down the tower of a node only if the link that it came by was not marked: at
//!    that time the node was on level 0. Whatever lay behind it then, and stays, can be reached
//!    from it for ever, through other removed nodes perhaps. So lookups never start again. A
//!    search that is to change links does, when it meets a marked one where it wants to.
//! 4. An entry is there from the moment that its node is linked on level 0 (a vacant one: that it
//!    is filled) until its `REMOVED` bit is set. Both, and a change of its value, are made under
//!    the entry's own lock, or before anybody can see the node.
//! 5. A node is kept by every level that it is linked on or that its builder has yet to link it
//!    on, and by a task of the list's own thread that is to unlink it. Its state counts these. On
//!    each level one exchange of the link in front of it links it, and one unlinks it. The thread
//!    that takes away the last keeper retires the node.
//! 6. A thread that pins after a node was retired never comes to it. On a level the thread comes
//!    only to nodes that were linked there at some time since it pinned: a link that is not marked
//!    is that of a linked node, a marked one is as it was when its node was last linked, and it
//!    goes down only by a link that is not marked (invariant 2).
//!
//! None but the first of these depends on what `K::cmp` and the heads say. The builder (the
//! inserter, or the list's own thread) and the remover of a node each end with a step that tells
//! which of them ends second. That thread searches for the node, and so unlinks it everywhere. If
//! the order of keys is not one, or a comparison panics, the search may miss the node. Then it
//! stays linked, and is kept, until another search comes by or the list is dropped.
//!
//! Sources: Pugh, "Skip lists", CACM 1990; Harris, "A pragmatic implementation of non-blocking
//! linked-lists", DISC 2001; Fraser, "Practical lock-freedom", 2004, section 4.3.3.

mod background;
mod edit;
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

/// How many threads draw the heights of towers without sharing a seed.
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

    /// Checks invariant 5 of a quiescent list, and returns the keys of the nodes that are linked on
    /// each level.
    ///
    /// # Panics
    ///
    /// A node is not kept by as many levels as it is linked on.
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
    /// Where the levels begin: a tower without a node, whose links are never marked.
    base: CachePadded<[AtomicPtr<Node<S>>; MOST_LEVELS]>,
    /// The height of the highest tower ever built.
    levels: CachePadded<AtomicUsize>,
    len: StripedCounter,
    /// What the heights of towers are drawn with.
    seeds: [CachePadded<AtomicU64>; SEEDS],
    /// Whether removed nodes may be linked above the lowest level though nobody will search for
    /// them any more. With keys that are ordered, and comparisons that do not panic, there are none.
    strays: AtomicBool,
    /// What the list's own thread is to do, if it has one.
    backlog: Option<Box<Backlog<S>>>,
    /// What has been unlinked.
    collector: Collector,
}

// SAFETY: the list owns its nodes, and shares keys and values between threads: they are `Send`
// and `Sync`.
unsafe impl<S: Spec> Send for List<S> {}
// SAFETY: as above; everything else is atomics and locks.
unsafe impl<S: Spec> Sync for List<S> {}

impl<S: Spec> List<S> {
    fn new(backlog: Option<Box<Backlog<S>>>) -> Self {
        Self {
            base: CachePadded::new(array::from_fn(|_| AtomicPtr::new(ptr::null_mut()))),
            levels: CachePadded::new(AtomicUsize::new(1)),
            len: StripedCounter::new(),
            // Any numbers but 0 will do.
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
        // A stray may be linked on any of its levels, and is freed on the lowest of these.
        let levels = if self.strays.load(Relaxed) {
            MOST_LEVELS
        } else {
            1
        };
        for level in (0..levels).rev() {
            let mut link = self.base().load(level);
            // SAFETY: nobody else has the list. What is linked on the lowest level is freed there;
            // what is linked only above is kept by as many levels (invariant 5), and freed on the
            // last that this comes to. All other nodes have been retired, and go with the
            // collector.
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
