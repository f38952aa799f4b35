//! Deltas of inner nodes: separators that were inserted or deleted since the base node was made.

use super::keys::{OwnedKey, Place, Probe, StoredKey};
use super::node::{Change, Delta, View};
use super::word::Word;
use crate::contract::Storable;
use crate::key::KeyHead;
use std::marker::PhantomData;
use std::ptr;

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> View<'g, K, V, H> {
    /// The child of an inner node that is responsible for a place.
    #[inline(always)]
    pub(super) fn child_of(&self, place: &Place<'_, K, H>) -> usize {
        match self.delta() {
            None => {
                let all = self.base.count as usize;
                self.base.child(self.base.child_index(place, all))
            }
            Some(_) => self.child_beside_deltas(place),
        }
    }

    /// The same, where there are deltas: the child of the greatest separator in front of the place,
    /// be it a delta's or the base node's.
    #[inline(never)]
    fn child_beside_deltas(self, place: &Place<'_, K, H>) -> usize {
        let split = self.split();
        let mut nearest: Option<&Delta<K, V, H>> = None;
        let mut has_deleted = false;
        for delta in self.deltas() {
            if split.is_some_and(|split| !split.is_in_front(delta)) {
                continue;
            }
            has_deleted |= delta.change == Change::Delete;
            // SAFETY: the chain lives, and with it the keys in it.
            let is_nearer = unsafe {
                delta.change == Change::Insert
                    && place.is_behind(delta.key)
                    && nearest.is_none_or(|nearest| delta.key.compare(nearest.key).is_gt())
            };
            if is_nearer && !(has_deleted && self.is_deleted_again(delta)) {
                nearest = Some(delta);
            }
        }
        // Keys of the base node from here on are greater than that.
        let floor = nearest.map_or(0, |delta| delta.offset + u32::from(delta.overwrites)) as usize;
        let mut index = self.base.child_index(place, self.end());
        // What a delta overwrites has been deleted: otherwise that would be nearer.
        while index > floor && self.is_overwritten(index - 1) {
            index -= 1;
        }
        match nearest {
            Some(delta) if index <= floor => delta.value.addr(),
            _ => self.base.child(index),
        }
    }

    /// Whether a newer delta deletes the separator that one inserts.
    fn is_deleted_again(&self, inserted: &Delta<K, V, H>) -> bool {
        (self.deltas().take_while(|delta| !ptr::eq(*delta, inserted)))
            .any(|delta| delta.change == Change::Delete && delta.key.is(inserted.key))
    }

    fn is_overwritten(&self, at: usize) -> bool {
        (self.changes()).any(|delta| delta.overwrites && delta.offset as usize == at)
    }

    /// The delta that inserts a separator, which the node does not have, with the child on its right.
    pub(super) fn separator(
        &self,
        word: Word,
        key: &OwnedKey<K, H>,
        child: usize,
    ) -> Delta<K, V, H> {
        Delta {
            change: Change::Insert,
            value: ptr::without_provenance_mut(child),
            count: self.count() as u32 + 1,
            ..self.delta_on(word, key.stored())
        }
    }

    /// The delta that deletes a separator, and the child on its right with it.
    pub(super) fn without_separator(&self, word: Word, key: StoredKey<K, H>) -> Delta<K, V, H> {
        Delta {
            change: Change::Delete,
            count: self.count() as u32 - 1,
            ..self.delta_on(word, key)
        }
    }

    /// A delta about a key on this node, whose word is given.
    fn delta_on(&self, word: Word, key: StoredKey<K, H>) -> Delta<K, V, H> {
        // SAFETY: the caller has it from a node that can be read, or owns it.
        let found = unsafe { key.with(|key| self.find(&Probe::new(key))) };
        Delta {
            change: Change::Delete,
            on_heap: false,
            owns: false,
            overwrites: found.overwrites,
            depth: self.depth() as u32 + 1,
            offset: found.offset as u32,
            count: self.count() as u32,
            key,
            value: ptr::null_mut(),
            old: ptr::null_mut(),
            next: word.released(),
            base: self.base.as_ptr(),
            of: PhantomData,
        }
    }
}
