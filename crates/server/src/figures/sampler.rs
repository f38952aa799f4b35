//! Keys that commands use, one of many.
//!
//! Each thread counts its commands with keys, and keeps the first key of one in a number of them.
//! When there are too many before somebody takes them, it keeps one of twice as many: so the room
//! is bounded, and each sample says how many commands it stands for.

use super::count::Count;
use crate::lock::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tremula_observe::LONGEST_KEY;

/// A sample stands for this number of commands, if they are few.
const LEAST: u64 = 16;

/// And for no more than this number.
const MOST: u64 = 1 << 16;

/// Samples that a thread keeps until they are taken.
const ROOM: usize = 1024;

/// A key that a command used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) database: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) is_write: bool,
    pub(crate) stands_for: u64,
}

/// The samples of one thread.
pub(crate) struct Sampler {
    /// Commands since the last sample, which only the thread itself counts.
    passed: Count,
    /// How many a sample stands for.
    each: AtomicU64,
    is_on: AtomicBool,
    kept: Mutex<Vec<Sample>>,
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            passed: Count::default(),
            each: AtomicU64::new(LEAST),
            is_on: AtomicBool::new(false),
            kept: Mutex::default(),
        }
    }
}

impl Sampler {
    /// Counts a command. Returns whether its key is a sample.
    #[inline]
    pub(crate) fn counts(&self) -> bool {
        self.passed.add(1);
        self.passed.get() >= self.each.load(Relaxed)
    }

    /// Keeps a key, if anybody takes them.
    #[cold]
    pub(crate) fn keep(&self, database: usize, key: &[u8], is_write: bool) {
        let stands_for = self.passed.get();
        self.passed.add(stands_for.wrapping_neg());
        if !self.is_on.load(Relaxed) {
            self.each.store(MOST, Relaxed);
            return;
        }
        let mut kept = lock(&self.kept);
        if kept.len() >= ROOM {
            // Half of them stand for the others too.
            let mut number = 0;
            kept.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            kept.iter_mut().for_each(|sample| sample.stands_for *= 2);
            let each = self.each.load(Relaxed);
            self.each.store((2 * each).min(MOST), Relaxed);
        }
        kept.push(Sample {
            database,
            key: key[..key.len().min(LONGEST_KEY)].to_vec(),
            is_write,
            stands_for,
        });
    }

    /// The sample has no key: what it stands for has none either.
    #[cold]
    pub(crate) fn skip(&self) {
        self.passed.add(self.passed.get().wrapping_neg());
    }

    /// Moves the samples to `into`. From the first call on, there are some.
    pub(crate) fn take(&self, into: &mut Vec<Sample>) {
        let mut kept = lock(&self.kept);
        if !self.is_on.swap(true, Relaxed) {
            self.each.store(LEAST, Relaxed);
        }
        if kept.len() < ROOM / 4 {
            let each = self.each.load(Relaxed);
            self.each.store((each / 2).max(LEAST), Relaxed);
        }
        into.append(&mut kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(sampler: &Sampler, commands: u64) {
        for number in 0..commands {
            if sampler.counts() {
                sampler.keep(3, &number.to_be_bytes(), number % 4 == 0);
            }
        }
    }

    fn taken(sampler: &Sampler) -> Vec<Sample> {
        let mut taken = Vec::new();
        sampler.take(&mut taken);
        taken
    }

    #[test]
    fn samples_stand_for_all_commands_and_take_bounded_room() {
        let sampler = Sampler::default();
        run(&sampler, 1000);
        assert_eq!(taken(&sampler), [], "nobody had asked for any");
        for commands in [LEAST - 1, 10_000, 3_000_000, 50_000] {
            run(&sampler, commands);
            let samples = taken(&sampler);
            assert!(samples.len() <= ROOM);
            let sum: u64 = samples.iter().map(|sample| sample.stands_for).sum();
            // The last ones are counted next time, and halving rounds.
            let wrong = sum.abs_diff(commands);
            assert!(wrong <= commands / 4 + MOST / 8, "{sum} of {commands}");
            assert!(samples.iter().all(|sample| sample.database == 3));
        }
    }

    #[test]
    fn a_long_key_is_cut() {
        let sampler = Sampler::default();
        taken(&sampler);
        sampler.keep(0, &[7; 2 * LONGEST_KEY], true);
        assert_eq!(taken(&sampler)[0].key, [7; LONGEST_KEY]);
    }
}
