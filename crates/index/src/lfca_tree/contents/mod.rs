//! The contents of a base node: an immutable B+tree.
//!
//! ```text
//!          ┌ count, level, length │ heads      │ keys       │ words      ┐
//!  node:   │ 1      1      3      │ 10  40  70 │ k₁₀ k₄₀ k₇₀│  •   •   • │
//!          └─────────────────────────────────────────────────┼───┼───┼──┘
//!                                        leaf [10 … 39] <────┘   v   v
//! ```
//!
//! A node never changes once other threads can see it. A change of an entry copies the leaf and the
//! path to it ([`edit`]). A split or a join of trees copies the nodes along the cut ([`join`]). All
//! other nodes are shared.
//!
//! # Invariants
//!
//! Those that speak of the state of a tree are functions (`invariants`).
//!
//! 1. The keys of a node ascend strictly. A key of an inner node lies at or below all keys of its
//!    child, and above all keys of the child before. It need not be a key of an entry.
//! 2. All leaves are on one level. No node is empty or has more entries than `most` says. An empty
//!    tree has no root.
//! 3. A node has one count for each parent, base node and snapshot that leads to it. It owns one
//!    count of each of its children, keys and values, except as invariant 4 allows.
//! 4. If all nodes on the path from a base node to a node have a count of 1, the node belongs to
//!    that base node alone. A thread that replaces the base node may *move* the contents of such
//!    nodes to their copies, with the counts, and free the old nodes alone. If its compare-and-swap
//!    succeeds, the nodes still belonged to the base node, because sharing one replaces the base
//!    node.

mod edit;
mod invariants;
mod join;
mod node;
#[cfg(test)]
mod tests;
mod word;

pub(super) use edit::{Edit, Path};
pub(super) use node::{Node, NodeList, NodeRef};
pub(super) use word::{Owned, OwnedEntry, Word};

use crate::contract::Direction;
use crate::kit::{SearchKey, SearchRange, Spec};
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use std::ptr::NonNull;

/// The tree of a base node. It owns nothing: the thread that replaces the base node releases or
/// passes on the count of the root.
#[derive(Clone, Copy)]
pub(super) struct Root<S: Spec>(Option<NonNull<Node<S>>>);

impl<S: Spec> Root<S> {
    pub(super) const EMPTY: Self = Self(None);

    /// The tree, to be read.
    ///
    /// # Safety
    ///
    /// The root lives during `'g`: the caller has a count, or has been pinned since before the base
    /// node of this tree was unlinked.
    #[inline]
    pub(super) unsafe fn view<'g>(self) -> View<'g, S> {
        View {
            // SAFETY: the caller's promise.
            root: self.0.map(|node| unsafe { NodeRef::from_raw(node) }),
        }
    }

    /// Takes over a count of the root.
    ///
    /// # Safety
    ///
    /// The caller owns a count, and passes it on.
    pub(super) unsafe fn own(self) -> OwnedTree<S> {
        OwnedTree {
            root: self,
            entry: PhantomData,
        }
    }
}

/// A tree with a count of its root.
pub(super) struct OwnedTree<S: Spec> {
    root: Root<S>,
    entry: PhantomData<(S::Key, S::Value)>,
}

// SAFETY: nodes change only through atomics; keys and values may be sent and shared.
unsafe impl<S: Spec> Send for OwnedTree<S> {}
// SAFETY: as for `Send`.
unsafe impl<S: Spec> Sync for OwnedTree<S> {}

impl<S: Spec> OwnedTree<S> {
    const EMPTY: Self = Self {
        root: Root::EMPTY,
        entry: PhantomData,
    };

    /// A tree of this root. It takes over a count.
    fn of(root: NodeRef<'_, S>) -> Self {
        Self {
            root: Root(Some(root.pointer())),
            entry: PhantomData,
        }
    }

    /// The tree, to be read.
    pub(super) fn view(&self) -> View<'_, S> {
        // SAFETY: this has a count.
        unsafe { self.root.view() }
    }

    /// The root, with the count: the caller passes it on.
    pub(super) fn into_root(self) -> Root<S> {
        let root = self.root;
        std::mem::forget(self);
        root
    }
}

impl<S: Spec> Clone for OwnedTree<S> {
    fn clone(&self) -> Self {
        self.view().share()
    }
}

impl<S: Spec> Drop for OwnedTree<S> {
    fn drop(&mut self) {
        if let Some(root) = self.root.0 {
            // SAFETY: this has a count. Pinned threads find the root only through a base node,
            // whose count is released only after they have unpinned.
            unsafe { NodeRef::from_raw(root).release() };
        }
    }
}

/// A tree that lives during `'g`.
#[derive(Clone, Copy)]
pub(super) struct View<'g, S: Spec> {
    root: Option<NodeRef<'g, S>>,
}

impl<'g, S: Spec> View<'g, S> {
    pub(super) fn is_empty(self) -> bool {
        self.root.is_none()
    }

    /// The tree with a new count of its root.
    pub(super) fn share(self) -> OwnedTree<S> {
        self.root.map_or(OwnedTree::EMPTY, |root| {
            root.share();
            OwnedTree::of(root)
        })
    }

    /// The value under a key. O(log n).
    #[inline]
    pub(super) fn get(self, probe: &SearchKey<'_, S>) -> Option<Word<S::Value>> {
        let mut node = self.root?;
        while node.level() > 0 {
            node = node.child(node.child_for(probe));
            node.prefetch();
        }
        let at = node.below(probe);
        node.holds(at, probe).then(|| node.value(at))
    }

    /// Visits the entries of a range until `visit` breaks. O(log n + visited).
    #[inline]
    pub(super) fn walk(
        self,
        span: SearchRange<'_, S>,
        direction: Direction,
        mut visit: impl FnMut(EntryRef<'g, S>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.root {
            Some(root) => root.walk(span, direction, &mut visit),
            None => ControlFlow::Continue(()),
        }
    }

    /// The first entry in a direction.
    pub(super) fn end(self, direction: Direction) -> Option<EntryRef<'g, S>> {
        let mut node = self.root?;
        let end = |node: NodeRef<'g, S>| match direction {
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

    /// Counts the entries in a range. O(log n + counted).
    pub(super) fn count(self, span: SearchRange<'_, S>) -> usize {
        let mut count = 0;
        let _ = self.walk(span, Direction::Ascending, |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        count
    }

    /// The number of levels, of entries and of bytes.
    pub(super) fn measure(self) -> (usize, usize, usize) {
        fn below<S: Spec>(node: NodeRef<'_, S>) -> (usize, usize) {
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

/// A walk prefetches the child this many places ahead.
const AHEAD: usize = 3;

/// An entry in a leaf.
#[derive(Clone, Copy)]
pub(super) struct EntryRef<'g, S: Spec> {
    leaf: NodeRef<'g, S>,
    at: usize,
}

impl<S: Spec> EntryRef<'_, S> {
    /// Calls `read` with key and value.
    #[inline]
    pub(super) fn with<R>(self, read: impl FnOnce(&S::Key, &S::Value) -> R) -> R {
        let value = self.leaf.value(self.at);
        self.leaf.with_key(self.at, |key| {
            // SAFETY: the leaf lives, and has a count or moved it to a copy during this pin.
            unsafe { value.with(|value| read(key, value)) }
        })
    }

    /// A copy of key and value.
    #[inline]
    pub(super) fn copy(self) -> (S::Key, S::Value) {
        self.with(|key, value| (key.clone(), value.clone()))
    }
}

impl<'g, S: Spec> NodeRef<'g, S> {
    fn walk(
        self,
        span: SearchRange<'_, S>,
        direction: Direction,
        visit: &mut impl FnMut(EntryRef<'g, S>) -> ControlFlow<()>,
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
            let span = SearchRange {
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
