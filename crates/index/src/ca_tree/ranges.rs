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
use super::steps::{HeldBases, index_of, parts_of};
use super::{CaTree, Container};
use crate::contract::{Direction, KeyRange};
use crate::transactional::ShownParts;
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
    /// range is locked. When it has returned, no user code runs any more that could keep the
    /// entries from being removed.
    pub(super) fn remove_from_bases<'g>(
        &'g self,
        range: KeyRange<'_, K>,
        guard: &'g Guard<'g>,
        note: impl FnOnce(&TakenOut<'_, K, V, C>),
    ) -> usize {
        // Declared before the locks, so that these are dropped after all locks are released, even
        // if user code panics: `K::drop` may call this tree.
        let mut edges = [Edge::new(), Edge::new()];
        let removed;
        let mut held = HeldBases::lock(self, &[range], guard);
        let taken = TakenOut::take(held.containers(), range, &mut edges);
        note(&taken);
        removed = taken.finish();
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

/// An end of a range: what separates the entries below it from those above it.
struct Edge<K, S> {
    /// A key from which the separator is made.
    key: Option<K>,
    separator: Option<S>,
}

impl<K: Ord + Clone, S> Edge<K, S> {
    const fn new() -> Self {
        Self {
            key: None,
            separator: None,
        }
    }

    /// Makes the separator at `bound`, which the container has in its range. `is_above`: the key of
    /// the bound itself belongs above it.
    fn separate<V, C: Container<K, V, Separator = S>>(
        &mut self,
        bound: &K,
        is_above: bool,
        container: &C,
    ) {
        let above = if is_above {
            None
        } else {
            container.next(bound).map(|(key, _)| key)
        };
        self.key = Some(above.unwrap_or(bound).clone());
        self.separator = C::separator_from(&mut self.key);
    }
}

/// A container of a locked base node, which begins at `low`, and what was taken out of it.
struct Part<'h, K, C> {
    low: Option<&'h K>,
    from: &'h mut C,
    taken: C,
}

/// The entries of a range, taken out of neighbouring containers, of which only the first and the
/// last can have other entries. Dropping this puts them back, and runs no user code.
pub(super) struct TakenOut<'h, K: Ord + Clone, V, C: Container<K, V>> {
    parts: Vec<Part<'h, K, C>>,
    /// The entries above the range.
    above: C,
    /// Where the range begins and ends. The caller drops them.
    edges: &'h mut [Edge<K, C::Separator>; 2],
    entry: PhantomData<V>,
}

impl<'h, K: Ord + Clone, V, C: Container<K, V>> TakenOut<'h, K, V, C> {
    /// Takes the entries out. All or nothing: if user code panics, all entries stay.
    fn take(
        containers: impl Iterator<Item = (Option<&'h K>, &'h mut C)>,
        range: KeyRange<'_, K>,
        edges: &'h mut [Edge<K, C::Separator>; 2],
    ) -> Self {
        let part = |(low, from)| Part {
            low,
            from,
            taken: C::default(),
        };
        let mut this = Self {
            parts: containers.map(part).collect(),
            above: C::default(),
            edges,
            entry: PhantomData,
        };
        let [low, high] = &mut *this.edges;
        if let [first, ..] = &mut this.parts[..] {
            match range.low {
                Bound::Included(key) => low.separate(key.key(), true, first.from),
                Bound::Excluded(key) => low.separate(key.key(), false, first.from),
                Bound::Unbounded => (),
            }
        }
        let mut above = Bound::Unbounded;
        if let [.., last] = &mut this.parts[..] {
            match range.high {
                Bound::Included(key) => {
                    high.separate(key.key(), false, last.from);
                    above = Bound::Excluded(key);
                }
                Bound::Excluded(key) => {
                    high.separate(key.key(), true, last.from);
                    above = Bound::Included(key);
                }
                Bound::Unbounded => (),
            }
        }
        let mut parts = this.parts.iter_mut();
        if let Some(Part { from, taken, .. }) = parts.next() {
            *taken = from.split_range(KeyRange::between(range.low, Bound::Unbounded));
        }
        for Part { from, taken, .. } in parts {
            *taken = std::mem::take(*from);
        }
        if let [.., last] = &mut this.parts[..]
            && !matches!(above, Bound::Unbounded)
        {
            this.above = last
                .taken
                .split_range(KeyRange::between(above, Bound::Unbounded));
        }
        this
    }

    /// The entries. Puts back those above the range.
    fn finish(mut self) -> Vec<C> {
        let parts = self.parts.iter_mut();
        let taken = parts.map(|part| std::mem::take(&mut part.taken)).collect();
        if let [.., last] = &mut self.parts[..] {
            append(last.from, &mut self.edges[1], &mut self.above);
        }
        // There is nothing to put back.
        self.parts.clear();
        taken
    }
}

/// Appends to `lower` what lies above an edge. Runs no user code.
fn append<K: Ord + Clone, V, C: Container<K, V>>(
    lower: &mut C,
    edge: &mut Edge<K, C::Separator>,
    upper: &mut C,
) {
    let mut upper = std::mem::take(upper);
    if upper.is_empty() {
        lower.keep_dropped(upper.take_dropped());
        return;
    }
    match edge.separator.take() {
        Some(separator) => lower.join_at(separator, upper),
        // The range has no bound there, so nothing lies below.
        None => {
            upper.keep_dropped(lower.take_dropped());
            *lower = upper;
        }
    }
}

impl<K: Ord + Clone, V, C: Container<K, V>> Drop for TakenOut<'_, K, V, C> {
    fn drop(&mut self) {
        let [low, high] = &mut *self.edges;
        if let [.., last] = &mut self.parts[..] {
            append(&mut last.taken, high, &mut self.above);
        }
        let mut parts = self.parts.iter_mut();
        if let Some(Part { from, taken, .. }) = parts.next() {
            append(*from, low, taken);
        }
        // Only the first can have kept entries that were not taken.
        for Part { from, taken, .. } in parts {
            append(*from, &mut Edge::new(), taken);
        }
    }
}

impl<K: Ord + Clone, V, C: Container<K, V>> ShownParts<K, V> for TakenOut<'_, K, V, C> {
    fn get_with(&self, _: usize, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        let part = self.parts.get(index_of(&self.parts, |part| part.low, key));
        part.is_some_and(|part| part.taken.get(key).map(read).is_some())
    }

    fn visit(
        &self,
        range: KeyRange<'_, K>,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut parts = parts_of(&self.parts, |part| part.low, range);
        parts.try_for_each(|part| {
            let each = &mut |key: &K, value: &V| visit(key, value);
            part.taken.visit(range, Direction::Ascending, each)
        })
    }
}
