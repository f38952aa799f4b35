//! One counter that all threads change: one cell and many cells, alone and as the size of a table.

use super::{Case, ContestantKind, Experiment, chosen, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{CounterJob, CounterMix, Job},
};

/// The experiment `counter_scaling`.
pub(super) struct CounterScaling;

impl Experiment for CounterScaling {
    fn name(&self) -> &'static str {
        "counter_scaling"
    }

    fn about(&self) -> &'static str {
        "threads change one counter, and read it: centralised against decentralised"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Counters
    }

    fn default_threads(&self) -> &'static [usize] {
        &[1, 2, 4, 8]
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        1000
    }

    fn keys_limits(&self) -> (u64, u64) {
        (0, 10_000_000)
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn workloads(&self) -> Vec<&'static str> {
        CounterMix::ALL.map(CounterMix::name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let all = CounterMix::ALL.map(|mix| mix.name().to_owned());
        chosen(&settings.mixes, &all)
            .iter()
            .filter_map(|mix| mix.parse::<CounterMix>().ok())
            .flat_map(|mix| each_thread_count(self, settings, mix.name(), "counted"))
            .collect()
    }

    fn job(&self, group: &[Case], _run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        Job::Counter(CounterJob {
            mix: case.workload.parse().expect("a case is named by its mix"),
            threads: case.threads,
            start: case.keys,
            span: settings.span(),
        })
    }
}
