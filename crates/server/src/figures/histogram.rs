//! Times in buckets: sixteen for each power of two, so that a percentile is exact to a sixteenth.

use super::count::Count;
use std::time::Duration;

/// Buckets of each power of two, as a power of two.
const FINE: u32 = 4;
const PARTS: usize = 1 << FINE;

/// Times from this power of two of nanoseconds on, a bit more than a minute, count as the longest.
const LONGEST: u32 = 36;

const BUCKETS: usize = (LONGEST - FINE + 1) as usize * PARTS;

/// The first bound of what `LATENCY HISTOGRAM` shows, in nanoseconds. The others are its doubles.
const FIRST_BOUND: u64 = 1024;

fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < PARTS as u64 {
        return nanoseconds as usize;
    }
    let power = nanoseconds.ilog2();
    if power >= LONGEST {
        return BUCKETS - 1;
    }
    let part = (nanoseconds >> (power - FINE)) as usize & (PARTS - 1);
    (power - FINE + 1) as usize * PARTS + part
}

/// The longest time of a bucket, in nanoseconds.
fn most(bucket: usize) -> u64 {
    let (power, part) = (bucket / PARTS, (bucket % PARTS) as u64);
    match power.checked_sub(1) {
        None => part,
        Some(shift) => ((PARTS as u64 + part + 1) << shift) - 1,
    }
}

/// Times that one thread notes, and any may read.
pub(crate) struct Histogram {
    buckets: [Count; BUCKETS],
}

impl Histogram {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            buckets: std::array::from_fn(|_| Count::default()),
        })
    }

    /// Notes a time that was measured `count` times.
    #[inline]
    pub(crate) fn add(&self, nanoseconds: u64, count: u64) {
        self.buckets[bucket(nanoseconds)].add(count);
    }
}

/// The sum of histograms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// None if no time was noted.
    buckets: Vec<u64>,
}

impl Times {
    pub(crate) fn add(&mut self, histogram: &Histogram) {
        self.buckets.resize(BUCKETS, 0);
        for (sum, bucket) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *sum += bucket.get();
        }
    }

    /// Takes away what was counted up to an earlier moment.
    pub(crate) fn subtract(&mut self, before: &Self) {
        for (sum, before) in self.buckets.iter_mut().zip(&before.buckets) {
            *sum = sum.saturating_sub(*before);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The time that `percent` of all do not exceed, by more than a sixteenth.
    pub(crate) fn percentile(&self, percent: f64) -> Duration {
        let rank = (self.count() as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        Duration::from_nanos(found.map_or(0, most))
    }

    /// For the same bounds each time, a microsecond and its doubles up to a second: the seconds,
    /// and how many times are shorter.
    pub(crate) fn below(&self) -> Vec<(f64, u64)> {
        const BOUNDS: u32 = 21;
        let mut below = Vec::with_capacity(BOUNDS as usize);
        let (mut at, mut seen) = (0, 0);
        for bound in (0..BOUNDS).map(|power| FIRST_BOUND << power) {
            while at < self.buckets.len() && most(at) < bound {
                seen += self.buckets[at];
                at += 1;
            }
            below.push((bound as f64 * 1e-9, seen));
        }
        below
    }

    /// The seconds of all times together, exact to a thirty-second.
    pub(crate) fn sum(&self) -> f64 {
        let middle = |bucket: usize| {
            let least = bucket.checked_sub(1).map_or(0, |before| most(before) + 1);
            (least as f64 + most(bucket) as f64) / 2.0
        };
        let counts = self.buckets.iter().enumerate();
        let sums = counts.map(|(bucket, count)| middle(bucket) * *count as f64 * 1e-9);
        sums.sum()
    }

    /// For each power of two up to which there are more times than up to the one before: the
    /// microseconds, and how many times are not longer.
    pub(crate) fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut shown = Vec::new();
        let (mut bound, mut seen, mut last) = (FIRST_BOUND, 0, 0);
        for (bucket, count) in self.buckets.iter().enumerate() {
            while most(bucket) >= bound {
                if seen > last {
                    shown.push((bound / 1000, seen));
                    last = seen;
                }
                bound *= 2;
            }
            seen += count;
        }
        if seen > last {
            shown.push((bound / 1000, seen));
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_times_that_differ_by_a_sixteenth() {
        let mut before = None;
        for time in (0..10_000).chain((1..40).map(|power| (1_u64 << power) + 12_345)) {
            let at = bucket(time);
            assert!(Some(at) >= before, "{time}");
            before = Some(at);
            if at < BUCKETS - 1 {
                assert!(most(at) >= time && most(at) - time <= time / 16, "{time}");
                assert_eq!(bucket(most(at)), at);
                assert_eq!(bucket(most(at) + 1), at + 1);
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_and_sums_are_those_of_the_times() {
        let histogram = Histogram::new();
        let mut times = Times::default();
        assert_eq!((times.count(), times.percentile(50.0)), (0, Duration::ZERO));
        (1..=100).for_each(|micros| histogram.add(micros * 1000, 1));
        times.add(&histogram);
        for (percent, expected) in [(50.0, 50.0), (99.0, 99.0), (100.0, 100.0), (0.0, 1.0)] {
            let found = times.percentile(percent).as_secs_f64() * 1e6;
            assert!(
                (expected..=expected * 1.07).contains(&found),
                "{percent}: {found}"
            );
        }
        let shown = times.cumulative();
        let expected = [
            (1, 1),
            (2, 2),
            (4, 4),
            (8, 8),
            (16, 16),
            (32, 32),
            (65, 65),
            (131, 100),
        ];
        assert_eq!(shown, expected);
        let below: Vec<u64> = times.below().into_iter().map(|(_, count)| count).collect();
        assert_eq!(below[..8], [1, 2, 4, 8, 16, 32, 65, 100]);
        assert_eq!((below.len(), below[20]), (21, 100));
        let sum = (1..=100).sum::<u32>();
        assert!((times.sum() * 1e6 / f64::from(sum) - 1.0).abs() < 1.0 / 32.0);
        let before = times.clone();
        histogram.add(2000, 3);
        let mut times = Times::default();
        times.add(&histogram);
        times.subtract(&before);
        assert_eq!((times.count(), times.cumulative()), (3, vec![(2, 3)]));
    }
}
