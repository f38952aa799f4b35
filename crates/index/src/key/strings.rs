//! The byte forms of strings and byte strings: their bytes.

use super::{ByteKey, PlainBytes};
use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::ffi::{CString, OsString};

macro_rules! bytes {
    ($($(#[$cfg:meta])? $type:ty: $as_bytes:expr,)*) => {
        $($(#[$cfg])? impl ByteKey for $type {
            const PLAIN_BYTES: Option<PlainBytes<Self>> = Some(PlainBytes::new($as_bytes));

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let as_bytes: for<'a> fn(&'a $type) -> &'a [u8] = $as_bytes;
                read(as_bytes(self))
            }
        })*

        /// Whether `K` is one of the types of this file.
        pub(super) fn is_string<K: 'static>() -> bool {
            let id = TypeId::of::<K>();
            $($(#[$cfg])? if id == TypeId::of::<$type>() {
                return true;
            })*
            false
        }

        /// The byte form of a key whose type is one of those of this file.
        #[inline(always)]
        pub(super) fn bytes_of<K: 'static>(key: &K) -> Option<&[u8]> {
            let key: &dyn Any = key;
            $($(#[$cfg])? if let Some(key) = key.downcast_ref::<$type>() {
                let as_bytes: for<'a> fn(&'a $type) -> &'a [u8] = $as_bytes;
                return Some(as_bytes(key));
            })*
            None
        }
    };
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
    // Under the checkers the counted pointer is another type.
    #[cfg(not(any(loom, shuttle, tremula_tsan)))] tremula_sync::Arc<str>: |key| key.as_bytes(),
    #[cfg(not(any(loom, shuttle, tremula_tsan)))] tremula_sync::Arc<[u8]>: |key| key,
}
