//! When keys expire.
//!
//! A value carries the time at which its key expires, in bytes that it has anyway. From then on
//! every read passes over the key, so no key is seen after its time, and none goes early. Removing
//! it is left to [`Store::expire`](crate::Store::expire): each database has a second index of the
//! keys that will expire, by time.

use std::time::{Duration, SystemTime};
use thiserror::Error;

/// A time at which a key expires: milliseconds since 1970 began, up to the year 10889.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Expiry([u8; Self::BYTES]);

impl Expiry {
    /// The bytes of a time; they are ordered as the times are.
    pub(crate) const BYTES: usize = 6;

    /// The latest time, in milliseconds.
    pub const LAST_MILLIS: u64 = (1 << (8 * Self::BYTES)) - 1;

    /// The latest time.
    pub const LAST: Self = Self([u8::MAX; Self::BYTES]);

    /// The time this many milliseconds after 1970 began; `None` if that is after
    /// [`LAST_MILLIS`](Self::LAST_MILLIS).
    ///
    /// ```
    /// use tremula_store::Expiry;
    ///
    /// let expiry = Expiry::from_millis(1_700_000_000_000).expect("before the year 10889");
    /// assert_eq!(expiry.millis(), 1_700_000_000_000);
    /// assert!(expiry < Expiry::now());
    /// assert_eq!(Expiry::from_millis(Expiry::LAST_MILLIS + 1), None);
    /// ```
    #[must_use]
    pub fn from_millis(millis: u64) -> Option<Self> {
        let [0, 0, bytes @ ..] = millis.to_be_bytes() else {
            return None;
        };
        Some(Self(bytes))
    }

    /// Milliseconds since 1970 began.
    #[must_use]
    pub const fn millis(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The time that it is now, by the system's clock.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let millis = since.unwrap_or(Duration::ZERO).as_millis();
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        Self::from_millis(millis).unwrap_or(Self::LAST)
    }

    /// Whether the time has come.
    #[must_use]
    pub fn is_over(self) -> bool {
        self <= Self::now()
    }

    /// Reads a time as records and snapshots have it: 0 is for never.
    pub(crate) fn read(millis: u64) -> Result<Option<Self>, String> {
        let expiry = Self::from_millis(millis).ok_or_else(|| format!("a time of {millis}"))?;
        Ok(Some(expiry).filter(|_| millis > 0))
    }
}

/// A time that no [`Expiry`] can be: before 1970, or after the year 10889.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("a key cannot expire at {0:?}: before 1970, or after the year 10889")]
pub struct NoExpiry(SystemTime);

/// Parts of a millisecond are left out.
impl TryFrom<SystemTime> for Expiry {
    type Error = NoExpiry;

    fn try_from(time: SystemTime) -> Result<Self, NoExpiry> {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).ok();
        let millis = since.and_then(|since| u64::try_from(since.as_millis()).ok());
        millis.and_then(Self::from_millis).ok_or(NoExpiry(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_system_are_times_of_keys_within_their_bounds() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        for millis in [0, 1, 1_700_000_000_000, Expiry::LAST_MILLIS] {
            let expiry = Expiry::try_from(at(millis)).expect("a time of a key");
            assert_eq!(expiry.millis(), millis);
        }
        let before = SystemTime::UNIX_EPOCH - Duration::from_millis(1);
        for time in [at(Expiry::LAST_MILLIS + 1), before] {
            let told = Expiry::try_from(time).expect_err("no time of a key");
            assert!(
                told.to_string().contains("a key cannot expire at"),
                "{told}"
            );
        }
    }
}
