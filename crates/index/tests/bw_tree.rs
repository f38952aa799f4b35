//! What only the OpenBw-Tree promises: its mapping table grows and shrinks with its nodes.
#![cfg(not(any(loom, shuttle)))]

mod support;

use std::thread;
use std::time::{Duration, Instant};
use support::suite::{Random, join_all, scaled};
use tremula_index::{BwTree, KeyRange, OrderedIndex};
use tremula_sync::epoch;

/// Ids of a page of the mapping table.
const PAGE: u64 = 256;

fn figure(tree: &BwTree<u64, u64>, name: &str) -> u64 {
    tree.shape().get(name).unwrap()
}

/// Waits until what was retired has been freed: until each id in use is a node's, and each page
/// has one. Threads of other tests may be pinned for a while.
fn settle(tree: &BwTree<u64, u64>) {
    let begun = Instant::now();
    loop {
        epoch::pin().flush();
        let nodes = figure(tree, "leaves") + figure(tree, "inner_nodes");
        let (live, backed) = (figure(tree, "ids_live"), figure(tree, "ids_backed"));
        if live == nodes && backed <= live * PAGE {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{nodes} nodes, {live} ids in use, {backed} with memory"
        );
        thread::yield_now();
    }
}

/// It would fail if ids of nodes that were merged away were lost, or their pages kept.
#[test]
fn the_mapping_table_shrinks_when_all_is_removed() {
    let entries = u64::from(scaled(1_000_000));
    let tree = BwTree::<u64, u64>::new();
    let start = figure(&tree, "ids_backed");
    assert_eq!(start, PAGE);
    for turn in 0..2 {
        for key in 0..entries {
            tree.insert(key, key);
        }
        let full = figure(&tree, "ids_backed");
        assert!(full * 128 >= entries, "{full} ids for {entries} entries");
        if turn == 0 {
            assert_eq!(tree.remove_range(KeyRange::all()) as u64, entries);
        } else {
            for key in 0..entries {
                assert_eq!(tree.remove(&key), Some(key));
            }
        }
        settle(&tree);
        assert_eq!(figure(&tree, "leaves"), 1);
        assert_eq!(figure(&tree, "ids_backed"), start);
    }
}

/// Threads fill and empty their parts of the tree by turns: pages are given back while others
/// have ids handed out. It would fail if an id were handed out twice, or of a page that is gone:
/// then one part has what belongs to another.
#[test]
fn the_mapping_table_grows_and_shrinks_under_four_threads() {
    let tree = &BwTree::<u64, u64>::with_config(support::restless_bw());
    let entries = scaled(8_000);
    thread::scope(|scope| {
        let threads = (0..4).map(|number| {
            scope.spawn(move || {
                let mut random = Random::new(number);
                let base = u64::from(number) << 32;
                for turn in 0..6 {
                    let count = u64::from(random.below(entries) + 1);
                    for key in base..base + count {
                        assert_eq!(tree.insert(key, key + turn), None);
                    }
                    for key in base..base + count {
                        assert_eq!(tree.get(&key), Some(key + turn));
                    }
                    for key in (base..base + count).rev() {
                        assert_eq!(tree.remove(&key), Some(key + turn));
                    }
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        join_all(threads);
    });
    assert!(tree.is_empty());
    // A merge that was given up since others were at work there is made up for by the next one.
    for key in 0..64 {
        tree.insert(key, key);
    }
    tree.remove_range(KeyRange::all());
    settle(tree);
}
