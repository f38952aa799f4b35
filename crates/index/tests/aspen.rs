//! What a user of Aspen may rely on beyond the contract: memory that comes to use again.
#![cfg(not(any(loom, shuttle)))]

use std::cmp::Reverse;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use tremula_index::key::ByteHead;
use tremula_index::{Aspen, Direction, KeyRange, OrderedIndex, OrderedMap, kit};

type Map<const UNITS: usize> = Aspen<u64, u64, ByteHead, UNITS>;

fn figure<const UNITS: usize>(map: &Map<UNITS>, name: &str) -> u64 {
    let shape = map.shape();
    shape
        .get(name)
        .unwrap_or_else(|| panic!("no figure {name}: {shape:?}"))
}

/// Entries that a queue has at most.
const QUEUE: u64 = 4_000;

/// Pushes at one end and pops at the other. Fails if leaves that become empty stay, or if the
/// memory grows with the number of entries that have passed.
fn a_queue_stays_small<const UNITS: usize>(push: impl Fn(u64) -> u64, direction: Direction) {
    let map = Map::<UNITS>::default();
    let turn = |turn: u64| {
        assert_eq!(map.insert(push(turn), turn), None);
        if let Some(old) = turn.checked_sub(QUEUE) {
            let popped = match direction {
                Direction::Ascending => map.pop_first(),
                Direction::Descending => map.pop_last(),
            };
            assert_eq!(popped, Some((push(old), old)));
        }
    };
    (0..10 * QUEUE).for_each(turn);
    let (leaves, bytes) = (figure(&map, "leaves"), figure(&map, "bytes"));
    (10 * QUEUE..100 * QUEUE).for_each(turn);
    kit::Implementation::check_invariants(&map);
    let shape = map.shape();
    assert!(figure(&map, "leaves") <= 2 * leaves, "{leaves}: {shape:?}");
    assert!(figure(&map, "bytes") <= 2 * bytes, "{bytes}: {shape:?}");
}

#[test]
fn a_queue_that_ascends_stays_small() {
    a_queue_stays_small::<8>(|turn| (1 << 40) + turn, Direction::Ascending);
    a_queue_stays_small::<1>(|turn| (1 << 40) + turn, Direction::Ascending);
    a_queue_stays_small::<8>(|turn| (1 << 40) + 977 * turn, Direction::Ascending);
}

#[test]
fn a_queue_that_descends_stays_small() {
    a_queue_stays_small::<8>(|turn| (1 << 40) - turn, Direction::Descending);
    a_queue_stays_small::<1>(|turn| (1 << 40) - 977 * turn, Direction::Descending);
}

/// Removes by ranges what is old, as a cache of time stamps does.
#[test]
fn a_window_that_moves_by_ranges_stays_small() {
    let map = Map::<1>::default();
    let mut least = (u64::MAX, u64::MAX);
    for turn in 0..100 {
        for key in 1000 * turn..1000 * (turn + 1) {
            map.insert(key, key);
        }
        if turn >= 4 {
            let end = 1000 * (turn - 3);
            let removed = map.remove_range(KeyRange::new(Bound::Unbounded, Bound::Excluded(&end)));
            assert_eq!(removed, 1000);
        }
        if turn == 20 {
            least = (figure(&map, "leaves"), figure(&map, "bytes"));
        }
    }
    kit::Implementation::check_invariants(&map);
    let shape = map.shape();
    assert!(
        figure(&map, "leaves") <= 2 * least.0,
        "{least:?}: {shape:?}"
    );
    assert!(figure(&map, "bytes") <= 2 * least.1, "{least:?}: {shape:?}");
}

/// What is removed is not given back to the allocator, but serves what comes next.
#[test]
fn a_map_that_was_emptied_is_filled_again_in_the_same_memory() {
    const KEYS: u64 = 1_000_000;
    let map = Map::<8>::default();
    let fill = || {
        for number in 0..KEYS {
            map.insert(number.wrapping_mul(0x9E37_79B9_7F4A_7C15), number);
        }
    };
    fill();
    let (bytes, blocks) = (figure(&map, "bytes"), figure(&map, "block_bytes"));
    let used = blocks - figure(&map, "free_block_bytes");
    for number in 0..KEYS {
        let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        assert_eq!(map.remove(&key), Some(number));
    }
    kit::Implementation::check_invariants(&map);
    assert!(map.is_empty());
    let used_when_empty = figure(&map, "block_bytes") - figure(&map, "free_block_bytes");
    assert!(
        used_when_empty <= used / 50,
        "{used}, then {used_when_empty}"
    );
    assert!(figure(&map, "leaves") <= 16, "{:?}", map.shape());
    fill();
    kit::Implementation::check_invariants(&map);
    assert!(
        figure(&map, "bytes") <= bytes + bytes / 8,
        "{bytes}, then {:?}",
        map.shape()
    );
}

/// The share of lookups that routes led astray, in percent, if each key was looked up before.
fn astray(keys: &[u64]) -> u64 {
    let map = Map::<8>::default();
    for key in keys {
        map.insert(*key, *key);
    }
    let look_up_all = || {
        for key in keys {
            assert_eq!(map.get(key), Some(*key));
        }
    };
    look_up_all();
    let before = figure(&map, "detours");
    look_up_all();
    let detours = figure(&map, "detours") - before;
    100 * detours / keys.len() as u64
}

/// A route is a hint, but one that is nearly always right: otherwise lookups ask the separators.
#[test]
fn routes_that_led_astray_are_mended() {
    let keys = |key: fn(u64) -> u64| Vec::from_iter((0..200_000).map(key));
    let sets = [
        keys(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        keys(|number| number),
        keys(|number| (number % 7) << 48 | number),
        keys(|number| 1_700_000_000_000_000 + number * 977),
    ];
    for (number, set) in sets.iter().enumerate() {
        let percent = astray(set);
        assert!(percent == 0, "set {number}: {percent} percent");
    }
}

/// Leaves of few entries are merged, wherever in the leaves the entries are that stay.
#[test]
fn leaves_that_were_thinned_out_are_merged() {
    const KEYS: u64 = 100_000;
    let map = Map::<8>::default();
    let key = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for number in 0..KEYS {
        map.insert(key(number), number);
    }
    let leaves = figure(&map, "leaves");
    for number in 0..KEYS {
        if number % 100 != 0 {
            map.remove(&key(number));
        }
    }
    kit::Implementation::check_invariants(&map);
    assert_eq!(map.len() as u64, KEYS / 100);
    assert!(
        figure(&map, "leaves") <= leaves / 5,
        "{leaves}, then {:?}",
        map.shape()
    );
}

/// A value that says when it is dropped; its copies do not.
#[derive(Debug)]
struct Watched(Option<Arc<AtomicBool>>);

impl Clone for Watched {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(dropped) = &self.0 {
            dropped.store(true, Relaxed);
        }
    }
}

/// While a thread reads a value, another one removes it, and goes on until it would be dropped if
/// nobody read it.
#[test]
fn a_value_that_is_being_read_outlives_its_removal() {
    let map = Aspen::<u64, Watched>::new();
    let dropped = Arc::new(AtomicBool::new(false));
    map.insert(1, Watched(Some(Arc::clone(&dropped))));
    let mut calls = 0;
    map.get_with(&1, &mut |_| {
        calls += 1;
        thread::scope(|scope| {
            scope.spawn(|| {
                drop(map.remove(&1));
                for turn in 0..10_000 {
                    map.insert(2, Watched(None));
                    map.contains_key(&turn);
                }
            });
        });
        assert!(!dropped.load(Relaxed), "dropped while it is read");
    });
    assert_eq!(calls, 1);
    drop(map);
    assert!(dropped.load(Relaxed), "leaked");
}

/// Fails if the heads of short numbers, whose lowest bits tell nothing, lie too far apart for
/// arrays.
#[test]
fn short_numbers_that_follow_one_another_lie_in_arrays() {
    fn dense<K: Copy + Ord + Send + Sync + 'static>(keys: impl Iterator<Item = K>) -> (u64, u64) {
        let map = OrderedMap::new();
        let keys: Vec<_> = keys.collect();
        for key in &keys {
            map.insert(*key, 7_u64);
        }
        assert!(map.iter().map(|(key, _)| key).eq(keys));
        let shape = map.shape();
        let figure = |name| {
            shape
                .get(name)
                .unwrap_or_else(|| panic!("{name}: {shape:?}"))
        };
        (figure("dense_leaves"), figure("leaves"))
    }
    for (dense, leaves) in [
        dense(0..20_000_u32),
        dense(-10_000..10_000_i32),
        dense(0..20_000_u16),
        dense(0..20_000_u64),
        dense((0x4E00..0x9000).filter_map(char::from_u32)),
    ] {
        assert!(
            10 * dense >= 9 * leaves && leaves > 10,
            "{dense} of {leaves}"
        );
    }
    // Small keys that are not numbers are compared.
    let map: OrderedMap<_, _> = [(Reverse(1_u8), 'a'), (Reverse(2), 'b')].into();
    assert!(map.iter().eq([(Reverse(2), 'b'), (Reverse(1), 'a')]));
}
