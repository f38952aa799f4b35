//! The adaptive radix tree, with optimistic lock coupling.
//!
//! Sources: Leis, Kemper, Neumann, "The adaptive radix tree: ARTful indexing for main-memory
//! databases", ICDE 2013 (nodes, path compression, lazy expansion); Leis, Scheibner, Kemper,
//! Neumann, "The ART of practical synchronization", DaMoN 2016 (the locks, and why a lookup may
//! pass nodes that are being replaced).
//!
//! ```text
//!                   root                    a full node, at depth 0
//!             'a' /      \ 'z'
//!     four, prefix "sp"   leaf "zebra"      lazy expansion: a leaf, as soon as no other key
//!    END /   'e' \                          goes the same way
//!  leaf "asp"    sixteen, depth 4           path compression: what all keys below have in
//!              END /    \ 'n'               common is the node's prefix
//!           leaf "aspe"  leaf "aspen"
//! ```
//!
//! A node is at a *depth*: it branches by the byte there, and the bytes between its parent's
//! depth and its own are its prefix. It has one of four layouts, for up to 4, 16, 48 or 256
//! children (`kinds`), and is replaced by a larger one when it is full, by a
//! smaller one when it has become sparse, and by its last child when only that is left. Keys may
//! have any length: that of a key which ends at a node (and so is a prefix of others) is the
//! symbol `END`, before all bytes.
//!
//! Keys of up to eight bytes which their byte form tells whole (the integers, for instance) have
//! no leaves at the last byte: the slots of nodes at that depth are the values, and the keys are
//! put together from the way there. Keys that follow one another closely then take little more
//! than eight bytes each.
//!
//! # Invariants
//!
//! Those that speak of the state of a tree are functions (`invariants`).
//!
//! 1. Every key under a node begins with the same `depth` bytes, the node's *path*. Depth and
//!    path never change; the prefix is the last part of the path, and changes when a node is
//!    put in above or taken away.
//! 2. The root is a full node at depth 0, replaced only by a range removal. Any other node has
//!    at least two children.
//! 3. A thread writes what a node holds, its prefix and the values of its leaves under the node's
//!    [`VersionLock`]. It changes a pointer to a node under the lock of the node that holds the
//!    pointer; the pointer to the root under `stem`.
//! 4. A node is *obsolete* exactly when it has been unlinked. No thread writes it any more.
//! 5. A thread follows a pointer out of a node only if it has validated the node's version after
//!    it read the pointer, or if the node is full: there one word, published by itself, tells all
//!    about a byte.
//! 6. A thread that holds a lock waits only for locks of nodes below, in the order in which a walk
//!    comes to them: so do removals of ranges, and scans that writers have disturbed too often. A
//!    thread that needs any other lock tries it; if it is held, the thread releases all its locks
//!    and starts over.
//! 7. Unlinked nodes, leaves and values go to the tree's collector. What a thread can reach from a
//!    node that was linked while the thread was pinned stays until the thread unpins, even if the
//!    node itself has been unlinked since.
//!
//! # Consistency
//!
//! All operations are linearizable, except `range` (each batch is), `len` and `shape`. A lookup
//! writes nothing and locks nothing. A scan notes the version of each node that it visits and
//! validates all of them at its end; if writers keep disturbing it, it locks the nodes. A range
//! is removed by one store.
//!
//! # When to use it
//!
//! For point operations on integers or strings, from any number of threads: it does not compare
//! keys, and a lookup touches few cache lines. It needs keys with a byte form ([`ByteKey`]); for
//! others, and where scans are most of the work, take a tree of pages, whose entries lie side by
//! side. Integers spread evenly over their whole range cost the most memory: most of the slots
//! of a full node are vacant then. A writer that is descheduled while it holds the lock of a
//! node holds up those who want to go through that node.
//!
//! [`VersionLock`]: tremula_sync::VersionLock

mod bulk;
mod child;
mod cut;
mod form;
mod header;
mod invariants;
mod kinds;
mod leaf;
mod locate;
mod lookup;
mod node;
mod ranges;
mod shape;
mod walk;
mod write;

use crate::byte_keyed::{Lookups, Trie, Walks, Writes, ordered_index};
use crate::contract::{Direction, KeyRange, OrderedIndex, Shape, Storable, Update};
use crate::key::ByteKey;
use child::{Child, Is, NodeRef};
use form::Form;
use header::Prefix;
use shape::Figures;
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::reclaim::{Collector, Guard};
use tremula_sync::{StripedCounter, VersionLock};

/// A concurrent ordered map for keys with a byte form: an adaptive radix tree. See the
/// [module](self) for how it works, and for when to use it.
///
/// Point operations take O(length of the key) at most, and as a rule O(log₂₅₆ n) steps, whatever
/// the length; a scan takes that and O(1) an entry. A range removal locks all that it removes.
///
/// ```
/// use tremula_index::{Art, OrderedIndex};
///
/// let tree = Art::<String, u64>::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let tree = &tree;
///         scope.spawn(move || {
///             for n in 0..1000 {
///                 tree.insert(format!("{n}/{thread}"), n);
///             }
///         });
///     }
/// });
/// assert_eq!(tree.len(), 4000);
/// assert_eq!(tree.next(&"41".to_owned()), Some(("41/0".to_owned(), 41)));
/// ```
pub struct Art<K: ByteKey, V: Storable> {
    /// The pointer to the root, and its lock.
    root: AtomicPtr<()>,
    stem: VersionLock,
    figures: Figures,
    len: StripedCounter,
    restarts: StripedCounter,
    /// Invariant in both: a shared reference can insert.
    entry: PhantomData<AtomicPtr<(K, V)>>,
    /// Keeps what was unlinked; dropped last.
    collector: Collector,
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// The depth of nodes whose slots are values; none is as deep as the greatest number.
    const VALUES_AT: usize = Form::<K>::VALUES_AT;

    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        let root = NodeRef::full(0, Prefix::default(), &[], Self::has_values_at(0));
        Self {
            root: AtomicPtr::new(root.child().word()),
            stem: VersionLock::new(),
            figures: Figures::default(),
            len: StripedCounter::new(),
            restarts: StripedCounter::new(),
            entry: PhantomData,
            collector: Collector::new(),
        }
    }

    /// Whether the slots of a node that branches at this depth are values.
    #[inline(always)]
    fn has_values_at(depth: usize) -> bool {
        Self::VALUES_AT != usize::MAX && depth == Self::VALUES_AT
    }

    #[inline]
    fn root<'g>(&self, guard: &'g Guard<'_>) -> NodeRef<'g> {
        // Acquire: pairs with the release that replaces the root.
        let root = Child::of_word(self.root.load(Ordering::Acquire));
        // SAFETY: published by one word; linked now, so that the guard keeps it.
        match unsafe { root.follow::<K>(guard) } {
            Is::Node(root) => root,
            _ => unreachable!("the root is a node"),
        }
    }
}

impl<K: ByteKey, V: Storable> Default for Art<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: ByteKey, V: Storable> Trie<K, V> for Art<K, V> {
    type Form = Form<K>;

    #[inline]
    fn collector(&self) -> &Collector {
        &self.collector
    }

    #[inline]
    fn restarts(&self) -> &StripedCounter {
        &self.restarts
    }
}

impl<K: ByteKey, V: Storable> OrderedIndex<K, V> for Art<K, V> {
    ordered_index!("art");
}
