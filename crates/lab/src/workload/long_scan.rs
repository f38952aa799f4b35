//! The scans of `long_scan`.

use crate::measure::Span;
use rand::{Rng, RngExt};
use tremula_index::Direction;

/// How many entries a scan visits, unless the table ends before.
pub const LONG_SCAN: usize = 10_000;

/// A scan of a table that nobody changes, and what it has to visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedScan {
    /// The first key, which the scan begins at.
    pub first: u64,
    /// The last key.
    pub last: u64,
    /// How many entries are visited.
    pub entries: usize,
}

/// A table is filled, and then scanned.
#[derive(Clone, Debug)]
pub struct LongScanJob {
    /// What the table is filled with; each thread inserts its part.
    pub keys: Vec<u64>,
    /// The direction of all scans.
    pub direction: Direction,
    /// The scans of each thread, done repeatedly.
    pub scans: Vec<Vec<ExpectedScan>>,
    /// How long the threads warm up, and how long the entries that they visit count.
    pub span: Span,
}

/// One thread's scans of [`LONG_SCAN`] entries of a table with these keys, which ascend. They begin
/// at keys chosen uniformly.
///
/// # Panics
///
/// There are no keys.
#[must_use]
pub fn expected_scans(
    sorted: &[u64],
    direction: Direction,
    count: usize,
    random: &mut impl Rng,
) -> Vec<ExpectedScan> {
    let scan = |_| {
        let first = random.random_range(0..sorted.len());
        let last = match direction {
            Direction::Ascending => (first + LONG_SCAN - 1).min(sorted.len() - 1),
            Direction::Descending => (first + 1).saturating_sub(LONG_SCAN),
        };
        ExpectedScan {
            first: sorted[first],
            last: sorted[last],
            entries: first.abs_diff(last) + 1,
        }
    };
    (0..count).map(scan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Purpose, generator};

    #[test]
    fn scans_have_ten_thousand_entries_or_end_where_the_table_ends() {
        let keys: Vec<u64> = (0..50_000).map(|i| i * 3).collect();
        for (direction, end) in [(Direction::Ascending, 149_997), (Direction::Descending, 0)] {
            let random = &mut generator(1, Purpose::Choices, 0, 0);
            let scans = expected_scans(&keys, direction, 1000, random);
            for scan in &scans {
                assert_eq!(
                    scan.first.abs_diff(scan.last),
                    3 * (scan.entries as u64 - 1)
                );
                assert!(scan.entries == LONG_SCAN || scan.last == end, "{scan:?}");
                let ascends = direction == Direction::Ascending;
                assert_eq!(scan.first <= scan.last, ascends || scan.entries == 1);
            }
            let whole = scans.iter().filter(|scan| scan.entries == LONG_SCAN);
            assert!((700..900).contains(&whole.count()));
        }
    }
}
