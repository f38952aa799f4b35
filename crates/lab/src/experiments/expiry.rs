//! How late keys expire, and how long others wait meanwhile.

use super::{Case, ContestantKind, Experiment, chosen, threads};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Expiring, ExpiryJob, Job},
};

/// The experiment `expiry`.
pub(super) struct Expiry;

impl Experiment for Expiry {
    fn name(&self) -> &'static str {
        "expiry"
    }

    fn about(&self) -> &'static str {
        "how late a key that expires is unseen and reported, and how long a client waits as many do"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Expiring
    }

    fn default_threads(&self) -> &'static [usize] {
        &[4]
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
        Expiring::ALL.map(Expiring::name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let all = Expiring::ALL.map(|expiring| expiring.name().to_owned());
        let mut groups = Vec::new();
        for expiring in chosen(&settings.mixes, &all) {
            let Ok(expiring) = expiring.parse::<Expiring>() else {
                continue;
            };
            for threads in threads(self, settings) {
                groups.push(vec![Case {
                    workload: expiring.name(),
                    distribution: None,
                    key_set: "expiring",
                    threads,
                    keys: settings.keys.unwrap_or(self.default_keys(None)),
                }]);
            }
        }
        groups
    }

    fn job(&self, group: &[Case], _run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        Job::Expiry(ExpiryJob {
            expiring: case.workload.parse().expect("a case is named by its way"),
            clients: case.threads,
            keys: case.keys,
            duration: settings.duration,
        })
    }
}
