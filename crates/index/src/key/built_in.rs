//! The byte forms of the standard library's keys, found by their type at run time.
//!
//! [`OrderedMap::with_engine`](crate::OrderedMap::with_engine) takes any `K: Ord`, so the compiler
//! cannot tell it whether `K` has a byte form. For the types that a map is made for most often it
//! asks at run time. The functions that ask are generic and inlined, so that an optimised build
//! knows the answer for each `K`, and no question is left.

use super::head::{hash_of, spare_bits};
use super::strings::{bytes_of, is_string};
use super::{ByteKey, KeyHead, PlainBytes, head_of};
use crate::contract::Storable;
use std::any::{Any, TypeId};
use std::mem::needs_drop;

/// Implements the functions that ask whether a key has one of these types, all of which are numbers
/// or convert to numbers.
macro_rules! numbers {
    ($($(#[$cfg:meta])? $type:ty,)*) => {
        fn is_number<K: 'static>() -> bool {
            let id = TypeId::of::<K>();
            $($(#[$cfg])? if id == TypeId::of::<$type>() {
                return true;
            })*
            false
        }

        /// The head of a number.
        #[inline(always)]
        fn head_of_number<K: 'static>(key: &K) -> Option<u64> {
            let key: &dyn Any = key;
            $($(#[$cfg])? if let Some(key) = key.downcast_ref::<$type>() {
                return Some(key.head());
            })*
            None
        }

        /// The number with this head; `None` if no number of its type has it.
        #[inline(always)]
        fn number_of_head<K: 'static>(head: u64) -> Option<K> {
            let mut key = None::<K>;
            let any: &mut dyn Any = &mut key;
            $($(#[$cfg])? if let Some(key) = any.downcast_mut::<Option<$type>>() {
                *key = <$type>::from_head(head);
            })*
            key
        }

        $($(#[$cfg])? const _: () = assert!(
            is_small::<$type>()
                && <$type as ByteKey>::HEAD_IS_KEY
                && matches!(<$type as ByteKey>::LENGTH, Some(length) if length == size_of::<$type>()),
            "a small built-in key is as long as its form",
        );)*
    };
}

numbers! {
    u8, u16, u32, u64, i8, i16, i32, i64, bool, char,
    #[cfg(target_pointer_width = "64")] usize,
    #[cfg(target_pointer_width = "64")] isize,
}

/// Whether keys of this type, if they are built-in keys, are numbers: strings have a length and a
/// place beside it, and so are longer than a word.
pub(crate) const fn is_small<K>() -> bool {
    size_of::<K>() <= 8 && !needs_drop::<K>()
}

/// The byte form of an integer of sixteen bytes.
#[inline(always)]
fn wide_form<K: 'static>(key: &K) -> Option<[u8; 16]> {
    let key: &dyn Any = key;
    let form = |bytes: &[u8]| bytes.try_into().expect("sixteen bytes");
    if let Some(key) = key.downcast_ref::<u128>() {
        return Some(key.with_bytes(form));
    }
    Some(key.downcast_ref::<i128>()?.with_bytes(form))
}

/// Whether keys of type `K` have a byte form that is found at run time.
pub(crate) fn is_built_in<K: 'static>() -> bool {
    let id = TypeId::of::<K>();
    let wide = [TypeId::of::<u128>(), TypeId::of::<i128>()].contains(&id);
    is_number::<K>() || wide || is_string::<K>()
}

/// The head of a built-in key.
#[inline]
fn head<K: 'static>(key: &K) -> u64 {
    if is_small::<K>() {
        return head_of_number(key).unwrap_or(0);
    }
    with_bytes(key, head_of)
}

/// Calls `read` with the byte form of a built-in key.
#[inline]
fn with_bytes<K: 'static, R>(key: &K, read: impl FnOnce(&[u8]) -> R) -> R {
    let (word, wide);
    read(if is_small::<K>() {
        word = head(key).to_be_bytes();
        &word[..size_of::<K>()]
    } else if let Some(form) = wide_form(key) {
        wide = form;
        &wide
    } else {
        bytes_of(key).unwrap_or_default()
    })
}

/// The key with this head.
#[inline]
fn from_head<K: 'static>(head: u64) -> Option<K> {
    if is_small::<K>() {
        number_of_head(head)
    } else {
        None
    }
}

/// The heads of the *built-in keys*, whose byte form is found at run time: integers, `bool`,
/// `char`, `String`, `Vec<u8>`, their boxed, counted (`Arc`), `'static` and `Cow` forms, `CString`,
/// `OsString`. Keys of other types have none, and are compared.
#[derive(Clone, Copy, Debug)]
pub enum BuiltInHead {}

impl<K: 'static> KeyHead<K> for BuiltInHead {
    type Word = u64;

    // Wrong for small keys that are not built in; those get no map with these heads.
    const IS_KEY: bool = is_small::<K>();

    const SPARE_BITS: u32 = spare_bits(size_of::<K>());

    // A key that is no number has the bytes of a string, or none. Integers of sixteen bytes are
    // numbers too.
    const PLAIN_BYTES: Option<PlainBytes<K>> =
        if is_small::<K>() || (align_of::<K>() >= align_of::<u128>() && !needs_drop::<K>()) {
            None
        } else {
            Some(PlainBytes::new(|key| bytes_of(key).unwrap_or_default()))
        };

    #[inline]
    fn suits() -> bool {
        is_built_in::<K>()
    }

    #[inline]
    fn head(key: &K) -> u64 {
        head(key)
    }

    #[inline]
    fn key(head: u64) -> Option<K> {
        from_head(head)
    }

    #[inline]
    fn hash(key: &K, head: u64) -> u64 {
        with_bytes(key, |bytes| {
            <Self as KeyHead<K>>::hash_of_bytes(bytes, head)
        })
    }

    #[inline]
    fn hash_of_bytes(bytes: &[u8], head: u64) -> u64 {
        if is_small::<K>() {
            return head;
        }
        hash_of(bytes)
    }

    fn head_of_bytes(bytes: Option<&[u8]>) -> Option<u64> {
        bytes.map(head_of)
    }
}

/// A built-in key, as a key with a byte form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct BuiltIn<K>(pub(crate) K);

impl<K> BuiltIn<K> {
    /// A key, seen as a built-in key.
    #[inline]
    pub(crate) const fn of(key: &K) -> &Self {
        // SAFETY: the representation is that of the key.
        unsafe { &*std::ptr::from_ref(key).cast() }
    }

    /// Keys, seen as built-in keys.
    #[inline]
    pub(crate) const fn of_all(keys: &[K]) -> &[Self] {
        // SAFETY: the representation is that of the key.
        unsafe { std::slice::from_raw_parts(keys.as_ptr().cast(), keys.len()) }
    }
}

impl<K: Ord + Storable> ByteKey for BuiltIn<K> {
    const HEAD_IS_KEY: bool = is_small::<K>();
    const LENGTH: Option<usize> = if is_small::<K>() {
        Some(size_of::<K>())
    } else {
        None
    };

    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        with_bytes(&self.0, read)
    }

    #[inline]
    fn head(&self) -> u64 {
        head(&self.0)
    }

    #[inline]
    fn from_head(head: u64) -> Option<Self> {
        from_head(head).map(Self)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::key::ByteHead;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::ffi::{CString, OsString};

    fn has_the_form_of_its_type<K: ByteKey + std::fmt::Debug>(key: &K) {
        assert!(is_built_in::<K>(), "{key:?}");
        let built_in = BuiltIn::of(key);
        let form = |key: &K| key.with_bytes(<[u8]>::to_vec);
        assert_eq!(built_in.with_bytes(<[u8]>::to_vec), form(key), "{key:?}");
        assert_eq!(built_in.head(), key.head(), "{key:?}");
        let head = key.head();
        assert_eq!(BuiltInHead::head(key), head, "{key:?}");
        assert_eq!(
            BuiltInHead::hash(key, head),
            ByteHead::hash(key, head),
            "{key:?}"
        );
        assert_eq!(BuiltIn::<K>::HEAD_IS_KEY, K::HEAD_IS_KEY, "{key:?}");
        if K::HEAD_IS_KEY {
            let spare = <BuiltInHead as KeyHead<K>>::SPARE_BITS;
            assert_eq!(spare, <ByteHead as KeyHead<K>>::SPARE_BITS, "{key:?}");
            assert!(head.trailing_zeros() >= spare, "{key:?}");
        }
        assert_eq!(
            <BuiltInHead as KeyHead<K>>::key(key.head()),
            K::from_head(key.head())
        );
    }

    macro_rules! each {
        ($($key:expr),* $(,)?) => { $(has_the_form_of_its_type(&$key);)* };
    }

    proptest! {
        #[test]
        fn a_built_in_key_has_the_form_of_its_type(number: u128, character: char, text: String) {
            let short = number as u64;
            each! {
                short as u8, short as u16, short as u32, short, short as usize, number,
                short as i8, short as i16, short as i32, short as i64, short as isize,
                number as i128, short.is_multiple_of(2), character, text.clone(),
                text.clone().into_boxed_str(), text.clone().into_bytes(),
                text.clone().into_bytes().into_boxed_slice(), OsString::from(text.clone()),
                CString::new(text.replace('\0', "")).unwrap(), "aspen", &b"aspen"[..],
                std::borrow::Cow::<'static, str>::Owned(text.clone()),
                std::borrow::Cow::<'static, [u8]>::Owned(text.clone().into_bytes()),
            }
            #[cfg(not(tremula_tsan))]
            each! {
                tremula_sync::Arc::<str>::from(text.clone()),
                tremula_sync::Arc::<[u8]>::from(text.into_bytes()),
            }
        }
    }

    #[test]
    fn other_keys_are_not_built_in() {
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
        struct Id(Reverse<u64>);
        assert!(!is_built_in::<Id>() && !is_built_in::<Reverse<u64>>());
        assert!(!is_built_in::<(u64, u64)>() && !is_built_in::<Option<u8>>());
    }
}
