//! All keys of a filled table are removed, in another order.

use super::ycsb::fill;
use crate::{
    contestants::subject::{Measured, Subject, Task, check, expect},
    measure::{Sample, Timed, together},
    workload::{RemoveJob, part_of},
};

/// The divisor of the keys that another table is filled with and emptied of first, to warm up.
const WARM_UP_PART: usize = 8;

impl Task<u64> for &RemoveJob {
    type Output = Measured;

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> Measured {
        let few = &self.keys[..self.keys.len() / WARM_UP_PART];
        let warm = make();
        fill(&warm, few, self.threads)?;
        empty(&warm, few, self.threads)?;
        drop(warm);
        let table = make();
        fill(&table, &self.keys, self.threads)?;
        let timed = empty(&table, &self.order, self.threads)?;
        expect("entries after removing all", check(&table)?, 0)?;
        let sample = Sample::new(self.keys.len() as u64, timed.elapsed);
        Ok(vec![Ok(sample)])
    }
}

/// Removes the keys, all of which are present; each thread removes its part.
fn empty<S: Subject<u64>>(table: &S, keys: &[u64], threads: usize) -> Result<Timed<u64>, String> {
    let timed = together(threads, |thread| {
        let part = part_of(keys, thread, threads).iter();
        part.map(|key| u64::from(table.remove(key))).sum::<u64>()
    });
    let removed = timed.results.iter().sum();
    expect("keys removed", removed, keys.len() as u64)?;
    Ok(timed)
}
