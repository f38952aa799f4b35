//! The value type.

use crate::small_bytes::SmallBytes;
use std::fmt;
use std::ops::Deref;

/// A value: any bytes, immutable. Up to 22 bytes take no allocation, and a clone of a longer one
/// is one reference count, so that scans can copy values out of an index.
///
/// A value may instead be the number of a value in the cache. Then it has no bytes of its own, and
/// the cache has them.
#[derive(Clone)]
pub struct Value(Place);

#[derive(Clone)]
enum Place {
    Here(SmallBytes),
    Cached(u64),
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
            Place::Cached(number) => Some(number),
        }
    }
}

impl Value {
    /// Whether the two are one value, not only equal ones.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Place::Here(one), Place::Here(other)) => one.is_same(other),
            (Place::Cached(one), Place::Cached(other)) => one == other,
            _ => false,
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
            Place::Cached(_) => b"",
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Here(bytes) => write!(out, "\"{}\"", bytes.escape_ascii()),
            Place::Cached(number) => write!(out, "Cached({number})"),
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
