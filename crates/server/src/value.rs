//! The value type: bytes that are cheap to copy out of an index.

use std::{fmt, ops::Deref, sync::Arc};

/// Values up to this many bytes live in the index's own slot: counters, flags and short words
/// cost no allocation. 22 is what is left of 24 bytes beside the tag and the length.
const INLINE_BYTES: usize = 22;

/// A value: any bytes, immutable, cheap to clone whatever its length.
///
/// A scan copies values out of the index; for a long one that is one reference count.
#[derive(Clone)]
pub struct Value(Repr);

#[derive(Clone)]
enum Repr {
    Short {
        length: u8,
        bytes: [u8; INLINE_BYTES],
    },
    Long(Arc<[u8]>),
}

impl Value {
    /// A value of `length` bytes, zero at first, that `fill` writes.
    #[must_use]
    pub fn build(length: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        if length <= INLINE_BYTES {
            let mut bytes = [0; INLINE_BYTES];
            fill(&mut bytes[..length]);
            #[expect(clippy::cast_possible_truncation, reason = "at most INLINE_BYTES")]
            let length = length as u8;
            return Self(Repr::Short { length, bytes });
        }
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            fill(bytes);
        }
        Self(Repr::Long(bytes))
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        if bytes.len() <= INLINE_BYTES {
            Self::build(bytes.len(), |value| value.copy_from_slice(bytes))
        } else {
            Self(Repr::Long(bytes.into()))
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Short { length, bytes } => &bytes[..usize::from(*length)],
            Repr::Long(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_24_bytes_in_its_slot() {
        assert_eq!(size_of::<Value>(), 24);
    }

    #[test]
    fn every_length_around_the_inline_bound_round_trips() {
        for length in 0..=2 * INLINE_BYTES {
            let bytes: Vec<u8> = (1..=u8::MAX).take(length).collect();
            assert_eq!(&*Value::from(&bytes[..]), &bytes[..]);
            let built = Value::build(length, |value| value.copy_from_slice(&bytes));
            assert_eq!(&*built, &bytes[..]);
        }
    }
}
