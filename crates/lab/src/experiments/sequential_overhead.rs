//! One thread: what being ready for other threads costs, compared with a plain `BTreeMap`.

use super::{Case, ContestantKind, Experiment, chosen};
use crate::{
    Settings,
    keys::{Key, KeyList, KeySet, Keys},
    workload::{
        Distribution, Job, Purpose, SequentialJob, SequentialOperation, draw_keys, generator,
        stream_length,
    },
};

/// The experiment `sequential_overhead`.
pub(super) struct SequentialOverhead;

impl Experiment for SequentialOverhead {
    fn name(&self) -> &'static str {
        "sequential_overhead"
    }

    fn about(&self) -> &'static str {
        "one thread: what concurrency costs against a plain BTreeMap of --keys keys"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Sequential
    }

    fn default_threads(&self) -> &'static [usize] {
        &[1]
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        1_000_000
    }

    fn is_timed(&self, case: &Case) -> bool {
        operation(case).is_timed()
    }

    fn workloads(&self) -> Vec<&'static str> {
        SequentialOperation::ALL
            .map(SequentialOperation::name)
            .into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn key_sets(&self) -> &'static [KeySet] {
        &[KeySet::RandInt, KeySet::Email]
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let is_chosen =
            |name: &str| settings.mixes.is_empty() || settings.mixes.iter().any(|mix| mix == name);
        let group = |key_set: KeySet| {
            let case = |workload| Case {
                workload,
                distribution: None,
                key_set: key_set.name(),
                threads: 1,
                keys: settings.keys.unwrap_or(self.default_keys(Some(key_set))),
            };
            let workloads = self.workloads().into_iter();
            workloads.filter(|name| is_chosen(name)).map(case).collect()
        };
        chosen(&settings.key_sets, self.default_key_sets())
            .into_iter()
            .map(group)
            .collect()
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let made = case
            .chosen_key_set()
            .make(case.keys, 0, 1, settings.seed, run);
        Job::Sequential(match made {
            Keys::Integers(keys) => Keys::Integers(job(group, keys, run, settings)),
            Keys::Texts(keys) => Keys::Texts(job(group, keys, run, settings)),
        })
    }
}

fn operation(case: &Case) -> SequentialOperation {
    let mut all = SequentialOperation::ALL.into_iter();
    all.find(|operation| operation.name() == case.workload)
        .expect("a case is named by its operation")
}

fn job<K: Key>(
    group: &[Case],
    keys: KeyList<K>,
    run: usize,
    settings: &Settings,
) -> SequentialJob<K> {
    let random = &mut generator(settings.seed, Purpose::Choices, run, 0);
    let length = stream_length(1, &keys);
    SequentialJob {
        stream: draw_keys(&keys.loaded, Distribution::Uniform, length, random),
        operations: group.iter().map(operation).collect(),
        span: settings.span(),
        keys,
    }
}
