//! The experiments, one file each. A new one is a file, and a line in [`ALL`].

mod adaptation;
mod batched_get;
mod beside_attackers;
mod bw_tree_ablation;
mod counter_scaling;
mod ets_bench;
mod ets_throughput;
mod experiment;
mod expiry;
mod feeds;
mod high_contention;
mod insert_disjoint_ranges;
mod long_scan;
mod memory;
mod observing;
mod ordered_mix;
mod range_update;
mod redis;
mod remove;
mod sequential_overhead;
mod shard_cache;
mod signals;
mod snapshot_beside_writers;
mod transactions;
mod ycsb;

pub use crate::case::{Case, ContestantKind};
pub use experiment::Experiment;

use crate::LabError;
use experiment::{chosen, each_thread_count, threads};

/// Every experiment.
pub const ALL: [&dyn Experiment; 24] = [
    &insert_disjoint_ranges::InsertDisjointRanges,
    &ordered_mix::OrderedMix,
    &range_update::RangeUpdate,
    &adaptation::Adaptation,
    &ycsb::Ycsb,
    &high_contention::HighContention,
    &batched_get::BatchedGet,
    &remove::Remove,
    &long_scan::LongScans,
    &snapshot_beside_writers::SnapshotBesideWriters,
    &sequential_overhead::SequentialOverhead,
    &bw_tree_ablation::BwTreeAblation,
    &memory::Memory,
    &signals::Signals,
    &ets_throughput::EtsThroughput,
    &ets_bench::EtsBench,
    &shard_cache::ShardCache,
    &counter_scaling::CounterScaling,
    &redis::Redis,
    &transactions::Transactions,
    &feeds::Feeds,
    &observing::Observing,
    &beside_attackers::BesideAttackers,
    &expiry::Expiry,
];

/// The experiment of this name.
///
/// # Errors
///
/// No experiment has this name.
pub fn find(name: &str) -> Result<&'static dyn Experiment, LabError> {
    ALL.into_iter()
        .find(|experiment| experiment.name() == name)
        .ok_or_else(|| LabError::UnknownExperiment {
            name: name.to_owned(),
            known: ALL.map(|experiment| experiment.name()).join(", "),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, keys::KeySet, workload::Distribution};

    #[test]
    fn names_are_found_and_defaults_lie_within_limits() {
        for experiment in ALL {
            assert_eq!(find(experiment.name()).unwrap().name(), experiment.name());
            let (least, most) = experiment.keys_limits();
            for set in KeySet::ALL.map(Some).into_iter().chain([None]) {
                assert!((least..=most).contains(&experiment.default_keys(set)));
            }
            let workloads = experiment.workloads();
            let is_measured = |mix: &&str| workloads.iter().any(|name| name.starts_with(mix));
            assert!(experiment.mixes().iter().all(is_measured));
            for case in experiment.groups(&Settings::default()).iter().flatten() {
                assert!(workloads.contains(&case.workload), "{case:?}");
            }
        }
        let error = find("ordered_mox").unwrap_err().to_string();
        assert!(
            error.contains("'ordered_mox'") && error.contains("memory"),
            "{error}"
        );
    }

    #[test]
    fn cases_are_workloads_times_threads() {
        let settings = Settings {
            threads: Some(vec![3, 5]),
            keys: Some(64),
            mixes: vec!["lookup".to_owned(), "nextseq".to_owned()],
            ..Settings::default()
        };
        let cases = find("ordered_mix").unwrap().groups(&settings).concat();
        let rows: Vec<_> = cases.iter().map(|c| (c.workload, c.threads)).collect();
        assert_eq!(
            rows,
            [("lookup", 3), ("lookup", 5), ("nextseq", 3), ("nextseq", 5)]
        );
        assert!(cases.iter().all(|case| case.keys == 64));
    }

    #[test]
    fn a_group_is_what_is_measured_on_one_table() {
        let settings = Settings {
            threads: Some(vec![2]),
            mixes: vec!["e".to_owned(), "insert".to_owned(), "c".to_owned()],
            key_sets: vec![KeySet::MonoInt, KeySet::Email],
            ..Settings::default()
        };
        let groups = find("ycsb").unwrap().groups(&settings);
        let rows: Vec<Vec<_>> = groups
            .iter()
            .map(|group| group.iter().map(|c| (c.workload, c.distribution)).collect())
            .collect();
        let (zipfian, uniform) = (Some(Distribution::Zipfian), Some(Distribution::Uniform));
        // Filling comes first, and the mix that adds keys comes last.
        let group = vec![
            ("insert", None),
            ("c", zipfian),
            ("c", uniform),
            ("e", zipfian),
            ("e", uniform),
        ];
        assert_eq!(rows, [group.clone(), group]);
        assert_eq!(
            (groups[0][0].key_set, groups[0][0].keys),
            ("mono_int", 5_000_000)
        );
        assert_eq!(
            (groups[1][0].key_set, groups[1][0].keys),
            ("email", 2_000_000)
        );
    }

    #[test]
    fn a_job_depends_on_the_run_and_the_seed_only() {
        let settings = Settings {
            threads: Some(vec![2]),
            keys: Some(64),
            ..Settings::default()
        };
        let other = Settings {
            seed: 43,
            ..settings.clone()
        };
        for experiment in [
            "ordered_mix",
            "range_update",
            "adaptation",
            "sequential_overhead",
            "ycsb",
            "batched_get",
            "remove",
            "long_scan",
            "snapshot_beside_writers",
            "memory",
            "transactions",
            "feeds",
        ] {
            let experiment = find(experiment).unwrap();
            let groups = experiment.groups(&settings);
            let group = &groups[1.min(groups.len() - 1)];
            let job =
                |run, settings: &Settings| format!("{:?}", experiment.job(group, run, settings));
            assert!(job(0, &settings) == job(0, &settings), "{experiment:?}");
            assert!(job(0, &settings) != job(1, &settings), "{experiment:?}");
            assert!(job(0, &settings) != job(0, &other), "{experiment:?}");
        }
    }
}
