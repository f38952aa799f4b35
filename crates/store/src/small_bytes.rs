//! Byte strings in 24 bytes, for keys and values. They may carry the time at which a key expires,
//! in bytes that are there anyway.

use crate::expiry::Expiry;
use std::cmp::Ordering;
use std::ops::Deref;
use tremula_sync::system::Arc;

/// Byte strings of up to this length live in the index's own slot, without an allocation or a
/// pointer to follow. The limit is 24 bytes, the size of a `Vec`, less the tag and the length.
/// Common keys (`user:1234567`, sixteen hexadecimal digits), counters and flags fit.
pub const INLINE_BYTES: usize = 22;

/// Byte strings of up to this length lie in place even with a time.
const INLINE_EXPIRING: usize = INLINE_BYTES - Expiry::BYTES;

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
    /// Bytes that were written piece by piece.
    Built(Arc<Vec<u8>>),
    ShortExpiring {
        length: u8,
        expiry: Expiry,
        bytes: [u8; INLINE_EXPIRING],
    },
    LongExpiring {
        expiry: Expiry,
        bytes: Arc<[u8]>,
    },
    BuiltExpiring {
        expiry: Expiry,
        bytes: Arc<Vec<u8>>,
    },
}

impl SmallBytes {
    /// A string of `length` bytes, zero at first, that `fill` writes.
    pub(crate) fn build(length: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        match u8::try_from(length) {
            Ok(short) if length <= INLINE_BYTES => {
                let mut bytes = [0; INLINE_BYTES];
                fill(&mut bytes[..length]);
                Self::Short {
                    length: short,
                    bytes,
                }
            }
            _ => {
                let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
                // No other thread has it yet.
                if let Some(bytes) = Arc::get_mut(&mut bytes) {
                    fill(bytes);
                }
                Self::Long(bytes)
            }
        }
    }
}

impl From<&[u8]> for SmallBytes {
    fn from(bytes: &[u8]) -> Self {
        if bytes.len() <= INLINE_BYTES {
            Self::build(bytes.len(), |short| short.copy_from_slice(bytes))
        } else {
            Self::Long(bytes.into())
        }
    }
}

impl From<Vec<u8>> for SmallBytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= INLINE_BYTES {
            Self::from(&bytes[..])
        } else {
            Self::Built(Arc::new(bytes))
        }
    }
}

impl SmallBytes {
    /// Whether the two are one string, not only equal ones. Times do not matter, nor whether a
    /// short string is in place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len()
            && (std::ptr::eq(&raw const **self, &raw const **other)
                || self.len() <= INLINE_BYTES && **self == **other)
    }

    /// The time that it carries.
    #[inline]
    pub(crate) const fn expiry(&self) -> Option<Expiry> {
        match self {
            Self::Short { .. } | Self::Long(_) | Self::Built(_) => None,
            Self::ShortExpiring { expiry, .. }
            | Self::LongExpiring { expiry, .. }
            | Self::BuiltExpiring { expiry, .. } => Some(*expiry),
        }
    }

    /// The same bytes with this time, or without one. Long bytes are not copied.
    pub(crate) fn expiring(self, expiry: Option<Expiry>) -> Self {
        if self.expiry() == expiry {
            return self;
        }
        match self {
            Self::Long(bytes) | Self::LongExpiring { bytes, .. } if bytes.len() > INLINE_BYTES => {
                match expiry {
                    Some(expiry) => Self::LongExpiring { expiry, bytes },
                    None => Self::Long(bytes),
                }
            }
            Self::Built(bytes) | Self::BuiltExpiring { bytes, .. } => match expiry {
                Some(expiry) => Self::BuiltExpiring { expiry, bytes },
                None => Self::Built(bytes),
            },
            short => short.short_expiring(expiry),
        }
    }

    fn short_expiring(&self, expiry: Option<Expiry>) -> Self {
        let Some(expiry) = expiry else {
            return Self::from(&**self);
        };
        if self.len() > INLINE_EXPIRING {
            let bytes = Arc::from(&**self);
            return Self::LongExpiring { expiry, bytes };
        }
        let mut bytes = [0; INLINE_EXPIRING];
        bytes[..self.len()].copy_from_slice(self);
        let length = self.len() as u8;
        Self::ShortExpiring {
            length,
            expiry,
            bytes,
        }
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length)],
            Self::Long(bytes) | Self::LongExpiring { bytes, .. } => bytes,
            Self::Built(bytes) | Self::BuiltExpiring { bytes, .. } => bytes,
            Self::ShortExpiring { length, bytes, .. } => &bytes[..usize::from(*length)],
        }
    }
}

/// The first eight bytes of the time and the string behind it, as a number with the same order.
#[inline]
pub(crate) fn head_of_expiring(string: &SmallBytes) -> u64 {
    let time = string.expiry().map_or(0, Expiry::millis);
    let byte = |at: usize| u64::from(string.get(at).copied().unwrap_or(0));
    time << 16 | byte(0) << 8 | byte(1)
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
            assert_eq!(&*SmallBytes::from(bytes.clone()), &bytes[..]);
            let built = SmallBytes::build(length, |value| value.copy_from_slice(&bytes));
            assert_eq!(&*built, &bytes[..]);
        }
    }

    #[test]
    fn a_time_is_carried_and_changes_no_byte() {
        let (one, other) = (Expiry::from_millis(1), Expiry::from_millis(1 << 40));
        for length in 0..=2 * INLINE_BYTES {
            let bytes: Vec<u8> = (1..=u8::MAX).take(length).collect();
            for string in [
                SmallBytes::from(&bytes[..]),
                SmallBytes::from(bytes.clone()),
            ] {
                let mut now = string.clone();
                for expiry in [one, other, None, None, other, one, None] {
                    now = now.expiring(expiry);
                    assert_eq!(now.expiry(), expiry, "{length}");
                    assert_eq!(&*now, &bytes[..]);
                    assert!(now.is_same(&string), "{length}");
                    assert_eq!(now.cmp(&string), Ordering::Equal);
                }
                let equal = SmallBytes::from(&bytes[..]);
                assert_eq!(equal.is_same(&string), length <= INLINE_BYTES);
            }
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
