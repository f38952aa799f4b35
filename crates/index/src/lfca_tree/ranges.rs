//! Operations over several base nodes.
//!
//! A query first reads the base nodes of its range without writing anything, and then looks again
//! whether all of them are still linked: they are immutable, so at the moment between the two
//! passes the range held what was read. After [`ATTEMPTS`] it *freezes* the range instead: it
//! replaces each base node by the same one with a reference to the query's [`Storage`], in
//! ascending order. Such a base node is not replaced before the query is over; whoever needs to
//! replace one helps to freeze the rest. With the last one frozen, the first thread to notice
//! decides the query, at one step. That is when it happens.
//!
//! What removes a range freezes it too. Once it is decided, the entries of the range that frozen
//! base nodes have count as absent, and whoever replaces one leaves them out.

use super::Tree;
use super::adapt::count;
use super::contents::{EntryRef, OwnedTree};
use super::descend::Position;
use super::node::{BaseRef, NodePtr, Retired, Role};
use crate::contract::{Direction, KeyRange};
use crate::kit::{SearchKey, SearchRange, Spec, on_unwind};
use std::ops::{Bound, ControlFlow};
use std::ptr;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Arc, Mutex, Restart};

/// How often a query reads its range in vain before it freezes it.
const ATTEMPTS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 4 };

/// What a query over a frozen range is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Snapshot,
    Remove,
}

/// A query over several base nodes, for all who help with it.
pub(super) struct Storage<S: Spec> {
    low: Bound<S::Key>,
    high: Bound<S::Key>,
    /// As many entries are enough; then the range need not be frozen to its end.
    limit: usize,
    purpose: Purpose,
    /// Null until the query is over; then what came of it, for ever.
    outcome: AtomicPtr<Outcome<S>>,
}

// SAFETY: the nodes that an outcome refers to are looked at by pinned threads only, as those of
// the tree are; what it owns may be sent and shared.
unsafe impl<S: Spec> Send for Storage<S> {}
// SAFETY: as above.
unsafe impl<S: Spec> Sync for Storage<S> {}

/// How a query ended.
#[cfg_attr(
    shuttle,
    allow(clippy::large_enum_variant, reason = "a checker's lock is large")
)]
enum Outcome<S: Spec> {
    /// User code of whoever asked panicked.
    Aborted,
    Decided {
        /// The base nodes that were frozen, ascending; to be looked at only by a thread that is
        /// pinned since the query began.
        bases: Vec<NodePtr<S>>,
        /// Their contents, for a snapshot; whoever asked takes them out.
        trees: Mutex<Vec<OwnedTree<S>>>,
        /// How many entries were removed.
        removed: usize,
    },
}

impl<S: Spec> Storage<S> {
    fn new(range: KeyRange<'_, S::Key>, limit: usize, purpose: Purpose) -> Arc<Self> {
        Arc::new(Self {
            low: range.low.cloned(),
            high: range.high.cloned(),
            limit,
            purpose,
            outcome: AtomicPtr::new(ptr::null_mut()),
        })
    }

    pub(super) fn range(&self) -> KeyRange<'_, S::Key> {
        KeyRange::new(self.low.as_ref(), self.high.as_ref())
    }

    fn outcome(&self) -> Option<&Outcome<S>> {
        // SeqCst: as `Link::load`.
        let outcome = self.outcome.load(Ordering::SeqCst);
        // SAFETY: null, or set once and freed with the storage.
        unsafe { outcome.as_ref() }
    }

    /// Whether base nodes that it froze may be replaced.
    pub(super) fn is_over(&self) -> bool {
        match self.outcome() {
            None => false,
            Some(Outcome::Aborted) => true,
            Some(Outcome::Decided { .. }) => self.purpose != Purpose::Remove,
        }
    }

    /// Whether the entries of its range are to be left out of the base nodes that it froze.
    pub(super) fn has_removed(&self) -> bool {
        self.purpose == Purpose::Remove && matches!(self.outcome(), Some(Outcome::Decided { .. }))
    }

    /// Decides the query, if nobody has. Returns whether that was done.
    fn decide(&self, outcome: Outcome<S>) -> bool {
        let outcome = Box::into_raw(Box::new(outcome));
        // SeqCst: as `Link::load`.
        let first = self
            .outcome
            .compare_exchange(ptr::null_mut(), outcome, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        if !first {
            // SAFETY: made above, and seen by nobody.
            drop(unsafe { Box::from_raw(outcome) });
        }
        first
    }

    /// The contents of the frozen base nodes.
    fn take_trees(&self) -> Vec<OwnedTree<S>> {
        match self.outcome() {
            Some(Outcome::Decided { trees, .. }) => std::mem::take(&mut *trees.lock()),
            _ => Vec::new(),
        }
    }
}

impl<S: Spec> Drop for Storage<S> {
    fn drop(&mut self) {
        let outcome = self.outcome.load(Ordering::Relaxed);
        if !outcome.is_null() {
            // SAFETY: it came from a box, and nobody else has the storage.
            drop(unsafe { Box::from_raw(outcome) });
        }
    }
}

impl<S: Spec> Tree<S> {
    /// Appends up to `limit` entries of a range to `out`, as of one moment.
    pub(super) fn collect(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(S::Key, S::Value)>,
        guard: &Guard<'_>,
    ) {
        let begin = out.len();
        let end = begin.saturating_add(limit);
        if limit == 0 || range.is_empty() {
            return;
        }
        let copy = |out: &mut Vec<(S::Key, S::Value)>, entry: EntryRef<'_, S>| {
            out.push(entry.copy());
            if out.len() == end {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        for _ in 0..ATTEMPTS {
            let seen = self.observe(range, direction, guard, |entry| copy(out, entry));
            if seen.is_ok() {
                return;
            }
            out.truncate(begin);
        }
        let enough = match direction {
            Direction::Ascending => limit,
            // Ranges are frozen upwards only, lest two threads help each other for ever.
            Direction::Descending => usize::MAX,
        };
        self.read_frozen(range, direction, enough, guard, |entry| copy(out, entry));
    }

    /// The first entry of a range in a direction.
    #[inline]
    pub(super) fn neighbour<'g>(
        &'g self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        guard: &'g Guard<'_>,
    ) -> Option<EntryRef<'g, S>> {
        for _ in 0..ATTEMPTS {
            let mut found = None;
            let seen = self.observe(range, direction, guard, |entry| {
                found = Some(entry);
                ControlFlow::Break(())
            });
            if seen.is_ok() {
                return found;
            }
        }
        let enough = match direction {
            Direction::Ascending => 1,
            Direction::Descending => usize::MAX,
        };
        let mut found = None;
        self.read_frozen(range, direction, enough, guard, |entry| {
            found = Some(entry);
            ControlFlow::Break(())
        });
        found
    }

    /// Visits the entries of a range until `visit` breaks, without writing anything. If this
    /// succeeds, they were there at one moment, and no others among them.
    #[inline]
    fn observe<'g>(
        &'g self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        guard: &'g Guard<'_>,
        mut visit: impl FnMut(EntryRef<'g, S>) -> ControlFlow<()>,
    ) -> Result<(), Restart> {
        let span = SearchRange::new(range);
        let mut position = span.start(direction);
        // The base nodes before the last. Allocates only when there are two.
        let mut passed: Vec<BaseRef<'g, S>> = Vec::new();
        let mut last: Option<BaseRef<'g, S>> = None;
        loop {
            let place = self.locate(&position, guard);
            // The boundary may have been too narrow: see invariant 6.
            if last != Some(place.base) {
                if !place.base.is_readable() {
                    self.help(place.base, guard);
                    return Err(Restart);
                }
                passed.extend(last.replace(place.base));
                let walk = place.base.view().walk(span, direction, &mut visit);
                if walk.is_break() {
                    break;
                }
            }
            let beyond = place
                .boundary(direction)
                .filter(|boundary| range.goes_beyond(boundary, direction))
                .map(|boundary| Position::beyond(SearchKey::new(boundary), direction));
            match beyond {
                Some(beyond) => position = beyond,
                None => break,
            }
        }
        if passed.is_empty() {
            return Ok(());
        }
        let is_unchanged =
            |base: BaseRef<'g, S>| self.link_to(base).leads_to(base.as_ptr()) && base.is_readable();
        if passed.into_iter().chain(last).all(is_unchanged) {
            Ok(())
        } else {
            count(&self.adaptations.retries);
            Err(Restart)
        }
    }

    /// Visits the entries of a range until `visit` breaks, those of one base node after the other:
    /// each as of one moment, in order, and none twice.
    pub(super) fn visit_bases<'g>(
        &'g self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        guard: &'g Guard<'_>,
        mut visit: impl FnMut(EntryRef<'g, S>) -> ControlFlow<()>,
    ) {
        if range.is_empty() {
            return;
        }
        // Where the base node before ended.
        let mut behind: Option<&'g S::Key> = None;
        loop {
            let (mut low, mut high) = (range.low, range.high);
            if let Some(behind) = behind {
                match direction {
                    Direction::Ascending => low = Bound::Included(behind),
                    Direction::Descending => high = Bound::Excluded(behind),
                }
            }
            let place = self.locate(
                &SearchRange::new(KeyRange::new(low, high)).start(direction),
                guard,
            );
            if !place.base.is_readable() {
                self.help(place.base, guard);
                continue;
            }
            let boundary = place.boundary(direction);
            let beyond = boundary.filter(|boundary| range.goes_beyond(boundary, direction));
            // What lies beyond is for the next, which may have newer entries there.
            if let Some(boundary) = beyond {
                match direction {
                    Direction::Ascending => high = Bound::Excluded(boundary),
                    Direction::Descending => low = Bound::Included(boundary),
                }
            }
            let span = SearchRange::new(KeyRange::new(low, high));
            if place
                .base
                .view()
                .walk(span, direction, &mut visit)
                .is_break()
                || beyond.is_none()
            {
                return;
            }
            behind = beyond;
        }
    }

    /// Visits the entries of a range, which is frozen until `enough` have been seen, until `visit`
    /// breaks.
    #[cold]
    fn read_frozen<'g>(
        &'g self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        enough: usize,
        guard: &'g Guard<'_>,
        mut visit: impl FnMut(EntryRef<'g, S>) -> ControlFlow<()>,
    ) {
        let storage = Storage::new(range, enough, Purpose::Read);
        self.freeze_own(&storage, guard);
        let bases = self.frozen(&storage, guard);
        let span = SearchRange::new(range);
        let mut walk = |base: &BaseRef<'g, S>| base.view().walk(span, direction, &mut visit);
        let _ = match direction {
            Direction::Ascending => bases.iter().try_for_each(&mut walk),
            Direction::Descending => bases.iter().rev().try_for_each(&mut walk),
        };
        self.join_quiet(&bases, guard);
    }

    /// Freezes the range of a query that this thread asks for.
    fn freeze_own(&self, storage: &Arc<Storage<S>>, guard: &Guard<'_>) {
        count(&self.adaptations.frozen_ranges);
        let abort = || {
            storage.decide(Outcome::Aborted);
            drop(storage.take_trees());
        };
        on_unwind(abort, || self.freeze(storage, guard));
    }

    /// The base nodes that a query of this thread froze.
    fn frozen<'g>(&'g self, storage: &Storage<S>, guard: &'g Guard<'_>) -> Vec<BaseRef<'g, S>> {
        match storage.outcome() {
            // SAFETY: this thread is pinned since the query began; they were linked when it was
            // decided.
            Some(Outcome::Decided { bases, .. }) => bases
                .iter()
                .map(|node| unsafe { BaseRef::of(*node, guard) })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Carries out a query, as far as others have not: when this returns, it is over.
    pub(super) fn freeze(&self, storage: &Arc<Storage<S>>, guard: &Guard<'_>) {
        let range = storage.range();
        let span = SearchRange::new(range);
        let direction = Direction::Ascending;
        let mut bases = Vec::new();
        let mut left = storage.limit;
        let mut position = Some(span.start(direction));
        while let Some(here) = position {
            let place = self.locate(&here, guard);
            // After the look at the place: a base node that was there before the query was over,
            // and that it had not frozen, is not linked any more once it is over.
            if storage.outcome().is_some() {
                return;
            }
            let mut base = place.base;
            let is_frozen =
                matches!(&base.get().role, Role::Range(other) if Arc::ptr_eq(other, storage));
            if !is_frozen {
                if !base.is_replaceable() {
                    self.help(base, guard);
                    continue;
                }
                let statistics = base.statistics.saturating_sub(self.config.range_discount);
                let frozen = base.again(statistics, Role::Range(Arc::clone(storage)));
                let Some(frozen) = self.replace(base, frozen, guard) else {
                    continue;
                };
                // SAFETY: we unlinked it; its contents are the new one's.
                unsafe { self.retire(base, Retired::NOTHING, guard) };
                base = frozen;
            }
            if bases.last() != Some(&base) {
                bases.push(base);
                if storage.limit != usize::MAX {
                    let _ = base.view().walk(span, direction, |_| {
                        left -= 1;
                        if left == 0 {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    });
                }
            }
            position = place
                .boundary(direction)
                .filter(|_| left > 0)
                .filter(|boundary| range.goes_beyond(boundary, direction))
                .map(|boundary| Position::beyond(SearchKey::new(boundary), direction));
        }
        let removed = match storage.purpose {
            Purpose::Remove => bases.iter().map(|base| base.view().count(span)).sum(),
            Purpose::Read | Purpose::Snapshot => 0,
        };
        let trees = match storage.purpose {
            Purpose::Snapshot => bases.iter().map(|base| base.view().share()).collect(),
            Purpose::Read | Purpose::Remove => Vec::new(),
        };
        let decided = storage.decide(Outcome::Decided {
            bases: bases.into_iter().map(BaseRef::as_ptr).collect(),
            trees: Mutex::new(trees),
            removed,
        });
        if decided && removed > 0 {
            self.len
                .add(-isize::try_from(removed).unwrap_or(isize::MAX));
        }
    }

    /// Joins one of the base nodes that were needed together, if that asks for it.
    fn join_quiet(&self, bases: &[BaseRef<'_, S>], guard: &Guard<'_>) {
        let quiet = |base: &&BaseRef<'_, S>| base.statistics < self.config.join_below;
        if let Some(base) = bases.iter().find(quiet) {
            self.adapt_if_asked(*base, guard);
        }
    }

    /// Replaces a base node by one without the entries that were removed.
    pub(super) fn clear(&self, base: BaseRef<'_, S>, storage: &Storage<S>, guard: &Guard<'_>) {
        let left = base.view().without(SearchRange::new(storage.range()));
        // One that is empty would be in the way of every query.
        let statistics = if left.view().is_empty() {
            self.config.join_below.saturating_sub(1)
        } else {
            base.statistics
        };
        if let Some(new) = self.replace_with(base, left, statistics, guard) {
            self.adapt_if_asked(new, guard);
        }
    }

    /// Replaces a base node by one with a tree that has counts of its own.
    fn replace_with<'g>(
        &'g self,
        base: BaseRef<'g, S>,
        tree: OwnedTree<S>,
        statistics: i32,
        guard: &'g Guard<'_>,
    ) -> Option<BaseRef<'g, S>> {
        let root = tree.into_root();
        let new = self.replace(base, base.with(root, statistics), guard);
        // SAFETY: we unlinked the base node, or nobody has seen the tree.
        unsafe {
            match new {
                Some(_) => self.retire(base, Retired::contents(base.contents), guard),
                None => drop(root.own()),
            }
        }
        new
    }

    /// Removes every entry of a range, as of one moment, and returns how many there were.
    pub(super) fn remove_entries(&self, range: KeyRange<'_, S::Key>, guard: &Guard<'_>) -> usize {
        if range.is_empty() {
            return 0;
        }
        let span = SearchRange::new(range);
        let mut was_contended = false;
        loop {
            let place = self.locate(&span.start(Direction::Ascending), guard);
            let base = place.base;
            if !base.is_replaceable() {
                self.help(base, guard);
                was_contended = true;
                continue;
            }
            if Self::reaches_beyond(&place, range) {
                break;
            }
            let removed = base.view().count(span);
            if removed == 0 {
                return 0;
            }
            let left = base.view().without(span);
            let statistics = self.statistics(base.get(), was_contended);
            if let Some(new) = self.replace_with(base, left, statistics, guard) {
                self.len
                    .add(-isize::try_from(removed).unwrap_or(isize::MAX));
                self.adapt_if_asked(new, guard);
                return removed;
            }
            was_contended = true;
        }
        let storage = Storage::new(range, usize::MAX, Purpose::Remove);
        self.freeze_own(&storage, guard);
        let Some(Outcome::Decided { removed, .. }) = storage.outcome() else {
            unreachable!("only whoever asks for a query aborts it");
        };
        for base in self.frozen(&storage, guard) {
            self.clear(base, &storage, guard);
        }
        *removed
    }

    /// All entries of a range, as of one moment.
    pub(super) fn share_range(
        &self,
        range: KeyRange<'_, S::Key>,
        guard: &Guard<'_>,
    ) -> Vec<OwnedTree<S>> {
        let span = SearchRange::new(range);
        loop {
            let place = self.locate(&span.start(Direction::Ascending), guard);
            let base = place.base;
            if !base.is_replaceable() {
                self.help(base, guard);
                continue;
            }
            if Self::reaches_beyond(&place, range) {
                break;
            }
            // Replaced, so that no edit takes its nodes to be its own: see invariant 4 of the
            // contents.
            let tree = base.view().share();
            if self
                .replace(base, base.again(base.statistics, Role::Normal), guard)
                .is_some()
            {
                // SAFETY: we unlinked it; its contents are the new one's.
                unsafe { self.retire(base, Retired::NOTHING, guard) };
                return vec![tree];
            }
        }
        let storage = Storage::new(range, usize::MAX, Purpose::Snapshot);
        self.freeze_own(&storage, guard);
        let trees = storage.take_trees();
        let bases = self.frozen(&storage, guard);
        self.join_quiet(&bases, guard);
        trees
    }

    /// Whether a range that begins in a base node may go on behind it.
    fn reaches_beyond(place: &super::descend::Place<'_, S>, range: KeyRange<'_, S::Key>) -> bool {
        place
            .boundary(Direction::Ascending)
            .is_some_and(|boundary| range.ends_after(boundary))
    }
}
