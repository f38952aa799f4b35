//! Byte strings in 24 bytes, with heads made for text.

use super::text_code::{head_of_text, is_only_of_one};
use super::{ByteKey, PlainBytes};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use tremula_sync::system::Arc;

/// Byte strings of up to this length lie in place, without an allocation or a pointer to follow.
/// The limit is 24 bytes, the size of a `Vec`, less the tag and the length. Common keys
/// (`user:1234567`, sixteen hexadecimal digits) fit.
pub const INLINE_BYTES: usize = 22;

/// An immutable byte string: a short one in place, a long one shared, so that a clone is cheap
/// whatever the length. Ordered byte by byte as unsigned numbers, a prefix before what extends it.
///
/// As a [`ByteKey`] it has [heads](ByteKey::head) that hold more of a text than its first eight
/// bytes: about 18 digits or 14 letters, so that an index seldom has to look at the key itself.
///
/// ```
/// use tremula_index::key::ByteString;
/// use tremula_index::{Aspen, OrderedIndex};
///
/// let visits = Aspen::<ByteString, u64>::new();
/// visits.insert(ByteString::from("counter:17"), 1);
/// visits.insert(ByteString::from("counter:16"), 5);
/// let (first, count) = visits.first().expect("an entry");
/// assert_eq!((first.as_bytes(), count), (&b"counter:16"[..], 5));
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteString(Bytes);

/// Short bytes are padded with zeros.
#[derive(Clone)]
enum Bytes {
    Short {
        length: u8,
        bytes: [u8; INLINE_BYTES],
    },
    Long(Arc<[u8]>),
}

impl ByteString {
    /// The bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same bytes; up to [`INLINE_BYTES`] are copied into place.
    #[must_use]
    pub fn from_shared(bytes: Arc<[u8]>) -> Self {
        if bytes.len() <= INLINE_BYTES {
            return Self::from(&*bytes);
        }
        Self(Bytes::Long(bytes))
    }

    /// What the clones of a long string share.
    #[must_use]
    pub const fn shared(&self) -> Option<&Arc<[u8]>> {
        match &self.0 {
            Bytes::Short { .. } => None,
            Bytes::Long(bytes) => Some(bytes),
        }
    }
}

impl From<&[u8]> for ByteString {
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        let mut short = [0; INLINE_BYTES];
        Self(
            match (short.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
                (Some(part), Ok(length)) => {
                    part.copy_from_slice(bytes);
                    Bytes::Short {
                        length,
                        bytes: short,
                    }
                }
                _ => Bytes::Long(bytes.into()),
            },
        )
    }
}

impl From<&str> for ByteString {
    #[inline]
    fn from(text: &str) -> Self {
        Self::from(text.as_bytes())
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.0.escape_ascii())
    }
}

impl ByteKey for ByteString {
    const PLAIN_BYTES: Option<PlainBytes<Self>> =
        Some(PlainBytes::with_heads(|key| &key.0, head_of_text));

    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.0)
    }

    #[inline]
    fn head_of_bytes(bytes: &[u8]) -> u64 {
        head_of_text(bytes)
    }

    #[inline]
    fn is_only_of_one(head: u64) -> bool {
        is_only_of_one(head)
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
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

impl Ord for Bytes {
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

impl PartialOrd for Bytes {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_as_small_as_a_vector() {
        assert_eq!(size_of::<ByteString>(), size_of::<Vec<u8>>());
    }

    #[test]
    fn every_length_around_the_inline_bound_round_trips() {
        for length in 0..=2 * INLINE_BYTES {
            let bytes: Vec<u8> = (1..=u8::MAX).take(length).collect();
            assert_eq!(ByteString::from(&bytes[..]).as_bytes(), &bytes[..]);
            let shared = ByteString::from_shared(Arc::from(&bytes[..]));
            assert_eq!(shared.as_bytes(), &bytes[..]);
            assert_eq!(shared.shared().is_none(), length <= INLINE_BYTES);
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
            let (a, b) = (ByteString::from(&left[..]), ByteString::from(&right[..]));
            prop_assert_eq!(a.cmp(&b), left.cmp(&right));
            prop_assert_eq!(a == b, left == right);
        }
    }
}
