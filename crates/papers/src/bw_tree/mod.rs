//! The OpenBw-Tree: nodes behind a table of addresses, changed by prepending records to them.
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
//! Nodes know each other by *id*. A writer makes a *delta* that says what it changes, prepends it
//! to the leaf's chain, and publishes it by one compare-and-swap on the leaf's word in the mapping
//! table. Whoever makes a chain too long *consolidates* it: a new base node with all of it takes
//! its place, split in two if there is too much in it. Leaves and inner nodes have a link to the
//! right and a fence, the key where what is on the right begins. So a node that has been split is
//! complete before its parent knows: whoever passes by that link posts the separator.
//!
//! # When to take it, and when not
//!
//! Lookups wait for no writer, and write nothing shared; a scan does likewise unless it keeps meeting
//! changes. A write copies no leaf, and waits for nobody but an `update`, a pop, a range removal, a
//! merge, or a scan that holds its leaves, in its own leaf. Threads that all append to the same end
//! fight for the head of one chain, until the leaf notices and gives them several; what that is worth
//! on many cores has not been measured. Scans of such a leaf give it one chain again first: it is not
//! for those who keep asking for the last entry meanwhile. For most else
//! [`OlcBTree`](tremula_index::OlcBTree) does the same in less time, as the paper found.
//!
//! # Consistency
//!
//! All operations are linearizable, except `range` (each leaf is as of one moment), `len` and
//! `shape`. A scan or snapshot notes the heads of the chains that it reads and looks at all of them
//! again: if none has changed there was a moment at which all was so. After a few failures it
//! holds the leaves. A range is removed by holding all of its leaves, giving each of them a
//! *switch* between its contents of before and after, and turning them all by one store.
//!
//! # Invariants
//!
//! 1. The word of a node is the head of its chain and the bit *held*. It is changed by
//!    compare-and-swap, unless it is held: then by its holder only. A word that was replaced does
//!    not come back with other contents while anybody is pinned who saw it. The deltas of a merge are
//!    only ever heads of chains, and replaced by who helps that merge.
//! 2. Who waits for a node that is held, holds nothing, or only leaves to its left. Everybody else
//!    gives up what he holds.
//! 3. A node's level and low fence never change while its id is in use, but for the root, whose id
//!    is always 0. Its high fence and right link change together.
//! 4. The node on the right of a leaf or inner node begins where that ends. A node is merged away
//!    only into its left neighbour, only if their parent has the separator between them, and
//!    while all three are held, or the parent has an abort delta. So as long as the word of a parent is
//!    unchanged, each node that was split off from one of its children, and is not known to it, stays
//!    where it is.
//! 5. Each stored key was put into the tree by one insertion, and belongs to the node that has it;
//!    deltas that update or delete refer to the same one. A deleted key dies with the chain that has
//!    the delta: so what is compared on the way through a chain lives as long as the chain does. A
//!    value belongs to the writer whose delta has replaced or deleted it. Fences and separators are
//!    copies of their own. *None of that follows from comparisons*, which may lie: a search ends at the
//!    newest delta on the very key that it has come to, or at an entry of the base node that no delta
//!    overwrites (`View::find`); children of inner nodes are known by their ids, and separators stand in
//!    the order of the links between those (`inner.rs`); what a node is to have is told by offsets and
//!    words, and sorted by keys (`consolidate.rs`). So there are wrong answers about keys that lie, and
//!    nothing worse.
//! 6. Chains go to the epoch when they were unlinked, as a whole; ids are free again no earlier,
//!    and a page of the mapping table goes when each of its ids has been free for a while. So who
//!    is pinned, and has an id, finds its word, though the table shrinks: `ids.rs` says why. What is in
//!    the table is freed by the epoch only, be it linked or not.
//! 7. The word of a node tells where the base node is, without a look at the delta between: a base
//!    node begins at a cache line, and a delta in its area a known number of lines in front of it.
//!    The filter of a base node has the bit of a delta before the delta is published.
//! 8. In a chain, `offset` says how many keys of the base node lie below the delta's, and
//!    `overwrites` whether the next one is equal. So each delta that a lookup passes narrows the
//!    part of the base node that is left to search.
//! 9. A *split delta* says that its node ends at a key of the base node. So the offset of another
//!    delta on the same base node, and whether it overwrites, tell on which side it is: no key is
//!    looked at for that. Those on the right belong to another node, and may have been freed. A base
//!    node's own fence and right link count as long as there is no split delta in the chain.
//! 10. The word of a *spread leaf* is that of its base node, and neither held nor given a delta: it
//!     is only replaced, after each of the sub-chains was frozen. All deltas on one key are in one
//!     sub-chain. `spread.rs` has the rest.
//! 11. Comparisons, clones and closures run before an operation's first change, or after its last, or
//!     between the steps of a merge by deltas, which anybody can finish; whoever holds nodes lets them go
//!     when user code panics. `Drop` of keys and values that were in the tree runs when a guard is
//!     dropped, or a value that was handed out.
//! 12. Whoever holds a leaf and wants the next one goes by the link to the right, or to the left gives up
//!     after a while: no order of keys makes two threads wait for one another.
//!
//! # What a lookup costs
//!
//! On each level it reads the node's word, then the header with the *hints* (copies of each
//! sixteenth head), then one segment of sixteen heads and the value beside it. Deltas it passes by,
//! unless the *filter* in the header has the bit of its key; else it asks for all of them at once, since
//! each is found by the one before. Whether it has gone astray by a split it finds out in the leaf.
//! Hints and filter are not in the paper.
//!
//! [`BwTreeSwitches`] turns the optimisations off one by one: all off, it is the original Bw-tree.
//!
//! # What is different from the paper
//!
//! - A split consolidates in the same step, so that keys never belong to two chains. Split deltas can
//!   be had by a switch. They save the copy of the left half only until its next write, since a
//!   chain that is split is as long as it may be; meanwhile the left half keeps the memory of both.
//!   Of 60,000 random integers, inserts take 17 % more instructions with them, lookups 39 %.
//! - A merge holds the parent and both nodes, and replaces them in three steps: nobody helps. The
//!   paper's remove, merge and abort deltas can be had by a switch; `steps.rs` has them, and why
//!   they work. What holding saves: two more kinds of chain on the way of readers, who have to help
//!   where a node's entries are in two places, and the proofs of all states in between. What it
//!   costs: writers of the two nodes wait for as long as it takes to copy them (readers do not
//!   wait, and splits below the parent are posted later by whoever passes), and if the thread is
//!   not run meanwhile, for longer. Merges are rare: one for some dozens of removals. With the
//!   deltas, removing 60,000 random integers takes 5 % more instructions; inserts and lookups take
//!   no more. They differ from the paper's, too: the merge delta comes before the remove delta, and
//!   a level is taken away from the root by holding the root and its only child.
//! - The mapping table is not reserved as a whole, and does not only grow: it consists of pages of
//!   256 ids. Low ids are handed out first, and a page that empties is given back, by nobody who
//!   waits and with nobody waiting. One id in use keeps its page: after entries here and there are
//!   removed the table has the pages of the nodes that are left.
//! - Inner nodes are replaced as a whole, once a split of a child. That is a copy of a few kilobytes
//!   for each hundred inserts or so: less than a twentieth of the time that it takes to insert
//!   5,000,000 random integers. So inner nodes can be large, and the tree a level lower: those
//!   integers need three levels instead of four. Deltas of inner nodes can be had by a switch. They
//!   are walked by every operation that passes the node, since the filter does not help a search
//!   for the nearest key: with up to eight of them, inserts of 60,000 random integers take 1.2 times
//!   as many instructions, lookups 1.5 times. They do not carry the next separator, as the paper's do:
//!   their offsets in the base node tell which of two is nearer.
//! - Chains are a third as long, leaves twice as large, and the table of ids grows by segments instead of
//!   being reserved.
//! - The epochs of the tree, when those of threads are switched off, are three in a ring.
//! - A leaf whose head is fought over is spread over several chains, by a hash of the key; the paper
//!   leaves it at that fight. Other answers were weighed. To split such a leaf early does not help
//!   appends: all next keys go to the same half again. A winner who also links the deltas of the
//!   losers would have to compare their keys, and run what decides about them, in their place: and they
//!   would wait for a thread that may not be running. Chains chosen by thread instead of by key would
//!   hide an older value of a key in another chain. By key, each point operation stays one
//!   compare-and-swap on one word, lock-free, and linearizable as before.
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

use base::{Draft, Fences, Fittings, NO_NODE};
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

/// The id of the root.
const ROOT: usize = 0;

/// When a [`BwTree`] consolidates, splits and merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BwTreeConfig {
    /// A leaf with so many deltas is consolidated; its area has room for as many. The paper's
    /// value is 24; with a third of that, lookups and scans are faster, writes not slower, and leaves
    /// smaller.
    pub leaf_chain: usize,
    /// A leaf that has more entries when it is consolidated is split. The paper's value is 128; with
    /// twice as many there are half as many nodes to be kept near, and a fifth less memory is used.
    pub leaf_split: usize,
    /// A leaf that has no more entries when it is consolidated is merged: a quarter of what it may
    /// have, as in the paper.
    pub leaf_merge: usize,
    /// A leaf on which so many compare-and-swaps were lost is spread when it is consolidated. Of
    /// those lost before its last consolidation half count, of those before that a quarter, and so on:
    /// so the default stands for one lost in two writes. With 0 each leaf is spread that has
    /// more entries than [`leaf_merge`](Self::leaf_merge).
    pub leaf_contention: usize,
    /// An inner node with so many deltas is given a new base node with the next change; it has none
    /// with [`whole_inner_nodes`](BwTreeSwitches::whole_inner_nodes). The paper's value is 2.
    pub inner_chain: usize,
    /// An inner node with more separators is split. The paper's value is 64; a greater one saves a
    /// level, and costs a larger copy once a split of a child.
    pub inner_split: usize,
    /// An inner node with no more separators is merged. The paper's value is 16.
    pub inner_merge: usize,
    /// Which optimisations there are.
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

    /// An empty tree that consolidates, splits and merges as `config` says; values out of reason
    /// are taken for the nearest within.
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

/// Where a search goes.
type Position<'k, S> = kit::Position<SearchKey<'k, S>>;

/// The algorithm behind [`BwTree`].
struct Tree<S: Spec> {
    table: MappingTable,
    reclamation: Reclamation,
    len: StripedCounter,
    config: BwTreeConfig,
    /// Whether there may be deltas in inner nodes, or some that move a fence.
    has_deltas_on_the_way: bool,
    counters: Counters,
    pending: Pending,
    /// Invariant: a shared reference can insert.
    entries: PhantomData<AtomicPtr<S>>,
}

// SAFETY: the tree owns its nodes, and shares keys and values between threads: they are `Send`
// and `Sync`.
unsafe impl<S: Spec> Send for Tree<S> {}
// SAFETY: as above; nodes are immutable but for atomics and what a claim gives to one thread.
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
        let leaf = Draft::<S>::new(fences, 0, tree.fittings(0));
        tree.table.store(root, leaf.word());
        leaf.give();
        tree
    }

    /// What a base node of a level has beside its entries.
    fn fittings(&self, level: u32) -> Fittings {
        let switches = self.config.switches;
        let chain = match level {
            0 => self.config.leaf_chain,
            _ if switches.whole_inner_nodes => 0,
            _ => self.config.inner_chain,
        };
        // A split delta comes on top.
        let slots = chain + usize::from(!switches.whole_splits && chain > 0);
        Fittings {
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
                // SAFETY: nobody else has the tree, and each node is in the table once. Of one that was
                // being merged away when a helper panicked, its steps tell whose the entries are.
                unsafe { free::free_node::<S>(word, &guard, &mut panic) };
            }
        }
        drop(guard);
        panic.go_on();
    }
}
