//! Tests of snapshots beside writers. They are cuts: what a thread did before something that a
//! snapshot shows is shown too.

use super::OlcBTree;
use crate::key::{ByteHead, ByteString};
use crate::transactional::Transaction;
use crate::{KeyRange, OrderedIndex, Update};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Nodes of sixteen entries.
type Low<K, V> = OlcBTree<K, V, ByteHead, 0>;

fn key(writer: u32, number: u32) -> ByteString {
    // The writers meet in most leaves.
    ByteString::from(format!("entry:{number:05}:{writer}").as_str())
}

/// Counts a writer as done when it ends, also by a panic.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

const KEYS: u32 = 400;
const WRITERS: u32 = 2;

/// What a round of a writer does to its keys, one after the other.
fn write(tree: &Low<ByteString, u32>, writer: u32, round: u32) {
    for number in 0..KEYS {
        let key = key(writer, number);
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

fn is_a_moment_of(writer: u32, entries: &BTreeMap<ByteString, u32>) -> bool {
    let seen: Vec<_> = (0..KEYS)
        .map(|number| entries.get(&key(writer, number)).copied())
        .collect();
    let newest = seen.iter().flatten().max().copied().unwrap_or(0);
    // A round that removes leaves keys of its own too, but only behind the first.
    [newest, newest + 1]
        .into_iter()
        .any(|round| round > 0 && (0..=KEYS).any(|done| states(round, done) == seen))
}

#[test]
fn a_snapshot_shows_all_that_came_before_what_it_shows() {
    const ROUNDS: u32 = if cfg!(miri) { 4 } else { 200 };
    let tree = &Low::default();
    for writer in 0..WRITERS {
        write(tree, writer, 0);
    }
    let done = &AtomicUsize::new(0);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let _ends = Ends(done);
                (1..=ROUNDS).for_each(|round| write(tree, writer, round));
            });
        }
        for _ in 0..2 {
            scope.spawn(move || {
                while done.load(Ordering::SeqCst) < WRITERS as usize {
                    let taken = tree
                        .tree
                        .snapshot_beside_writers(KeyRange::all(), usize::MAX);
                    assert!(taken.is_sorted_by(|one, other| one.0 < other.0));
                    let taken = BTreeMap::from_iter(taken);
                    for writer in 0..WRITERS {
                        assert!(is_a_moment_of(writer, &taken), "{taken:?}");
                    }
                }
            });
        }
    });
    tree.tree.check_at_rest();
    let figures = tree.shape();
    assert!(figures.get("copied_leaves") > Some(0));
}

fn amount_of(step: &mut dyn Transaction<u64, u64>, account: u64) -> u64 {
    let mut amount = 0;
    step.get_with(&account, &mut |found| amount = *found);
    amount
}

/// Amounts that move between keys in steps: their sum stays the same.
#[test]
fn a_snapshot_shows_a_step_whole_or_not_at_all() {
    const ACCOUNTS: u64 = 300;
    const STEPS: u64 = if cfg!(miri) { 20 } else { 10_000 };
    let tree = &Low::<u64, u64>::default();
    for account in 0..ACCOUNTS {
        tree.insert(account * 7, 100);
    }
    let done = &AtomicUsize::new(0);
    thread::scope(|scope| {
        for writer in 0..2 {
            scope.spawn(move || {
                let _ends = Ends(done);
                let steps = tree.transactional().unwrap();
                let mut turn: u64 = writer + 1;
                for _ in 0..STEPS {
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
                }
            });
        }
        scope.spawn(move || {
            while done.load(Ordering::SeqCst) < 2 {
                let taken = tree
                    .tree
                    .snapshot_beside_writers(KeyRange::all(), usize::MAX);
                assert!(taken.is_sorted_by(|one, other| one.0 < other.0));
                let sum: u64 = taken.iter().map(|(_, amount)| amount).sum();
                assert_eq!(sum, ACCOUNTS * 100);
            }
        });
    });
    tree.tree.check_at_rest();
}

/// Ranges that are removed as a whole, and put back as a whole.
#[test]
fn a_snapshot_shows_the_removal_of_a_range_whole_or_not_at_all() {
    const ROUNDS: u32 = if cfg!(miri) { 3 } else { 1000 };
    let tree = &Low::<u32, u32>::default();
    let (low, high) = (500, 699);
    let all = 0..1200_u32;
    for key in all.clone() {
        tree.insert(key, key);
    }
    let done = &AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(move || {
            let range = KeyRange::new(Bound::Included(&low), Bound::Included(&high));
            let _ends = Ends(done);
            let steps = tree.transactional().unwrap();
            for _ in 0..ROUNDS {
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
            }
        });
        for _ in 0..2 {
            scope.spawn(move || {
                while done.load(Ordering::SeqCst) == 0 {
                    let taken = tree
                        .tree
                        .snapshot_beside_writers(KeyRange::all(), usize::MAX);
                    let keys: Vec<u32> = taken.iter().map(|(key, _)| *key).collect();
                    let inside = keys.iter().filter(|key| (low..=high).contains(*key));
                    assert!([0, 200].contains(&inside.count()), "{keys:?}");
                    let has = |key: u32| keys.binary_search(&key).is_ok();
                    assert!(has(1199) || !has(0), "the first goes first, and comes last");
                    // A part of it, all of which always was there.
                    let part = KeyRange::new(Bound::Excluded(&700), Bound::Excluded(&1100));
                    let taken = tree.tree.snapshot_beside_writers(part, usize::MAX);
                    assert!(taken.into_iter().eq((701..1100).map(|key| (key, key))));
                    let first = tree.tree.snapshot_beside_writers(part, 150);
                    assert!(first.into_iter().eq((701..851).map(|key| (key, key))));
                }
            });
        }
    });
    tree.tree.check_at_rest();
}

/// A value whose clones panic on demand.
struct Fragile(u32);

static PANICS: AtomicBool = AtomicBool::new(false);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!PANICS.load(Ordering::SeqCst), "a clone that panics");
        Self(self.0)
    }
}

#[test]
fn a_snapshot_that_panics_ends() {
    let tree = Low::<u32, Fragile>::default();
    for key in 0..100 {
        tree.insert(key, Fragile(key));
    }
    PANICS.store(true, Ordering::SeqCst);
    let taken = || {
        tree.tree
            .snapshot_beside_writers(KeyRange::all(), usize::MAX)
    };
    assert!(catch_unwind(AssertUnwindSafe(taken)).is_err());
    // No snapshot is under way any more, so a write copies nothing.
    tree.insert_if_absent(200, Fragile(200)).ok().unwrap();
    PANICS.store(false, Ordering::SeqCst);
    tree.tree.check_at_rest();
    let values = taken().into_iter().map(|(_, value)| value.0);
    assert!(values.eq((0..100).chain([200])));
}
