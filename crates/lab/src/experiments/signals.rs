//! Many senders send to one receiver: throughput, latency and memory.
//!
//! The workload is that of the benchmark of Erlang's parallel signal sending, with what it leaves
//! out: the time of a single message, memory, and how a channel adapts.

use super::{Case, ContestantKind, Experiment, chosen, threads};
use crate::{
    Settings,
    keys::KeySet,
    workload::{Job, MessageKind, SignalsJob, Traffic},
};

/// The experiment `signals`.
pub(super) struct Signals;

/// The most concurrent senders of the workload that changes their number.
const PHASE_SENDERS: usize = 16;

/// The slices of that workload, in their order.
const SLICES: [&str; 3 * SignalsJob::SLICES] = [
    "phases_01",
    "phases_02",
    "phases_03",
    "phases_04",
    "phases_05",
    "phases_06",
    "phases_07",
    "phases_08",
    "phases_09",
    "phases_10",
    "phases_11",
    "phases_12",
];

impl Experiment for Signals {
    fn name(&self) -> &'static str {
        "signals"
    }

    fn about(&self) -> &'static str {
        "threads send messages to one receiver: throughput, latency, memory, adaptation"
    }

    fn contestants(&self) -> ContestantKind {
        ContestantKind::Channels
    }

    fn default_threads(&self) -> &'static [usize] {
        &[1, 2, 4, 16, 64]
    }

    fn default_keys(&self, _key_set: Option<KeySet>) -> u64 {
        10_000_000
    }

    fn is_timed(&self, case: &Case) -> bool {
        case.workload != Traffic::Burst.name()
    }

    fn working_threads(&self, case: &Case) -> usize {
        // The receiver works while others send, except in workloads that first send and then
        // receive.
        let receives_meanwhile = match case.workload.parse() {
            Ok(Traffic::Drain | Traffic::UncontendedSend | Traffic::Burst) => 0,
            Ok(Traffic::Live | Traffic::PingPong | Traffic::Phases) | Err(_) => 1,
        };
        case.threads + receives_meanwhile
    }

    fn estimate(&self, group: &[Case], settings: &Settings) -> f64 {
        let (times, messages) = match group[0].workload.parse() {
            // Receiving takes as long as sending.
            Ok(Traffic::Drain) => (2, 0),
            Ok(Traffic::Burst) => (0, group[0].keys),
            // The slices share the time.
            Ok(_) | Err(_) => (1, 0),
        };
        settings.seconds_of(times, messages)
    }

    fn workloads(&self) -> Vec<&'static str> {
        let others = Traffic::ALL.into_iter().filter(|t| *t != Traffic::Phases);
        others.map(Traffic::name).chain(SLICES).collect()
    }

    fn mixes(&self) -> Vec<&'static str> {
        Traffic::ALL.map(Traffic::name).into()
    }

    fn messages(&self) -> &'static [MessageKind] {
        &MessageKind::ALL
    }

    fn groups(&self, settings: &Settings) -> Vec<Vec<Case>> {
        let traffic = chosen(&settings.mixes, &Traffic::ALL.map(|t| t.name().to_owned()));
        let messages = chosen(&settings.messages, &MessageKind::ALL);
        let mut groups = Vec::new();
        for traffic in traffic.iter().filter_map(|name| name.parse().ok()) {
            let case = |workload, message: MessageKind, threads| Case {
                workload,
                distribution: None,
                key_set: message.name(),
                threads,
                keys: settings.keys.unwrap_or(self.default_keys(None)),
            };
            match traffic {
                Traffic::Drain | Traffic::Live => {
                    for message in &messages {
                        for threads in threads(self, settings) {
                            groups.push(vec![case(traffic.name(), *message, threads)]);
                        }
                    }
                }
                Traffic::PingPong | Traffic::UncontendedSend => {
                    groups.push(vec![case(traffic.name(), MessageKind::Word, 1)]);
                }
                Traffic::Burst => {
                    for threads in settings.threads.as_deref().unwrap_or(&[1]) {
                        groups.push(vec![case(traffic.name(), MessageKind::Word, *threads)]);
                    }
                }
                Traffic::Phases => {
                    let slices = SignalsJob::senders_of_slices(PHASE_SENDERS);
                    let slice = |(name, threads)| case(name, MessageKind::Word, threads);
                    groups.push(SLICES.into_iter().zip(slices).map(slice).collect());
                }
            }
        }
        groups
    }

    fn job(&self, group: &[Case], _run: usize, settings: &Settings) -> Job {
        let case = &group[0];
        let traffic = case.workload.parse().unwrap_or(Traffic::Phases);
        let message = case.key_set.parse();
        Job::Signals(SignalsJob {
            traffic,
            message: message.expect("a case is named by its message"),
            senders: group.iter().map(|case| case.threads).max().unwrap_or(1),
            messages: case.keys,
            span: settings.span(),
        })
    }
}
