//! A cursor over the entries of a range, in order, as of one moment.
//!
//! A walk notes the version of each leaf that it visits, or locks the leaf if it is one that locks.
//! It keeps all versions until the end of a batch. If all of them are still valid then, everything
//! that the walk read was in the tree at one moment, that of the last read. It does not note inner
//! nodes, because a leaf's version also changes with the slices that the leaf is responsible for.
//! When the walk comes to a layer it goes into it, and then continues in the leaf where it was.

use super::Masstree;
use super::node::{Node, NodeRef, Word};
use super::order::Order;
use super::record::Entry;
use super::slices::Slices;
use crate::byte_keyed::{Bounds, Hold, Item, ItemKey, Walk as _};
use crate::contract::{Direction, Storable};
use crate::key::ByteKey;
use crate::kit::{Packed, prefetch};
use std::ptr;
use std::ptr::NonNull;
use tremula_sync::Restart;
use tremula_sync::reclaim::Guard;

/// A leaf that a walk has visited.
pub(super) struct VisitedLeaf<'g, const W: usize> {
    pub(super) leaf: NodeRef<'g, W>,
    pub(super) hold: Hold<'g>,
    pub(super) order: Order,
    /// The ranks of the entries that the walk has taken, as bits, and the number of the first item.
    pub(super) taken: u32,
    pub(super) first_item: usize,
}

impl<const W: usize> VisitedLeaf<'_, W> {
    pub(super) fn validate(&self) -> Result<(), Restart> {
        self.hold.validate(self.leaf.lock())
    }
}

/// A leaf that a walk is in, and the entries ahead there.
pub(super) struct Frame<'g, const W: usize> {
    pub(super) visited: VisitedLeaf<'g, W>,
    /// How many bytes of the keys precede this layer.
    depth: usize,
    entries: [(u64, Word); W],
    from: usize,
    to: usize,
    /// The slices of the edges of the range, if they lead into this layer.
    edges: [Option<u64>; 2],
    /// The next leaf in the direction of the walk, if the range extends to it.
    neighbour: Option<NodeRef<'g, W>>,
    /// The right neighbour. In a descending walk it has to be the leaf that the walk came from.
    next: Option<NonNull<Node<W>>>,
}

/// A walk over a range.
pub(crate) struct Walk<'g, 'b, K, V, const W: usize> {
    guard: &'g Guard<'g>,
    bounds: Bounds<'b>,
    direction: Direction,
    /// Whether the walk locks leaves instead of noting their versions.
    locks: bool,
    /// The leaves that the walk is in, each in a layer below an entry of the one before.
    pub(super) frames: Vec<Frame<'g, W>>,
    /// The leaves that the walk has left since the last batch.
    pub(super) left: Vec<VisitedLeaf<'g, W>>,
    pub(super) items: Vec<Item<'g, K, V>>,
}

impl<'g, 'b, K: ByteKey, V: Storable, const W: usize> crate::byte_keyed::Walk<'g, 'b, K, V>
    for Walk<'g, 'b, K, V, W>
{
    fn new(bounds: Bounds<'b>, direction: Direction, locks: bool, guard: &'g Guard<'g>) -> Self {
        Self {
            guard,
            bounds,
            direction,
            locks,
            frames: Vec::with_capacity(2),
            left: Vec::with_capacity(8),
            items: Vec::new(),
        }
    }

    fn fill(&mut self, limit: usize) -> Result<(), Restart> {
        while self.items.len() < limit && !self.frames.is_empty() {
            self.advance(limit)?;
        }
        self.validate()
    }

    fn items(&mut self) -> &mut Vec<Item<'g, K, V>> {
        &mut self.items
    }

    fn next_batch(&mut self) {
        self.items.clear();
        self.left.clear();
    }

    fn release(&mut self) {
        let leaves = self.frames.drain(..).map(|frame| frame.visited);
        for visited in leaves.chain(self.left.drain(..)) {
            visited.hold.release();
        }
    }

    fn is_released(&self) -> bool {
        self.frames.is_empty()
    }
}

impl<'g, 'b, K: ByteKey, V: Storable, const W: usize> Walk<'g, 'b, K, V, W> {
    /// Begins, or restarts.
    pub(super) fn begin(&mut self, root: NodeRef<'g, W>) -> Result<(), Restart> {
        self.release();
        self.items.clear();
        let edges = self.bounds.edges();
        self.enter(root, 0, edges.map(|edge| edge.is_some()))
    }

    /// Validates all noted versions.
    pub(super) fn validate(&self) -> Result<(), Restart> {
        let leaves = self.frames.iter().map(|frame| &frame.visited);
        leaves.chain(&self.left).try_for_each(VisitedLeaf::validate)
    }

    /// Enters a layer. `met` says whether the lower and the upper edge lead there.
    fn enter(&mut self, root: NodeRef<'g, W>, depth: usize, met: [bool; 2]) -> Result<(), Restart> {
        let slice_of = |bytes| Slices::<K>::at(bytes, depth);
        let edges = (self.bounds.edges_met(met)).map(|edge| edge.map(slice_of));
        let (leaf, version) = root.reach(match self.direction {
            Direction::Ascending => edges[0].unwrap_or(0),
            Direction::Descending => edges[1].unwrap_or(u64::MAX),
        })?;
        let hold = self.hold(leaf)?;
        // If this is valid, the held leaf is the right one to begin in.
        if let Err(restart) = leaf.version().validate(version) {
            hold.release();
            return Err(restart);
        }
        let frame = self.frame(leaf, hold, depth, edges)?;
        self.frames.push(frame);
        Ok(())
    }

    fn hold(&self, leaf: NodeRef<'g, W>) -> Result<Hold<'g>, Restart> {
        Hold::new(leaf.get().lock(), self.locks)
    }

    /// Reads a leaf that is noted or locked.
    #[inline]
    fn frame(
        &self,
        leaf: NodeRef<'g, W>,
        hold: Hold<'g>,
        depth: usize,
        edges: [Option<u64>; 2],
    ) -> Result<Frame<'g, W>, Restart> {
        let order = leaf.order();
        let mut entries = [(0, ptr::null_mut()); W];
        for (to, entry) in entries.iter_mut().zip(leaf.entries(order)) {
            *to = entry;
        }
        let (next, prev) = (leaf.next(), leaf.prev());
        let visited = VisitedLeaf {
            leaf,
            hold,
            order,
            taken: 0,
            first_item: self.items.len(),
        };
        // If this is valid, everything read above is of one version.
        visited.validate()?;
        let known = &entries[..order.count()];
        let from = edges[0].map_or(0, |low| known.partition_point(|entry| entry.0 < low));
        let to = edges[1].map_or(known.len(), |high| {
            known.partition_point(|entry| entry.0 <= high)
        });
        // SAFETY: a neighbour of a leaf that was linked, at that version, since the guard was
        // pinned.
        let follow = |neighbour: NonNull<Node<W>>| unsafe { NodeRef::from_raw(neighbour) };
        let neighbour = match (self.direction, edges) {
            (Direction::Ascending, [_, Some(high)]) => {
                let next = next.filter(|_| to == known.len()).map(follow);
                next.filter(|next| next.low() <= high)
            }
            (Direction::Ascending, [_, None]) => next.map(follow),
            (Direction::Descending, [Some(low), _]) if leaf.low() <= low => None,
            (Direction::Descending, _) => prev.map(follow),
        };
        if let Some(neighbour) = neighbour {
            neighbour.prefetch();
        }
        if !K::HEAD_IS_KEY {
            for (_, word) in &entries[from..to.max(from)] {
                prefetch(*word);
            }
        }
        Ok(Frame {
            visited,
            depth,
            entries,
            from,
            to,
            edges,
            neighbour,
            next,
        })
    }

    /// Takes the entries ahead in the current leaf, up to a layer, which it enters. If there are no
    /// more, it leaves the leaf.
    #[inline]
    fn advance(&mut self, limit: usize) -> Result<(), Restart> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        while frame.from < frame.to && self.items.len() < limit {
            let rank = match self.direction {
                Direction::Ascending => {
                    frame.from += 1;
                    frame.from - 1
                }
                Direction::Descending => {
                    frame.to -= 1;
                    frame.to
                }
            };
            let (slice, word) = frame.entries[rank];
            let met = frame.edges.map(|edge| edge == Some(slice));
            let item = if K::HEAD_IS_KEY {
                // This is the edge itself.
                if met != [false; 2] && !self.bounds.contain_edges(met) {
                    continue;
                }
                Item {
                    key: ItemKey::Head(slice),
                    value: Packed::of_word(word),
                }
            } else {
                // SAFETY: read at one valid version of a leaf that was linked since the guard was
                // pinned.
                match unsafe { Entry::<K, W>::of_word(word, self.guard) } {
                    Entry::Layer(root) => {
                        let depth = frame.depth + Slices::<K>::STEP;
                        return self.enter(root, depth, met);
                    }
                    Entry::Record(record) => {
                        let bounds = self.bounds;
                        let key = record.get().key();
                        if met != [false; 2] && !key.with_bytes(|bytes| bounds.contain(bytes)) {
                            continue;
                        }
                        Item {
                            key: ItemKey::Record(record),
                            value: record.get().value(),
                        }
                    }
                }
            };
            frame.visited.taken |= 1 << rank;
            self.items.push(item);
        }
        if self.items.len() < limit {
            self.leave()
        } else {
            Ok(())
        }
    }

    /// Leaves the current leaf for its neighbour, or for the layer above.
    fn leave(&mut self) -> Result<(), Restart> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        let (depth, edges) = (frame.depth, frame.edges);
        let (leaf, neighbour) = (frame.visited.leaf, frame.neighbour);
        self.left.push(frame.visited);
        let Some(neighbour) = neighbour else {
            return Ok(());
        };
        let hold = self.hold(neighbour)?;
        let frame = self.frame(neighbour, hold, depth, edges)?;
        // The left leaf may have been split meanwhile, and then another leaf lies between. Its
        // `next` says so and is validated in the end. A leaf that is new on the right is noticed
        // because this leaf would have changed.
        if self.direction == Direction::Descending && frame.next != Some(leaf.pointer()) {
            return Err(Restart);
        }
        self.frames.push(frame);
        Ok(())
    }
}

impl<K: ByteKey, V: Storable, const W: usize> Masstree<K, V, W> {
    /// Calls `read` with bytes that lead to an item.
    pub(super) fn with_bytes_of<R>(item: &Item<'_, K, V>, read: impl FnOnce(&[u8]) -> R) -> R {
        match item.key {
            ItemKey::Record(record) => record.get().key().with_bytes(read),
            ItemKey::Head(head) => read(&head.to_be_bytes()),
        }
    }
}
