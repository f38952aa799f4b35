//! The sizes of ETS tables as counters.

use super::ErlangMachine;
use crate::{
    LabError,
    case::ContestantKind,
    contestants::contestant::{Contestant, Entrant, Measures, Samples, Side, Started, Starter},
    measure::Sample,
    workload::CounterJob,
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

impl Entrant for EtsCounter {
    fn name(&self) -> &'static str {
        match self {
            Self::SetCentral => "size_of_erlang_set_central",
            Self::SetDecentralized => "size_of_erlang_set_decentralized",
            Self::OrderedSetCentral => "size_of_erlang_ordered_set_central",
            Self::OrderedSetDecentralized => "size_of_erlang_ordered_set_decentralized",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::SetCentral | Self::OrderedSetCentral => {
                "the size of an ETS table with {decentralized_counters, false}, in Erlang"
            }
            Self::SetDecentralized | Self::OrderedSetDecentralized => {
                "the size of an ETS table with {decentralized_counters, true}, in Erlang"
            }
        }
    }

    fn side(&self) -> Side {
        Side::Other
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        &[ContestantKind::Counters]
    }

    fn is_in_process(&self) -> bool {
        false
    }

    fn missing(&self) -> Option<&'static str> {
        super::missing()
    }

    fn start(&self, _kind: ContestantKind, starter: &mut Starter) -> Result<Contestant, LabError> {
        let counter = EtsCounterContestant::new(starter.erlang()?, *self);
        Ok(Contestant::Counter(Box::new(counter)))
    }
}

/// One kind of counter on a running machine.
#[derive(Debug)]
pub struct EtsCounterContestant {
    machine: ErlangMachine,
    kind: EtsCounter,
}

impl EtsCounterContestant {
    /// A counter of this kind on this machine.
    #[must_use]
    pub const fn new(machine: ErlangMachine, kind: EtsCounter) -> Self {
        Self { machine, kind }
    }
}

impl Started for EtsCounterContestant {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn version(&self) -> String {
        self.machine.version()
    }
}

impl Measures<CounterJob> for EtsCounterContestant {
    fn measure(&mut self, job: &CounterJob) -> Samples {
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
