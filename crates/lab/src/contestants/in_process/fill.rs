//! Fills a table in this process, which has done nothing else before, and weighs it.

use super::{tables::Table, ycsb};
use crate::{
    LabError,
    contestants::subject::{Subject, Task, check, expect},
    keys::{Key, Keys},
    measure::together,
    memory::{FillReport, Memory},
    workload::{FillJob, part_of},
};

/// Fills a table and empties it, and weighs it before, when full, and afterwards.
///
/// # Errors
///
/// The table was wrong when full or when empty.
pub fn fill(table: Table, job: &FillJob) -> Result<FillReport, LabError> {
    let filled = match job.make_keys() {
        Keys::Integers(keys) => table.run_integers(Fill {
            keys: &keys.loaded,
            threads: job.threads,
        }),
        Keys::Texts(keys) => table.run_texts(Fill {
            keys: &keys.loaded,
            threads: job.threads,
        }),
    };
    filled.map_err(|fault| LabError::Wrong {
        engine: table.name(),
        fault,
    })
}

struct Fill<'a, K> {
    keys: &'a [K],
    threads: usize,
}

impl<K: Key> Task<K> for Fill<'_, K> {
    type Output = Result<FillReport, String>;

    fn run<S: Subject<K>>(self, make: impl Fn() -> S) -> Self::Output {
        let Self { keys, threads } = self;
        let before = Memory::now();
        let table = make();
        let timed = ycsb::fill(&table, keys, threads)?;
        let full = Memory::now();
        expect("entries", check(&table)?, keys.len() as u64)?;
        let removed = together(threads, |thread| {
            let part = part_of(keys, thread, threads);
            part.iter()
                .map(|key| u64::from(table.remove(key)))
                .sum::<u64>()
        });
        let emptied = Memory::now();
        expect(
            "keys removed",
            removed.results.iter().sum(),
            keys.len() as u64,
        )?;
        expect("entries after removing all", check(&table)?, 0)?;
        Ok(FillReport {
            operations: keys.len() as u64,
            seconds: timed.elapsed.as_secs_f64(),
            full: full.growth_since(&before),
            emptied: emptied.growth_since(&before),
        })
    }
}
