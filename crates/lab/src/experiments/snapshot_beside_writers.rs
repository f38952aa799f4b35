//! Writers update random keys, alone and while another thread reads the whole table.

use super::{Case, Experiment, chosen, threads};
use crate::{
    Settings,
    keys::{KeyList, KeySet},
    workload::{
        Company, Job, Purpose, SnapshotJob, TableJob, generator, stream_length, update_stream,
    },
};

/// The experiment `snapshot_beside_writers`.
pub(super) struct SnapshotBesideWriters;

impl Experiment for SnapshotBesideWriters {
    fn name(&self) -> &'static str {
        "snapshot_beside_writers"
    }

    fn about(&self) -> &'static str {
        "threads update --keys integers, alone and while one more scans all of them or takes snapshots"
    }

    fn default_threads(&self) -> &'static [usize] {
        &[1, 2]
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        1_000_000
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn working_threads(&self, case: &Case) -> usize {
        case.threads + usize::from(case.workload != Company::Nobody.name())
    }

    fn workloads(&self) -> Vec<&'static str> {
        Company::ALL.map(Company::name).into()
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
            for threads in threads(self, settings) {
                let case = |workload| Case {
                    workload,
                    distribution: None,
                    key_set: key_set.name(),
                    threads,
                    keys: settings.keys.unwrap_or(self.default_keys(Some(key_set))),
                };
                let workloads = self.workloads().into_iter();
                groups.push(workloads.filter(|name| is_chosen(name)).map(case).collect());
            }
        }
        groups
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let keys = KeyList {
            loaded: case.integers(settings.seed, run),
            fresh: Vec::new(),
        };
        let length = stream_length(case.threads, &keys);
        let stream = |writer| {
            let random = &mut generator(settings.seed, Purpose::Choices, run, writer);
            update_stream(&keys.loaded, writer, case.threads, length, random)
        };
        let of_case = |case: &Case| {
            let mut all = Company::ALL.into_iter();
            all.find(|company| company.name() == case.workload)
        };
        Job::Table(TableJob::Snapshots(SnapshotJob {
            streams: (0..case.threads).map(stream).collect(),
            company: group.iter().filter_map(of_case).collect(),
            span: settings.span(),
            keys: keys.loaded,
        }))
    }
}
