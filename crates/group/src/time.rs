//! Moments of a monotonic clock.

use std::fmt;
use std::time::Duration;

/// A moment of one machine's monotonic clock, in microseconds since any beginning.
///
/// The state machine reads no clock: its host passes the moment with each call. Moments of two
/// machines are never compared. The clock must go on while the machine is suspended (on Linux
/// `CLOCK_BOOTTIME`, not `CLOCK_MONOTONIC`), or a lease outlives the suspension.
///
/// ```
/// use std::time::Duration;
/// use tremula_group::Moment;
///
/// let moment = Moment::from_micros(5).after(Duration::from_micros(2));
/// assert_eq!(moment.since(Moment::from_micros(4)), Duration::from_micros(3));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The moment this number of microseconds after the clock's beginning.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the clock's beginning.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The moment a while later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// How long ago `earlier` was; zero if it is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} µs", self.0)
    }
}
