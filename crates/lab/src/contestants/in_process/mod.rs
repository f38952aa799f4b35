//! The tables of this process: the indexes of this project, and the rivals that are Rust crates.

mod adaptation;
mod append;
mod batch;
mod fill;
mod insert_ranges;
mod model;
mod ordered_mix;
mod range_update;
mod tables;
#[cfg(test)]
mod wrong_tables;
mod ycsb;

pub use fill::fill;
pub use tables::Table;
pub(crate) use tables::Task;

use super::{Contestant, ContestantName};
use crate::{
    LabError,
    experiments::Case,
    keys::{Key, Keys},
    measure::Sample,
    memory::FillCommand,
    workload::Job,
};

/// A table of this process as a contestant.
#[derive(Clone, Debug)]
pub struct InProcess {
    table: Table,
    fill_command: Option<FillCommand>,
}

impl InProcess {
    /// The table, with the command for processes that weigh it.
    #[must_use]
    pub const fn new(table: Table, fill_command: Option<FillCommand>) -> Self {
        Self {
            table,
            fill_command,
        }
    }

    /// Carries out what comes in two forms, for integers and for texts.
    fn run<'a, I, T>(&self, work: &'a Keys<I, T>) -> Measured
    where
        &'a I: Task<u64, Output = Measured>,
        &'a T: Task<String, Output = Measured>,
    {
        match work {
            Keys::Integers(work) => self.table.run_integers(work),
            Keys::Texts(work) => self.table.run_texts(work),
        }
    }
}

/// What a job gives: for each of its measurements a sample or what was wrong in it, or what was
/// wrong with the table as a whole.
type Measured = Result<Vec<Result<Sample, String>>, String>;

impl Contestant for InProcess {
    fn name(&self) -> ContestantName {
        self.table.into()
    }

    fn version(&self) -> String {
        self.table.version()
    }

    fn check_against_model(&mut self, case: &Case, seed: u64) -> Result<(), LabError> {
        let checked = match model::keys_of(case, seed) {
            Keys::Integers(keys) => self.table.run_integers(model::Check { keys: &keys, seed }),
            Keys::Texts(keys) => self.table.run_texts(model::Check { keys: &keys, seed }),
        };
        checked.map_err(|fault| LabError::Wrong {
            engine: self.table.name(),
            fault,
        })
    }

    fn measure(&mut self, job: &Job) -> Result<Vec<Result<Sample, LabError>>, LabError> {
        let measured = match job {
            Job::InsertRanges { keys, threads } => {
                self.table.run_integers(insert_ranges::InsertRanges {
                    keys: *keys,
                    threads: *threads,
                })
            }
            Job::Mix(job) => self.table.run_integers(job),
            Job::RangeUpdate(job) => self.table.run_integers(job),
            Job::Adaptation(job) => self.table.run_integers(job),
            Job::Ets(_) | Job::EtsBench(_) => {
                return Err(LabError::Unavailable {
                    engine: self.table.name(),
                    missing: "it is no table of rows",
                });
            }
            Job::Ycsb(job) => self.run(job),
            Job::Sequential(job) => self.run(job),
            Job::Append(job) => self.table.run_integers(job),
            Job::Batch(job) => self.run(job),
            Job::Fill(job) => {
                let command = self.fill_command.as_ref().ok_or(LabError::NoFillCommand {
                    experiment: "memory",
                })?;
                return Ok(vec![Ok(command.run(self.table.name(), job)?)]);
            }
            Job::Signals(_) => {
                return Err(LabError::Unavailable {
                    engine: self.table.name(),
                    missing: "it is a table, and was given the work of a channel",
                });
            }
            Job::Redis(_) => {
                return Err(LabError::Unavailable {
                    engine: self.table.name(),
                    missing: "it is a table, and was given the work of a server",
                });
            }
            Job::Counter(_) => {
                return Err(LabError::Unavailable {
                    engine: self.table.name(),
                    missing: "it is a table, and was given the work of a counter",
                });
            }
            Job::ShardCache(_) => {
                return Err(LabError::Unavailable {
                    engine: self.table.name(),
                    missing: "it is a table, and was given the work of a cache in shards",
                });
            }
        };
        let wrong = |fault| LabError::Wrong {
            engine: self.table.name(),
            fault,
        };
        let samples = measured.map_err(wrong)?.into_iter();
        Ok(samples.map(|sample| sample.map_err(wrong)).collect())
    }
}

/// Says what is wrong if a count is not what it should be.
pub(super) fn expect(what: &str, found: u64, expected: u64) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{found} {what}, expected {expected}"))
    }
}

/// Inserts the keys, and returns how many of them were reported as new.
fn insert_all<K: Key, S: super::Subject<K>>(table: &S, keys: &[K]) -> u64 {
    keys.iter()
        .map(|key| u64::from(table.insert(key, K::value_of(key.view()))))
        .sum()
}
