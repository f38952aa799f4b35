//! The memory of blocks: regions that stay until the map is dropped, divided into units.
//!
//! A reader may look into a block that has been freed and given to another leaf. It finds atomic
//! words there, whatever they mean; by the version of its own leaf it knows to discard them. (Where
//! more than words lies in a block, it is freed when no reader can be in it.)

use super::{HUGE_PAGE, HugePage};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::panic::RefUnwindSafe;
use tremula_sync::Mutex;
use tremula_sync::atomic::{AtomicU64, Ordering, fence};

/// Words of a unit.
pub(crate) const UNIT_WORDS: usize = if cfg!(any(loom, shuttle)) { 8 } else { 64 };
/// Units of the largest block.
pub(crate) const MOST_UNITS: usize = 8;
/// The size of a unit. Blocks are aligned to 512 bytes, so that an address fits into a place. Under
/// a checker words are wider and units have fewer: then a unit is padded to whole words, so that
/// those of a block of several units lie in one row.
pub(crate) const UNIT_BYTES: usize = {
    let word = size_of::<AtomicU64>();
    (UNIT_WORDS * word).next_multiple_of(512 * (word >> word.trailing_zeros()))
};
/// Units whose use one word notes.
const SLAB: usize = 64;
/// Units at the end of a region that are no part of a block: a reader that has seen words which do
/// not belong together looks so far behind one.
pub(crate) const BEHIND: usize = MOST_UNITS + 1;
/// Units of the largest region: with those behind it two mebibytes, the size of a huge page.
const LARGEST_REGION: usize = HUGE_PAGE / UNIT_BYTES - BEHIND;
/// A block gets up to this many units more if nobody else would have use for them.
const LEFT_OVER: usize = 1;
/// Units of the first region.
const FIRST_REGION: usize = MOST_UNITS;
/// From this many units on a map grows by huge pages. Up to here regions come from the allocator,
/// which keeps more memory for them than they have.
const SMALL: usize = HUGE_PAGE / 2 / UNIT_BYTES;

/// A piece of memory: a page of the system, or from the allocator.
struct Region {
    base: *mut u8,
    units: usize,
    is_page: bool,
    free: usize,
    /// Whether the system has the memory of the page back until a unit is used again.
    is_given_back: bool,
    /// The number of its first slab.
    first_slab: usize,
}

impl Region {
    fn layout(units: usize) -> Layout {
        let size = (units + BEHIND) * UNIT_BYTES;
        Layout::from_size_align(size, 512).unwrap_or_else(|_| unreachable!("a small size"))
    }

    /// Asks the allocator for memory.
    fn allocate(units: usize) -> *mut u8 {
        let layout = Self::layout(units);
        // SAFETY: the size is not 0.
        let base = unsafe { alloc(layout) };
        if base.is_null() {
            handle_alloc_error(layout);
        }
        let words = base.cast::<AtomicU64>();
        for word in 0..layout.size() / size_of::<AtomicU64>() {
            // SAFETY: the region has room for these, and nobody else has it yet.
            unsafe { words.add(word).write(AtomicU64::new(0)) };
        }
        base
    }
}

/// Which units are in use, and where the others are.
struct Units {
    /// Sorted by address.
    regions: Vec<Region>,
    /// A bit for each unit that is free.
    slabs: Vec<u64>,
    /// The base of each slab.
    bases: Vec<*mut u8>,
    /// In `bins[run]`: the slabs whose longest run of free units has this length, or `MOST_UNITS`
    /// and more.
    bins: [Vec<u32>; MOST_UNITS + 1],
    /// Where in which of the lists each slab is.
    listed: Vec<(u8, u32)>,
    units: usize,
    free: usize,
    /// Regions in huge pages, as far as the system said.
    huge: usize,
}

/// What the blocks take, without what the system has back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) bytes: usize,
    pub(crate) free_bytes: usize,
    pub(crate) huge_bytes: usize,
    /// What the system gave in pages, past the allocator.
    pub(crate) mapped_bytes: usize,
}

impl Memory {
    /// Named figures, for the shape of an index.
    pub(crate) fn figures(self) -> [(&'static str, u64); 4] {
        [
            ("block_bytes", self.bytes as u64),
            ("free_block_bytes", self.free_bytes as u64),
            ("mapped_block_bytes", self.mapped_bytes as u64),
            ("huge_page_bytes", self.huge_bytes as u64),
        ]
    }
}

/// Gives out blocks of 1 to [`MOST_UNITS`] units.
pub(crate) struct Blocks {
    units: Mutex<Units>,
}

// SAFETY: the regions belong to the map, and nothing is tied to a thread.
unsafe impl Send for Blocks {}
// SAFETY: all but the words of the blocks, which are atomic, is behind a mutex.
unsafe impl Sync for Blocks {}

// No code of the user runs while the mutex is locked.
impl RefUnwindSafe for Blocks {}

/// A bit for each place in `free` where a run of at least `length` ones begins.
fn runs(free: u64, length: usize) -> u64 {
    (1..length).fold(free, |runs, by| runs & (free >> by))
}

/// The length of the longest run of ones, or `MOST_UNITS` if it is longer.
fn longest_run(free: u64) -> usize {
    let mut rest = free;
    let mut length = 0;
    while rest != 0 && length < MOST_UNITS {
        rest &= rest >> 1;
        length += 1;
    }
    length
}

fn ones(length: usize) -> u64 {
    u64::MAX >> (64 - length)
}

impl Units {
    /// A run of `length` free units in `slab`, which has one: the shortest run that is long enough.
    fn find_in(&self, slab: usize, length: usize) -> u32 {
        let free = self.slabs[slab];
        let mut starts = runs(free, length) & !(free << 1);
        let mut best = (u32::MAX, 0);
        while starts != 0 {
            let start = starts.trailing_zeros();
            best = best.min(((free >> start).trailing_ones(), start));
            starts &= starts - 1;
        }
        best.1
    }

    /// Puts a slab whose units have changed into the right list.
    fn list(&mut self, slab: usize) {
        let bin = longest_run(self.slabs[slab]);
        let (before, at) = self.listed[slab];
        if bin == usize::from(before) {
            return;
        }
        let list = &mut self.bins[usize::from(before)];
        list.swap_remove(at as usize);
        if let Some(&moved) = list.get(at as usize) {
            self.listed[moved as usize].1 = at;
        }
        self.listed[slab] = (bin as u8, self.bins[bin].len() as u32);
        self.bins[bin].push(slab as u32);
    }

    /// A slab with a run of `length` free units.
    fn slab_with(&mut self, length: usize) -> usize {
        let fitting = |bins: &[Vec<u32>]| bins[length..].iter().find_map(|bin| bin.last().copied());
        let slab = fitting(&self.bins).or_else(|| {
            self.grow();
            fitting(&self.bins)
        });
        match slab {
            Some(slab) => slab as usize,
            None => unreachable!("a new region has room for any block"),
        }
    }

    /// Adds a region.
    fn grow(&mut self) {
        let units = if self.units < SMALL {
            (self.units / 4).next_power_of_two().max(FIRST_REGION)
        } else {
            LARGEST_REGION
        };
        // A page is full of zeros, which atomic words can be.
        let page = (units == LARGEST_REGION).then(HugePage::new).flatten();
        self.huge += usize::from(page.as_ref().is_some_and(|page| page.is_huge));
        let is_page = page.is_some();
        let base = page.map_or_else(|| Region::allocate(units), |page| page.base);
        assert_eq!(base.addr() as u64 >> 48, 0, "addresses have 48 bits");
        let region = Region {
            base,
            units,
            is_page,
            free: units,
            is_given_back: false,
            first_slab: self.slabs.len(),
        };
        let at = self.regions.partition_point(|other| other.base < base);
        self.regions.insert(at, region);
        for first in (0..units).step_by(SLAB) {
            let slab = self.slabs.len();
            self.slabs.push(ones((units - first).min(SLAB)));
            // SAFETY: within the region.
            self.bases.push(unsafe { base.add(first * UNIT_BYTES) });
            self.listed.push((0, self.bins[0].len() as u32));
            self.bins[0].push(slab as u32);
            self.list(slab);
        }
        self.units += units;
        self.free += units;
    }

    /// The region in which an address lies.
    fn region_of(&self, address: usize) -> usize {
        let behind = |region: &Region| region.base.addr() <= address;
        self.regions.partition_point(behind) - 1
    }

    /// The slab and the unit in it at which a block begins.
    fn locate(&self, block: *mut AtomicU64) -> (usize, u32) {
        let block = block.addr();
        let region = &self.regions[self.region_of(block)];
        let unit = (block - region.base.addr()) / UNIT_BYTES;
        debug_assert!(unit < region.units, "a block of this map");
        (region.first_slab + unit / SLAB, (unit % SLAB) as u32)
    }

    fn take(&mut self, slab: usize, start: u32, length: usize) {
        debug_assert_eq!(self.slabs[slab] >> start & ones(length), ones(length));
        self.slabs[slab] &= !(ones(length) << start);
        self.free -= length;
        let region = self.region_of(self.bases[slab].addr());
        let region = &mut self.regions[region];
        region.free -= length;
        if std::mem::take(&mut region.is_given_back) {
            HugePage::fill();
        }
        self.list(slab);
    }

    fn give(&mut self, slab: usize, start: u32, length: usize) {
        debug_assert_eq!(self.slabs[slab] >> start & ones(length), 0);
        self.slabs[slab] |= ones(length) << start;
        self.free += length;
        let region = self.region_of(self.bases[slab].addr());
        let region = &mut self.regions[region];
        region.free += length;
        if region.is_page && region.free == region.units {
            region.is_given_back = true;
            // SAFETY: a page of which no unit is in use. A reader that is still in one of them
            // finds other words there, as it would if the unit had come to another leaf.
            unsafe { HugePage::empty(region.base) };
        }
        self.list(slab);
    }
}

impl Blocks {
    pub(crate) fn new() -> Self {
        Self {
            units: Mutex::new(Units {
                regions: Vec::new(),
                slabs: Vec::new(),
                bases: Vec::new(),
                bins: std::array::from_fn(|_| Vec::new()),
                listed: Vec::new(),
                units: 0,
                free: 0,
                huge: 0,
            }),
        }
    }

    /// A block of this many units, or of a few more, up to `most`, if these would be left over.
    /// Returns also how many it has. Its words may have any content.
    pub(crate) fn allocate(&self, length: usize, most: usize) -> (*mut AtomicU64, usize) {
        let mut units = self.units.lock();
        let slab = units.slab_with(length);
        let start = units.find_in(slab, length);
        let run = (units.slabs[slab] >> start).trailing_ones() as usize;
        let length = if run <= most && run - length <= LEFT_OVER {
            run
        } else {
            length
        };
        units.take(slab, start, length);
        let base = units.bases[slab];
        drop(units);
        // Release fence: the leaf that had this block before was locked when it freed it, which
        // happened before the mutex was taken. A reader that reads from the block what the caller
        // writes into it now, and then validates that leaf's version behind an acquire fence,
        // sees that lock or a later word.
        fence(Ordering::Release);
        // SAFETY: within the slab.
        (
            unsafe { base.add(start as usize * UNIT_BYTES).cast() },
            length,
        )
    }

    /// Gives back a block.
    pub(crate) fn free(&self, block: *mut AtomicU64, length: usize) {
        if length == 0 {
            return;
        }
        let mut units = self.units.lock();
        let (slab, start) = units.locate(block);
        units.give(slab, start, length);
    }

    /// Changes the length of a block without moving it. Returns whether that could be done.
    pub(crate) fn resize(&self, block: *mut AtomicU64, from: usize, to: usize) -> bool {
        let mut units = self.units.lock();
        let (slab, start) = units.locate(block);
        if to < from {
            units.give(slab, start + to as u32, from - to);
            return true;
        }
        let (behind, more) = (start as usize + from, to - from);
        if behind + more > SLAB || units.slabs[slab] >> behind & ones(more) != ones(more) {
            return false;
        }
        units.take(slab, behind as u32, more);
        drop(units);
        // Release fence: as in `allocate`, for the units that were added.
        fence(Ordering::Release);
        true
    }

    pub(crate) fn used_units(&self) -> usize {
        let units = self.units.lock();
        units.units - units.free
    }

    /// What the blocks take now.
    pub(crate) fn memory(&self) -> Memory {
        let units = self.units.lock();
        let mut memory = Memory {
            bytes: 0,
            free_bytes: 0,
            huge_bytes: units.huge * HUGE_PAGE,
            mapped_bytes: 0,
        };
        for region in units.regions.iter().filter(|region| !region.is_given_back) {
            let bytes = (region.units + BEHIND) * UNIT_BYTES;
            memory.bytes += bytes;
            memory.free_bytes += region.free * UNIT_BYTES;
            memory.mapped_bytes += if region.is_page { bytes } else { 0 };
        }
        memory
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        for region in self.units.lock().regions.drain(..) {
            // SAFETY: a page, or from `alloc` with this layout; and nobody has a block any more.
            // The words need no drop.
            unsafe {
                if region.is_page {
                    HugePage::free(region.base, region.is_given_back);
                } else {
                    dealloc(region.base, Region::layout(region.units));
                }
            }
        }
    }
}
