//! The functions of ETS one by one, on tables of rows.

use super::{Case, ContestantKind, Experiment, chosen};
use crate::{
    Settings,
    keys::KeySet,
    workload::{EtsBenchJob, EtsOperation, Job, MOST_RANGE, Purpose, RowJob, Rows, generator},
};
use rand::seq::SliceRandom;

/// The experiment `ets_bench`.
pub(super) struct EtsBench;

/// The fewest keys: those of the longest select.
const LEAST_KEYS: u64 = 1000;

impl Experiment for EtsBench {
    fn name(&self) -> &'static str {
        "ets_bench"
    }

    fn about(&self) -> &'static str {
        "one thread does one operation of ETS over and over, on tables of --keys rows"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Rows
    }

    fn default_threads(&self) -> &'static [usize] {
        &[1]
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        100_000
    }

    fn keys_limits(&self) -> (u64, u64) {
        // Keys of rows are twice as large as their numbers.
        (LEAST_KEYS, u64::from(MOST_RANGE / 2))
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn workloads(&self) -> Vec<&'static str> {
        self.mixes()
    }

    fn mixes(&self) -> Vec<&'static str> {
        EtsOperation::ALL.map(EtsOperation::name).into()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let all = EtsOperation::ALL.map(|operation| operation.name().to_owned());
        let chosen = chosen(&settings.mixes, &all);
        let operations: Vec<EtsOperation> =
            chosen.iter().filter_map(|name| name.parse().ok()).collect();
        let case = |rows: Rows, operation: EtsOperation| Case {
            workload: operation.name(),
            distribution: None,
            key_set: rows.name(),
            threads: 1,
            keys: settings.keys.unwrap_or(self.default_keys(None)),
        };
        Rows::ALL
            .into_iter()
            .flat_map(|rows| operations.iter().map(move |one| vec![case(rows, *one)]))
            .collect()
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let operation = case.workload.parse();
        let rows = Rows::ALL.into_iter();
        let count = u32::try_from(case.keys).expect("the limits of --keys were checked");
        let mut keys: Vec<u32> = (0..count).collect();
        keys.shuffle(&mut generator(settings.seed, Purpose::Keys, run, 0));
        Job::Rows(RowJob::Bench(EtsBenchJob {
            operation: operation.expect("a case is named by its operation"),
            rows: rows
                .into_iter()
                .find(|rows| rows.name() == case.key_set)
                .expect("a case names its rows"),
            keys,
            span: settings.span(),
        }))
    }
}
