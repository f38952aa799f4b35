//! Holding nodes for an operation of several steps: no other thread changes a held node.

use super::Position;
use super::Tree;
use super::descend::Place;
use super::reclaim::Guard;
use super::word::Word;
use tremula_index::kit::Spec;
use tremula_sync::Backoff;

/// The nodes that an operation holds. Dropping it releases them as they were.
pub(super) struct Holds<'t, S: Spec> {
    tree: &'t Tree<S>,
    /// Ids, and the words to release them with.
    held: Vec<(usize, Word)>,
}

impl<'t, S: Spec> Holds<'t, S> {
    pub(super) fn new(tree: &'t Tree<S>) -> Self {
        Self {
            tree,
            held: Vec::new(),
        }
    }

    /// Holds a node, if its word is still this one and no thread holds it. It must not be a spread
    /// leaf.
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

    /// Holds the leaf responsible for a position; waits while another thread holds it. All that the
    /// caller holds already is to the left of that leaf.
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
            self.tree.help_merge(place.word, guard);
            backoff.wait();
        }
    }

    /// Holds the leaf to the right of one that the caller holds; waits while another thread holds
    /// it. All else that the caller holds is further to the left. It follows the link, so all
    /// threads wait in one direction, whatever comparisons say.
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
                self.tree.help_merge(place.word, guard);
            }
            backoff.wait();
        }
    }

    /// Holds the leaf responsible for a position, which is to the left of `held`; gives up after
    /// `attempts`. If comparisons contradict each other, the descent may end at another leaf: then
    /// it returns `held`.
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
            self.tree.help_merge(place.word, guard);
            backoff.wait();
        }
        None
    }

    /// Releases all nodes, each with the word that `word` returns for its id and its old word;
    /// calls it in the order in which the nodes were held.
    pub(super) fn release_all(mut self, mut word: impl FnMut(usize, Word) -> Word) {
        for (id, old) in std::mem::take(&mut self.held) {
            self.tree.table.store(id, word(id, old));
        }
    }

    /// Sets the word of a held node. The node stays held, and will be released with this word.
    pub(super) fn set(&mut self, id: usize, word: Word) {
        self.tree.table.store(id, word.held());
        for held in &mut self.held {
            if held.0 == id {
                held.1 = word;
            }
        }
    }

    /// Sets the word of a held node, and releases it.
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
