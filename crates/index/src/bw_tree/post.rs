//! Splitting a node, and posting the separator in its parent.

use super::base::{Draft, NO_NODE, Position};
use super::descend::Spot;
use super::keys::{OwnedKey, Place, StoredKey};
use super::node::{Entry, View};
use super::reclaim::Guard;
use super::word::Word;
use super::{BwTree, ROOT};
use crate::contract::Storable;
use crate::key::KeyHead;
use std::ptr;

/// Of what is appended to a leaf's end alone, this part moves to the right: appends leave leaves
/// seven eighths full.
const APPENDED_PART: usize = 8;

/// The entry of a separator in an inner node.
fn separator<K: Ord + Storable, H: KeyHead<K>>(key: &OwnedKey<K, H>, child: usize) -> Entry<K, H> {
    Entry {
        key: key.stored(),
        value: ptr::without_provenance_mut(child),
    }
}

/// An id that no node has yet; dropping it frees it.
struct NewId<'t, K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    tree: &'t BwTree<K, V, H>,
    id: usize,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Drop for NewId<'_, K, V, H> {
    fn drop(&mut self) {
        self.tree.table.take_back(self.id);
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> BwTree<K, V, H> {
    fn new_id(&self) -> NewId<'_, K, V, H> {
        NewId {
            tree: self,
            id: self.table.allocate(),
        }
    }

    /// Splits a node of which these are all the entries, unless somebody changes it meanwhile.
    pub(super) fn split(
        &self,
        spot: &Spot<'_, K, V, H>,
        entries: &[Entry<K, H>],
        appends: bool,
        guard: &Guard,
    ) {
        let place = if appends {
            entries.len() - (entries.len() / APPENDED_PART).max(1)
        } else {
            entries.len() / 2
        };
        let middle = entries[place];
        let position = spot.view.base.position();
        let level = position.level;
        let fittings = self.fittings(level);
        // SAFETY: it is an entry of a node that can be read; so in all copies of it.
        let copy = || unsafe { OwnedKey::<K, H>::copy_of(middle.key) };
        let (low, high, right_id) = (copy(), copy(), self.new_id());
        let (left_entries, right_entries) = entries.split_at(place);
        let (right_entries, first_child) = if level == 0 {
            (right_entries, NO_NODE)
        } else {
            // The separator moves up.
            (&right_entries[1..], middle.child())
        };
        let right = Draft::<K, V, H>::of_entries(
            Position {
                low: Some(low.stored()),
                first_child,
                ..position
            },
            right_entries,
            fittings,
        );
        let left = Draft::<K, V, H>::of_entries(
            Position {
                high: Some(high.stored()),
                right: right_id.id,
                ..position
            },
            left_entries,
            fittings,
        );
        self.table.store(right_id.id, right.word());
        if spot.id == ROOT {
            // The root stays where it is, one level higher; both halves are new.
            let (up, left_id) = (copy(), self.new_id());
            self.table.store(left_id.id, left.word());
            let root = Draft::<K, V, H>::of_entries(
                Position {
                    level: level + 1,
                    low: None,
                    high: None,
                    right: NO_NODE,
                    first_child: left_id.id,
                },
                &[separator(&up, right_id.id)],
                self.fittings(level + 1),
            );
            if !self.table.exchange(ROOT, spot.word, root.word()) {
                return;
            }
            root.give();
            up.give();
            std::mem::forget(left_id);
        } else if !self.table.exchange(spot.id, spot.word, left.word()) {
            return;
        }
        left.give();
        right.give();
        low.give();
        high.give();
        std::mem::forget(right_id);
        // SAFETY: the chain has just been unlinked; the two nodes have what was left of it. The
        // separator of an inner node's middle has been copied.
        unsafe {
            self.retire(spot.word, guard);
            if level > 0 {
                self.retire_key(middle.key, guard);
            }
        }
        self.counters.splits.add(1);
        if spot.id != ROOT {
            // On the way there the separator is found missing, and posted.
            // SAFETY: what was retired is alive during this pin.
            unsafe {
                middle
                    .key
                    .with(|key| self.descend(&Place::at(key), level, guard))
            };
        }
    }

    /// Frees a key of the tree's own once nobody can be looking at it.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    pub(super) unsafe fn retire_key(&self, key: StoredKey<K, H>, guard: &Guard) {
        if !H::IS_KEY {
            // SAFETY: passed on to the caller; keys may be dropped by any thread at any time.
            unsafe { guard.defer_unchecked(move || key.free()) };
        }
    }

    /// Tells a parent of the node to the right of one of its children, unless it changes
    /// meanwhile: then whoever passes next tries again. The parent was read before the child was,
    /// and has no separator for the place where the child ends.
    #[cold]
    pub(super) fn post(
        &self,
        parent: &Spot<'_, K, V, H>,
        child: &Spot<'_, K, V, H>,
        guard: &Guard,
    ) {
        let (base, left) = (parent.view.base, child.view.base);
        let Some(high) = left.high() else {
            return;
        };
        if parent.word.is_held() || base.level != left.level + 1 {
            return;
        }
        // SAFETY: fences live as long as the node that they are of can be read.
        let (index, key) = unsafe {
            let index = high.with(|key| base.child_index(&Place::at(key)));
            (index, OwnedKey::<K, H>::copy_of(high))
        };
        let (new, count) = (separator(&key, left.right), base.count as usize);
        let mut draft = Draft::new(base.position(), count + 1, self.fittings(base.level));
        draft.push_run(base, 0..index);
        draft.push(new);
        draft.push_run(base, index..count);
        let Some(word) = self.replace_inner(parent, draft, guard) else {
            return;
        };
        key.give();
        if count + 1 > self.split_above(base.level) {
            // SAFETY: the word was published during this pin.
            if let Some(view) = unsafe { View::of(word, guard) } {
                let entries: Vec<_> = view.base.entries().collect();
                let id = parent.id;
                self.split(&Spot { id, word, view }, &entries, false, guard);
            }
        }
    }

    /// Gives an inner node a new base node, unless somebody changes it meanwhile; returns the word
    /// by which it is found then.
    fn replace_inner(
        &self,
        spot: &Spot<'_, K, V, H>,
        new: Draft<K, V, H>,
        guard: &Guard,
    ) -> Option<Word> {
        let word = new.word();
        if !self.table.exchange(spot.id, spot.word, word) {
            return None;
        }
        new.give();
        // SAFETY: it has just been unlinked; the new base node has its entries.
        unsafe { self.retire(spot.word, guard) };
        Some(word)
    }
}
