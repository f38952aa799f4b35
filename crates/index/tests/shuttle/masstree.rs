//! Masstree with layers that come and go; the suite's keys are numbers, which need none.

use std::ops::Bound;
use tremula_index::{KeyRange, Masstree, OrderedIndex};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

type Tree = Masstree<&'static str, u32>;

/// Some alone under their slices, some with others in layers.
const STABLE: [&str; 6] = [
    "aspen",
    "populus alba",
    "populus tremula",
    "populus tremula x",
    "populus tremuloides",
    "willow",
];
/// Their neighbours, at whose coming and going layers are made, split, merge and go.
const RESTLESS: [&str; 6] = [
    "aspen grove",
    "aspen group",
    "populus balsamifera",
    "populus tremula alba",
    "populus",
    "willow herb",
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
fn masstree_snapshots_are_of_one_moment_whatever_layers_become() {
    let name = "masstree_snapshots_are_of_one_moment_whatever_layers_become";
    check(name, 20_000, || {
        let tree = tree();
        let writer = Arc::clone(&tree);
        let mut threads = vec![
            disturb(&tree, 0),
            disturb(&tree, 1),
            thread::spawn(move || {
                for generation in 1..4 {
                    writer.insert(STABLE[1], generation);
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
                let (first, last) = (values[1], values[5]);
                assert!(first == last || first == last + 1, "{entries:?}");
                assert_eq!(tree.get(&STABLE[3]), Some(0));
            }));
        }
        join_all(threads);
        assert_eq!(tree.len(), STABLE.len());
    });
}

#[test]
fn masstree_ranges_go_whole_whatever_layers_become() {
    let name = "masstree_ranges_go_whole_whatever_layers_become";
    check(name, 20_000, || {
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
