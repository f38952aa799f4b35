//! Threads run a mix of updates, lookups and sequences of `next` over one half filled range.
//!
//! The workload of the papers on contention-adapting trees. As many keys are inserted as are
//! removed, so the table stays half filled.

use super::{Case, Experiment, chosen, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{self, Job, MOST_RANGE, Mix, MixJob, Purpose, STREAM_LENGTH, TableJob, generator},
};

/// The experiment `ordered_mix`.
pub(super) struct OrderedMix;

impl Experiment for OrderedMix {
    fn name(&self) -> &'static str {
        "ordered_mix"
    }

    fn about(&self) -> &'static str {
        "threads update, look up and step through a range of --keys integers, half of them present"
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        1 << 20
    }

    fn keys_limits(&self) -> (u64, u64) {
        (2, u64::from(MOST_RANGE))
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn workloads(&self) -> Vec<&'static str> {
        self.mixes()
    }

    fn mixes(&self) -> Vec<&'static str> {
        Mix::ALL.map(Mix::name).into()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let chosen = chosen(&settings.mixes, &Mix::ALL.map(|mix| mix.name().to_owned()));
        let mixes = chosen.iter().filter_map(|mix| mix.parse::<Mix>().ok());
        mixes
            .flat_map(|mix| each_thread_count(self, settings, mix.name(), "dense_half_filled"))
            .collect()
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let mix: Mix = case.workload.parse().expect("a case is named by its mix");
        let range = u32::try_from(case.keys).expect("the limits of --keys were checked");
        let random = |purpose, thread| generator(settings.seed, purpose, run, thread);
        let stream = |thread| {
            let random = &mut random(Purpose::Stream, thread);
            workload::stream(mix.shares(), range, STREAM_LENGTH, random)
        };
        Job::Table(TableJob::Mix(MixJob {
            range,
            prefill: workload::random_half(range, &mut random(Purpose::Prefill, 0)),
            streams: (0..case.threads).map(stream).collect(),
            span: settings.span(),
        }))
    }
}
