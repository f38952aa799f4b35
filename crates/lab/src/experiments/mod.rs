//! The experiments, one file each. A new one is a file, and a line in [`ALL`].

mod insert_disjoint_ranges;
mod memory;
mod ordered_mix;

use crate::{LabError, Settings, workload::Job};

/// Every experiment.
pub const ALL: [&dyn Experiment; 3] = [
    &insert_disjoint_ranges::InsertDisjointRanges,
    &ordered_mix::OrderedMix,
    &memory::Memory,
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

/// What to measure: a set of cases, and for each case and run the job that every contestant
/// does.
pub trait Experiment: Sync {
    /// Its name on the command line and in records.
    fn name(&self) -> &'static str;

    /// What it measures, in a line.
    fn about(&self) -> &'static str;

    /// The numbers of threads measured unless the user says otherwise.
    fn default_threads(&self) -> &'static [usize] {
        &[1, 2, 8]
    }

    /// The number of keys unless the user says otherwise.
    fn default_keys(&self) -> u64;

    /// The least and the greatest number of keys it takes.
    fn keys_limits(&self) -> (u64, u64);

    /// Whether a measurement ends after [`Settings::duration`], rather than by itself.
    fn is_timed(&self) -> bool {
        false
    }

    /// The workloads it has, by name.
    fn workloads(&self) -> Vec<&'static str>;

    /// The cases that these settings ask for, in the order in which they are measured.
    fn cases(&self, settings: &Settings) -> Vec<Case>;

    /// The job of one run: the same for every contestant, made before any of them starts.
    fn job(&self, case: &Case, run: usize, settings: &Settings) -> Job;

    /// A further job, done once for each contestant after the runs, that only weighs the table.
    fn weighing(&self, _case: &Case, _settings: &Settings) -> Option<Job> {
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
    /// The key set's name.
    pub key_set: &'static str,
    /// How many threads.
    pub threads: usize,
    /// How many keys, as the experiment means it.
    pub keys: u64,
}

/// A case for every number of threads.
fn each_thread_count(
    experiment: &dyn Experiment,
    settings: &Settings,
    workload: &'static str,
    key_set: &'static str,
) -> Vec<Case> {
    let threads = settings.threads.as_deref();
    let threads = threads.unwrap_or(experiment.default_threads());
    let keys = settings.keys.unwrap_or(experiment.default_keys());
    let case = |threads: &usize| Case {
        workload,
        key_set,
        threads: *threads,
        keys,
    };
    threads.iter().map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Mix;

    #[test]
    fn names_are_found_and_defaults_lie_within_limits() {
        for experiment in ALL {
            assert_eq!(find(experiment.name()).unwrap().name(), experiment.name());
            let (least, most) = experiment.keys_limits();
            assert!((least..=most).contains(&experiment.default_keys()));
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
            mixes: vec![Mix::Lookup, Mix::NextSeq],
            ..Settings::default()
        };
        let cases = find("ordered_mix").unwrap().cases(&settings);
        let rows: Vec<_> = cases.iter().map(|c| (c.workload, c.threads)).collect();
        assert_eq!(
            rows,
            [("lookup", 3), ("lookup", 5), ("nextseq", 3), ("nextseq", 5)]
        );
        assert!(cases.iter().all(|case| case.keys == 64));
    }

    #[test]
    fn a_job_depends_on_the_run_and_the_seed_only() {
        let settings = Settings {
            keys: Some(64),
            ..Settings::default()
        };
        let experiment = find("ordered_mix").unwrap();
        let case = &experiment.cases(&settings)[0];
        let job = |run, settings: &Settings| format!("{:?}", experiment.job(case, run, settings));
        assert_eq!(job(0, &settings), job(0, &settings));
        assert_ne!(job(0, &settings), job(1, &settings));
        let other = Settings {
            seed: 43,
            ..settings.clone()
        };
        assert_ne!(job(0, &settings), job(0, &other));
    }
}
