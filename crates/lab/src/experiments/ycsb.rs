//! The workloads of the comparison of indexes by Wang and others (SIGMOD 2018), taken from YCSB: a
//! table is filled, read, updated and scanned.

use super::{Case, Experiment, chosen, threads};
use crate::{
    Settings,
    keys::{Key, KeyList, KeySet, Keys},
    workload::{
        Distribution, Job, Phase, Purpose, TableJob, YcsbJob, YcsbMix, actions, draw_keys,
        generator, stream_length,
    },
};

/// The experiment `ycsb`.
pub(super) struct Ycsb;

/// There is one key for the mix `e` to insert for this many keys in the table: more than any table
/// can insert within the usual time of a run.
const KEYS_A_FRESH_KEY: u64 = 8;

impl Experiment for Ycsb {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn about(&self) -> &'static str {
        "threads fill a table with --keys keys, then read, update or scan it"
    }

    fn is_timed(&self, case: &Case) -> bool {
        case.workload != YcsbMix::Insert.name()
    }

    fn workloads(&self) -> Vec<&'static str> {
        YcsbMix::ALL.map(YcsbMix::name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn key_sets(&self) -> &'static [KeySet] {
        &KeySet::ALL
    }

    fn default_key_sets(&self) -> &'static [KeySet] {
        &[KeySet::MonoInt, KeySet::RandInt, KeySet::Email]
    }

    fn distributions(&self) -> &'static [Distribution] {
        &Distribution::ALL
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let mut groups = Vec::new();
        for key_set in chosen(&settings.key_sets, self.default_key_sets()) {
            for threads in threads(self, settings) {
                let case = |(mix, distribution): (YcsbMix, _)| Case {
                    workload: mix.name(),
                    distribution,
                    key_set: key_set.name(),
                    threads,
                    keys: settings.keys.unwrap_or(self.default_keys(Some(key_set))),
                };
                groups.push(measurements(settings).into_iter().map(case).collect());
            }
        }
        groups
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let set = case.chosen_key_set();
        let fresh = case.keys / KEYS_A_FRESH_KEY + case.threads as u64;
        let keys = set.make(case.keys, fresh, case.threads, settings.seed, run);
        Job::Table(TableJob::Ycsb(match keys {
            Keys::Integers(keys) => Keys::Integers(job(group, keys, run, settings)),
            Keys::Texts(keys) => Keys::Texts(job(group, keys, run, settings)),
        }))
    }
}

/// What is measured on one table, always in this order: filling comes first, and the mix that adds
/// keys comes last.
fn measurements(settings: &Settings) -> Vec<(YcsbMix, Option<Distribution>)> {
    let asked = |mix: &YcsbMix| {
        settings.mixes.is_empty() || settings.mixes.iter().any(|name| name == mix.name())
    };
    let distributions = chosen(&settings.distributions, &Distribution::ALL);
    let of_mix = |mix| match mix {
        YcsbMix::Insert => vec![(mix, None)],
        _ => distributions.iter().map(|d| (mix, Some(*d))).collect(),
    };
    YcsbMix::ALL
        .into_iter()
        .filter(asked)
        .flat_map(of_mix)
        .collect()
}

fn job<K: Key>(group: &[Case], keys: KeyList<K>, run: usize, settings: &Settings) -> YcsbJob<K> {
    let threads = group[0].threads;
    let length = stream_length(threads, &keys);
    let each_thread = 0..threads;
    let phases: Vec<Phase> = group
        .iter()
        .filter_map(|case| {
            let mix: YcsbMix = case.workload.parse().expect("a case is named by its mix");
            let distribution = case.distribution?;
            let of_thread = |thread| {
                let random = &mut generator(settings.seed, Purpose::Stream, run, thread);
                actions(mix, length, random)
            };
            Some(Phase {
                distribution,
                actions: each_thread.clone().map(of_thread).collect(),
            })
        })
        .collect();
    let stream = |distribution| {
        let of_thread = |thread| {
            let random = &mut generator(settings.seed, Purpose::Choices, run, thread);
            draw_keys(&keys.loaded, distribution, length, random)
        };
        (distribution, each_thread.clone().map(of_thread).collect())
    };
    let needed = |distribution: &Distribution| {
        phases
            .iter()
            .any(|phase| phase.distribution == *distribution)
    };
    YcsbJob {
        threads,
        insert_counts: group.iter().any(|case| case.distribution.is_none()),
        streams: Distribution::ALL
            .into_iter()
            .filter(needed)
            .map(stream)
            .collect(),
        phases,
        span: settings.span(),
        keys,
    }
}
