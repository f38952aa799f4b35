//! The tree's grain follows its use, with the thresholds that users get.
#![cfg(not(any(loom, shuttle)))]

mod support;

use support::suite::Random;
use tremula_index::{Aspen, CaTree, OrderedIndex, Update};
use tremula_sync::{Arc, thread};

/// Keys for which the threads contend.
const RANGE: u64 = 1 << 20;
const THREADS: u32 = 8;

fn figure(tree: &impl OrderedIndex<u64, u64>, name: &str) -> u64 {
    tree.shape()
        .get(name)
        .unwrap_or_else(|| panic!("shape has no figure {name}"))
}

/// Inserts and removes random keys below `range`. One time in `yields_in` it yields its core in the
/// middle of an operation, so that threads collide even on few cores.
fn hammer(
    tree: &impl OrderedIndex<u64, u64>,
    range: u64,
    seed: u32,
    operations: u32,
    yields_in: u32,
) {
    let mut random = Random::new(seed);
    for _ in 0..operations {
        let key = random.next() % range;
        let insert = random.below(2) == 0;
        let yields = random.below(yields_in) == 0;
        tree.update(key, &mut |_| {
            if yields {
                thread::yield_now();
            }
            if insert {
                Update::Put(key)
            } else {
                Update::Remove
            }
        });
    }
}

/// Fails if contention does not split the tree, if its absence does not join it, or if either loses
/// entries.
#[test]
fn a_tree_splits_under_eight_threads_and_is_whole_again_after_one() {
    let tree = Arc::new(CaTree::<u64, u64>::new());
    assert_eq!(figure(&*tree, "base_nodes"), 1);

    // How soon threads collide depends on the machine, but eventually they do.
    for round in 0.. {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let tree = Arc::clone(&tree);
                thread::spawn(move || hammer(&*tree, RANGE, round * THREADS + number, 10_000, 20))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        if figure(&*tree, "base_nodes") > 4 {
            break;
        }
        assert!(round < 200, "never split: {:?}", tree.shape());
    }
    assert!(figure(&*tree, "splits") > 0 && figure(&*tree, "contended") > 0);
    let before = tree.shape();

    hammer(&*tree, RANGE, u32::MAX, 1_000_000, u32::MAX);
    assert_eq!(
        figure(&*tree, "base_nodes"),
        1,
        "before: {before:?}, after: {:?}",
        tree.shape()
    );
    assert_eq!(figure(&*tree, "splits"), figure(&*tree, "joins"));
    let entries = tree.snapshot(tremula_index::KeyRange::all()).unwrap();
    assert_eq!(entries.len(), tree.len());
    assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
}

/// Keys of which all lie in a few leaves.
const NARROW: u64 = 512;

/// Fails if leaves that are fought over are not split, if quiet ones are not merged, or if either
/// loses entries.
#[test]
fn leaves_of_aspen_are_split_where_threads_meet_and_merged_when_it_is_quiet() {
    let map = Arc::new(Aspen::<u64, u64>::new());
    hammer(&*map, NARROW, 0, 10_000, u32::MAX);
    let whole = figure(&*map, "leaves");
    assert_eq!(figure(&*map, "contention_splits"), 0, "nobody has waited");

    for round in 0.. {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let map = Arc::clone(&map);
                let seed = round * THREADS + number;
                thread::spawn(move || hammer(&*map, NARROW, seed, 10_000, 20))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        if figure(&*map, "leaves") > 4 * whole {
            break;
        }
        assert!(round < 200, "hardly split: {:?}", map.shape());
    }
    assert!(figure(&*map, "contention_splits") > 0 && figure(&*map, "waits") > 0);
    let before = map.shape();

    hammer(&*map, NARROW, u32::MAX, 2_000_000, u32::MAX);
    let after = map.shape();
    assert!(
        figure(&*map, "leaves") <= 2 * whole,
        "before: {before:?}, after: {after:?}"
    );
    let entries = map.snapshot(tremula_index::KeyRange::all()).unwrap();
    assert_eq!(entries.len(), map.len());
    assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
}

/// Fails if a leaf is split again and again because of one key, which no split can help.
#[test]
fn one_hot_key_does_not_split_its_leaf() {
    let map = Arc::new(Aspen::<u64, u64>::new());
    for key in 0..100 {
        map.insert(key, 0);
    }
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let map = Arc::clone(&map);
            thread::spawn(move || {
                for number in 0..20_000 {
                    map.update(50, &mut |value| {
                        if number % 20 == 0 {
                            thread::yield_now();
                        }
                        Update::Put(value.copied().unwrap_or_default() + 1)
                    });
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(map.get(&50), Some(u64::from(THREADS) * 20_000));
    assert_eq!(figure(&*map, "contention_splits"), 0, "{:?}", map.shape());
    assert!(figure(&*map, "waits") > 0, "{:?}", map.shape());
}
