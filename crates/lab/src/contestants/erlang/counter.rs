//! The sizes of ETS tables as counters.

use super::ErlangMachine;
use crate::{
    LabError,
    contestants::{Contestant, ContestantName},
    measure::Sample,
    workload::{CounterJob, Job},
};
use std::time::Duration;

/// An ETS table with `{write_concurrency, true}`, whose size is counted in one of two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EtsCounter {
    /// A `set` with `{decentralized_counters, false}`.
    SetCentral,
    /// A `set` with `{decentralized_counters, true}`.
    SetDecentralized,
    /// An `ordered_set` with `{decentralized_counters, false}`.
    OrderedSetCentral,
    /// An `ordered_set` with `{decentralized_counters, true}`.
    OrderedSetDecentralized,
}

impl EtsCounter {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::SetCentral,
        Self::SetDecentralized,
        Self::OrderedSetCentral,
        Self::OrderedSetDecentralized,
    ];

    /// The contestant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SetCentral => "size_of_erlang_set_central",
            Self::SetDecentralized => "size_of_erlang_set_decentralized",
            Self::OrderedSetCentral => "size_of_erlang_ordered_set_central",
            Self::OrderedSetDecentralized => "size_of_erlang_ordered_set_decentralized",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::SetCentral | Self::OrderedSetCentral => {
                "the size of an ETS table with {decentralized_counters, false}, in Erlang"
            }
            Self::SetDecentralized | Self::OrderedSetDecentralized => {
                "the size of an ETS table with {decentralized_counters, true}, in Erlang"
            }
        }
    }

    /// The type of the table, and whether its counters are decentralised.
    const fn words(self) -> (&'static str, bool) {
        match self {
            Self::SetCentral => ("set", false),
            Self::SetDecentralized => ("set", true),
            Self::OrderedSetCentral => ("ordered_set", false),
            Self::OrderedSetDecentralized => ("ordered_set", true),
        }
    }
}

/// One kind of counter on a running machine.
pub(super) struct EtsCounterContestant {
    machine: ErlangMachine,
    kind: EtsCounter,
}

impl EtsCounterContestant {
    pub(super) const fn new(machine: ErlangMachine, kind: EtsCounter) -> Self {
        Self { machine, kind }
    }
}

impl Contestant for EtsCounterContestant {
    fn name(&self) -> ContestantName {
        ContestantName::ErlangCounter(self.kind)
    }

    fn version(&self) -> String {
        self.machine.version.clone()
    }

    fn measure(&mut self, job: &Job) -> Result<Vec<Result<Sample, LabError>>, LabError> {
        let Job::Counter(job) = job else {
            return Err(LabError::Unavailable {
                engine: self.kind.name(),
                missing: "it is a counter, and was given other work",
            });
        };
        let (kind, decentralized) = self.kind.words();
        let request = format!(
            "counter {kind} {decentralized} {} {} {} {} {} {}",
            job.threads,
            job.start,
            CounterJob::ROWS,
            job.mix.period(),
            job.span.warm_up.as_millis().max(1),
            job.span.counted.as_millis().max(1),
        );
        let [nanoseconds, operations, _] = self.machine.ask(&request, &[])?;
        let sample = Sample::new(operations, Duration::from_nanos(nanoseconds));
        Ok(vec![Ok(sample)])
    }
}
