//! An allocator with which two runs of a seed have the same objects on the same cache lines.
//!
//! Outside of a simulation it passes everything on. A virtual thread gets its memory from the run's
//! chunks, which begin at multiples of their size: what a run allocates has the same offsets each
//! time, whatever the process did before. Blocks come in classes of size; each thread
//! has free lists of its own, as thread-caching allocators have, so that blocks of two threads
//! do not share a line.
//!
//! At the end of a run, chunks without a live block are given back. Something that outlives its run
//! keeps its chunk.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The size of a chunk, at whose multiples chunks begin.
const CHUNK: usize = 1 << 26;

/// Blocks that are larger come from the system.
const LARGEST: usize = 1 << 16;

/// The first bytes of a chunk: how many of its blocks are in use.
const HEAD: usize = 4096;

/// What a thread takes from a chunk at once, for blocks of one class.
const SPAN: usize = 1 << 12;

/// The classes: four between a power of two and the next.
const CLASSES: usize = 64;

/// More threads than this share free lists.
const LISTS: usize = 256;

/// The chunks of all runs, by a hash of their address; 0 is free, and 1 was used before.
static CHUNKS: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];
const WAS_USED: usize = 1;

fn slots_of(chunk: usize) -> impl Iterator<Item = &'static AtomicUsize> {
    let home = chunk / CHUNK;
    (0..CHUNKS.len()).map(move |step| &CHUNKS[(home + step) % CHUNKS.len()])
}

/// The chunk that this address is in, if it is in one.
fn chunk_of(address: usize) -> Option<usize> {
    let chunk = address & !(CHUNK - 1);
    for slot in slots_of(chunk) {
        match slot.load(Ordering::Acquire) {
            0 => return None,
            found if found == chunk => return Some(chunk),
            _ => {}
        }
    }
    None
}

/// The memory of a run.
struct Region {
    chunks: [usize; CHUNKS_A_RUN],
    count: usize,
    next: usize,
    end: usize,
    free: [[*mut u8; CLASSES]; LISTS],
    list: usize,
}

const CHUNKS_A_RUN: usize = 512;

std::thread_local! {
    static REGION: Cell<*mut Region> = const { Cell::new(ptr::null_mut()) };
    /// Blocks taken and given since the running thread's last access, which pays for them.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
}

/// The memory of a run, from its beginning to its end.
pub(super) struct Run(*mut Region);

const REGION_LAYOUT: Layout = Layout::new::<Region>();

impl Run {
    pub(super) fn begin() -> Self {
        // SAFETY: all zeroes is a region without chunks and with empty lists.
        let region = unsafe { System.alloc_zeroed(REGION_LAYOUT) }.cast::<Region>();
        assert!(!region.is_null(), "there is memory for a run");
        REGION.set(region);
        COUNT.set(0);
        Self(region)
    }

    /// A virtual thread goes on.
    pub(super) fn enter(&self, thread: usize) {
        // SAFETY: the region lives until this value is dropped, and the allocator is not in use.
        unsafe { (*self.0).list = thread % LISTS };
        ACTIVE.set(true);
    }

    /// How many chunks have a live block.
    pub(super) fn kept(&self) -> usize {
        // SAFETY: the region lives until this value is dropped, and the allocator is not in use.
        let region = unsafe { &*self.0 };
        let chunks = region.chunks[..region.count].iter();
        chunks.filter(|chunk| live_in(**chunk) > 0).count()
    }

    /// The virtual thread has stopped.
    pub(super) fn leave(&self) {
        ACTIVE.set(false);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        ACTIVE.set(false);
        REGION.set(ptr::null_mut());
        // SAFETY: nothing else refers to the region.
        let region = unsafe { &*self.0 };
        for chunk in &region.chunks[..region.count] {
            if live_in(*chunk) == 0 {
                let slot = slots_of(*chunk).find(|slot| slot.load(Ordering::Relaxed) == *chunk);
                if let Some(slot) = slot {
                    slot.store(WAS_USED, Ordering::Release);
                }
                // SAFETY: it came from the system with this layout, and has no live block.
                unsafe { System.dealloc(ptr::with_exposed_provenance_mut(*chunk), CHUNK_LAYOUT) };
            }
        }
        // SAFETY: it came from the system with this layout.
        unsafe { System.dealloc(self.0.cast(), REGION_LAYOUT) };
    }
}

/// How many blocks of a chunk are in use.
fn live_in(chunk: usize) -> usize {
    let live = ptr::with_exposed_provenance::<AtomicUsize>(chunk);
    // SAFETY: a chunk begins with this count.
    unsafe { &*live }.load(Ordering::Acquire)
}

pub(super) fn take_count() -> u64 {
    COUNT.take()
}

/// While it lives, allocations are the simulator's own.
pub(super) struct Paused(bool);

pub(super) fn pause() -> Paused {
    Paused(ACTIVE.replace(false))
}

impl Drop for Paused {
    fn drop(&mut self) {
        ACTIVE.set(self.0);
    }
}

const CHUNK_LAYOUT: Layout = match Layout::from_size_align(CHUNK, CHUNK) {
    Ok(layout) => layout,
    Err(_) => panic!("a chunk has a layout"),
};

/// The size of the blocks for this layout, and their class.
fn class_of(layout: Layout) -> Option<(usize, usize)> {
    let mut size = layout.size().max(16);
    if layout.align() > 16 {
        size = size.max(layout.align()).next_power_of_two();
    }
    if size > LARGEST {
        return None;
    }
    // A quarter of the power of two that is not above the size, but at least 16.
    let step = (1 << size.ilog2()) / 4;
    let step = step.max(16);
    let size = size.next_multiple_of(step);
    let log = size.ilog2() as usize;
    let class = log * 4 + (size - (1 << log)) / (1 << log >> 2);
    Some((size, class - 16))
}

impl Region {
    fn take(&mut self, size: usize, class: usize) -> *mut u8 {
        let head = self.free[self.list][class];
        if !head.is_null() {
            // SAFETY: a free block begins with the address of the next one.
            self.free[self.list][class] = unsafe { head.cast::<*mut u8>().read() };
            return head;
        }
        let count = (SPAN / size).max(1);
        // A span begins at a multiple of the block's alignment, if that is a power of two.
        let align = if size.is_power_of_two() { size } else { 64 };
        let begin = self.next.next_multiple_of(align.max(64));
        if self.next == 0 || begin + count * size > self.end {
            if !self.grow() {
                return ptr::null_mut();
            }
            return self.take(size, class);
        }
        self.next = begin + count * size;
        for block in (1..count).rev() {
            let block = ptr::with_exposed_provenance_mut::<u8>(begin + block * size);
            let list = &mut self.free[self.list][class];
            // SAFETY: the block is new, and large enough.
            unsafe { block.cast::<*mut u8>().write(*list) };
            *list = block;
        }
        ptr::with_exposed_provenance_mut(begin)
    }

    fn grow(&mut self) -> bool {
        if self.count == CHUNKS_A_RUN {
            return false;
        }
        // SAFETY: the layout's size is not 0. The head is all zeroes, and the rest need not be.
        let chunk = unsafe { System.alloc(CHUNK_LAYOUT) };
        if chunk.is_null() {
            return false;
        }
        // SAFETY: the chunk is new.
        unsafe { chunk.cast::<AtomicUsize>().write(AtomicUsize::new(0)) };
        let address = chunk.expose_provenance();
        let slot = slots_of(address).find(|slot| slot.load(Ordering::Relaxed) <= WAS_USED);
        let Some(slot) = slot else { return false };
        slot.store(address, Ordering::Release);
        self.chunks[self.count] = address;
        self.count += 1;
        self.next = address + HEAD;
        self.end = address + CHUNK;
        true
    }

    fn give(&mut self, block: *mut u8, class: usize) {
        let list = &mut self.free[self.list][class];
        // SAFETY: the block is not used any more, and large enough.
        unsafe { block.cast::<*mut u8>().write(*list) };
        *list = block;
    }
}

/// The allocator of programs that simulate: make it the global allocator.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: tremula_sync::sim::Allocator = tremula_sync::sim::Allocator;
///
/// let run = tremula_sync::sim::Simulation::on(tremula_sync::sim::Machine::free_of_charge(1));
/// assert_eq!(run.run(|| Box::new(7)).kept, 1); // the box outlives its run
/// ```
#[derive(Debug)]
pub struct Allocator;

// SAFETY: a block of a run comes from a list in which it is once, and is as large and as aligned as
// its class says; all else is the system's.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ACTIVE.get() {
            COUNT.set(COUNT.get() + 1);
            let region = REGION.get();
            if let Some((size, class)) = class_of(layout) {
                // SAFETY: the run's region; it calls nothing that allocates from it.
                let block = unsafe { (*region).take(size, class) };
                if !block.is_null() {
                    count(block.addr(), true);
                }
                return block;
            }
        }
        // SAFETY: passed on; `dealloc` aligns large blocks as here.
        unsafe { System.alloc(large(layout)) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some((_, class)) = class_of(layout)
            && chunk_of(block.addr()).is_some()
        {
            count(block.addr(), false);
            if ACTIVE.get() {
                COUNT.set(COUNT.get() + 1);
                // SAFETY: as in `alloc`.
                unsafe { (*REGION.get()).give(block, class) };
            }
            return;
        }
        // SAFETY: passed on; large blocks are aligned as in `alloc`.
        unsafe { System.dealloc(block, large(layout)) };
    }
}

/// Blocks that are too large for a class begin with a page, inside of a run and outside.
fn large(layout: Layout) -> Layout {
    if class_of(layout).is_some() {
        return layout;
    }
    layout.align_to(HEAD).unwrap_or(layout)
}

/// Counts a block of a chunk, which is now in use or no longer.
fn count(address: usize, used: bool) {
    if let Some(chunk) = chunk_of(address) {
        let live = ptr::with_exposed_provenance::<AtomicUsize>(chunk);
        // SAFETY: the chunk begins with this count.
        let live = unsafe { &*live };
        if used {
            live.fetch_add(1, Ordering::AcqRel);
        } else {
            live.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
