//! Steps of several threads.

use super::*;

/// Fails if a thread sees a part of a step: two keys that are always written together differ, or an
/// entry that is always present is missing.
pub(crate) fn a_step_is_seen_whole<K: Ord + Storable, I: Index<K, u64>>(
    make: fn() -> I,
    key: fn(u64) -> K,
) {
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

/// Fails if the effects of concurrent writes, done again in the order of the numbers that they got
/// in their closures, lead to other contents than the writes: then a number was given before or
/// after the lock.
pub(crate) fn effects_are_numbered_in_their_order<I: Index<u64, u64>>(make: fn() -> I) {
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
                                if number.is_multiple_of(61) {
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
