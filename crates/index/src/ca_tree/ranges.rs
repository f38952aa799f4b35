//! Operations over several base nodes.
//!
//! The thread locks all base nodes of the range, and releases them only when it has read or changed
//! the last: that moment is when the operation happens.
//!
//! A thread that holds a base node may wait only for those with larger keys (invariant 7), and it
//! makes other threads wait, too. So a scan first tries: when a base node is not free, it releases
//! all others, waits for that one alone, and starts again. After [`ATTEMPTS`] it waits in ascending
//! order, and keeps the locks that it has.

use super::descend::{Place, Position};
use super::node::BaseState;
use super::steps::HeldBases;
use super::{CaTree, Container};
use crate::contract::{Direction, KeyRange};
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow};
use tremula_sync::reclaim::Guard;
use tremula_sync::{ReadGuard, Restart};

/// How often a scan starts again before it waits in order.
const ATTEMPTS: usize = 4;

/// How often a thread that holds base nodes descends again to the next one, if the descent does not
/// pass the boundary. After that the keys contradict one another, and the range ends there: the
/// thread might otherwise wait for a base node that it holds itself, or for one with smaller keys.
pub(super) const STRAYS: usize = 100;

/// A base node that a scan holds.
type Held<'g, K, C> = (Place<'g, K, C>, ReadGuard<'g, BaseState<C>>);

impl<K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// The position at which a scan of `range` goes on behind the base node at `position`, which
    /// the caller has locked (`held`), and the boundary there. Descends again, because the
    /// boundaries that the first descent passed may be too narrow (invariant 6). If the second
    /// descent ends at another base node, the keys contradict one another, and the scan ends
    /// (invariant 9).
    pub(super) fn beyond<'g>(
        &self,
        held: &Place<'_, K, C>,
        position: Position<'_, K>,
        range: KeyRange<'_, K>,
        direction: Direction,
        guard: &'g Guard<'_>,
    ) -> Option<(Position<'g, K>, &'g K)>
    where
        C: 'g,
    {
        let place = self.locate(position, guard);
        if place.node != held.node {
            return None;
        }
        let boundary = place.boundary(direction)?;
        (range.goes_beyond(boundary, direction))
            .then(|| (Position::beyond(boundary.into(), direction), boundary))
    }
}

impl<K: Ord + Clone, V: Clone, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// Appends up to `limit` entries of `range` to `out`, as of one moment.
    pub(super) fn scan_bases(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
        guard: &Guard<'_>,
    ) {
        let begin = out.len();
        let end = begin.saturating_add(limit);
        for _ in 0..ATTEMPTS {
            if self.try_scan(range, direction, end, out, guard).is_ok() {
                return;
            }
            out.truncate(begin);
            self.adaptations.retry();
        }
        self.scan_in_order(range, direction, end, out, guard);
    }

    /// Scans base node by base node until `out` has `end` entries. Only tries each further lock.
    fn try_scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        end: usize,
        out: &mut Vec<(K, V)>,
        guard: &Guard<'_>,
    ) -> Result<(), Restart> {
        let mut position = Position::start(range.low, range.high, direction);
        let place = self.locate(position, guard);
        // Only the first may be read through the thread's own slot: a thread has one slot.
        let base = place.base.lock.read();
        // Allocates only if the range has a second base node.
        let mut held = Vec::new();
        let mut last: Held<'_, K, C> = (place, base);
        loop {
            let (_, base) = &last;
            if !base.valid {
                return Err(Restart);
            }
            if copy(&base.container, range, direction, end, out).is_break() {
                break;
            }
            let Some((beyond, boundary)) = self.beyond(&last.0, position, range, direction, guard)
            else {
                break;
            };
            position = beyond;
            let next = self.locate(position, guard);
            if !next.begins_at(boundary, direction) {
                return Err(Restart);
            }
            let Some(base) = next.base.lock.try_read_unbiased() else {
                drop((held, last));
                drop(next.base.lock.read());
                return Err(Restart);
            };
            held.push(std::mem::replace(&mut last, (next, base)));
        }
        if !held.is_empty() {
            held.push(last);
            self.finish(held, guard);
        }
        Ok(())
    }

    /// Waits for every base node of the range in ascending order, then scans them.
    fn scan_in_order(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        end: usize,
        out: &mut Vec<(K, V)>,
        guard: &Guard<'_>,
    ) {
        let mut held: Vec<Held<'_, K, C>> = Vec::new();
        let mut position = Some(Position::start(range.low, range.high, Direction::Ascending));
        let mut boundary = None;
        let mut strays = 0;
        while let Some(here) = position {
            let place = self.locate(here, guard);
            if boundary.is_some_and(|from| !place.begins_at(from, Direction::Ascending)) {
                strays += 1;
                if strays > STRAYS {
                    break;
                }
                continue;
            }
            let base = place.base.lock.read_unbiased();
            if !base.valid {
                // Replaced while this thread waited. The boundary where it began is still there.
                self.adaptations.retry();
                continue;
            }
            // An ascending scan can stop as soon as it has enough.
            let enough = direction == Direction::Ascending
                && copy(&base.container, range, direction, end, out).is_break();
            (position, boundary) = if enough {
                (None, None)
            } else {
                self.beyond(&place, here, range, Direction::Ascending, guard)
                    .unzip()
            };
            held.push((place, base));
        }
        if direction == Direction::Descending {
            let _ = held
                .iter()
                .rev()
                .try_for_each(|(_, base)| copy(&base.container, range, direction, end, out));
        }
        if held.len() > 1 {
            self.finish(held, guard);
        }
    }

    /// Releases the base nodes of a scan over several, lowers the statistics of each, and joins the
    /// one with the lowest statistics if they are below the limit.
    fn finish<'g>(&self, held: Vec<Held<'g, K, C>>, guard: &'g Guard<'_>) {
        let mut quietest = None;
        for (place, base) in held {
            base.lower_statistics(self.config.range_discount);
            drop(base);
            let statistics = place.base.lock.statistics();
            if quietest
                .as_ref()
                .is_none_or(|(least, _)| statistics < *least)
            {
                quietest = Some((statistics, place.low));
            }
        }
        self.join_quietest(quietest, guard);
    }
}

/// Copies entries of `range` to `out` until it has `end`.
fn copy<K: Ord + Clone, V: Clone, C: Container<K, V>>(
    container: &C,
    range: KeyRange<'_, K>,
    direction: Direction,
    end: usize,
    out: &mut Vec<(K, V)>,
) -> ControlFlow<()> {
    container.visit(range, direction, &mut |key, value| {
        out.push((key.clone(), value.clone()));
        if out.len() == end {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// Removes every entry of `range`, as of one moment. Before that, calls `note` while all of the
    /// range is locked.
    pub(super) fn remove_from_bases<'g>(
        &'g self,
        range: KeyRange<'_, K>,
        guard: &'g Guard<'_>,
        note: impl FnOnce(&HeldBases<'g, K, V, H, C>),
    ) -> usize {
        // Declared before the locks, so that these are dropped after all locks are released, even
        // if user code panics: `K::drop` may call this tree.
        let mut separator = None;
        let removed;
        let mut held = HeldBases::lock(self, &[range], guard);
        note(&held);
        removed = take_range(&mut held.containers(), range, &mut separator);
        let count = removed.iter().map(Container::count).sum();
        held.count(-isize::try_from(count).unwrap_or(isize::MAX));
        held.unlock();
        drop(removed);
        count
    }

    /// Joins the base node with the lowest statistics of those that an operation has used, if they
    /// are below the limit. `quietest` has these, and the boundary where the base node begins.
    pub(super) fn join_quietest(&self, quietest: Option<(i32, Option<&K>)>, guard: &Guard<'_>) {
        if let Some((statistics, low)) = quietest
            && statistics < self.config.statistics.join_below
        {
            self.adapt_at(
                low.map_or(Position::First, |low| Position::At(low.into())),
                guard,
            );
        }
    }
}

/// Takes the entries of `range` out of neighbouring containers, of which only the first and the
/// last can have other entries. All or nothing: if user code panics, all entries stay.
fn take_range<K: Ord + Clone, V, C: Container<K, V>>(
    containers: &mut [&mut C],
    range: KeyRange<'_, K>,
    kept: &mut Option<C::Separator>,
) -> Vec<C> {
    let [first, middle @ .., last] = containers else {
        return containers
            .iter_mut()
            .map(|only| only.split_range(range))
            .collect();
    };
    let separator = match range.low {
        Bound::Included(low) => Some(low.key().clone()),
        Bound::Excluded(low) => first.next(low.key()).map(|(key, _)| key.clone()),
        Bound::Unbounded => None,
    }
    .map(C::separator);
    let taken = first.split_range(KeyRange::between(range.low, Bound::Unbounded));
    *kept = separator;
    let mut from_first = Taken {
        from: &mut **first,
        separator: kept,
        taken,
        entry: PhantomData,
    };
    let from_last = last.split_range(KeyRange::between(Bound::Unbounded, range.high));
    // From here on no user code runs.
    let from_first = std::mem::take(&mut from_first.taken);
    let from_middle = middle
        .iter_mut()
        .map(|container| std::mem::take(*container));
    std::iter::once(from_first)
        .chain(from_middle)
        .chain([from_last])
        .collect()
}

/// The upper part of a container. Dropping this puts it back, unless it has been taken out.
struct Taken<'a, K: Ord + Clone, V, C: Container<K, V>> {
    from: &'a mut C,
    /// What separates the two parts; `None` if the lower part is empty. The caller drops it.
    separator: &'a mut Option<C::Separator>,
    taken: C,
    entry: PhantomData<V>,
}

impl<K: Ord + Clone, V, C: Container<K, V>> Drop for Taken<'_, K, V, C> {
    fn drop(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        let taken = std::mem::take(&mut self.taken);
        match self.separator.take() {
            Some(separator) => self.from.join_at(separator, taken),
            None => {
                let dropped = self.from.take_dropped();
                *self.from = taken;
                self.from.keep_dropped(dropped);
            }
        }
    }
}
