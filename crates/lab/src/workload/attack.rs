//! What clients do to a server that others share with them.

use crate::LabError;
use std::{str::FromStr, time::Duration};

/// A command that takes long, sent again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Nothing: the attackers are connected, and silent.
    None,
    /// `KEYS` of all keys.
    Keys,
    /// `RANGE` of all keys and values.
    Range,
    /// `APPEND` of a byte to a value of [`LONG`](Self::LONG) bytes.
    Append,
    /// `SETRANGE` that makes such a value, and `DEL`, which frees it.
    Free,
    /// `ETS.SELECT_COUNT` over a table with a row for each key.
    Search,
    /// `ETS.MATCH_SPEC_RUN` over a list of 20,000 rows.
    MatchSpecRun,
    /// `ETS.INSERT` of such a list, in one step.
    Insert,
}

impl Attack {
    /// Every attack, first none.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::Keys,
        Self::Range,
        Self::Append,
        Self::Free,
        Self::Search,
        Self::MatchSpecRun,
        Self::Insert,
    ];

    /// The bytes of a long value.
    pub const LONG: usize = 64 << 20;

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Keys => "keys",
            Self::Range => "range",
            Self::Append => "append",
            Self::Free => "free",
            Self::Search => "search",
            Self::MatchSpecRun => "match_spec_run",
            Self::Insert => "insert",
        }
    }
}

impl FromStr for Attack {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|attack| attack.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

impl AttackJob {
    /// The length of a key: `key:` and twelve digits.
    pub const KEY_BYTES: usize = 16;
}

/// One client, served by one thread with others that attack it.
#[derive(Clone, Copy, Debug)]
pub struct AttackJob {
    /// What the others do.
    pub attack: Attack,
    /// How many others there are.
    pub attackers: usize,
    /// How many keys the server has.
    pub keys: u64,
    /// How long the client is measured.
    pub duration: Duration,
}
