//! The server compared with a real Redis, both driven by the real `redis-benchmark`.

use super::{Case, ContestantKind, Experiment, chosen, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Job, Pipelining, RedisCommand, RedisJob},
};

/// The experiment `redis`.
pub(super) struct Redis;

impl Experiment for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn about(&self) -> &'static str {
        "redis-benchmark sends commands to 'tremula serve' and to a real Redis"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Servers
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
        RedisCommand::ALL.map(RedisCommand::name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        commands(self, settings)
    }

    fn job(&self, group: &[Case], _run: usize, settings: &Settings) -> Job {
        Job::Redis(load(&group[0], settings))
    }
}

/// A case for each of the experiment's commands, each pipelining and each number of clients, each a
/// group of its own. A transaction counts as a command.
pub(super) fn commands(experiment: &dyn Experiment, settings: &Settings) -> Vec<Vec<Case>> {
    let names = experiment.workloads();
    let all: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let wanted = chosen(&settings.mixes, &all);
    let mut groups = Vec::new();
    for workload in wanted {
        let Some(&workload) = names.iter().find(|name| **name == workload) else {
            continue;
        };
        for pipelining in Pipelining::ALL {
            let key_set = pipelining.name();
            groups.extend(each_thread_count(experiment, settings, workload, key_set));
        }
    }
    groups
}

/// What clients send in this case.
pub(super) fn load(case: &Case, settings: &Settings) -> RedisJob {
    RedisJob {
        command: case
            .workload
            .parse()
            .expect("a case is named by its command"),
        pipelining: pipelining(case),
        clients: case.threads,
        keys: case.keys,
        duration: settings.duration,
    }
}

/// How many requests a client sends at once in this case.
pub(super) fn pipelining(case: &Case) -> Pipelining {
    Pipelining::ALL
        .into_iter()
        .find(|pipelining| pipelining.name() == case.key_set)
        .expect("a case names its pipelining")
}
