//! Steps over several base nodes, all of which are locked meanwhile, and closures under locks.
//!
//! A step locks the base nodes of its first range as the removal of a range does. It does not wait
//! for those of the further ranges without end, but begins again after [`TRIES`]: so threads whose
//! keys contradict one another do not wait for each other, nor one for itself.

use super::descend::{Place, Position};
use super::node::BaseGuard;
use super::{CaTree, Container};
use crate::contract::{Direction, KeyRange};
use crate::transactional::{self, Adapted, HeldParts, Part, Steps, Transaction, View};
use std::ops::ControlFlow;
use tremula_sync::atomic::Ordering;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Backoff, Restart};

/// How often a step tries to lock a base node of a further range.
const TRIES: usize = if cfg!(any(loom, shuttle)) { 1 } else { 100 };

/// A base node that a thread has locked to change it.
pub(super) type HeldBase<'g, K, C> = (Place<'g, K, C>, BaseGuard<'g, C>);

/// The base nodes of a step.
struct HeldBases<'t, 'g, K, V, H, C: Container<K, V>>
where
    K: Ord + Clone,
{
    tree: &'t CaTree<K, V, H, C>,
    guard: &'g Guard<'g>,
    /// Ascending.
    bases: Vec<HeldBase<'g, K, C>>,
    /// By how much the number of entries has changed.
    difference: isize,
}

impl<'g, K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// Locks the base nodes of these ranges, which ascend.
    fn lock_bases(&self, over: &[KeyRange<'_, K>], guard: &'g Guard<'_>) -> Vec<HeldBase<'g, K, C>>
    where
        C: 'g,
    {
        let backoff = Backoff::new();
        loop {
            if let Ok(held) = self.try_to_lock_bases(over, guard) {
                return held;
            }
            self.adaptations.retry();
            backoff.wait();
        }
    }

    fn try_to_lock_bases(
        &self,
        over: &[KeyRange<'_, K>],
        guard: &'g Guard<'_>,
    ) -> Result<Vec<HeldBase<'g, K, C>>, Restart>
    where
        C: 'g,
    {
        let Some((first, further)) = over.split_first() else {
            return Ok(Vec::new());
        };
        let mut held = self.hold_range(*first, guard);
        for range in further {
            self.try_to_hold_range(*range, &mut held, guard)?;
        }
        Ok(held)
    }

    /// Adds the base nodes of a range to those that this thread has locked.
    fn try_to_hold_range(
        &self,
        range: KeyRange<'_, K>,
        held: &mut Vec<HeldBase<'g, K, C>>,
        guard: &'g Guard<'_>,
    ) -> Result<(), Restart>
    where
        C: 'g,
    {
        let ascending = Direction::Ascending;
        let mut position = Some(Position::start(range.low, range.high, ascending));
        while let Some(here) = position {
            let place = self.locate(here, guard);
            if !held.iter().any(|(other, _)| other.node == place.node) {
                held.push(try_to_hold(self.locate(here, guard))?);
            }
            position =
                (self.beyond(&place, here, range, ascending, guard)).map(|(beyond, _)| beyond);
        }
        Ok(())
    }
}

fn try_to_hold<'g, K, C>(place: Place<'g, K, C>) -> Result<HeldBase<'g, K, C>, Restart> {
    let backoff = Backoff::new();
    for _ in 0..TRIES {
        if let Some(base) = place.base.lock.try_write() {
            return if base.valid {
                Ok((place, base))
            } else {
                Err(Restart)
            };
        }
        backoff.wait();
    }
    Err(Restart)
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> HeldBases<'_, '_, K, V, H, C> {
    /// The index of the base node of a key; `None` only if keys contradict one another.
    fn position(&self, key: &K) -> Option<usize> {
        // By a descent, because the boundaries of the first may be too narrow (invariant 6).
        let place = self.tree.locate(Position::At(key.into()), self.guard);
        self.bases
            .iter()
            .position(|(held, _)| held.node == place.node)
    }

    #[track_caller]
    fn container(&mut self, key: &K) -> &mut C {
        let at = self.position(key);
        let base = at.and_then(|at| self.bases.get_mut(at));
        let Some((_, base)) = base else {
            panic!("the keys of a step contradict one another");
        };
        &mut base.container
    }
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> HeldParts<K, V> for HeldBases<'_, '_, K, V, H, C> {
    type Taken = V;

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        let base = self.position(key).and_then(|at| self.bases.get(at));
        let value = base.and_then(|(_, base)| base.container.get(key));
        value.map(read).is_some()
    }

    fn visit(
        &self,
        range: KeyRange<'_, K>,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        (self.bases.iter())
            .try_for_each(|(_, base)| base.container.visit(range, Direction::Ascending, visit))
    }

    fn put(&mut self, key: K, value: V) -> Option<V> {
        let old = self.container(&key).insert(key, value);
        self.difference += isize::from(old.is_none());
        old
    }

    fn take(&mut self, key: &K) -> Option<V> {
        let old = self.container(key).remove(key);
        self.difference -= isize::from(old.is_some());
        old
    }

    fn put_back(&mut self, key: K, taken: V) -> Option<V> {
        self.put(key, taken)
    }

    fn release(mut self, taken: Vec<V>) {
        self.tree.len.add(self.difference);
        let dropped: Vec<_> = (self.bases.iter_mut())
            .map(|(_, base)| base.container.take_dropped())
            .collect();
        self.tree.release_bases(self.bases, self.guard);
        drop((dropped, taken));
    }
}

impl<K, V, H, C> Steps<K, V> for CaTree<K, V, H, C>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    C: Container<K, V> + 'static,
{
    fn pop_with(&self, direction: Direction, note: &mut dyn FnMut(&K, &V)) -> Option<(K, V)> {
        self.pop(direction, |container| {
            let (key, value) = match direction {
                Direction::Ascending => container.first(),
                Direction::Descending => container.last(),
            }?;
            note(key, value);
            match direction {
                Direction::Ascending => container.pop_first(),
                Direction::Descending => container.pop_last(),
            }
        })
    }

    fn remove_range_with(
        &self,
        range: KeyRange<'_, K>,
        note: &mut dyn FnMut(&dyn View<K, V>),
    ) -> usize {
        let guard = self.collector.pin();
        self.remove_from_bases(range, &guard, |bases| {
            let held = HeldBases {
                tree: self,
                guard: &guard,
                bases,
                difference: 0,
            };
            transactional::show(&held, range, note);
            held.bases
        })
    }

    fn atomically(
        &self,
        over: &[KeyRange<'_, K>],
        step: &mut dyn FnMut(&mut dyn Transaction<K, V>),
    ) {
        let guard = self.collector.pin();
        let held = HeldBases {
            tree: self,
            guard: &guard,
            bases: self.lock_bases(over, &guard),
            difference: 0,
        };
        transactional::run(held, over, step);
    }

    fn walk(&self, visit: &mut dyn FnMut(&Part<K>) -> ControlFlow<()>) -> Adapted {
        let mut next = None;
        loop {
            let (part, high) = self.pass(next.as_ref());
            if visit(&part).is_break() || high.is_none() {
                break;
            }
            next = high;
        }
        let read = |counter: &tremula_sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Adapted::new(
            read(&self.adaptations.splits),
            read(&self.adaptations.joins),
        )
    }
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// Looks at the base node of a key, or at the first, and returns where the next one begins.
    fn pass(&self, from: Option<&K>) -> (Part<K>, Option<K>) {
        let position = from.map_or(Position::First, |key| Position::At(key.into()));
        loop {
            // Pinned for one base node at a time, so that what others remove meanwhile is freed.
            let guard = self.collector.pin();
            let place = self.locate(position, &guard);
            let entries = match place.base.lock.try_read_unbiased() {
                Some(base) if base.valid => Some(base.container.count()),
                // Replaced: there is another in its place.
                Some(_) => continue,
                None => None,
            };
            let (waits, others) = place.base.lock.acquisitions();
            let acquisitions = u64::from(waits) + u64::from(others);
            let part = Part::new(from.cloned(), entries, waits.into(), acquisitions);
            // If keys contradict one another, the walk might not end.
            let high = place
                .high
                .filter(|high| from.is_none_or(|from| from < *high));
            return (part, high.cloned());
        }
    }
}
