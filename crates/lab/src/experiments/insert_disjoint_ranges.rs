//! P threads insert N integers into one table, each its own contiguous range, ascending.
//!
//! The workload of the contention-adapting tree in ETS. Each thread appends at a place of its
//! own, so a structure that follows contention should end up with one grain a thread.

use super::{Case, Experiment, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{FillJob, Job, TableJob},
};

/// The experiment `insert_disjoint_ranges`.
pub(super) struct InsertDisjointRanges;

impl Experiment for InsertDisjointRanges {
    fn name(&self) -> &'static str {
        "insert_disjoint_ranges"
    }

    fn about(&self) -> &'static str {
        "threads insert --keys integers in all, each its own range, ascending, into one table"
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        2_000_000
    }

    fn workloads(&self) -> Vec<&'static str> {
        vec!["insert_ascending"]
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let key_set = KeySet::MonoInt.name();
        each_thread_count(self, settings, "insert_ascending", key_set)
    }

    fn job(&self, group: &[Case], _run: usize, _settings: &Settings) -> Job {
        Job::Table(TableJob::InsertRanges {
            keys: group[0].keys,
            threads: group[0].threads,
        })
    }

    fn weighing(&self, group: &[Case], settings: &Settings) -> Option<Job> {
        settings.fill_command.as_ref()?;
        Some(Job::Table(TableJob::Fill(FillJob {
            key_set: KeySet::MonoInt,
            count: group[0].keys,
            threads: group[0].threads,
            seed: settings.seed,
            run: 0,
        })))
    }
}
