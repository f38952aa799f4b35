//! The key type: bytes in byte order, short ones without an allocation.

use smallvec::SmallVec;
use std::fmt;

/// Keys up to this many bytes live in the index's own slot, with no allocation and no pointer
/// to follow. With its length a key then takes 24 bytes, what a `Vec<u8>` takes alone, and
/// the common shapes (`user:1234567`, 16 hexadecimal digits) fit.
const INLINE_BYTES: usize = 16;

/// A key: any bytes, ordered byte by byte as unsigned numbers, a prefix before what extends it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(SmallVec<[u8; INLINE_BYTES]>);

impl Key {
    /// The bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Self {
        Self(SmallVec::from_slice(bytes))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_as_small_as_a_vector() {
        assert_eq!(size_of::<Key>(), 24);
    }

    proptest! {
        #[test]
        fn keys_are_ordered_as_their_bytes(left: Vec<u8>, right: Vec<u8>) {
            let (a, b) = (Key::from(&left[..]), Key::from(&right[..]));
            prop_assert_eq!(a.cmp(&b), left.cmp(&right));
            prop_assert_eq!(a.as_bytes(), &left[..]);
        }
    }
}
