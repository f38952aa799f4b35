//! Many entries of a filled table are visited at a time, upwards or downwards.

use super::ycsb::fill;
use crate::{
    contestants::subject::{Measured, Subject, Task, check, expect},
    keys::Key,
    measure::{Lap, Sample, together_for},
    workload::{ExpectedScan, LongScanJob},
};
use std::hint::black_box;
use tremula_index::Direction;

impl Task<u64> for &LongScanJob {
    type Output = Measured;

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> Measured {
        let table = make();
        fill(&table, &self.keys, self.scans.len())?;
        let timed = together_for(self.scans.len(), self.span, |thread, lap| {
            let scans = &self.scans[thread];
            match self.direction {
                Direction::Ascending => work_off(scans, lap, |scan| scan.goes_up(&table)),
                Direction::Descending => work_off(scans, lap, |scan| scan.goes_down(&table)),
            }
        });
        expect("wrong scans", timed.results.iter().sum(), 0)?;
        expect("entries", check(&table)?, self.keys.len() as u64)?;
        Ok(vec![Ok(Sample::new(timed.operations, timed.elapsed))])
    }
}

/// Does the scans again and again until the time is up; each entry counts as an operation. Returns
/// how many scans were wrong.
fn work_off(
    scans: &[ExpectedScan],
    lap: &mut Lap<'_>,
    is_right: impl Fn(&ExpectedScan) -> bool,
) -> u64 {
    let mut faults = 0;
    for scan in scans.iter().cycle() {
        faults += u64::from(!is_right(scan));
        if !lap.done(scan.entries as u64) {
            break;
        }
    }
    black_box(faults)
}

impl ExpectedScan {
    /// Whether the scan visits exactly what it should: from the first key to the last, as many
    /// entries as there are between them, in order, each with its value.
    #[inline]
    fn goes_up<S: Subject<u64>>(&self, table: &S) -> bool {
        let (mut seen, mut last, mut wrong) = (0, self.first, false);
        table.scan(Some(&self.first), self.entries, |key, value| {
            let follows = key > last || (seen == 0 && key == self.first);
            wrong |= !follows || value != u64::value_of(key);
            last = key;
            seen += 1;
        });
        !wrong && seen == self.entries && last == self.last
    }

    /// The same for a scan in descending order.
    #[inline]
    fn goes_down<S: Subject<u64>>(&self, table: &S) -> bool {
        let (mut seen, mut last, mut wrong) = (0, self.first, false);
        let can = table.scan_down(Some(&self.first), self.entries, |key, value| {
            let follows = key < last || (seen == 0 && key == self.first);
            wrong |= !follows || value != u64::value_of(key);
            last = key;
            seen += 1;
        });
        can && !wrong && seen == self.entries && last == self.last
    }
}
