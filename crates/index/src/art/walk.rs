//! A cursor over the entries of a range, in order, as of one moment.
//!
//! A walk notes the version of each node that it visits, or locks the node if it is one that locks.
//! It keeps all versions until the end of a batch. If all of them are still valid then, everything
//! that the walk read was in the tree at one moment, that of the last read. Each frame has the
//! number of the frame above, so a step needs no recursion and no new descent.

use super::Art;
use super::child::{Child, ChildRef, NodeRef, Word};
use super::form::Form;
use super::header::{END, LAST, Snapshot, Symbol, symbol_at};
use crate::byte_keyed::{Bounds, ByteForm, Hold, Item, ItemKey, RecordRef};
use crate::contract::{Direction, Storable};
use crate::key::ByteKey;
use crate::kit::{Packed, prefetch};
use std::cmp::Ordering as Order;
use std::ops::{Bound, ControlFlow};
use std::ptr;
use tremula_sync::Restart;
use tremula_sync::reclaim::Guard;

/// No symbol: greater than each of them.
const NONE: Symbol = Symbol::MAX;
/// With fewer frames than this, a walk drops none between batches: it does no harm to validate a
/// version once too often.
const WORTH_FORGETTING: usize = 48;
/// The most entries of a batch that a walk prefetches: a few more than the cache misses that a core
/// has under way at once.
const FARTHEST: usize = 32;
/// No node above.
const NOTHING_ABOVE: usize = usize::MAX;

/// A node that a walk has visited.
pub(super) struct Frame<'g> {
    pub(super) node: NodeRef<'g>,
    pub(super) hold: Hold<'g>,
    pub(super) depth: usize,
    /// The number of the frame above, and the symbol of this node there.
    pub(super) above: usize,
    pub(super) symbol: Symbol,
    /// The symbols that the walk has yet to visit; none if `from` is above `to`.
    from: Symbol,
    to: Symbol,
    /// The symbols under which the lower and the upper edge of the range continue; [`NONE`] for an
    /// edge that does not lead here.
    pub(super) edges: [Symbol; 2],
    /// Whether the entries under these symbols belong to the range. Set when the walk visits them.
    takes: [bool; 2],
    /// The bytes on the way here as the beginning of a head, if slots may be values.
    pub(super) head: u64,
}

impl Frame<'_> {
    /// Validates the version of the node, if the walk has not locked it.
    pub(super) fn validate(&self) -> Result<(), Restart> {
        self.hold.validate(&self.node.header().lock)
    }

    /// Whether the range contains the whole node.
    pub(super) fn is_inside(&self) -> bool {
        self.edges == [NONE; 2] && !self.is_outside()
    }

    /// Whether the range contains nothing of the node.
    pub(super) fn is_outside(&self) -> bool {
        self.from == NONE
    }

    /// Decides whether the range contains its edges, in a node whose slots are values: all bytes
    /// have been compared, so the value under the symbol of an edge is that of the edge itself.
    fn settle_edges(&mut self, bounds: &Bounds<'_>) {
        let [low, high] = self.edges.map(|edge| edge != NONE);
        let excluded = [bounds.low, bounds.high].map(|edge| matches!(edge, Bound::Excluded(_)));
        self.takes = [low && !excluded[0], high && !excluded[1]];
        if low && excluded[0] {
            self.pass(Direction::Ascending, self.edges[0]);
        }
        if high && excluded[1] {
            self.pass(Direction::Descending, self.edges[1]);
        }
    }

    /// Moves past a symbol in this direction.
    #[inline]
    fn pass(&mut self, direction: Direction, symbol: Symbol) {
        match direction {
            Direction::Ascending => self.from = symbol + 1,
            Direction::Descending if symbol == END => self.from = LAST + 1,
            Direction::Descending => self.to = symbol - 1,
        }
    }

    /// The position in a head of the byte by which the node branches. Used only where heads are
    /// keys.
    fn shift(&self) -> u32 {
        56 - 8 * self.depth.min(7) as u32
    }

    /// Whether the removal of the range removes everything under this symbol. A walk over the whole
    /// range has visited every entry of it.
    pub(super) fn removes(&self, symbol: Symbol) -> bool {
        let taken = |edge| symbol == self.edges[edge] && self.takes[edge];
        self.has_all_of(symbol) || taken(0) || taken(1)
    }

    /// Whether the range contains everything under this symbol, which is not an edge's.
    fn has_all_of(&self, symbol: Symbol) -> bool {
        let [low, high] = self.edges;
        !self.is_outside() && (low == NONE || low < symbol) && symbol < high
    }
}

/// An item for a leaf, whose value has not been read yet.
fn unread<'g, K, V: 'static>(leaf: RecordRef<'g, K>) -> Item<'g, K, V> {
    Item {
        key: ItemKey::Record(leaf),
        value: Packed::of_word(ptr::null_mut()),
    }
}

/// A walk over a range.
pub(crate) struct Walk<'g, 'b, K, V> {
    guard: &'g Guard<'g>,
    bounds: Bounds<'b>,
    direction: Direction,
    /// Whether the walk locks nodes instead of noting their versions.
    locks: bool,
    pub(super) frames: Vec<Frame<'g>>,
    /// The number of the current frame.
    at: usize,
    pub(super) items: Vec<Item<'g, K, V>>,
    /// The symbol of the last item.
    last: Symbol,
    /// The size of this batch, at most [`FARTHEST`].
    ahead: usize,
}

impl<'g, 'b, K: ByteKey, V: Storable> crate::byte_keyed::Walk<'g, 'b, K, V> for Walk<'g, 'b, K, V> {
    fn new(bounds: Bounds<'b>, direction: Direction, locks: bool, guard: &'g Guard<'g>) -> Self {
        Self {
            guard,
            bounds,
            direction,
            locks,
            frames: Vec::with_capacity(8),
            at: NOTHING_ABOVE,
            items: Vec::new(),
            last: NONE,
            ahead: 1,
        }
    }

    fn fill(&mut self, limit: usize) -> Result<(), Restart> {
        self.ahead = limit.min(FARTHEST);
        self.items.reserve(self.ahead);
        if let Some(frame) = self.frames.get(self.at) {
            self.look_ahead(frame);
        }
        while self.items.len() < limit && !self.is_over() {
            self.advance(limit)?;
        }
        if !self.locks {
            self.validate()?;
        }
        let mut loaded = false;
        for item in &mut self.items {
            if let ItemKey::Record(leaf) = item.key {
                item.value = leaf.get().value();
                loaded = true;
            }
        }
        if !self.locks && loaded {
            self.validate()?;
        }
        Ok(())
    }

    fn items(&mut self) -> &mut Vec<Item<'g, K, V>> {
        &mut self.items
    }

    fn next_batch(&mut self) {
        self.items.clear();
        if self.is_over() {
            self.frames.clear();
            return;
        }
        if self.frames.len() < WORTH_FORGETTING {
            return;
        }
        // Keep the frames on the way to the current one. A frame follows the one above, so these
        // move to the front in order.
        let mut way = Vec::new();
        let mut at = self.at;
        while at != NOTHING_ABOVE {
            way.push(at);
            at = self.frames[at].above;
        }
        way.reverse();
        for (number, old) in way.iter().enumerate() {
            self.frames.swap(number, *old);
            self.frames[number].above = number.checked_sub(1).unwrap_or(NOTHING_ABOVE);
        }
        self.frames.truncate(way.len());
        self.at = way.len() - 1;
    }

    fn release(&mut self) {
        for frame in self.frames.drain(..) {
            frame.hold.release();
        }
    }

    fn is_released(&self) -> bool {
        self.frames.is_empty()
    }
}

impl<'g, 'b, K: ByteKey, V: Storable> Walk<'g, 'b, K, V> {
    /// Begins, or restarts, at a node to which the first `start` bytes of both edges lead.
    pub(super) fn begin(&mut self, node: NodeRef<'g>, start: usize) -> Result<(), Restart> {
        self.frames.clear();
        self.items.clear();
        self.at = NOTHING_ABOVE;
        let edges = self.bounds.edges();
        let head = if Art::<K, V>::VALUES_AT != usize::MAX && start > 0 {
            let bytes = edges[0].unwrap_or_default();
            crate::key::head_of(&bytes[..start.min(bytes.len())])
        } else {
            0
        };
        let met = edges.map(|edge| edge.is_some());
        self.enter(node, start, met, NONE, head)
    }

    /// Whether the walk has visited the whole range.
    fn is_over(&self) -> bool {
        self.at == NOTHING_ABOVE
    }

    /// The frame of the last item, and its symbol.
    pub(super) fn last_slot(&self) -> (&Frame<'g>, Symbol) {
        (&self.frames[self.at], self.last)
    }

    /// Visits a node. `met` says whether the lower and the upper edge lead here.
    fn enter(
        &mut self,
        node: NodeRef<'g>,
        start: usize,
        met: [bool; 2],
        symbol: Symbol,
        head: u64,
    ) -> Result<(), Restart> {
        if start > 0 {
            self.approach(node, start, met);
        }
        let hold = Hold::new(&node.header().lock, self.locks)?;
        let snapshot = node.header().snapshot();
        if !snapshot.begins_at(start) {
            return Err(Restart);
        }
        let depth = snapshot.depth();
        let mut frame = Frame {
            node,
            hold,
            depth,
            above: self.at,
            symbol,
            from: END,
            to: LAST,
            edges: [NONE; 2],
            takes: [false; 2],
            head,
        };
        if Art::<K, V>::VALUES_AT != usize::MAX {
            frame.head |= snapshot.head_from(start);
        }
        let [low, high] = self.bounds.edges_met(met);
        if let Some(low) = low {
            match self.compare(node, snapshot, low, start)? {
                Order::Less => frame.from = NONE,
                Order::Equal => {
                    frame.from = symbol_at(low, depth);
                    frame.edges[0] = frame.from;
                }
                Order::Greater => {}
            }
        }
        if let Some(high) = high {
            match self.compare(node, snapshot, high, start)? {
                Order::Less => {}
                Order::Equal => {
                    frame.to = symbol_at(high, depth);
                    frame.edges[1] = frame.to;
                }
                Order::Greater => frame.from = NONE,
            }
        }
        if Art::<K, V>::has_values_at(depth) && !frame.is_outside() {
            frame.settle_edges(&self.bounds);
        }
        self.look_ahead(&frame);
        self.at = self.frames.len();
        self.frames.push(frame);
        Ok(())
    }

    /// Prefetches what the walk will read of a node, on the assumption that the node has no prefix.
    fn approach(&self, node: NodeRef<'g>, start: usize, met: [bool; 2]) {
        let [low, high] = self.bounds.edges_met(met);
        let from = low.map_or(END, |low| symbol_at(low, start));
        let to = high.map_or(LAST, |high| symbol_at(high, start));
        if Art::<K, V>::has_values_at(start) && self.ahead > 1 {
            prefetch(node.header());
            node.approach_run(self.direction, from, to, self.ahead);
        } else {
            node.approach(match self.direction {
                Direction::Ascending => from,
                Direction::Descending => to,
            });
        }
    }

    /// Prefetches the children ahead in a node, for this batch and the next, so that the cache
    /// misses overlap.
    fn look_ahead(&self, frame: &Frame<'g>) {
        if self.ahead == 1 || frame.is_outside() {
            return;
        }
        let mut left = (2 * self.ahead).saturating_sub(self.items.len());
        frame
            .node
            .approach_run(self.direction, frame.from, frame.to, left);
        if left == 0 || Art::<K, V>::has_values_at(frame.depth) {
            return;
        }
        // A child node has two entries or thousands. Most likely thousands where slots are values.
        let below = if Art::<K, V>::has_values_at(frame.depth + 1) {
            FARTHEST
        } else {
            4
        };
        let _ = frame
            .node
            .sweep(self.direction, frame.from, frame.to, |_, word| {
                let child = Child::of_word(word);
                prefetch(child.pointer());
                left = left.saturating_sub(if child.is_leaf() { 1 } else { below });
                if left == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
    }

    /// Compares the prefix of a node with an edge. The bytes before the prefix are equal.
    fn compare(
        &self,
        node: NodeRef<'g>,
        snapshot: Snapshot,
        edge: &[u8],
        start: usize,
    ) -> Result<Order, Restart> {
        if let Some(order) = snapshot.compare(edge, start) {
            return Ok(order);
        }
        // Any leaf below has the bytes that the node does not store. If the walk has locked the
        // node itself, the search for a leaf must begin below it.
        let depth = snapshot.depth();
        let leaf = if self.locks {
            let word = node.first(|_| true).ok_or(Restart)?;
            // SAFETY: the node that has it is locked and linked.
            match unsafe { Child::of_word(word).follow(self.guard) } {
                ChildRef::Leaf(leaf) => leaf,
                ChildRef::Node(below) => Art::<K, V>::any_leaf(below, self.guard)?,
                ChildRef::Nothing => return Err(Restart),
            }
        } else {
            Art::<K, V>::any_leaf(node, self.guard)?
        };
        Ok(Form::with(leaf.get().key(), |whole| {
            let path = whole.get(start..depth).unwrap_or_default();
            let rest = &edge[start..edge.len().min(depth)];
            path.cmp(rest)
        }))
    }

    /// Validates all noted versions.
    fn validate(&self) -> Result<(), Restart> {
        self.frames.iter().try_for_each(Frame::validate)
    }

    /// Takes the entries ahead in the current node, up to an entry on an edge of the range or a
    /// node, which it visits. Returns to the frame above if the node has no more.
    #[inline]
    fn advance(&mut self, limit: usize) -> Result<(), Restart> {
        let number = self.at;
        let frame = &mut self.frames[number];
        if frame.from > frame.to {
            self.at = frame.above;
            return Ok(());
        }
        if Art::<K, V>::has_values_at(frame.depth) {
            self.take_values(number, limit);
            return Ok(());
        }
        let edges = frame.edges;
        let items = &mut self.items;
        let guard = self.guard;
        let stop = frame
            .node
            .sweep(self.direction, frame.from, frame.to, |symbol, word| {
                let child = Child::of_word(word);
                if edges.contains(&symbol) || !child.is_leaf() {
                    return ControlFlow::Break((symbol, Some(word)));
                }
                // SAFETY: the leaf is only remembered here; `fill` validates the node before it
                // reads the leaf.
                if let ChildRef::Leaf(leaf) = unsafe { child.follow(guard) } {
                    items.push(unread(leaf));
                }
                if items.len() == limit {
                    ControlFlow::Break((symbol, None))
                } else {
                    ControlFlow::Continue(())
                }
            });
        let ControlFlow::Break((symbol, word)) = stop else {
            self.at = frame.above;
            return Ok(());
        };
        frame.pass(self.direction, symbol);
        self.last = symbol;
        match word {
            None => Ok(()),
            Some(word) => self.visit_child(number, symbol, word),
        }
    }

    /// Visits a child node, or the leaf on an edge of the range.
    fn visit_child(&mut self, number: usize, symbol: Symbol, word: Word) -> Result<(), Restart> {
        let frame = &self.frames[number];
        let met = frame.edges.map(|edge| edge == symbol);
        frame.validate()?;
        // SAFETY: validated; the node was reached since the guard was pinned.
        match unsafe { Child::of_word(word).follow::<K>(self.guard) } {
            ChildRef::Nothing => Err(Restart),
            ChildRef::Leaf(leaf) => {
                let bounds = self.bounds;
                let frame = &mut self.frames[number];
                let taken = Form::with(leaf.get().key(), |bytes| bounds.contain(bytes));
                for (takes, met) in frame.takes.iter_mut().zip(met) {
                    *takes |= met && taken;
                }
                if taken {
                    self.items.push(unread(leaf));
                }
                Ok(())
            }
            ChildRef::Node(node) => {
                let start = frame.depth + 1;
                let head = self.head_with(frame, symbol);
                self.enter(node, start, met, symbol, head)
            }
        }
    }

    /// Takes the values ahead in a node whose slots are values, and returns to the frame above if
    /// there are no more. The edges of the range were decided when the walk came here.
    #[inline]
    fn take_values(&mut self, number: usize, limit: usize) {
        let frame = &mut self.frames[number];
        let (head, shift) = (frame.head, frame.shift());
        let items = &mut self.items;
        let stop = frame
            .node
            .sweep(self.direction, frame.from, frame.to, |symbol, word| {
                items.push(Item {
                    key: ItemKey::Head(head | u64::from(symbol - 1) << shift),
                    value: Packed::of_word(word),
                });
                if items.len() == limit {
                    ControlFlow::Break(symbol)
                } else {
                    ControlFlow::Continue(())
                }
            });
        match stop {
            ControlFlow::Continue(()) => self.at = frame.above,
            ControlFlow::Break(symbol) => {
                frame.pass(self.direction, symbol);
                self.last = symbol;
            }
        }
    }

    /// The head of a frame, with the byte of a symbol.
    fn head_with(&self, frame: &Frame<'g>, symbol: Symbol) -> u64 {
        if Art::<K, V>::VALUES_AT == usize::MAX || symbol == END {
            frame.head
        } else {
            frame.head | u64::from(symbol - 1) << frame.shift()
        }
    }
}
