//! Servers of the Redis protocol, each in a process of its own: driven by `redis-benchmark`, sent
//! transactions, watched, observed, attacked, or with keys that expire.

mod attacked;
mod benchmark;
mod client;
mod expiry;
mod feeds;
mod listeners;
mod observed;
mod process;
mod transactions;

use super::contestant::{
    Asked, Contestant, Entrant, Measures, Samples, Side, Started, Starter, is_on_path,
};
use crate::{
    LabError,
    case::ContestantKind,
    workload::{AttackJob, ExpiryJob, FeedJob, ObserveJob, RedisJob, Transaction, TransactionJob},
};
use process::{Durability, ServerProcess};

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// `tremula serve`.
    Tremula,
    /// `tremula serve --engine ca_tree`.
    TremulaCaTree,
    /// `tremula serve --engine b_tree`.
    TremulaBTree,
    /// `tremula serve --dir … --durability everysec`.
    TremulaEverySecond,
    /// `tremula serve --dir … --durability always`.
    TremulaAlways,
    /// `redis-server`.
    Redis,
    /// `redis-server --appendonly yes --appendfsync everysec`.
    RedisEverySecond,
    /// `redis-server --appendonly yes --appendfsync always`.
    RedisAlways,
    /// `valkey-server`.
    Valkey,
}

impl ServerKind {
    /// Every server.
    pub const ALL: [Self; 9] = [
        Self::Tremula,
        Self::TremulaCaTree,
        Self::TremulaBTree,
        Self::TremulaEverySecond,
        Self::TremulaAlways,
        Self::Redis,
        Self::RedisEverySecond,
        Self::RedisAlways,
        Self::Valkey,
    ];
}

impl Entrant for ServerKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Tremula => "tremula_serve",
            Self::TremulaCaTree => "tremula_serve_ca_tree",
            Self::TremulaBTree => "tremula_serve_b_tree",
            Self::TremulaEverySecond => "tremula_serve_everysec",
            Self::TremulaAlways => "tremula_serve_always",
            Self::Redis => "redis_server",
            Self::RedisEverySecond => "redis_server_everysec",
            Self::RedisAlways => "redis_server_always",
            Self::Valkey => "valkey_server",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Tremula => "the server of Tremula, with up to a thread a core",
            Self::TremulaCaTree => "the same with the engine ca_tree",
            Self::TremulaBTree => "the same with the engine b_tree",
            Self::TremulaEverySecond => "the same with a log that is synced every second",
            Self::TremulaAlways => "the same with a log that is synced before each reply",
            Self::Redis => "a real Redis, without persistence",
            Self::RedisEverySecond => "the same with a log that is synced every second",
            Self::RedisAlways => "the same with a log that is synced before each reply",
            Self::Valkey => "a real Valkey, without persistence",
        }
    }

    fn side(&self) -> Side {
        Side::Other
    }

    fn kinds(&self) -> &'static [ContestantKind] {
        match self {
            Self::Tremula => &[
                ContestantKind::Servers,
                ContestantKind::Transacting,
                ContestantKind::Observed,
                ContestantKind::Attacked,
                ContestantKind::Expiring,
            ],
            Self::TremulaEverySecond => &[
                ContestantKind::Servers,
                ContestantKind::Transacting,
                ContestantKind::Watched,
            ],
            _ => &[ContestantKind::Servers, ContestantKind::Transacting],
        }
    }

    fn is_in_process(&self) -> bool {
        false
    }

    fn missing(&self) -> Option<&'static str> {
        if !is_on_path(benchmark::PROGRAM) {
            return Some(
                "'redis-benchmark' is not on the PATH; install it \
                 (Debian and Ubuntu: apt-get install redis-tools)",
            );
        }
        match self {
            Self::Tremula
            | Self::TremulaCaTree
            | Self::TremulaBTree
            | Self::TremulaEverySecond
            | Self::TremulaAlways => process::tremula().err(),
            Self::Redis | Self::RedisEverySecond | Self::RedisAlways => {
                (!is_on_path(process::REDIS)).then_some(
                    "'redis-server' is not on the PATH; install it \
                 (Debian and Ubuntu: apt-get install redis-server)",
                )
            }
            Self::Valkey => (!is_on_path(process::VALKEY)).then_some(
                "'valkey-server' is not on the PATH; install it (Debian and Ubuntu: \
                 apt-get install valkey-server; Debian 12 has it in bookworm-backports)",
            ),
        }
    }

    fn refuses(&self, asked: &Asked<'_>) -> Option<&'static str> {
        let is_redis = match self {
            Self::Redis | Self::RedisEverySecond | Self::RedisAlways | Self::Valkey => true,
            Self::Tremula
            | Self::TremulaCaTree
            | Self::TremulaBTree
            | Self::TremulaEverySecond
            | Self::TremulaAlways => false,
        };
        let is_txn = asked.workload == Some(Transaction::Txn.name());
        (is_redis && is_txn).then_some("it has no command TXN")
    }

    fn start(&self, kind: ContestantKind, _starter: &mut Starter) -> Result<Contestant, LabError> {
        let process = match self {
            Self::Tremula => ServerProcess::tremula(&[], Durability::None),
            Self::TremulaCaTree => {
                ServerProcess::tremula(&["--engine", "ca_tree"], Durability::None)
            }
            Self::TremulaBTree => ServerProcess::tremula(&["--engine", "b_tree"], Durability::None),
            Self::TremulaEverySecond => ServerProcess::tremula(&[], Durability::EverySecond),
            Self::TremulaAlways => ServerProcess::tremula(&[], Durability::Always),
            Self::Redis => ServerProcess::redis(process::REDIS, Durability::None),
            Self::RedisEverySecond => ServerProcess::redis(process::REDIS, Durability::EverySecond),
            Self::RedisAlways => ServerProcess::redis(process::REDIS, Durability::Always),
            Self::Valkey => ServerProcess::redis(process::VALKEY, Durability::None),
        };
        let contestant = Box::new(ServerContestant {
            kind: *self,
            process: process?,
        });
        Ok(match kind {
            ContestantKind::Transacting => Contestant::Transacting(contestant),
            ContestantKind::Watched => Contestant::Watched(contestant),
            ContestantKind::Observed => Contestant::Observed(contestant),
            ContestantKind::Attacked => Contestant::Attacked(contestant),
            ContestantKind::Expiring => Contestant::Expiring(contestant),
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

impl Measures<TransactionJob> for ServerContestant {
    fn measure(&mut self, job: &TransactionJob) -> Samples {
        let sample = transactions::measure(self.kind.name(), &self.process, job)?;
        Ok(vec![Ok(sample)])
    }
}

impl Measures<FeedJob> for ServerContestant {
    fn measure(&mut self, job: &FeedJob) -> Samples {
        let sample = feeds::measure(self.kind.name(), &self.process, job)?;
        Ok(vec![Ok(sample)])
    }
}

impl Measures<ExpiryJob> for ServerContestant {
    fn measure(&mut self, job: &ExpiryJob) -> Samples {
        let sample = expiry::measure(self.kind.name(), &self.process, job)?;
        Ok(vec![Ok(sample)])
    }
}

/// Each measurement has two servers of its own.
impl Measures<ObserveJob> for ServerContestant {
    fn measure(&mut self, job: &ObserveJob) -> Samples {
        Ok(vec![Ok(observed::measure(self.kind.name(), job)?)])
    }
}

/// Each measurement has a server of its own, with one thread.
impl Measures<AttackJob> for ServerContestant {
    fn measure(&mut self, job: &AttackJob) -> Samples {
        Ok(vec![Ok(attacked::measure(self.kind.name(), job)?)])
    }
}
