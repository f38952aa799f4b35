//! The indexes of this project, measured in this process.

use super::{
    Contestant, ContestantName,
    subject::{Subject, value_of},
};
use crate::{
    LabError,
    measure::{Sample, together, together_for},
    memory::{FillCommand, FillReport, resident_bytes},
    workload::{self, FillJob, Job, Kind, MixJob, Operation, SEQUENCE_STEPS},
};
use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering},
};
use tremula_index::{CaTree, Engine, Locked};

/// How many operations a thread does between two looks at the stop flag.
const STRIDE: usize = 64;

/// An engine as a contestant.
#[derive(Clone, Debug)]
pub struct InProcess {
    engine: Engine,
    fill_command: Option<FillCommand>,
}

impl InProcess {
    /// The engine, with the command for processes that weigh it.
    #[must_use]
    pub const fn new(engine: Engine, fill_command: Option<FillCommand>) -> Self {
        Self {
            engine,
            fill_command,
        }
    }
}

/// Evaluates an expression with a fresh index of the engine's own type, so that the calls in
/// it are static.
macro_rules! with_index {
    ($engine:expr, $index:ident => $work:expr) => {
        match $engine {
            Engine::CaTree => {
                let $index = CaTree::<u64, u64>::new();
                $work
            }
            Engine::Locked => {
                let $index = Locked::<u64, u64>::new();
                $work
            }
        }
    };
}

impl Contestant for InProcess {
    fn name(&self) -> ContestantName {
        ContestantName::Index(self.engine)
    }

    fn version(&self) -> String {
        format!("tremula {}", env!("CARGO_PKG_VERSION"))
    }

    fn measure(&mut self, job: &Job) -> Result<Sample, LabError> {
        let measured = match job {
            Job::InsertRanges { keys, threads } => {
                with_index!(self.engine, index => insert_ranges(&index, *keys, *threads))
            }
            Job::Mix(job) => with_index!(self.engine, index => ordered_mix(&index, job)),
            Job::Fill(job) => {
                let command = self.fill_command.as_ref();
                return command
                    .ok_or(LabError::NoFillCommand {
                        experiment: "memory",
                    })?
                    .run(self.engine.name(), job);
            }
        };
        measured.map_err(|fault| LabError::Wrong {
            engine: self.engine.name(),
            fault,
        })
    }
}

fn insert_ranges<S: Subject>(table: &S, keys: u64, threads: usize) -> Result<Sample, String> {
    let timed = together(threads, |thread| {
        workload::part(keys, thread, threads)
            .map(|key| u64::from(table.insert(key, value_of(key))))
            .sum::<u64>()
    });
    let new: u64 = timed.results.iter().sum();
    expect("keys reported as new", new, keys)?;
    expect("entries", table.check()?, keys)?;
    Ok(Sample {
        operations: keys,
        elapsed: timed.elapsed,
        bytes_per_key: None,
    })
}

fn ordered_mix<S: Subject>(table: &S, job: &MixJob) -> Result<Sample, String> {
    for key in &job.prefill {
        table.insert(u64::from(*key), value_of(u64::from(*key)));
    }
    let timed = together_for(job.streams.len(), job.duration, |thread, stop| {
        work_off(table, &job.streams[thread], job.range, stop)
    });
    let mut total = Tally::default();
    for tally in &timed.results {
        total.operations += tally.operations;
        total.inserted += tally.inserted;
        total.removed += tally.removed;
        total.faults += tally.faults;
    }
    expect("wrong results", total.faults, 0)?;
    let left = (job.prefill.len() as u64 + total.inserted).checked_sub(total.removed);
    expect("entries", table.check()?, left.unwrap_or(0))?;
    Ok(Sample {
        operations: total.operations,
        elapsed: timed.elapsed,
        bytes_per_key: None,
    })
}

fn expect(what: &str, found: u64, expected: u64) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{found} {what}, expected {expected}"))
    }
}

/// What one thread has done and seen.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    operations: u64,
    /// Inserts that brought a new key.
    inserted: u64,
    /// Removes that found their key.
    removed: u64,
    /// Results that cannot be right whatever other threads do.
    faults: u64,
}

/// Runs the stream against the table, over and over with rotated keys, until the flag rises.
fn work_off<S: Subject>(table: &S, stream: &[Operation], range: u32, stop: &AtomicBool) -> Tally {
    let mut tally = Tally::default();
    let mut offset = 0;
    let step = workload::rotation_step(range);
    loop {
        for stride in stream.chunks(STRIDE) {
            for operation in stride {
                let key = u64::from(workload::rotate(operation.key(), offset, range));
                operate(table, operation.kind(), key, &mut tally);
            }
            tally.operations += stride.len() as u64;
            // Carries no data; see where it is set. Read after the work, so that a thread that
            // starts late under load has still done some.
            if stop.load(Ordering::Relaxed) {
                return black_box(tally);
            }
        }
        offset = workload::rotate(offset, step, range);
    }
}

#[inline]
fn operate<S: Subject>(table: &S, kind: Kind, key: u64, tally: &mut Tally) {
    match kind {
        Kind::Lookup => {
            if let Some(value) = table.get(key) {
                tally.faults += u64::from(value != value_of(key));
            }
        }
        Kind::Insert => tally.inserted += u64::from(table.insert(key, value_of(key))),
        Kind::Remove => tally.removed += u64::from(table.remove(key)),
        Kind::Sequence => {
            let mut key = key;
            for _ in 0..SEQUENCE_STEPS {
                let Some(next) = table.next(key) else { break };
                tally.faults += u64::from(next <= key);
                key = next;
            }
        }
    }
}

/// Fills an index in this process, which should have done nothing else, and weighs it.
///
/// # Errors
///
/// The index was wrong afterwards.
pub fn fill(engine: Engine, job: &FillJob) -> Result<FillReport, LabError> {
    let keys = job.make_keys();
    with_index!(engine, index => {
        let before = resident_bytes();
        let timed = together(job.threads, |thread| {
            let part = workload::part(job.count, thread, job.threads);
            // A part lies within the keys, which are in memory.
            let part = &keys[part.start as usize..part.end as usize];
            part.iter().map(|key| u64::from(index.insert(*key, value_of(*key)))).sum::<u64>()
        });
        let after = resident_bytes();
        let new = timed.results.iter().sum();
        let checked = index.check().and_then(|entries| expect("entries", entries, new));
        checked.map_err(|fault| LabError::Wrong { engine: engine.name(), fault })?;
        Ok(FillReport {
            operations: job.count,
            seconds: timed.elapsed.as_secs_f64(),
            resident_bytes: before
                .ok()
                .zip(after.ok())
                .map(|(before, after)| after.saturating_sub(before)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Mix, Purpose, generator, random_half, stream};
    use std::{collections::BTreeMap, sync::Mutex, time::Duration};

    /// What a [`Faulty`] table does wrong.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Fault {
        Nothing,
        /// Inserts of odd keys are reported and not done.
        LosesInserts,
        /// Removed odd keys stay.
        KeepsRemoved,
        /// The value of another key is found.
        ForeignValue,
        /// `next` stands still.
        StuckNext,
    }

    struct Faulty {
        fault: Fault,
        entries: Mutex<BTreeMap<u64, u64>>,
    }

    impl Subject for Faulty {
        fn insert(&self, key: u64, value: u64) -> bool {
            let mut entries = self.entries.lock().unwrap();
            if self.fault == Fault::LosesInserts && key % 2 == 1 {
                return !entries.contains_key(&key);
            }
            entries.insert(key, value).is_none()
        }

        fn remove(&self, key: u64) -> bool {
            let mut entries = self.entries.lock().unwrap();
            if self.fault == Fault::KeepsRemoved && key % 2 == 1 {
                return entries.contains_key(&key);
            }
            entries.remove(&key).is_some()
        }

        fn get(&self, key: u64) -> Option<u64> {
            let found = self.entries.lock().unwrap().get(&key).copied();
            found.map(|value| value ^ u64::from(self.fault == Fault::ForeignValue))
        }

        fn next(&self, key: u64) -> Option<u64> {
            if self.fault == Fault::StuckNext {
                return Some(key);
            }
            let entries = self.entries.lock().unwrap();
            entries.range(key + 1..).next().map(|(key, _)| *key)
        }

        fn check(&self) -> Result<u64, String> {
            Ok(self.entries.lock().unwrap().len() as u64)
        }
    }

    fn faulty(fault: Fault) -> Faulty {
        Faulty {
            fault,
            entries: Mutex::default(),
        }
    }

    fn job(mix: Mix) -> MixJob {
        let range = 1 << 14;
        let streams = (0..2).map(|thread| {
            let mut random = generator(5, Purpose::Stream, 0, thread);
            stream(mix, range, 1 << 12, &mut random)
        });
        MixJob {
            range,
            prefill: random_half(range, &mut generator(5, Purpose::Prefill, 0, 0)),
            streams: streams.collect(),
            duration: Duration::from_millis(30),
        }
    }

    #[test]
    fn a_right_table_is_believed() {
        for mix in Mix::ALL {
            let sample = ordered_mix(&faulty(Fault::Nothing), &job(mix)).unwrap();
            assert!(sample.operations > 0);
        }
        let sample = insert_ranges(&faulty(Fault::Nothing), 1001, 3).unwrap();
        assert_eq!(sample.operations, 1001);
    }

    /// Fails if a table that cheats could still get a figure.
    #[test]
    fn a_wrong_table_is_not_believed() {
        for (fault, mix) in [
            (Fault::LosesInserts, Mix::Update50),
            (Fault::KeepsRemoved, Mix::Update50),
            (Fault::ForeignValue, Mix::Update50),
            (Fault::StuckNext, Mix::NextSeq),
        ] {
            let result = ordered_mix(&faulty(fault), &job(mix));
            assert!(result.is_err(), "{fault:?} {result:?}");
        }
        let result = insert_ranges(&faulty(Fault::LosesInserts), 1001, 3);
        assert!(result.unwrap_err().contains("expected 1001"));
    }
}
