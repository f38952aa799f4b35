//! The byte forms of strings and byte strings: their bytes.

use super::{ByteKey, PlainBytes};
use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::ffi::{CString, OsString};
use std::mem::{ManuallyDrop, transmute_copy};

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

/// Whether keys of this type own their bytes in one allocation that is as long as they are, and
/// nothing else: then they can be taken apart and put together again. (Boxes could, too, but a box
/// must not be made of bytes that another thread reads.)
#[inline(always)]
pub(super) fn is_buffer<K: 'static>() -> bool {
    [TypeId::of::<String>(), TypeId::of::<Vec<u8>>()].contains(&TypeId::of::<K>())
}

/// The bytes of a key of such a type, and their number. The caller owns them.
///
/// # Panics
///
/// If the key is of another type.
pub(super) fn into_parts<K: 'static>(key: K) -> (*mut u8, usize) {
    let mut key = Some(key);
    let any: &mut dyn Any = &mut key;
    let bytes = if let Some(text) = any.downcast_mut::<Option<String>>() {
        text.take().map(String::into_bytes)
    } else {
        any.downcast_mut::<Option<Vec<u8>>>().and_then(Option::take)
    };
    let Some(bytes) = bytes else {
        unreachable!("only a key with a buffer is taken apart");
    };
    let bytes = Box::into_raw(bytes.into_boxed_slice());
    (bytes.cast(), bytes.len())
}

/// The key with these bytes.
///
/// # Safety
///
/// `bytes` and `length` came from [`into_parts`] with the same `K`, and have not been freed. The
/// key is only read, unless the caller owns it.
///
/// # Panics
///
/// If `K` is another type.
#[inline(always)]
pub(super) unsafe fn of_parts<K: 'static>(bytes: *mut u8, length: usize) -> ManuallyDrop<K> {
    let id = TypeId::of::<K>();
    if id == TypeId::of::<String>() {
        // SAFETY: the bytes are those of a `String`, allocated with this capacity.
        let text = ManuallyDrop::new(unsafe { String::from_raw_parts(bytes, length, length) });
        // SAFETY: `K` is `String`.
        return unsafe { transmute_copy(&text) };
    }
    assert!(
        id == TypeId::of::<Vec<u8>>(),
        "only a key with a buffer is put together"
    );
    // SAFETY: the bytes are those of a `Vec<u8>`, allocated with this capacity.
    let text = ManuallyDrop::new(unsafe { Vec::from_raw_parts(bytes, length, length) });
    // SAFETY: `K` is `Vec<u8>`.
    unsafe { transmute_copy(&text) }
}
