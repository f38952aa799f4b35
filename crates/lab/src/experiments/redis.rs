//! The server compared with a real Redis, both driven by the real `redis-benchmark`.

use super::{Case, ContestantKind, Experiment, chosen, threads};
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
        let all = RedisCommand::ALL.map(|command| command.name().to_owned());
        let mut groups = Vec::new();
        for command in chosen(&settings.mixes, &all) {
            let Ok(command) = command.parse::<RedisCommand>() else {
                continue;
            };
            for pipelining in Pipelining::ALL {
                for threads in threads(self, settings) {
                    groups.push(vec![Case {
                        workload: command.name(),
                        distribution: None,
                        key_set: pipelining.name(),
                        threads,
                        keys: settings.keys.unwrap_or(self.default_keys(None)),
                    }]);
                }
            }
        }
        groups
    }

    fn job(&self, group: &[Case], _run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        Job::Redis(RedisJob {
            command: case
                .workload
                .parse()
                .expect("a case is named by its command"),
            pipelining: pipelining(case),
            clients: case.threads,
            keys: case.keys,
            duration: settings.duration,
        })
    }
}

/// How many requests a client sends at once in this case.
pub(super) fn pipelining(case: &Case) -> Pipelining {
    Pipelining::ALL
        .into_iter()
        .find(|pipelining| pipelining.name() == case.key_set)
        .expect("a case names its pipelining")
}
