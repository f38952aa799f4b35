//! Merging a small node with its neighbour, and taking levels away from the root.

use super::base::{BaseRef, Draft, Position};
use super::descend::Spot;
use super::hold::Holds;
use super::keys::{OwnedKey, Place, StoredKey};
use super::node::{Claim, Entry};
use super::reclaim::Guard;
use super::word::Word;
use super::{BwTree, ROOT};
use crate::contract::Storable;
use crate::key::KeyHead;

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> BwTree<K, V, H> {
    /// Merges a node that is small with the one on its left, or, if it is its parent's first
    /// child, the one on its right with it; then perhaps the parent, which may be small by that.
    /// Gives up when somebody else is at work there.
    pub(super) fn merge(&self, small: &Spot<'_, K, V, H>, guard: &Guard) {
        let mut id = small.id;
        let mut base = small.view.base;
        while id != ROOT {
            let level = base.level + 1;
            let parent = parent_of(self, base, level, guard);
            if parent.view.base.level != level {
                return;
            }
            let mut left = 0;
            if parent.view.count() > 0 {
                match self.merge_under(&parent, id, guard) {
                    Some(count) => left = count,
                    None => return,
                }
            }
            if left > self.merge_below(level) {
                return;
            }
            (id, base) = (parent.id, parent.view.base);
        }
        while self.lower_root(guard) {}
    }

    /// Merges a child with its neighbour; how many separators the parent has left, if it did.
    fn merge_under(&self, parent: &Spot<'_, K, V, H>, id: usize, guard: &Guard) -> Option<usize> {
        let above = &parent.view;
        let mut separators = Vec::new();
        above.entries(&mut separators);
        let first = std::iter::once(above.base.first_child);
        let children: Vec<_> = first.chain(separators.iter().map(Entry::child)).collect();
        let index = children.iter().position(|child| *child == id)?;
        // The place of the separator between the two.
        let place = index.max(1) - 1;
        let (left_id, right_id) = (children[place], children[place + 1]);
        let mut holds = Holds::new(self);
        if !holds.try_hold(parent.id, parent.word) {
            return None;
        }
        // SAFETY: they are children of a node that is held, and so stay in use.
        let (left, right) = unsafe {
            let left = self.visit_whole(left_id, guard)?;
            (left, self.visit_whole(right_id, guard)?)
        };
        let count = left.view.count() + right.view.count();
        let is_alone = left.view.count() == 0 || right.view.count() == 0;
        let level = left.view.base.level;
        let most = self.split_above(level);
        if left.view.right() != right_id
            || count + 1 > if is_alone { most + 1 } else { most - most / 4 }
            || !holds.try_hold(left_id, left.word)
            || !holds.try_hold(right_id, right.word)
        {
            return None;
        }
        let separator = separators.remove(place).key;
        // SAFETY: it is an entry of a node that can be read.
        let moved = (level > 0).then(|| unsafe { OwnedKey::<K, H>::copy_of(separator) });
        let mut entries = Vec::new();
        left.view.entries(&mut entries);
        if let Some(moved) = &moved {
            // A copy of the separator moves down.
            entries.push(Entry {
                key: moved.stored(),
                value: std::ptr::without_provenance_mut(right.view.base.first_child),
            });
        }
        right.view.entries(&mut entries);
        let position = left.view.position();
        let merged = Draft::<K, V, H>::of_entries(
            Position {
                high: right.view.high(),
                right: right.view.right(),
                ..position
            },
            &entries,
            self.fittings(level),
        );
        let shorter = self.without(parent, separator, &separators);
        // Whoever still comes to the right node finds what it had, which nobody changes: its
        // entries are in the left one, too, which is held until nobody comes there any more.
        holds.set(left_id, merged.word());
        holds.release(parent.id, shorter.word());
        holds.release(right_id, Word::REMOVED);
        holds.release(left_id, merged.word());
        merged.give();
        if let Some(moved) = moved {
            moved.give();
        }
        let keeps_chain = shorter.give();
        drop(holds);
        // SAFETY: the chains have just been unlinked; new base nodes have what is left. The two
        // fences where the nodes met belong to nobody now, nor does the separator, unless a delta
        // has it. No node leads to the right one any more.
        unsafe {
            self.retire(left.word, guard);
            self.retire(right.word, guard);
            if !keeps_chain {
                self.retire(parent.word, guard);
            }
            let separator = (!keeps_chain).then_some(separator);
            let keys = [left.view.high(), right.view.base.low(), separator];
            for key in keys.into_iter().flatten() {
                self.retire_key(key, guard);
            }
            self.table.retire(right_id, guard);
        }
        self.counters.merges.add(1);
        Some(separators.len())
    }

    /// An inner node without a separator, of which this is the rest: a delta on its chain, or a new
    /// base node.
    fn without(
        &self,
        spot: &Spot<'_, K, V, H>,
        separator: StoredKey<K, H>,
        rest: &[Entry<K, H>],
    ) -> Shorter<K, V, H> {
        let view = &spot.view;
        match self.place_in_inner(view) {
            Some(claim) => {
                let delta = view.without_separator(spot.word, separator);
                Shorter::Delta(claim.write(view.base, delta), claim)
            }
            None => Shorter::Base(Draft::of_entries(
                view.position(),
                rest,
                self.fittings(view.base.level),
            )),
        }
    }

    /// Puts the only child of the root in its place, if it has only one.
    fn lower_root(&self, guard: &Guard) -> bool {
        // SAFETY: the root is always in use.
        let Some(root) = (unsafe { self.visit(ROOT, guard) }) else {
            return false;
        };
        let base = root.view.base;
        if base.level == 0 || root.view.count() > 0 {
            return false;
        }
        let mut holds = Holds::new(self);
        if !holds.try_hold(ROOT, root.word) {
            return false;
        }
        let child_id = base.first_child;
        // SAFETY: it is the child of a node that is held, and so stays in use.
        let Some(child) = (unsafe { self.visit_whole(child_id, guard) }) else {
            return false;
        };
        // One that has been split has a neighbour that the root does not know yet.
        if child.view.high().is_some() || !holds.try_hold(child_id, child.word) {
            return false;
        }
        let copy = self.copy(&child.view);
        holds.set(ROOT, copy.word());
        holds.release(child_id, Word::REMOVED);
        holds.release(ROOT, copy.word());
        copy.give();
        drop(holds);
        // SAFETY: both chains have just been unlinked, and the new base node has what is left.
        unsafe {
            self.retire(child.word, guard);
            self.retire(root.word, guard);
            self.table.retire(child_id, guard);
        }
        self.counters.merges.add(1);
        true
    }
}

/// What an inner node is to be without one of its separators. Nobody has seen it; dropping it frees
/// it.
enum Shorter<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    Delta(Word, Claim<K, V, H>),
    Base(Draft<K, V, H>),
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Shorter<K, V, H> {
    fn word(&self) -> Word {
        match self {
            Self::Delta(word, _) => *word,
            Self::Base(draft) => draft.word(),
        }
    }

    /// Leaves it to the mapping table; whether it continues the chain that was there.
    fn give(self) -> bool {
        match self {
            Self::Delta(_, claim) => {
                claim.forget();
                true
            }
            Self::Base(draft) => {
                draft.give();
                false
            }
        }
    }
}

/// The node above one that begins at a low fence.
fn parent_of<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>>(
    tree: &BwTree<K, V, H>,
    base: BaseRef<'_, K, V, H>,
    level: u32,
    guard: &'g Guard,
) -> Spot<'g, K, V, H> {
    match base.low() {
        None => tree.descend(&Place::Start, level, guard),
        // SAFETY: fences live as long as the node that they are of can be read.
        Some(low) => unsafe { low.with(|key| tree.descend(&Place::at(key), level, guard)) },
    }
}
