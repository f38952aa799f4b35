//! Scans of ten thousand entries, in both directions.

use super::{Case, Experiment, chosen, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Job, LongScanJob, Purpose, TableJob, expected_scans, generator},
};
use tremula_index::Direction;

/// The experiment `long_scan`.
pub(super) struct LongScans;

/// The workloads, and the direction of each. A table that scans in one direction only is measured
/// in that one.
const DIRECTIONS: [(&str, Direction); 2] = [
    ("ascending", Direction::Ascending),
    ("descending", Direction::Descending),
];

/// How many scans are drawn for a thread, which repeats them: more entries than any table visits
/// within the usual time of a run.
const SCANS: usize = 1 << 12;

impl Experiment for LongScans {
    fn name(&self) -> &'static str {
        "long_scan"
    }

    fn about(&self) -> &'static str {
        "threads visit 10000 entries a scan, up and down, in a table of --keys integers"
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn workloads(&self) -> Vec<&'static str> {
        DIRECTIONS.map(|(name, _)| name).into()
    }

    fn mixes(&self) -> Vec<&'static str> {
        self.workloads()
    }

    fn key_sets(&self) -> &'static [KeySet] {
        &[KeySet::RandInt, KeySet::MonoInt]
    }

    fn default_key_sets(&self) -> &'static [KeySet] {
        &[KeySet::RandInt]
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let is_chosen =
            |name: &str| settings.mixes.is_empty() || settings.mixes.iter().any(|mix| mix == name);
        let mut groups = Vec::new();
        for key_set in chosen(&settings.key_sets, self.default_key_sets()) {
            for (workload, _) in DIRECTIONS {
                if is_chosen(workload) {
                    groups.extend(each_thread_count(self, settings, workload, key_set.name()));
                }
            }
        }
        groups
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let keys = case.integers(settings.seed, run);
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        let direction = DIRECTIONS.iter().find(|(name, _)| *name == case.workload);
        let (_, direction) = *direction.expect("a case is named by its direction");
        let scans = |thread| {
            let random = &mut generator(settings.seed, Purpose::Choices, run, thread);
            expected_scans(&sorted, direction, SCANS, random)
        };
        Job::Table(TableJob::LongScan(LongScanJob {
            direction,
            scans: (0..case.threads).map(scans).collect(),
            span: settings.span(),
            keys,
        }))
    }
}
