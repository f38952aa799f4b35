//! Heap blocks: the memory in which the entries of a leaf lie.

use super::heap::Heap;
use super::slot::PLACES;
use super::{IS_MODEL, PREFIX_WORDS, WORD};
use crate::kit::Retire;
use std::ptr;
use tremula_sync::atomic::{AtomicPtr, Ordering};

/// A word of a block: bytes, a value, or a pointer to a key aside. Pointers keep their provenance.
pub(super) type Word = AtomicPtr<()>;

pub(super) use crate::kit::blocks::{MOST_UNITS, UNIT_WORDS};

/// Words of the largest block.
pub(super) const MOST_WORDS: usize = MOST_UNITS * UNIT_WORDS;

/// Blocks begin with a cache line, so that the lowest bits of an address are free for the length.
const ALIGN: usize = 64;

/// A block: its address, and how many units it has, in one word. It owns nothing: the leaf that has
/// it retires it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block(*mut ());

/// The words that a block has in front of its entries, if its keys have `skip` bytes in common:
/// that number, and these bytes.
#[inline]
pub(super) const fn words_in_front(skip: usize) -> usize {
    1 + skip.div_ceil(WORD)
}

/// The bytes in a word.
#[inline]
pub(super) fn load_bytes(word: &Word) -> u64 {
    word.load(Ordering::Relaxed).addr() as u64
}

#[inline]
pub(super) fn store_bytes(word: &Word, bytes: u64) {
    let bytes = ptr::without_provenance_mut(bytes as usize);
    word.store(bytes, Ordering::Relaxed);
}

impl Block {
    /// The block of a leaf that has never had an entry.
    pub(super) const NONE: Self = Self(ptr::null_mut());

    /// A block, of words with any content.
    pub(super) fn allocate(units: usize, heap: Heap) -> Self {
        debug_assert!((1..=MOST_UNITS).contains(&units));
        let (start, has_words) = heap.allocate(units);
        if !has_words {
            for at in 0..units * UNIT_WORDS {
                // SAFETY: the units have room for these words.
                unsafe {
                    start
                        .cast::<Word>()
                        .add(at)
                        .write(Word::new(ptr::null_mut()))
                };
            }
        }
        Self(start.cast::<()>().map_addr(|address| address | units))
    }

    #[inline]
    pub(super) fn word(self) -> *mut () {
        self.0
    }

    #[inline]
    pub(super) fn of_word(word: *mut ()) -> Self {
        Self(word)
    }

    #[inline]
    fn units(self) -> usize {
        self.0.addr() % ALIGN
    }

    #[inline]
    fn start(self) -> *mut Word {
        self.0.map_addr(|address| address & !(ALIGN - 1)).cast()
    }

    /// How many words the block has.
    #[inline]
    pub(super) fn length(self) -> usize {
        self.units() * UNIT_WORDS
    }

    /// The address of a word; for prefetches only.
    #[inline]
    pub(super) fn address(self, at: usize) -> *const Word {
        self.start().wrapping_add(at)
    }

    /// The words of the block.
    ///
    /// # Safety
    ///
    /// It is not freed during `'g`.
    #[inline]
    pub(super) unsafe fn words<'g>(self) -> &'g [Word] {
        if self == Self::NONE {
            return &[];
        }
        // SAFETY: `allocate` wrote these words, which have interior mutability; the caller promises
        // that they live.
        unsafe { std::slice::from_raw_parts(self.start(), self.length()) }
    }

    /// Frees the block, but not what its words lead to.
    ///
    /// # Safety
    ///
    /// It came from this heap, and nobody uses it from now on.
    pub(super) unsafe fn free(self, heap: Heap) {
        if self == Self::NONE {
            return;
        }
        // SAFETY: passed on to the caller. The words need no drop, except those of a checker.
        unsafe {
            if IS_MODEL {
                ptr::slice_from_raw_parts_mut(self.start(), self.length()).drop_in_place();
            }
            heap.free(self.start().cast(), self.units());
        }
    }

    /// Frees the block when no thread that is pinned now can be reading it.
    ///
    /// # Safety
    ///
    /// It came from this heap, has been unlinked, and is retired once. The heap lives until then.
    pub(super) unsafe fn retire(self, heap: Heap, guard: &impl Retire) {
        if self == Self::NONE {
            return;
        }
        let word = self.word();
        // SAFETY: it is freed only here, when every thread that could read it has unpinned. Any
        // thread may free words.
        unsafe { guard.defer_unchecked(move || Self::of_word(word).free(heap)) };
    }
}

const _: () = assert!(MOST_UNITS < ALIGN && MOST_WORDS <= PLACES && 1 + PREFIX_WORDS < UNIT_WORDS);
