//! Servers of the Redis protocol, each in a process of its own, driven by `redis-benchmark`, or
//! attacked.

mod attacked;
mod benchmark;
mod client;
mod process;

use super::contestant::{
    Contestant, Entrant, Measures, Samples, Side, Started, Starter, is_on_path,
};
use crate::{
    LabError,
    case::ContestantKind,
    workload::{AttackJob, RedisJob},
};
use process::ServerProcess;

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// `tremula serve`.
    Tremula,
    /// `tremula serve --engine ca_tree`.
    TremulaCaTree,
    /// `tremula serve --engine b_tree`.
    TremulaBTree,
    /// `redis-server`.
    Redis,
    /// `valkey-server`.
    Valkey,
}

impl ServerKind {
    /// Every server.
    pub const ALL: [Self; 5] = [
        Self::Tremula,
        Self::TremulaCaTree,
        Self::TremulaBTree,
        Self::Redis,
        Self::Valkey,
    ];
}

impl Entrant for ServerKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Tremula => "tremula_serve",
            Self::TremulaCaTree => "tremula_serve_ca_tree",
            Self::TremulaBTree => "tremula_serve_b_tree",
            Self::Redis => "redis_server",
            Self::Valkey => "valkey_server",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Tremula => "the server of Tremula, with up to a thread a core",
            Self::TremulaCaTree => "the same with the engine ca_tree",
            Self::TremulaBTree => "the same with the engine b_tree",
            Self::Redis => "a real Redis, without persistence",
            Self::Valkey => "a real Valkey, without persistence",
        }
    }

    fn side(&self) -> Side {
        Side::Other
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        match self {
            Self::Tremula => &[ContestantKind::Servers, ContestantKind::Attacked],
            _ => &[ContestantKind::Servers],
        }
    }

    fn missing(&self) -> Option<&'static str> {
        if !is_on_path(benchmark::PROGRAM) {
            return Some(
                "'redis-benchmark' is not on the PATH; install it \
                 (Debian and Ubuntu: apt-get install redis-tools)",
            );
        }
        match self {
            Self::Tremula | Self::TremulaCaTree | Self::TremulaBTree => process::tremula().err(),
            Self::Redis => (!is_on_path(process::REDIS)).then_some(
                "'redis-server' is not on the PATH; install it \
                 (Debian and Ubuntu: apt-get install redis-server)",
            ),
            Self::Valkey => (!is_on_path(process::VALKEY)).then_some(
                "'valkey-server' is not on the PATH; install it (Debian and Ubuntu: \
                 apt-get install valkey-server; Debian 12 has it in bookworm-backports)",
            ),
        }
    }

    fn start(&self, kind: ContestantKind, _starter: &mut Starter) -> Result<Contestant, LabError> {
        let process = match self {
            Self::Tremula => ServerProcess::tremula(&[]),
            Self::TremulaCaTree => ServerProcess::tremula(&["--engine", "ca_tree"]),
            Self::TremulaBTree => ServerProcess::tremula(&["--engine", "b_tree"]),
            Self::Redis => ServerProcess::redis(process::REDIS),
            Self::Valkey => ServerProcess::redis(process::VALKEY),
        };
        let contestant = Box::new(ServerContestant {
            kind: *self,
            process: process?,
        });
        Ok(match kind {
            ContestantKind::Attacked => Contestant::Attacked(contestant),
            _ => Contestant::Server(contestant),
        })
    }
}

/// A running server as a contestant.
#[derive(Debug)]
struct ServerContestant {
    kind: ServerKind,
    process: ServerProcess,
}

impl Started for ServerContestant {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn version(&self) -> String {
        self.process.version.clone()
    }
}

impl Measures<RedisJob> for ServerContestant {
    fn measure(&mut self, job: &RedisJob) -> Samples {
        let sample = benchmark::measure(self.kind.name(), &self.process, job)?;
        Ok(vec![Ok(sample)])
    }
}

/// Each measurement has a server of its own, with one thread.
impl Measures<AttackJob> for ServerContestant {
    fn measure(&mut self, job: &AttackJob) -> Samples {
        Ok(vec![Ok(attacked::measure(self.kind.name(), job)?)])
    }
}
