//! Deltas of inner nodes: separators that were inserted or deleted since the base node was made.

use super::Position;
use super::base::NO_NODE;
use super::node::{Change, Delta, Entry, View};
use super::word::Word;
use std::marker::PhantomData;
use std::ptr;
use tremula_index::kit::{Spec, StoredKey};

impl<'g, S: Spec> View<'g, S> {
    /// The child of an inner node that is responsible for a position.
    #[inline(always)]
    pub(super) fn child_of(&self, position: &Position<'_, S>) -> usize {
        match self.delta() {
            None => {
                let all = self.base.count as usize;
                self.base.child(self.base.child_index(position, all))
            }
            Some(_) => self.child_beside_deltas(position),
        }
    }

    /// As [`child_of`](Self::child_of) in a node with deltas: the child of the greatest separator
    /// in front of the position, whether a delta's or the base node's.
    #[inline(never)]
    fn child_beside_deltas(self, position: &Position<'_, S>) -> usize {
        let split = self.split();
        let mut nearest: Option<&Delta<S>> = None;
        let mut has_deleted = false;
        for delta in self.deltas() {
            if split.is_some_and(|split| !split.is_in_front(delta)) {
                continue;
            }
            has_deleted |= delta.change == Change::Delete;
            // SAFETY: the chain lives, and with it the keys in it.
            let is_nearer = unsafe {
                delta.change == Change::Insert
                    && position.is_behind(delta.key)
                    && nearest.is_none_or(|nearest| delta.key.compare(nearest.key).is_gt())
            };
            if is_nearer && !(has_deleted && self.is_deleted_again(delta)) {
                nearest = Some(delta);
            }
        }
        // Keys of the base node from here on are greater than that separator.
        let floor = nearest.map_or(0, |delta| delta.offset + u32::from(delta.overwrites)) as usize;
        let mut index = self.base.child_index(position, self.end());
        // What a delta overwrites has been deleted: otherwise that delta would be nearer.
        while index > floor && self.is_overwritten(index - 1) {
            index -= 1;
        }
        match nearest {
            Some(delta) if index <= floor => delta.value.addr(),
            _ => self.base.child(index),
        }
    }

    /// Whether a newer delta deletes the separator that `inserted` inserts.
    fn is_deleted_again(&self, inserted: &Delta<S>) -> bool {
        (self.deltas().take_while(|delta| !ptr::eq(*delta, inserted)))
            .any(|delta| delta.change == Change::Delete && delta.value == inserted.value)
    }

    fn is_overwritten(&self, at: usize) -> bool {
        (self.changes()).any(|delta| delta.overwrites && delta.offset as usize == at)
    }

    /// The separators, each with the child on its right, in the order of the children, which is
    /// that of their links. Runs no user code, so that each child is in one node once.
    pub(super) fn separators(&self) -> Vec<Entry<S>> {
        let mut entries: Vec<Entry<S>> = self.base.entries().collect();
        let mut deltas: Vec<_> = self.deltas().collect();
        deltas.reverse();
        for delta in deltas {
            let place = |child: usize| match entries.iter().position(|entry| entry.child() == child)
            {
                Some(place) => place,
                None => unreachable!("a delta is about a child that is there"),
            };
            match delta.change {
                Change::Insert => {
                    let at = if delta.left == self.base.first_child {
                        0
                    } else {
                        place(delta.left) + 1
                    };
                    let entry = Entry {
                        key: delta.key,
                        value: delta.value,
                    };
                    entries.insert(at, entry);
                }
                Change::Delete => {
                    entries.remove(place(delta.value.addr()));
                }
                Change::Split => {
                    let first = self.base.entry(delta.offset as usize).child();
                    entries.truncate(place(first));
                }
                Change::Update => unreachable!("a separator keeps its child"),
            }
        }
        entries
    }

    /// The child next to the right of one, if both are in this node; `None` if the first one is
    /// not.
    pub(super) fn child_behind(&self, child: usize) -> Option<Option<usize>> {
        if self.delta().is_none() {
            let values = self.base.values();
            let index = if child == self.base.first_child {
                0
            } else {
                values.iter().position(|value| value.addr() == child)? + 1
            };
            return Some(values.get(index).map(|value| value.addr()));
        }
        let separators = self.separators();
        let index = if child == self.base.first_child {
            0
        } else {
            separators.iter().position(|entry| entry.child() == child)? + 1
        };
        Some(separators.get(index).map(Entry::child))
    }

    /// The place of the separator to the left of a child: how many entries of the base node are in
    /// front of it, and whether it is one itself.
    fn place_of(&self, child: usize) -> Option<(usize, bool)> {
        let is_it =
            |delta: &&Delta<S>| delta.change == Change::Insert && delta.value.addr() == child;
        if let Some(delta) = self.deltas().find(is_it) {
            return Some((delta.offset as usize, false));
        }
        let mut values = self.base.values().iter();
        let at = values.position(|value| value.addr() == child)?;
        Some((at, true))
    }

    /// The delta that inserts a separator behind the child `left`, with `child` to its right.
    pub(super) fn separator(
        &self,
        word: Word,
        key: StoredKey<S>,
        left: usize,
        child: usize,
    ) -> Option<Delta<S>> {
        let offset = if left == self.base.first_child {
            0
        } else {
            let (offset, is_in_base) = self.place_of(left)?;
            offset + usize::from(is_in_base)
        };
        Some(Delta {
            change: Change::Insert,
            value: ptr::without_provenance_mut(child),
            left,
            count: self.count() as u32 + 1,
            ..self.delta_on(word, key, (offset, false))
        })
    }

    /// The delta that deletes a separator, and the child to its right with it.
    pub(super) fn without_separator(
        &self,
        word: Word,
        key: StoredKey<S>,
        child: usize,
    ) -> Option<Delta<S>> {
        Some(Delta {
            change: Change::Delete,
            value: ptr::without_provenance_mut(child),
            count: self.count() as u32 - 1,
            ..self.delta_on(word, key, self.place_of(child)?)
        })
    }

    /// A delta on a key of this node, whose word is given, and the place of the key.
    fn delta_on(
        &self,
        word: Word,
        key: StoredKey<S>,
        (offset, overwrites): (usize, bool),
    ) -> Delta<S> {
        Delta {
            change: Change::Delete,
            on_heap: false,
            owns: false,
            overwrites,
            depth: self.depth() as u32 + 1,
            offset: offset as u32,
            count: self.count() as u32,
            key,
            value: ptr::null_mut(),
            left: NO_NODE,
            next: word.released(),
            base: self.base.as_ptr(),
            of: PhantomData,
        }
    }
}
