//! Programs for the engines of byte keys. As these keys come and go, nodes and layers are made,
//! grow, shrink and are removed; the keys of the suite are numbers, which all fit into one node.

use std::fmt::Debug;
use std::ops::Bound;
use tremula_index::{Direction, KeyRange, OrderedIndex};
use tremula_sync::model::check;
use tremula_sync::{Arc, thread};

/// Schedules of each program.
const SCHEDULES: usize = 20_000;

/// The keys of a program.
pub(super) struct Keys<K: 'static> {
    /// The keys that are present at first.
    pub(super) stable: [K; 6],
    /// Their neighbours, which come and go.
    pub(super) restless: [K; 6],
    /// The places of the stable keys that are written, one before the other.
    pub(super) written: [usize; 2],
}

impl<K: Copy + Ord + Debug + Send + Sync> Keys<K> {
    fn fill<I: OrderedIndex<K, u32>>(&self, tree: I) -> Arc<I> {
        for key in self.stable {
            tree.insert(key, 0);
        }
        Arc::new(tree)
    }

    /// Inserts and removes every second neighbour.
    fn disturb<I: OrderedIndex<K, u32> + 'static>(
        &'static self,
        tree: &Arc<I>,
        first: usize,
    ) -> thread::JoinHandle<()> {
        let tree = Arc::clone(tree);
        thread::spawn(move || {
            let chosen = || self.restless.iter().skip(first).step_by(2);
            for key in chosen() {
                assert_eq!(tree.insert(*key, 1), None);
            }
            for key in chosen() {
                // A removal of a range may have removed it too.
                assert!(matches!(tree.remove(key), None | Some(1)));
            }
        })
    }

    pub(super) fn snapshots_are_of_one_moment<I: OrderedIndex<K, u32> + 'static>(
        &'static self,
        name: &str,
        make: fn() -> I,
    ) {
        let written = self.written.map(|place| self.stable[place]);
        check(name, SCHEDULES, move || {
            let tree = self.fill(make());
            let writer = Arc::clone(&tree);
            let mut threads = vec![
                self.disturb(&tree, 0),
                self.disturb(&tree, 1),
                thread::spawn(move || {
                    for generation in 1..4 {
                        for key in written {
                            writer.insert(key, generation);
                        }
                    }
                }),
            ];
            for direction in [Direction::Ascending, Direction::Descending] {
                let tree = Arc::clone(&tree);
                threads.push(thread::spawn(move || {
                    let mut entries = Vec::new();
                    tree.scan(KeyRange::all(), direction, usize::MAX, &mut entries);
                    if direction == Direction::Descending {
                        entries.reverse();
                    }
                    assert!(entries.is_sorted_by(|a, b| a.0 < b.0), "{entries:?}");
                    let value = |key: &K| {
                        let entry = entries.iter().find(|(other, _)| other == key);
                        entry.unwrap_or_else(|| panic!("{key:?}: {entries:?}")).1
                    };
                    self.stable.iter().for_each(|key| _ = value(key));
                    let [first, last] = [value(&written[0]), value(&written[1])];
                    assert!(first == last || first == last + 1, "{entries:?}");
                    assert_eq!(tree.get(&self.stable[3]), Some(0));
                }));
            }
            join_all(threads);
            assert_eq!(tree.len(), self.stable.len());
        });
    }

    pub(super) fn ranges_go_whole<I: OrderedIndex<K, u32> + 'static>(
        &'static self,
        name: &str,
        make: fn() -> I,
    ) {
        check(name, SCHEDULES, move || {
            let tree = self.fill(make());
            let remover = Arc::clone(&tree);
            let mut threads = vec![
                self.disturb(&tree, 0),
                thread::spawn(move || {
                    let (low, high) = (&self.stable[1], &self.stable[4]);
                    let range = KeyRange::new(Bound::Included(low), Bound::Excluded(high));
                    assert!(remover.remove_range(range) >= 3);
                }),
            ];
            for (one, other) in [(1, 3), (3, 2)] {
                let tree = Arc::clone(&tree);
                threads.push(thread::spawn(move || {
                    let first = tree.get(&self.stable[one]);
                    let second = tree.get(&self.stable[other]);
                    assert!(first.is_some() || second.is_none());
                }));
            }
            join_all(threads);
            for key in &self.stable[1..4] {
                assert_eq!(tree.get(key), None);
            }
        });
    }
}

fn join_all(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}
