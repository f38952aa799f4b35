//! An appendable cache in shards, under each strategy of `tremula-shard`. The load is that of the
//! article on thread-per-core from which the strategies come, with what the article leaves out:
//! small values, hot ids, and the time that a request takes.

use super::{Case, ContestantKind, Experiment, chosen, threads};
use crate::{
    Settings,
    contestants::peak_of_affinity,
    keys::KeySet,
    workload::{CacheTraffic, Job, ShardCacheJob},
};
use std::{sync::LazyLock, thread};

/// The experiment `shard_cache`.
pub(super) struct ShardCache;

/// Numbers of workers: powers of two, up to the cores.
static WORKERS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let powers = (0..usize::BITS).map(|bit| 1 << bit);
    let mut workers: Vec<usize> = powers.take_while(|workers| *workers < cores).collect();
    workers.push(cores);
    workers
});

/// The fraction of the peak rate of `affinity` at which [`CacheTraffic::Paced`] sends.
const PACED: f64 = 0.5;

/// Requests a second if the peak could not be measured; the measurement that follows reports why.
const UNKNOWN_PEAK: f64 = 1e5;

impl Experiment for ShardCache {
    fn name(&self) -> &'static str {
        "shard_cache"
    }

    fn about(&self) -> &'static str {
        "128 requesters append to a cache in shards and get from it, under each strategy"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Shards
    }

    fn default_threads(&self) -> &'static [usize] {
        &WORKERS
    }

    fn default_threads_in_words(&self) -> String {
        "powers of two up to the cores".to_owned()
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        1024
    }

    fn keys_limits(&self) -> (u64, u64) {
        // All values fit into the cache twice, however they are spread over its shards.
        (1, 1024)
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn working_threads(&self, case: &Case) -> usize {
        // The requesters have as many threads as the workers.
        2 * case.threads
    }

    fn workloads(&self) -> Vec<&'static str> {
        CacheTraffic::ALL.map(CacheTraffic::name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let all = CacheTraffic::ALL.map(|traffic| traffic.name().to_owned());
        let traffic = chosen(&settings.mixes, &all);
        let mut groups = Vec::new();
        for traffic in traffic.iter().filter_map(|name| name.parse().ok()) {
            let traffic: CacheTraffic = traffic;
            for threads in threads(self, settings) {
                groups.push(vec![Case {
                    workload: traffic.name(),
                    distribution: None,
                    key_set: traffic.size().name(),
                    threads,
                    keys: settings.keys.unwrap_or(self.default_keys(None)),
                }]);
            }
        }
        groups
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let traffic = case.workload.parse();
        let mut job = ShardCacheJob {
            traffic: traffic.expect("a case is named by its traffic"),
            workers: case.threads,
            ids: case.keys,
            rate: None,
            span: settings.span(),
            seed: settings.seed,
            run,
        };
        if job.traffic == CacheTraffic::Paced {
            job.rate = Some(peak_of_affinity(&job).unwrap_or(UNKNOWN_PEAK) * PACED);
        }
        Job::ShardCache(job)
    }
}
