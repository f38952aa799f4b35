//! Inner nodes: separators, and the children between them.

use super::{Header, InnerRef, NodeRef, copy_word};
use crate::b_tree::layout::Plan;
use crate::b_tree::text::Heap;
use crate::kit::{Spec, StoredKey, close, open};
use std::ptr::{self, NonNull};
use tremula_sync::atomic::{AtomicPtr, Ordering};

impl<'g, S: Spec> InnerRef<'g, S> {
    /// Makes an inner node with a single child and no separator.
    pub(in crate::b_tree) fn new(level: u32, child: Option<NonNull<Header>>) -> Self {
        let inner = Self(NodeRef::allocate(level, Heap::NONE));
        inner.store_child(0, child);
        inner
    }

    #[inline]
    pub(in crate::b_tree) fn node(self) -> NodeRef<'g, S> {
        self.0
    }

    /// The links to the children: one more than there are separators.
    #[inline]
    pub(in crate::b_tree) fn children(self) -> &'g [AtomicPtr<Header>] {
        let plan = const { &Plan::of::<S>() };
        // SAFETY: `allocate` wrote this array, because this is an inner node.
        unsafe { self.0.array(plan.slots, plan.capacity) }
    }

    /// The link to a child. An optimistic reader must validate it before following it.
    #[inline]
    pub(in crate::b_tree) fn child(self, at: usize) -> Option<NonNull<Header>> {
        NonNull::new(self.children()[at].load(Ordering::Relaxed))
    }

    /// Inserts a separator at an index, and the child to its right. The node has room.
    pub(in crate::b_tree) fn insert(
        self,
        at: usize,
        separator: StoredKey<S>,
        child: NodeRef<'_, S>,
    ) {
        let count = self.count();
        self.insert_key(at, count, separator);
        open(self.children(), at + 1, count + 1, copy_word);
        self.children()[at + 1].store(child.as_ptr(), Ordering::Relaxed);
        self.set_count(count + 1);
    }

    /// Removes the separator at an index, and the child to its right.
    pub(in crate::b_tree) fn remove(self, at: usize) {
        let count = self.count();
        self.remove_key(at, count);
        close(self.children(), at + 1, count + 1, copy_word);
        self.set_count(count - 1);
    }

    /// Replaces a separator, without freeing the old one.
    pub(in crate::b_tree) fn replace_separator(self, at: usize, separator: StoredKey<S>) {
        let head = self.admit(separator, self.count());
        self.heads().replace(at, head);
        if !S::HEAD_IS_KEY {
            self.keys()[at].store(separator.word, Ordering::Relaxed);
        }
    }

    /// Writes a separator, but no hint. The caller calls [`NodeRef::seal`] after that.
    pub(in crate::b_tree) fn store_separator(self, at: usize, separator: StoredKey<S>) {
        self.store_key(at, separator);
    }

    /// Writes the link to a child.
    pub(in crate::b_tree) fn store_child(self, at: usize, child: Option<NonNull<Header>>) {
        let child = child.map_or(ptr::null_mut(), NonNull::as_ptr);
        self.children()[at].store(child, Ordering::Relaxed);
    }
}
