//! All threads append to one table, each with keys that it reads from the clock.
//!
//! In the comparison by Wang and others every structure collapses on this workload, because all
//! threads want the rightmost leaf.

use super::{Case, Experiment, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{AppendJob, Job, TableJob},
};

/// The experiment `high_contention`.
pub(super) struct HighContention;

impl Experiment for HighContention {
    fn name(&self) -> &'static str {
        "high_contention"
    }

    fn about(&self) -> &'static str {
        "threads insert --keys time stamps in all into one table; how often they had to begin again"
    }

    fn key_sets(&self) -> &'static [KeySet] {
        &[KeySet::Append]
    }

    fn workloads(&self) -> Vec<&'static str> {
        vec!["append"]
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        each_thread_count(self, settings, "append", KeySet::Append.name())
    }

    fn job(&self, group: &[Case], _run: usize, _settings: &Settings) -> Job {
        Job::Table(TableJob::Append(AppendJob {
            count: group[0].keys,
            threads: group[0].threads,
        }))
    }
}
