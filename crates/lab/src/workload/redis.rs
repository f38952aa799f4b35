//! What `redis-benchmark` sends to a server.

use crate::LabError;
use std::{str::FromStr, time::Duration};

/// A command, sent repeatedly for randomly chosen keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedisCommand {
    /// `SET` of a value of three bytes.
    Set,
    /// `GET` of a present key.
    Get,
    /// `INCR`.
    Incr,
    /// `MSET` of ten keys.
    Mset,
    /// `GETRANGE` of a whole value.
    GetRange,
    /// `PUBLISH` to a hundred clients that listen.
    Publish,
}

impl RedisCommand {
    /// Every command.
    pub const ALL: [Self; 6] = [
        Self::Set,
        Self::Get,
        Self::Incr,
        Self::Mset,
        Self::GetRange,
        Self::Publish,
    ];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Get => "get",
            Self::Incr => "incr",
            Self::Mset => "mset",
            Self::GetRange => "getrange",
            Self::Publish => "publish_100",
        }
    }
}

impl FromStr for RedisCommand {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|command| command.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// How many requests a client sends before it waits for the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipelining {
    /// One.
    None,
    /// Sixteen.
    Sixteen,
}

impl Pipelining {
    /// Both.
    pub const ALL: [Self; 2] = [Self::None, Self::Sixteen];

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "pipeline_1",
            Self::Sixteen => "pipeline_16",
        }
    }

    /// How many requests.
    #[must_use]
    pub const fn requests(self) -> u64 {
        match self {
            Self::None => 1,
            Self::Sixteen => 16,
        }
    }
}

impl RedisJob {
    /// The length of a key: `key:` and twelve digits.
    pub const KEY_BYTES: usize = 16;
}

/// The same load on two servers in turn: one has no page, the other's page is open.
#[derive(Clone, Copy, Debug)]
pub struct ObserveJob {
    /// What is sent to each server in one turn.
    pub load: RedisJob,
}

/// One command, sent by many clients at once.
#[derive(Clone, Copy, Debug)]
pub struct RedisJob {
    /// The command.
    pub command: RedisCommand,
    /// How many requests a client sends before it waits.
    pub pipelining: Pipelining,
    /// How many clients.
    pub clients: usize,
    /// How many keys the clients choose from.
    pub keys: u64,
    /// About how long the measurement lasts.
    pub duration: Duration,
}
