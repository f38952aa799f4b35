//! Servers that speak the Redis protocol, each a process of its own, driven by `redis-benchmark`.

mod benchmark;
mod client;
mod process;

use super::{Contestant, ContestantName, is_on_path};
use crate::{LabError, measure::Sample, workload::Job};
use process::ServerProcess;

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// `tremula serve`.
    Tremula,
    /// `redis-server`.
    Redis,
    /// `valkey-server`.
    Valkey,
}

impl ServerKind {
    /// Every server.
    pub const ALL: [Self; 3] = [Self::Tremula, Self::Redis, Self::Valkey];

    /// The contestant's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tremula => "tremula_serve",
            Self::Redis => "redis_server",
            Self::Valkey => "valkey_server",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Tremula => "the server of Tremula, with a thread a core",
            Self::Redis => "a real Redis, without persistence",
            Self::Valkey => "a real Valkey, without persistence",
        }
    }

    /// What this machine lacks to run it, and how to get it.
    pub(super) fn missing(self) -> Option<&'static str> {
        if !is_on_path(benchmark::PROGRAM) {
            return Some(
                "'redis-benchmark' is not on the PATH; install it \
                 (Debian and Ubuntu: apt-get install redis-tools)",
            );
        }
        match self {
            Self::Tremula => process::tremula().err(),
            Self::Redis => (!is_on_path(process::REDIS)).then_some(
                "'redis-server' is not on the PATH; install it \
                 (Debian and Ubuntu: apt-get install redis-server)",
            ),
            Self::Valkey => (!is_on_path(process::VALKEY)).then_some(
                "'valkey-server' is not on the PATH; install it \
                 (Debian and Ubuntu: apt-get install valkey-server)",
            ),
        }
    }
}

/// A running server as a contestant.
#[derive(Debug)]
pub(super) struct ServerContestant {
    kind: ServerKind,
    process: ServerProcess,
}

impl ServerContestant {
    /// Starts the server and waits until it answers.
    pub(super) fn start(kind: ServerKind) -> Result<Self, LabError> {
        let process = match kind {
            ServerKind::Tremula => ServerProcess::tremula(),
            ServerKind::Redis => ServerProcess::redis(process::REDIS),
            ServerKind::Valkey => ServerProcess::redis(process::VALKEY),
        };
        Ok(Self {
            kind,
            process: process?,
        })
    }
}

impl Contestant for ServerContestant {
    fn name(&self) -> ContestantName {
        ContestantName::Server(self.kind)
    }

    fn version(&self) -> String {
        self.process.version.clone()
    }

    fn measure(&mut self, job: &Job) -> Result<Vec<Result<Sample, LabError>>, LabError> {
        let Job::Redis(job) = job else {
            return Err(LabError::Unavailable {
                engine: self.kind.name(),
                missing: "it is a server, and was given other work",
            });
        };
        let sample = benchmark::measure(self.kind, &self.process, job)?;
        Ok(vec![Ok(sample)])
    }
}
