//! The largest kind: a node with a slot for every byte.

use super::super::child::Word;
use super::super::header::{END, Header, Prefix, Symbol, Tail};
use super::{BYTES, Present, Slot, byte_of};
use crate::contract::Direction;
use std::ops::ControlFlow;

/// A node of up to 256 children, and one more for [`END`].
///
/// A writer changes what is under a byte by one store into its slot. So a reader may load a slot
/// without reading the version: the word it finds was in the tree at the moment of the load, or
/// when the node was unlinked.
#[repr(C, align(64))]
pub(in super::super) struct Full {
    header: Header,
    present: Present,
    slots: [Slot; BYTES],
    end: Slot,
}

impl Full {
    /// A node without children. Its slots hold `vacant`.
    pub(in super::super) fn new(depth: usize, prefix: Prefix, vacant: Word) -> Self {
        Self {
            header: Header::new(depth, prefix),
            present: Present::new(),
            slots: std::array::from_fn(|_| Slot::new(vacant)),
            end: Slot::empty(),
        }
    }

    #[inline]
    pub(in super::super) fn slot(&self, symbol: Symbol) -> &Slot {
        if symbol == END {
            &self.end
        } else {
            &self.slots[usize::from(byte_of(symbol))]
        }
    }

    #[inline]
    pub(in super::super) fn find(&self, tail: Tail, symbol: Symbol) -> Option<Word> {
        let present = if symbol == END {
            tail.has_end()
        } else {
            self.present.has(byte_of(symbol))
        };
        present.then(|| self.slot(symbol).load())
    }

    #[inline(always)]
    pub(in super::super) fn sweep<B>(
        &self,
        direction: Direction,
        from: Symbol,
        to: Symbol,
        mut visit: impl FnMut(Symbol, Word) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let has_end = self.header.tail().has_end();
        let see = |symbol| visit(symbol, self.slot(symbol).load());
        self.present.sweep(has_end, direction, from, to, see)
    }

    pub(in super::super) fn children(&self) -> usize {
        let tail = self.header.tail();
        tail.own() as usize + usize::from(tail.has_end())
    }

    pub(in super::super) fn insert(&self, symbol: Symbol, word: Word) {
        let tail = self.header.tail();
        let tail = if symbol == END {
            tail.with_end(true)
        } else {
            self.present.change(byte_of(symbol), true);
            tail.with_own(tail.own() + 1)
        };
        self.header.set_tail(tail);
        self.slot(symbol).store(word);
    }

    pub(in super::super) fn replace(&self, symbol: Symbol, word: Word) {
        self.slot(symbol).store(word);
    }

    pub(in super::super) fn remove(&self, symbol: Symbol, vacant: Word) {
        let tail = self.header.tail();
        let tail = if symbol == END {
            self.end.store(std::ptr::null_mut());
            tail.with_end(false)
        } else {
            self.present.change(byte_of(symbol), false);
            self.slot(symbol).store(vacant);
            tail.with_own(tail.own() - 1)
        };
        self.header.set_tail(tail);
    }
}
