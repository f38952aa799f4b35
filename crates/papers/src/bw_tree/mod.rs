//! The OpenBw-Tree: nodes behind a table of addresses; writers change them by prepending deltas.
//!
//! ```text
//!            mapping table                         inner node (immutable, replaced as a whole)
//!   root ->  [ 0 | · ] ------------------------->  [ first child 1 | 40: 3 | 90: 2 ]
//!            [ 1 | · ] --> +insert 7 --> -delete 9 --> base [ 3 5 9 12 ]      leaf: deltas over
//!            [ 2 | · ] --> base [ 90 95 ]                                     a base node
//!            [ 3 | · ] --> ~update 41 --> base [ 40 41 55 ]
//!               |             |_____ in the area below the base node, claimed downward
//!               +-- id -> head of the chain, and a bit: held
//! ```
//!
//! Nodes refer to each other by *id*. To change a leaf, a writer makes a *delta*, prepends it to
//! the leaf's chain, and publishes it by one compare-and-swap on the leaf's word in the mapping
//! table. The writer whose delta makes the chain too long *consolidates* it: it replaces the chain
//! by a new base node with the same contents, or by two if these are too many. Each node has a link
//! to its right neighbour and a high fence, the key where that neighbour begins. So a node that has
//! been split is complete before its parent knows the new node: the first thread that follows the
//! link posts the separator to the parent.
//!
//! # When to use it, and when not
//!
//! Lookups wait for no writer and write nothing shared. So do scans, unless they keep meeting
//! changes. A writer waits only while another thread holds its leaf: for an `update`, a pop, a
//! range removal, a merge, or a scan that holds its leaves. Threads that all append at one end
//! compete for the head of one chain, until the leaf is *spread* over several; the gain on many
//! cores has not been measured. A scan first turns a spread leaf into one chain again, so the tree
//! does not suit an append storm with frequent reads of the last entry. For most other uses
//! [`OlcBTree`](tremula_index::OlcBTree) does the same in less time, as the paper found.
//!
//! # Consistency
//!
//! All operations are linearizable, except `range` (each leaf is as of one moment), `len` and
//! `shape`. A scan or snapshot notes the heads of the chains that it reads, and then reads the
//! heads again: if none has changed, there was a moment when the tree held all that it read. After
//! a few failures it holds the leaves. A range removal holds all leaves of the range, gives each of
//! them a *switch* between its contents before and after, and turns all switches by one store.
//!
//! # Invariants
//!
//! 1. A node's word is the head of its chain and the *held* bit. A thread changes it by
//!    compare-and-swap; only the holder may change a held word. A replaced word does not come back
//!    with other contents while a thread that saw it is pinned. The deltas of a merge are always
//!    heads of chains; only threads that help the merge replace them.
//! 2. A thread may wait for a held node only if it holds nothing, or only leaves to the left of
//!    that node. Otherwise it releases everything first.
//! 3. A node's level and low fence never change while its id is in use. The exception is the root,
//!    whose id is always 0. A node's high fence and right link change together.
//! 4. A node's right neighbour begins where the node ends. A node is merged away only into its left
//!    neighbour, only if one parent has the separator between the two, and only while the parent
//!    and both nodes are held, or the parent has an abort delta. So while a parent's word is
//!    unchanged, every node that was split off one of its children and that it does not know yet
//!    stays where it is.
//! 5. Each stored key came into the tree by one insertion and belongs to the node that has it; the
//!    deltas that update or delete it refer to the same key. A deleted key is freed with the chain
//!    that has the delta, so every key that a search compares in a chain lives as long as the
//!    chain. A value belongs to the writer whose delta replaced or deleted it. Fences and
//!    separators are separate copies. *None of this depends on comparisons*, which may lie. A
//!    search ends at the newest delta on the very key that it met, or at an entry of the base node
//!    that no delta overwrites (`View::find`). Children are identified by id, and separators are in
//!    the order of the links between their children; the newest delta of an inner node says how
//!    many there are (`inner.rs`). Offsets and words decide what a node contains; comparisons only
//!    sort it (`consolidate.rs`). So keys that lie get wrong answers, and cause no other harm.
//! 6. A chain goes to the epoch as a whole, after it was unlinked. Its id becomes free no earlier,
//!    and a page of the mapping table is freed when all its ids have been free for a while. So a
//!    pinned thread that has an id finds its word, though the table shrinks (`ids.rs` says why).
//!    Whatever is in the table is freed only through the epoch, whether linked or not.
//! 7. A node's word says where the base node is, so a reader need not read the delta in between: a
//!    base node begins at a cache line, and a delta in its area lies a known number of lines in
//!    front of it. A delta's bit is set in the base node's filter before the delta is published.
//! 8. A delta's `offset` is the number of keys of the base node below the delta's key, and
//!    `overwrites` says whether the base node has the same key there. So each delta that a lookup
//!    passes narrows the part of the base node that is left to search.
//! 9. A *split delta* says that its node ends at a key of the base node. The offset of another
//!    delta on that base node, and its `overwrites`, say on which side of the split it is, without
//!    a look at its key: the keys on the right belong to another node and may have been freed. The
//!    base node's own fence and right link hold only while the chain has no split delta.
//! 10. The word of a *spread leaf* leads to its base node; it is never held, and no delta is
//!     prepended to it. It is only replaced, after every sub-chain was frozen. All deltas on one
//!     key are in one sub-chain (`spread.rs`).
//! 11. User code (comparisons, clones, closures) runs before an operation's first change, after its
//!     last, or between the steps of a merge by deltas, which any thread can finish. If user code
//!     panics, the thread releases the nodes that it holds. `Drop` of keys and values that were in
//!     the tree runs when a guard is dropped, or a value that was handed out.
//! 12. A thread that holds a leaf and wants the next one follows the link if it goes right, and
//!     gives up after a while if it goes left. So no order of keys makes two threads wait for each
//!     other.
//!
//! Those that speak of the state of the tree are functions (`invariants.rs`).
//!
//! # What a lookup costs
//!
//! On each level a lookup reads the node's word, then the header with the *hints* (copies of each
//! sixteenth head), then one segment of sixteen heads and the values beside it. It skips the deltas
//! unless the *filter* in the header has the bit of its key; then it prefetches all of them at
//! once, since each delta leads to the next. Only at the leaf does it check whether a split has
//! moved its key. Hints and filter are not in the paper.
//!
//! [`BwTreeSwitches`] turns the optimisations off one by one. With all of them off, this is the
//! original Bw-tree.
//!
//! # What is different from the paper
//!
//! - A split also consolidates, so that keys never belong to two chains. A switch turns on split
//!   deltas instead. They save the copy of the left half only until its next write, because a chain
//!   that is split is as long as it may be; until then the left half keeps the memory of both. With
//!   them, inserts and lookups take more instructions.
//! - A merge holds the parent and both nodes, and replaces them in three steps without help from
//!   other threads. A switch turns on the paper's remove, merge and abort deltas instead;
//!   `steps.rs` has them, and the reasons why they work. Holding saves two more kinds of chain for
//!   readers, who would have to help where a node's entries are in two places, and the proofs of
//!   all states in between. Its cost: writers of the two nodes wait while these are copied, and
//!   longer if the holder is not running. Readers do not wait, and other threads post splits below
//!   the parent later. Merges are rare, one for some dozens of removals. With merge deltas,
//!   removals take more instructions; inserts and lookups do not. These deltas differ from the
//!   paper's, too: the merge delta comes before the remove delta, and a thread that takes a level
//!   away from the root holds the root and its only child.
//! - The mapping table is not reserved as a whole, and it shrinks: it consists of pages of 256 ids.
//!   Low ids are handed out first, and an empty page is given back; no thread waits for that. One
//!   id in use keeps its page, so after scattered removals the table has the pages of the nodes
//!   that are left.
//! - An inner node is replaced as a whole when a child is split. This copies a few kilobytes for
//!   each hundred inserts or so, a small part of their time. So inner nodes can be large, and the
//!   tree a level lower. A switch turns on deltas in inner nodes instead. Every operation that
//!   passes the node walks them, since the filter does not help a search for the nearest key, so
//!   inserts and lookups take more instructions. Unlike the paper's, they do not carry the next
//!   separator: their offsets in the base node say which of two is nearer.
//! - Chains are a third as long, leaves are twice as large, and the table of ids grows by segments.
//! - With the epochs of threads switched off, the tree has three epochs, in a ring.
//! - A leaf whose head is contended is spread over several chains, chosen by a hash of the key; the
//!   paper leaves such contention alone. Alternatives that were considered: Splitting the leaf
//!   early does not help appends, because all next keys go to the same half again. A winner that
//!   also links the losers' deltas would have to compare their keys and run their decisions, and
//!   the losers would wait for a thread that may not be running. Chains chosen by thread would hide
//!   an older value of a key in another chain. With chains chosen by key, each point operation
//!   stays one compare-and-swap on one word: lock-free, and linearizable as before.
//!
//! # Sources
//!
//! Levandoski, Lomet, Sengupta, "The Bw-Tree: a B-tree for new hardware platforms", ICDE 2013;
//! Wang, Pavlo, Lim, Leis, Zhang, Kaminsky, Andersen, "Building a Bw-Tree takes more than just buzz
//! words", SIGMOD 2018.

mod base;
mod consolidate;
mod descend;
mod free;
mod hold;
mod ids;
mod inner;
mod invariants;
mod map;
mod mapping_table;
mod merge;
mod multi_map;
mod node;
mod pending;
mod post;
mod ranges;
mod reclaim;
mod search;
mod shape;
mod spread;
mod steps;
mod switches;
mod word;
mod write;

pub use multi_map::BwMultiMap;
pub use switches::BwTreeSwitches;

use base::{BaseOptions, Draft, Fences, NO_NODE};
use free::FirstPanic;
use mapping_table::MappingTable;
use pending::Pending;
use reclaim::Reclamation;
use shape::Counters;
use std::marker::PhantomData;
use tremula_index::Storable;
use tremula_index::key::{ByteHead, KeyHead};
use tremula_index::kit::{self, Parameters, SearchKey, Spec};
use tremula_sync::atomic::AtomicPtr;
use tremula_sync::{StripedCounter, epoch};

const ROOT: usize = 0;

/// When a [`BwTree`] consolidates, splits and merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BwTreeConfig {
    /// A leaf with this many deltas is consolidated; its area has room for them. The paper's value
    /// is 24; with a third of that, lookups and scans are faster, writes are not slower, and leaves
    /// are smaller.
    pub leaf_chain: usize,
    /// A leaf that has more entries when it is consolidated is split. The paper's value is 128;
    /// with twice as many there are half as many nodes to keep in the cache, and less memory is
    /// used.
    pub leaf_split: usize,
    /// A leaf that has this many entries or fewer when it is consolidated is merged: a quarter of
    /// what it may have, as in the paper.
    pub leaf_merge: usize,
    /// A leaf is spread when it is consolidated if this many compare-and-swaps on it were lost. Of
    /// those lost before its last consolidation half count, of those before that a quarter, and so
    /// on: so the default stands for one lost in two writes. With 0, each leaf is spread that has
    /// more entries than [`leaf_merge`](Self::leaf_merge).
    pub leaf_contention: usize,
    /// A change to an inner node with this many deltas gives it a new base node; it has no deltas
    /// with [`whole_inner_nodes`](BwTreeSwitches::whole_inner_nodes). The paper's value is 2.
    pub inner_chain: usize,
    /// An inner node with more separators is split. The paper's value is 64; a greater one saves a
    /// level, and costs a larger copy each time a child is split.
    pub inner_split: usize,
    /// An inner node with this many separators or fewer is merged. The paper's value is 16.
    pub inner_merge: usize,
    /// Which optimisations are on.
    pub switches: BwTreeSwitches,
}

impl Default for BwTreeConfig {
    fn default() -> Self {
        if cfg!(any(loom, shuttle)) {
            return Self {
                leaf_chain: 2,
                leaf_split: 3,
                leaf_merge: 1,
                leaf_contention: 1,
                inner_chain: 1,
                inner_split: 3,
                inner_merge: 1,
                switches: BwTreeSwitches::ON,
            };
        }
        Self {
            leaf_chain: 8,
            leaf_split: 256,
            leaf_merge: 64,
            leaf_contention: 8,
            inner_chain: 8,
            inner_split: 256,
            inner_merge: 64,
            switches: BwTreeSwitches::ON,
        }
    }
}

impl BwTreeConfig {
    /// The nearest configuration that makes sense.
    fn sane(self) -> Self {
        let leaf_split = self.leaf_split.clamp(2, 1 << 20);
        let inner_split = self.inner_split.clamp(2, 1 << 20);
        Self {
            leaf_chain: self.leaf_chain.clamp(1, 1 << 10),
            leaf_split,
            leaf_merge: self.leaf_merge.min(leaf_split / 2),
            leaf_contention: self.leaf_contention.min(1 << 20),
            inner_chain: self.inner_chain.clamp(1, 1 << 10),
            inner_split,
            inner_merge: self.inner_merge.min(inner_split / 2),
            switches: self.switches,
        }
    }
}

/// An ordered map whose writers prepend deltas to leaves. See the [module](self) for how, and for
/// when to use it.
///
/// `H` says where the heads of keys come from: [`ByteHead`] for keys with a byte form,
/// [`NoHead`](tremula_index::key::NoHead) for those that can only be compared.
///
/// Point operations take O(log n); one in [`leaf_chain`](BwTreeConfig::leaf_chain) writes copies a
/// leaf.
///
/// ```
/// use tremula_index::{Direction, KeyRange, OrderedIndex};
/// use tremula_papers::BwTree;
///
/// let tree = BwTree::<u64, u64>::new();
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
/// ```
pub struct BwTree<K: Ord + Storable, V: Storable, H: KeyHead<K> = ByteHead> {
    tree: Tree<Parameters<K, V, H>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> BwTree<K, V, H> {
    /// An empty tree in the default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::with_config(BwTreeConfig::default())
    }

    /// An empty tree that consolidates, splits and merges as `config` says; unreasonable values are
    /// replaced by the nearest reasonable ones.
    #[must_use]
    pub fn with_config(config: BwTreeConfig) -> Self {
        let tree = Tree::new(config);
        Self { tree }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Default for BwTree<K, V, H> {
    fn default() -> Self {
        Self::new()
    }
}

type Position<'k, S> = kit::Position<SearchKey<'k, S>>;

/// The algorithm behind [`BwTree`].
struct Tree<S: Spec> {
    table: MappingTable,
    reclamation: Reclamation,
    len: StripedCounter,
    config: BwTreeConfig,
    /// Whether there may be deltas in inner nodes, or deltas that move a fence.
    has_deltas_on_the_way: bool,
    counters: Counters,
    pending: Pending,
    /// Invariant in `S`: a shared reference can insert.
    entries: PhantomData<AtomicPtr<S>>,
}

// SAFETY: the tree owns its nodes, and shares keys and values between threads: they are `Send`
// and `Sync`.
unsafe impl<S: Spec> Send for Tree<S> {}
// SAFETY: as for `Send`; nodes are immutable but for atomics and what a claim gives to one thread.
unsafe impl<S: Spec> Sync for Tree<S> {}

impl<S: Spec> Tree<S> {
    fn new(config: BwTreeConfig) -> Self {
        let config = config.sane();
        let tree = Self {
            table: MappingTable::new(),
            reclamation: Reclamation::new(config.switches.local_epochs),
            len: StripedCounter::new(),
            config,
            has_deltas_on_the_way: !config.switches.whole_inner_nodes
                || !config.switches.whole_splits,
            counters: Counters::default(),
            pending: Pending::default(),
            entries: PhantomData,
        };
        let root = tree.table.allocate();
        debug_assert_eq!(root, ROOT, "the first id is the root's");
        let fences = Fences {
            level: 0,
            low: None,
            high: None,
            right: NO_NODE,
            first_child: NO_NODE,
        };
        let leaf = Draft::<S>::new(fences, 0, tree.options(0));
        tree.table.store(root, leaf.word());
        leaf.give();
        tree
    }

    /// What a base node of a level has besides its entries.
    fn options(&self, level: u32) -> BaseOptions {
        let switches = self.config.switches;
        let chain = match level {
            0 => self.config.leaf_chain,
            _ if switches.whole_inner_nodes => 0,
            _ => self.config.inner_chain,
        };
        // A split delta takes one place more.
        let slots = chain + usize::from(!switches.whole_splits && chain > 0);
        BaseOptions {
            slots: if switches.preallocation { slots } else { 0 },
            is_spread: false,
            contention: 0,
            switches,
        }
    }

    fn split_above(&self, level: u32) -> usize {
        if level == 0 {
            self.config.leaf_split
        } else {
            self.config.inner_split
        }
    }

    fn merge_below(&self, level: u32) -> usize {
        if level == 0 {
            self.config.leaf_merge
        } else {
            self.config.inner_merge
        }
    }
}

impl<S: Spec> Drop for Tree<S> {
    fn drop(&mut self) {
        let mut panic = FirstPanic::default();
        let guard = self.reclamation.pin();
        for word in self.table.heads(&epoch::pin()) {
            if !word.is_none() {
                // SAFETY: nobody else has the tree, and each node is in the table once. If a helper
                // panicked in the middle of a merge, the merge's deltas say which node the entries
                // belong to.
                unsafe { free::free_node::<S>(word, &guard, &mut panic) };
            }
        }
        drop(guard);
        panic.resume();
    }
}
