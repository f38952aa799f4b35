//! How fast the changes of a range reach clients that watch it.

use super::{Case, ContestantKind, Experiment, chosen, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Feed, FeedJob, Job},
};

/// With a hundred watchers it takes about this many times the time of writing until the last one
/// has every event.
const TIMES_OF_HUNDRED: usize = 12;

/// The experiment `feeds`.
pub(super) struct Feeds;

impl Experiment for Feeds {
    fn name(&self) -> &'static str {
        "feeds"
    }

    fn about(&self) -> &'static str {
        "clients of 'tremula serve' watch a range while others write there as fast as they can"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Watched
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

    fn estimate(&self, group: &[Case], settings: &Settings) -> f64 {
        let times = match group[0].workload.parse() {
            Ok(Feed::Hundred) => TIMES_OF_HUNDRED,
            Ok(Feed::One) | Err(_) => 1,
        };
        settings.seconds_of(times, 0)
    }

    fn workloads(&self) -> Vec<&'static str> {
        Feed::ALL.map(Feed::name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let all = Feed::ALL.map(|feed| feed.name().to_owned());
        let mut groups = Vec::new();
        for feed in chosen(&settings.mixes, &all) {
            if let Ok(feed) = feed.parse::<Feed>() {
                groups.extend(each_thread_count(self, settings, feed.name(), "watched"));
            }
        }
        groups
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        Job::Feeds(FeedJob {
            feed: case.workload.parse().expect("a case is named by its feed"),
            writers: case.threads,
            keys: case.keys,
            seed: settings.seed,
            run,
            duration: settings.duration,
        })
    }
}
