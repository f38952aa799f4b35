//! In one half filled range, half of the threads scan long ranges, and the other half update.
//!
//! The workload shows whether long scans and updates wait for each other.

use super::{Case, Experiment, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{
        self, Job, MOST_RANGE, Mix, Purpose, RangeUpdateJob, SCAN_LENGTHS, STREAM_LENGTH, TableJob,
        generator,
    },
};

/// How many scans are drawn for a thread, which repeats them.
const SCANS: usize = 1 << 12;

/// The experiment `range_update`.
pub(super) struct RangeUpdate;

impl Experiment for RangeUpdate {
    fn name(&self) -> &'static str {
        "range_update"
    }

    fn about(&self) -> &'static str {
        "every other thread scans 1000 to 10000 keys at a time, the others update; --keys integers, half of them present"
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

    fn workloads(&self) -> Vec<&'static str> {
        vec!["range_update"]
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        each_thread_count(self, settings, "range_update", "dense_half_filled")
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let range = u32::try_from(case.keys).expect("the limits of --keys were checked");
        let random = |purpose, thread| generator(settings.seed, purpose, run, thread);
        let updates = |thread| {
            let random = &mut random(Purpose::Stream, thread);
            workload::stream(Mix::Update100.shares(), range, STREAM_LENGTH, random)
        };
        let scans = |thread| {
            let random = &mut random(Purpose::Choices, thread);
            workload::scans(range, SCAN_LENGTHS, SCANS, random)
        };
        let (scanners, updaters): (Vec<_>, Vec<_>) =
            (0..case.threads).partition(|thread| thread % 2 == 1);
        Job::Table(TableJob::RangeUpdate(RangeUpdateJob {
            range,
            prefill: workload::random_half(range, &mut random(Purpose::Prefill, 0)),
            updates: updaters.into_iter().map(updates).collect(),
            scans: scanners.into_iter().map(scans).collect(),
            span: settings.span(),
        }))
    }
}
