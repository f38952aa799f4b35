//! The words that lead to nodes.

use super::base::{Base, LINE};
use super::node::Delta;
use super::steps::MergeDelta;
use std::ptr::{self, NonNull};
use tremula_index::kit::Spec;
use tremula_sync::atomic::AtomicBool;

/// A node's word in the mapping table: the address of the head of its chain. The lowest bits say
/// what that is, and whether an operation holds the node.
///
/// For a delta in the area of its base node they also say how far in front of the header it lies,
/// unless that is too far: then a reader need not wait for the delta to find the header.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(*mut ());

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Base,
    Delta,
    /// A [`Switch`], while a range is removed from several nodes.
    Switch,
    MergeDelta,
    /// Nothing: the node has been merged away.
    Removed,
}

/// All bits below the address: everything that words lead to is aligned to cache lines.
const TAG: usize = LINE - 1;
const HELD: usize = 1;
/// Except for that bit, the tags are multiples of this. Those up to [`FARTHEST`] say how many
/// deltas lie between the address and the header of the base node; 0 means that the header is at
/// the address.
const STEP: usize = 2;
pub(super) const FARTHEST: usize = 27;
/// A delta that lies elsewhere.
const APART: usize = (FARTHEST + 1) * STEP;
/// The tags from here on are those of words to which no delta is prepended.
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

    /// A delta at this distance in front of the header, in deltas; if 0, on the heap.
    #[inline]
    pub(super) fn delta<S: Spec>(delta: NonNull<Delta<S>>, distance: usize) -> Self {
        let fits = (1..=FARTHEST).contains(&distance);
        Self::tagged(delta, if fits { distance * STEP } else { APART })
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

    /// The base node, if the word itself says where it is.
    #[inline]
    pub(super) fn base_node<S: Spec>(self) -> Option<NonNull<Base<S>>> {
        let distance = self.tag() / STEP;
        let base = self.address::<Delta<S>>().wrapping_add(distance);
        NonNull::new(base.cast()).filter(|_| distance <= FARTHEST)
    }

    #[inline]
    pub(super) fn address<T>(self) -> *mut T {
        self.0.map_addr(|address| address & !TAG).cast::<T>()
    }

    pub(super) fn is_none(self) -> bool {
        self.address::<()>().is_null()
    }

    /// Whether any thread may replace it: no thread holds the node, and no switch or merge is under
    /// way.
    #[inline]
    pub(super) fn is_open(self) -> bool {
        // One comparison: the lowest bit, set in the word of a held node, becomes the highest.
        (self.0.addr() & TAG).rotate_right(1) < SWITCH / STEP
    }

    /// Whether only the holder may change it.
    #[inline]
    pub(super) fn is_held(self) -> bool {
        self.0.addr() & HELD != 0
    }

    /// The same word, held.
    #[inline]
    pub(super) fn held(self) -> Self {
        Self(self.0.map_addr(|address| address | HELD))
    }

    /// The same word, released.
    #[inline]
    pub(super) fn released(self) -> Self {
        Self(self.0.map_addr(|address| address & !HELD))
    }
}

/// Two contents of a node, of which one counts: the one before, until all nodes of the range that
/// is being removed have such a switch, and then, from one moment on, the one after.
#[repr(align(64))]
pub(super) struct Switch {
    /// Shared by all nodes of the range; it lives as long as any of their switches.
    pub(super) is_over: *const AtomicBool,
    pub(super) before: Word,
    pub(super) after: Word,
}
