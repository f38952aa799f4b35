//! The links of leaves, up to which snapshot a leaf is settled, and what is noted there.

use super::{Header, LeafRef};
use crate::b_tree::undo::Undo;
use crate::kit::Spec;
use std::ptr::{self, NonNull};
use tremula_sync::atomic::Ordering;

impl<'g, S: Spec> LeafRef<'g, S> {
    /// Up to which snapshot the leaf, which the caller has locked, is settled.
    #[inline]
    pub(in crate::b_tree) fn settled(self) -> u64 {
        self.header().settled.load(Ordering::Relaxed)
    }

    /// The caller has locked the leaf, or has not linked it yet.
    pub(in crate::b_tree) fn set_settled(self, number: u64) {
        self.header().settled.store(number, Ordering::Relaxed);
    }

    /// What is noted in the leaf for snapshots.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaf, and uses this no longer when it calls a function of the leaf
    /// that gives or takes what is noted.
    #[inline]
    pub(in crate::b_tree) unsafe fn undo(self) -> Option<&'g mut Undo<S>> {
        let undo = self.header().undo.load(Ordering::Relaxed).cast::<Undo<S>>();
        // SAFETY: it is null, or came from `set_undo`; the thread that has locked the leaf has it
        // alone.
        unsafe { undo.as_mut() }
    }

    /// Gives the leaf, in which nothing is noted, what is noted from now on.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaf.
    pub(in crate::b_tree) unsafe fn set_undo(self, undo: Box<Undo<S>>) {
        let undo = Box::into_raw(undo).cast();
        self.header().undo.store(undo, Ordering::Relaxed);
    }

    /// Takes what is noted out of the leaf.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaf, or no other thread has it.
    pub(in crate::b_tree) unsafe fn take_undo(self) -> Option<Box<Undo<S>>> {
        let undo = self.header().undo.load(Ordering::Relaxed).cast::<Undo<S>>();
        self.header().undo.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: if it is not null, it came from `set_undo`, and no longer is in the leaf.
        (!undo.is_null()).then(|| unsafe { Box::from_raw(undo) })
    }

    /// The right neighbour. An optimistic reader must validate it before following it.
    #[inline]
    pub(in crate::b_tree) fn next(self) -> Option<NonNull<Header>> {
        NonNull::new(self.header().next.load(Ordering::Relaxed))
    }

    /// Sets the right neighbour. The caller has locked this leaf, or has not linked it yet.
    pub(in crate::b_tree) fn set_next(self, next: Option<NonNull<Header>>) {
        let next = next.map_or(ptr::null_mut(), NonNull::as_ptr);
        self.header().next.store(next, Ordering::Relaxed);
    }

    /// The left neighbour.
    #[inline]
    pub(in crate::b_tree) fn prev(self) -> Option<LeafRef<'g, S>> {
        // Acquire: pairs with the release in `set_prev`; a thread that sees the neighbour sees it
        // initialized.
        let prev = NonNull::new(self.header().prev.load(Ordering::Acquire))?;
        // SAFETY: it was the left neighbour of this leaf at some time since the thread was pinned:
        // before a leaf is retired, the `prev` of its neighbour is made to lead elsewhere.
        Some(unsafe { LeafRef::from_raw(prev) })
    }

    /// Sets the left neighbour. The caller has locked the leaf that was the left neighbour before,
    /// or has not linked this leaf yet.
    pub(in crate::b_tree) fn set_prev(self, prev: LeafRef<'_, S>) {
        // Release: pairs with the acquire in `prev`.
        self.header().prev.store(prev.as_ptr(), Ordering::Release);
    }
}
