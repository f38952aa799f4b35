//! The third kind: an index with one byte for each byte value, and slots in no particular order.

use super::super::child::Word;
use super::super::header::{END, Header, LAST, Prefix, Symbol, Tail};
use super::{BYTES, CAPACITIES, Present, Slot, byte_of};
use crate::contract::Direction;
use std::ops::ControlFlow;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// A node of up to 48 children.
#[repr(C, align(64))]
pub(in super::super) struct FortyEight {
    header: Header,
    present: Present,
    /// For each byte, one more than the number of its slot, or 0; eight to a word.
    index: [AtomicU64; BYTES / 8],
    /// The slots in use come first. The last one is for [`END`].
    slots: [Slot; CAPACITIES[2]],
}

impl FortyEight {
    pub(in super::super) fn new(depth: usize, prefix: Prefix) -> Self {
        Self {
            header: Header::new(depth, prefix),
            present: Present::new(),
            index: std::array::from_fn(|_| AtomicU64::new(0)),
            slots: std::array::from_fn(|_| Slot::empty()),
        }
    }

    #[inline]
    fn indexed(&self, byte: u8) -> usize {
        let word = self.index[usize::from(byte) / 8].load(Ordering::Relaxed);
        usize::from((word >> (byte % 8 * 8)) as u8)
    }

    fn set_index(&self, byte: u8, value: usize) {
        let word = &self.index[usize::from(byte) / 8];
        let shift = byte % 8 * 8;
        let others = word.load(Ordering::Relaxed) & !(0xff << shift);
        word.store(others | (value as u64) << shift, Ordering::Relaxed);
    }

    /// The word of the index that a search for this symbol reads, to be prefetched.
    #[inline]
    pub(in super::super) fn index_of(&self, symbol: Symbol) -> &AtomicU64 {
        &self.index[usize::from(byte_of(symbol.max(1))) / 8]
    }

    #[inline]
    pub(in super::super) fn find(&self, tail: Tail, symbol: Symbol) -> Option<Word> {
        if symbol == END {
            return tail.has_end().then(|| self.slots[CAPACITIES[2] - 1].load());
        }
        let at = self.indexed(byte_of(symbol)).checked_sub(1)?;
        Some(self.slots.get(at)?.load())
    }

    #[inline(always)]
    pub(in super::super) fn sweep<B>(
        &self,
        direction: Direction,
        from: Symbol,
        to: Symbol,
        mut visit: impl FnMut(Symbol, Word) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let tail = self.header.tail();
        let see = |symbol| match self.find(tail, symbol) {
            Some(word) => visit(symbol, word),
            // A writer was changing the node during the read.
            None => ControlFlow::Continue(()),
        };
        self.present.sweep(tail.has_end(), direction, from, to, see)
    }

    pub(in super::super) fn children(&self) -> usize {
        let tail = self.header.tail();
        tail.count() + usize::from(tail.has_end())
    }

    pub(in super::super) fn insert(&self, symbol: Symbol, word: Word) {
        let tail = self.header.tail();
        if symbol == END {
            self.slots[CAPACITIES[2] - 1].store(word);
            self.header.set_tail(tail.with_end(true));
        } else {
            let byte = byte_of(symbol);
            let at = tail.count();
            self.slots[at].store(word);
            self.set_index(byte, at + 1);
            self.present.change(byte, true);
            self.header.set_tail(tail.with_count(at + 1));
        }
    }

    pub(in super::super) fn replace(&self, symbol: Symbol, word: Word) {
        let at = if symbol == END {
            CAPACITIES[2] - 1
        } else {
            self.indexed(byte_of(symbol)) - 1
        };
        self.slots[at].store(word);
    }

    pub(in super::super) fn remove(&self, symbol: Symbol) {
        let tail = self.header.tail();
        if symbol == END {
            self.header.set_tail(tail.with_end(false));
            return;
        }
        let byte = byte_of(symbol);
        let (hole, last) = (self.indexed(byte), tail.count());
        self.present.change(byte, false);
        self.set_index(byte, 0);
        if hole != last {
            // The last slot in use moves into the hole.
            let is_last = |symbol| match self.indexed(byte_of(symbol)) == last {
                true => ControlFlow::Break(byte_of(symbol)),
                false => ControlFlow::Continue(()),
            };
            let sweep = (self.present).sweep(false, Direction::Ascending, 1, LAST, is_last);
            if let ControlFlow::Break(moved) = sweep {
                self.slots[hole - 1].store(self.slots[last - 1].load());
                self.set_index(moved, hole);
            }
        }
        self.header.set_tail(tail.with_count(last - 1));
    }
}
