//! Holding nodes, so that nobody else changes them: for what takes more than one step.

use super::Position;
use super::Tree;
use super::descend::Place;
use super::reclaim::Guard;
use super::word::Word;
use tremula_index::kit::Spec;
use tremula_sync::Backoff;

/// Nodes that an operation holds. Dropping it lets them go as they were.
pub(super) struct Holds<'t, S: Spec> {
    tree: &'t Tree<S>,
    /// Ids, and the words to let them go with.
    held: Vec<(usize, Word)>,
}

impl<'t, S: Spec> Holds<'t, S> {
    pub(super) fn new(tree: &'t Tree<S>) -> Self {
        Self {
            tree,
            held: Vec::new(),
        }
    }

    /// Holds a node, if its word is still this one, and nobody holds it. It is no spread leaf.
    pub(super) fn try_hold(&mut self, id: usize, word: Word) -> bool {
        if !word.is_open() {
            return false;
        }
        self.held.reserve(1);
        let holds = self.tree.table.exchange(id, word, word.held());
        if holds {
            self.held.push((id, word));
        }
        holds
    }

    /// Holds the leaf responsible for a position; waits while another thread does. What the caller
    /// holds already is to the left of it.
    pub(super) fn hold_leaf<'g>(
        &mut self,
        position: &Position<'_, S>,
        guard: &'g Guard,
    ) -> Place<'g, S> {
        let backoff = Backoff::new();
        loop {
            let place = self.tree.descend_to_whole_leaf(position, guard);
            if self.try_hold(place.id, place.word) {
                return place;
            }
            self.tree.make_way(place.word, guard);
            backoff.wait();
        }
    }

    /// Holds the leaf on the right of one that the caller holds, with all that it holds to the left
    /// of that; waits while another thread does. By the link: so all wait in one direction, whatever
    /// comparisons say.
    pub(super) fn hold_right_of<'g>(
        &mut self,
        left: &Place<'_, S>,
        guard: &'g Guard,
    ) -> Place<'g, S> {
        let backoff = Backoff::new();
        let right = left.view.right();
        loop {
            // SAFETY: a leaf whose left neighbour is held stays in use.
            if let Some(place) = unsafe { self.tree.visit_whole(right, guard) } {
                if self.try_hold(place.id, place.word) {
                    return place;
                }
                self.tree.make_way(place.word, guard);
            }
            backoff.wait();
        }
    }

    /// Holds the leaf responsible for a position, which is on the left of one that the caller holds; gives
    /// up after so many attempts. If the order of keys is none, there may be another leaf: then the
    /// one that is held already is returned.
    pub(super) fn hold_left_leaf<'g>(
        &mut self,
        position: &Position<'_, S>,
        held: Option<&Place<'g, S>>,
        attempts: usize,
        guard: &'g Guard,
    ) -> Option<Place<'g, S>> {
        let backoff = Backoff::new();
        for _ in 0..attempts {
            let place = self.tree.descend_to_whole_leaf(position, guard);
            match held {
                Some(held) if place.view.right() != held.id => return Some(*held),
                _ => {}
            }
            if self.try_hold(place.id, place.word) {
                return Some(place);
            }
            self.tree.make_way(place.word, guard);
            backoff.wait();
        }
        None
    }

    /// Lets all nodes go, each with the word that `word` gives for its id and its old one; asks in
    /// the order in which they were held.
    pub(super) fn release_all(mut self, mut word: impl FnMut(usize, Word) -> Word) {
        for (id, old) in std::mem::take(&mut self.held) {
            self.tree.table.store(id, word(id, old));
        }
    }

    /// Sets the word of a node that is held, which stays held, and is let go with this word.
    pub(super) fn set(&mut self, id: usize, word: Word) {
        self.tree.table.store(id, word.held());
        for held in &mut self.held {
            if held.0 == id {
                held.1 = word;
            }
        }
    }

    /// Sets the word of a node that is held, and lets it go.
    pub(super) fn release(&mut self, id: usize, word: Word) {
        self.held.retain(|held| held.0 != id);
        self.tree.table.store(id, word);
    }
}

impl<S: Spec> Drop for Holds<'_, S> {
    fn drop(&mut self) {
        for (id, word) in &self.held {
            self.tree.table.store(*id, *word);
        }
    }
}
