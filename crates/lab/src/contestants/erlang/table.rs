//! ETS tables.

use super::ErlangMachine;
use crate::{
    LabError,
    case::ContestantKind,
    contestants::{
        contestant::{Asked, Contestant, Entrant, Measures, Samples, Side, Started, Starter},
        row_table::refused_by_sets,
    },
    keys::{KeySet, Keys},
    measure::Sample,
    workload::{
        self, EtsBenchJob, EtsJob, FillJob, MixJob, Operation, RowJob, SEQUENCE_STEPS, Selected,
        TableJob,
    },
};
use std::time::Duration;

/// Random keys are cut to this many bits for Erlang. Integers of 60 bits or more take separate
/// memory there.
const SMALL_INTEGER_BITS: u32 = 59;

/// A kind of ETS table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ets {
    /// An `ordered_set` with `{write_concurrency, false}`: one lock a table, over an AVL tree.
    Old,
    /// An `ordered_set` with `{write_concurrency, true}`: the contention-adapting search tree.
    New,
    /// A `set` with `{write_concurrency, true}`: a hash table with many locks.
    Set,
}

impl Ets {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Old, Self::New, Self::Set];

    const fn word(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::New => "new",
            Self::Set => "set",
        }
    }
}

impl Entrant for Ets {
    fn name(&self) -> &'static str {
        match self {
            Self::Old => "erlang_ets_old",
            Self::New => "erlang_ets_new",
            Self::Set => "erlang_ets_set",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Old => "an ETS ordered_set without write_concurrency, in Erlang",
            Self::New => "an ETS ordered_set with write_concurrency, in Erlang",
            Self::Set => "an ETS set with write_concurrency, in Erlang",
        }
    }

    fn side(&self) -> Side {
        Side::Other
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        &[ContestantKind::Tables, ContestantKind::Rows]
    }

    fn is_in_process(&self) -> bool {
        false
    }

    fn missing(&self) -> Option<&'static str> {
        super::missing()
    }

    fn refuses(&self, asked: &Asked<'_>) -> Option<&'static str> {
        let of_integers = |set: &str| set.parse().is_ok_and(KeySet::is_integers);
        match asked.experiment {
            "ets_throughput" if *self == Self::Set => refused_by_sets(asked),
            "ets_throughput" | "ets_bench" => None,
            _ if *self == Self::Set => Some("it has no order"),
            "insert_disjoint_ranges" | "ordered_mix" => None,
            "memory" if asked.key_set.is_none_or(of_integers) => None,
            "memory" => Some("the lab gives it integers only"),
            _ => Some("the lab's Erlang program does not have this experiment"),
        }
    }

    fn start(&self, kind: ContestantKind, starter: &mut Starter) -> Result<Contestant, LabError> {
        let table = Box::new(EtsTable::new(starter.erlang()?, *self));
        Ok(match kind {
            ContestantKind::Rows => Contestant::Rows(table),
            _ => Contestant::Table(table),
        })
    }
}

/// One kind of table on a running machine.
#[derive(Debug)]
pub struct EtsTable {
    machine: ErlangMachine,
    kind: Ets,
}

impl EtsTable {
    /// A table of this kind on this machine.
    #[must_use]
    pub const fn new(machine: ErlangMachine, kind: Ets) -> Self {
        Self { machine, kind }
    }
}

impl Started for EtsTable {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn version(&self) -> String {
        self.machine.version()
    }
}

impl Measures<TableJob> for EtsTable {
    fn measure(&mut self, job: &TableJob) -> Samples {
        let kind = self.kind.word();
        match job {
            TableJob::InsertRanges { keys, threads } => self.ask(ranges(kind, *keys, *threads)),
            TableJob::Mix(job) => self.ask(mix(kind, job)),
            TableJob::Fill(job) => self.ask_and_weigh(fill(kind, job), Some(job.count)),
            // `Entrant::refuses` has already kept other jobs away.
            _ => Err(LabError::Unavailable {
                engine: self.kind.name(),
                missing: "the lab's Erlang program does not have this experiment",
            }),
        }
    }
}

impl Measures<RowJob> for EtsTable {
    fn measure(&mut self, job: &RowJob) -> Samples {
        let kind = self.kind.word();
        self.ask(match job {
            RowJob::Mix(job) => ets(kind, job),
            RowJob::Bench(job) => bench(kind, job),
        })
    }
}

impl EtsTable {
    fn ask(&self, request: Request) -> Samples {
        self.ask_and_weigh(request, None)
    }

    /// Sends the request. If `keys` is given, the answer weighs that many keys, and the sample has
    /// the bytes for each.
    fn ask_and_weigh(&self, (request, files): Request, keys: Option<u64>) -> Samples {
        let [nanoseconds, operations, bytes] = self.machine.ask(&request, &files)?;
        let mut sample = Sample::new(operations, Duration::from_nanos(nanoseconds));
        sample.bytes_per_key = keys.map(|keys| bytes as f64 / keys as f64);
        Ok(vec![Ok(sample)])
    }
}

type Request = (String, Vec<(&'static str, Vec<u8>)>);

fn ranges(kind: &str, keys: u64, threads: usize) -> Request {
    (format!("ranges {kind} {keys} {threads}"), Vec::new())
}

fn mix(kind: &str, job: &MixJob) -> Request {
    let request = format!(
        "mix {kind} {} {} {} {SEQUENCE_STEPS} {} {}",
        job.range,
        workload::rotation_step(job.range),
        job.streams.len(),
        job.span.warm_up.as_millis(),
        job.span.counted.as_millis().max(1),
    );
    (request, streams(&job.prefill, &job.streams))
}

fn ets(kind: &str, job: &EtsJob) -> Request {
    let selected = match job.mix.selects.map(|selects| selects.what) {
        None => "none",
        Some(Selected::All) => "all",
        Some(Selected::Range) => "range",
    };
    let request = format!(
        "ets {kind} {} {} {} {} {} {selected} {} {} {}",
        job.rows.name(),
        job.range,
        workload::rotation_step(job.range),
        job.streams.len(),
        job.mix.steps,
        job.period(),
        job.span.warm_up.as_millis(),
        job.span.counted.as_millis().max(1),
    );
    (request, streams(&job.prefill, &job.streams))
}

fn bench(kind: &str, job: &EtsBenchJob) -> Request {
    let request = format!(
        "bench {kind} {} {} {} {}",
        job.operation.name(),
        job.rows.name(),
        job.span.warm_up.as_millis(),
        job.span.counted.as_millis().max(1),
    );
    (request, streams(&job.keys, &[]))
}

/// The keys to fill the table with, and the streams of all threads, concatenated.
fn streams(prefill: &[u32], streams: &[Vec<Operation>]) -> Vec<(&'static str, Vec<u8>)> {
    let prefill = prefill.iter().flat_map(|key| key.to_le_bytes());
    let operations = streams.iter().flatten();
    let streams = operations.flat_map(|operation| operation.to_bytes());
    vec![
        ("prefill", prefill.collect()),
        ("streams", streams.collect()),
    ]
}

fn fill(kind: &str, job: &FillJob) -> Request {
    if job.key_set == KeySet::MonoInt {
        return ranges(kind, job.count, job.threads);
    }
    let keys = match job.make_keys() {
        Keys::Integers(keys) => keys.loaded,
        Keys::Texts(_) => Vec::new(),
    };
    let cut = match job.key_set {
        KeySet::RandInt => u64::BITS - SMALL_INTEGER_BITS,
        _ => 0,
    };
    let bytes = keys.into_iter().flat_map(|key| (key >> cut).to_le_bytes());
    (
        format!("fill {kind} {}", job.threads),
        vec![("keys", bytes.collect())],
    )
}

#[cfg(test)]
mod tests {
    use crate::{
        contestants::erlang::machine::PROGRAM,
        workload::{
            BINARY_BYTES, EtsOperation, GROUP, Kind, LIST_LENGTH, SEARCHES, SELECTED_KEYS, State,
        },
    };

    #[test]
    fn both_sides_number_the_kinds_alike() {
        for (name, kind) in [
            ("LOOKUP", Kind::Lookup),
            ("INSERT", Kind::Insert),
            ("REMOVE", Kind::Remove),
            ("SEQUENCE", Kind::Sequence),
        ] {
            let definition = format!("-define({name}, {}).", kind as u32);
            assert!(PROGRAM.contains(&definition), "{definition}");
        }
        for (name, number) in [
            ("SELECTED_KEYS", SELECTED_KEYS as usize),
            ("BINARY_BYTES", BINARY_BYTES),
            ("GROUP", GROUP as usize),
            ("LIST_LENGTH", LIST_LENGTH),
            ("SEARCHES", SEARCHES),
        ] {
            let definition = format!("-define({name}, {number}).");
            assert!(PROGRAM.contains(&definition), "{definition}");
        }
    }

    #[test]
    fn both_sides_have_the_same_operations() {
        for operation in EtsOperation::ALL {
            let name = operation.name();
            assert!(PROGRAM.contains(&format!("\nround({name},")), "{name}");
            let empties = PROGRAM.contains(&format!("\nprepare({name},"));
            assert_eq!(empties, operation.begins_with() == State::Empty, "{name}");
        }
    }
}
