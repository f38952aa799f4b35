//! Many keys are looked up, one by one and in batches.

use super::ycsb::fill;
use crate::{
    contestants::subject::{Measured, Subject, Task, check, expect},
    keys::Key,
    measure::{Lap, Sample, together_for},
    workload::{BatchJob, LookupStyle},
};
use std::hint::black_box;

/// How many batches a thread looks up before it looks at the time again.
const STRIDE: usize = 4;

impl<K: Key> Task<K> for &BatchJob<K> {
    type Output = Measured;

    fn run<S: Subject<K>>(self, make: impl Fn() -> S) -> Measured {
        let table = make();
        fill(&table, &self.keys.loaded, self.streams.len())?;
        let mut samples = Vec::new();
        for style in &self.styles {
            let timed = together_for(self.streams.len(), self.span, |thread, lap| {
                let stream = &self.streams[thread];
                match style {
                    LookupStyle::OneByOne => one_by_one(&table, stream, self.batch, lap),
                    LookupStyle::Batched => batched(&table, stream, self.batch, lap),
                }
            });
            let sample = Sample::new(timed.operations, timed.elapsed);
            let faults = timed.results.iter().sum();
            samples.push(expect("wrong results", faults, 0).map(|()| sample));
        }
        expect("entries", check(&table)?, self.keys.loaded.len() as u64)?;
        Ok(samples)
    }
}

/// Looks the keys up until the time is up. Returns how many results were wrong.
fn one_by_one<K: Key, S: Subject<K>>(
    table: &S,
    keys: &[K],
    batch: usize,
    lap: &mut Lap<'_>,
) -> u64 {
    let mut faults = 0;
    loop {
        for stride in keys.chunks(batch * STRIDE) {
            for key in stride {
                let right = table.get(key) == Some(K::value_of(key.view()));
                faults += u64::from(!right);
            }
            if !lap.done(stride.len() as u64) {
                return black_box(faults);
            }
        }
    }
}

fn batched<K: Key, S: Subject<K>>(table: &S, keys: &[K], batch: usize, lap: &mut Lap<'_>) -> u64 {
    let mut faults = 0;
    let mut found = Vec::with_capacity(batch);
    loop {
        for stride in keys.chunks(batch * STRIDE) {
            for keys in stride.chunks(batch) {
                found.clear();
                table.get_many(keys, &mut found);
                faults += u64::from(found.len() != keys.len());
                for (key, value) in keys.iter().zip(&found) {
                    faults += u64::from(*value != Some(K::value_of(key.view())));
                }
            }
            if !lap.done(stride.len() as u64) {
                return black_box(faults);
            }
        }
    }
}
