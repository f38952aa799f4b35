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
//! Each node has a *depth*: the index of the byte by which it branches. The bytes between its
//! parent's depth and its own are its prefix. A node has one of four layouts, for up to 4, 16, 48
//! or 256 children (`kinds`). A node without a vacant slot is replaced by a larger one, a sparse
//! node by a smaller one, and a node that has one child left by that child. Keys may have any
//! length: a key that ends at a node (and so is a prefix of others) is found there under the symbol
//! `END`, which precedes all bytes.
//!
//! Keys of up to eight bytes that can be rebuilt from their head (integers, for instance) need no
//! leaves: the slots of the nodes that branch by the last byte hold the values themselves, and a
//! scan puts the keys together from the bytes on the way. Keys that follow one another closely then
//! take little more than eight bytes each.
//!
//! # Invariants
//!
//! The invariants about the state of a tree are functions (`invariants`).
//!
//! 1. All keys under a node begin with the same `depth` bytes, the node's *path*. Depth and path
//!    never change. The prefix is the last part of the path; it changes when a node is inserted
//!    above or removed.
//! 2. The root is a full node at depth 0, replaced only by a range removal. Any other node has
//!    at least two children.
//! 3. A thread holds a node's [`VersionLock`] while it writes the node's slots, its prefix or the
//!    values of its leaves. It changes a pointer to a node under the lock of the node that contains
//!    the pointer, and the pointer to the root under `root_lock`.
//! 4. A node is *obsolete* exactly when it has been unlinked. No thread writes it any more.
//! 5. A thread follows a pointer out of a node only if it has validated the node's version after it
//!    read the pointer, or if the node is full: a slot of a full node is one word that is published
//!    by itself and says everything about its byte.
//! 6. A thread that holds a lock may block only on the locks of nodes below, in the order in which
//!    a walk visits them. Removals of ranges do so, and scans that writers have disturbed too
//!    often. A thread that needs any other lock tries it; if the lock is held, the thread releases
//!    all its locks and starts over.
//! 7. Unlinked nodes, leaves and values go to the tree's collector. Everything that a thread can
//!    reach from a node that was linked while the thread was pinned stays allocated until the
//!    thread unpins, even if the node itself has been unlinked since.
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
//! For point operations on integers or strings, by any number of threads: the tree compares no
//! keys, and a lookup touches few cache lines. Keys need a byte form ([`ByteKey`]). For other keys,
//! and for workloads that are mostly scans, take a B+tree, whose entries lie side by side. Integers
//! spread evenly over their whole range cost the most memory, because most slots of the full nodes
//! are vacant then. If a writer is descheduled while it holds the lock of a node, all threads that
//! have to go through that node wait.
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
use child::{Child, ChildRef, NodeRef};
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
/// Point operations take at most O(length of the key) steps, and typically O(log₂₅₆ n), whatever
/// the length; a scan takes that plus O(1) per entry. A range removal locks all nodes of the range.
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
    /// The pointer to the root, and the lock of that pointer.
    root: AtomicPtr<()>,
    root_lock: VersionLock,
    figures: Figures,
    len: StripedCounter,
    restarts: StripedCounter,
    /// Invariant in both: a shared reference can insert.
    entry: PhantomData<AtomicPtr<(K, V)>>,
    /// Frees what was unlinked. The last field, so that it is dropped last.
    collector: Collector,
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// The depth of the nodes whose slots are values; `usize::MAX` if there are no such nodes.
    const VALUES_AT: usize = Form::<K>::VALUES_AT;

    /// An empty tree.
    #[must_use]
    pub fn new() -> Self {
        let root = NodeRef::full(0, Prefix::default(), &[], Self::has_values_at(0));
        Self {
            root: AtomicPtr::new(root.child().word()),
            root_lock: VersionLock::new(),
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
        // SAFETY: the root is published by one store. It is linked now, so the guard keeps it.
        match unsafe { root.follow::<K>(guard) } {
            ChildRef::Node(root) => root,
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
