//! The value type.

use crate::expiry::Expiry;
use crate::small_bytes::SmallBytes;
use std::fmt;
use std::ops::Deref;

/// A value: any bytes, immutable. Up to 22 bytes take no allocation, and a clone of a longer one
/// is one reference count, so that scans can copy values out of an index.
///
/// A value carries the time at which its key expires, if it does.
///
/// A value may instead be the number of a value in the cache. Then it has no bytes of its own, and
/// the cache has them.
#[derive(Clone)]
pub struct Value(Place);

#[derive(Clone)]
enum Place {
    Here(SmallBytes),
    Cached(u64),
    CachedExpiring { expiry: Expiry, number: u64 },
}

impl Value {
    /// A value of `length` bytes, zero at first, that `fill` writes.
    #[must_use]
    pub fn build(length: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        Self(Place::Here(SmallBytes::build(length, fill)))
    }

    /// The stand-in for a value in the cache.
    pub const fn in_cache(number: u64) -> Self {
        Self(Place::Cached(number))
    }

    /// The number of the value in the cache, if it lies there.
    #[inline]
    pub const fn cached(&self) -> Option<u64> {
        match self.0 {
            Place::Here(_) => None,
            Place::Cached(number) | Place::CachedExpiring { number, .. } => Some(number),
        }
    }

    /// When its key expires.
    #[inline]
    #[must_use]
    pub const fn expiry(&self) -> Option<Expiry> {
        match &self.0 {
            Place::Here(bytes) => bytes.expiry(),
            Place::Cached(_) => None,
            Place::CachedExpiring { expiry, .. } => Some(*expiry),
        }
    }

    /// The same value under a key that expires at this time, or never. Costs a copy of up to 22
    /// bytes, and an allocation for bytes from 17 to 22; longer ones are shared.
    ///
    /// ```
    /// use tremula_store::{Expiry, Value};
    ///
    /// let value = Value::from(&b"aspen"[..]).expiring(Some(Expiry::now()));
    /// assert!(value.has_expired());
    /// assert_eq!(&*value, b"aspen");
    /// assert_eq!(value.expiring(None).expiry(), None);
    /// ```
    #[must_use]
    pub fn expiring(self, expiry: Option<Expiry>) -> Self {
        Self(match (self.0, expiry) {
            (Place::Here(bytes), expiry) => Place::Here(bytes.expiring(expiry)),
            (Place::Cached(number) | Place::CachedExpiring { number, .. }, Some(expiry)) => {
                Place::CachedExpiring { expiry, number }
            }
            (Place::Cached(number) | Place::CachedExpiring { number, .. }, None) => {
                Place::Cached(number)
            }
        })
    }

    /// Whether its key has expired by now. Asks the clock only if the key expires at all.
    #[inline]
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.expiry().is_some_and(Expiry::is_over)
    }
}

impl Value {
    /// Whether the two are one value, not only equal ones, whenever their keys expire.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Place::Here(one), Place::Here(other)) => one.is_same(other),
            _ => self.cached().is_some() && self.cached() == other.cached(),
        }
    }
}

/// Takes the bytes as they are, without a copy unless they are short. For values that are written
/// piece by piece.
impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Place::Here(bytes.into()))
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self(Place::Here(bytes.into()))
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Here(bytes) => bytes,
            Place::Cached(_) | Place::CachedExpiring { .. } => b"",
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Here(bytes) => write!(out, "\"{}\"", bytes.escape_ascii()),
            Place::Cached(number) | Place::CachedExpiring { number, .. } => {
                write!(out, "Cached({number})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_as_much_as_its_bytes() {
        assert_eq!(size_of::<Value>(), size_of::<SmallBytes>());
    }
}
