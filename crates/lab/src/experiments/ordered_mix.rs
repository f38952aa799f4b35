//! Threads run a mix of updates, lookups and sequences of `next` over one half filled range.
//!
//! The workload of the papers on contention-adapting trees. As many keys are inserted as are
//! removed, so the table stays half filled.

use super::{Case, Experiment, each_thread_count};
use crate::{
    Settings,
    workload::{self, Job, MOST_RANGE, Mix, MixJob, Purpose, STREAM_LENGTH, generator},
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

    fn default_keys(&self) -> u64 {
        1 << 20
    }

    fn keys_limits(&self) -> (u64, u64) {
        (2, u64::from(MOST_RANGE))
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn workloads(&self) -> Vec<&'static str> {
        Mix::ALL.map(Mix::name).into()
    }

    fn cases(&self, settings: &Settings) -> Vec<Case> {
        let mixes: &[Mix] = if settings.mixes.is_empty() {
            &Mix::ALL
        } else {
            &settings.mixes
        };
        mixes
            .iter()
            .flat_map(|mix| each_thread_count(self, settings, mix.name(), "dense_half_filled"))
            .collect()
    }

    fn job(&self, case: &Case, run: usize, settings: &Settings) -> Job {
        let mix: Mix = case.workload.parse().expect("a case is named by its mix");
        let range = u32::try_from(case.keys).expect("the limits of --keys were checked");
        let random = |purpose, thread| generator(settings.seed, purpose, run, thread);
        let stream = |thread| {
            let random = &mut random(Purpose::Stream, thread);
            workload::stream(mix, range, STREAM_LENGTH, random)
        };
        Job::Mix(MixJob {
            range,
            prefill: workload::random_half(range, &mut random(Purpose::Prefill, 0)),
            streams: (0..case.threads).map(stream).collect(),
            duration: settings.duration,
        })
    }
}
