//! Random 64-bit keys are inserted, and the table is weighed.

use super::{Case, Experiment, each_thread_count};
use crate::{
    Settings,
    workload::{FillJob, FillKeys, Job},
};

/// The experiment `memory`.
pub(super) struct Memory;

impl Experiment for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn about(&self) -> &'static str {
        "bytes a key of a table filled with --keys random 64-bit keys, in a fresh process"
    }

    fn default_threads(&self) -> &'static [usize] {
        &[1]
    }

    fn default_keys(&self) -> u64 {
        5_000_000
    }

    fn keys_limits(&self) -> (u64, u64) {
        (1, 1 << 32)
    }

    fn workloads(&self) -> Vec<&'static str> {
        vec!["insert_random"]
    }

    fn cases(&self, settings: &Settings) -> Vec<Case> {
        each_thread_count(self, settings, "insert_random", FillKeys::Random.key_set())
    }

    fn job(&self, case: &Case, run: usize, settings: &Settings) -> Job {
        Job::Fill(FillJob {
            keys: FillKeys::Random,
            count: case.keys,
            threads: case.threads,
            seed: settings.seed,
            run,
        })
    }
}
