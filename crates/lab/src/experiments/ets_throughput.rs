//! Threads run the mixes of the throughput benchmark of Erlang's ETS on tables of rows.

use super::{Case, ContestantKind, Experiment, chosen, each_thread_count};
use crate::{
    Settings,
    keys::KeySet,
    workload::{
        self, EtsJob, EtsMix, Job, MOST_RANGE, Purpose, RowJob, Rows, SELECTED_KEYS, STREAM_LENGTH,
        generator,
    },
};

/// The experiment `ets_throughput`.
pub(super) struct EtsThroughput;

impl Experiment for EtsThroughput {
    fn name(&self) -> &'static str {
        "ets_throughput"
    }

    fn about(&self) -> &'static str {
        "threads update, look up, step and select in tables of rows, with half of --keys present"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Rows
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        1_000_000
    }

    fn keys_limits(&self) -> (u64, u64) {
        (2, u64::from(MOST_RANGE - SELECTED_KEYS))
    }

    fn is_timed(&self, _case: &Case) -> bool {
        true
    }

    fn workloads(&self) -> Vec<&'static str> {
        self.mixes()
    }

    fn mixes(&self) -> Vec<&'static str> {
        EtsMix::ALL.map(EtsMix::name).into()
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let all = EtsMix::ALL.map(|mix| mix.name().to_owned());
        let chosen = chosen(&settings.mixes, &all);
        let mixes: Vec<EtsMix> = chosen.iter().filter_map(|mix| mix.parse().ok()).collect();
        let of = |rows: Rows| {
            mixes
                .iter()
                .flat_map(move |mix| each_thread_count(self, settings, mix.name(), rows.name()))
        };
        Rows::ALL.into_iter().flat_map(of).collect()
    }

    fn job(&self, group: &[Case], run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let mix: EtsMix = case.workload.parse().expect("a case is named by its mix");
        let rows = Rows::ALL
            .into_iter()
            .find(|rows| rows.name() == case.key_set)
            .expect("a case names its rows");
        let range = u32::try_from(case.keys).expect("the limits of --keys were checked");
        let random = |purpose, thread| generator(settings.seed, purpose, run, thread);
        let stream = |thread| {
            let random = &mut random(Purpose::Stream, thread);
            workload::stream(mix.shares, range, STREAM_LENGTH, random)
        };
        Job::Rows(RowJob::Mix(EtsJob {
            mix,
            rows,
            range,
            prefill: workload::random_half(range, &mut random(Purpose::Prefill, 0)),
            streams: (0..case.threads).map(stream).collect(),
            span: settings.span(),
        }))
    }
}
