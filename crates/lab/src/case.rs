//! What is measured side by side: a case, and the kind of contestants that it is for.

use crate::{
    keys::{KeySet, Keys},
    workload::Distribution,
};

/// The kinds of contestants; each is measured by its own jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContestantKind {
    /// Ordered tables of keys and values.
    Tables,
    /// Tables of rows, as ETS has them.
    Rows,
    /// Ordered tables of keys and values that one thread uses.
    Sequential,
    /// Channels from many senders to one receiver.
    Channels,
    /// Caches in shards.
    Shards,
    /// Counters.
    Counters,
    /// Servers of the Redis protocol.
    Servers,
    /// Servers that run transactions.
    Transacting,
    /// Servers with a log that shows clients what happens to a range.
    Watched,
    /// Servers that have a page.
    Observed,
    /// Servers with one thread, whose clients attack each other.
    Attacked,
    /// Servers whose keys expire, and are all reported when they do.
    Expiring,
}

impl ContestantKind {
    /// The word for a contestant of this kind.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Tables | Self::Rows | Self::Sequential => "table",
            Self::Channels => "channel",
            Self::Shards => "cache in shards",
            Self::Counters => "counter",
            Self::Servers
            | Self::Transacting
            | Self::Watched
            | Self::Observed
            | Self::Attacked
            | Self::Expiring => "server",
        }
    }

    /// Why a contestant of this kind cannot do what another kind does.
    #[must_use]
    pub fn is_no(self, other: Self) -> String {
        if self.noun() != other.noun() {
            return format!("it is a {} and no {}", self.noun(), other.noun());
        }
        let of = match other {
            Self::Rows => "of rows",
            Self::Sequential => "for one thread",
            Self::Transacting => "whose transactions are measured",
            Self::Watched => "whose log is measured as it shows what happens to a range",
            Self::Observed => "that has a page",
            Self::Attacked => "that has the commands of the attacks",
            Self::Expiring => "whose reports of expired keys are measured",
            _ => "of keys and values that threads share",
        };
        format!("it is no {} {of}", other.noun())
    }
}

/// One row of the table: what all contestants are measured on side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The workload's name.
    pub workload: &'static str,
    /// How the keys of operations are chosen, where the workload leaves a choice.
    pub distribution: Option<Distribution>,
    /// The key set's name, or that of the kind of message.
    pub key_set: &'static str,
    /// How many threads.
    pub threads: usize,
    /// How many keys, in the sense that the experiment gives it.
    pub keys: u64,
}

impl Case {
    /// The key set, in an experiment that offers a choice of key sets.
    pub(crate) fn chosen_key_set(&self) -> KeySet {
        let set = self.key_set.parse();
        set.expect("the case of an experiment with key sets names one")
    }

    /// The keys that its table is filled with, in an experiment whose key sets are all of integers.
    pub(crate) fn integers(&self, seed: u64, run: usize) -> Vec<u64> {
        let set = self.chosen_key_set();
        match set.make(self.keys, 0, self.threads, seed, run) {
            Keys::Integers(keys) => keys.loaded,
            Keys::Texts(_) => unreachable!("{set} was not offered"),
        }
    }
}
