//! Steps over several entries, and closures under locks, on each engine that has them, with nodes
//! so small that steps span many and split them.
//!
//! Each test says what it fails on.
#![cfg(not(any(loom, shuttle)))]

mod concurrent;
mod model;
mod panics;
#[path = "../support/mod.rs"]
mod support;
mod walks;

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use support::counted::{Counted, Ledger};
use support::fuse::{Fragile, with_fuse};
use support::restless;
use support::suite::{Random, contents, scaled};
use support::values::{Dawdler, Key};
use tremula_index::key::{ByteHead, NoHead};
use tremula_index::{
    Aspen, CaTree, Direction, KeyRange, OlcBTree, OrderedIndex, Storable, Transaction,
    Transactional, Update, View, kit,
};

/// An index with steps.
trait Index<K: Ord + Clone, V: Clone>: kit::Implementation<K, V> {
    fn steps(&self) -> &dyn Transactional<K, V> {
        OrderedIndex::transactional(self).expect("a fact of this engine")
    }
}

impl<K: Ord + Clone, V: Clone, I: kit::Implementation<K, V>> Index<K, V> for I {}

fn ca_tree<K: Ord + Storable, V: Storable>() -> CaTree<K, V> {
    CaTree::with_config(restless())
}

fn b_tree<K: tremula_index::ByteKey, V: Storable>() -> OlcBTree<K, V, ByteHead, 0> {
    OlcBTree::default()
}

fn b_tree_without_heads<K: Ord + Storable, V: Storable>() -> OlcBTree<K, V, NoHead, 0> {
    OlcBTree::default()
}

fn aspen<K: tremula_index::ByteKey, V: Storable>() -> Aspen<K, V, ByteHead, 1> {
    Aspen::default()
}

/// Makes a module of tests for each engine.
macro_rules! each_engine {
    ($($engine:ident: $numbers:ident, $others:ident, $fragile:ident;)*) => {
        $(mod $engine {
            use super::*;

            #[test]
            fn random_steps_match_a_model() {
                model::random_steps_match_a_model::<u64, u64, _>($numbers);
                model::random_steps_match_a_model::<u64, String, _>($numbers);
                model::random_steps_match_a_model::<String, String, _>($others);
            }

            #[test]
            fn a_step_that_panics_has_not_happened() {
                super::a_step_that_panics_has_not_happened($fragile);
            }

            #[test]
            fn a_step_is_seen_whole() {
                concurrent::a_step_is_seen_whole($numbers, |number| number);
                concurrent::a_step_is_seen_whole($others, Dawdler);
            }

            #[test]
            fn effects_are_numbered_in_their_order() {
                concurrent::effects_are_numbered_in_their_order($numbers);
            }

            #[test]
            fn all_that_a_step_takes_out_is_dropped_once() {
                super::all_that_a_step_takes_out_is_dropped_once($numbers);
            }

            #[test]
            fn a_closure_that_calls_its_index_panics() {
                super::a_closure_that_calls_its_index_panics($numbers);
            }

            #[test]
            fn a_panic_drops_nothing_under_locks() {
                panics::a_panic_drops_nothing_under_locks($fragile);
            }

            #[test]
            fn what_is_noted_is_removed() {
                panics::what_is_noted_is_removed($fragile);
            }

            #[test]
            fn closures_are_called_for_a_range_without_keys() {
                panics::closures_are_called_for_a_range_without_keys($numbers);
            }

            #[test]
            fn a_walk_waits_for_no_writer() {
                walks::a_walk_waits_for_no_writer($numbers);
            }
        })*
    };
}

each_engine! {
    of_ca_tree: ca_tree, ca_tree, ca_tree;
    of_b_tree: b_tree, b_tree, b_tree_without_heads;
    of_aspen: aspen, aspen, aspen;
}

/// The bounds between two keys: the lower one is a part of the range, the upper one is not.
fn between<'k, K: Ord>(one: &'k K, other: &'k K) -> KeyRange<'k, K> {
    KeyRange::new(
        Bound::Included(one.min(other)),
        Bound::Excluded(one.max(other)),
    )
}

/// Fails if user code that panics in the middle of a step leaves a part of the step behind, or an
/// index that cannot be used.
fn a_step_that_panics_has_not_happened<I: Index<Fragile<u64>, Fragile<u64>>>(make: fn() -> I) {
    let (mut undone, mut completed) = (0, 0);
    for calls in 0..10_000 {
        let index = make();
        for key in 0..100 {
            index.insert(Fragile(2 * key), Fragile(key));
        }
        let before = contents(&index);
        let (low, high) = (Fragile(20), Fragile(120));
        let over = [between(&low, &high)];
        let done = with_fuse(calls, || {
            index.steps().atomically(&over, &mut |step| {
                for key in (21..60).step_by(2) {
                    step.insert(Fragile(key), Fragile(0));
                }
                step.remove_range(KeyRange::all());
                step.insert(Fragile(30), Fragile(1));
                step.remove(&Fragile(30));
                step.insert(Fragile(20), Fragile(2));
            });
        });
        index.check_invariants();
        let now = contents(&index);
        assert_eq!(OrderedIndex::len(&index), now.len());
        // What runs after the step, such as a split, may panic too.
        let has_happened = now.len() == 51 && now != before;
        assert!(has_happened || done.is_none() && now == before, "{now:?}");
        completed += u32::from(has_happened);
        undone += u32::from(!has_happened);
        if done.is_some() {
            break;
        }
        index.insert(Fragile(21), Fragile(3));
        assert_eq!(index.remove(&Fragile(21)), Some(Fragile(3)));
    }
    assert!(
        completed > 0 && undone > 200,
        "{completed} completed, {undone} undone"
    );
}

/// Fails if a step loses a value, or drops one twice or while it holds a lock.
fn all_that_a_step_takes_out_is_dropped_once<I: Index<u64, Counted<u64>>>(make: fn() -> I) {
    let ledger = Ledger::default();
    let index = make();
    for seed in 0..scaled(40).max(4) {
        let random = &mut Random::new(seed);
        let planned = random.below(3) == 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            index.steps().atomically(&[KeyRange::all()], &mut |step| {
                for _ in 0..60 {
                    let key = random.below(90).into();
                    match random.below(4) {
                        0 => drop(step.remove(&key)),
                        1 if random.below(20) == 0 => drop(step.remove_range(KeyRange::all())),
                        _ => drop(step.insert(key, ledger.make(key))),
                    }
                }
                if planned {
                    resume_unwind(Box::new("planned"));
                }
            });
        }));
        assert_eq!(outcome.is_err(), planned);
        drop(index.steps().pop_with(Direction::Ascending, &mut |_, _| ()));
        let (low, high) = (random.below(90).into(), 90);
        index
            .steps()
            .remove_range_with(between(&low, &high), &mut |_| ());
    }
    drop(index);
    ledger.assert_settled();
}

/// Fails if a closure may call its own index, which on some engines waits for ever; or if a step
/// may use keys that it has not named, which it has not locked.
fn a_closure_that_calls_its_index_panics<I: Index<u64, u64>>(make: fn() -> I) {
    let index = make();
    for key in 0..50 {
        index.insert(key, key);
    }
    // The trait that checks.
    let index: &dyn OrderedIndex<u64, u64> = &index;
    let steps = index.transactional().expect("a fact of this engine");
    let mut messages = Vec::new();
    let mut note = |work: &mut dyn FnMut()| {
        let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("it panics");
        messages.push(panic.downcast_ref::<&str>().map_or_else(
            || panic.downcast_ref::<String>().cloned().unwrap_or_default(),
            |text| (*text).to_owned(),
        ));
    };
    if cfg!(debug_assertions) {
        note(&mut || {
            steps.pop_with(Direction::Ascending, &mut |_, _| {
                assert!(index.get(&1).is_some())
            });
        });
        note(&mut || {
            steps.remove_range_with(KeyRange::all(), &mut |_| assert_eq!(index.len(), 50));
        });
        note(&mut || {
            steps.atomically(&[KeyRange::all()], &mut |_| {
                assert!(index.first().is_some())
            })
        });
        note(&mut || {
            steps.atomically(&[], &mut |_| {
                steps.walk(&mut |_| ControlFlow::Break(()));
            });
        });
        assert!(
            messages
                .iter()
                .all(|message| message.contains("the same index")),
            "{messages:?}"
        );
        messages.clear();
    }
    let mut note = |work: &mut dyn FnMut(&mut dyn Transaction<u64, u64>)| {
        let over = [
            KeyRange::only(&7),
            KeyRange::new(Bound::Excluded(&9), Bound::Excluded(&12)),
        ];
        let call = || steps.atomically(&over, &mut |step| work(step));
        let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("it panics");
        messages.push(
            panic
                .downcast_ref::<&str>()
                .copied()
                .unwrap_or_default()
                .to_owned(),
        );
    };
    note(&mut |step| assert!(step.insert(8, 0)));
    note(&mut |step| assert!(step.remove(&9)));
    note(&mut |step| assert!(step.get_with(&12, &mut |_| ())));
    note(&mut |step| assert!(step.insert(10, 0) && step.remove(&6)));
    assert!(
        messages
            .iter()
            .all(|message| message.contains("outside the ranges")),
        "{messages:?}"
    );
    let all: Vec<_> = (0..50).map(|key| (key, key)).collect();
    assert_eq!(contents(index), all, "nothing has happened");
}
