//! The stress test whose entries validate themselves. `stress.rs` explains the oracle.

use super::suite::{Random, join_all, scaled};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use tremula_index::{Direction, KeyRange, OrderedIndex, Update};

const WRITERS: u32 = 2;
const SCANNERS: u32 = 2;

/// One key in this many is stable, beginning with 0.
const STABLE: u64 = 4;

/// The keys used lie below this multiple of [`STABLE`].
const KEYS: u64 = if cfg!(tremula_tsan) { 1_000 } else { 8_000 };

/// A value that can be validated alone.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    key: u64,
    generation: u64,
    hash: u64,
}

impl Entry {
    fn new(key: u64, generation: u64) -> Self {
        let hash = Self::hash(key, generation);
        Self {
            key,
            generation,
            hash,
        }
    }

    fn hash(key: u64, generation: u64) -> u64 {
        (key ^ generation.rotate_left(32))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23)
            ^ generation
    }

    /// Panics if this entry was not stored under `key`.
    fn validate(&self, key: u64) {
        assert_eq!(self.key, key, "stored under another key: {self:?}");
        let hash = Self::hash(self.key, self.generation);
        assert_eq!(self.hash, hash, "torn: {self:?}");
    }
}

/// Runs the test on an empty index.
pub(crate) fn run(index: &dyn OrderedIndex<u64, Entry>) {
    // Initializes the epoch's static state before there are threads: std's `Once` makes it, which
    // ThreadSanitizer does not see.
    drop(tremula_sync::epoch::pin());
    for key in (0..KEYS).step_by(STABLE as usize) {
        index.insert(key, Entry::new(key, 0));
    }
    let writing = AtomicUsize::new(WRITERS as usize);
    let writing = &writing;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..WRITERS {
            threads.push(scope.spawn(move || {
                let _done = Done(writing);
                write(index, Random::new(number));
            }));
        }
        threads.push(scope.spawn(move || look_up(index, writing, Random::new(100))));
        for number in 0..SCANNERS {
            threads.push(scope.spawn(move || scan(index, writing, Random::new(200 + number))));
        }
        join_all(threads);
    });
    // The entries that remain are those that a scan of the quiescent index shows.
    let mut witness = Witness::default();
    let range = (Bound::Unbounded, Bound::Unbounded);
    witness.scan(
        index,
        range,
        Direction::Ascending,
        usize::MAX,
        How::Snapshot,
    );
    let mut entries = 0;
    index.range(KeyRange::all(), Direction::Ascending, &mut |_, _| {
        entries += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(index.len(), entries);
}

/// Counts a writer as ended, also after a panic.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn write(index: &dyn OrderedIndex<u64, Entry>, mut random: Random) {
    let mut hot = 0;
    for turn in 0..u64::from(scaled(150_000)) {
        if turn % 1_000 == 0 {
            hot = random.below(KEYS as u32 - 64).into();
        }
        // Half of the writes go to few keys, so that threads contend for their nodes.
        let key = match random.below(2) {
            0 => hot + u64::from(random.below(64)),
            _ => random.below(KEYS as u32).into(),
        };
        if key.is_multiple_of(STABLE) {
            index.update(key, &mut |old| {
                let old = old.unwrap_or_else(|| panic!("stable key {key} is lost"));
                old.validate(key);
                Update::Put(Entry::new(key, old.generation + 1))
            });
            continue;
        }
        let entry = Entry::new(key, turn);
        let old = match random.below(16) {
            0..=5 => index.insert(key, entry),
            6 => index.insert_if_absent(key, entry).err(),
            7..=13 => index.remove(&key),
            14 => index.update(key, &mut |old| match old {
                Some(_) => Update::Remove,
                None => Update::Put(entry.clone()),
            }),
            _ => {
                // Everything between two stable keys.
                let below = key - key % STABLE;
                let above = below + STABLE;
                index.remove_range(KeyRange::new(
                    Bound::Excluded(&below),
                    Bound::Excluded(&above),
                ));
                None
            }
        };
        if let Some(old) = old {
            old.validate(key);
        }
    }
}

fn look_up(index: &dyn OrderedIndex<u64, Entry>, writing: &AtomicUsize, mut random: Random) {
    let mut witness = Witness::default();
    let last_stable = KEYS - STABLE;
    loop {
        for _ in 0..200 {
            let key = u64::from(random.below(KEYS as u32));
            match random.below(8) {
                0 => {
                    let (first, entry) = index.first().expect("stable keys are there");
                    assert_eq!(first, 0);
                    witness.see(first, &entry);
                }
                1 => {
                    let (last, entry) = index.last().expect("stable keys are there");
                    assert!(last >= last_stable);
                    witness.see(last, &entry);
                }
                2 => {
                    let stable = key - key % STABLE + STABLE;
                    match index.next(&key) {
                        Some((next, entry)) => {
                            assert!(key < next && next <= stable, "next({key}) = {next}");
                            witness.see(next, &entry);
                        }
                        None => assert!(key >= last_stable, "next({key}) = None"),
                    }
                }
                3 if key > 0 => {
                    let stable = (key - 1) - (key - 1) % STABLE;
                    let (previous, entry) = index.prev(&key).expect("stable keys are there");
                    assert!(
                        stable <= previous && previous < key,
                        "prev({key}) = {previous}"
                    );
                    witness.see(previous, &entry);
                }
                _ => match index.get(&key) {
                    Some(entry) => witness.see(key, &entry),
                    None => assert!(!key.is_multiple_of(STABLE), "stable key {key} is lost"),
                },
            }
        }
        if writing.load(SeqCst) == 0 {
            return;
        }
    }
}

fn scan(index: &dyn OrderedIndex<u64, Entry>, writing: &AtomicUsize, mut random: Random) {
    let mut witness = Witness::default();
    loop {
        let mut bound = |from: u32, to: u32| {
            let key = u64::from(from + random.below(to - from));
            match random.below(5) {
                0 => Bound::Unbounded,
                1 | 2 => Bound::Included(key),
                _ => Bound::Excluded(key),
            }
        };
        let middle = KEYS as u32 / 2;
        let range = (bound(0, middle), bound(middle, KEYS as u32));
        let direction = match random.below(2) {
            0 => Direction::Ascending,
            _ => Direction::Descending,
        };
        let limit = match random.below(3) {
            0 => usize::MAX,
            _ => 1 + random.below(300) as usize,
        };
        let how = match random.below(4) {
            0 => How::Snapshot,
            1 | 2 => How::Scan,
            _ => How::Range,
        };
        witness.scan(index, range, direction, limit, how);
        if writing.load(SeqCst) == 0 {
            return;
        }
    }
}

/// The ways to see a range.
#[derive(Clone, Copy, Debug)]
enum How {
    Scan,
    Snapshot,
    Range,
}

/// What one thread has seen of the stable keys.
struct Witness {
    /// The last generation seen of each.
    generations: Vec<u64>,
}

impl Default for Witness {
    fn default() -> Self {
        Self {
            generations: vec![0; (KEYS / STABLE) as usize],
        }
    }
}

impl Witness {
    /// Checks one entry.
    fn see(&mut self, key: u64, entry: &Entry) {
        entry.validate(key);
        if key.is_multiple_of(STABLE) {
            let last = &mut self.generations[(key / STABLE) as usize];
            assert!(
                *last <= entry.generation,
                "key {key} went back from generation {last} to {}",
                entry.generation
            );
            *last = entry.generation;
        }
    }

    /// Scans a range and checks the entries.
    fn scan(
        &mut self,
        index: &dyn OrderedIndex<u64, Entry>,
        (low, high): (Bound<u64>, Bound<u64>),
        mut direction: Direction,
        mut limit: usize,
        how: How,
    ) {
        let range = KeyRange::new(low.as_ref(), high.as_ref());
        let mut entries = Vec::new();
        match how {
            How::Scan => index.scan(range, direction, limit, &mut entries),
            How::Range => index.range(range, direction, &mut |key, entry| {
                entries.push((*key, entry.clone()));
                if entries.len() == limit {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            }),
            How::Snapshot => {
                let Some(snapshot) = index.snapshot(range) else {
                    return;
                };
                (direction, limit) = (Direction::Ascending, usize::MAX);
                entries = snapshot;
            }
        }
        assert!(entries.len() <= limit);
        for (key, entry) in &entries {
            self.see(*key, entry);
        }
        let was_limited = entries.len() == limit;
        let mut keys: Vec<u64> = entries.into_iter().map(|(key, _)| key).collect();
        if direction == Direction::Descending {
            keys.reverse();
        }
        let case = format!("{how:?} of {low:?}..{high:?} {direction:?}, limit {limit}");
        assert!(
            keys.windows(2).all(|pair| pair[0] < pair[1]),
            "out of order or twice: {case}"
        );

        // The stable keys of the range, as far as the limit lets the scan go.
        let mut from = match low {
            Bound::Included(key) => key,
            Bound::Excluded(key) => key + 1,
            Bound::Unbounded => 0,
        };
        let mut to = match high {
            Bound::Included(key) => key + 1,
            Bound::Excluded(key) => key,
            Bound::Unbounded => KEYS,
        };
        assert!(
            keys.iter().all(|key| (from..to).contains(key)),
            "out of bounds: {case}"
        );
        if let (true, Some(first), Some(last)) = (was_limited, keys.first(), keys.last()) {
            match direction {
                Direction::Ascending => to = last + 1,
                Direction::Descending => from = *first,
            }
        }
        let mut seen = keys.into_iter().filter(|key| key.is_multiple_of(STABLE));
        for stable in (from.next_multiple_of(STABLE)..to).step_by(STABLE as usize) {
            assert_eq!(seen.next(), Some(stable), "stable key missed: {case}");
        }
    }
}
