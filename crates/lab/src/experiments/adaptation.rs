//! One table over time: many threads fill it, one thread uses it, all change one range, all change
//! one key, all append, all scan, and one thread uses it again. Tables with a fixed grain show the
//! value of an adaptive one.

use super::{Case, Experiment, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{
        self, ADAPTATION_SCAN, AdaptationJob, AdaptationPhase, HOT_KEYS, Job, MOST_RANGE, Mix,
        Purpose, STREAM_LENGTH, TableJob, generator,
    },
};

/// The experiment `adaptation`.
pub(super) struct Adaptation;

/// How many slices a phase has.
const SLICES: u32 = 8;

/// How many scans are drawn for a thread, which repeats them.
const SCANS: usize = 1 << 12;

impl Experiment for Adaptation {
    fn name(&self) -> &'static str {
        "adaptation"
    }

    fn about(&self) -> &'static str {
        "a table over time: filled, used by one thread, hot in a range, a key and at its end, scanned, quiet"
    }

    fn default_threads(&self) -> &'static [usize] {
        &[2, 8]
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

    fn estimate(&self, group: &[Case], settings: &Settings) -> f64 {
        settings.seconds_of(AdaptationPhase::ALL.len(), group[0].keys)
    }

    fn workloads(&self) -> Vec<&'static str> {
        vec!["phases_of_use"]
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        each_thread_count(self, settings, "phases_of_use", "dense_half_filled")
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let range = u32::try_from(case.keys).expect("the limits of --keys were checked");
        let random = |purpose, thread| generator(settings.seed, purpose, run, thread);
        let stream = |mix: Mix, range, thread| {
            let random = &mut random(Purpose::Stream, thread);
            workload::stream(mix.shares(), range, STREAM_LENGTH, random)
        };
        let scans = |thread| {
            let random = &mut random(Purpose::Choices, thread);
            workload::scans(range, ADAPTATION_SCAN..=ADAPTATION_SCAN, SCANS, random)
        };
        let hot = range.min(HOT_KEYS);
        let threads = 0..case.threads;
        Job::Table(TableJob::Adaptation(AdaptationJob {
            range,
            fill: workload::random_half(range, &mut random(Purpose::Prefill, 0)),
            // The number after those of the threads in the hot range, so that this stream differs
            // from theirs.
            single: stream(Mix::Update50, range, case.threads),
            hot_range: threads
                .clone()
                .map(|thread| stream(Mix::Update100, hot, thread))
                .collect(),
            scans: threads.map(scans).collect(),
            slices: SLICES,
            slice: settings.duration / SLICES,
        }))
    }
}
