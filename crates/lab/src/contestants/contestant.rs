//! What a contestant is: an [`Entrant`] before it is started, and a [`Contestant`] afterwards,
//! which is measured through the trait of its kind.

use super::erlang::ErlangMachine;
use crate::{
    LabError,
    case::{Case, ContestantKind},
    measure::Sample,
    memory::FillCommand,
    workload::{
        AttackJob, CounterJob, ExpiryJob, FeedJob, Job, ObserveJob, RedisJob, RowJob,
        SequentialWork, ShardCacheJob, SignalsJob, TableJob, TransactionJob,
    },
};
use std::{env, fmt};

/// What is known of a contestant before it is started. Each family of contestants implements it
/// once.
pub trait Entrant: fmt::Debug + Send + Sync {
    /// The name on the command line and in records.
    fn name(&self) -> &'static str;

    /// What it is, in a line.
    fn about(&self) -> &'static str;

    /// Its relation to this project.
    fn side(&self) -> Side;

    /// The kinds of experiment that it can take part in. The first one is its own kind.
    fn kinds(&self) -> &'static [ContestantKind];

    /// What this machine lacks to run it, and how to get that; `None` if nothing.
    fn missing(&self) -> Option<&'static str> {
        None
    }

    /// Whether it does its work in threads of this process.
    fn is_in_process(&self) -> bool {
        true
    }

    /// Why it cannot take part in an experiment of one of its kinds; `None` if it can.
    fn refuses(&self, _asked: &Asked<'_>) -> Option<&'static str> {
        None
    }

    /// Starts it for an experiment of this kind, which is one of its [`kinds`](Self::kinds).
    ///
    /// # Errors
    ///
    /// It could not be started.
    fn start(&self, kind: ContestantKind, starter: &mut Starter) -> Result<Contestant, LabError>;
}

/// The relation of a contestant to this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A part of this project.
    Ours,
    /// A part of this project in a form that only experiments use.
    Variant,
    /// A Rust crate, or a part of the standard library, that a user would otherwise choose.
    Rival,
    /// Another program, or a baseline for comparison.
    Other,
}

/// What an entrant is asked to take part in. A field that is `None` is left open.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The workload's name.
    pub workload: Option<&'a str>,
    /// The key set's name, or that of the kind of message.
    pub key_set: Option<&'a str>,
}

/// What contestants need to start. All contestants that run in Erlang share one Erlang.
#[derive(Debug, Default)]
pub struct Starter {
    /// How to start a process that weighs what it holds.
    pub fill_command: Option<FillCommand>,
    machine: Option<ErlangMachine>,
}

impl Starter {
    /// Makes a starter that starts processes with this command.
    #[must_use]
    pub const fn new(fill_command: Option<FillCommand>) -> Self {
        Self {
            fill_command,
            machine: None,
        }
    }

    /// The shared Erlang; the first call starts it.
    ///
    /// # Errors
    ///
    /// Erlang is missing or does not start.
    pub fn erlang(&mut self) -> Result<ErlangMachine, LabError> {
        match &self.machine {
            Some(machine) => Ok(machine.clone()),
            None => Ok(self.machine.insert(ErlangMachine::start()?).clone()),
        }
    }
}

/// The result of a job: for each of its measurements, in order, a sample, or the error that answers
/// were wrong. The whole is an error if every answer was wrong, or if the contestant could not be
/// reached.
pub type Samples = Result<Vec<Result<Sample, LabError>>, LabError>;

/// What every started contestant reports of itself.
pub trait Started {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Project and version, for the record.
    fn version(&self) -> String;

    /// Does a few thousand random operations of those that the case's experiment uses, one after
    /// the other, and compares each answer with that of a simple model. A contestant has nothing to
    /// do here if the measurements themselves check its answers as fully.
    ///
    /// # Errors
    ///
    /// An answer was wrong.
    fn check_against_model(&mut self, _case: &Case, _seed: u64) -> Result<(), LabError> {
        Ok(())
    }
}

/// A contestant that does jobs of one type.
pub trait Measures<J>: Started {
    /// Does the job once, on a fresh table or channel, and checks it.
    ///
    /// # Errors
    ///
    /// As [`Samples`] says.
    fn measure(&mut self, job: &J) -> Samples;
}

/// A contestant that was started for experiments of one kind.
pub enum Contestant {
    /// For experiments of [`ContestantKind::Tables`].
    Table(Box<dyn Measures<TableJob>>),
    /// For experiments of [`ContestantKind::Rows`].
    Rows(Box<dyn Measures<RowJob>>),
    /// For experiments of [`ContestantKind::Sequential`].
    Sequential(Box<dyn Measures<SequentialWork>>),
    /// For experiments of [`ContestantKind::Channels`].
    Channel(Box<dyn Measures<SignalsJob>>),
    /// For experiments of [`ContestantKind::Shards`].
    Shards(Box<dyn Measures<ShardCacheJob>>),
    /// For experiments of [`ContestantKind::Counters`].
    Counter(Box<dyn Measures<CounterJob>>),
    /// For experiments of [`ContestantKind::Servers`].
    Server(Box<dyn Measures<RedisJob>>),
    /// For experiments of [`ContestantKind::Transacting`].
    Transacting(Box<dyn Measures<TransactionJob>>),
    /// For experiments of [`ContestantKind::Watched`].
    Watched(Box<dyn Measures<FeedJob>>),
    /// For experiments of [`ContestantKind::Observed`].
    Observed(Box<dyn Measures<ObserveJob>>),
    /// For experiments of [`ContestantKind::Attacked`].
    Attacked(Box<dyn Measures<AttackJob>>),
    /// For experiments of [`ContestantKind::Expiring`].
    Expiring(Box<dyn Measures<ExpiryJob>>),
}

impl Contestant {
    /// Does the job, as [`Measures::measure`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Measures::measure`]; also if the job is of another kind.
    pub fn measure(&mut self, job: &Job) -> Samples {
        match (&mut *self, job) {
            (Self::Table(table), Job::Table(job)) => table.measure(job),
            (Self::Rows(table), Job::Rows(job)) => table.measure(job),
            (Self::Sequential(table), Job::Sequential(job)) => table.measure(job),
            (Self::Channel(channel), Job::Signals(job)) => channel.measure(job),
            (Self::Shards(shards), Job::ShardCache(job)) => shards.measure(job),
            (Self::Counter(counter), Job::Counter(job)) => counter.measure(job),
            (Self::Server(server), Job::Redis(job)) => server.measure(job),
            (Self::Transacting(server), Job::Transactions(job)) => server.measure(job),
            (Self::Watched(server), Job::Feeds(job)) => server.measure(job),
            (Self::Observed(server), Job::Observe(job)) => server.measure(job),
            (Self::Attacked(server), Job::Attack(job)) => server.measure(job),
            (Self::Expiring(server), Job::Expiry(job)) => server.measure(job),
            _ => Err(LabError::Unavailable {
                engine: self.started().name(),
                missing: "it was started for work of another kind",
            }),
        }
    }

    /// The contestant, for what it reports of itself.
    pub fn started(&mut self) -> &mut dyn Started {
        match self {
            Self::Table(table) => &mut **table,
            Self::Rows(table) => &mut **table,
            Self::Sequential(table) => &mut **table,
            Self::Channel(channel) => &mut **channel,
            Self::Shards(shards) => &mut **shards,
            Self::Counter(counter) => &mut **counter,
            Self::Server(server) => &mut **server,
            Self::Transacting(server) => &mut **server,
            Self::Watched(server) => &mut **server,
            Self::Observed(server) => &mut **server,
            Self::Attacked(server) => &mut **server,
            Self::Expiring(server) => &mut **server,
        }
    }
}

impl fmt::Debug for Contestant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Contestant")
    }
}

/// Turns the faults that a measurement found into errors of this engine.
pub(super) fn samples(
    engine: &'static str,
    measured: Result<Vec<Result<Sample, String>>, String>,
) -> Samples {
    let wrong = |fault| LabError::Wrong { engine, fault };
    let samples = measured.map_err(wrong)?.into_iter();
    Ok(samples.map(|sample| sample.map_err(wrong)).collect())
}

/// The version of a contestant of this project.
pub(super) fn own_version() -> String {
    format!("tremula {}", env!("CARGO_PKG_VERSION"))
}

/// Whether the `PATH` has a program of this name.
pub(super) fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
