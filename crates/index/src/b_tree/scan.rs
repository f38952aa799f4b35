//! Reading many entries as of one moment: first optimistically, then under locks.

use super::node::{Entry, LeafRef, SearchResult};
use super::point::locked;
use super::tree::{Position, Tree, count};
use crate::contract::{Direction, KeyRange};
use crate::kit::{SearchKey, SearchRange, Spec, prefetch};
use std::ops::{Bound, Range};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Backoff, Restart, Version, VersionGuard};

/// How often a scan is tried without locks before it takes locks.
const OPTIMISTIC_SCANS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 4 };

/// A scan that wants more entries than this, from the lowest on, does not stop writers. One that
/// has met a writer after it has read as many is not tried again without a number.
const LONG: usize = 1000;

/// How many keys ahead of the one that is copied a scan asks for: they lie anywhere.
const KEYS_AHEAD: usize = 16;

impl<S: Spec> SearchRange<'_, S> {
    /// The indices of a leaf at which the range begins and ends. Either may be the end of the leaf:
    /// then the range begins, or ends, further right or between this leaf and the next.
    pub(super) fn indices_in(
        &self,
        leaf: LeafRef<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<Range<usize>, Restart> {
        Ok(self.start_in(leaf, &sound)?..self.end_in(leaf, &sound)?)
    }

    pub(super) fn start_in(
        &self,
        leaf: LeafRef<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<usize, Restart> {
        Ok(match &self.low {
            Bound::Unbounded => 0,
            Bound::Included(low) => index_of(leaf, low, sound)?.unwrap_or_else(|at| at),
            Bound::Excluded(low) => index_of(leaf, low, sound)?.map_or_else(|at| at, |at| at + 1),
        })
    }

    pub(super) fn end_in(
        &self,
        leaf: LeafRef<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<usize, Restart> {
        Ok(match &self.high {
            Bound::Unbounded => leaf.count(),
            Bound::Included(high) => index_of(leaf, high, sound)?.map_or_else(|at| at, |at| at + 1),
            Bound::Excluded(high) => index_of(leaf, high, sound)?.unwrap_or_else(|at| at),
        })
    }
}

/// Where a bound is or belongs. Prefetches the values there.
#[inline]
fn index_of<S: Spec>(
    leaf: LeafRef<'_, S>,
    bound: &SearchKey<'_, S>,
    sound: impl Fn() -> Result<(), Restart>,
) -> Result<SearchResult, Restart> {
    let aim = leaf.aim(bound);
    leaf.prefetch_slots(aim.segment);
    leaf.find_at(aim, bound, sound)
}

/// Where a scan puts the entries. `clear` forgets them when the scan starts again.
pub(super) trait Sink<S: Spec> {
    fn put(&mut self, entry: Entry<S>);
    fn clear(&mut self);
}

impl<S: Spec> Sink<S> for Vec<Entry<S>> {
    #[inline]
    fn put(&mut self, entry: Entry<S>) {
        self.push(entry);
    }

    fn clear(&mut self) {
        Vec::clear(self);
    }
}

impl<S: Spec> Sink<S> for Option<Entry<S>> {
    fn put(&mut self, entry: Entry<S>) {
        *self = Some(entry);
    }

    fn clear(&mut self) {
        *self = None;
    }
}

/// Copies of entries.
///
/// # Safety
///
/// As for [`Entry::to_pair`].
unsafe fn to_pairs<S: Spec>(
    entries: &[Entry<S>],
) -> impl Iterator<Item = (S::Key, S::Value)> + use<'_, S> {
    (entries.iter().take(KEYS_AHEAD)).for_each(|entry| entry.key.prefetch());
    entries.iter().enumerate().map(|(at, entry)| {
        if let Some(ahead) = entries.get(at + KEYS_AHEAD) {
            ahead.key.prefetch();
        }
        // SAFETY: passed on to the caller.
        unsafe { entry.to_pair() }
    })
}

/// A leaf, and a version of it.
pub(super) type Seen<'g, S> = (LeafRef<'g, S>, Version);

/// Validates all leaves. If it succeeds, all were at these versions at one moment: between the last
/// read and the first of these validations.
pub(super) fn all_still<S: Spec>(seen: &[Seen<'_, S>]) -> Result<(), Restart> {
    seen.iter()
        .try_for_each(|(leaf, version)| leaf.lock().validate(*version))
}

/// A leaf that this thread has locked, and the indices that a range covers in it.
pub(super) struct Span<'g, S: Spec> {
    pub(super) leaf: LeafRef<'g, S>,
    pub(super) lock: VersionGuard<'g>,
    pub(super) indices: Range<usize>,
}

impl<'g, S: Spec> Span<'g, S> {
    /// A leaf that is locked whatever a range covers in it.
    pub(super) fn whole(leaf: LeafRef<'g, S>, lock: VersionGuard<'g>) -> Self {
        Self {
            leaf,
            lock,
            indices: 0..0,
        }
    }
}

impl<S: Spec> Tree<S> {
    pub(super) fn scan(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(S::Key, S::Value)>,
    ) {
        if limit == 0 || range.is_empty() {
            return;
        }
        let ascends = direction == Direction::Ascending;
        // A form cannot be copied, so writers would not know which range it is.
        if range.is_of_keys() && (limit == usize::MAX || ascends && limit > LONG) {
            return self.scan_long(range, direction, limit, out);
        }
        let guard = self.collector.pin();
        let mut entries = Vec::with_capacity(limit.min(128));
        self.collect(
            &SearchRange::new(range),
            direction,
            limit,
            &mut entries,
            &guard,
        );
        // SAFETY: the entries were read and validated while the thread was pinned.
        out.extend(unsafe { to_pairs(&entries) });
    }

    /// Puts the first `limit` entries of a range into `out`, as of one moment; all of them if the
    /// direction descends. Beside writers it does so as [`snapshots`](super::snapshots) says.
    fn scan_long(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(S::Key, S::Value)>,
    ) {
        let guard = self.collector.pin();
        let bounds = SearchRange::new(range);
        let mut entries = Vec::new();
        let backoff = Backoff::new();
        for _ in 0..OPTIMISTIC_SCANS {
            entries.clear();
            let read = self.try_to_collect(&bounds, direction, limit, &mut entries, &guard);
            if read.is_ok() {
                // SAFETY: the entries were read and validated while the thread was pinned.
                return out.extend(unsafe { to_pairs(&entries) });
            }
            self.restarted();
            if entries.len() > LONG {
                break;
            }
            backoff.wait();
        }
        drop((entries, guard));
        let entries = self.snapshot_beside_writers(range, limit).into_iter();
        match direction {
            Direction::Ascending => out.extend(entries),
            Direction::Descending => out.extend(entries.rev()),
        }
    }

    /// The first entry of a range.
    pub(super) fn nearest(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
    ) -> Option<(S::Key, S::Value)> {
        let guard = self.collector.pin();
        let entry = self.first_of(&SearchRange::new(range), direction, &guard);
        // SAFETY: the entry was read and validated while the thread was pinned.
        entry.map(|entry| unsafe { entry.to_pair() })
    }

    /// The first entry of a range in a direction.
    pub(super) fn first_of(
        &self,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
        guard: &Guard<'_>,
    ) -> Option<Entry<S>> {
        let mut entry = None;
        self.collect(bounds, direction, 1, &mut entry, guard);
        entry
    }

    /// Puts the first `limit` entries of a range into `sink`, all as of one moment.
    fn collect(
        &self,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
        limit: usize,
        sink: &mut impl Sink<S>,
        guard: &Guard<'_>,
    ) {
        let backoff = Backoff::new();
        for _ in 0..OPTIMISTIC_SCANS {
            match self.try_to_collect(bounds, direction, limit, sink, guard) {
                Ok(()) => return,
                Err(Restart) => {
                    self.restarted();
                    sink.clear();
                    backoff.wait();
                }
            }
        }
        count(&self.counters.locked_scans);
        match direction {
            Direction::Ascending => self.collect_locked_upwards(bounds, limit, sink, guard),
            Direction::Descending => self.collect_locked_downwards(bounds, limit, sink, guard),
        }
    }

    fn try_to_collect(
        &self,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
        mut limit: usize,
        sink: &mut impl Sink<S>,
        guard: &Guard<'_>,
    ) -> Result<(), Restart> {
        let (mut leaf, mut version) = self.start(bounds, direction, guard)?;
        // The leaves before this one; nearly always empty.
        let mut seen: Vec<Seen<'_, S>> = Vec::new();
        loop {
            let still = leaf.still(version);
            let indices = bounds.indices_in(leaf, still)?;
            let (covered, goes_on) = match direction {
                Direction::Ascending => {
                    let end = indices.end.min(indices.start.saturating_add(limit));
                    leaf.prefetch_entries(indices.start, end.saturating_sub(indices.start));
                    if let (true, Some(next)) = (end == leaf.count(), leaf.next()) {
                        prefetch(next.as_ptr());
                        prefetch(next.as_ptr().wrapping_add(1));
                    }
                    for at in indices.start..end {
                        sink.put(leaf.entry(at));
                    }
                    (
                        end.saturating_sub(indices.start),
                        indices.end >= leaf.count(),
                    )
                }
                Direction::Descending => {
                    let start = indices.start.max(indices.end.saturating_sub(limit));
                    for at in (start..indices.end).rev() {
                        sink.put(leaf.entry(at));
                    }
                    (indices.end.saturating_sub(start), indices.start == 0)
                }
            };
            limit -= covered.min(limit);
            let neighbour = if limit > 0 && goes_on {
                self.neighbour(leaf, version, direction)?
            } else {
                None
            };
            match neighbour {
                Some(neighbour) => {
                    seen.push((leaf, version));
                    (leaf, version) = neighbour;
                }
                None => {
                    still()?;
                    return all_still(&seen);
                }
            }
        }
    }

    /// The leaf that a range begins in, in a direction.
    pub(super) fn start<'g>(
        &self,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
        guard: &'g Guard<'_>,
    ) -> Result<Seen<'g, S>, Restart> {
        let position = bounds.start(direction);
        if let Position::First = position {
            let first = self.first(guard);
            return Ok((first, first.lock().read()?));
        }
        let place = self.descend(&position, guard)?;
        Ok((place.node, place.version))
    }

    /// The next leaf in a direction, and a version of it at which the two were neighbours.
    pub(super) fn neighbour<'g>(
        &self,
        leaf: LeafRef<'g, S>,
        version: Version,
        direction: Direction,
    ) -> Result<Option<Seen<'g, S>>, Restart> {
        match direction {
            Direction::Ascending => {
                let next = leaf.next();
                leaf.lock().validate(version)?;
                let Some(next) = next else {
                    return Ok(None);
                };
                // SAFETY: it was the neighbour when the leaf had this version, which the thread
                // noted after it was pinned.
                let next = unsafe { LeafRef::<S>::from_raw(next) };
                next.node().prefetch_below(1);
                let next_version = next.lock().read()?;
                leaf.lock().validate(version)?;
                Ok(Some((next, next_version)))
            }
            Direction::Descending => {
                let Some(prev) = leaf.prev() else {
                    leaf.lock().validate(version)?;
                    return Ok(None);
                };
                prev.node().prefetch_below(1);
                let prev_version = prev.lock().read()?;
                // Another thread may have split `prev` meanwhile. Its `next` is read at
                // `prev_version`, which the caller validates at the end.
                if prev.next().map(|next| next.as_ptr()) != Some(leaf.as_ptr()) {
                    return Err(Restart);
                }
                leaf.lock().validate(version)?;
                Ok(Some((prev, prev_version)))
            }
        }
    }

    /// Locks the leaves of a range from left to right, until the range ends or they hold `limit` of
    /// its entries. Every thread that waits for a leaf while it holds others locks them in this
    /// order (invariant 8). Compares keys; changes nothing.
    pub(super) fn lock_range<'g>(
        &self,
        bounds: &SearchRange<'_, S>,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Vec<Span<'g, S>> {
        let (leaf, lock) = self.retry(|| self.lock_start(bounds, guard));
        lock_on(leaf, lock, bounds, limit)
    }

    /// Locks the leaf that a range begins in.
    pub(super) fn lock_start<'g>(
        &self,
        bounds: &SearchRange<'_, S>,
        guard: &'g Guard<'_>,
    ) -> Result<(LeafRef<'g, S>, VersionGuard<'g>), Restart> {
        match bounds.low {
            Bound::Included(low) | Bound::Excluded(low) => {
                let place = self.descend(&Position::At(low), guard)?;
                Ok((place.node, self.lock_place(&place)?))
            }
            Bound::Unbounded => {
                let first = self.first(guard);
                Ok((first, first.wait_to_lock()?))
            }
        }
    }

    fn collect_locked_upwards(
        &self,
        bounds: &SearchRange<'_, S>,
        limit: usize,
        sink: &mut impl Sink<S>,
        guard: &Guard<'_>,
    ) {
        let spans = self.lock_range(bounds, limit, guard);
        spans
            .iter()
            .flat_map(|span| span.indices.clone().map(|at| span.leaf.entry(at)))
            .take(limit)
            .for_each(|entry| sink.put(entry));
        unlock_unchanged(spans);
    }

    /// This, too, locks leaves from left to right. So it has to guess how many leaves the last
    /// `limit` entries take, and doubles the guess until it suffices.
    fn collect_locked_downwards(
        &self,
        bounds: &SearchRange<'_, S>,
        limit: usize,
        sink: &mut impl Sink<S>,
        guard: &Guard<'_>,
    ) {
        let mut leaves = 1_usize;
        loop {
            let place = self.retry(|| self.leaf_before_end(bounds, leaves, guard));
            let spans = match place {
                // The range begins no further back than that.
                None => self.lock_range(bounds, usize::MAX, guard),
                Some((leaf, version)) => match leaf.lock().upgrade(version) {
                    Ok(lock) => lock_on(leaf, lock, bounds, usize::MAX),
                    Err(Restart) => {
                        self.restarted();
                        leaves = leaves.saturating_mul(2);
                        continue;
                    }
                },
            };
            let entries: usize = spans.iter().map(|span| span.indices.len()).sum();
            let begins =
                place.is_none() || spans.first().is_some_and(|span| span.indices.start > 0);
            if begins || entries >= limit {
                spans
                    .iter()
                    .rev()
                    .flat_map(|span| span.indices.clone().rev().map(|at| span.leaf.entry(at)))
                    .take(limit)
                    .for_each(|entry| sink.put(entry));
                unlock_unchanged(spans);
                return;
            }
            unlock_unchanged(spans);
            leaves = leaves.saturating_mul(2);
        }
    }

    /// The leaf that lies `leaves` leaves before the end of a range; `None` if the range begins
    /// after that leaf or in it.
    fn leaf_before_end<'g>(
        &self,
        bounds: &SearchRange<'_, S>,
        leaves: usize,
        guard: &'g Guard<'_>,
    ) -> Result<Option<Seen<'g, S>>, Restart> {
        let (mut leaf, mut version) = self.start(bounds, Direction::Descending, guard)?;
        for _ in 0..leaves {
            if bounds.start_in(leaf, leaf.still(version))? > 0 {
                return Ok(None);
            }
            match self.neighbour(leaf, version, Direction::Descending)? {
                Some(neighbour) => (leaf, version) = neighbour,
                None => return Ok(None),
            }
        }
        Ok(Some((leaf, version)))
    }
}

/// Locks the leaves of a range, from `leaf` on, which the caller has locked.
fn lock_on<'g, S: Spec>(
    mut leaf: LeafRef<'g, S>,
    mut lock: VersionGuard<'g>,
    bounds: &SearchRange<'_, S>,
    limit: usize,
) -> Vec<Span<'g, S>> {
    let mut spans = Vec::new();
    let mut entries = 0_usize;
    loop {
        // Never an error: nothing is validated.
        let indices = bounds.indices_in(leaf, locked).unwrap_or(0..0);
        entries += indices.len();
        let goes_on = indices.end == leaf.count() && entries < limit;
        spans.push(Span {
            leaf,
            lock,
            indices,
        });
        let next = leaf.next().filter(|_| goes_on);
        let Some(next) = next else {
            return spans;
        };
        // SAFETY: the right neighbour of a leaf that this thread has locked stays linked.
        leaf = unsafe { LeafRef::from_raw(next) };
        lock = match leaf.wait_to_lock() {
            Ok(lock) => lock,
            Err(Restart) => unreachable!("only who holds the left neighbour unlinks a leaf"),
        };
    }
}

pub(super) fn unlock_unchanged<S: Spec>(spans: Vec<Span<'_, S>>) {
    for span in spans {
        span.lock.unchanged();
    }
}
