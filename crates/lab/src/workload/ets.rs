//! The operations of `ets_throughput`: mixes on a half filled table of rows, with an occasional
//! select.

use super::mix::{Operation, Shares};
use crate::{LabError, measure::Span};
use std::str::FromStr;

/// The shape of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    /// `{Int}`.
    Int,
    /// `{Int, Binary}`, with a binary of [`BINARY_BYTES`].
    IntBinary,
}

/// The length of the binary in a row.
pub const BINARY_BYTES: usize = 64;

impl Rows {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Int, Self::IntBinary];

    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::IntBinary => "int_binary64",
        }
    }
}

/// How much of the table a select reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// Every row.
    All,
    /// The rows with [`SELECTED_KEYS`] consecutive keys, about half of which are present.
    Range,
}

/// How many consecutive keys [`Selected::Range`] spans.
pub const SELECTED_KEYS: u32 = 1000;

/// A select in a mix, in place of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selects {
    /// What is selected.
    pub what: Selected,
    /// One operation in this many of a thread is a select.
    pub period: u32,
}

/// A mix of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtsMix {
    name: &'static str,
    /// The shares of the operations on keys.
    pub shares: Shares,
    /// How many `next` steps a sequence makes.
    pub steps: u32,
    /// The selects among them.
    pub selects: Option<Selects>,
}

const fn keys(name: &'static str, insert: u32, remove: u32) -> EtsMix {
    sequences(name, insert, remove, 0, 0)
}

const fn sequences(
    name: &'static str,
    insert: u32,
    remove: u32,
    sequence: u32,
    steps: u32,
) -> EtsMix {
    EtsMix {
        name,
        shares: Shares {
            insert,
            remove,
            lookup: 1000 - insert - remove - sequence,
            sequence,
        },
        steps,
        selects: None,
    }
}

const fn selects(name: &'static str, what: Selected, period: u32) -> EtsMix {
    EtsMix {
        selects: Some(Selects { what, period }),
        ..keys(name, 100, 100)
    }
}

impl EtsMix {
    /// The fourteen mixes of the throughput benchmark of Erlang's ETS.
    pub const ALL: [Self; 14] = [
        keys("update100", 500, 500),
        keys("update20", 100, 100),
        keys("update2", 10, 10),
        keys("lookup", 0, 0),
        sequences("next10", 100, 100, 400, 10),
        sequences("next100", 100, 100, 400, 100),
        sequences("next1000", 100, 100, 400, 1000),
        sequences("next1000_only", 0, 0, 1000, 1000),
        selects("select_all_1_in_100", Selected::All, 100),
        selects("select_all_1_in_10000", Selected::All, 10_000),
        selects("select_all_1_in_1000000", Selected::All, 1_000_000),
        selects("select_range_1_in_100", Selected::Range, 100),
        selects("select_range_1_in_10000", Selected::Range, 10_000),
        selects("select_range_1_in_1000000", Selected::Range, 1_000_000),
    ];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Whether it steps from keys that may be absent, which only an ordered table supports.
    #[must_use]
    pub const fn needs_order(self) -> bool {
        self.shares.sequence > 0
    }
}

impl FromStr for EtsMix {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|mix| mix.name == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

/// Operation streams against a half filled table of rows.
#[derive(Clone, Debug)]
pub struct EtsJob {
    /// The mix that the streams are of.
    pub mix: EtsMix,
    /// What the rows are.
    pub rows: Rows,
    /// Keys lie below this.
    pub range: u32,
    /// The initial keys, in the order in which one thread inserts them.
    pub prefill: Vec<u32>,
    /// A stream for each thread; all have the same length.
    pub streams: Vec<Vec<Operation>>,
    /// How long the threads warm up, and how long their operations count.
    pub span: Span,
}

impl EtsJob {
    /// The number of operations from one select to the next; without selects, more than any thread
    /// does.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.mix
            .selects
            .map_or(1 << 58, |selects| selects.period.into())
    }

    /// The number of operations before a thread's first select. The threads are staggered.
    #[must_use]
    pub fn first_select(&self, thread: usize) -> u64 {
        let turn = self.period() / self.streams.len() as u64 * (thread as u64 + 1);
        turn.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_have_names_of_their_own_and_whole_shares() {
        for mix in EtsMix::ALL {
            assert_eq!(mix.name().parse::<EtsMix>().unwrap(), mix);
            let Shares {
                insert,
                remove,
                lookup,
                sequence,
            } = mix.shares;
            assert_eq!(insert + remove + lookup + sequence, 1000);
            assert_eq!(mix.needs_order(), mix.steps > 0);
        }
        let error = "update3".parse::<EtsMix>().unwrap_err().to_string();
        assert!(error.contains("update3") && error.contains("next1000_only"));
    }

    #[test]
    fn selects_of_threads_are_apart() {
        let job = EtsJob {
            mix: "select_all_1_in_100".parse().unwrap(),
            rows: Rows::Int,
            range: 4,
            prefill: Vec::new(),
            streams: vec![Vec::new(); 4],
            span: Span::warmed(std::time::Duration::ZERO),
        };
        let first: Vec<_> = (0..4).map(|thread| job.first_select(thread)).collect();
        assert_eq!(first, [25, 50, 75, 100]);
    }
}
