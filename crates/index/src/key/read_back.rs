//! Keys that consist of their bytes, and can be made of them again.

use super::ByteString;
use std::any::Any;
use std::ffi::{CString, OsString};
use std::mem::take;

/// An argument that no other crate can name.
#[derive(Clone, Copy, Debug)]
pub struct OnlyHere;

/// How a key is made of its byte form, and how its memory is used for the next key.
#[derive(Debug)]
pub struct ReadBack<K> {
    make: unsafe fn(&mut Vec<u8>) -> K,
    give_back: fn(K, &mut Vec<u8>),
}

impl<K> ReadBack<K> {
    /// The key with these bytes. Leaves `bytes` with any content.
    ///
    /// # Safety
    ///
    /// The bytes are the byte form of a key of this type.
    #[inline]
    pub(crate) unsafe fn make(&self, bytes: &mut Vec<u8>) -> K {
        // SAFETY: passed on to the caller.
        unsafe { (self.make)(bytes) }
    }

    /// Drops a key that [`make`](Self::make) has made, and gives its memory to `bytes` if that can
    /// use it.
    #[inline]
    pub(crate) fn give_back(&self, key: K, bytes: &mut Vec<u8>) {
        (self.give_back)(key, bytes);
    }
}

impl<K: 'static> ReadBack<K> {
    /// The same, if `K` is the type for which it was made.
    #[inline(always)]
    fn of<T: 'static>(
        make: unsafe fn(&mut Vec<u8>) -> T,
        give_back: fn(T, &mut Vec<u8>),
    ) -> Option<Self> {
        let mut made = Some(ReadBack { make, give_back });
        let any: &mut dyn Any = &mut made;
        any.downcast_mut::<Option<Self>>()?.take()
    }

    /// The same for the types of which every key can be made of its bytes: those that own their
    /// bytes and share them with no other key.
    #[inline(always)]
    pub(crate) fn of_type() -> Option<Self> {
        // SAFETY: the caller of `make` says that these are the bytes of such a string.
        let text = |bytes: &mut Vec<u8>| unsafe { String::from_utf8_unchecked(take(bytes)) };
        let boxed = |bytes: &mut Vec<u8>| {
            // SAFETY: as for `text`.
            unsafe { str::from_utf8_unchecked(bytes) }.into()
        };
        // SAFETY: as for `text`.
        let system =
            |bytes: &mut Vec<u8>| unsafe { OsString::from_encoded_bytes_unchecked(take(bytes)) };
        // SAFETY: as for `text`.
        let foreign = |bytes: &mut Vec<u8>| unsafe { CString::from_vec_unchecked(take(bytes)) };
        Self::of::<String>(text, |key, bytes| *bytes = key.into_bytes())
            .or_else(|| Self::of::<Vec<u8>>(take, |key, bytes| *bytes = key))
            .or_else(|| Self::of::<Box<str>>(boxed, |_, _| ()))
            .or_else(|| Self::of::<Box<[u8]>>(|bytes| bytes.as_slice().into(), |_, _| ()))
            .or_else(|| {
                Self::of::<OsString>(system, |key, bytes| *bytes = key.into_encoded_bytes())
            })
            .or_else(|| Self::of::<CString>(foreign, |key, bytes| *bytes = key.into_bytes()))
            .or_else(|| Self::of::<ByteString>(|bytes| bytes.as_slice().into(), |_, _| ()))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::ByteKey;
    use std::fmt::Debug;

    fn comes_back<K: ByteKey + Debug>(key: &K) {
        let back = ReadBack::<K>::of_type().expect("a type that owns its bytes");
        let mut bytes = Vec::new();
        for _ in 0..3 {
            bytes.clear();
            key.append_bytes(&mut bytes);
            // SAFETY: these are the bytes of a key of this type.
            let again = unsafe { back.make(&mut bytes) };
            assert_eq!(again, *key);
            back.give_back(again, &mut bytes);
        }
    }

    #[test]
    fn keys_come_back_from_their_bytes() {
        for text in ["", "aspen", "a longer text that no key holds in place"] {
            comes_back(&text.to_owned());
            comes_back(&text.as_bytes().to_vec());
            comes_back(&Box::<str>::from(text));
            comes_back(&Box::<[u8]>::from(text.as_bytes()));
            comes_back(&OsString::from(text));
            comes_back(&CString::new(text).expect("no zero in it"));
            comes_back(&ByteString::from(text));
        }
    }

    #[test]
    fn other_keys_do_not() {
        assert!(ReadBack::<u64>::of_type().is_none());
        assert!(ReadBack::<&'static str>::of_type().is_none());
        assert!(ReadBack::<(String, u8)>::of_type().is_none());
    }
}
