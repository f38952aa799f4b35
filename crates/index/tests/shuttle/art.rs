//! The radix tree with entries in many nodes; the suite's keys differ in one byte only, and all
//! lie in one node.

use std::ops::Bound;
use tremula_index::{Art, KeyRange, OrderedIndex};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

type Tree = Art<&'static [u8], u32>;

/// Some prefixes of others, some alone.
const STABLE: [&[u8]; 6] = [
    &[1],
    &[1, 2, 3],
    &[1, 2, 4],
    &[2, 2, 2],
    &[2, 2, 2, 1],
    &[9],
];
/// Their neighbours, at whose coming and going nodes are made, grow, shrink and go.
const RESTLESS: [&[u8]; 6] = [
    &[1, 2],
    &[1, 2, 5],
    &[1, 2, 6],
    &[2, 1],
    &[2, 2, 2, 1, 1],
    &[],
];

fn tree() -> Arc<Tree> {
    let tree = Tree::new();
    for key in STABLE {
        tree.insert(key, 0);
    }
    Arc::new(tree)
}

fn join_all(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Inserts and removes every second neighbour.
fn disturb(tree: &Arc<Tree>, first: usize) -> thread::JoinHandle<()> {
    let tree = Arc::clone(tree);
    thread::spawn(move || {
        for key in RESTLESS.iter().skip(first).step_by(2) {
            assert_eq!(tree.insert(key, 1), None);
        }
        for key in RESTLESS.iter().skip(first).step_by(2) {
            // A range that goes may have taken it along.
            assert!(matches!(tree.remove(key), None | Some(1)));
        }
    })
}

#[test]
fn art_snapshots_are_of_one_moment_whatever_nodes_become() {
    let name = "art_snapshots_are_of_one_moment_whatever_nodes_become";
    check(name, 20_000, || {
        let tree = tree();
        let writer = Arc::clone(&tree);
        let mut threads = vec![
            disturb(&tree, 0),
            disturb(&tree, 1),
            thread::spawn(move || {
                for generation in 1..4 {
                    writer.insert(STABLE[0], generation);
                    writer.insert(STABLE[5], generation);
                }
            }),
        ];
        for _ in 0..2 {
            let tree = Arc::clone(&tree);
            threads.push(thread::spawn(move || {
                let entries = tree.snapshot(KeyRange::all()).unwrap();
                assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "{entries:?}");
                let values = STABLE.map(|key| {
                    let entry = entries.iter().find(|(other, _)| *other == key);
                    entry.unwrap_or_else(|| panic!("{key:?}: {entries:?}")).1
                });
                let [first, .., last] = values;
                assert!(first == last || first == last + 1, "{entries:?}");
                assert_eq!(tree.get(&STABLE[3]), Some(0));
            }));
        }
        join_all(threads);
        assert_eq!(tree.len(), STABLE.len());
    });
}

#[test]
fn art_ranges_go_whole_whatever_nodes_become() {
    check("art_ranges_go_whole_whatever_nodes_become", 20_000, || {
        let tree = tree();
        let remover = Arc::clone(&tree);
        let mut threads = vec![
            disturb(&tree, 0),
            thread::spawn(move || {
                let range = KeyRange::new(Bound::Included(&STABLE[1]), Bound::Excluded(&STABLE[4]));
                assert!(remover.remove_range(range) >= 3);
            }),
        ];
        for (one, other) in [(1, 3), (3, 2)] {
            let tree = Arc::clone(&tree);
            threads.push(thread::spawn(move || {
                let first = tree.get(&STABLE[one]);
                let second = tree.get(&STABLE[other]);
                assert!(first.is_some() || second.is_none());
            }));
        }
        join_all(threads);
        for key in &STABLE[1..4] {
            assert_eq!(tree.get(key), None);
        }
    });
}
