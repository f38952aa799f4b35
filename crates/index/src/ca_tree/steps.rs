//! Steps over several entries: the base nodes of all their keys, locked to write.
//!
//! ```text
//!  ranges       [ 3 … 9 ]          [ 60 ]   [ 64 … 90 ]
//!  base nodes   [  … 8)[8 … 20)    [50 …    70)[70 …  )
//!  locked by    write  write       try_write   try_write
//! ```
//!
//! The base nodes of the first range are neighbours, so a thread waits for them in ascending order
//! (invariant 7). Base nodes lie between those of one range and those of the next, so no common
//! boundary shows which has the larger keys, and the keys may contradict one another (invariant 9).
//! Therefore, from the second range on, a thread only tries. When a base node is not free, the
//! thread releases all others, waits for that one alone, and starts again. After [`ATTEMPTS`] it
//! locks everything from the beginning of the first range to the end of the last: these base nodes
//! are neighbours, so it waits for each of them and keeps the locks that it has.

use super::descend::{Place, Position};
use super::node::{BaseGuard, BaseNode, NodeRef};
use super::ranges::{STRAYS, TakenOut};
use super::{CaTree, Container};
use crate::container::Dropped;
use crate::contract::{Direction, KeyRange};
use crate::transactional::{
    Adapted, Change, HeldParts, Part, ShownParts, Steps, Transaction, View, run, show,
};
use std::ops::{Bound, ControlFlow};
use tremula_sync::Backoff;
use tremula_sync::atomic::Ordering;
use tremula_sync::reclaim::Guard;

/// How often a thread that holds base nodes tries to lock one of a further range. Enough for the
/// back-off to have yielded the core a few times, so that the other thread can finish a short step.
#[cfg(not(any(loom, shuttle)))]
const TRIES: usize = 10;
#[cfg(any(loom, shuttle))]
const TRIES: usize = 2;

/// How often a step over several ranges starts again before it locks what is between them, too.
#[cfg(not(any(loom, shuttle)))]
const ATTEMPTS: usize = 4;
#[cfg(any(loom, shuttle))]
const ATTEMPTS: usize = 1;

/// How many splits may be linked and not counted yet: a thread that splits a base node counts this
/// right after it has linked the route node.
const UNCOUNTED: u64 = 100;

/// The base nodes of some ranges, locked to write.
pub(super) struct HeldBases<'g, K, V, H, C> {
    tree: &'g CaTree<K, V, H, C>,
    guard: &'g Guard<'g>,
    /// Ascending by `low`, where each begins. That boundary may be too narrow (invariant 6) if a
    /// range begins in the base node: but then the thread has come there by the lower bound of that
    /// range, so no key of this range is below `low`; and a key of an earlier range is not in this
    /// base node, or it would have been locked for that range.
    bases: Vec<(Place<'g, K, C>, BaseGuard<'g, C>)>,
    /// By how much the number of entries has changed.
    difference: isize,
    /// What could not be put back, to be dropped when all is unlocked. Declared after the locks.
    loose: Vec<Loose<K, V>>,
}

/// A value, with the stored key if the entry has been removed. Both are `None` once a container has
/// taken them.
type Loose<K, V> = (Option<K>, Option<V>);

impl<'g, K: Ord + Clone, V, H, C: Container<K, V>> HeldBases<'g, K, V, H, C> {
    /// Locks the base nodes of these ranges. Each range lies above those before it.
    pub(super) fn lock(
        tree: &'g CaTree<K, V, H, C>,
        ranges: &[KeyRange<'_, K>],
        guard: &'g Guard<'_>,
    ) -> Self {
        let none = || Self {
            tree,
            guard,
            bases: Vec::new(),
            difference: 0,
            loose: Vec::new(),
        };
        for _ in 0..ATTEMPTS {
            let mut held = none();
            let locked = ranges.iter().try_for_each(|range| held.lock_range(*range));
            let Err(busy) = locked else { return held };
            drop(held);
            tree.adaptations.retry();
            // Waits as a writer, so that the statistics count the contention.
            drop(busy.lock.write());
        }
        let mut held = none();
        if let [first, .., last] = ranges {
            // It holds none yet, so it waits for each and finds none busy.
            let _ = held.lock_range(KeyRange::between(first.low, last.high));
        }
        held
    }

    /// Locks the base nodes of a range that lies above those locked before. Returns a base node
    /// that is not free, if there are others that were locked before.
    fn lock_range(&mut self, range: KeyRange<'_, K>) -> Result<(), &'g BaseNode<C>> {
        let (tree, guard) = (self.tree, self.guard);
        let may_wait = self.bases.is_empty();
        let mut position = Some(Position::start(range.low, range.high, Direction::Ascending));
        let mut boundary = None;
        let mut strays = 0;
        while let Some(here) = position {
            let place = tree.locate(here, guard);
            if boundary.is_some_and(|from| !place.begins_at(from, Direction::Ascending)) {
                strays += 1;
                if strays > STRAYS {
                    break;
                }
                continue;
            }
            // A range may begin in the base node in which the range before it ends.
            let is_last = (self.bases.last()).is_some_and(|(last, _)| last.node == place.node);
            let base = if is_last {
                None
            } else if may_wait {
                Some(place.base.lock.write())
            } else if let Some(base) = try_for_a_while(place.base) {
                Some(base)
            } else if self.holds(place.node) {
                // The keys contradict one another: the range ends here.
                break;
            } else {
                return Err(place.base);
            };
            if base.as_ref().is_some_and(|base| !base.valid) {
                // Replaced while this thread waited. The boundary where it began is still there.
                tree.adaptations.retry();
                continue;
            }
            (position, boundary) = tree
                .beyond(&place, here, range, Direction::Ascending, guard)
                .unzip();
            self.bases.extend(base.map(|base| (place, base)));
        }
        Ok(())
    }

    fn holds(&self, node: NodeRef<'_, K, C>) -> bool {
        self.bases.iter().any(|(place, _)| place.node == node)
    }

    /// The containers, and where each begins.
    pub(super) fn containers(&mut self) -> impl Iterator<Item = (Option<&K>, &mut C)> {
        self.bases
            .iter_mut()
            .map(|(place, base)| (place.low, &mut base.container))
    }

    /// Counts entries that have been added, or removed if the number is negative.
    pub(super) fn count(&mut self, difference: isize) {
        self.difference += difference;
    }

    /// Unlocks all base nodes, and then drops the keys that they no longer need. A single base node
    /// is split or joined if its statistics are beyond a limit. Several have their statistics
    /// lowered, and the one with the lowest is joined if they are below the limit.
    pub(super) fn unlock(self) {
        // Declared before the locks, so that the keys are dropped after all locks are released,
        // even if user code panics: `K::drop` may call this tree.
        let dropped: Vec<Dropped<K>>;
        let Self {
            tree,
            guard,
            mut bases,
            difference,
            loose: _,
        } = self;
        // Counted before a base node is split, because a split runs user code, which may panic.
        if difference != 0 {
            tree.len.add(difference);
        }
        dropped = if const { std::mem::needs_drop::<K>() } {
            let keys = bases
                .iter_mut()
                .map(|(_, base)| base.container.take_dropped());
            keys.collect()
        } else {
            Vec::new()
        };
        if bases.len() == 1 {
            if let Some((place, base)) = bases.pop() {
                tree.adapt_if_asked(&place, base);
            }
        } else {
            let mut quietest: Option<(i32, Option<&K>)> = None;
            for (place, mut base) in bases {
                let statistics = base.statistics() - tree.config.range_discount;
                base.set_statistics(statistics);
                drop(base);
                if quietest.is_none_or(|(least, _)| statistics < least) {
                    quietest = Some((statistics, place.low));
                }
            }
            tree.join_quietest(quietest, guard);
        }
        drop(dropped);
    }

    /// The index of the base node that is responsible for a key of the ranges. If there is a range,
    /// there is a base node.
    fn container_mut(&mut self, key: &K) -> &mut C {
        let index = index_of(&self.bases, |(place, _)| place.low, key);
        &mut self.bases[index].1.container
    }
}

/// Which of some neighbours is responsible for a key. `low` says where each begins.
pub(super) fn index_of<'k, K: Ord + 'k, P>(
    parts: &[P],
    low: impl Fn(&P) -> Option<&'k K>,
    key: &K,
) -> usize {
    let begins_before = |low: &K| low <= key;
    parts
        .partition_point(|part| low(part).is_none_or(begins_before))
        .saturating_sub(1)
}

/// The neighbours that may have keys of a range.
pub(super) fn parts_of<'p, 'k, K: Ord + 'k, P>(
    parts: &'p [P],
    low: impl Fn(&P) -> Option<&'k K> + Copy,
    range: KeyRange<'_, K>,
) -> impl Iterator<Item = &'p P> {
    let first = match range.low {
        Bound::Included(low_key) | Bound::Excluded(low_key) => index_of(parts, low, low_key.key()),
        Bound::Unbounded => 0,
    };
    parts
        .iter()
        .skip(first)
        .take_while(move |part| low(part).is_none_or(|low| range.ends_after(low)))
}

fn try_for_a_while<C>(base: &BaseNode<C>) -> Option<BaseGuard<'_, C>> {
    let backoff = Backoff::new();
    (0..TRIES).find_map(|tried| {
        if tried > 0 {
            backoff.wait();
        }
        base.lock.try_write()
    })
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> ShownParts<K, V> for HeldBases<'_, K, V, H, C> {
    fn get_with(&self, _: usize, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        let index = index_of(&self.bases, |(place, _)| place.low, key);
        let (_, base) = &self.bases[index];
        base.container.get(key).map(read).is_some()
    }

    fn visit(
        &self,
        range: KeyRange<'_, K>,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut parts = parts_of(&self.bases, |(place, _)| place.low, range);
        parts.try_for_each(|(_, base)| {
            let each = &mut |key: &K, value: &V| visit(key, value);
            base.container.visit(range, Direction::Ascending, each)
        })
    }
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> HeldParts<K, V> for HeldBases<'_, K, V, H, C> {
    type Taken = Loose<K, V>;
    type Added = ();

    fn put(
        &mut self,
        _: usize,
        key: &mut Option<K>,
        value: &mut Option<V>,
    ) -> Option<Change<Self::Taken, ()>> {
        let container = self.container_mut(key.as_ref()?);
        let old = container.insert_from(key, value);
        self.count(old.is_none().into());
        Some(match old {
            Some(_) => Change::Took((None, old)),
            None => Change::Added(()),
        })
    }

    fn take(&mut self, _: usize, key: &K) -> Option<Self::Taken> {
        let (stored, value) = self.container_mut(key).remove_entry(key)?;
        self.count(-1);
        Some((Some(stored), Some(value)))
    }

    fn take_added(&mut self, key: &K, (): ()) -> Option<Self::Taken> {
        self.take(0, key)
    }

    fn put_back(&mut self, key: &mut Option<K>, taken: Self::Taken) -> Option<Self::Taken> {
        // What the container does not take, also because user code panics, stays there.
        self.loose.push(taken);
        let (stored, value) = self.loose.last_mut()?;
        let index = index_of(&self.bases, |(place, _)| place.low, key.as_ref()?);
        let (_, base) = &mut self.bases[index];
        let key = if stored.is_some() { stored } else { key };
        let old = base.container.insert_from(key, value);
        self.count(old.is_none().into());
        old.map(|value| (None, Some(value)))
    }

    fn release(mut self, taken: Vec<Self::Taken>) {
        let loose = std::mem::take(&mut self.loose);
        self.unlock();
        drop((taken, loose));
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
                Direction::Ascending => container.first()?,
                Direction::Descending => container.last()?,
            };
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
        let note = |taken: &TakenOut<'_, K, V, C>| show(taken, range, note);
        self.remove_from_bases(range, &self.collector.pin(), note)
    }

    fn atomically(
        &self,
        over: &[KeyRange<'_, K>],
        step: &mut dyn FnMut(&mut dyn Transaction<K, V>),
    ) {
        let guard = self.collector.pin();
        run(HeldBases::lock(self, over, &guard), over, step);
    }

    fn walk(&self, visit: &mut dyn FnMut(&Part<K>) -> ControlFlow<()>) -> Adapted {
        let adaptations = &self.adaptations;
        let mut low = None;
        let mut shown = 0;
        loop {
            let (part, high) = self.part_from(low);
            shown += 1;
            // Every part but the first begins at a route node of its own, made by a split. If there
            // are more parts, the keys contradict one another, and the walk might go in a circle.
            let splits = adaptations.splits.load(Ordering::Relaxed) + UNCOUNTED;
            if visit(&part).is_break() || high.is_none() || shown > splits {
                break;
            }
            low = high;
        }
        Adapted::new(
            adaptations.splits.load(Ordering::Relaxed),
            adaptations.joins.load(Ordering::Relaxed),
        )
    }
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// The base node that begins at the boundary `low`, or contains it by now, and a copy of the
    /// boundary where it ends.
    fn part_from(&self, low: Option<K>) -> (Part<K>, Option<K>) {
        let guard = self.collector.pin();
        let position = low
            .as_ref()
            .map_or(Position::First, |low| Position::At(low.into()));
        loop {
            let place = self.locate(position, &guard);
            let lock = &place.base.lock;
            let (mut high, mut entries) = (place.high, None);
            if let Some(base) = lock.try_read_unbiased() {
                if !base.valid {
                    drop(base);
                    self.adaptations.retry();
                    continue;
                }
                entries = Some(base.container.count());
                // The boundary that the first descent passed may be too narrow (invariant 6).
                high = self.locate(position, &guard).high;
            }
            let (waits, others) = lock.acquisitions();
            let acquisitions = waits.wrapping_add(others);
            let high = high.cloned();
            return (
                Part::new(low, entries, waits.into(), acquisitions.into()),
                high,
            );
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::ca_tree::CaTreeConfig;
    use crate::{CaTree, OrderedIndex, Transactional, Update};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;
    use std::time::{Duration, Instant};
    use tremula_sync::StatisticsConfig;
    use tremula_sync::atomic::AtomicBool;

    const KEYS: u64 = 256;

    /// A tree of the keys below [`KEYS`], each with itself as its value, in many base nodes. Writes
    /// under one lock keep splitting it; steps over several leave it as it is.
    fn split_tree() -> CaTree<u64, u64> {
        let statistics = StatisticsConfig::default()
            .contended(0)
            .uncontended(-1)
            .split_above(3);
        let config = CaTreeConfig::default()
            .statistics(statistics)
            .range_discount(0);
        let tree = CaTree::with_config(config);
        for key in (0..KEYS).map(|number| number * 37 % KEYS) {
            tree.insert(key, key);
        }
        assert!(tree.shape().get("base_nodes").unwrap() > 8);
        tree
    }

    fn steps(tree: &CaTree<u64, u64>) -> &dyn Transactional<u64, u64> {
        tree.transactional().unwrap()
    }

    fn entries(tree: &CaTree<u64, u64>) -> Vec<(u64, u64)> {
        OrderedIndex::snapshot(tree, KeyRange::all()).unwrap()
    }

    fn parts(tree: &CaTree<u64, u64>) -> Vec<Part<u64>> {
        let mut parts = Vec::new();
        steps(tree).walk(&mut |part| {
            parts.push(part.clone());
            ControlFlow::Continue(())
        });
        parts
    }

    fn included<'k>(low: &'k u64, high: &'k u64) -> KeyRange<'k, u64> {
        KeyRange::new(Bound::Included(low), Bound::Included(high))
    }

    /// Changes entries in base nodes of every range.
    fn change(step: &mut dyn Transaction<u64, u64>) {
        for key in 20..=120 {
            assert!(step.insert(key, 1000 + key), "{key} was there");
        }
        assert_eq!(step.remove_range(included(&30, &110)), 81);
        assert!(step.remove(&3) && !step.remove(&3) && !step.insert(3, 7));
        for key in 200..210 {
            assert!(step.remove(&key));
        }
        assert!(!step.insert(KEYS + 5, 9));
        let mut seen = Vec::new();
        step.range(KeyRange::all(), &mut |key, value| {
            seen.push((*key, *value));
            ControlFlow::Continue(())
        });
        let expected = [(3, 7)]
            .into_iter()
            .chain((20..30).chain(111..=120).map(|key| (key, 1000 + key)))
            .chain((210..KEYS).map(|key| (key, key)))
            .chain([(KEYS + 5, 9)]);
        assert!(seen.into_iter().eq(expected));
    }

    fn change_atomically(tree: &CaTree<u64, u64>, then: fn()) {
        let ranges = [
            KeyRange::new(Bound::Included(&200), Bound::Unbounded),
            included(&20, &120),
            KeyRange::only(&3),
        ];
        steps(tree).atomically(&ranges, &mut |step| {
            change(step);
            then();
        });
    }

    /// Fails if a change goes to another base node than the one that is responsible for its key, or
    /// if the number of entries is wrong.
    #[test]
    fn a_step_over_several_base_nodes_changes_each_key_in_its_own() {
        let tree = split_tree();
        change_atomically(&tree, || ());
        tree.check_at_rest();
        assert_eq!(tree.len(), entries(&tree).len());
        assert_eq!(tree.len() as u64, KEYS - 81 - 10 + 1);
        assert_eq!(tree.get(&25), Some(1025));
        assert_eq!(tree.get(&205), None);
        assert_eq!(
            steps(&tree).pop_with(Direction::Descending, &mut |_, _| ()),
            Some((KEYS + 5, 9))
        );
    }

    /// Fails if a step that panics leaves a change in one of its base nodes, or a lock.
    #[test]
    fn a_step_over_several_base_nodes_that_panics_changes_nothing() {
        let tree = split_tree();
        let before = entries(&tree);
        let step = AssertUnwindSafe(|| change_atomically(&tree, || panic!("on purpose")));
        assert!(catch_unwind(step).is_err());
        tree.check_at_rest();
        assert_eq!(tree.len() as u64, KEYS);
        assert_eq!(entries(&tree), before);
        let note = AssertUnwindSafe(|| {
            steps(&tree).remove_range_with(KeyRange::all(), &mut |_| panic!("on purpose"));
        });
        assert!(catch_unwind(note).is_err());
        assert_eq!(entries(&tree), before);
        assert_eq!(tree.remove_range(KeyRange::all()) as u64, KEYS);
    }

    /// Fails, by never ending, if a thread waits for a base node of a further range without
    /// releasing the others, or for one that it holds itself.
    #[test]
    fn threads_that_lock_ranges_in_contradictory_orders_come_back() {
        let tree = split_tree();
        let orders: [&[u64]; 3] = [&[10, 100, 200], &[200, 100, 10], &[100, 200, 10, 100, 100]];
        thread::scope(|scope| {
            for order in orders {
                let tree = &tree;
                scope.spawn(move || {
                    let ranges: Vec<_> = order.iter().map(KeyRange::only).collect();
                    for _ in 0..2_000 {
                        let guard = tree.collector.pin();
                        HeldBases::lock(tree, &ranges, &guard).unlock();
                    }
                });
            }
        });
        tree.check_at_rest();
    }

    /// Fails if a step does not wait for a base node of a further range, or if it keeps another one
    /// locked while it waits for long.
    #[test]
    fn a_step_that_waits_for_a_further_range_lets_others_use_the_first() {
        let tree = &split_tree();
        let (held, done) = (&AtomicBool::new(false), &AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                steps(tree).atomically(&[KeyRange::only(&200)], &mut |step| {
                    held.store(true, Ordering::Release);
                    while !done.load(Ordering::Acquire) {
                        thread::yield_now();
                    }
                    step.insert(200, 0);
                });
            });
            while !held.load(Ordering::Acquire) {
                thread::yield_now();
            }
            scope.spawn(|| {
                let ranges = [KeyRange::only(&10), KeyRange::only(&200)];
                steps(tree).atomically(&ranges, &mut |step| {
                    step.get_with(&200, &mut |value| assert_eq!(*value, 0));
                    step.insert(10, 1);
                });
            });
            for value in 0..1_000 {
                tree.insert(10, value + 2);
            }
            assert_ne!(tree.get(&10), Some(1));
            done.store(true, Ordering::Release);
        });
        assert_eq!(tree.get(&10), Some(1));
    }

    /// Fails if a step starves because other threads always have a base node of a further range.
    #[test]
    fn a_step_over_a_busy_further_range_starts_again_only_a_few_times() {
        const STEPS: u64 = 10;
        let tree = &split_tree();
        let done = &AtomicBool::new(false);
        let started = Instant::now();
        let retries = || tree.shape().get("retries").unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    while !done.load(Ordering::Acquire) && started.elapsed().as_secs() < 60 {
                        tree.update(200, &mut |_| {
                            thread::sleep(Duration::from_millis(1));
                            Update::Put(0)
                        });
                    }
                });
            }
            let before = retries();
            for value in 0..STEPS {
                let ranges = [KeyRange::only(&10), KeyRange::only(&200)];
                steps(tree).atomically(&ranges, &mut |step| {
                    step.insert(10, value);
                });
            }
            done.store(true, Ordering::Release);
            let restarts = retries() - before;
            assert!(
                restarts <= STEPS * (ATTEMPTS as u64 + 2),
                "{restarts} restarts of {STEPS} steps"
            );
        });
    }

    /// Fails if a walk misses a base node or shows it twice, if it waits for one that is locked, or
    /// if it holds a lock while its closure runs.
    #[test]
    fn a_walk_shows_each_base_node_once_and_holds_no_lock() {
        let tree = split_tree();
        let all = parts(&tree);
        assert_eq!(Some(all.len() as u64), tree.shape().get("base_nodes"));
        assert!(all.is_sorted_by(|one, next| one.low < next.low) && all[0].low.is_none());
        assert_eq!(
            all.iter().filter_map(|part| part.entries).sum::<usize>(),
            tree.len()
        );
        assert!(all.iter().all(|part| part.waits <= part.acquisitions));

        let guard = tree.collector.pin();
        let held = HeldBases::lock(&tree, &[included(&100, &120)], &guard);
        let locked = held.bases.len();
        let hidden = parts(&tree)
            .iter()
            .filter(|part| part.entries.is_none())
            .count();
        assert_eq!(hidden, locked);
        held.unlock();

        let adapted = steps(&tree).walk(&mut |_| {
            for key in 0..KEYS {
                tree.insert(key, 0);
            }
            ControlFlow::Continue(())
        });
        assert_eq!(Some(adapted.splits), tree.shape().get("splits"));
    }

    /// Fails if steps over several base nodes do not make the tree coarse again.
    #[test]
    fn steps_over_several_base_nodes_join_them() {
        let mut tree = split_tree();
        tree.config.range_discount = 2_000;
        for _ in 0..KEYS {
            steps(&tree).atomically(&[KeyRange::all()], &mut |_| ());
        }
        tree.check_at_rest();
        assert_eq!(tree.shape().get("base_nodes"), Some(1));
    }
}
