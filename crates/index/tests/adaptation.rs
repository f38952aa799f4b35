//! The tree's grain follows its use, with the thresholds that users get.
#![cfg(not(any(loom, shuttle)))]

mod support;

use support::suite::Random;
use tremula_index::{CaTree, OrderedIndex, Update};
use tremula_sync::{Arc, thread};

/// Keys for which the threads contend.
const RANGE: u64 = 1 << 20;
const THREADS: u32 = 8;

fn figure(tree: &CaTree<u64, u64>, name: &str) -> u64 {
    tree.shape()
        .get(name)
        .unwrap_or_else(|| panic!("shape has no figure {name}"))
}

/// Inserts and removes random keys of the range. One time in `yields_in` it yields its core in the
/// middle of an operation, so that threads collide even on few cores.
fn hammer(tree: &CaTree<u64, u64>, seed: u32, operations: u32, yields_in: u32) {
    let mut random = Random::new(seed);
    for _ in 0..operations {
        let key = random.next() % RANGE;
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
    assert_eq!(figure(&tree, "base_nodes"), 1);

    // How soon threads collide depends on the machine, but eventually they do.
    for round in 0.. {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let tree = Arc::clone(&tree);
                thread::spawn(move || hammer(&tree, round * THREADS + number, 10_000, 20))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        if figure(&tree, "base_nodes") > 4 {
            break;
        }
        assert!(round < 200, "never split: {:?}", tree.shape());
    }
    assert!(figure(&tree, "splits") > 0 && figure(&tree, "contended") > 0);
    let before = tree.shape();

    hammer(&tree, u32::MAX, 1_000_000, u32::MAX);
    assert_eq!(
        figure(&tree, "base_nodes"),
        1,
        "before: {before:?}, after: {:?}",
        tree.shape()
    );
    assert_eq!(figure(&tree, "splits"), figure(&tree, "joins"));
    let entries = tree.snapshot(tremula_index::KeyRange::all()).unwrap();
    assert_eq!(entries.len(), tree.len());
    assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
}
