//! The links of leaves, and up to which snapshot a leaf is settled.

use super::{Header, LeafRef};
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
