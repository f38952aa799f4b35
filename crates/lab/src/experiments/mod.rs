//! The experiments, one file each. A new one is a file, and a line in [`ALL`].

mod adaptation;
mod batched_get;
mod bw_tree_ablation;
mod counter_scaling;
mod ets_bench;
mod ets_throughput;
mod high_contention;
mod insert_disjoint_ranges;
mod memory;
mod ordered_mix;
mod range_update;
mod redis;
mod sequential_overhead;
mod shard_cache;
mod signals;
mod ycsb;

use crate::{
    LabError, Settings, estimate,
    keys::{KeySet, MOST_KEYS},
    workload::{Distribution, Job, MessageKind},
};

/// Every experiment.
pub const ALL: [&dyn Experiment; 16] = [
    &insert_disjoint_ranges::InsertDisjointRanges,
    &ordered_mix::OrderedMix,
    &range_update::RangeUpdate,
    &adaptation::Adaptation,
    &ycsb::Ycsb,
    &high_contention::HighContention,
    &batched_get::BatchedGet,
    &sequential_overhead::SequentialOverhead,
    &bw_tree_ablation::BwTreeAblation,
    &memory::Memory,
    &signals::Signals,
    &ets_throughput::EtsThroughput,
    &ets_bench::EtsBench,
    &shard_cache::ShardCache,
    &counter_scaling::CounterScaling,
    &redis::Redis,
];

/// The experiment of this name.
///
/// # Errors
///
/// There is none.
pub fn find(name: &str) -> Result<&'static dyn Experiment, LabError> {
    ALL.into_iter()
        .find(|experiment| experiment.name() == name)
        .ok_or_else(|| LabError::UnknownExperiment {
            name: name.to_owned(),
            known: ALL.map(|experiment| experiment.name()).join(", "),
        })
}

/// What takes part in an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContestantKind {
    /// Ordered tables.
    Tables,
    /// Channels from many senders to one receiver.
    Channels,
    /// Caches in shards.
    Shards,
    /// Counters.
    Counters,
    /// Servers of the Redis protocol.
    Servers,
}

/// What to measure: groups of cases, and for each group and run the job that every contestant
/// does.
pub trait Experiment: Sync {
    /// Its name on the command line and in records.
    fn name(&self) -> &'static str;

    /// What it measures, in a line.
    fn about(&self) -> &'static str;

    /// What takes part in it.
    fn contestants(&self) -> ContestantKind {
        ContestantKind::Tables
    }

    /// The numbers of threads measured unless the user says otherwise.
    fn default_threads(&self) -> &'static [usize] {
        &[1, 2, 8]
    }

    /// The number of keys unless the user says otherwise; of a set, where it has a choice.
    fn default_keys(&self, key_set: Option<KeySet>) -> u64 {
        key_set.unwrap_or(KeySet::RandInt).default_keys()
    }

    /// The least and the greatest number of keys it takes.
    fn keys_limits(&self) -> (u64, u64) {
        (1, MOST_KEYS)
    }

    /// Whether a case ends after [`Settings::duration`], rather than by itself.
    fn is_timed(&self, _case: &Case) -> bool {
        false
    }

    /// How many threads work at the same time in a case.
    fn working_threads(&self, case: &Case) -> usize {
        case.threads
    }

    /// About how long one contestant's measurement of a group takes, in seconds: see
    /// `estimate::measurement`.
    fn estimate(&self, group: &[Case], settings: &Settings) -> f64 {
        let timed = group.iter().filter(|case| self.is_timed(case)).count();
        estimate::measurement(timed, group[0].keys, settings)
    }

    /// The workloads it has, by name.
    fn workloads(&self) -> Vec<&'static str>;

    /// Its workloads that [`Settings::mixes`] can choose; one that is measured slice by slice is
    /// the beginning of the name of each slice.
    fn mixes(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The key sets that [`Settings::key_sets`] can choose.
    fn key_sets(&self) -> &'static [KeySet] {
        &[]
    }

    /// The key sets measured with unless the user chooses.
    fn default_key_sets(&self) -> &'static [KeySet] {
        self.key_sets()
    }

    /// What [`Settings::messages`] can choose.
    fn messages(&self) -> &'static [MessageKind] {
        &[]
    }

    /// What [`Settings::distributions`] can choose.
    fn distributions(&self) -> &'static [Distribution] {
        &[]
    }

    /// The cases that these settings ask for, in the order in which they are measured. Those of a
    /// group are measured one after the other on one table.
    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>>;

    /// The job of one run of a group: the same for every contestant, made before any of them
    /// starts. It has a measurement for each case.
    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job;

    /// A further job, done once for each contestant after the runs, that only weighs the table of
    /// the group's first case.
    fn weighing(&self, _group: &[Case], _settings: &Settings) -> Option<Job> {
        None
    }
}

impl std::fmt::Debug for dyn Experiment {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// One row of the table: what all contestants are measured on side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The workload's name.
    pub workload: &'static str,
    /// How the keys of operations are chosen, where the workload leaves a choice.
    pub distribution: Option<Distribution>,
    /// The key set's name, or that of the kind of message.
    pub key_set: &'static str,
    /// How many threads.
    pub threads: usize,
    /// How many keys, as the experiment means it.
    pub keys: u64,
}

impl Case {
    /// The key set, in an experiment that has a choice of them.
    fn chosen_key_set(&self) -> KeySet {
        let set = self.key_set.parse();
        set.expect("the case of an experiment with key sets names one")
    }
}

/// What the user chose, or all that there is if the user did not choose.
fn chosen<T: Clone>(choice: &[T], all: &[T]) -> Vec<T> {
    if choice.is_empty() { all } else { choice }.to_vec()
}

/// The numbers of threads to be measured.
fn threads(experiment: &dyn Experiment, settings: &Settings) -> Vec<usize> {
    let threads = settings.threads.as_deref();
    threads.unwrap_or(experiment.default_threads()).to_vec()
}

/// A case for every number of threads, each a group of its own.
fn each_thread_count(
    experiment: &dyn Experiment,
    settings: &Settings,
    workload: &'static str,
    key_set: &'static str,
) -> Vec<Vec<Case>> {
    let keys = settings.keys.unwrap_or_else(|| {
        let key_set = key_set.parse().ok();
        experiment.default_keys(key_set)
    });
    let case = |threads| Case {
        workload,
        distribution: None,
        key_set,
        threads,
        keys,
    };
    threads(experiment, settings)
        .into_iter()
        .map(|threads| vec![case(threads)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // The table must be filled before, and what adds keys to it comes last.
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
            "memory",
        ] {
            let experiment = find(experiment).unwrap();
            let group = &experiment.groups(&settings)[1.min(experiment.key_sets().len())];
            let job =
                |run, settings: &Settings| format!("{:?}", experiment.job(group, run, settings));
            assert!(job(0, &settings) == job(0, &settings), "{experiment:?}");
            assert!(job(0, &settings) != job(1, &settings), "{experiment:?}");
            assert!(job(0, &settings) != job(0, &other), "{experiment:?}");
        }
    }
}
