//! An allocator that counts how many bytes are in use, once somebody asks.
//!
//! It is for measuring what a structure has asked for, without the slack of the allocator that
//! serves it. A program installs [`CountingAllocator`] around the allocator that it uses anyway.
//! Until [`live_bytes`] is called for the first time, an allocation pays for one load of a flag
//! that no thread writes.
//!
//! The count is exact only while no thread is allocating or freeing.

use crate::atomic::{AtomicBool, AtomicI64, Ordering};
use std::alloc::{GlobalAlloc, Layout};

static COUNTING: AtomicBool = AtomicBool::new(false);
/// Below zero if more has been freed than was allocated since the counting began.
static LIVE: AtomicI64 = AtomicI64::new(0);

/// Forwards every request to `A`, and counts the bytes.
///
/// ```
/// use tremula_sync::counting_allocator::{CountingAllocator, live_bytes};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator<std::alloc::System> =
///     CountingAllocator::new(std::alloc::System);
///
/// let before = live_bytes().unwrap();
/// let block = vec![0_u8; 1000];
/// assert_eq!(live_bytes().unwrap() - before, 1000);
/// drop(block);
/// assert_eq!(live_bytes().unwrap(), before);
/// ```
#[derive(Debug)]
pub struct CountingAllocator<A> {
    allocator: A,
}

impl<A> CountingAllocator<A> {
    /// Wraps the allocator.
    #[must_use]
    pub const fn new(allocator: A) -> Self {
        Self { allocator }
    }
}

/// How many bytes are allocated and not freed, plus an unknown constant for what was allocated
/// before the first call: only differences mean something. `None` if the program's allocator is not
/// a [`CountingAllocator`].
#[must_use]
pub fn live_bytes() -> Option<u64> {
    /// Large enough that the count stays above zero when everything allocated before is freed.
    const THERE_BEFORE: i64 = 1 << 50;
    // Relaxed, like all accesses here: the count orders nothing, and joining a thread makes its
    // additions visible.
    COUNTING.store(true, Ordering::Relaxed);
    let before = LIVE.load(Ordering::Relaxed);
    let probe = std::hint::black_box(Box::new(0_u64));
    let counted = LIVE.load(Ordering::Relaxed) != before;
    drop(probe);
    counted.then(|| (LIVE.load(Ordering::Relaxed) + THERE_BEFORE).unsigned_abs())
}

/// Adds `bytes`, which is negative when memory is freed, to the count, if counting is on.
#[inline]
fn note(bytes: i64) {
    if COUNTING.load(Ordering::Relaxed) {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Like [`note`], but only if the allocator returned a block: a refused request changes nothing.
#[inline]
fn note_if(block: *mut u8, bytes: i64) {
    if !block.is_null() {
        note(bytes);
    }
}

/// The size of a block as a change of the count. No block is larger than `isize::MAX`.
#[inline]
fn size_of_block(layout: Layout) -> i64 {
    layout.size().cast_signed() as i64
}

// SAFETY: every request is passed on unchanged to an allocator that keeps the contract of
// `GlobalAlloc`, and its answer is returned unchanged. Counting neither allocates nor panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this method, which is also the inner method's.
        let block = unsafe { self.allocator.alloc(layout) };
        note_if(block, size_of_block(layout));
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-size_of_block(layout));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { self.allocator.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        let block = unsafe { self.allocator.alloc_zeroed(layout) };
        note_if(block, size_of_block(layout));
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        let block = unsafe { self.allocator.realloc(block, layout, new_size) };
        note_if(block, new_size.cast_signed() as i64 - size_of_block(layout));
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;
    use std::ptr;

    /// Has memory for blocks of at most this many bytes.
    struct Small(usize);

    // SAFETY: what it does not refuse goes on to the system's allocator; null is a refusal.
    unsafe impl GlobalAlloc for Small {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if layout.size() > self.0 {
                return ptr::null_mut();
            }
            // SAFETY: passed on to the caller.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            // SAFETY: passed on to the caller.
            unsafe { System.dealloc(block, layout) }
        }
    }

    /// Fails if a request is counted before the allocator has answered it. This must stay the only
    /// test that counts, because the count is global to the process.
    #[test]
    fn what_the_allocator_refuses_is_not_counted() {
        let allocator = CountingAllocator::new(Small(100));
        let [small, large] = [100, 101].map(|size| Layout::from_size_align(size, 8).unwrap());
        COUNTING.store(true, Ordering::Relaxed);
        let live = || LIVE.load(Ordering::Relaxed);
        let before = live();
        // SAFETY: the layouts are not empty; the block is freed once, with its layout.
        unsafe {
            assert!(allocator.alloc(large).is_null());
            assert!(allocator.alloc_zeroed(large).is_null());
            assert_eq!(live(), before);
            let block = allocator.alloc(small);
            assert_eq!(live(), before + 100);
            assert!(allocator.realloc(block, small, 101).is_null());
            assert_eq!(live(), before + 100, "the block is as it was");
            let block = allocator.realloc(block, small, 50);
            assert_eq!(live(), before + 50);
            allocator.dealloc(block, Layout::from_size_align(50, 8).unwrap());
        }
        assert_eq!(live(), before);
    }
}
