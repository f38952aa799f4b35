//! The four kinds of nodes. Each has its own layout and its own search.
//!
//! ```text
//! four         [header, 4 bytes in it][4 slots]                        64 bytes
//! sixteen      [header][16 bytes][16 slots]                           176 bytes
//! forty-eight  [header][which bytes][256 × index of a slot][48 slots] 704 bytes
//! full         [header][which bytes][256 slots][slot of the end]    2,120 bytes
//! ```
//!
//! *four* and *sixteen* keep bytes and slots sorted. The child of a key that ends at the node is in
//! the last slot; a *full* node has an extra slot for it. Slots are written with release and read
//! with acquire, so that a reader that follows a pointer sees what it points to.
//!
//! The methods of the kinds are those of `NodeRef`, where they are described.

mod full;
mod indexed;
mod sorted;

pub(super) use full::Full;
pub(super) use indexed::FortyEight;
pub(super) use sorted::{Four, Sixteen, Sorted};

use super::child::Word;
use super::header::{END, Symbol};
use crate::contract::Direction;
use std::ops::ControlFlow;
use std::ptr;
use tremula_sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// How many values a byte of a key can have. Under a checker keys use only small bytes, so that a
/// full node is small.
#[cfg(not(any(loom, shuttle)))]
pub(super) const BYTES: usize = 256;
#[cfg(loom)]
pub(super) const BYTES: usize = 8;
#[cfg(shuttle)]
pub(super) const BYTES: usize = 32;

/// The capacity of each kind but the last, including the child for the end, and the number of
/// children at which a node of the next larger kind is replaced by this one. Leis et al., ICDE
/// 2013.
pub(super) const CAPACITIES: [usize; 3] = if cfg!(any(loom, shuttle)) {
    [3, 4, 5]
} else {
    [4, 16, 48]
};
pub(super) const SHRINK_TO: [usize; 3] = if cfg!(any(loom, shuttle)) {
    [2, 3, 4]
} else {
    [3, 12, 37]
};

/// A slot for a child or a value.
pub(super) struct Slot(AtomicPtr<()>);

impl Slot {
    fn new(word: Word) -> Self {
        Self(AtomicPtr::new(word))
    }

    fn empty() -> Self {
        Self::new(ptr::null_mut())
    }

    #[inline]
    pub(super) fn load(&self) -> Word {
        // Acquire: pairs with the release in `store`. A thread that reads a pointer here sees
        // everything that was written to the child before it was linked.
        self.0.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn store(&self, word: Word) {
        // Release: pairs with the acquire in `load`.
        self.0.store(word, Ordering::Release);
    }
}

/// A bit for each byte: whether the node has a child for it.
struct Present([AtomicU64; BYTES.div_ceil(64)]);

impl Present {
    fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        self.0[index].load(Ordering::Relaxed)
    }

    #[inline]
    fn has(&self, byte: u8) -> bool {
        self.word(usize::from(byte) / 64) >> (byte % 64) & 1 != 0
    }

    fn change(&self, byte: u8, present: bool) {
        let (index, bit) = (usize::from(byte) / 64, 1 << (byte % 64));
        let word = self.word(index);
        let changed = if present { word | bit } else { word & !bit };
        self.0[index].store(changed, Ordering::Relaxed);
    }

    /// Visits the present symbols from `from` to `to` in this direction, until `visit` breaks.
    #[inline(always)]
    fn sweep<B>(
        &self,
        has_end: bool,
        direction: Direction,
        from: Symbol,
        to: Symbol,
        mut visit: impl FnMut(Symbol) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let has_end = has_end && from == END;
        if has_end && direction == Direction::Ascending {
            visit(END)?;
        }
        if to != END {
            let (low, high) = (byte_of(from.max(1)), byte_of(to));
            let (first, last) = (usize::from(low) / 64, usize::from(high) / 64);
            let masked = |index: usize| {
                let mut word = self.word(index);
                if index == first {
                    word &= u64::MAX << (low % 64);
                }
                if index == last {
                    word &= u64::MAX >> (63 - high % 64);
                }
                word
            };
            let symbol = |index: usize, bit: u32| (index * 64) as Symbol + bit as Symbol + 1;
            match direction {
                Direction::Ascending => {
                    for index in first..=last {
                        let mut word = masked(index);
                        while word != 0 {
                            visit(symbol(index, word.trailing_zeros()))?;
                            word &= word - 1;
                        }
                    }
                }
                Direction::Descending => {
                    for index in (first..=last).rev() {
                        let mut word = masked(index);
                        while word != 0 {
                            let bit = 63 - word.leading_zeros();
                            visit(symbol(index, bit))?;
                            word &= !(1 << bit);
                        }
                    }
                }
            }
        }
        if has_end && direction == Direction::Descending {
            visit(END)?;
        }
        ControlFlow::Continue(())
    }
}

/// The byte that a symbol stands for. The symbol is not [`END`].
#[inline]
fn byte_of(symbol: Symbol) -> u8 {
    (symbol - 1) as u8
}
