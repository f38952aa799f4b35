//! Threads remove all keys of a filled table, in an order that has nothing to do with the one in
//! which they were inserted.

use super::{Case, Experiment, chosen, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Job, Purpose, RemoveJob, TableJob, generator},
};

/// The experiment `remove`.
pub(super) struct Remove;

/// How many times each key is inserted or removed: into the table and out of it.
const PASSES: u64 = 2;

impl Experiment for Remove {
    fn name(&self) -> &'static str {
        "remove"
    }

    fn about(&self) -> &'static str {
        "threads remove all of --keys integers from one table, in a random order"
    }

    fn estimate(&self, group: &[Case], settings: &Settings) -> f64 {
        settings.seconds_of(0, PASSES * group[0].keys)
    }

    fn workloads(&self) -> Vec<&'static str> {
        vec!["remove"]
    }

    fn key_sets(&self) -> &'static [KeySet] {
        &[KeySet::RandInt, KeySet::MonoInt]
    }

    fn default_key_sets(&self) -> &'static [KeySet] {
        &[KeySet::RandInt]
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let key_sets = chosen(&settings.key_sets, self.default_key_sets());
        key_sets
            .into_iter()
            .flat_map(|key_set| each_thread_count(self, settings, "remove", key_set.name()))
            .collect()
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let keys = case.integers(settings.seed, run);
        let random = &mut generator(settings.seed, Purpose::Choices, run, 0);
        Job::Table(TableJob::Remove(RemoveJob::new(keys, case.threads, random)))
    }
}
