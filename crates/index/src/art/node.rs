//! The operations on a node of any kind, and how a node of one kind is made from another.

use super::child::{Kind, NewNode, NodeRef, Word};
use super::header::{Header, Prefix, Symbol, Tail};
use super::kinds::{CAPACITIES, FortyEight, Four, Full, SHRINK_TO, Sixteen, Sorted};
use crate::contract::Direction;
use crate::kit::prefetch;
use std::ops::ControlFlow;
use std::ptr;

/// The word in a vacant slot of a full node whose slots are values. A value may be the same word,
/// for values use all bits; this one is rare. A thread that reads it asks the node whether the byte
/// is present.
const NO_VALUE: usize = 0x7e5a_0b5e_d001_1d0d_u64 as usize;

/// The word in the vacant slots of a full node; `of_values` says that its slots are values.
#[inline]
pub(super) fn vacant(of_values: bool) -> Word {
    if of_values {
        ptr::without_provenance_mut(NO_VALUE)
    } else {
        ptr::null_mut()
    }
}

impl<'g> NodeRef<'g> {
    /// The word under a symbol. A reader without the lock has yet to validate it; the same holds
    /// for the next two methods.
    #[inline]
    pub(super) fn find(self, tail: Tail, symbol: Symbol) -> Option<Word> {
        match self.kind() {
            Kind::Four(node) => node.find(tail, symbol),
            Kind::Sixteen(node) => node.find(tail, symbol),
            Kind::FortyEight(node) => node.find(tail, symbol),
            Kind::Full(node) => node.find(symbol),
        }
    }

    /// The first symbol at or above `from` that is present, and its word.
    #[inline]
    pub(super) fn ceil(self, from: Symbol) -> Option<(Symbol, Word)> {
        match self.kind() {
            Kind::Four(node) => node.ceil(from),
            Kind::Sixteen(node) => node.ceil(from),
            Kind::FortyEight(node) => node.ceil(from),
            Kind::Full(node) => node.ceil(from),
        }
    }

    /// Visits the present symbols from `from` to `to` and their words, in this direction, until
    /// `visit` breaks. A reader without the lock has yet to validate the words.
    #[inline(always)]
    pub(super) fn sweep<B>(
        self,
        direction: Direction,
        from: Symbol,
        to: Symbol,
        visit: impl FnMut(Symbol, Word) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        match self.kind() {
            Kind::Four(node) => node.sweep(direction, from, to, visit),
            Kind::Sixteen(node) => node.sweep(direction, from, to, visit),
            Kind::FortyEight(node) => node.sweep(direction, from, to, visit),
            Kind::Full(node) => node.sweep(direction, from, to, visit),
        }
    }

    /// How many symbols are present.
    #[inline]
    pub(super) fn children(self) -> usize {
        match self.kind() {
            Kind::Four(node) => node.children(),
            Kind::Sixteen(node) => node.children(),
            Kind::FortyEight(node) => node.children(),
            Kind::Full(node) => node.children(),
        }
    }

    /// Whether the node has no vacant slot for another child.
    #[inline]
    pub(super) fn is_crowded(self) -> bool {
        match self.kind() {
            Kind::Four(node) => node.children() == CAPACITIES[0],
            Kind::Sixteen(node) => node.children() == CAPACITIES[1],
            Kind::FortyEight(node) => node.children() == CAPACITIES[2],
            Kind::Full(_) => false,
        }
    }

    /// Whether the node has to be replaced by a smaller one, or by its last child, when it loses a
    /// child.
    #[inline]
    pub(super) fn is_sparse(self) -> bool {
        match self.kind() {
            Kind::Four(node) => node.children() <= 2,
            Kind::Sixteen(node) => node.children() <= SHRINK_TO[0] + 1,
            Kind::FortyEight(node) => node.children() <= SHRINK_TO[1] + 1,
            Kind::Full(node) => node.children() <= SHRINK_TO[2] + 1,
        }
    }

    /// Adds a word under a symbol that is absent; the node is not crowded. For this and the
    /// following methods the caller holds the lock, or no other thread has the node.
    #[inline]
    pub(super) fn insert(self, symbol: Symbol, word: Word) {
        match self.kind() {
            Kind::Four(node) => node.insert(symbol, word),
            Kind::Sixteen(node) => node.insert(symbol, word),
            Kind::FortyEight(node) => node.insert(symbol, word),
            Kind::Full(node) => node.insert(symbol, word),
        }
    }

    /// Replaces the word under a symbol that is present.
    #[inline]
    pub(super) fn replace(self, symbol: Symbol, word: Word) {
        match self.kind() {
            Kind::Four(node) => node.replace(symbol, word),
            Kind::Sixteen(node) => node.replace(symbol, word),
            Kind::FortyEight(node) => node.replace(symbol, word),
            Kind::Full(node) => node.replace(symbol, word),
        }
    }

    /// Removes a symbol that is present.
    pub(super) fn remove(self, symbol: Symbol, of_values: bool) {
        match self.kind() {
            Kind::Four(node) => node.remove(symbol),
            Kind::Sixteen(node) => node.remove(symbol),
            Kind::FortyEight(node) => node.remove(symbol),
            Kind::Full(node) => node.remove(symbol, vacant(of_values)),
        }
    }

    /// All symbols and words, in order. The caller holds the lock, or no other thread has the node.
    pub(super) fn entries(self) -> impl Iterator<Item = (Symbol, Word)> + use<'g> {
        let mut from = Some(0);
        std::iter::from_fn(move || {
            let (symbol, word) = self.ceil(from?)?;
            from = symbol
                .checked_add(1)
                .filter(|next| *next <= super::header::LAST);
            Some((symbol, word))
        })
    }

    /// A new node of the smallest kind that can hold these entries.
    pub(super) fn of(
        depth: usize,
        prefix: Prefix,
        entries: &[(Symbol, Word)],
        of_values: bool,
    ) -> Self {
        let number = entries.len();
        let new = if number <= CAPACITIES[0] {
            NewNode::Four(Box::new(Four::new(depth, prefix)))
        } else if number <= CAPACITIES[1] {
            NewNode::Sixteen(Box::new(Sixteen::new(depth, prefix)))
        } else if number <= CAPACITIES[2] {
            NewNode::FortyEight(Box::new(FortyEight::new(depth, prefix)))
        } else {
            return Self::full(depth, prefix, entries, of_values);
        };
        let node = Self::new(new);
        for (symbol, word) in entries {
            node.insert(*symbol, *word);
        }
        node
    }

    /// A new full node with these entries.
    pub(super) fn full(
        depth: usize,
        prefix: Prefix,
        entries: &[(Symbol, Word)],
        of_values: bool,
    ) -> Self {
        let new = Full::new(depth, prefix, vacant(of_values));
        let node = Self::new(NewNode::Full(Box::new(new)));
        for (symbol, word) in entries {
            node.insert(*symbol, *word);
        }
        node
    }

    /// Prefetches the memory that a search for this symbol will read.
    #[inline]
    pub(super) fn approach(self, symbol: Symbol) {
        if let Some(full) = self.plain() {
            prefetch(full.slot(symbol));
            return;
        }
        prefetch(self.header());
        match self.kind() {
            Kind::Four(_) => {}
            Kind::Sixteen(node) => {
                let slots = node.slots();
                prefetch(&slots[slots.len() / 4]);
                prefetch(&slots[slots.len() - 1]);
            }
            Kind::FortyEight(node) => prefetch(node.index_of(symbol)),
            Kind::Full(node) => prefetch(node.slot(symbol)),
        }
    }

    /// Prefetches the slots of the next `count` symbols from `from` to `to` in this direction, if
    /// the node is full: the slots of smaller nodes are few lines.
    #[inline]
    pub(super) fn approach_run(self, direction: Direction, from: Symbol, to: Symbol, count: usize) {
        /// Slots in a cache line.
        const IN_A_LINE: usize = 64 / size_of::<Word>();
        if let Kind::Full(node) = self.kind() {
            let count = (count as Symbol).min(to.saturating_sub(from));
            let (low, high) = match direction {
                Direction::Ascending => (from, from + count),
                Direction::Descending => (to - count, to),
            };
            for symbol in (low.max(1)..=high).step_by(IN_A_LINE) {
                prefetch(node.slot(symbol));
            }
        }
    }

    /// The size of the node itself in bytes.
    pub(super) fn bytes(self) -> usize {
        match self.kind() {
            Kind::Four(_) => size_of::<Four>(),
            Kind::Sixteen(_) => size_of::<Sixteen>(),
            Kind::FortyEight(_) => size_of::<FortyEight>(),
            Kind::Full(_) => size_of::<Full>(),
        }
    }
}

const _: () = assert!(
    cfg!(any(loom, shuttle)) || size_of::<Header>() == 32 && size_of::<Four>() == 64,
    "a node of four is one cache line"
);
