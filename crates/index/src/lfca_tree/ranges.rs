//! Operations over several base nodes.
//!
//! A query first reads the base nodes of its range without writing anything, and then checks that
//! all of them are still linked. They are immutable, so between the two passes the range held what
//! was read. After [`ATTEMPTS`] such attempts the query *freezes* its range instead: in ascending
//! order, it replaces each base node by one with the same contents and a reference to the query's
//! [`Storage`]. A frozen base node is not replaced before the query is over: a thread that must
//! replace one helps to freeze the rest. After the last base node has been frozen, the first thread
//! to notice decides the query by one compare-and-swap. The query takes effect at that step.
//!
//! A removal of a range freezes it too. Once it is decided, the entries of the range in frozen base
//! nodes count as absent, and the thread that replaces such a base node leaves them out.

use super::Tree;
use super::adapt::count;
use super::contents::{EntryRef, OwnedTree};
use super::descend::Position;
use super::node::{BaseRef, NodePtr, Retired, Role};
use crate::contract::{Direction, KeyRange};
use crate::kit::{SearchKey, SearchRange, Sought, Spec, on_unwind};
use std::ops::{Bound, ControlFlow};
use std::ptr;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Arc, Mutex, Restart};

/// The attempts to read a range before it is frozen.
const ATTEMPTS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 4 };

/// The purpose of a query over a frozen range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Snapshot,
    Remove,
}

/// A query over several base nodes, shared by all threads that help with it.
pub(super) struct Storage<S: Spec> {
    low: Bound<S::Key>,
    high: Bound<S::Key>,
    /// The number of entries that the query needs. The rest of the range is not frozen.
    limit: usize,
    purpose: Purpose,
    /// Null until the query is over; then its outcome, which never changes.
    outcome: AtomicPtr<Outcome<S>>,
}

// SAFETY: only pinned threads use the nodes that an outcome refers to, as they use those of the
// tree. What the outcome owns may be sent and shared.
unsafe impl<S: Spec> Send for Storage<S> {}
// SAFETY: as for `Send`.
unsafe impl<S: Spec> Sync for Storage<S> {}

/// How a query ended.
#[cfg_attr(
    shuttle,
    allow(clippy::large_enum_variant, reason = "a checker's lock is large")
)]
enum Outcome<S: Spec> {
    /// User code panicked in the thread that asked.
    Aborted,
    Decided {
        /// The base nodes that were frozen, ascending. Only a thread that has been pinned since the
        /// query began may use them.
        bases: Vec<NodePtr<S>>,
        /// Their contents, for a snapshot. The thread that asked takes them out.
        trees: Mutex<Vec<OwnedTree<S>>>,
        /// The number of entries removed.
        removed: usize,
    },
}

impl<S: Spec> Storage<S> {
    fn new(
        (low, high): (Bound<S::Key>, Bound<S::Key>),
        limit: usize,
        purpose: Purpose,
    ) -> Arc<Self> {
        Arc::new(Self {
            low,
            high,
            limit,
            purpose,
            outcome: AtomicPtr::new(ptr::null_mut()),
        })
    }

    pub(super) fn range(&self) -> KeyRange<'_, S::Key> {
        KeyRange::new(self.low.as_ref(), self.high.as_ref())
    }

    fn outcome(&self) -> Option<&Outcome<S>> {
        // SeqCst: see `Link::load`.
        let outcome = self.outcome.load(Ordering::SeqCst);
        // SAFETY: it is null, or was set once and is freed with the storage.
        unsafe { outcome.as_ref() }
    }

    /// Whether the base nodes that the query froze may be replaced.
    pub(super) fn is_over(&self) -> bool {
        match self.outcome() {
            None => false,
            Some(Outcome::Aborted) => true,
            Some(Outcome::Decided { .. }) => self.purpose != Purpose::Remove,
        }
    }

    /// Whether the entries of its range count as absent from the base nodes that it froze.
    pub(super) fn has_removed(&self) -> bool {
        self.purpose == Purpose::Remove && matches!(self.outcome(), Some(Outcome::Decided { .. }))
    }

    /// Decides the query, if no thread has. Returns whether this thread did.
    fn decide(&self, outcome: Outcome<S>) -> bool {
        let outcome = Box::into_raw(Box::new(outcome));
        // SeqCst: see `Link::load`.
        let first = self
            .outcome
            .compare_exchange(ptr::null_mut(), outcome, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        if !first {
            // SAFETY: it was made above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(outcome) });
        }
        first
    }

    /// Takes out the contents of the frozen base nodes.
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
            // SAFETY: it came from a box, and no other thread has the storage.
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
            // Ranges are frozen only upwards: otherwise two threads could help each other for ever.
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
    /// succeeds, then at one moment exactly these entries were in the part that was visited.
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
        // The base nodes before the last one. Allocates only if there are two.
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

    /// Visits the entries of a range until `visit` breaks, in order and none twice. Those of each
    /// base node are as of one moment.
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
        // The boundary at which the base node before ended.
        let mut behind: Option<&'g S::Key> = None;
        loop {
            let (mut low, mut high) = (range.low, range.high);
            if let Some(behind) = behind {
                match direction {
                    Direction::Ascending => low = Bound::Included(behind.into()),
                    Direction::Descending => high = Bound::Excluded(behind.into()),
                }
            }
            let place = self.locate(
                &SearchRange::new(KeyRange::between(low, high)).start(direction),
                guard,
            );
            if !place.base.is_readable() {
                self.help(place.base, guard);
                continue;
            }
            let boundary = place.boundary(direction);
            let beyond = boundary.filter(|boundary| range.goes_beyond(boundary, direction));
            // What lies beyond is left to the next base node, which may have newer entries there.
            if let Some(boundary) = beyond {
                match direction {
                    Direction::Ascending => high = Bound::Excluded(boundary.into()),
                    Direction::Descending => low = Bound::Included(boundary.into()),
                }
            }
            let span = SearchRange::new(KeyRange::between(low, high));
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

    /// Freezes a range, as far as `enough` entries need, and visits its entries until `visit`
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
        let bounds = (
            self.owned(range.low, Direction::Descending, guard),
            self.owned(range.high, Direction::Ascending, guard),
        );
        // Between a bound of its own and a form, the frozen range may have entries that are not
        // asked for.
        let enough = if range.has_forms() {
            usize::MAX
        } else {
            enough
        };
        let storage = Storage::new(bounds, enough, Purpose::Read);
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

    /// A bound with a key of its own: for a form, the nearest key of a route node in `outwards`
    /// direction.
    fn owned(
        &self,
        bound: Bound<Sought<'_, S::Key>>,
        outwards: Direction,
        guard: &Guard<'_>,
    ) -> Bound<S::Key> {
        match bound {
            Bound::Included(Sought::Form(form)) | Bound::Excluded(Sought::Form(form)) => {
                let position = Position::At(SearchKey::new(Sought::Form(form)));
                let place = self.locate(&position, guard);
                let boundary = place.boundary(outwards).cloned();
                boundary.map_or(Bound::Unbounded, Bound::Included)
            }
            bound => bound.map(|key| key.key().clone()),
        }
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
            // SAFETY: this thread has been pinned since before the query began, and they were
            // linked when it was decided.
            Some(Outcome::Decided { bases, .. }) => bases
                .iter()
                .map(|node| unsafe { BaseRef::of(*node, guard) })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Carries out what other threads have not carried out of a query. When this returns, the query
    /// is over.
    pub(super) fn freeze(&self, storage: &Arc<Storage<S>>, guard: &Guard<'_>) {
        let range = storage.range();
        let span = SearchRange::new(range);
        let direction = Direction::Ascending;
        let mut bases = Vec::new();
        let mut left = storage.limit;
        let mut position = Some(span.start(direction));
        while let Some(here) = position {
            let place = self.locate(&here, guard);
            // This check must follow `locate`: it shows that `place.base` was found before the
            // query was over. If the query has not frozen that base node, it is not linked any more
            // once the query is over, and `replace` fails.
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
                // SAFETY: this thread unlinked it; its contents belong to the new base node.
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

    /// Joins one of the base nodes of a query, if the statistics of one are below the limit.
    fn join_quiet(&self, bases: &[BaseRef<'_, S>], guard: &Guard<'_>) {
        let quiet = |base: &&BaseRef<'_, S>| base.statistics < self.config.join_below;
        if let Some(base) = bases.iter().find(quiet) {
            self.adapt_if_asked(*base, guard);
        }
    }

    /// Replaces a base node by one without the entries that were removed.
    pub(super) fn clear(&self, base: BaseRef<'_, S>, storage: &Storage<S>, guard: &Guard<'_>) {
        let left = base.view().without(SearchRange::new(storage.range()));
        // Every query would have to pass an empty base node: it is joined soon.
        let statistics = if left.view().is_empty() {
            self.config.join_below.saturating_sub(1)
        } else {
            base.statistics
        };
        if let Some(new) = self.replace_with(base, left, statistics, guard) {
            self.adapt_if_asked(new, guard);
        }
    }

    /// Replaces a base node by one with `tree`, and adapts nothing.
    fn replace_with<'g>(
        &'g self,
        base: BaseRef<'g, S>,
        tree: OwnedTree<S>,
        statistics: i32,
        guard: &'g Guard<'_>,
    ) -> Option<BaseRef<'g, S>> {
        let root = tree.into_root();
        let new = self.replace(base, base.with(root, statistics), guard);
        // SAFETY: this thread unlinked the base node, or no other thread has seen the tree.
        unsafe {
            match new {
                Some(_) => self.retire(base, Retired::contents(base.contents), guard),
                None => drop(root.own()),
            }
        }
        new
    }

    /// Removes all entries of a range at one moment, and returns their number.
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
        let storage = Storage::new(range.to_keys(), usize::MAX, Purpose::Remove);
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
            // The base node is replaced so that no edit takes the nodes of its contents for its
            // own: see invariant 4 of the contents.
            let tree = base.view().share();
            if self
                .replace(base, base.again(base.statistics, Role::Normal), guard)
                .is_some()
            {
                // SAFETY: this thread unlinked it; its contents belong to the new base node.
                unsafe { self.retire(base, Retired::NOTHING, guard) };
                return vec![tree];
            }
        }
        let storage = Storage::new(range.to_keys(), usize::MAX, Purpose::Snapshot);
        self.freeze_own(&storage, guard);
        let trees = storage.take_trees();
        let bases = self.frozen(&storage, guard);
        self.join_quiet(&bases, guard);
        trees
    }

    /// Whether a range that begins in a base node may end behind it.
    fn reaches_beyond(place: &super::descend::Place<'_, S>, range: KeyRange<'_, S::Key>) -> bool {
        place
            .boundary(Direction::Ascending)
            .is_some_and(|boundary| range.ends_after(boundary))
    }
}
