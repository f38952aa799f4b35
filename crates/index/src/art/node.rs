//! The operations on a node of any kind, and how a node of one kind is made from another.

use super::child::{Kind, NodeRef, Word};
use super::header::{END, Header, LAST, Prefix, Symbol, Tail};
use super::kinds::{CAPACITIES, FortyEight, Four, Full, SHRINK_TO, Sixteen, Sorted};
use crate::contract::Direction;
use crate::kit::prefetch;
use std::convert::Infallible;
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

/// Evaluates the same expression for a node of each kind.
macro_rules! of_kind {
    ($node:expr, $of_kind:ident => $result:expr) => {
        match $node.kind() {
            Kind::Four($of_kind) => $result,
            Kind::Sixteen($of_kind) => $result,
            Kind::FortyEight($of_kind) => $result,
            Kind::Full($of_kind) => $result,
        }
    };
}

impl NodeRef<'_> {
    /// The word under a symbol. A reader without the lock has yet to validate it; the same holds
    /// for the next two methods.
    #[inline]
    pub(super) fn find(self, tail: Tail, symbol: Symbol) -> Option<Word> {
        of_kind!(self, node => node.find(tail, symbol))
    }

    /// Visits the present symbols from `from` to `to` and their words, in this direction, until
    /// `visit` breaks.
    #[inline(always)]
    pub(super) fn sweep<B>(
        self,
        direction: Direction,
        from: Symbol,
        to: Symbol,
        visit: impl FnMut(Symbol, Word) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        of_kind!(self, node => node.sweep(direction, from, to, visit))
    }

    /// The word under the first present symbol that is `wanted`.
    #[inline]
    pub(super) fn first(self, wanted: impl Fn(Symbol) -> bool) -> Option<Word> {
        let see = |symbol, word| match wanted(symbol) {
            true => ControlFlow::Break(word),
            false => ControlFlow::Continue(()),
        };
        self.sweep(Direction::Ascending, END, LAST, see)
            .break_value()
    }

    /// How many symbols are present.
    #[inline]
    pub(super) fn children(self) -> usize {
        of_kind!(self, node => node.children())
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
        of_kind!(self, node => node.insert(symbol, word));
    }

    /// Replaces the word under a symbol that is present.
    #[inline]
    pub(super) fn replace(self, symbol: Symbol, word: Word) {
        of_kind!(self, node => node.replace(symbol, word));
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

    /// Visits all present symbols and their words, in order.
    #[inline(always)]
    pub(super) fn for_each(self, mut see: impl FnMut(Symbol, Word)) {
        let _ = self.sweep(Direction::Ascending, END, LAST, |symbol, word| {
            see(symbol, word);
            ControlFlow::<Infallible>::Continue(())
        });
    }

    /// All present symbols and their words, in order. The vector has room for one more.
    pub(super) fn entries(self) -> Vec<(Symbol, Word)> {
        let mut entries = Vec::with_capacity(self.children() + 1);
        self.for_each(|symbol, word| entries.push((symbol, word)));
        entries
    }

    /// A new node of the smallest kind that can hold these entries.
    pub(super) fn of(
        depth: usize,
        prefix: Prefix,
        entries: &[(Symbol, Word)],
        of_values: bool,
    ) -> Self {
        let number = entries.len();
        let node = if number <= CAPACITIES[0] {
            Self::new(Four::new(depth, prefix))
        } else if number <= CAPACITIES[1] {
            Self::new(Sixteen::new(depth, prefix))
        } else if number <= CAPACITIES[2] {
            Self::new(FortyEight::new(depth, prefix))
        } else {
            return Self::full(depth, prefix, entries, of_values);
        };
        node.with(entries)
    }

    /// A new full node with these entries.
    pub(super) fn full(
        depth: usize,
        prefix: Prefix,
        entries: &[(Symbol, Word)],
        of_values: bool,
    ) -> Self {
        Self::new(Full::new(depth, prefix, vacant(of_values))).with(entries)
    }

    fn with(self, entries: &[(Symbol, Word)]) -> Self {
        for (symbol, word) in entries {
            self.insert(*symbol, *word);
        }
        self
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
        of_kind!(self, node => size_of_val(node))
    }
}

const _: () = assert!(
    cfg!(any(loom, shuttle)) || size_of::<Header>() == 32 && size_of::<Four>() == 64,
    "a node of four is one cache line"
);
