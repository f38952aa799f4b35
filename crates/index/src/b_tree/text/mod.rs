//! Leaves of text: keys of any length that are their bytes, kept in the leaf itself.
//!
//! ```text
//!   leaf: stays at one address                          heap block: replaced when it is full
//!   ┌────────┬───────┬────────┬───────┬───────────┐     ┌──────┬────────┬───────────────────────┐
//!   │ header │ block │ prefix │ hints │ slots …   │     │ skip │ prefix │ entries …             │
//!   └────────┴───┬───┴────────┴───────┴─────┬─────┘     └──────┴────────┴───────────────────────┘
//!                └───────────────────────────────────────▲              ▲
//!                                           └─ place ────────────────────┘
//!   slot:   the first 47 bits behind the prefix | length of the suffix, 8 bits | place, 9 bits
//!   entry:  value | the suffix without its first five bytes       … or, of a long key:
//!           value | a pointer to all bytes of the key, which lie aside
//! ```
//!
//! A key is the leaf's *prefix*, which all of its keys have, and a *suffix*. The slot shows the
//! first five bytes of the suffix, and seven bits more; the bytes behind these five, the *tail*,
//! lie in the entry, padded with zeros to whole words. So a key takes no allocation and no pointer.
//! Slots are sorted, as numbers: [`Heads`] searches them like the heads of any other leaf. The
//! place counts words of the block.
//!
//! # Why so
//!
//! A lookup waits for two lines of memory: the leaf, whose slots are all asked for as soon as its
//! address is known, and the entry, which has the value too. The head of 47 bits and the prefix
//! make nearly all slots of a leaf differ, so that a search looks at one entry. A leaf that grows
//! gets another block, not another address, so no parent changes.
//!
//! # Costs
//!
//! A leaf of up to 160 entries takes 1,536 bytes and a block of 512 bytes to 4 KiB. Both lie in
//! regions of the tree, which are huge pages if the system has them ([`Blocks`]). A search
//! compares 20 numbers and one tail. An insertion moves up to 160 slots of eight bytes, but no
//! entry. Every block that is full is copied to another one, without its removed entries. A
//! key that does not have the prefix makes the prefix shorter: that copies the block as well.
//! A key with a suffix of more than 128 bytes takes an allocation.
//!
//! # Invariants
//!
//! 1. All keys of a leaf begin with its prefix, which the leaf and its block have alike. Its length
//!    is the *skip*.
//! 2. Slots ascend by their heads; where heads are equal, by tails, and then by lengths. Beyond the
//!    count every slot is the greatest number. A hint equals the slot that it stands for.
//! 3. In a block the skip, the prefix and the bytes of entries never change, and no word of an
//!    entry is used for another one. So what a slot leads to in its block can be read as long as
//!    the block lives, even if the leaf has another block by now. Values change under the lock of
//!    the leaf.
//! 4. The lock of the leaf guards all of it. A block that was replaced, and a key aside that was
//!    removed, are retired: a reader that is pinned may still be in them.
//! 5. A reader that has seen a slot and a block of different moments may be led anywhere. It reads
//!    within the block, because the word that leads to the block says how long it is; and it
//!    validates before it follows a pointer, or relies on what it has read.
//!
//! # Sources
//!
//! The suffixes behind a common prefix and their first bits beside one another: Graefe, "Modern
//! B-Tree Techniques", Foundations and Trends in Databases 2011, sections 3.3 (poor man's
//! normalized keys) and 3.5 (prefix and suffix truncation). Entries on a heap behind sorted slots:
//! the slotted page, as there. The block beside the leaf is our own.
//!
//! [`Blocks`]: crate::kit::blocks::Blocks

mod aside;
mod assemble;
mod block;
mod edit;
mod find;
mod heap;
mod invariants;
mod key_bytes;
mod slot;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::kit::{Heads, STRIDE, prefetch, prefetch_to_write};
use aside::Aside;
pub(in crate::b_tree) use aside::Loose;
pub(in crate::b_tree) use assemble::{Assembled, Run};
use block::{Block, MOST_WORDS};
pub(in crate::b_tree) use heap::Heap;
pub(in crate::b_tree) use key_bytes::KeyScratch;
use slot::Slot;
use std::mem::offset_of;
use tremula_sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Entries of a leaf: few under a checker, so that a few steps reach a split.
pub(in crate::b_tree) const CAPACITY: usize = if IS_MODEL { 2 * STRIDE } else { 160 };

/// Whether a checker explores the interleavings of a few steps, or runs many random ones.
const IS_MODEL: bool = cfg!(any(loom, shuttle));

/// The lines of a leaf behind its header.
const LINES: usize = size_of::<TextLeaf>() / 64;

/// The bytes of a word.
const WORD: usize = size_of::<u64>();

/// The words of the longest prefix: as many as fill the lines of the hints.
const PREFIX_WORDS: usize = if IS_MODEL { 1 } else { 9 };

/// The longest prefix.
const MOST_PREFIX: usize = PREFIX_WORDS * WORD;

const HINTS: usize = Heads::hints_of(CAPACITY);

/// All of a leaf of text but its header and the number of its entries.
#[repr(C, align(64))]
pub(in crate::b_tree) struct TextLeaf {
    /// The word of a [`Block`].
    block: AtomicPtr<()>,
    /// A word of [`Figures`].
    figures: AtomicU64,
    /// Where the blocks come from. Never changes.
    heap: Heap,
    prefix: [AtomicU64; PREFIX_WORDS],
    hints: [AtomicU64; HINTS],
    slots: [AtomicU64; CAPACITY],
}

/// Where the rest of a leaf's block begins, and how much of the block is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    /// How many bytes all keys have in common.
    skip: usize,
    /// The first word of the block that has never been used.
    next: usize,
    /// The words of the entries that are linked.
    live: usize,
}

impl Figures {
    const FIELD_BITS: u32 = 16;

    fn to_word(self) -> u64 {
        let fields = [self.skip, self.next, self.live];
        let append = |word, field| word << Self::FIELD_BITS | field as u64;
        fields.into_iter().fold(0, append)
    }

    #[inline]
    fn of_word(word: u64) -> Self {
        let field = |at: u32| (word >> (at * Self::FIELD_BITS) & 0xffff) as usize;
        Self {
            skip: field(2),
            next: field(1),
            live: field(0),
        }
    }
}

/// Prefetches the first lines of a leaf.
#[inline]
fn prefetch_lines(leaf: *const TextLeaf, lines: usize) {
    for line in 0..lines {
        prefetch(leaf.cast::<[u8; 64]>().wrapping_add(line));
    }
}

/// A leaf has no room for a key: it has to be split first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::b_tree) struct Full;

/// An entry as a leaf has it: words that own nothing. They lead to the key as long as the block
/// lives.
#[derive(Clone, Copy)]
pub(in crate::b_tree) struct TextEntry {
    slot: Slot,
    block: Block,
}

impl TextLeaf {
    /// A leaf without entries.
    pub(in crate::b_tree) fn new(heap: Heap) -> Self {
        Self {
            heap,
            block: AtomicPtr::new(Block::NONE.word()),
            figures: AtomicU64::new(0),
            prefix: std::array::from_fn(|_| AtomicU64::new(0)),
            hints: std::array::from_fn(|_| Heads::unused()),
            slots: std::array::from_fn(|_| Heads::unused()),
        }
    }

    /// The slots, which are searched like heads.
    #[inline]
    fn heads(&self) -> Heads<'_> {
        Heads::new(&self.hints, &self.slots)
    }

    #[inline]
    fn slot(&self, at: usize) -> Slot {
        Slot::of_word(self.heads().load(at))
    }

    #[inline]
    fn block(&self) -> Block {
        // Acquire: pairs with the release in `set_block`. A reader that sees the block sees it
        // filled.
        Block::of_word(self.block.load(Ordering::Acquire))
    }

    fn set_block(&self, block: Block) {
        // Release: pairs with the acquire in `block`.
        self.block.store(block.word(), Ordering::Release);
    }

    #[inline]
    fn figures(&self) -> Figures {
        Figures::of_word(self.figures.load(Ordering::Relaxed))
    }

    fn set_figures(&self, figures: Figures) {
        self.figures.store(figures.to_word(), Ordering::Relaxed);
    }

    /// The entry at an index; for an optimistic reader, not validated.
    #[inline]
    pub(in crate::b_tree) fn entry(&self, at: usize) -> TextEntry {
        TextEntry {
            slot: self.slot(at),
            block: self.block(),
        }
    }

    /// Prefetches all slots of a leaf, and what a search reads before them.
    #[inline]
    pub(in crate::b_tree) fn prefetch(leaf: *const Self) {
        prefetch_lines(leaf, LINES);
    }

    /// Prefetches what a search reads before the slots.
    #[inline]
    pub(in crate::b_tree) fn prefetch_front(leaf: *const Self) {
        prefetch_lines(leaf, const { offset_of!(Self, slots).div_ceil(64) });
    }

    /// Prefetches what makes the keys of `entries` entries, from the one at `at` on, and their
    /// values.
    #[inline]
    pub(in crate::b_tree) fn prefetch_entries(&self, at: usize, entries: usize) {
        let block = Block::of_word(self.block.load(Ordering::Relaxed));
        // The prefix.
        prefetch(block.address(0));
        for slot in &self.slots[at..at + entries] {
            let place = Slot::of_word(slot.load(Ordering::Relaxed)).place();
            prefetch(block.address(place));
        }
    }

    /// Prefetches where the next insertion writes an entry.
    #[inline]
    pub(in crate::b_tree) fn prefetch_end(&self) {
        let block = Block::of_word(self.block.load(Ordering::Relaxed));
        prefetch_to_write(block.address(self.figures().next));
    }

    /// Where the leaf's blocks come from.
    pub(in crate::b_tree) fn heap(&self) -> Heap {
        self.heap
    }

    /// Whether entries take less than a quarter of the largest block.
    pub(in crate::b_tree) fn is_mostly_empty(&self) -> bool {
        self.figures().live < MOST_WORDS / 4
    }
}
