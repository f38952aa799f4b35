//! The words that lead to nodes.

use super::node::{Base, Delta};
use std::ptr::{self, NonNull};
use tremula_sync::atomic::AtomicBool;

/// What the mapping table has of a node: the address of the head of its chain, and in its lowest
/// bits what that is, and whether an operation holds the node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut ());

/// What a word leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Base,
    Delta,
    /// A [`Switch`], while a range is removed from several nodes.
    Switch,
    /// Nothing: the node has been merged away.
    Removed,
}

const HELD: usize = 1;
const KIND: usize = 6;
const DELTA: usize = 2;
const SWITCH: usize = 4;
const REMOVED: usize = 6;

impl Word {
    /// Of a node that has been merged away.
    pub(super) const REMOVED: Self = Self(ptr::without_provenance_mut(REMOVED));

    #[inline]
    pub(super) fn of_pointer(pointer: *mut ()) -> Self {
        Self(pointer)
    }

    #[inline]
    pub(super) fn pointer(self) -> *mut () {
        self.0
    }

    fn tagged<T>(at: NonNull<T>, tag: usize) -> Self {
        Self(at.as_ptr().cast::<()>().map_addr(|address| address | tag))
    }

    pub(super) fn base<K, V, H>(base: NonNull<Base<K, V, H>>) -> Self {
        Self::tagged(base, 0)
    }

    #[inline]
    pub(super) fn delta<K, V, H>(delta: NonNull<Delta<K, V, H>>) -> Self {
        Self::tagged(delta, DELTA)
    }

    pub(super) fn switch(switch: NonNull<Switch>) -> Self {
        Self::tagged(switch, SWITCH)
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        match self.0.addr() & KIND {
            0 => Kind::Base,
            DELTA => Kind::Delta,
            SWITCH => Kind::Switch,
            _ => Kind::Removed,
        }
    }

    /// Where it leads to.
    #[inline]
    pub(super) fn address<T>(self) -> *mut T {
        self.0
            .map_addr(|address| address & !(KIND | HELD))
            .cast::<T>()
    }

    /// Whether it leads to nothing.
    pub(super) fn is_none(self) -> bool {
        self.address::<()>().is_null()
    }

    /// Whether only the holder may change it.
    #[inline]
    pub(super) fn is_held(self) -> bool {
        self.0.addr() & HELD != 0
    }

    /// The same, held.
    #[inline]
    pub(super) fn held(self) -> Self {
        Self(self.0.map_addr(|address| address | HELD))
    }

    /// The same, held by nobody.
    #[inline]
    pub(super) fn released(self) -> Self {
        Self(self.0.map_addr(|address| address & !HELD))
    }
}

/// Two contents of a node, of which one counts: that of before, until all nodes of the range that
/// is being removed have such a switch, and then, at one moment, that of after.
#[repr(align(8))]
pub(super) struct Switch {
    /// Shared by all nodes of the range; it lives as long as any switch.
    pub(super) is_over: *const AtomicBool,
    pub(super) before: Word,
    pub(super) after: Word,
}
