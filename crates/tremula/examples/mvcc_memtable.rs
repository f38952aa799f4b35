//! A memtable with snapshots: the part of a storage engine that is in memory.
//!
//! The map's key is the user's key and, in descending order, the sequence number of the write. So
//! the versions of a user's key lie side by side, the newest first, and what a reader at sequence
//! 7 sees of a key is the first entry at or above `(key, Reverse(7))`: one step, however many
//! versions there are.
//!
//! What no snapshot can read any more goes by `remove_range`, which is one step too: when a
//! tombstone goes, the versions that it hides go with it, and no reader finds one of them.
//!
//! `cargo run -p tremula --example mvcc_memtable`

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tremula::OrderedMap;

type UserKey = Arc<str>;

struct Memtable<V> {
    /// `None` is a tombstone: this write removed the key. The first write has the number 1.
    versions: OrderedMap<(UserKey, Reverse<u64>), Option<V>>,
    /// The number of the last write that has begun.
    begun: AtomicU64,
    /// The number of the last write that readers see. All writes before it are in the map.
    visible: AtomicU64,
    /// The sequence numbers that snapshots read at, each with the number of its snapshots.
    open: Mutex<BTreeMap<u64, usize>>,
}

impl<V: Clone + Send + Sync + 'static> Memtable<V> {
    fn new() -> Self {
        Self {
            versions: OrderedMap::new(),
            begun: AtomicU64::new(0),
            visible: AtomicU64::new(0),
            open: Mutex::default(),
        }
    }

    /// Puts values (`Some`) and removes keys (`None`). A snapshot sees all of a batch or nothing.
    fn write(&self, batch: impl IntoIterator<Item = (UserKey, Option<V>)>) {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        for (key, value) in batch {
            self.versions.insert((key, Reverse(number)), value);
        }
        // Threads insert at the same time, but become visible in the order of their numbers.
        // Release: a reader that acquires this number finds all entries up to it.
        let publish = || {
            let (before, failed) = (number - 1, Ordering::Relaxed);
            self.visible
                .compare_exchange_weak(before, number, Ordering::Release, failed)
        };
        while publish().is_err() {
            thread::yield_now();
        }
    }

    /// A view of the present state, which stays as it is until it is dropped.
    fn snapshot(&self) -> Snapshot<'_, V> {
        let mut open = self.open.lock().unwrap();
        let sequence = self.visible.load(Ordering::Acquire);
        *open.entry(sequence).or_default() += 1;
        Snapshot {
            table: self,
            sequence,
        }
    }

    /// Removes the versions that no present or future snapshot reads, and returns their number.
    fn collect_garbage(&self) -> usize {
        let horizon = {
            let open = self.open.lock().unwrap();
            let oldest = open.keys().next().copied();
            oldest.unwrap_or_else(|| self.visible.load(Ordering::Acquire))
        };
        let mut removed = 0;
        let mut entry = self.versions.first();
        while let Some(((key, _), _)) = entry {
            let at_horizon = self
                .versions
                .at_or_above(&(key.clone(), Reverse(horizon)))
                .filter(|((found, _), _)| *found == key);
            if let Some(((_, Reverse(number)), value)) = at_horizon {
                // A reader at the horizon sees this version. If it is a tombstone, the reader sees
                // as much without it.
                let newest = if value.is_some() { number - 1 } else { number };
                let hidden = (key.clone(), Reverse(newest))..=(key.clone(), Reverse(0));
                removed += self.versions.remove_range(hidden);
            }
            entry = self.versions.next(&(key, Reverse(0)));
        }
        removed
    }
}

struct Snapshot<'a, V> {
    table: &'a Memtable<V>,
    sequence: u64,
}

impl<V: Clone + Send + Sync + 'static> Snapshot<'_, V> {
    fn get(&self, key: &UserKey) -> Option<V> {
        let newest = (key.clone(), Reverse(self.sequence));
        let ((found, _), value) = self.table.versions.at_or_above(&newest)?;
        if found == *key { value } else { None }
    }

    /// All keys and values in order, as they would be written to a file. Writers go on meanwhile:
    /// what they add is newer than this snapshot, and skipped.
    fn flush(&self) -> Vec<(UserKey, V)> {
        let mut run = Vec::new();
        let mut last: Option<UserKey> = None;
        for ((key, Reverse(number)), value) in &self.table.versions {
            if number <= self.sequence && last.as_ref() != Some(&key) {
                last = Some(key.clone());
                run.extend(value.map(|value| (key, value)));
            }
        }
        run
    }
}

impl<V> Drop for Snapshot<'_, V> {
    fn drop(&mut self) {
        let mut open = self.table.open.lock().unwrap();
        if let Some(snapshots) = open.get_mut(&self.sequence) {
            *snapshots -= 1;
            if *snapshots == 0 {
                open.remove(&self.sequence);
            }
        }
    }
}

fn main() {
    let table = Memtable::new();
    let [apple, pear] = ["apple", "pear"].map(UserKey::from);
    table.write([(apple.clone(), Some(1))]);
    let before = table.snapshot();
    table.write([(apple.clone(), Some(2)), (pear.clone(), Some(7))]);
    table.write([(apple.clone(), None)]);

    assert_eq!((before.get(&apple), before.get(&pear)), (Some(1), None));
    assert_eq!(before.flush(), [(apple.clone(), 1)]);
    assert_eq!(table.snapshot().get(&apple), None);
    assert_eq!(table.snapshot().flush(), [(pear, 7)]);

    assert_eq!(table.collect_garbage(), 0, "`before` reads what is old");
    drop(before);
    assert_eq!(table.collect_garbage(), 3, "two values and a tombstone");
    transfers();
}

/// Threads move money between two accounts each, while snapshots add the accounts up.
fn transfers() {
    const TOTAL: u64 = 500;
    let table = Memtable::new();
    let done = AtomicBool::new(false);
    let accounts = ["ann", "ben", "cho", "dan"]
        .map(|name| ["cash", "savings"].map(|kind| UserKey::from(format!("{name}/{kind}"))));
    thread::scope(|scope| {
        let (table, done) = (&table, &done);
        let writers = accounts.clone().map(|[cash, savings]| {
            scope.spawn(move || {
                for saved in 0..=TOTAL {
                    let cash = (cash.clone(), Some(TOTAL - saved));
                    table.write([cash, (savings.clone(), Some(saved))]);
                }
            })
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let snapshot = table.snapshot();
                for [cash, savings] in &accounts {
                    let both = (snapshot.get(cash), snapshot.get(savings));
                    let sum = both.0.zip(both.1).map(|(cash, savings)| cash + savings);
                    assert!(both == (None, None) || sum == Some(TOTAL), "{both:?}");
                }
                let flushed: u64 = snapshot.flush().into_iter().map(|(_, sum)| sum).sum();
                assert_eq!(flushed % TOTAL, 0);
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                table.collect_garbage();
            }
        });
        let results = writers.map(|thread| thread.join());
        done.store(true, Ordering::Relaxed);
        results.into_iter().for_each(Result::unwrap);
    });
    table.collect_garbage();
    assert_eq!(table.versions.len(), 8, "one version of each account");
    println!("at the end: {:?}", table.snapshot().flush());
}

#[test]
fn the_example_holds() {
    main();
}
