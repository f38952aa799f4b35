//! The appendable cache against a map of byte strings.
#![cfg(not(any(loom, shuttle)))]

use proptest::prelude::*;
use std::collections::BTreeMap;
use tremula_shard::cache::{AppendError, Cache, CacheConfig};

#[derive(Clone, Debug)]
enum Step {
    Append(u64, usize),
    Get(u64, usize),
    Range(u64, usize, usize),
    Length(u64),
    Remove(u64),
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![0..200_usize, 0..3_000_usize, 10_000..70_000_usize]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = 0..6_u64;
    let step = prop_oneof![
        6 => (id.clone(), size()).prop_map(|(id, size)| Step::Append(id, size)),
        4 => (id.clone(), size()).prop_map(|(id, size)| Step::Get(id, size)),
        3 => (id.clone(), size(), size()).prop_map(|(id, from, size)| Step::Range(id, from, size)),
        1 => id.clone().prop_map(Step::Length),
        1 => id.prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 0..150)
}

/// Bytes that differ at every offset and in every append.
fn bytes(number: usize, size: usize) -> Vec<u8> {
    (0..size)
        .map(|place| (place * 7 + number * 13) as u8)
        .collect()
}

proptest! {
    #[test]
    fn it_does_what_a_map_of_byte_strings_does(steps in steps()) {
        let cache: Cache<u64> = Cache::new(CacheConfig::default().budget(usize::MAX / 2).longest(150_000).cells(2));
        let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut lent = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append(id, size) => {
                    let length = model.get(&id).map_or(0, Vec::len);
                    let answer = cache.append(&id, &bytes(number, size));
                    if length + size > 150_000 {
                        let error = AppendError::TooLong { length, appended: size, longest: 150_000 };
                        prop_assert_eq!(answer, Err(error));
                    } else {
                        model.entry(id).or_default().extend(bytes(number, size));
                        prop_assert_eq!(answer, Ok(length + size));
                    }
                }
                Step::Get(id, size) => {
                    let expected = model.get(&id).map(|all| &all[all.len().saturating_sub(size)..]);
                    let answer = cache.get(&id, size);
                    prop_assert_eq!(answer.as_deref(), expected);
                    lent.push((answer, expected.map(<[u8]>::to_vec)));
                }
                Step::Range(id, from, size) => {
                    let expected = model.get(&id).map(|all| {
                        let end = (from + size).min(all.len());
                        &all[from.min(end)..end]
                    });
                    let answer = cache.range(&id, from..from + size);
                    prop_assert_eq!(answer.as_deref(), expected);
                    lent.push((answer, expected.map(<[u8]>::to_vec)));
                }
                Step::Length(id) => {
                    prop_assert_eq!(cache.length(&id), model.get(&id).map(Vec::len));
                }
                Step::Remove(id) => prop_assert_eq!(cache.remove(&id), model.remove(&id).is_some()),
            }
            prop_assert_eq!(cache.shape().items, model.len());
        }
        // Lent bytes have not changed.
        for (answer, expected) in lent {
            prop_assert_eq!(answer.as_deref(), expected.as_deref());
        }
        for id in model.keys() {
            cache.remove(id);
        }
        prop_assert_eq!(cache.shape().held, 0);
    }

    /// Each append takes a chunk of its own, so each one is a tick of the clock.
    #[test]
    fn who_goes_was_used_no_later_than_who_stays(
        steps in prop::collection::vec((0..40_u64, any::<bool>()), 0..400),
        cells in 1..5_usize,
    ) {
        let cache: Cache<u64> = Cache::new(CacheConfig::default().budget(400_000).longest(100_000).cells(cells));
        let mut used: BTreeMap<u64, u64> = BTreeMap::new();
        let mut tick = 0;
        for (id, append) in steps {
            if !append {
                // The first read of an item's open chunk closes it, which takes memory. `length` is
                // a use that takes no memory.
                let there = cache.length(&id).is_some();
                prop_assert_eq!(there, used.contains_key(&id));
                if there {
                    used.insert(id, tick);
                }
                continue;
            }
            if cache.append(&id, &[1; 20_000]).is_err() {
                prop_assert_eq!(cache.length(&id), Some(100_000));
                used.insert(id, tick);
                continue;
            }
            used.insert(id, tick);
            tick += 1;
            let shape = cache.shape();
            prop_assert!(shape.held <= shape.budget);
            // A lookup would be a use of the item. So the number of items decides which ids must be
            // gone, and only those are looked up.
            let gone = used.len() - shape.items;
            let mut by_age: Vec<(u64, u64)> = used.iter().map(|(id, tick)| (*tick, *id)).collect();
            by_age.sort_unstable();
            if gone > 0 {
                // Of the items last used at the same tick, some may be gone and others not.
                let limit = by_age[gone - 1].0;
                let tied: Vec<u64> = by_age.iter().filter(|age| age.0 == limit).map(|age| age.1).collect();
                used.retain(|_, tick| *tick > limit);
                for id in tied {
                    if cache.length(&id).is_some() {
                        used.insert(id, tick);
                    }
                }
                prop_assert_eq!(used.len(), shape.items);
                for id in used.keys().copied().collect::<Vec<_>>() {
                    prop_assert!(cache.length(&id).is_some(), "{id} went too early");
                    used.insert(id, tick);
                }
            }
        }
    }
}

#[test]
fn what_was_appended_in_one_piece_is_not_copied() {
    let cache: Cache<u64> = Cache::default();
    for number in 0..10 {
        cache.append(&1, &bytes(number, 16 * 1024)).unwrap();
        let one = cache.get(&1, 16 * 1024).unwrap();
        let other = cache.get(&1, 16 * 1024).unwrap();
        assert_eq!(one, bytes(number, 16 * 1024));
        assert_eq!(one.as_ptr(), other.as_ptr());
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_else_goes() {
    let cache: Cache<u64> = Cache::new(CacheConfig::default().budget(10_000));
    cache.append(&1, b"kept").unwrap();
    let error = cache.append(&2, &[0; 20_000]).unwrap_err();
    assert_eq!(error, AppendError::OverBudget(20_000, 10_000));
    assert!(error.to_string().contains("20000"));
    assert_eq!(cache.get(&1, 4).unwrap(), "kept");
    assert_eq!(cache.shape().items, 1);
}

#[test]
fn threads_append_and_read_within_the_budget() {
    let cache: Cache<u64> = Cache::new(
        CacheConfig::default()
            .budget(1 << 20)
            .longest(32 * 1024)
            .cells(4),
    );
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let cache = &cache;
            scope.spawn(move || {
                for step in 0..5_000_u64 {
                    let id = (step * 31 + thread * 7) % 100;
                    // Every byte of an item is the item's own number.
                    let size = (step % 40 * step % 3_000) as usize;
                    if cache.append(&id, &vec![id as u8; size]).is_err() {
                        cache.remove(&id);
                    }
                    let some = cache.get(&(step % 100), 5_000).unwrap_or_default();
                    assert!(some.iter().all(|byte| u64::from(*byte) == step % 100));
                }
            });
        }
    });
    let shape = cache.shape();
    assert!(
        shape.held <= shape.budget && shape.evictions > 0,
        "{shape:?}"
    );
    (0..100).for_each(|id| {
        cache.remove(&id);
    });
    assert_eq!(cache.shape().held, 0);
}

#[test]
fn the_ids_of_evicted_items_are_told_once() {
    let cache: Cache<u64> = Cache::new(CacheConfig::default().budget(100_000).keep_evicted(true));
    for id in 0..100 {
        cache.append(&id, &[7; 5000]).unwrap();
    }
    let mut evicted = cache.take_evicted();
    assert_eq!(evicted.len() as u64, cache.shape().evictions);
    assert!(cache.take_evicted().is_empty());
    evicted.extend((0..100).filter(|id| cache.length(id).is_some()));
    evicted.sort_unstable();
    assert!(evicted.into_iter().eq(0..100), "each is told, or there");
}
