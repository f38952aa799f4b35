//! Some threads update, others do long scans.

use super::ordered_mix::{Tally, work_off};

use crate::{
    contestants::subject::{Measured, Subject, Task, check, expect},
    keys::Key,
    measure::{Lap, Sample, together_for},
    workload::{LongScan, RangeUpdateJob},
};

/// What a thread has done.
enum Done {
    Updates(Tally),
    /// The number of scans, and how many of them were wrong.
    Scans(u64, u64),
}

impl Task<u64> for &RangeUpdateJob {
    type Output = Measured;

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> Measured {
        let table = make();
        for key in &self.prefill {
            let key = u64::from(*key);
            table.insert(&key, u64::value_of(key));
        }
        let threads = self.updates.len() + self.scans.len();
        let timed = together_for(threads, self.span, |thread, lap| {
            match (thread % 2, thread / 2) {
                (0, number) => {
                    Done::Updates(work_off(&table, &self.updates[number], self.range, lap))
                }
                (_, number) => scan(&table, &self.scans[number], lap),
            }
        });
        let (mut inserted, mut removed, mut scans, mut faults) = (0, 0, 0, 0);
        for done in &timed.results {
            match done {
                Done::Updates(tally) => {
                    inserted += tally.inserted;
                    removed += tally.removed;
                    faults += tally.faults;
                }
                Done::Scans(count, wrong) => {
                    scans += count;
                    faults += wrong;
                }
            }
        }
        expect("wrong results", faults, 0)?;
        let left = (self.prefill.len() as u64 + inserted).checked_sub(removed);
        expect("entries", check(&table)?, left.unwrap_or(0))?;
        let mut sample = Sample::new(timed.operations, timed.elapsed);
        let whole = self.span.warm_up + self.span.counted;
        let per_second = scans as f64 / whole.as_secs_f64().max(f64::MIN_POSITIVE);
        sample
            .figures
            .push(("scans_per_second".to_owned(), per_second));
        Ok(vec![Ok(sample)])
    }
}

impl LongScan {
    /// Does the scan. Returns how many keys it saw; `None` if that cannot be right whatever other
    /// threads do meanwhile.
    #[inline]
    pub(super) fn visit<S: Subject<u64>>(&self, table: &S) -> Option<usize> {
        let (from, length) = (u64::from(self.from), self.length as usize);
        let (mut next, mut visited, mut wrong) = (from, 0, false);
        table.scan(Some(&from), length, |key, value| {
            wrong |= key < next || value != u64::value_of(key);
            next = key + 1;
            visited += 1;
        });
        (!wrong && visited <= length).then_some(visited)
    }
}

/// Does the scans again and again until the time is up.
fn scan<S: Subject<u64>>(table: &S, scans: &[LongScan], lap: &mut Lap<'_>) -> Done {
    let (mut count, mut faults) = (0, 0);
    for scan in scans.iter().cycle() {
        faults += u64::from(scan.visit(table).is_none());
        count += 1;
        if !lap.done(1) {
            break;
        }
    }
    Done::Scans(count, faults)
}
