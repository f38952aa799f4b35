//! Inserts keys and weighs the table; removes all keys and weighs it again.

use super::{Case, Experiment, chosen, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{FillJob, Job, TableJob},
};

/// The experiment `memory`.
pub(super) struct Memory;

impl Experiment for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn about(&self) -> &'static str {
        "bytes a key of a table filled with --keys keys, and after removing all, in a fresh process"
    }

    fn default_threads(&self) -> &'static [usize] {
        &[1]
    }

    fn key_sets(&self) -> &'static [KeySet] {
        &KeySet::ALL
    }

    fn workloads(&self) -> Vec<&'static str> {
        vec!["fill"]
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        chosen(&settings.key_sets, self.default_key_sets())
            .into_iter()
            .flat_map(|key_set| each_thread_count(self, settings, "fill", key_set.name()))
            .collect()
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        Job::Table(TableJob::Fill(FillJob {
            key_set: case.chosen_key_set(),
            count: case.keys,
            threads: case.threads,
            seed: settings.seed,
            run,
        }))
    }
}
