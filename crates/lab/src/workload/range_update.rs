//! The scans of `range_update`.

use super::Operation;
use crate::measure::Span;
use rand::{Rng, RngExt};
use std::ops::RangeInclusive;

/// How many keys a scan visits, unless the table ends before.
pub const SCAN_LENGTHS: RangeInclusive<u32> = 1_000..=10_000;

/// A scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongScan {
    /// The smallest key that it may visit.
    pub from: u32,
    /// How many keys it visits.
    pub length: u32,
}

/// Updates by some threads and long scans by others, on a half filled table.
#[derive(Clone, Debug)]
pub struct RangeUpdateJob {
    /// Keys lie below this.
    pub range: u32,
    /// The initial keys, in the order in which one thread inserts them.
    pub prefill: Vec<u32>,
    /// A stream for each thread that updates.
    pub updates: Vec<Vec<Operation>>,
    /// A stream for each thread that scans.
    pub scans: Vec<Vec<LongScan>>,
    /// How long the threads warm up, and how long their operations count.
    pub span: Span,
}

/// One thread's scans: beginnings uniform below `range`, lengths uniform in `lengths`.
#[must_use]
pub fn scans(
    range: u32,
    lengths: RangeInclusive<u32>,
    count: usize,
    random: &mut impl Rng,
) -> Vec<LongScan> {
    let scan = |_| LongScan {
        from: random.random_range(0..range),
        length: random.random_range(lengths.clone()),
    };
    (0..count).map(scan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Purpose, generator};

    #[test]
    fn scans_begin_below_the_range_and_have_the_promised_lengths() {
        let random = &mut generator(1, Purpose::Choices, 0, 0);
        let scans = scans(5000, SCAN_LENGTHS, 10_000, random);
        assert_eq!(scans.len(), 10_000);
        assert!(scans.iter().all(|scan| scan.from < 5000));
        assert!(scans.iter().all(|scan| SCAN_LENGTHS.contains(&scan.length)));
        let mean = scans.iter().map(|scan| f64::from(scan.length)).sum::<f64>() / 10_000.0;
        assert!((5300.0..5700.0).contains(&mean), "{mean}");
    }
}
