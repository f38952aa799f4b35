//! A table is filled, then read, updated and scanned.

use crate::{
    contestants::subject::{Measured, Subject, Task, check, expect, insert_all},
    keys::{Key, KeyList},
    measure::{Lap, Sample, Timed, together, together_for},
    workload::{Action, Phase, YcsbJob, part_of},
};
use std::hint::black_box;

/// How many operations a thread does before it looks at the time again.
const STRIDE: usize = 64;

/// The divisor of the keys that are inserted into another table before inserting counts, so that
/// the code and the allocator are warm.
const WARM_UP_PART: usize = 8;

impl<K: Key> Task<K> for &YcsbJob<K> {
    type Output = Measured;

    fn run<S: Subject<K>>(self, make: impl Fn() -> S) -> Measured {
        let mut samples = Vec::new();
        if self.insert_counts {
            let few = &self.keys.loaded[..self.keys.loaded.len() / WARM_UP_PART];
            fill(&make(), few, self.threads)?;
        }
        let table = make();
        let filled = fill(&table, &self.keys.loaded, self.threads)?;
        if self.insert_counts {
            let sample = Sample::new(self.keys.loaded.len() as u64, filled.elapsed);
            samples.push(Ok(sample));
        }
        let mut entries = self.keys.loaded.len() as u64;
        for phase in &self.phases {
            let timed = run_phase(&table, self, phase);
            let mut total = Tally::default();
            for tally in &timed.results {
                total.inserted += tally.inserted;
                total.faults += tally.faults;
            }
            entries += total.inserted;
            let sample = Sample::new(timed.operations, timed.elapsed);
            samples.push(expect("wrong results", total.faults, 0).map(|()| sample));
        }
        expect("entries", check(&table)?, entries)?;
        Ok(samples)
    }
}

/// Fills the table; each thread inserts its part of the keys.
pub(super) fn fill<K: Key, S: Subject<K>>(
    table: &S,
    keys: &[K],
    threads: usize,
) -> Result<Timed<u64>, String> {
    let timed = together(threads, |thread| {
        insert_all(table, part_of(keys, thread, threads))
    });
    let new = timed.results.iter().sum();
    expect("keys reported as new", new, keys.len() as u64)?;
    Ok(timed)
}

fn run_phase<K: Key, S: Subject<K>>(table: &S, job: &YcsbJob<K>, phase: &Phase) -> Timed<Tally> {
    let streams = job
        .streams
        .iter()
        .find(|(distribution, _)| *distribution == phase.distribution)
        .map_or(&[][..], |(_, streams)| streams);
    together_for(job.threads, job.span, |thread, lap| {
        let mut worker = Worker {
            table,
            fresh: Fresh::of(&job.keys, thread, job.threads),
            tally: Tally::default(),
        };
        worker.work_off(&streams[thread], &phase.actions[thread], lap);
        black_box(worker.tally)
    })
}

/// What one thread has inserted and seen.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Inserts that added a new key.
    inserted: u64,
    /// Results that cannot be right whatever other threads do.
    faults: u64,
    /// The sum of all that was seen, so that the compiler cannot drop the reads.
    sum: u64,
}

/// The keys that one thread has to insert, and how many it has inserted. When all are in the table,
/// the thread starts over and replaces them.
struct Fresh<'a, K> {
    keys: &'a [K],
    place: usize,
}

impl<'a, K: Key> Fresh<'a, K> {
    fn of(keys: &'a KeyList<K>, thread: usize, threads: usize) -> Self {
        Self {
            keys: part_of(&keys.fresh, thread, threads),
            place: 0,
        }
    }

    fn next(&mut self) -> Option<&'a K> {
        let key = self.keys.get(self.place).or(self.keys.first());
        self.place = if self.place < self.keys.len() {
            self.place + 1
        } else {
            1
        };
        key
    }
}

struct Worker<'a, K, S> {
    table: &'a S,
    fresh: Fresh<'a, K>,
    tally: Tally,
}

impl<K: Key, S: Subject<K>> Worker<'_, K, S> {
    /// Runs the stream against the table again and again until the time is up.
    fn work_off(&mut self, keys: &[K], actions: &[Action], lap: &mut Lap<'_>) {
        loop {
            for (keys, actions) in keys.chunks(STRIDE).zip(actions.chunks(STRIDE)) {
                for (key, action) in keys.iter().zip(actions) {
                    self.operate(key, *action);
                }
                if !lap.done(keys.len() as u64) {
                    return;
                }
            }
        }
    }

    #[inline]
    fn operate(&mut self, key: &K, action: Action) {
        if let Some(entries) = action.scanned() {
            self.scan(key, entries);
        } else if action == Action::READ {
            // Every key of a stream was loaded, and none is ever removed.
            let right = self.table.get(key) == Some(K::value_of(key.view()));
            self.tally.faults += u64::from(!right);
        } else if action == Action::UPDATE {
            self.table.update(key, K::value_of(key.view()));
        } else if let Some(key) = self.fresh.next() {
            let new = self.table.insert(key, K::value_of(key.view()));
            self.tally.inserted += u64::from(new);
        }
    }

    /// Visits entries from the key on, and checks that each value belongs to its key and that keys
    /// ascend. It compares only their first eight bytes, which needs no copy of the last key.
    #[inline]
    fn scan(&mut self, from: &K, entries: u8) {
        let first = K::head_of(from.view());
        let (mut seen, mut last, mut sum, mut faults) = (0_u64, first, 0_u64, 0_u64);
        self.table
            .scan(Some(from), usize::from(entries), |key, value| {
                let head = K::head_of(key);
                faults += u64::from(head < last) + u64::from(value != K::value_of(key));
                // The key that the scan begins at was loaded, so the scan must see it first.
                faults += u64::from(seen == 0 && head != first);
                last = head;
                sum = sum.wrapping_add(head ^ value);
                seen += 1;
            });
        faults += u64::from(seen == 0 || seen > u64::from(entries));
        self.tally.faults += faults;
        self.tally.sum = self.tally.sum.wrapping_add(sum);
    }
}
