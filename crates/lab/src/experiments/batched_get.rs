//! Looks present keys up in batches, and one by one for comparison.

use super::{Case, Experiment, chosen, threads};
use crate::{
    Settings,
    keys::{Key, KeyList, KeySet, Keys},
    workload::{
        BatchJob, Distribution, Job, LookupStyle, Purpose, TableJob, draw_keys, generator,
        stream_length,
    },
};

/// The experiment `batched_get`.
pub(super) struct BatchedGet;

/// How many keys make a batch.
const BATCH: usize = 16;

/// The workloads, and how each looks keys up.
const STYLES: [(&str, LookupStyle); 2] = [
    ("one_by_one", LookupStyle::OneByOne),
    ("batches_of_16", LookupStyle::Batched),
];

impl Experiment for BatchedGet {
    fn name(&self) -> &'static str {
        "batched_get"
    }

    fn about(&self) -> &'static str {
        "threads look up --keys keys at random, one a call and 16 a call"
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn key_sets(&self) -> &'static [KeySet] {
        &[KeySet::RandInt, KeySet::Email]
    }

    fn distributions(&self) -> &'static [Distribution] {
        &Distribution::ALL
    }

    fn default_distributions(&self) -> &'static [Distribution] {
        &[Distribution::Uniform]
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn workloads(&self) -> Vec<&'static str> {
        STYLES.map(|(name, _)| name).into()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let chosen_workload =
            |name: &str| settings.mixes.is_empty() || settings.mixes.iter().any(|mix| mix == name);
        let mut groups = Vec::new();
        for key_set in chosen(&settings.key_sets, self.default_key_sets()) {
            for threads in threads(self, settings) {
                for distribution in chosen(&settings.distributions, self.default_distributions()) {
                    let case = |(workload, _)| Case {
                        workload,
                        distribution: Some(distribution),
                        key_set: key_set.name(),
                        threads,
                        keys: settings.keys.unwrap_or(self.default_keys(Some(key_set))),
                    };
                    let styles = STYLES.into_iter().filter(|(name, _)| chosen_workload(name));
                    groups.push(styles.map(case).collect());
                }
            }
        }
        groups
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let set = case.chosen_key_set();
        let keys = set.make(case.keys, 0, case.threads, settings.seed, run);
        Job::Table(TableJob::Batch(match keys {
            Keys::Integers(keys) => Keys::Integers(job(group, keys, run, settings)),
            Keys::Texts(keys) => Keys::Texts(job(group, keys, run, settings)),
        }))
    }
}

fn job<K: Key>(group: &[Case], keys: KeyList<K>, run: usize, settings: &Settings) -> BatchJob<K> {
    let Case {
        threads,
        distribution,
        ..
    } = group[0];
    let distribution = distribution.unwrap_or(Distribution::Uniform);
    // Whole batches, so that the last one of the stream is not smaller.
    let length = stream_length(threads, &keys).next_multiple_of(BATCH);
    let stream = |thread| {
        let random = &mut generator(settings.seed, Purpose::Choices, run, thread);
        draw_keys(&keys.loaded, distribution, length, random)
    };
    let of_case = |case: &Case| {
        let style = STYLES.iter().find(|(name, _)| *name == case.workload);
        style.map(|(_, style)| *style)
    };
    BatchJob {
        streams: (0..threads).map(stream).collect(),
        batch: BATCH,
        styles: group.iter().filter_map(of_case).collect(),
        span: settings.span(),
        keys,
    }
}
