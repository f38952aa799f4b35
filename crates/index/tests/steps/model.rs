//! Random steps beside a `BTreeMap`.

use super::*;

/// Keys are made from numbers below this: many leaves.
const KEYS: u32 = 400;

/// What one step does, and what comes out of it.
enum Act {
    Insert(u32, u32),
    Remove(u32),
    RemoveRange(u32, u32),
    Look(u32, u32),
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
/// `BTreeMap`, where a step that panics leaves anything behind, or an invariant is broken; and
/// where a walk does not meet each entry in one part.
pub(crate) fn random_steps_match_a_model<K: Key, V: support::values::Value, I: Index<K, V>>(
    make: fn() -> I,
) {
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
        check_snapshot(&index, &model, random);
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
        // Now and then two hundred acts, so that leaves split while they are held.
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
    walks::check_parts(index, model);
    let mut calls = 0;
    index.steps().walk(&mut |_| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert_eq!(calls, 1, "a walk ends where its closure says so");
}

/// Fails if a snapshot shows something else than the range that it is of, or a later change.
fn check_snapshot<K: Key, V: support::values::Value>(
    index: &impl Index<K, V>,
    model: &BTreeMap<K, V>,
    random: &mut Random,
) {
    let ends = [0; 4].map(|_| K::make(random.below(KEYS)));
    let of = between(&ends[0], &ends[1]);
    let snapshot = index.steps().snapshot(of);
    OrderedIndex::remove_range(index, KeyRange::all());
    let kept = BTreeMap::from_iter(within(model, of));
    for number in 0..KEYS {
        let key = K::make(number);
        assert_eq!(snapshot.get(&key), kept.get(&key));
    }
    let part = between(&ends[2], &ends[3]);
    let shown = snapshot
        .range(part)
        .map(|(key, value)| (key.clone(), value.clone()));
    assert_eq!(Vec::from_iter(shown), within(&kept, part));
    assert_eq!(
        (snapshot.len(), snapshot.is_empty()),
        (kept.len(), kept.is_empty())
    );
    assert_eq!(snapshot.into_entries(), Vec::from_iter(kept));
}
