//! What an experiment is, and what most of them share.

use crate::{
    Settings,
    case::{Case, ContestantKind},
    keys::{KeySet, MOST_KEYS},
    workload::{Distribution, Job, MessageKind},
};

/// What to measure: groups of cases, and for each group and run the job that every contestant does.
pub trait Experiment: Sync {
    /// Its name on the command line and in records.
    fn name(&self) -> &'static str;

    /// What it measures, in a line.
    fn about(&self) -> &'static str;

    /// The kind of its contestants.
    fn contestants(&self) -> ContestantKind {
        ContestantKind::Tables
    }

    /// The numbers of threads measured by default.
    fn default_threads(&self) -> &'static [usize] {
        &[1, 2, 8]
    }

    /// The [`default_threads`](Self::default_threads) in words that hold on every machine.
    fn default_threads_in_words(&self) -> String {
        let threads = self.default_threads().iter();
        threads
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",")
    }

    /// The default number of keys; that of the key set, if the experiment offers a choice.
    fn default_keys(&self, key_set: Option<KeySet>) -> u64 {
        key_set.unwrap_or(KeySet::RandInt).default_keys()
    }

    /// The least and the greatest number of keys that it accepts.
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

    /// The estimated seconds that one contestant's measurement of a group takes: see
    /// [`Settings::seconds_of`].
    fn estimate(&self, group: &[Case], settings: &Settings) -> f64 {
        let timed = group.iter().filter(|case| self.is_timed(case)).count();
        settings.seconds_of(timed, group[0].keys)
    }

    /// The workloads it has, by name.
    fn workloads(&self) -> Vec<&'static str>;

    /// The workloads that [`Settings::mixes`] can choose. The name of a workload that is measured
    /// slice by slice is the prefix of the names of its slices.
    fn mixes(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The key sets that [`Settings::key_sets`] can choose.
    fn key_sets(&self) -> &'static [KeySet] {
        &[]
    }

    /// The key sets measured by default.
    fn default_key_sets(&self) -> &'static [KeySet] {
        self.key_sets()
    }

    /// The kinds of message that [`Settings::messages`] can choose.
    fn messages(&self) -> &'static [MessageKind] {
        &[]
    }

    /// The distributions that [`Settings::distributions`] can choose.
    fn distributions(&self) -> &'static [Distribution] {
        &[]
    }

    /// The distributions measured by default.
    fn default_distributions(&self) -> &'static [Distribution] {
        self.distributions()
    }

    /// The cases that these settings ask for, in the order of measurement. The cases of a group are
    /// measured one after the other on one table.
    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>>;

    /// The job of one run of a group, with a measurement for each case. It is made before any
    /// contestant starts, and is the same for all of them.
    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job;

    /// Another job, done once for each contestant after the runs, that only weighs the table of the
    /// group's first case.
    fn weighing(&self, _group: &[Case], _settings: &Settings) -> Option<Job> {
        None
    }
}

impl std::fmt::Debug for dyn Experiment {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// The user's choice, or everything if the user chose nothing.
pub(super) fn chosen<T: Clone>(choice: &[T], all: &[T]) -> Vec<T> {
    if choice.is_empty() { all } else { choice }.to_vec()
}

/// The numbers of threads to be measured.
pub(super) fn threads(experiment: &dyn Experiment, settings: &Settings) -> Vec<usize> {
    let threads = settings.threads.as_deref();
    threads.unwrap_or(experiment.default_threads()).to_vec()
}

/// A case for every number of threads, each a group of its own.
pub(super) fn each_thread_count(
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
