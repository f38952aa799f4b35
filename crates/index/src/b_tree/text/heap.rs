//! Where leaves and blocks lie: in regions of the tree, which are huge pages if the system has any.

use super::block::UNIT_WORDS;
use crate::kit::blocks::{Blocks, UNIT_BYTES};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr;
use tremula_sync::atomic::AtomicPtr;

/// The regions of a tree; or the allocator, under the checkers and in tests of leaves without a
/// tree. It is a pointer, which each leaf has: so what changes a leaf needs nothing beside it.
#[derive(Clone, Copy)]
pub(in crate::b_tree) struct Heap(*const Blocks);

// SAFETY: any thread may use the blocks, and the pointer owns nothing.
unsafe impl Send for Heap {}
// SAFETY: as for `Send`.
unsafe impl Sync for Heap {}

/// The layout of a number of units from the allocator.
fn layout(units: usize) -> Layout {
    // Under a checker words are wider.
    let bytes = UNIT_BYTES.max(UNIT_WORDS * size_of::<AtomicPtr<()>>());
    match Layout::from_size_align(units * bytes, 64) {
        Ok(layout) => layout,
        Err(_) => unreachable!("a small size"),
    }
}

impl Heap {
    /// The allocator.
    pub(in crate::b_tree) const NONE: Self = Self(ptr::null());

    /// The regions of a tree. The caller keeps them where they are as long as a leaf has this.
    pub(in crate::b_tree) fn of(blocks: Option<&Blocks>) -> Self {
        Self(blocks.map_or(ptr::null(), ptr::from_ref))
    }

    /// Memory of a number of units. Returns also whether it may have any content: if not, nothing
    /// has been written to it. Atomic words may be read there in any case.
    pub(in crate::b_tree) fn allocate(self, units: usize) -> (*mut u8, bool) {
        // SAFETY: the regions stay where they are as long as there are leaves.
        if let Some(blocks) = unsafe { self.0.as_ref() } {
            let (block, length) = blocks.allocate(units, units);
            debug_assert_eq!(length, units);
            return (block.cast(), true);
        }
        let layout = layout(units);
        // SAFETY: the size is not 0.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        (start, false)
    }

    /// Gives back memory of a number of units.
    ///
    /// # Safety
    ///
    /// It came from this heap, with this number of units, and nobody uses it from now on.
    pub(in crate::b_tree) unsafe fn free(self, start: *mut u8, units: usize) {
        // SAFETY: the regions stay where they are as long as there are leaves.
        match unsafe { self.0.as_ref() } {
            Some(blocks) => blocks.free(start.cast(), units),
            // SAFETY: the allocator gave it, with this layout.
            None => unsafe { dealloc(start, layout(units)) },
        }
    }
}
