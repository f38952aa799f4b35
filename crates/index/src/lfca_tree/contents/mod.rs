//! The contents of a base node: an immutable B+tree.
//!
//! ```text
//!          ┌ count, level, length │ heads      │ keys       │ words      ┐
//!  node:   │ 1      1      3      │ 10  40  70 │ k₁₀ k₄₀ k₇₀│  •   •   • │
//!          └─────────────────────────────────────────────────┼───┼───┼──┘
//!                                        leaf [10 … 39] <────┘   v   v
//! ```
//!
//! Nodes are never changed once others can see them. What changes an entry copies the leaf and
//! the path to it ([`edit`]); what takes a tree apart or puts two together copies the nodes along
//! the cut ([`join`]). All else is shared.
//!
//! # Invariants
//!
//! 1. The keys of a node ascend strictly. An inner node's key lies at or below all keys of its
//!    child, and above all keys of the child before. It need not be a key of an entry.
//! 2. All leaves are on one level. No node is empty; an empty tree has no root.
//! 3. A node has a count for each parent, base node and snapshot that leads to it, and has a count
//!    of each of its children, keys and values, but for what is said next.
//! 4. A node whose path from the base node has counts of 1 throughout belongs to that base node
//!    alone. Who replaces the base node may *move* what is in such nodes to their copies, counts
//!    and all, and free the old nodes alone. If the base node is still the one whose nodes were
//!    looked at, they are still its own: to share one, a snapshot replaces the base node.

mod edit;
mod join;
mod node;
mod probe;
#[cfg(test)]
mod tests;
mod word;

pub(super) use edit::{Edit, Path};
pub(super) use node::{Node, NodeList, NodeRef};
pub(super) use probe::{Probe, Span};
pub(super) use word::{Owned, Word};

use crate::contract::{Direction, Storable};
use crate::key::KeyHead;
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use std::ptr::NonNull;

/// A tree, as a base node has it. It owns nothing: whoever replaces the base node sees to the
/// count of the root.
pub(super) struct Root<K, V, H>(Option<NonNull<Node<K, V, H>>>);

impl<K, V, H> Clone for Root<K, V, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, H> Copy for Root<K, V, H> {}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Root<K, V, H> {
    pub(super) const EMPTY: Self = Self(None);

    /// The tree, to be read.
    ///
    /// # Safety
    ///
    /// The root lives during `'g`: the caller has a count, or is pinned since before a base node
    /// that has it was unlinked.
    #[inline]
    pub(super) unsafe fn view<'g>(self) -> View<'g, K, V, H> {
        View {
            // SAFETY: the caller's promise.
            root: self.0.map(|node| unsafe { NodeRef::of(node) }),
        }
    }

    /// Takes over a count of the root.
    ///
    /// # Safety
    ///
    /// There is a count that is nobody else's.
    pub(super) unsafe fn own(self) -> Tree<K, V, H> {
        Tree {
            root: self,
            entry: PhantomData,
        }
    }
}

/// A tree with a count of its root.
pub(super) struct Tree<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    root: Root<K, V, H>,
    entry: PhantomData<(K, V)>,
}

// SAFETY: nodes are immutable but for their atomics, keys and values may be sent and shared.
unsafe impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Send for Tree<K, V, H> {}
// SAFETY: as above.
unsafe impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Sync for Tree<K, V, H> {}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Tree<K, V, H> {
    const EMPTY: Self = Self {
        root: Root::EMPTY,
        entry: PhantomData,
    };

    /// A tree of this root, whose count is taken over.
    fn of(root: NodeRef<'_, K, V, H>) -> Self {
        Self {
            root: Root(Some(root.as_ptr())),
            entry: PhantomData,
        }
    }

    /// The tree, to be read.
    pub(super) fn view(&self) -> View<'_, K, V, H> {
        // SAFETY: this has a count.
        unsafe { self.root.view() }
    }

    /// The count goes to a base node.
    pub(super) fn into_root(self) -> Root<K, V, H> {
        let root = self.root;
        std::mem::forget(self);
        root
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Clone for Tree<K, V, H> {
    fn clone(&self) -> Self {
        self.view().share()
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Drop for Tree<K, V, H> {
    fn drop(&mut self) {
        if let Some(root) = self.root.0 {
            // SAFETY: this has a count. Pinned threads come to the root by a base node only,
            // whose count is given back when they are gone.
            unsafe { NodeRef::of(root).release() };
        }
    }
}

/// A tree that lives during `'g`.
pub(super) struct View<'g, K, V, H> {
    root: Option<NodeRef<'g, K, V, H>>,
}

impl<K, V, H> Clone for View<'_, K, V, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, H> Copy for View<'_, K, V, H> {}

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> View<'g, K, V, H> {
    pub(super) fn is_empty(self) -> bool {
        self.root.is_none()
    }

    /// A count of the root.
    pub(super) fn share(self) -> Tree<K, V, H> {
        self.root.map_or(Tree::EMPTY, |root| {
            root.share();
            Tree::of(root)
        })
    }

    /// The value under a key. O(log n).
    #[inline]
    pub(super) fn get(self, probe: &Probe<'_, K, H>) -> Option<Word<V>> {
        let mut node = self.root?;
        while node.level() > 0 {
            node = node.child(node.child_for(probe));
            node.prefetch();
        }
        let at = node.below(probe);
        node.holds(at, probe).then(|| node.value(at))
    }

    /// Visits the entries of a range, each as a leaf and a place in it, until `visit` breaks.
    /// O(log n + visited).
    #[inline]
    pub(super) fn walk(
        self,
        span: Span<'_, K, H>,
        direction: Direction,
        mut visit: impl FnMut(EntryRef<'g, K, V, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.root {
            Some(root) => root.walk(span, direction, &mut visit),
            None => ControlFlow::Continue(()),
        }
    }

    /// The first entry in a direction.
    pub(super) fn end(self, direction: Direction) -> Option<EntryRef<'g, K, V, H>> {
        let mut node = self.root?;
        let end = |node: NodeRef<'g, K, V, H>| match direction {
            Direction::Ascending => 0,
            Direction::Descending => node.len() - 1,
        };
        while node.level() > 0 {
            node = node.child(end(node));
        }
        Some(EntryRef {
            leaf: node,
            at: end(node),
        })
    }

    /// The number of entries in a range, counted.
    pub(super) fn count(self, span: Span<'_, K, H>) -> usize {
        let mut count = 0;
        let _ = self.walk(span, Direction::Ascending, |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// The number of levels, of entries, and of bytes.
    pub(super) fn measure(self) -> (usize, usize, usize) {
        fn below<K: Ord + Storable, V: Storable, H: KeyHead<K>>(
            node: NodeRef<'_, K, V, H>,
        ) -> (usize, usize) {
            if node.level() == 0 {
                return (node.len(), node.bytes());
            }
            (0..node.len()).fold((0, node.bytes()), |(entries, bytes), at| {
                let child = below(node.child(at));
                (entries + child.0, bytes + child.1)
            })
        }
        self.root.map_or((0, 0, 0), |root| {
            let (entries, bytes) = below(root);
            (usize::from(root.level()) + 1, entries, bytes)
        })
    }
}

/// How many leaves ahead a walk asks for memory.
const AHEAD: usize = 3;

/// An entry, where it lies.
pub(super) struct EntryRef<'g, K, V, H> {
    leaf: NodeRef<'g, K, V, H>,
    at: usize,
}

impl<K, V, H> Clone for EntryRef<'_, K, V, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, H> Copy for EntryRef<'_, K, V, H> {}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> EntryRef<'_, K, V, H> {
    /// Shows key and value.
    #[inline]
    pub(super) fn with<R>(self, read: impl FnOnce(&K, &V) -> R) -> R {
        let value = self.leaf.value(self.at);
        self.leaf.with_key(self.at, |key| {
            // SAFETY: the leaf lives, and has a count, or moved it to a copy after we pinned.
            unsafe { value.with(|value| read(key, value)) }
        })
    }

    /// A copy of key and value.
    #[inline]
    pub(super) fn copy(self) -> (K, V) {
        self.with(|key, value| (key.clone(), value.clone()))
    }
}

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> NodeRef<'g, K, V, H> {
    fn walk(
        self,
        span: Span<'_, K, H>,
        direction: Direction,
        visit: &mut impl FnMut(EntryRef<'g, K, V, H>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let is_leaf = self.level() == 0;
        let from = match &span.low {
            Bound::Unbounded => 0,
            Bound::Included(low) if is_leaf => self.below(low),
            Bound::Excluded(low) if is_leaf => self.through(low),
            Bound::Included(low) | Bound::Excluded(low) => self.child_for(low),
        };
        let to = match &span.high {
            Bound::Unbounded => self.len(),
            Bound::Included(high) => self.through(high),
            Bound::Excluded(high) => self.below(high),
        };
        let step = |at: usize| {
            if is_leaf {
                return visit(EntryRef { leaf: self, at });
            }
            // Only the outermost children can have keys outside the range.
            let span = Span {
                low: if at == from {
                    span.low
                } else {
                    Bound::Unbounded
                },
                high: if at + 1 == to {
                    span.high
                } else {
                    Bound::Unbounded
                },
            };
            let ahead = match direction {
                Direction::Ascending => at + AHEAD,
                Direction::Descending => at.wrapping_sub(AHEAD),
            };
            if (from..to).contains(&ahead) {
                self.child(ahead).prefetch();
            }
            self.child(at).walk(span, direction, visit)
        };
        match direction {
            Direction::Ascending => (from..to).try_for_each(step),
            Direction::Descending => (from..to).rev().try_for_each(step),
        }
    }
}
