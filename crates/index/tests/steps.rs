//! Steps over several entries, and closures under locks, on each engine that has them, with nodes
//! so small that steps span many and split them.
//!
//! Each test says what it fails on.
#![cfg(not(any(loom, shuttle)))]

mod support;

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
                super::random_steps_match_a_model::<u64, u64, _>($numbers);
                super::random_steps_match_a_model::<u64, String, _>($numbers);
                super::random_steps_match_a_model::<String, String, _>($others);
            }

            #[test]
            fn a_step_that_panics_has_not_happened() {
                super::a_step_that_panics_has_not_happened($fragile);
            }

            #[test]
            fn a_step_is_seen_whole() {
                super::a_step_is_seen_whole($numbers, |number| number);
                super::a_step_is_seen_whole($others, Dawdler);
            }

            #[test]
            fn effects_are_numbered_in_their_order() {
                super::effects_are_numbered_in_their_order($numbers);
            }

            #[test]
            fn all_that_a_step_takes_out_is_dropped_once() {
                super::all_that_a_step_takes_out_is_dropped_once($numbers);
            }

            #[test]
            fn a_closure_that_calls_its_index_panics() {
                super::a_closure_that_calls_its_index_panics($numbers);
            }
        })*
    };
}

each_engine! {
    of_ca_tree: ca_tree, ca_tree, ca_tree;
    of_b_tree: b_tree, b_tree, b_tree_without_heads;
    of_aspen: aspen, aspen, aspen;
}

/// Keys are made from numbers below this: many leaves.
const KEYS: u32 = 400;

/// What one step does, and what comes out of it.
enum Act {
    Insert(u32, u32),
    Remove(u32),
    RemoveRange(u32, u32),
    Look(u32, u32),
}

/// The bounds between two keys: the lower one is a part of the range, the upper one is not.
fn between<'k, K: Ord>(one: &'k K, other: &'k K) -> KeyRange<'k, K> {
    KeyRange::new(
        Bound::Included(one.min(other)),
        Bound::Excluded(one.max(other)),
    )
}

fn copy_out<K: Clone, V: Clone>(
    view: &(impl View<K, V> + ?Sized),
    range: KeyRange<'_, K>,
) -> Vec<(K, V)> {
    let mut out = Vec::new();
    view.range(range, &mut |key, value| {
        out.push((key.clone(), value.clone()));
        ControlFlow::Continue(())
    });
    out
}

fn within<K: Key, V: Clone>(model: &BTreeMap<K, V>, range: KeyRange<'_, K>) -> Vec<(K, V)> {
    let entries = model.iter().filter(|(key, _)| range.contains(key));
    entries
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Does an act in a step and on a model, and compares the results.
fn act<K: Key, V: support::values::Value>(
    step: &mut dyn Transaction<K, V>,
    model: &mut BTreeMap<K, V>,
    act: &Act,
) {
    match *act {
        Act::Insert(key, value) => {
            let (key, value) = (K::make(key), V::make(value));
            let was_present = step.insert(key.clone(), value.clone());
            assert_eq!(was_present, model.insert(key, value).is_some());
        }
        Act::Remove(key) => {
            let key = K::make(key);
            assert_eq!(step.remove(&key), model.remove(&key).is_some());
            assert!(!step.get_with(&key, &mut |_| unreachable!("just removed")));
        }
        Act::RemoveRange(one, other) => {
            let (one, other) = (K::make(one), K::make(other));
            let range = between(&one, &other);
            let gone = within(model, range);
            model.retain(|key, _| !range.contains(key));
            assert_eq!(step.remove_range(range), gone.len());
        }
        Act::Look(one, other) => {
            let (one, other) = (K::make(one), K::make(other));
            let mut found = None;
            step.get_with(&one, &mut |value| found = Some(value.clone()));
            assert_eq!(found.as_ref(), model.get(&one));
            let range = between(&one, &other);
            assert_eq!(copy_out(step, range), within(model, range));
        }
    }
}

/// Fails where a step, a `pop_with` or a `remove_range_with` does or shows something else than a
/// `BTreeMap`, where a step that panics leaves anything behind, or an invariant is broken; and where
/// a walk does not meet each entry in one part.
fn random_steps_match_a_model<K: Key, V: support::values::Value, I: Index<K, V>>(make: fn() -> I) {
    for seed in 0..scaled(60).max(6) {
        let random = &mut Random::new(seed);
        let index = make();
        let mut model: BTreeMap<K, V> = BTreeMap::new();
        for _ in 0..random.below(KEYS) {
            let (key, value) = (random.below(KEYS), random.below(100));
            index.insert(K::make(key), V::make(value));
            model.insert(K::make(key), V::make(value));
        }
        for _ in 0..20 {
            match random.below(8) {
                0 => pop_both(&index, &mut model, random),
                1 => remove_both(&index, &mut model, random),
                _ => step_both(&index, &mut model, random),
            }
            assert_eq!(contents(&index), Vec::from_iter(model.clone()));
            assert_eq!(OrderedIndex::len(&index), model.len());
        }
        index.check_invariants();
        check_walk(&index, &model);
    }
}

fn pop_both<K: Key, V: support::values::Value>(
    index: &impl Index<K, V>,
    model: &mut BTreeMap<K, V>,
    random: &mut Random,
) {
    let ascending = random.below(2) == 0;
    let mut noted = Vec::new();
    let (popped, expected) = if ascending {
        let note = &mut |key: &K, value: &V| noted.push((key.clone(), value.clone()));
        (
            index.steps().pop_with(Direction::Ascending, note),
            model.pop_first(),
        )
    } else {
        let note = &mut |key: &K, value: &V| noted.push((key.clone(), value.clone()));
        (
            index.steps().pop_with(Direction::Descending, note),
            model.pop_last(),
        )
    };
    assert_eq!(popped, expected);
    assert_eq!(noted, Vec::from_iter(expected));
}

fn remove_both<K: Key, V: support::values::Value>(
    index: &impl Index<K, V>,
    model: &mut BTreeMap<K, V>,
    random: &mut Random,
) {
    let (one, other) = (K::make(random.below(KEYS)), K::make(random.below(KEYS)));
    let range = between(&one, &other);
    let gone = within(model, range);
    let before = OrderedIndex::len(index);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        index
            .steps()
            .remove_range_with(range, &mut |_| resume_unwind(Box::new("planned")));
    }));
    assert_eq!(panicked.is_err(), one != other);
    assert_eq!(OrderedIndex::len(index), before);
    let mut noted = Vec::new();
    let count = index.steps().remove_range_with(range, &mut |view| {
        noted.push(copy_out(view, KeyRange::all()));
    });
    model.retain(|key, _| !range.contains(key));
    assert_eq!(count, gone.len());
    let shown = if one == other { vec![] } else { vec![gone] };
    assert_eq!(noted, shown);
}

fn step_both<K: Key, V: support::values::Value>(
    index: &impl Index<K, V>,
    model: &mut BTreeMap<K, V>,
    random: &mut Random,
) {
    // Single keys, and ranges that may overlap, in any order.
    let ends: Vec<(u32, u32, bool)> = (0..random.below(6))
        .map(|_| (random.below(KEYS), random.below(KEYS), random.below(2) == 0))
        .collect();
    let keys: Vec<(K, K)> = (ends.iter())
        .map(|(one, other, single)| {
            let other = if *single { one } else { other };
            (K::make(*one), K::make(*other))
        })
        .collect();
    let mut over: Vec<_> = (keys.iter())
        .map(|(one, other)| match one == other {
            true => KeyRange::only(one),
            false => between(one, other),
        })
        .collect();
    if random.below(30) == 0 {
        over.push(KeyRange::all());
    }
    let may = |number: u32| {
        let key = K::make(number);
        over.iter().any(|range| range.contains(&key))
    };
    let allowed: Vec<u32> = (0..KEYS).filter(|number| may(*number)).collect();
    let mut acts = Vec::new();
    if !allowed.is_empty() {
        // Now and then so many that leaves split while they are held.
        let count = [3, 200][usize::from(random.below(4) == 0)];
        for _ in 0..random.below(count) {
            let key = allowed[random.below(allowed.len() as u32) as usize];
            let other = allowed[random.below(allowed.len() as u32) as usize];
            acts.push(match random.below(10) {
                0..=5 => Act::Insert(key, random.below(100)),
                6..=7 => Act::Remove(key),
                8 => Act::Look(key, other),
                _ => Act::RemoveRange(key, other),
            });
        }
    }
    let panics = random.below(4) == 0;
    let mut after = model.clone();
    let mut calls = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        index.steps().atomically(&over, &mut |step| {
            calls += 1;
            for one in &acts {
                clipped(step, &mut after, one, &over);
            }
            if panics {
                resume_unwind(Box::new("planned"));
            }
        });
    }));
    match outcome {
        Ok(()) => *model = after,
        Err(panic) if panic.is::<&str>() && panics => {}
        Err(panic) => resume_unwind(panic),
    }
    assert_eq!(calls, 1, "the closure is called exactly once");
}

/// Like [`act`], for ranges that reach beyond those of the step: only what lies in these is shown.
fn clipped<K: Key, V: support::values::Value>(
    step: &mut dyn Transaction<K, V>,
    model: &mut BTreeMap<K, V>,
    what: &Act,
    over: &[KeyRange<'_, K>],
) {
    let is_outside = |key: &K| !over.iter().any(|range| range.contains(key));
    let outside: Vec<(K, V)> = (model.iter())
        .filter(|(key, _)| is_outside(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    model.retain(|key, _| !is_outside(key));
    act(step, model, what);
    model.extend(outside);
}

fn check_walk<K: Key, V: support::values::Value>(index: &impl Index<K, V>, model: &BTreeMap<K, V>) {
    let mut entries = 0;
    let mut lows: Vec<K> = Vec::new();
    let mut parts = 0;
    let adapted = index.steps().walk(&mut |part| {
        parts += 1;
        entries += part.entries.expect("nobody changes it");
        lows.extend(part.low.clone());
        ControlFlow::Continue(())
    });
    assert_eq!(entries, model.len());
    assert!(lows.is_sorted_by(|one, other| one < other), "{lows:?}");
    assert!(parts == 1 || adapted.splits > 0);
    let mut calls = 0;
    index.steps().walk(&mut |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert_eq!(calls, 1, "a walk ends where its closure says so");
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
        (1..20).contains(&completed),
        "few panics come after the step"
    );
}

/// Fails if a thread sees a part of a step: two keys that are always written together differ, or an
/// entry that is always present is missing.
fn a_step_is_seen_whole<K: Ord + Storable, I: Index<K, u64>>(make: fn() -> I, key: fn(u64) -> K) {
    const PAIRS: u64 = 40;
    let index = &make();
    for number in 0..2 * PAIRS {
        index.insert(key(number), 0);
    }
    let done = &AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|seed| {
                scope.spawn(move || {
                    let random = &mut Random::new(seed);
                    for _ in 0..scaled(3_000) {
                        write_a_pair(index, random, key, PAIRS);
                    }
                })
            })
            .collect();
        for seed in 0..2 {
            scope.spawn(move || {
                let random = &mut Random::new(100 + seed);
                while !done.load(Ordering::Relaxed) {
                    read_a_pair(index, random, key, PAIRS);
                }
            });
        }
        let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        for outcome in outcomes {
            outcome.unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    index.check_invariants();
}

/// Raises the values of two keys of a pair, which lie far apart. Now and then fills the gap between
/// with entries, and clears it again, so that leaves split and merge.
fn write_a_pair<K: Ord + Storable>(
    index: &impl Index<K, u64>,
    random: &mut Random,
    key: fn(u64) -> K,
    pairs: u64,
) {
    let pair = u64::from(random.below(pairs as u32));
    let (one, other) = (key(pair), key(pair + pairs));
    let crowd = random.below(20) == 0;
    let (from, to) = (key(1_000), key(1_200));
    let gap = KeyRange::new(Bound::Included(&from), Bound::Excluded(&to));
    let mut over = vec![KeyRange::only(&other), KeyRange::only(&one)];
    if crowd {
        over.push(gap);
    }
    index.steps().atomically(&over, &mut |step| {
        let mut value = None;
        step.get_with(&one, &mut |found| value = Some(*found));
        let next = value.expect("always present") + 1;
        // Gone and back within the step.
        step.remove(&one);
        step.insert(other.clone(), next);
        step.insert(one.clone(), next);
        if crowd && step.remove_range(gap) == 0 {
            for number in 1_000..1_200 {
                step.insert(key(number), next);
            }
        }
    });
}

fn read_a_pair<K: Ord + Storable>(
    index: &impl Index<K, u64>,
    random: &mut Random,
    key: fn(u64) -> K,
    pairs: u64,
) {
    let pair = u64::from(random.below(pairs as u32));
    let (one, other) = (key(pair), key(pair + pairs));
    match random.below(4) {
        0 => {
            let (first, second) = (index.get(&one), index.get(&other));
            assert!(first.is_some() && first <= second, "{first:?}, {second:?}");
        }
        1 => {
            let (first, second) = (index.get(&other), index.get(&one));
            assert!(first.is_some() && first <= second, "{first:?}, {second:?}");
        }
        2 => {
            let all = OrderedIndex::snapshot(index, KeyRange::all()).expect("a fact");
            let crowd = all.len() as u64 - 2 * pairs;
            assert!(crowd == 0 || crowd == 200, "{crowd} of 200 entries");
            for at in 0..pairs as usize {
                assert_eq!(all[at].1, all[at + pairs as usize].1);
            }
        }
        _ => {
            let over = [KeyRange::only(&one), KeyRange::only(&other)];
            index.steps().atomically(&over, &mut |step| {
                let mut values = [None, None];
                step.get_with(&one, &mut |value| values[0] = Some(*value));
                step.get_with(&other, &mut |value| values[1] = Some(*value));
                assert!(values[0].is_some() && values[0] == values[1], "{values:?}");
            });
        }
    }
}

/// An effect as a log has it: a key and what it is now, or a range that was removed.
enum Effect {
    Put(u64, u64),
    Delete(u64),
    DeleteRange(u64, u64),
}

/// Fails if the effects of concurrent writes, done again in the order of the numbers that they got in
/// their closures, lead to other contents than the writes: then a number was given before or after
/// the lock.
fn effects_are_numbered_in_their_order<I: Index<u64, u64>>(make: fn() -> I) {
    const NARROW: u32 = 60;
    for seed in 0..4 {
        let index = &make();
        let numbers = &AtomicU64::new(0);
        let logs: Vec<Vec<(u64, Effect)>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    scope.spawn(move || {
                        let random = &mut Random::new(10 * seed + thread);
                        let mut log = Vec::new();
                        for _ in 0..scaled(4_000) {
                            log_one(index, random, NARROW, &mut |effect| {
                                let number = numbers.fetch_add(1, Ordering::SeqCst);
                                if number % 61 == 0 {
                                    thread::yield_now();
                                }
                                log.push((number, effect));
                            });
                        }
                        log
                    })
                })
                .collect();
            (threads.into_iter())
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        let mut log: Vec<_> = logs.into_iter().flatten().collect();
        log.sort_by_key(|(number, _)| *number);
        let mut replayed = BTreeMap::new();
        for (_, effect) in log {
            match effect {
                Effect::Put(key, value) => drop(replayed.insert(key, value)),
                Effect::Delete(key) => {
                    assert!(replayed.remove(&key).is_some(), "{key} is deleted twice");
                }
                Effect::DeleteRange(from, to) => {
                    replayed.retain(|key, _| *key < from || *key >= to)
                }
            }
        }
        assert_eq!(contents(index), Vec::from_iter(replayed));
        index.check_invariants();
    }
}

/// One random write, whose effects go to `log` in its closure.
fn log_one(
    index: &impl Index<u64, u64>,
    random: &mut Random,
    keys: u32,
    log: &mut dyn FnMut(Effect),
) {
    let (key, other) = (random.below(keys).into(), random.below(keys).into());
    let value = random.next();
    match random.below(8) {
        0..=1 => {
            index.update(key, &mut |_| {
                log(Effect::Put(key, value));
                Update::Put(value)
            });
        }
        2 => {
            index.update(key, &mut |found| match found {
                Some(_) => {
                    log(Effect::Delete(key));
                    Update::Remove
                }
                None => Update::Keep,
            });
        }
        3 => {
            let note = &mut |key: &u64, _: &u64| log(Effect::Delete(*key));
            index.steps().pop_with(Direction::Ascending, note);
        }
        4 => {
            let note = &mut |key: &u64, _: &u64| log(Effect::Delete(*key));
            index.steps().pop_with(Direction::Descending, note);
        }
        5 => {
            let (from, to) = (key.min(other), key.min(other) + 9);
            let range = KeyRange::new(Bound::Included(&from), Bound::Excluded(&to));
            index.steps().remove_range_with(range, &mut |_| {
                log(Effect::DeleteRange(from, to));
            });
        }
        _ => {
            let over = [KeyRange::only(&key), KeyRange::only(&other)];
            index.steps().atomically(&over, &mut |step| {
                step.insert(key, value);
                log(Effect::Put(key, value));
                if step.remove(&other) {
                    log(Effect::Delete(other));
                }
            });
        }
    }
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

/// Fails if a closure may call its own index, which on some engines waits for ever; or if a step may
/// use keys that it has not named, which it has not locked.
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
