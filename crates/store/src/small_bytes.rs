//! Byte strings in 24 bytes, for keys.

use std::cmp::Ordering;
use std::ops::Deref;
use tremula_sync::system::Arc;

/// Keys of up to this length live in the index's own slot, without an allocation or a pointer to
/// follow. The limit is 24 bytes, the size of a `Vec`, less the tag and the length. Common keys
/// (`user:1234567`, sixteen hexadecimal digits) fit.
pub const INLINE_BYTES: usize = 22;

/// Immutable bytes: short ones in place, long ones shared, so that a clone is cheap whatever the
/// length. Ordered byte by byte as unsigned numbers, a prefix before what extends it.
///
/// Short strings are padded with zeros.
#[derive(Clone, Debug)]
pub(crate) enum SmallBytes {
    Short {
        length: u8,
        bytes: [u8; INLINE_BYTES],
    },
    Long(Arc<[u8]>),
}

impl From<&[u8]> for SmallBytes {
    fn from(bytes: &[u8]) -> Self {
        let mut short = [0; INLINE_BYTES];
        match (short.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(part), Ok(length)) => {
                part.copy_from_slice(bytes);
                Self::Short {
                    length,
                    bytes: short,
                }
            }
            _ => Self::Long(bytes.into()),
        }
    }
}

impl SmallBytes {
    /// The same string; one of up to [`INLINE_BYTES`] is copied into place.
    pub(crate) fn from_shared(bytes: Arc<[u8]>) -> Self {
        if bytes.len() <= INLINE_BYTES {
            return Self::from(&*bytes);
        }
        Self::Long(bytes)
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length)],
            Self::Long(bytes) => bytes,
        }
    }
}

/// Compares short strings word by word: a few loads instead of the call that compares slices. An
/// index search spends most of its time here.
#[inline]
fn compare_short(left: &[u8; INLINE_BYTES], right: &[u8; INLINE_BYTES]) -> Ordering {
    // The last word begins two bytes early, to end with the bytes.
    for at in [0, 8, INLINE_BYTES - 8] {
        let (left, right) = (word(left, at), word(right, at));
        if left != right {
            return left.cmp(&right);
        }
    }
    Ordering::Equal
}

/// Eight bytes as a number with the same order.
#[inline]
fn word(bytes: &[u8; INLINE_BYTES], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(word)
}

impl Ord for SmallBytes {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            // Padding cannot decide wrongly: if it equals a zero byte of the other string, the
            // lengths decide.
            (
                Self::Short { length, bytes },
                Self::Short {
                    length: other_length,
                    bytes: other_bytes,
                },
            ) => compare_short(bytes, other_bytes).then(length.cmp(other_length)),
            _ => (**self).cmp(&**other),
        }
    }
}

impl PartialOrd for SmallBytes {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SmallBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SmallBytes {}

impl std::hash::Hash for SmallBytes {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_as_small_as_a_vector() {
        assert_eq!(size_of::<SmallBytes>(), size_of::<Vec<u8>>());
    }

    #[test]
    fn every_length_around_the_inline_bound_round_trips() {
        for length in 0..=2 * INLINE_BYTES {
            let bytes: Vec<u8> = (1..=u8::MAX).take(length).collect();
            assert_eq!(&*SmallBytes::from(&bytes[..]), &bytes[..]);
            let shared = SmallBytes::from_shared(Arc::from(&bytes[..]));
            assert_eq!(&*shared, &bytes[..]);
            assert_eq!(
                matches!(shared, SmallBytes::Short { .. }),
                length <= INLINE_BYTES
            );
        }
    }

    /// Strings of few different bytes, including zero, of about the inline length.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop::sample::select(&[0, 0, 1, 255][..]);
        prop_oneof![
            prop::collection::vec(byte.clone(), 0..6),
            prop::collection::vec(byte, INLINE_BYTES - 2..INLINE_BYTES + 3),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn the_order_is_that_of_the_bytes(left in bytes(), right in bytes()) {
            let (a, b) = (SmallBytes::from(&left[..]), SmallBytes::from(&right[..]));
            prop_assert_eq!(a.cmp(&b), left.cmp(&right));
            prop_assert_eq!(a == b, left == right);
        }
    }
}
