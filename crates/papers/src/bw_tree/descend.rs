//! The descent from the root to the node that is responsible for a position.

use super::Position;
use super::node::View;
use super::reclaim::Guard;
use super::word::Word;
use super::{ROOT, Tree};
use tremula_index::kit::{SearchKey, Spec};
use tremula_sync::Backoff;

/// A node that a descent has come to, as the descent saw it.
#[derive(Clone, Copy)]
pub(super) struct Place<'g, S: Spec> {
    pub(super) id: usize,
    pub(super) word: Word,
    pub(super) view: View<'g, S>,
}

impl<S: Spec> Tree<S> {
    /// A node as it is now; `None` if it has been merged away. If a merge of it is under way, this
    /// call finishes the merge first.
    ///
    /// # Safety
    ///
    /// The id was in use at some time during the pin.
    #[inline]
    pub(super) unsafe fn visit<'g>(&self, id: usize, guard: &'g Guard) -> Option<Place<'g, S>> {
        let word = self.table.load(id);
        // SAFETY: the word was read during the pin, and ids are not used again before its end.
        let Some(view) = (unsafe { View::of(word, guard) }) else {
            self.help_merge(word, guard);
            return None;
        };
        view.base.prefetch();
        Some(Place { id, word, view })
    }

    /// The leaf responsible for a key: a faster [`descend`](Self::descend) for the most frequent
    /// case.
    #[inline]
    pub(super) fn leaf_of<'g>(&self, probe: &SearchKey<'_, S>, guard: &'g Guard) -> Place<'g, S> {
        let position = Position::At(*probe);
        if self.has_deltas_on_the_way {
            return self.descend(&position, 0, guard);
        }
        let mut id = ROOT;
        // SAFETY: the root is always in use; nodes in use linked to the others.
        while let Some(place) = unsafe { self.visit(id, guard) } {
            let base = place.view.base;
            if base.level > 0 {
                // A key beyond this node's fence is also beyond the fence of its last child.
                id = base.child(base.child_index(&position, base.count as usize));
                continue;
            }
            // SAFETY: the node can be read, and its fences live as long as it can be.
            let is_beyond = |high| unsafe { position.is_behind(high) };
            if base.made_high().is_some_and(is_beyond) {
                break;
            }
            return place;
        }
        self.descend(&position, 0, guard)
    }

    /// The node on a level that was responsible for a position at the moment when its word was
    /// read. Posts the separators that it finds missing. Lock-free.
    pub(super) fn descend<'g>(
        &self,
        position: &Position<'_, S>,
        level: u32,
        guard: &'g Guard,
    ) -> Place<'g, S> {
        let backoff = Backoff::new();
        loop {
            if let Some(place) = self.try_descend(position, level, guard) {
                return place;
            }
            backoff.wait();
        }
    }

    /// `None` if it came to a node that has been merged away.
    fn try_descend<'g>(
        &self,
        position: &Position<'_, S>,
        level: u32,
        guard: &'g Guard,
    ) -> Option<Place<'g, S>> {
        let mut parent = None;
        let mut id = ROOT;
        loop {
            // SAFETY: the root is always in use; nodes in use linked to the others.
            let place = unsafe { self.visit(id, guard) }?;
            if place.view.ends_before(position) {
                if let Some((id, word)) = parent.take() {
                    self.post_below(id, word, &place, guard);
                }
                id = place.view.right();
                continue;
            }
            if place.view.base.level <= level {
                return Some(place);
            }
            parent = Some((id, place.word));
            id = place.view.child_of(position);
        }
    }

    /// Posts the node to the right of a child to a parent whose word was read before the child.
    #[cold]
    fn post_below(&self, id: usize, word: Word, child: &Place<'_, S>, guard: &Guard) {
        // SAFETY: the word was read during this pin.
        if let Some(view) = unsafe { View::of(word, guard) } {
            self.post(&Place { id, word, view }, child, guard);
        }
    }

    /// The leaf responsible for a position for which `place` was responsible when it was read;
    /// faster than a descent if it still is.
    #[inline]
    pub(super) fn again<'g>(
        &self,
        place: &Place<'g, S>,
        position: &Position<'_, S>,
        guard: &'g Guard,
    ) -> Place<'g, S> {
        // SAFETY: the id was in use during this pin.
        match unsafe { self.visit(place.id, guard) } {
            // Its low fence has not changed.
            Some(place) if place.view.base.level == 0 && !place.view.ends_before(position) => place,
            _ => self.descend(position, 0, guard),
        }
    }
}
