//! The value type.

use crate::expiry::Expiry;
use crate::version::Version;
use std::fmt;
use std::ops::Deref;
use tremula_sync::system::Arc;
use triomphe::ThinArc;

/// Values of up to this length live in the index's own slot, without an allocation or a pointer to
/// follow. The limit is 24 bytes, the size of a `Vec`, less the tag, the length and the version.
/// Common numbers, identifiers and flags fit.
pub const INLINE_VALUE_BYTES: usize = 16;

/// Values of up to this length lie in place even under a key that expires.
const INLINE_EXPIRING: usize = INLINE_VALUE_BYTES - Expiry::BYTES;

/// A value: any bytes, immutable. Up to 16 bytes take no allocation, up to 10 if its key expires;
/// and a clone of a longer one is one reference count, so that scans can copy values out of an
/// index.
///
/// A value carries its [`Version`], which it gets when it is stored, and the time at which its key
/// expires, if it does.
///
/// A value may instead be the number of a value in the cache. Then it has no bytes of its own, and
/// the cache has them.
#[derive(Clone)]
pub struct Value(Place);

/// Where the bytes are. Short ones are padded with zeros.
#[derive(Clone)]
enum Place {
    Short {
        version: Version,
        length: u8,
        bytes: [u8; INLINE_VALUE_BYTES],
    },
    ShortExpiring {
        version: Version,
        expiry: Expiry,
        length: u8,
        bytes: [u8; INLINE_EXPIRING],
    },
    /// The length lies with the bytes, so that there is room for the time here.
    Long {
        version: Version,
        expiry: Option<Expiry>,
        bytes: ThinArc<(), u8>,
    },
    /// Bytes that were written piece by piece.
    Built {
        version: Version,
        expiry: Option<Expiry>,
        bytes: Arc<Vec<u8>>,
    },
    Cached {
        version: Version,
        expiry: Option<Expiry>,
        number: u64,
    },
}

impl Value {
    /// A value of `length` bytes, zero at first, that `fill` writes.
    #[must_use]
    pub fn build(length: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        if length <= INLINE_VALUE_BYTES {
            let mut bytes = [0; INLINE_VALUE_BYTES];
            fill(&mut bytes[..length]);
            return Self::in_place(length, bytes);
        }
        let mut bytes = ThinArc::from_header_and_iter((), std::iter::repeat_n(0, length));
        bytes.with_arc_mut(|bytes| {
            // No other thread has it yet.
            if let Some(bytes) = triomphe::Arc::get_mut(bytes) {
                fill(bytes.slice_mut());
            }
        });
        Self::long(bytes)
    }

    /// The first `length` of these bytes, of which the others are zero.
    const fn in_place(length: usize, bytes: [u8; INLINE_VALUE_BYTES]) -> Self {
        Self(Place::Short {
            version: Version::NONE,
            length: length as u8,
            bytes,
        })
    }

    const fn long(bytes: ThinArc<(), u8>) -> Self {
        Self(Place::Long {
            version: Version::NONE,
            expiry: None,
            bytes,
        })
    }

    /// The stand-in for a value in the cache.
    pub const fn in_cache(number: u64) -> Self {
        Self(Place::Cached {
            version: Version::NONE,
            expiry: None,
            number,
        })
    }

    /// The number of the value in the cache, if it lies there.
    #[inline]
    pub const fn cached(&self) -> Option<u64> {
        match self.0 {
            Place::Cached { number, .. } => Some(number),
            _ => None,
        }
    }

    /// The change that made it; [`Version::NONE`] if it was not stored yet.
    #[inline]
    #[must_use]
    pub const fn version(&self) -> Version {
        match self.0 {
            Place::Short { version, .. }
            | Place::ShortExpiring { version, .. }
            | Place::Long { version, .. }
            | Place::Built { version, .. }
            | Place::Cached { version, .. } => version,
        }
    }

    /// Gives it the version of the change that stores it.
    #[inline]
    pub(crate) const fn stamp(&mut self, new: Version) {
        match &mut self.0 {
            Place::Short { version, .. }
            | Place::ShortExpiring { version, .. }
            | Place::Long { version, .. }
            | Place::Built { version, .. }
            | Place::Cached { version, .. } => *version = new,
        }
    }

    /// When its key expires.
    #[inline]
    #[must_use]
    pub const fn expiry(&self) -> Option<Expiry> {
        match self.0 {
            Place::Short { .. } => None,
            Place::ShortExpiring { expiry, .. } => Some(expiry),
            Place::Long { expiry, .. }
            | Place::Built { expiry, .. }
            | Place::Cached { expiry, .. } => expiry,
        }
    }

    /// The same value under a key that expires at this time, or never. Costs a copy of up to 16
    /// bytes, and an allocation for bytes from 11 to 16; longer ones are shared.
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
    pub fn expiring(mut self, new: Option<Expiry>) -> Self {
        match (&mut self.0, new) {
            (Place::Short { .. }, None) => {}
            (Place::ShortExpiring { expiry, .. }, Some(new)) => *expiry = new,
            (Place::Long { bytes, .. }, None) if bytes.slice.len() <= INLINE_VALUE_BYTES => {
                return self.again_in_place(None);
            }
            (
                Place::Long { expiry, .. }
                | Place::Built { expiry, .. }
                | Place::Cached { expiry, .. },
                new,
            ) => *expiry = new,
            (Place::Short { .. } | Place::ShortExpiring { .. }, new) => {
                return self.again_in_place(new);
            }
        }
        self
    }

    /// The same short bytes with this time, in place if there is room for both.
    fn again_in_place(&self, expiry: Option<Expiry>) -> Self {
        let mut again = Self::from(&**self);
        if let (Place::Short { length, bytes, .. }, Some(expiry)) = (&again.0, expiry) {
            let (version, length) = (Version::NONE, *length);
            again.0 = match bytes.split_first_chunk() {
                Some((bytes, _)) if usize::from(length) <= INLINE_EXPIRING => {
                    Place::ShortExpiring {
                        version,
                        expiry,
                        length,
                        bytes: *bytes,
                    }
                }
                _ => Place::Long {
                    version,
                    expiry: Some(expiry),
                    bytes: ThinArc::from_header_and_slice((), self),
                },
            };
        }
        again.stamp(self.version());
        again
    }

    /// Whether its key has expired by now. Asks the clock only if the key expires at all.
    #[inline]
    #[must_use]
    pub fn has_expired(&self) -> bool {
        self.expiry().is_some_and(Expiry::is_over)
    }
}

impl Value {
    /// Whether the two are one value, not only equal ones, whenever their keys expire. Values in
    /// place are one if they are equal.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        if self.cached().is_some() || other.cached().is_some() {
            return self.cached() == other.cached();
        }
        let (one, other): (&[u8], &[u8]) = (self, other);
        one.len() == other.len()
            && (std::ptr::eq(one, other) || one.len() <= INLINE_VALUE_BYTES && one == other)
    }
}

/// Takes the bytes as they are, without a copy unless they are short. For values that are written
/// piece by piece.
impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= INLINE_VALUE_BYTES {
            return Self::from(&bytes[..]);
        }
        Self(Place::Built {
            version: Version::NONE,
            expiry: None,
            bytes: Arc::new(bytes),
        })
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        let mut short = [0; INLINE_VALUE_BYTES];
        let Some(part) = short.get_mut(..bytes.len()) else {
            return Self::long(ThinArc::from_header_and_slice((), bytes));
        };
        part.copy_from_slice(bytes);
        Self::in_place(bytes.len(), short)
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Short { length, bytes, .. } => &bytes[..usize::from(*length)],
            Place::ShortExpiring { length, bytes, .. } => &bytes[..usize::from(*length)],
            Place::Long { bytes, .. } => &bytes.slice,
            Place::Built { bytes, .. } => bytes,
            Place::Cached { .. } => b"",
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cached() {
            Some(number) => write!(out, "Cached({number})"),
            None => write!(out, "\"{}\"", self.escape_ascii()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_small_as_a_vector() {
        assert_eq!(size_of::<Value>(), size_of::<Vec<u8>>());
        assert_eq!(size_of::<Option<Value>>(), size_of::<Vec<u8>>());
    }

    #[test]
    fn every_length_around_the_bounds_round_trips() {
        for length in 0..=2 * INLINE_VALUE_BYTES {
            let bytes: Vec<u8> = (1..=u8::MAX).take(length).collect();
            let built = Value::build(length, |value| value.copy_from_slice(&bytes));
            for value in [Value::from(&bytes[..]), Value::from(bytes.clone()), built] {
                assert_eq!(&*value, &bytes[..]);
                let is_in_place = matches!(value.0, Place::Short { .. });
                assert_eq!(is_in_place, length <= INLINE_VALUE_BYTES, "{length}");
                let expiring = value.expiring(Some(Expiry::LAST));
                assert_eq!(&*expiring, &bytes[..]);
                let is_in_place = matches!(expiring.0, Place::ShortExpiring { .. });
                assert_eq!(is_in_place, length <= INLINE_EXPIRING, "{length}");
            }
        }
    }

    #[test]
    fn a_time_and_a_version_are_carried_and_change_no_byte() {
        let (one, other) = (Expiry::from_millis(1), Expiry::from_millis(1 << 40));
        let mut numbers = 1..;
        for length in 0..=2 * INLINE_VALUE_BYTES {
            let bytes: Vec<u8> = (1..=u8::MAX).take(length).collect();
            for value in [Value::from(&bytes[..]), Value::from(bytes.clone())] {
                let mut now = value.clone();
                let mut version = Version::NONE;
                for expiry in [one, other, None, None, other, one, None] {
                    now = now.expiring(expiry);
                    assert_eq!(now.expiry(), expiry, "{length}");
                    assert_eq!(now.version(), version, "{length}");
                    version = Version::wrapping(numbers.next().unwrap_or(0) << 20 | 1);
                    now.stamp(version);
                    assert_eq!((now.version(), now.expiry()), (version, expiry));
                    assert_eq!(&*now, &bytes[..]);
                    assert!(now.is_same(&value), "{length}");
                }
                let equal = Value::from(&bytes[..]);
                assert_eq!(equal.is_same(&value), length <= INLINE_VALUE_BYTES);
            }
        }
    }

    #[test]
    fn a_value_in_the_cache_carries_them_too() {
        let version = Version::wrapping(u64::MAX);
        let mut value = Value::in_cache(u64::MAX - 1);
        value.stamp(version);
        for expiry in [Some(Expiry::LAST), Expiry::from_millis(1), None] {
            value = value.expiring(expiry);
            assert_eq!((value.version(), value.expiry()), (version, expiry));
            assert_eq!(value.cached(), Some(u64::MAX - 1));
            assert!(value.is_same(&Value::in_cache(u64::MAX - 1)));
            assert!(!value.is_same(&Value::in_cache(1)) && !value.is_same(&Value::from(&b""[..])));
        }
    }

    #[test]
    fn long_bytes_are_not_copied_for_a_time() {
        let value = Value::from(&[7; INLINE_VALUE_BYTES + 1][..]);
        let expiring = value.clone().expiring(Some(Expiry::LAST));
        assert!(std::ptr::eq(&raw const *value, &raw const *expiring));
        let lasting = expiring.expiring(None);
        assert!(std::ptr::eq(&raw const *value, &raw const *lasting));
    }
}
