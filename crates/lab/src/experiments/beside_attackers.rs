//! How long a client waits whose thread others attack.

use super::{Case, ContestantKind, Experiment, chosen, threads};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Attack, AttackJob, Job},
};

/// The experiment `beside_attackers`.
pub(super) struct BesideAttackers;

impl Experiment for BesideAttackers {
    fn name(&self) -> &'static str {
        "beside_attackers"
    }

    fn about(&self) -> &'static str {
        "one client of 'tremula serve' waits while others on its thread send commands that take long"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Attacked
    }

    fn default_threads(&self) -> &'static [usize] {
        &[1, 4]
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        1_000_000
    }

    fn keys_limits(&self) -> (u64, u64) {
        (1, 100_000_000)
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn workloads(&self) -> Vec<&'static str> {
        Attack::ALL.map(Attack::name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let all = Attack::ALL.map(|attack| attack.name().to_owned());
        let mut groups = Vec::new();
        for attack in chosen(&settings.mixes, &all) {
            let Ok(attack) = attack.parse::<Attack>() else {
                continue;
            };
            for threads in threads(self, settings) {
                groups.push(vec![Case {
                    workload: attack.name(),
                    distribution: None,
                    key_set: "one_thread",
                    threads,
                    keys: settings.keys.unwrap_or(self.default_keys(None)),
                }]);
            }
        }
        groups
    }

    fn job(&self, group: &[Case], _run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        Job::Attack(AttackJob {
            attack: case
                .workload
                .parse()
                .expect("a case is named by its attack"),
            attackers: case.threads,
            keys: case.keys,
            duration: settings.duration,
        })
    }
}
