//! The words that lead to nodes.

use super::base::{Base, LINE};
use super::node::Delta;
use super::steps::MergeDelta;
use std::ptr::{self, NonNull};
use tremula_index::kit::Spec;
use tremula_sync::atomic::AtomicBool;

/// What the mapping table has of a node: the address of the head of its chain, and in its lowest
/// bits what that is, and whether an operation holds the node.
///
/// Of a delta in the area of its base node they also tell how far in front of the header it lies,
/// if that is not too far: who reads the node need not wait for the delta to come to the header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut ());

/// What a word leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Base,
    Delta,
    /// A [`Switch`], while a range is removed from several nodes.
    Switch,
    /// A [`MergeDelta`].
    MergeDelta,
    /// Nothing: the node has been merged away.
    Removed,
}

/// All bits below the address: what words lead to begins at cache lines.
const TAG: usize = LINE - 1;
const HELD: usize = 1;
/// The tags but for that bit go in steps of two. Those up to [`FARTHEST`] say how many deltas lie
/// between the address and the header of the base node, which is at the address if there are none.
const STEP: usize = 2;
pub(super) const FARTHEST: usize = 27;
/// A delta that lies somewhere else.
const APART: usize = (FARTHEST + 1) * STEP;
/// From here on are those that no delta is prepended to.
const SWITCH: usize = (FARTHEST + 2) * STEP;
const MERGE: usize = (FARTHEST + 3) * STEP;
const REMOVED: usize = (FARTHEST + 4) * STEP;
const _: () = assert!(REMOVED < LINE);

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

    pub(super) fn base<S: Spec>(base: NonNull<Base<S>>) -> Self {
        Self::tagged(base, 0)
    }

    /// A delta that lies so far in front of the header, or if that is 0, on the heap.
    #[inline]
    pub(super) fn delta<S: Spec>(delta: NonNull<Delta<S>>, distance: usize) -> Self {
        let is_told = (1..=FARTHEST).contains(&distance);
        Self::tagged(delta, if is_told { distance * STEP } else { APART })
    }

    pub(super) fn switch(switch: NonNull<Switch>) -> Self {
        Self::tagged(switch, SWITCH)
    }

    pub(super) fn merge_delta(delta: NonNull<MergeDelta>) -> Self {
        Self::tagged(delta, MERGE)
    }

    #[inline]
    fn tag(self) -> usize {
        self.0.addr() & TAG & !HELD
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        match self.tag() {
            0 => Kind::Base,
            SWITCH => Kind::Switch,
            MERGE => Kind::MergeDelta,
            REMOVED => Kind::Removed,
            _ => Kind::Delta,
        }
    }

    /// The base node, if the word itself tells where it is.
    #[inline]
    pub(super) fn base_node<S: Spec>(self) -> Option<NonNull<Base<S>>> {
        let distance = self.tag() / STEP;
        let base = self.address::<Delta<S>>().wrapping_add(distance);
        NonNull::new(base.cast()).filter(|_| distance <= FARTHEST)
    }

    /// Where it leads to.
    #[inline]
    pub(super) fn address<T>(self) -> *mut T {
        self.0.map_addr(|address| address & !TAG).cast::<T>()
    }

    /// Whether it leads to nothing.
    pub(super) fn is_none(self) -> bool {
        self.address::<()>().is_null()
    }

    /// Whether anybody may replace it: nobody holds the node, and there is nothing in the way.
    #[inline]
    pub(super) fn is_open(self) -> bool {
        // One comparison: the lowest bit, of a word that is held, becomes the highest.
        (self.0.addr() & TAG).rotate_right(1) < SWITCH / STEP
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
#[repr(align(64))]
pub(super) struct Switch {
    /// Shared by all nodes of the range; it lives as long as any switch.
    pub(super) is_over: *const AtomicBool,
    pub(super) before: Word,
    pub(super) after: Word,
}
