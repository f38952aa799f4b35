//! Keys that are made again from their byte form.

use tremula_index::ByteKey;
use tremula_index::key::head_of;

/// A key that can be kept: its byte form has its order ([`ByteKey`]), and the key is made again
/// from that form.
///
/// Integers, `bool`, `char`, `()`, `String`, `Vec<u8>`, `Box<str>`, `Box<[u8]>`, arrays of bytes,
/// and tuples of two to four of these have it. A type of your own needs the byte form, by
/// `#[derive(ByteKey)]` or by hand, and the way back:
///
/// ```
/// use tremula_index::ByteKey;
/// use tremula_store::local::DurableKey;
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct Host(String);
///
/// impl ByteKey for Host {
///     fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
///         read(self.0.as_bytes())
///     }
/// }
///
/// impl DurableKey for Host {
///     fn from_bytes(bytes: &[u8]) -> Option<Self> {
///         String::from_bytes(bytes).map(Self)
///     }
/// }
///
/// let host = Host("aspen".to_owned());
/// assert_eq!(host.with_bytes(Host::from_bytes), Some(host.clone()));
/// ```
pub trait DurableKey: ByteKey {
    /// The key with this byte form; `None` if no key has it. O(bytes).
    fn from_bytes(bytes: &[u8]) -> Option<Self>;

    /// Takes the key at the beginning of `bytes`, where it stands in its self-delimiting form, as a
    /// part of a longer key ([`ByteKey::append_delimited`]). A type that overrides that method
    /// overrides this one.
    fn take_delimited(bytes: &mut &[u8]) -> Option<Self> {
        if let Some(length) = Self::LENGTH {
            let (form, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            return Self::from_bytes(form);
        }
        // A zero byte is 0, 255; and 0, 0 is the end.
        let mut form = Vec::new();
        loop {
            let zero = bytes.iter().position(|byte| *byte == 0)?;
            form.extend_from_slice(&bytes[..zero]);
            let behind = *bytes.get(zero + 1)?;
            *bytes = &bytes[zero + 2..];
            match behind {
                0 => return Self::from_bytes(&form),
                255 => form.push(0),
                _ => return None,
            }
        }
    }
}

macro_rules! words {
    ($($type:ty),*) => { $(
        impl DurableKey for $type {
            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                let is_whole = Some(bytes.len()) == Self::LENGTH;
                is_whole.then(|| Self::from_head(head_of(bytes))).flatten()
            }
        }
    )* };
}

words!(
    u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, bool, char
);

impl DurableKey for u128 {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_be_bytes)
    }
}

impl DurableKey for i128 {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        // The sign is flipped, so that negative numbers come first.
        bytes
            .try_into()
            .ok()
            .map(|bytes| Self::from_be_bytes(bytes) ^ Self::MIN)
    }
}

impl DurableKey for () {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

impl DurableKey for String {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

impl DurableKey for Box<str> {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(Self::from)
    }
}

impl DurableKey for Vec<u8> {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

impl DurableKey for Box<[u8]> {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self::from(bytes))
    }
}

impl<const N: usize> DurableKey for [u8; N] {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

macro_rules! tuples {
    ($(($($part:ident)* ; $last:ident))*) => { $(
        impl<$($part: DurableKey,)* $last: DurableKey> DurableKey for ($($part,)* $last) {
            fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
                Some(($($part::take_delimited(&mut bytes)?,)* $last::from_bytes(bytes)?))
            }

            fn take_delimited(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($part::take_delimited(bytes)?,)* $last::take_delimited(bytes)?))
            }
        }
    )* };
}

tuples!((A; B)(A B; C)(A B C; D));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Debug;

    fn comes_back<K: DurableKey + Debug>(key: &K) {
        let mut form = Vec::new();
        key.append_bytes(&mut form);
        assert_eq!(K::from_bytes(&form).as_ref(), Some(key), "{form:?}");
        let mut delimited = Vec::new();
        key.append_delimited(&mut delimited);
        delimited.extend_from_slice(b"behind");
        let mut rest = &delimited[..];
        assert_eq!(K::take_delimited(&mut rest).as_ref(), Some(key));
        assert_eq!(rest, b"behind");
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop::sample::select(&[0, 1, 97, 254, 255][..]);
        prop::collection::vec(byte, 0..12)
    }

    proptest! {
        #[test]
        fn keys_come_back_from_their_forms(
            one in text(),
            other in text(),
            words: (u8, i16, u32, i64),
            wide: (u128, i128),
            letters: String,
            letter: char,
            flag: bool,
            fixed: [u8; 5],
        ) {
            comes_back(&one);
            comes_back(&one.clone().into_boxed_slice());
            comes_back(&words);
            comes_back(&wide);
            comes_back(&(words.0, wide.1, flag));
            comes_back(&letters);
            comes_back(&letters.clone().into_boxed_str());
            comes_back(&(letter, (), fixed));
            comes_back(&(one.clone(), other.clone()));
            comes_back(&((one, words.3), (letters, other), fixed, letter));
        }

        #[test]
        fn any_bytes_are_a_key_or_none(bytes in text()) {
            let _ = u32::from_bytes(&bytes);
            let _ = char::from_bytes(&bytes);
            let _ = String::from_bytes(&bytes);
            let _ = <(String, u16)>::from_bytes(&bytes);
            let _ = <((Vec<u8>, String), [u8; 2], i128)>::from_bytes(&bytes);
        }
    }

    #[test]
    fn a_form_of_another_length_is_no_key() {
        assert_eq!(u16::from_bytes(&[1]), None);
        assert_eq!(u16::from_bytes(&[1, 2, 3]), None);
        assert_eq!(<[u8; 2]>::from_bytes(&[1]), None);
        assert_eq!(<(Vec<u8>, u8)>::from_bytes(&[1, 0, 0]), None);
        assert_eq!(<(Vec<u8>, u8)>::from_bytes(&[1, 0, 7, 0, 0, 1]), None);
        assert_eq!(<()>::from_bytes(&[0]), None);
    }
}
