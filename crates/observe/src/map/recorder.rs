//! What a walk over the leaves adds to the picture of a map.
//!
//! A leaf counts since it was made. So the counts of a second are the difference to the walk
//! before, where a leaf is known by its lowest key. A leaf that is new there was split off, and one
//! that is missing was joined; so a walk sees what the structure did without its saying so. The
//! first walk has nothing to compare with, and shows levels alone.

use super::bounds::{Bounds, choose};
use super::column::{
    ACQUISITIONS, BYTES, Column, ENTRIES, Figures, Mark, MarkKind, READS, WAITS, WRITES, add_mark,
};
use super::{COARSE_COLUMNS, COARSE_SECONDS, FINE_COLUMNS, SERIES_BYTES, Series};
use crate::observed::Sampled;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Columns that new bounds last, at least. Each change of bounds in a row doubles it.
const LEAST_AGE: u32 = 1;
const MOST_AGE: u32 = 32;

/// A bucket that is this many times as heavy as the average is too heavy.
const TOO_HEAVY: f64 = 4.0;

/// Up to this number of leaves, each has a bucket of its own.
const FEW: usize = 32;

/// What a wait for the lock of a leaf weighs, in acquisitions, where leaves are compared by how hot
/// they are.
pub const WEIGHT_OF_WAIT: u32 = 16;

/// Buckets whose entries are looked at in one second, for their bytes.
const LOOKS: usize = 16;

/// A leaf of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedLeaf {
    /// Empty in the first leaf.
    pub(crate) low: Box<[u8]>,
    pub(crate) entries: Option<u64>,
    pub(crate) waits: u32,
    pub(crate) acquisitions: u32,
    pub(crate) format: &'static str,
}

/// A leaf as the last walk saw it.
struct Seen {
    waits: u32,
    acquisitions: u32,
    entries: u64,
    format: &'static str,
    bucket: usize,
    walk: u64,
}

/// The picture of one map.
pub(crate) struct Recorder {
    seen: HashMap<u64, Seen>,
    hasher: RandomState,
    walks: u64,
    bounds: Arc<Bounds>,
    /// Columns since the bounds changed, and how many they last at least.
    age: u32,
    least_age: u32,
    /// The bytes of an entry in each bucket, as last looked at.
    sizes: Vec<u64>,
    next_look: usize,
    pub(crate) fine: Series,
    pub(crate) coarse: Series,
    /// The sum of the columns that are not in `coarse` yet.
    sum: Option<Column>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            seen: HashMap::new(),
            hasher: RandomState::new(),
            walks: 0,
            bounds: Arc::new(Bounds::at([], |_| String::new())),
            age: 0,
            least_age: LEAST_AGE,
            sizes: vec![0],
            next_look: 0,
            fine: Series::new(FINE_COLUMNS, SERIES_BYTES),
            coarse: Series::new(COARSE_COLUMNS, SERIES_BYTES),
            sum: None,
        }
    }

    /// The newest column.
    #[cfg(test)]
    pub(crate) fn last(&self) -> Option<Column> {
        let mut last = None;
        self.fine
            .visit((0, u64::MAX), None, |column| last = Some(column.clone()));
        last
    }

    /// Changes how many bytes each series may hold.
    pub(crate) fn limit(&mut self, most_bytes: usize) {
        self.fine.limit(most_bytes);
        self.coarse.limit(most_bytes);
    }

    /// The bytes that it holds.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.fine.held() + self.coarse.held() + self.seen.capacity() * size_of::<(u64, Seen)>()
    }

    /// Adds a walk, and the keys that were sampled since the last one. `bytes_at` looks how large
    /// an entry at a key is, and `text` shows a key to people.
    pub(crate) fn take(
        &mut self,
        (seq, at, width_ms): (u64, u64, u64),
        leaves: &[OwnedLeaf],
        samples: &[Sampled],
        bytes_at: &dyn Fn(&[u8]) -> Option<u64>,
        text: &dyn Fn(&[u8]) -> String,
    ) {
        self.walks += 1;
        let weights = self.weights(leaves);
        self.fit_bounds(leaves, &weights, text);
        let mut column = Column {
            seq,
            at,
            width_ms,
            bounds: Arc::clone(&self.bounds),
            figures: vec![Figures::default(); self.bounds.len()],
            marks: Vec::new(),
        };
        self.count(leaves, &mut column);
        for sampled in samples {
            let figures = &mut column.figures[self.bounds.bucket_of(&sampled.key)];
            let layer = if sampled.is_write { WRITES } else { READS };
            figures[layer] = figures[layer].saturating_add(sampled.stands_for);
        }
        self.look_at_sizes(bytes_at);
        for (figures, size) in column.figures.iter_mut().zip(&self.sizes) {
            figures[BYTES] = figures[ENTRIES].saturating_mul(*size);
        }
        self.push(&column);
    }

    /// Adds a column to both series.
    fn push(&mut self, column: &Column) {
        self.fine.push(column);
        let sum = match self.sum.take() {
            None => column.clone(),
            Some(mut sum) => {
                sum.absorb(column);
                sum
            }
        };
        if sum.width_ms >= 1000 * COARSE_SECONDS {
            self.coarse.push(&sum);
        } else {
            self.sum = Some(sum);
        }
    }

    /// How a leaf is known from walk to walk.
    fn name(&self, low: &[u8]) -> u64 {
        self.hasher.hash_one(low)
    }

    /// What a leaf has counted since the last walk: acquisitions and waits.
    fn counted(&self, leaf: &OwnedLeaf) -> (u32, u32) {
        match self.seen.get(&self.name(&leaf.low)) {
            // It was made after the last walk, if there was one.
            None if self.walks > 1 => (leaf.acquisitions, leaf.waits),
            None => (0, 0),
            Some(seen) => (
                since(leaf.acquisitions, seen.acquisitions),
                since(leaf.waits, seen.waits),
            ),
        }
    }

    /// The weights of leaves: half for entries, half for what happens there.
    fn weights(&self, leaves: &[OwnedLeaf]) -> Vec<f64> {
        let activity = |leaf: &OwnedLeaf| {
            let (acquisitions, waits) = self.counted(leaf);
            f64::from(acquisitions) + f64::from(WEIGHT_OF_WAIT) * f64::from(waits)
        };
        let entries = |leaf: &OwnedLeaf| leaf.entries.unwrap_or(0) as f64 + 1.0;
        let all_entries: f64 = leaves.iter().map(entries).sum();
        let all_activity: f64 = leaves.iter().map(activity).sum::<f64>() + 1.0;
        let weight = |leaf| entries(leaf) / all_entries + activity(leaf) / all_activity;
        leaves.iter().map(weight).collect()
    }

    /// Chooses bounds anew, if the buckets no longer have about the same weight.
    fn fit_bounds(
        &mut self,
        leaves: &[OwnedLeaf],
        weights: &[f64],
        text: &dyn Fn(&[u8]) -> String,
    ) {
        self.age += 1;
        if self.age < self.least_age {
            return;
        }
        if !self.is_uneven(leaves, weights) {
            // They fit for once: the next change may come soon.
            self.least_age = (self.least_age / 2).max(LEAST_AGE);
            self.age = 0;
            return;
        }
        let weighed = leaves.iter().zip(weights);
        let weighed: Vec<_> = weighed
            .map(|(leaf, weight)| (&*leaf.low, *weight))
            .collect();
        let bounds = Bounds::at(choose(&weighed), text);
        if bounds.raw == self.bounds.raw {
            return;
        }
        self.sizes = bounds
            .raw
            .iter()
            .map(|low| self.sizes[self.bounds.bucket_of(low)])
            .collect();
        self.bounds = Arc::new(bounds);
        self.next_look = 0;
        for leaf in leaves {
            let name = self.name(&leaf.low);
            if let Some(seen) = self.seen.get_mut(&name) {
                seen.bucket = self.bounds.bucket_of(&leaf.low);
            }
        }
        // Of a leaf that is gone the key is not known any more.
        let buckets = self.bounds.len();
        self.seen
            .values_mut()
            .for_each(|seen| seen.bucket = seen.bucket.min(buckets - 1));
        self.age = 0;
        self.least_age = (2 * self.least_age).min(MOST_AGE);
    }

    fn is_uneven(&self, leaves: &[OwnedLeaf], weights: &[f64]) -> bool {
        let buckets = self.bounds.len();
        let mut of = vec![(0_usize, 0.0); buckets];
        for (leaf, weight) in leaves.iter().zip(weights) {
            let (count, sum) = &mut of[self.bounds.bucket_of(&leaf.low)];
            *count += 1;
            *sum += weight;
        }
        let few = leaves.len().min(super::MOST_BUCKETS);
        let most = TOO_HEAVY * of.iter().map(|(_, sum)| sum).sum::<f64>() / few.max(1) as f64;
        // More buckets would be possible, or half of them are empty.
        let is_coarse = 2 * buckets < few || (few <= FEW && buckets < few);
        let empty = of.iter().filter(|(count, _)| *count == 0).count();
        let too_heavy = of.iter().any(|(count, sum)| *count > 1 && *sum > most);
        is_coarse || 2 * empty > buckets || too_heavy
    }

    /// Adds what the leaves have counted, and what has become of them.
    fn count(&mut self, leaves: &[OwnedLeaf], column: &mut Column) {
        let is_first = self.walks == 1;
        let mut mark = |bucket, kind| add_mark(&mut column.marks, Mark { bucket, kind, n: 1 });
        for leaf in leaves {
            let bucket = self.bounds.bucket_of(&leaf.low);
            let (acquisitions, waits) = self.counted(leaf);
            let name = self.name(&leaf.low);
            let before = self.seen.get(&name);
            let known = before.map_or(0, |seen| seen.entries);
            match before {
                None if !is_first => mark(bucket, MarkKind::Split),
                Some(seen) if differ(seen.format, leaf.format) => mark(bucket, MarkKind::Format),
                _ => (),
            }
            let entries = leaf.entries.unwrap_or(known);
            let figures = &mut column.figures[bucket];
            figures[ENTRIES] += entries;
            figures[ACQUISITIONS] += u64::from(acquisitions);
            figures[WAITS] += u64::from(waits);
            let format = match (leaf.format, before) {
                ("", Some(seen)) => seen.format,
                (format, _) => format,
            };
            let seen = Seen {
                waits: leaf.waits,
                acquisitions: leaf.acquisitions,
                entries,
                format,
                bucket,
                walk: self.walks,
            };
            self.seen.insert(name, seen);
        }
        let walks = self.walks;
        self.seen.retain(|_, seen| {
            let is_there = seen.walk == walks;
            if !is_there {
                mark(seen.bucket, MarkKind::Join);
            }
            is_there
        });
    }

    /// Looks at an entry of some buckets, so that all have been looked at in a quarter of a minute.
    fn look_at_sizes(&mut self, bytes_at: &dyn Fn(&[u8]) -> Option<u64>) {
        let buckets = self.bounds.len();
        for _ in 0..LOOKS.min(buckets) {
            let bucket = self.next_look % buckets;
            self.next_look = bucket + 1;
            if let Some(size) = bytes_at(&self.bounds.raw[bucket]) {
                self.sizes[bucket] = size;
            }
        }
        // What has not been looked at is like its neighbours.
        let mut near = self
            .sizes
            .iter()
            .copied()
            .find(|size| *size > 0)
            .unwrap_or(0);
        for size in &mut self.sizes {
            if *size == 0 {
                *size = near;
            }
            near = *size;
        }
    }
}

/// Whether two formats are known and not the same.
fn differ(before: &str, now: &str) -> bool {
    !before.is_empty() && !now.is_empty() && before != now
}

/// How far a count that turns over has come. One that has fallen began anew with its leaf.
fn since(now: u32, before: u32) -> u32 {
    let passed = now.wrapping_sub(before);
    // A leaf counts far less than this between two walks.
    if passed < 1 << 31 { passed } else { now }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::hex;
    use proptest::prelude::*;

    fn leaf(low: u16, acquisitions: u32, waits: u32) -> OwnedLeaf {
        let low = if low == 0 {
            Box::default()
        } else {
            Box::from(low.to_be_bytes())
        };
        OwnedLeaf {
            low,
            entries: Some(10),
            waits,
            acquisitions,
            format: "packed",
        }
    }

    fn take(recorder: &mut Recorder, seq: u64, leaves: &[OwnedLeaf]) -> Column {
        recorder.take((seq, 1000 * seq, 1000), leaves, &[], &|_| Some(64), &hex);
        recorder.last().expect("a column")
    }

    fn total(column: &Column, layer: usize) -> u64 {
        column.figures.iter().map(|figures| figures[layer]).sum()
    }

    fn marks(column: &Column, kind: MarkKind) -> u64 {
        let of_kind = column.marks.iter().filter(|mark| mark.kind == kind);
        of_kind.map(|mark| mark.n).sum()
    }

    #[test]
    fn counts_are_those_of_the_second_and_changes_are_marked() {
        let mut recorder = Recorder::new();
        let first = take(&mut recorder, 1, &[leaf(0, 1000, 50), leaf(5, 7, 0)]);
        assert_eq!((total(&first, ACQUISITIONS), total(&first, WAITS)), (0, 0));
        assert_eq!((total(&first, ENTRIES), total(&first, BYTES)), (20, 1280));
        assert_eq!(first.marks, []);
        // The first has turned over, the second was split, and the new one counts from nothing.
        let leaves = [leaf(0, 1100, 51), leaf(5, 9, 0), leaf(7, 3, 2)];
        let second = take(&mut recorder, 2, &leaves);
        assert_eq!(
            (total(&second, ACQUISITIONS), total(&second, WAITS)),
            (105, 3)
        );
        let of = |kind| marks(&second, kind);
        assert_eq!((of(MarkKind::Split), of(MarkKind::Join)), (1, 0));
        // Joined, and made anew: it counts from nothing.
        let third = take(&mut recorder, 3, &[leaf(0, 1100, 51), leaf(5, 4, 1)]);
        assert_eq!((total(&third, ACQUISITIONS), total(&third, WAITS)), (4, 1));
        assert_eq!(
            (
                marks(&third, MarkKind::Split),
                marks(&third, MarkKind::Join)
            ),
            (0, 1)
        );
        let mut dense = [leaf(0, 1100, 51), leaf(5, 4, 1)];
        dense[1].format = "dense";
        dense[0].entries = None;
        let fourth = take(&mut recorder, 4, &dense);
        assert_eq!(marks(&fourth, MarkKind::Format), 1);
        assert_eq!(
            total(&fourth, ENTRIES),
            20,
            "a leaf that a writer has keeps its entries"
        );
    }

    #[test]
    fn a_count_that_turns_over_goes_on() {
        assert_eq!(since(4, u32::MAX - 5), 10);
        assert_eq!(since(4, 1000), 4);
    }

    #[test]
    fn samples_stand_for_many_and_go_where_their_keys_are() {
        let mut recorder = Recorder::new();
        let leaves: Vec<_> = (0..4).map(|low| leaf(low * 10, 0, 0)).collect();
        take(&mut recorder, 1, &leaves);
        let sampled = |key: u16, is_write| Sampled {
            key: key.to_be_bytes().into(),
            is_write,
            stands_for: 128,
        };
        let samples = [sampled(12, false), sampled(15, false), sampled(39, true)];
        recorder.take((2, 2000, 1000), &leaves, &samples, &|_| None, &hex);
        let column = recorder.last().expect("a column");
        let layer = |layer: usize| column.figures.iter().map(move |of| of[layer]).collect();
        let (reads, writes): (Vec<_>, Vec<_>) = (layer(READS), layer(WRITES));
        assert_eq!((reads, writes), (vec![0, 256, 0, 0], vec![0, 0, 0, 128]));
    }

    proptest! {
        #[test]
        fn no_count_is_lost_whatever_the_leaves_do(
            steps in proptest::collection::vec(
                proptest::collection::vec((1..2000_u16, 0..100_u32, 0..10_u32, 0..4), 0..600),
                1..25,
            ),
        ) {
            let mut recorder = Recorder::new();
            let mut leaves = std::collections::BTreeMap::from([(0_u16, (0_u32, 0_u32))]);
            let all: Vec<_> = leaves.iter().map(|(low, of)| leaf(*low, of.0, of.1)).collect();
            take(&mut recorder, 1, &all);
            let (mut acquired, mut waited) = (0, 0);
            let mut last = 0;
            for (seq, step) in (2..).zip(steps) {
                let mut counted = (0, 0);
                // Some are joined with the one before; the others count, or are split off.
                let joined = step.iter().filter(|(.., what)| *what == 0);
                let joined: std::collections::BTreeSet<_> = joined.map(|(low, ..)| *low).collect();
                leaves.retain(|low, _| !joined.contains(low));
                for (low, acquisitions, waits, _) in step {
                    if joined.contains(&low) {
                        continue;
                    }
                    let of = leaves.entry(low).or_default();
                    of.0 += acquisitions;
                    of.1 += waits;
                    counted.0 += u64::from(acquisitions);
                    counted.1 += u64::from(waits);
                }
                acquired += counted.0;
                waited += counted.1;
                let all: Vec<_> = leaves.iter().map(|(low, of)| leaf(*low, of.0, of.1)).collect();
                let column = take(&mut recorder, seq, &all);
                prop_assert!(column.figures.len() <= crate::map::MOST_BUCKETS);
                prop_assert_eq!(total(&column, ACQUISITIONS), counted.0);
                prop_assert_eq!(total(&column, WAITS), counted.1);
                prop_assert_eq!(total(&column, ENTRIES), 10 * all.len() as u64);
                last = seq;
            }
            let mut of_fine = (0, 0);
            recorder.fine.visit((0, u64::MAX), None, |column| {
                of_fine.0 += total(column, ACQUISITIONS);
                of_fine.1 += total(column, WAITS);
            });
            prop_assert_eq!(of_fine, (acquired, waited));
            let mut coarse = Vec::new();
            recorder.coarse.visit((0, u64::MAX), None, |column| coarse.push(column.clone()));
            prop_assert_eq!(coarse.len() as u64, last / 10);
            if let Some(end) = coarse.last() {
                let mut until = 0;
                recorder.fine.visit((0, end.at), None, |column| until += total(column, WAITS));
                let summed: u64 = coarse.iter().map(|column| total(column, WAITS)).sum();
                prop_assert_eq!(summed, until);
            }
        }
    }
}
