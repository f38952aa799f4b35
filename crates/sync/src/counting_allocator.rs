//! An allocator that counts how many bytes are in use, once somebody asks.
//!
//! A program installs [`CountingAllocator`] around the allocator that it uses anyway. Until
//! somebody asks, an allocation pays for one load of a flag that no thread writes. There are two
//! ways to count:
//!
//! - [`live_bytes`] is for measuring what a structure has asked for, without the slack of the
//!   allocator that serves it. Every change goes to one counter, so the count is exact while no
//!   thread is allocating or freeing, and threads collide on it.
//! - [`count_in_batches`] is for a program that limits its own memory while it runs. Each thread
//!   adds up its own changes, and passes them on once they reach [`BATCH`] bytes. So
//!   [`used_bytes`] costs one load, and is off by at most a batch for each thread that ever ran.
//!
//! Memory that does not come from the allocator counts if its owner reports it: [`note_region`].

use crate::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// Each thread passes its changes on when they reach this many bytes. Small beside any limit of
/// memory, even for some dozens of threads, and large enough that threads rarely meet at the count.
pub const BATCH: i64 = 32 << 10;

/// How allocations are counted: not at all, ...
const OFF: u8 = 0;
/// ... each at once, ...
const EXACTLY: u8 = 1;
/// ... or in batches.
const IN_BATCHES: u8 = 2;

static COUNTING: AtomicU8 = AtomicU8::new(OFF);
/// Below zero if more has been freed than was allocated since the counting began.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// The most that `LIVE` and `REGIONS` have been together, as seen when threads passed batches on.
static PEAK: AtomicI64 = AtomicI64::new(0);
/// Bytes that have been allocated or freed, as far as threads passed them on.
static TURNOVER: AtomicU64 = AtomicU64::new(0);
/// Bytes of memory that does not come from the allocator.
static REGIONS: AtomicI64 = AtomicI64::new(0);

crate::system::thread_local! {
    /// The changes of this thread that are not in `LIVE` yet. It has no destructor, so that it can
    /// be used as long as the thread allocates.
    static PENDING: Cell<i64> = const { Cell::new(0) };
}

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
    COUNTING.store(EXACTLY, Ordering::Relaxed);
    let before = LIVE.load(Ordering::Relaxed);
    let probe = std::hint::black_box(Box::new(0_u64));
    let counted = LIVE.load(Ordering::Relaxed) != before;
    drop(probe);
    counted.then(|| (LIVE.load(Ordering::Relaxed) + THERE_BEFORE).unsigned_abs())
}

/// Counts in batches from now on. Returns `false` if the program's allocator is not a
/// [`CountingAllocator`]; then nothing is counted.
///
/// Call it when the program starts: what was allocated before is not counted, but its freeing is.
pub fn count_in_batches() -> bool {
    COUNTING.store(IN_BATCHES, Ordering::Relaxed);
    let before = PENDING.get();
    let probe = std::hint::black_box(Box::new([0_u8; 64]));
    let counted = PENDING.get() != before;
    drop(probe);
    counted
}

/// The bytes that are allocated and not freed, and those of [regions](note_region): one load each.
/// Threads add what they have in their current batch later, or when they call [`pass_on`].
#[inline]
#[must_use]
pub fn used_bytes() -> u64 {
    total().max(0).unsigned_abs()
}

/// The most that [`used_bytes`] has been.
#[must_use]
pub fn peak_bytes() -> u64 {
    PEAK.load(Ordering::Relaxed).max(total()).unsigned_abs()
}

/// A number that grows while memory is allocated or freed: by the bytes of each batch that a thread
/// passes on, whether they were more or less.
#[must_use]
pub fn turnover() -> u64 {
    TURNOVER.load(Ordering::Relaxed)
}

/// The bytes of [regions](note_region).
#[must_use]
pub fn region_bytes() -> u64 {
    REGIONS.load(Ordering::Relaxed).max(0).unsigned_abs()
}

/// Adds what the calling thread has in its current batch to the count.
pub fn pass_on() {
    let pending = PENDING.replace(0);
    if pending != 0 {
        add(pending);
    }
}

/// Counts memory that does not come from the allocator, in bytes; negative when it is given back.
pub fn note_region(change: i64) {
    REGIONS.fetch_add(change, Ordering::Relaxed);
    PEAK.fetch_max(total(), Ordering::Relaxed);
}

#[inline]
fn total() -> i64 {
    LIVE.load(Ordering::Relaxed) + REGIONS.load(Ordering::Relaxed)
}

#[cold]
fn add(bytes: i64) {
    LIVE.fetch_add(bytes, Ordering::Relaxed);
    TURNOVER.fetch_add(bytes.unsigned_abs(), Ordering::Relaxed);
    if bytes > 0 {
        PEAK.fetch_max(total(), Ordering::Relaxed);
    }
}

/// The name of the program's allocator, if it is known: `mimalloc` with the feature of that name.
#[must_use]
pub const fn name() -> Option<&'static str> {
    if cfg!(feature = "mimalloc") {
        Some("mimalloc")
    } else {
        None
    }
}

/// Gives memory that the calling thread has freed back to the system, as far as whole pages of it
/// are free. Allocators keep it for the thread otherwise, until that thread allocates again. Looks
/// at all pages of the thread.
///
/// Does nothing without the feature `mimalloc`, which is for programs whose allocator that is.
pub fn give_back() {
    #[cfg(feature = "mimalloc")]
    {
        // Links the allocator.
        use libmimalloc_sys as _;
        unsafe extern "C" {
            fn mi_collect(force: bool);
        }
        // SAFETY: mimalloc declares this function so; any thread may call it at any time.
        unsafe { mi_collect(true) };
    }
}

/// Adds `bytes`, which is negative when memory is freed, to the count, if counting is on.
#[inline]
fn note(bytes: i64) {
    match COUNTING.load(Ordering::Relaxed) {
        OFF => {}
        EXACTLY => {
            LIVE.fetch_add(bytes, Ordering::Relaxed);
        }
        _ => {
            let pending = PENDING.get() + bytes;
            if -BATCH < pending && pending < BATCH {
                PENDING.set(pending);
            } else {
                PENDING.set(0);
                add(pending);
            }
        }
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

    /// The two tests below count, and the count is global to the process.
    static ONE_AT_A_TIME: crate::Mutex<()> = crate::Mutex::new(());

    #[test]
    fn batches_add_up() {
        let _alone = ONE_AT_A_TIME.lock();
        let allocator = CountingAllocator::new(System);
        assert!(
            !count_in_batches(),
            "this program's allocator does not count"
        );
        pass_on();
        let before = total();
        let layout = Layout::from_size_align(1000, 8).unwrap();
        let many = 10 * BATCH as usize / layout.size();
        // SAFETY: the layout is not empty; each block is freed once, with its layout.
        unsafe {
            let blocks: Vec<_> = (0..many).map(|_| allocator.alloc(layout)).collect();
            let counted = total() - before;
            let exact = (many * layout.size()) as i64;
            assert!(exact - BATCH < counted && counted <= exact, "{counted}");
            pass_on();
            assert_eq!(total() - before, exact);
            assert!(peak_bytes() >= used_bytes());
            for block in blocks {
                allocator.dealloc(block, layout);
            }
        }
        pass_on();
        assert_eq!(total(), before);
        note_region(4096);
        assert_eq!(total() - before, 4096);
        note_region(-4096);
        COUNTING.store(OFF, Ordering::Relaxed);
    }

    /// Fails if a request is counted before the allocator has answered it.
    #[test]
    fn what_the_allocator_refuses_is_not_counted() {
        let _alone = ONE_AT_A_TIME.lock();
        let allocator = CountingAllocator::new(Small(100));
        let [small, large] = [100, 101].map(|size| Layout::from_size_align(size, 8).unwrap());
        COUNTING.store(EXACTLY, Ordering::Relaxed);
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
        COUNTING.store(OFF, Ordering::Relaxed);
    }
}
