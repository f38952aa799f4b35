//! All threads append to one table.

use crate::{
    contestants::subject::{Measured, Subject, Task, check, expect},
    keys::{Key, stamped},
    measure::{Sample, together},
    workload::{self, AppendJob},
};

/// The names under which engines count operations that had to restart.
const BEGUN_AGAIN: [&str; 3] = ["restarts", "aborts", "retries"];

/// The divisor of the keys that are appended to another table first, to warm up.
const WARM_UP_PART: u64 = 8;

impl Task<u64> for &AppendJob {
    type Output = Measured;

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> Measured {
        append(&make(), self.count / WARM_UP_PART, self.threads);
        let table = make();
        let before = begun_again(&table);
        let mut sample = append(&table, self.count, self.threads);
        for ((name, after), (_, before)) in begun_again(&table).into_iter().zip(before) {
            let times = (after - before) as f64 / self.count as f64;
            sample
                .figures
                .push((format!("{name}_per_operation"), times));
        }
        expect("entries", check(&table)?, self.count)?;
        Ok(vec![Ok(sample)])
    }
}

/// Each thread inserts its share of keys, which are readings of the clock.
fn append<S: Subject<u64>>(table: &S, count: u64, threads: usize) -> Sample {
    let beginning = tremula_sync::now();
    let timed = together(threads, |thread| {
        let part = workload::part(count, thread, threads);
        let mut last = 0;
        for _ in part {
            // The clock may show the same time twice.
            let now =
                u64::try_from((tremula_sync::now() - beginning).as_nanos()).unwrap_or(u64::MAX);
            last = now.max(last + 1);
            let key = stamped(last, thread);
            table.insert(&key, u64::value_of(key));
        }
    });
    Sample::new(count, timed.elapsed)
}

fn begun_again<S: Subject<u64>>(table: &S) -> Vec<(&'static str, u64)> {
    let mut figures = table.figures();
    figures.retain(|(name, _)| BEGUN_AGAIN.contains(name));
    figures
}
