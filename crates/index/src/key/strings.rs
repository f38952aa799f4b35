//! The byte forms of strings and byte strings: their bytes.

use super::ByteKey;
use std::borrow::Cow;
use std::ffi::{CString, OsString};

macro_rules! bytes {
    ($($type:ty: $as_bytes:expr),* $(,)?) => { $(
        impl ByteKey for $type {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let as_bytes: for<'a> fn(&'a $type) -> &'a [u8] = $as_bytes;
                read(as_bytes(self))
            }
        }
    )* };
}

bytes! {
    String: |key| key.as_bytes(),
    Box<str>: |key| key.as_bytes(),
    &'static str: |key| key.as_bytes(),
    Vec<u8>: |key| key,
    Box<[u8]>: |key| key,
    &'static [u8]: |key| key,
    Cow<'static, str>: |key| key.as_bytes(),
    Cow<'static, [u8]>: |key| key,
    CString: |key| key.as_bytes(),
    OsString: |key| key.as_encoded_bytes(),
}

// Under the checkers the counted pointer is another type.
#[cfg(not(any(loom, shuttle, tremula_tsan)))]
bytes! {
    tremula_sync::Arc<str>: |key| key.as_bytes(),
    tremula_sync::Arc<[u8]>: |key| key,
}
