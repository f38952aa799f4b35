//! Each thread inserts its own range of integers, ascending.

use crate::{
    contestants::subject::{Measured, Subject, Task, check, expect},
    keys::Key,
    measure::{Sample, together},
    workload,
};

/// The task.
pub(super) struct InsertRanges {
    /// How many keys.
    pub(super) keys: u64,
    /// How many threads.
    pub(super) threads: usize,
}

impl Task<u64> for InsertRanges {
    type Output = Measured;

    fn run<S: Subject<u64>>(self, make: impl Fn() -> S) -> Measured {
        let Self { keys, threads } = self;
        let table = make();
        let timed = together(threads, |thread| {
            workload::part(keys, thread, threads)
                .map(|key| u64::from(table.insert(&key, u64::value_of(key))))
                .sum::<u64>()
        });
        expect("keys reported as new", timed.results.iter().sum(), keys)?;
        expect("entries", check(&table)?, keys)?;
        Ok(vec![Ok(Sample::new(keys, timed.elapsed))])
    }
}
