//! Removal of a range in one atomic step.
//!
//! The thread locks all nodes that contain a part of the range, each before those below it. It
//! copies the nodes on the edges of the range without the removed entries, from below upwards. Then
//! one store into the node above replaces the topmost node by its copy: at that moment the range is
//! removed.

use super::Art;
use super::child::{Child, ChildRef, NodeRef, Word};
use super::header::{END, Prefix, Symbol, symbol_at};
use super::locate::SlotRef;
use super::walk::{Frame, Walk};
use crate::byte_keyed::{Bounds, Hold, Walk as _, retire_all};
use crate::contract::{Direction, Storable};
use crate::key::ByteKey;
use std::cmp::Ordering as Order;
use std::marker::PhantomData;
use tremula_sync::atomic::Ordering;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, VersionGuard};

/// What the removal does with a node: leaves it, removes it, or replaces it.
#[derive(Clone, Copy)]
enum Outcome {
    Kept,
    Gone,
    Became(Word),
}

/// The lowest node that contains the whole range, and the slot above.
struct Top<'g> {
    node: NodeRef<'g>,
    start: usize,
    above: Option<SlotRef<'g>>,
}

/// An outcome on an edge of the range: of the child of this frame, under this symbol.
struct OnEdge {
    above: usize,
    symbol: Symbol,
    outcome: Outcome,
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// Removes a range; returns the number of entries removed.
    pub(super) fn try_cut(&self, bounds: Bounds<'_>, guard: &Guard<'_>) -> Result<usize, Restart> {
        // Declared before all locks, so that it is dropped after them if `from_head` panics.
        let mut spared = Vec::new();
        let top = self.top_of(bounds, guard)?;
        let lock_above = match &top.above {
            Some(above) => above.node.header().lock.upgrade(above.version)?,
            None => {
                let root_lock = self.root_lock.lock()?;
                if !self.root(guard).is(top.node) {
                    root_lock.unchanged();
                    return Err(Restart);
                }
                root_lock
            }
        };
        let mut walk = Walk::<K, V>::new(bounds, Direction::Ascending, true, guard);
        walk.begin(top.node, top.start)?;
        walk.fill(usize::MAX)?;
        if walk.items.is_empty() {
            lock_above.unchanged();
            walk.release();
            return Ok(0);
        }
        let has_root = top.above.is_none();
        spare_keys::<K, V>(&walk.frames, has_root, &mut spared);
        // No user code runs from here on, so nothing can stop the removal.
        let mut pruner = Pruner::<K, V> {
            frames: &walk.frames,
            has_root,
            spared,
            on_edges: Vec::new(),
            extended: Vec::new(),
            guard,
            entry: PhantomData,
        };
        let outcomes = pruner.prune();
        let Pruner {
            extended, spared, ..
        } = pruner;
        match (&top.above, outcomes[0]) {
            (Some(above), Outcome::Became(word)) => above.node.replace(above.symbol, word),
            (Some(above), Outcome::Gone) => above.node.remove(above.symbol, false),
            // Release: pairs with the acquire in `root`.
            (None, Outcome::Became(word)) => self.root.store(word, Ordering::Release),
            _ => {}
        }
        if let Some(above) = &top.above {
            Self::check_changed(above.node, guard);
        }
        let count = walk.items.len();
        self.len.add(-isize::try_from(count).unwrap_or(isize::MAX));
        let mut unlinked = Vec::new();
        for (frame, outcome) in walk.frames.into_iter().zip(outcomes) {
            if let Hold::Locked(lock) = frame.hold
                && !matches!(outcome, Outcome::Kept)
            {
                lock.obsolete();
                Self::check_unlinked(frame.node);
                unlinked.push(frame.node);
            }
        }
        drop((lock_above, extended));
        debug_assert!(spared.is_empty(), "each spared key has got its leaf");
        for node in unlinked {
            // SAFETY: neither the node nor one that led to it is linked any more.
            unsafe { node.retire(guard) };
        }
        // SAFETY: no linked node leads to the entries any more.
        unsafe { retire_all(walk.items, guard) };
        Ok(count)
    }

    /// The lowest node that contains the whole range, or one above it, such that the node above
    /// need not be replaced when it loses this child.
    fn top_of<'g>(&self, bounds: Bounds<'_>, guard: &'g Guard<'_>) -> Result<Top<'g>, Restart> {
        let mut way = Vec::new();
        let mut top = Top {
            node: self.root(guard),
            start: 0,
            above: None,
        };
        let [Some(low), Some(high)] = bounds.edges() else {
            return Ok(top);
        };
        loop {
            let node = top.node;
            let lock = &node.header().lock;
            let version = lock.read()?;
            let snapshot = node.header().snapshot();
            let depth = snapshot.depth();
            if !snapshot.begins_at(top.start) {
                return Err(Restart);
            }
            let both_agree =
                [low, high].map(|edge| snapshot.compare(edge, top.start) == Some(Order::Equal));
            let symbol = symbol_at(low, depth);
            if both_agree != [true; 2] || symbol == END || symbol != symbol_at(high, depth) {
                break;
            }
            let word = node.find(snapshot.tail(), symbol);
            lock.validate(version)?;
            let Some(word) = word.filter(|_| !Self::has_values_at(depth)) else {
                break;
            };
            // SAFETY: validated; the node was reached since the guard was pinned.
            let ChildRef::Node(next) = (unsafe { Child::of_word(word).follow::<K>(guard) }) else {
                break;
            };
            let above = SlotRef {
                node,
                version,
                symbol,
            };
            way.push(std::mem::replace(
                &mut top,
                Top {
                    node: next,
                    start: depth + 1,
                    above: Some(above),
                },
            ));
        }
        while let Some(next) = way.pop() {
            // There is no node above the root.
            if next.above.is_none() || !next.node.is_sparse() {
                break;
            }
            top = next;
        }
        Ok(top)
    }
}

/// Makes the keys of the values that the removal leaves alone in their nodes; each of these values
/// becomes a leaf. `from_head` may panic, so it runs before anything is changed.
fn spare_keys<K: ByteKey, V: Storable>(
    frames: &[Frame<'_>],
    has_root: bool,
    spared: &mut Vec<(usize, K)>,
) {
    for (number, frame) in frames.iter().enumerate() {
        let stays = frame.is_outside() || has_root && number == 0;
        if stays || frame.is_inside() || !Art::<K, V>::has_values_at(frame.depth) {
            continue;
        }
        let mut rest = frame.node.entries();
        rest.retain(|(symbol, _)| !frame.removes(*symbol));
        if let [(symbol, _)] = rest[..] {
            spared.push((number, Art::<K, V>::key_of_value(frame.head, symbol)));
        }
    }
}

/// Removes a range from the nodes that a walk has locked.
struct Pruner<'w, 'g, K, V> {
    frames: &'w [Frame<'g>],
    /// Whether the first frame is the root's.
    has_root: bool,
    /// The numbers of the frames that keep one value, and the keys of these values.
    spared: Vec<(usize, K)>,
    on_edges: Vec<OnEdge>,
    /// The locks of nodes outside the range whose prefixes this changes.
    extended: Vec<(NodeRef<'g>, VersionGuard<'g>)>,
    guard: &'g Guard<'g>,
    entry: PhantomData<(K, V)>,
}

impl<'g, K: ByteKey, V: Storable> Pruner<'_, 'g, K, V> {
    /// Decides the outcome of each node. Makes the replacements, but does not link them.
    fn prune(&mut self) -> Vec<Outcome> {
        let frames = self.frames;
        let mut outcomes = vec![Outcome::Kept; frames.len()];
        // From below upwards: the frame of a node follows that of the node above.
        for (number, frame) in frames.iter().enumerate().rev() {
            let is_root = self.has_root && number == 0;
            let outcome = if frame.is_outside() {
                Outcome::Kept
            } else if frame.is_inside() && !is_root {
                Outcome::Gone
            } else {
                self.without_range(number, is_root)
            };
            outcomes[number] = outcome;
            if let Some(above) = frames.get(frame.above)
                && above.edges.contains(&frame.symbol)
            {
                self.on_edges.push(OnEdge {
                    above: frame.above,
                    symbol: frame.symbol,
                    outcome,
                });
            }
        }
        outcomes
    }

    /// The outcome of a node on an edge of the range, or of the root.
    fn without_range(&mut self, number: usize, is_root: bool) -> Outcome {
        let frame = &self.frames[number];
        let node = frame.node;
        let mut rest = Vec::with_capacity(node.children());
        let mut changed = false;
        for (symbol, word) in node.entries() {
            let outcome = if frame.removes(symbol) {
                Outcome::Gone
            } else {
                let mut known = self.on_edges.iter().rev();
                let known = known.find(|edge| edge.above == number && edge.symbol == symbol);
                known.map_or(Outcome::Kept, |edge| edge.outcome)
            };
            match outcome {
                Outcome::Kept => rest.push((symbol, word)),
                Outcome::Gone => changed = true,
                Outcome::Became(word) => {
                    rest.push((symbol, word));
                    changed = true;
                }
            }
        }
        if !changed {
            return Outcome::Kept;
        }
        let of_values = Art::<K, V>::has_values_at(frame.depth);
        let prefix = node.header().snapshot().prefix();
        let node = match rest[..] {
            _ if is_root => NodeRef::full(frame.depth, prefix, &rest, of_values),
            [] => return Outcome::Gone,
            [(_, word)] if of_values => {
                let place = self.spared.iter().position(|(of, _)| *of == number);
                let place = place.expect("the key of each value that is left alone was made");
                let (_, key) = self.spared.swap_remove(place);
                return Outcome::Became(Art::<K, V>::leaf_of_value(key, word));
            }
            [(symbol, word)] => return Outcome::Became(self.raised(prefix, symbol, word)),
            _ => NodeRef::of(frame.depth, prefix, &rest, of_values),
        };
        Art::<K, V>::check_changed(node, self.guard);
        Outcome::Became(node.child().word())
    }

    /// The word that replaces a node with one child left: that child, with the longer prefix.
    fn raised(&mut self, prefix: Prefix, symbol: Symbol, word: Word) -> Word {
        // SAFETY: the node that has it is locked and linked, or has just been made.
        let ChildRef::Node(child) = (unsafe { Child::of_word(word).follow::<K>(self.guard) })
        else {
            return word;
        };
        // If several nodes in a row have one child left, the same child is raised more than once.
        let mut extended = self.extended.iter();
        let locked = extended.any(|(node, _)| node.is(child))
            || self.frames.iter().any(|frame| frame.node.is(child));
        // The child is linked or new, so it is not obsolete, and its lock can be taken.
        if !locked && let Ok(lock) = child.header().lock.lock() {
            self.extended.push((child, lock));
        }
        child.with_prefix_of_parent(prefix, symbol)
    }
}
