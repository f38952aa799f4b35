//! The small kinds, whose bytes are sorted and searched in registers.

use super::super::child::Word;
use super::super::header::{END, Header, Prefix, Symbol, Tail};
use super::{CAPACITIES, Slot, byte_of};
use crate::contract::Direction;
use crate::kit::bytes::{position, position_of_four, rank, rank_of_four};
use std::ops::ControlFlow;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// A node of up to four children, in one cache line.
#[repr(C, align(64))]
pub(in super::super) struct Four {
    header: Header,
    slots: [Slot; CAPACITIES[0]],
}

/// A node of up to sixteen children.
#[repr(C, align(16))]
pub(in super::super) struct Sixteen {
    header: Header,
    bytes: [AtomicU64; 2],
    slots: [Slot; CAPACITIES[1]],
}

impl Four {
    pub(in super::super) fn new(depth: usize, prefix: Prefix) -> Self {
        Self {
            header: Header::new(depth, prefix),
            slots: std::array::from_fn(|_| Slot::empty()),
        }
    }
}

impl Sixteen {
    pub(in super::super) fn new(depth: usize, prefix: Prefix) -> Self {
        Self {
            header: Header::new(depth, prefix),
            bytes: std::array::from_fn(|_| AtomicU64::new(0)),
            slots: std::array::from_fn(|_| Slot::empty()),
        }
    }

    #[inline]
    fn bytes(&self) -> [u64; 2] {
        [0, 1].map(|half: usize| self.bytes[half].load(Ordering::Relaxed))
    }
}

/// The code that both small kinds share. They differ in where the bytes are.
pub(in super::super) trait Sorted {
    fn header(&self) -> &Header;

    fn slots(&self) -> &[Slot];

    /// All bytes; the first is the lowest.
    fn all_bytes(&self, tail: Tail) -> u128;

    /// Writes the bytes; returns the tail to store with them.
    fn set_bytes(&self, tail: Tail, bytes: u128) -> Tail;

    /// The position of a byte among those in use.
    fn position(&self, tail: Tail, byte: u8) -> Option<usize>;

    /// How many bytes in use are smaller than this one.
    fn rank(&self, tail: Tail, byte: u8) -> usize;

    #[inline]
    fn find(&self, tail: Tail, symbol: Symbol) -> Option<Word> {
        let at = if symbol == END {
            tail.has_end().then(|| self.slots().len() - 1)
        } else {
            self.position(tail, byte_of(symbol))
        };
        // The tail and the bytes may be of different versions; then any position can come out.
        Some(self.slots().get(at?)?.load())
    }

    #[inline(always)]
    fn sweep<B>(
        &self,
        direction: Direction,
        from: Symbol,
        to: Symbol,
        mut visit: impl FnMut(Symbol, Word) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let tail = self.header().tail();
        let slots = self.slots();
        let has_end = from == END && tail.has_end();
        if has_end && direction == Direction::Ascending {
            visit(END, slots[slots.len() - 1].load())?;
        }
        let bytes = self.all_bytes(tail);
        // A count that a writer was changing may be too large.
        let count = tail.count().min(slots.len());
        let mut see = |at: usize| {
            let symbol = Symbol::from((bytes >> (8 * at)) as u8) + 1;
            if (from..=to).contains(&symbol) {
                visit(symbol, slots[at].load())
            } else {
                ControlFlow::Continue(())
            }
        };
        match direction {
            Direction::Ascending => (0..count).try_for_each(&mut see)?,
            Direction::Descending => (0..count).rev().try_for_each(&mut see)?,
        }
        if has_end && direction == Direction::Descending {
            visit(END, slots[slots.len() - 1].load())?;
        }
        ControlFlow::Continue(())
    }

    fn children(&self) -> usize {
        let tail = self.header().tail();
        tail.count() + usize::from(tail.has_end())
    }

    fn insert(&self, symbol: Symbol, word: Word) {
        let mut tail = self.header().tail();
        if symbol == END {
            self.slots()[self.slots().len() - 1].store(word);
            tail = tail.with_end(true);
        } else {
            let byte = byte_of(symbol);
            let count = tail.count();
            let at = self.rank(tail, byte);
            for slot in (at..count).rev() {
                self.slots()[slot + 1].store(self.slots()[slot].load());
            }
            self.slots()[at].store(word);
            let bytes = self.all_bytes(tail);
            let below = (1 << (8 * at)) - 1;
            let bytes = bytes & below | u128::from(byte) << (8 * at) | (bytes & !below) << 8;
            tail = self.set_bytes(tail, bytes).with_count(count + 1);
        }
        self.header().set_tail(tail);
    }

    fn replace(&self, symbol: Symbol, word: Word) {
        let tail = self.header().tail();
        let at = if symbol == END {
            self.slots().len() - 1
        } else {
            self.rank(tail, byte_of(symbol))
        };
        self.slots()[at].store(word);
    }

    fn remove(&self, symbol: Symbol) {
        let mut tail = self.header().tail();
        if symbol == END {
            tail = tail.with_end(false);
        } else {
            let count = tail.count();
            let at = self.rank(tail, byte_of(symbol));
            for slot in at + 1..count {
                self.slots()[slot - 1].store(self.slots()[slot].load());
            }
            let bytes = self.all_bytes(tail);
            let below = (1 << (8 * at)) - 1;
            let bytes = bytes & below | bytes >> 8 & !below;
            tail = self.set_bytes(tail, bytes).with_count(count - 1);
        }
        self.header().set_tail(tail);
    }
}

impl Sorted for Four {
    #[inline]
    fn header(&self) -> &Header {
        &self.header
    }

    #[inline]
    fn slots(&self) -> &[Slot] {
        &self.slots
    }

    #[inline]
    fn all_bytes(&self, tail: Tail) -> u128 {
        tail.own().into()
    }

    #[inline]
    fn set_bytes(&self, tail: Tail, bytes: u128) -> Tail {
        tail.with_own(bytes as u32)
    }

    #[inline]
    fn position(&self, tail: Tail, byte: u8) -> Option<usize> {
        position_of_four(tail.own(), byte, tail.count())
    }

    #[inline]
    fn rank(&self, tail: Tail, byte: u8) -> usize {
        rank_of_four(tail.own(), byte, tail.count())
    }
}

impl Sorted for Sixteen {
    #[inline]
    fn header(&self) -> &Header {
        &self.header
    }

    #[inline]
    fn slots(&self) -> &[Slot] {
        &self.slots
    }

    #[inline]
    fn all_bytes(&self, _: Tail) -> u128 {
        let [low, high] = self.bytes();
        u128::from(low) | u128::from(high) << 64
    }

    #[inline]
    fn set_bytes(&self, tail: Tail, bytes: u128) -> Tail {
        self.bytes[0].store(bytes as u64, Ordering::Relaxed);
        self.bytes[1].store((bytes >> 64) as u64, Ordering::Relaxed);
        tail
    }

    #[inline]
    fn position(&self, tail: Tail, byte: u8) -> Option<usize> {
        position(self.bytes(), byte, tail.count())
    }

    #[inline]
    fn rank(&self, tail: Tail, byte: u8) -> usize {
        rank(self.bytes(), byte, tail.count())
    }
}
