//! What it costs a server that somebody looks at its page.

use super::redis::{commands, load};
use super::{Case, ContestantKind, Experiment};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Job, ObserveJob, RedisCommand},
};

/// The experiment `observing`.
pub(super) struct Observing;

/// What is sent: a command that reads, and one that writes.
const COMMANDS: [RedisCommand; 2] = [RedisCommand::Get, RedisCommand::Set];

impl Experiment for Observing {
    fn name(&self) -> &'static str {
        "observing"
    }

    fn about(&self) -> &'static str {
        "redis-benchmark sends commands to 'tremula serve' while its page is open, and without a page"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Observed
    }

    fn default_threads(&self) -> &'static [usize] {
        &[50]
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        100_000
    }

    fn keys_limits(&self) -> (u64, u64) {
        (1, 100_000_000)
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn workloads(&self) -> Vec<&'static str> {
        COMMANDS.map(RedisCommand::name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        commands(self, settings)
    }

    fn job(&self, group: &[Case], _run: usize, settings: &Settings) -> Job {
        Job::Observe(ObserveJob {
            load: load(&group[0], settings),
        })
    }
}
