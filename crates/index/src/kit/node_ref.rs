//! A reference to a node.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// A reference to a node that stays allocated for `'g`: the thread is pinned, or it is the only one
/// with the structure. Unlike a `&'g T` it may be used to free the node, and to reach what the
/// allocation holds behind the `T`. Two references are equal if they lead to the same node.
pub struct NodeRef<'g, T> {
    node: NonNull<T>,
    alive: PhantomData<&'g T>,
}

impl<T> Clone for NodeRef<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for NodeRef<'_, T> {}

impl<T> PartialEq for NodeRef<'_, T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<'g, T> NodeRef<'g, T> {
    /// # Safety
    ///
    /// The node lives for `'g`: it was linked at some time since the guard of that lifetime was
    /// pinned, or no other thread has it.
    #[inline]
    pub const unsafe fn from_raw(node: NonNull<T>) -> Self {
        Self {
            node,
            alive: PhantomData,
        }
    }

    /// A reference to a node that is not freed through it.
    #[inline]
    pub fn of(node: &'g T) -> Self {
        // SAFETY: the node is borrowed for `'g`.
        unsafe { Self::from_raw(NonNull::from(node)) }
    }

    /// A reference to a node that is freed when its address is made a box again.
    pub fn leak(node: Box<T>) -> Self {
        // SAFETY: the box is not dropped, and no other thread has the node.
        unsafe { Self::from_raw(NonNull::from(Box::leak(node))) }
    }

    /// The node.
    #[inline]
    pub const fn get(self) -> &'g T {
        // SAFETY: the caller of `from_raw` promised that the node lives for `'g`.
        unsafe { self.node.as_ref() }
    }

    /// The node's address.
    #[inline]
    pub const fn pointer(self) -> NonNull<T> {
        self.node
    }
}

impl<T> Deref for NodeRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.get()
    }
}
