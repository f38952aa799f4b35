//! Transactions that clients send to a server.

use crate::{
    LabError,
    workload::{Pipelining, Purpose, generator},
};
use rand::RngExt;
use std::{str::FromStr, time::Duration};

/// What one transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// `MULTI`, a `SET` of each of ten keys, `EXEC`.
    Exec,
    /// `TXN` that compares the values of four keys, and sets four others.
    Txn,
    /// The same reads and writes, in no transaction: a `GET` of each of four keys, and a `SET` of
    /// each of four others.
    Plain,
}

impl Transaction {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Exec, Self::Txn, Self::Plain];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec_10",
            Self::Txn => "txn_4_4",
            Self::Plain => "plain_8",
        }
    }

    /// How many keys it names.
    #[must_use]
    pub const fn keys(self) -> usize {
        match self {
            Self::Exec => 10,
            Self::Txn | Self::Plain => 8,
        }
    }
}

impl FromStr for Transaction {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|transaction| transaction.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// One kind of transaction, sent by many clients at once.
#[derive(Clone, Copy, Debug)]
pub struct TransactionJob {
    /// What a transaction is.
    pub transaction: Transaction,
    /// How many whole transactions a client sends before it waits for the answers.
    pub pipelining: Pipelining,
    /// How many clients.
    pub clients: usize,
    /// How many keys the clients choose from.
    pub keys: u64,
    /// The seed of the keys.
    pub seed: u64,
    /// The run; the keys depend on it as well.
    pub run: usize,
    /// How long the measurement lasts.
    pub duration: Duration,
}

impl TransactionJob {
    /// The length of a key: `key:` and twelve digits.
    pub const KEY_BYTES: usize = 16;

    /// How many transactions of a client are made in advance; it repeats them. A multiple of the
    /// transactions in a pipeline.
    pub const STREAM: usize = 512;

    /// The numbers of the keys of a client's transactions, one transaction after the other.
    #[must_use]
    pub fn stream(&self, client: usize) -> Vec<u64> {
        let mut random = generator(self.seed, Purpose::Choices, self.run, client);
        (0..Self::STREAM * self.transaction.keys())
            .map(|_| random.random_range(0..self.keys))
            .collect()
    }
}
