//! The policies of eviction.

use std::fmt;
use std::str::FromStr;

/// Which keys are evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// None: commands that need memory are refused.
    #[default]
    NoEviction,
    /// The least recently used ones.
    Lru,
    /// The least frequently used ones.
    Lfu,
    /// Any.
    Random,
    /// Of the keys that expire, the least recently used ones.
    VolatileLru,
    /// Of the keys that expire, the least frequently used ones.
    VolatileLfu,
    /// Any that expire.
    VolatileRandom,
    /// Those that expire next.
    VolatileTtl,
}

/// What makes a key worth keeping.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    /// That it was used recently.
    Time,
    /// That it is used often.
    Uses,
    /// Chance.
    Chance,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 8] = [
        Self::NoEviction,
        Self::Lru,
        Self::Lfu,
        Self::Random,
        Self::VolatileLru,
        Self::VolatileLfu,
        Self::VolatileRandom,
        Self::VolatileTtl,
    ];

    /// The name, as Redis spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoEviction => "noeviction",
            Self::Lru => "allkeys-lru",
            Self::Lfu => "allkeys-lfu",
            Self::Random => "allkeys-random",
            Self::VolatileLru => "volatile-lru",
            Self::VolatileLfu => "volatile-lfu",
            Self::VolatileRandom => "volatile-random",
            Self::VolatileTtl => "volatile-ttl",
        }
    }

    /// Whether it matters when or how often keys are used.
    #[must_use]
    pub const fn wants_accesses(self) -> bool {
        matches!(self.worth(), Worth::Time | Worth::Uses)
    }

    /// Whether only keys that expire go.
    pub(super) const fn is_volatile(self) -> bool {
        matches!(
            self,
            Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl
        )
    }

    pub(super) const fn worth(self) -> Worth {
        match self {
            Self::Lru | Self::VolatileLru => Worth::Time,
            Self::Lfu | Self::VolatileLfu => Worth::Uses,
            Self::NoEviction | Self::Random | Self::VolatileRandom | Self::VolatileTtl => {
                Worth::Chance
            }
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = |policy: &Self| policy.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(known).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no policy '{name}'; there are {names}")
        })
    }
}
