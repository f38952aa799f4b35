//! Removing the entry at either end, and whole ranges.

use super::node::{Entry, LeafRef};
use super::scan::{Seen, Span, all_still};
use super::steps::HeldLeaves;
use super::tree::{Position, Tree};
use crate::contract::{Direction, KeyRange};
use crate::kit::{PackedValue, SearchKey, SearchRange, Spec};
use std::ops::Bound;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, VersionGuard};

/// What [`Tree::try_to_pop`] has done.
enum Popped<S: Spec> {
    Nothing,
    Entry {
        /// Unlinked.
        entry: Entry<S>,
        underfull: bool,
    },
}

impl<S: Spec> Tree<S> {
    /// Removes the first entry in a direction. Shows it to `note` before that, under the lock.
    pub(super) fn pop(
        &self,
        direction: Direction,
        mut note: impl FnMut(&Entry<S>),
    ) -> Option<(S::Key, S::Value)> {
        let guard = self.collector.pin();
        match self.retry(|| self.try_to_pop(direction, &mut note, &guard)) {
            Popped::Nothing => None,
            Popped::Entry { entry, underfull } => {
                self.len.add(-1);
                // SAFETY: this thread alone has just unlinked it, and keeps no reference to it.
                let pair = unsafe { entry.hand_out(&guard) };
                if underfull {
                    self.rebalance(&SearchKey::new(&pair.0), &guard);
                }
                Some(pair)
            }
        }
    }

    fn try_to_pop(
        &self,
        direction: Direction,
        note: &mut impl FnMut(&Entry<S>),
        guard: &Guard<'_>,
    ) -> Result<Popped<S>, Restart> {
        let (leaf, lock) = match direction {
            Direction::Ascending => {
                let first = self.first(guard);
                (first, first.wait_to_lock()?)
            }
            Direction::Descending => {
                let place = self.descend(&Position::Last, guard)?;
                let lock = self.lock_place(&place)?;
                (place.node, lock)
            }
        };
        if leaf.count() > 0 {
            return Ok(self.pop_from(leaf, lock, direction, note, guard));
        }
        let alone = match direction {
            Direction::Ascending => leaf.next().is_none(),
            Direction::Descending => leaf.prev().is_none(),
        };
        lock.unchanged();
        if alone {
            return Ok(Popped::Nothing);
        }
        self.try_to_pop_beyond(direction, note, guard)
    }

    /// The same, where the leaf at the end is empty: passes empty leaves, which no thread has
    /// merged yet.
    fn try_to_pop_beyond(
        &self,
        direction: Direction,
        note: &mut impl FnMut(&Entry<S>),
        guard: &Guard<'_>,
    ) -> Result<Popped<S>, Restart> {
        let all = SearchRange {
            low: Bound::Unbounded,
            high: Bound::Unbounded,
        };
        let (mut leaf, mut version) = self.start(&all, direction, guard)?;
        let mut empty: Vec<Seen<'_, S>> = Vec::new();
        while leaf.count() == 0 {
            let neighbour = self.neighbour(leaf, version, direction)?;
            empty.push((leaf, version));
            let Some(neighbour) = neighbour else {
                all_still(&empty)?;
                return Ok(Popped::Nothing);
            };
            (leaf, version) = neighbour;
        }
        let lock = leaf.lock().upgrade(version)?;
        // If they are still empty while this leaf is locked, its end is the end of the tree.
        if let Err(restart) = all_still(&empty) {
            lock.unchanged();
            return Err(restart);
        }
        Ok(self.pop_from(leaf, lock, direction, note, guard))
    }

    /// Removes a range: locks all of its leaves, removes the entries, and only then unlocks.
    pub(super) fn remove_range(&self, range: KeyRange<'_, S::Key>) -> usize {
        if range.is_empty() {
            return 0;
        }
        let guard = self.collector.pin();
        let spans = self.lock_range(&SearchRange::new(range), usize::MAX, &guard);
        self.remove_spans(spans, &guard)
    }

    /// [`remove_range`](Self::remove_range) of a range that is not empty. Shows its leaves to
    /// `note` when all of them are locked.
    pub(super) fn remove_range_with(
        &self,
        range: KeyRange<'_, S::Key>,
        note: impl FnOnce(&HeldLeaves<'_, S>),
    ) -> usize {
        let guard = self.collector.pin();
        let spans = self.lock_range(&SearchRange::new(range), usize::MAX, &guard);
        let held = HeldLeaves::new(self, &guard, spans);
        note(&held);
        self.remove_spans(held.into_spans(), &guard)
    }

    /// Removes what a range covers in its leaves, all of which this thread has locked, and unlocks
    /// them.
    fn remove_spans(&self, spans: Vec<Span<'_, S>>, guard: &Guard<'_>) -> usize {
        let mut removed = 0;
        let mut underfull = Vec::new();
        let now = self.snapshots.now();
        for span in spans.iter().filter(|span| !span.indices.is_empty()) {
            self.settle(span.leaf, now, guard);
        }
        for span in &spans {
            if span.indices.is_empty() {
                continue;
            }
            removed += span.indices.len();
            let key = span.leaf.key(span.indices.start);
            if !S::HEAD_IS_KEY || !PackedValue::<S>::is_word() {
                // SAFETY: the entries are in a leaf that this thread has locked.
                let entries =
                    (span.indices.clone()).map(|at| unsafe { span.leaf.entry(at).loose() });
                // SAFETY: the entries are unlinked below, while this thread holds the lock. They
                // are freed when every thread that could have come to them before has unpinned.
                unsafe { guard.defer_each(entries, |entry| entry.free()) };
            }
            span.leaf
                .remove_run(span.indices.start, span.indices.end, guard);
            if span.leaf.is_underfull() {
                underfull.push(key);
            }
        }
        for span in spans {
            if span.indices.is_empty() {
                span.lock.unchanged();
            }
        }
        self.len.add(-(removed as isize));
        for key in underfull {
            // SAFETY: the key was in a leaf after this thread was pinned.
            unsafe { key.with(|key| self.rebalance(&SearchKey::new(key), guard)) };
        }
        removed
    }

    /// Removes the first entry in a direction from a leaf that is not empty.
    fn pop_from(
        &self,
        leaf: LeafRef<'_, S>,
        lock: VersionGuard<'_>,
        direction: Direction,
        note: &mut impl FnMut(&Entry<S>),
        guard: &Guard<'_>,
    ) -> Popped<S> {
        let at = match direction {
            Direction::Ascending => 0,
            Direction::Descending => leaf.count() - 1,
        };
        let entry = leaf.entry(at);
        let about = |key: SearchKey<'_, S>| self.note_now(leaf, &key, Ok(at), guard);
        // SAFETY: the key is in a leaf that this thread has locked.
        unsafe { entry.key.search(about) };
        note(&entry);
        leaf.remove(at, guard);
        let has_neighbours = leaf.next().is_some() || leaf.prev().is_some();
        let underfull = leaf.is_underfull() && has_neighbours;
        drop(lock);
        Popped::Entry { entry, underfull }
    }
}
