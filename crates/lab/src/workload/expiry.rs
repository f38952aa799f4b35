//! What is asked of a server whose keys expire.

use crate::LabError;
use std::{str::FromStr, time::Duration};

/// How keys expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiring {
    /// One each millisecond, and nothing else happens.
    Quiet,
    /// One each millisecond, while clients read and write as fast as they can.
    Loaded,
    /// All keys within a second, while a client reads another key.
    AtOnce,
}

impl Expiring {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Quiet, Self::Loaded, Self::AtOnce];

    /// The name that [`FromStr`] reads.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Loaded => "loaded",
            Self::AtOnce => "at_once",
        }
    }
}

impl FromStr for Expiring {
    type Err = LabError;

    fn from_str(name: &str) -> Result<Self, LabError> {
        Self::ALL
            .into_iter()
            .find(|expiring| expiring.name() == name)
            .ok_or_else(|| LabError::UnknownMix {
                name: name.to_owned(),
                known: Self::ALL.map(Self::name).join(", "),
            })
    }
}

impl ExpiryJob {
    /// The length of a key: `key:` and twelve digits.
    pub const KEY_BYTES: usize = 16;
}

/// A server whose keys expire.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryJob {
    /// How they do.
    pub expiring: Expiring,
    /// How many clients load the server, where it is loaded.
    pub clients: usize,
    /// How many keys expire at once, or the clients choose from.
    pub keys: u64,
    /// How long keys that expire one by one are watched, or the client is measured before all
    /// expire at once.
    pub duration: Duration,
}
