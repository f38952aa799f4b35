//! P threads insert N integers into one table, each its own contiguous range, ascending.
//!
//! The workload of the contention-adapting tree in ETS. Each thread appends at a place of its
//! own, so a structure that follows contention should end up with one grain a thread.

use super::{Case, Experiment, each_thread_count};
use crate::{
    Settings,
    workload::{FillJob, FillKeys, Job},
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

    fn default_keys(&self) -> u64 {
        2_000_000
    }

    fn keys_limits(&self) -> (u64, u64) {
        (1, 1 << 40)
    }

    fn workloads(&self) -> Vec<&'static str> {
        vec!["insert_ascending"]
    }

    fn cases(&self, settings: &Settings) -> Vec<Case> {
        let key_set = FillKeys::Ranges.key_set();
        each_thread_count(self, settings, "insert_ascending", key_set)
    }

    fn job(&self, case: &Case, _run: usize, _settings: &Settings) -> Job {
        Job::InsertRanges {
            keys: case.keys,
            threads: case.threads,
        }
    }

    fn weighing(&self, case: &Case, settings: &Settings) -> Option<Job> {
        settings.fill_command.as_ref()?;
        Some(Job::Fill(FillJob {
            keys: FillKeys::Ranges,
            count: case.keys,
            threads: case.threads,
            seed: settings.seed,
            run: 0,
        }))
    }
}
