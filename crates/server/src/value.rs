//! The value type.

use crate::small_bytes::SmallBytes;
use std::fmt;
use std::ops::Deref;

/// A value: any bytes, immutable. Up to 22 bytes take no allocation, and a clone of a longer one
/// is one reference count, so that scans can copy values out of an index.
#[derive(Clone)]
pub struct Value(SmallBytes);

impl Value {
    /// A value of `length` bytes, zero at first, that `fill` writes.
    #[must_use]
    pub fn build(length: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        Self(SmallBytes::build(length, fill))
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.escape_ascii())
    }
}
