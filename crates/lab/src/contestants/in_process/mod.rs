//! The tables of this process: the indexes of this project, and the rivals that are Rust crates.

mod adaptation;
mod append;
mod batch;
mod fill;
mod insert_ranges;
mod long_scan;
mod model;
mod ordered_mix;
mod range_update;
mod remove;
mod snapshots;
mod tables;
#[cfg(test)]
mod wrong_tables;
mod ycsb;

pub use fill::fill;
pub use tables::Table;

use super::{
    bw_variant::BwVariant,
    contestant::{
        Asked, Contestant, Entrant, Measures, Samples, Side, Started, Starter, own_version, samples,
    },
    grain::FixedGrain,
    rival::Rival,
    subject::{Measured, Task},
};
use crate::{
    LabError,
    case::{Case, ContestantKind},
    keys::{KeySet, Keys},
    memory::FillCommand,
    workload::{SequentialWork, TableJob},
};
use tremula_index::{Engine, Scans};
use tremula_papers::AnyEngine;

impl Entrant for Table {
    fn name(&self) -> &'static str {
        Self::name(*self)
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Index(_) => "an index of Tremula, in this process",
            Self::BwVariant(variant) => variant.about(),
            Self::FixedGrain(grain) => grain.about(),
            Self::Rival(rival) => rival.about(),
        }
    }

    fn side(&self) -> Side {
        match self {
            Self::Index(_) => Side::Ours,
            Self::BwVariant(_) | Self::FixedGrain(_) => Side::Variant,
            Self::Rival(_) => Side::Rival,
        }
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        match self {
            Self::Index(_) | Self::Rival(_) => {
                &[ContestantKind::Tables, ContestantKind::Sequential]
            }
            Self::BwVariant(_) | Self::FixedGrain(_) => &[ContestantKind::Tables],
        }
    }

    fn missing(&self) -> Option<&'static str> {
        match self {
            Self::Rival(_) => Rival::missing(),
            _ => None,
        }
    }

    fn refuses(&self, asked: &Asked<'_>) -> Option<&'static str> {
        let key_set: Option<KeySet> = asked.key_set.and_then(|name| name.parse().ok());
        match (self, asked.experiment) {
            (Self::BwVariant(_), BwVariant::EXPERIMENT) => None,
            (Self::BwVariant(_), _) => Some("it takes part in bw_tree_ablation only"),
            (_, BwVariant::EXPERIMENT) => Some("it has not the switches of bw_tree"),
            (Self::FixedGrain(_), FixedGrain::EXPERIMENT) => None,
            (Self::FixedGrain(_), _) => Some("it takes part in adaptation only"),
            (
                Self::Index(AnyEngine::Index(
                    Engine::CaTree
                    | Engine::LfcaTree
                    | Engine::BTree
                    | Engine::Aspen
                    | Engine::Locked,
                )),
                FixedGrain::EXPERIMENT,
            ) => None,
            (_, FixedGrain::EXPERIMENT) => Some(
                "the contention-adapting trees are compared with aspen, b_tree and locked there",
            ),
            (Self::Rival(rival), "batched_get") if !rival.has_batches() => {
                Some("it has no batched lookups")
            }
            (Self::Rival(rival), "long_scan")
                if asked.workload == Some("descending") && !rival.scans_down() =>
            {
                Some("it has no descending scans")
            }
            (Self::Rival(rival), "snapshot_beside_writers") if !rival.gives_snapshots() => {
                Some("its scans are not as of one moment")
            }
            (Self::Rival(rival), _) => rival.refuses(key_set?),
            (Self::Index(engine), "snapshot_beside_writers")
                if engine.facts().scans != Scans::OneMoment =>
            {
                Some("its scans are not as of one moment")
            }
            (Self::Index(_), _) => None,
        }
    }

    fn start(&self, kind: ContestantKind, starter: &mut Starter) -> Result<Contestant, LabError> {
        let table = Box::new(InProcess::new(*self, starter.fill_command.clone()));
        Ok(match kind {
            ContestantKind::Sequential => Contestant::Sequential(table),
            _ => Contestant::Table(table),
        })
    }
}

/// A table of this process as a contestant.
#[derive(Clone, Debug)]
pub struct InProcess {
    table: Table,
    fill_command: Option<FillCommand>,
}

impl InProcess {
    /// The table, with the command that starts processes to weigh it.
    #[must_use]
    pub const fn new(table: Table, fill_command: Option<FillCommand>) -> Self {
        Self {
            table,
            fill_command,
        }
    }

    /// Runs the work in the form that it comes in, for integers or for texts.
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

impl Started for InProcess {
    fn name(&self) -> &'static str {
        self.table.name()
    }

    fn version(&self) -> String {
        match self.table {
            Table::Index(_) | Table::BwVariant(_) | Table::FixedGrain(_) => own_version(),
            Table::Rival(rival) => rival.version().to_owned(),
        }
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
}

impl Measures<TableJob> for InProcess {
    fn measure(&mut self, job: &TableJob) -> Samples {
        let measured = match job {
            TableJob::InsertRanges { keys, threads } => {
                self.table.run_integers(insert_ranges::InsertRanges {
                    keys: *keys,
                    threads: *threads,
                })
            }
            TableJob::Mix(job) => self.table.run_integers(job),
            TableJob::RangeUpdate(job) => self.table.run_integers(job),
            TableJob::Adaptation(job) => self.table.run_integers(job),
            TableJob::Ycsb(job) => self.run(job),
            TableJob::Append(job) => self.table.run_integers(job),
            TableJob::Batch(job) => self.run(job),
            TableJob::Remove(job) => self.table.run_integers(job),
            TableJob::LongScan(job) => self.table.run_integers(job),
            TableJob::Snapshots(job) => self.table.run_integers(job),
            TableJob::Fill(job) => {
                let command = self.fill_command.as_ref().ok_or(LabError::NoFillCommand {
                    experiment: "memory",
                })?;
                return Ok(vec![Ok(command.run(self.table.name(), job)?)]);
            }
        };
        samples(self.table.name(), measured)
    }
}

impl Measures<SequentialWork> for InProcess {
    fn measure(&mut self, job: &SequentialWork) -> Samples {
        samples(self.table.name(), self.run(job))
    }
}
