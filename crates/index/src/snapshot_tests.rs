//! Tests of snapshots that are taken beside writers, for the engines that have them. They are cuts:
//! what a thread did before something that a snapshot shows is shown too.

use crate::contract::Storable;
use crate::transactional::Transaction;
use crate::{KeyRange, OrderedIndex, Update};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A map that takes snapshots beside writers.
pub(crate) trait Subject<K: Ord + Clone, V: Clone>:
    OrderedIndex<K, V> + Default + Sync
{
    /// The first `limit` entries of a range, taken as if there were writers.
    fn taken(&self, range: KeyRange<'_, K>, limit: usize) -> Vec<(K, V)>;
    fn check_at_rest(&self);
}

/// The key of a writer. Those of all writers meet in most leaves.
pub(crate) trait Key: Ord + Storable + Sync + Debug {
    fn of(writer: u32, number: u32) -> Self;
}

impl Key for u64 {
    fn of(writer: u32, number: u32) -> Self {
        u64::from(number) * 5 + u64::from(writer)
    }
}

/// What threads have come to.
#[derive(Default)]
pub(crate) struct Progress {
    /// Writers that are done.
    done: AtomicUsize,
    /// Snapshots that were taken; as many as can be once a thread that takes them has ended.
    snapshots: AtomicUsize,
}

impl Progress {
    /// Does rounds of a writer, from 1 on: this number, and more until snapshots were taken beside
    /// them.
    pub(crate) fn write(&self, rounds: u64, mut write: impl FnMut(u64)) {
        const SNAPSHOTS: usize = if cfg!(miri) { 2 } else { 20 };
        let _ends = Ends(|| self.done.fetch_add(1, Ordering::SeqCst));
        let goes_on =
            |round: &u64| *round <= rounds || self.snapshots.load(Ordering::SeqCst) < SNAPSHOTS;
        (1..).take_while(goes_on).for_each(&mut write);
    }

    /// Looks at snapshots until this number of writers is done.
    pub(crate) fn look_until(&self, writers: usize, mut look: impl FnMut()) {
        let _ends = Ends(|| self.snapshots.swap(usize::MAX / 2, Ordering::SeqCst));
        while self.done.load(Ordering::SeqCst) < writers {
            look();
            self.snapshots.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Does this when a thread ends, also by a panic.
struct Ends<F: Fn() -> usize>(F);

impl<F: Fn() -> usize> Drop for Ends<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

const KEYS: u32 = 400;
const WRITERS: u32 = 2;

/// What a round of a writer does to its keys, one after the other.
fn write<K: Key>(tree: &impl Subject<K, u32>, writer: u32, round: u32) {
    for number in 0..KEYS {
        let key = K::of(writer, number);
        match round % 4 {
            // Leaves become empty, and are merged; and are split again.
            1 if number % 8 > 0 => drop(tree.remove(&key)),
            3 => {
                tree.update(key, &mut |_| Update::Put(round));
            }
            _ => drop(tree.insert(key, round)),
        }
    }
}

/// What a writer's keys are when it has done so much of a round.
fn states(round: u32, done: u32) -> Vec<Option<u32>> {
    let after = |number: u32, round: u32| {
        let is_gone = round % 4 == 1 && !number.is_multiple_of(8);
        (!is_gone).then_some(round)
    };
    (0..KEYS)
        .map(|number| after(number, if number < done { round } else { round - 1 }))
        .collect()
}

fn is_a_moment_of<K: Key>(writer: u32, entries: &BTreeMap<K, u32>) -> bool {
    let seen: Vec<_> = (0..KEYS)
        .map(|number| entries.get(&K::of(writer, number)).copied())
        .collect();
    let newest = seen.iter().flatten().max().copied().unwrap_or(0);
    // A round that removes leaves keys of its own too, but only behind the first.
    [newest, newest + 1]
        .into_iter()
        .any(|round| round > 0 && (0..=KEYS).any(|done| states(round, done) == seen))
}

pub(crate) fn shows_all_that_came_before_what_it_shows<K: Key, M: Subject<K, u32>>() {
    const ROUNDS: u64 = if cfg!(miri) { 4 } else { 200 };
    let tree = &M::default();
    for writer in 0..WRITERS {
        write(tree, writer, 0);
    }
    let progress = &Progress::default();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                progress.write(ROUNDS, |round| write(tree, writer, round as u32));
            });
        }
        for _ in 0..2 {
            scope.spawn(move || {
                progress.look_until(WRITERS as usize, || {
                    let taken = tree.taken(KeyRange::all(), usize::MAX);
                    assert!(taken.is_sorted_by(|one, other| one.0 < other.0));
                    let taken = BTreeMap::from_iter(taken);
                    for writer in 0..WRITERS {
                        assert!(is_a_moment_of(writer, &taken), "{taken:?}");
                    }
                });
            });
        }
    });
    tree.check_at_rest();
    let figures = tree.shape();
    assert!(figures.get("copied_leaves") > Some(0));
}

fn amount_of(step: &mut dyn Transaction<u64, u64>, account: u64) -> u64 {
    let mut amount = 0;
    step.get_with(&account, &mut |found| amount = *found);
    amount
}

/// Amounts that move between keys in steps: their sum stays the same.
pub(crate) fn shows_a_step_whole_or_not_at_all<M: Subject<u64, u64>>() {
    const ACCOUNTS: u64 = 300;
    const STEPS: u64 = if cfg!(miri) { 20 } else { 10_000 };
    let tree = &M::default();
    for account in 0..ACCOUNTS {
        tree.insert(account * 7, 100);
    }
    let progress = &Progress::default();
    thread::scope(|scope| {
        for writer in 0..2 {
            scope.spawn(move || {
                let steps = tree.transactional().unwrap();
                let mut turn: u64 = writer + 1;
                progress.write(STEPS, |_| {
                    turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let (from, to) = ((turn >> 33) % ACCOUNTS * 7, (turn >> 48) % ACCOUNTS * 7);
                    let (from, to) = (from.min(to), from.max(to) + 1);
                    let over = [KeyRange::only(&from), KeyRange::only(&to)];
                    steps.atomically(&over, &mut |step| {
                        let amount = amount_of(step, from);
                        let other = amount_of(step, to);
                        // The neighbours of accounts come and go.
                        step.remove(&from);
                        step.insert(to, other + amount / 2);
                        step.insert(from, amount - amount / 2);
                        if other + amount / 2 == 0 {
                            step.remove(&to);
                        }
                    });
                });
            });
        }
        scope.spawn(move || {
            progress.look_until(2, || {
                let taken = tree.taken(KeyRange::all(), usize::MAX);
                assert!(taken.is_sorted_by(|one, other| one.0 < other.0));
                let sum: u64 = taken.iter().map(|(_, amount)| amount).sum();
                assert_eq!(sum, ACCOUNTS * 100);
            });
        });
    });
    tree.check_at_rest();
}

/// Ranges that are removed as a whole, and put back as a whole.
pub(crate) fn shows_the_removal_of_a_range_whole_or_not_at_all<M: Subject<u32, u32>>() {
    const ROUNDS: u64 = if cfg!(miri) { 3 } else { 1000 };
    let tree = &M::default();
    let (low, high) = (500, 699);
    let all = 0..1200_u32;
    for key in all.clone() {
        tree.insert(key, key);
    }
    let progress = &Progress::default();
    thread::scope(|scope| {
        scope.spawn(move || {
            let range = KeyRange::new(Bound::Included(&low), Bound::Included(&high));
            let steps = tree.transactional().unwrap();
            progress.write(ROUNDS, |_| {
                assert_eq!(tree.remove_range(range), 200);
                steps.atomically(&[range], &mut |step| {
                    for key in low..=high {
                        step.insert(key, key);
                    }
                });
                // The ends: one goes before the other.
                assert_eq!(tree.pop_first(), Some((0, 0)));
                assert_eq!(tree.pop_last(), Some((1199, 1199)));
                tree.insert(1199, 1199);
                tree.insert(0, 0);
            });
        });
        for _ in 0..2 {
            scope.spawn(move || {
                progress.look_until(1, || {
                    let taken = tree.taken(KeyRange::all(), usize::MAX);
                    let keys: Vec<u32> = taken.iter().map(|(key, _)| *key).collect();
                    let inside = keys.iter().filter(|key| (low..=high).contains(*key));
                    assert!([0, 200].contains(&inside.count()), "{keys:?}");
                    let has = |key: u32| keys.binary_search(&key).is_ok();
                    assert!(has(1199) || !has(0), "the first goes first, and comes last");
                    // A part of it, all of which always was there.
                    let part = KeyRange::new(Bound::Excluded(&700), Bound::Excluded(&1100));
                    let taken = tree.taken(part, usize::MAX);
                    assert!(taken.into_iter().eq((701..1100).map(|key| (key, key))));
                    let first = tree.taken(part, 150);
                    assert!(first.into_iter().eq((701..851).map(|key| (key, key))));
                });
            });
        }
    });
    tree.check_at_rest();
}
