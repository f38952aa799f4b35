//! Borrowed forms of keys, such as a `str` for a `String`: an operation that only looks for a key
//! takes one, so that no key has to be made.

use equivalent::Comparable;
use std::any::TypeId;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fmt;
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// A type by which a map with keys of type `K` can be asked for a key: `K` itself, or a borrowed
/// form of it.
///
/// A `str` stands for a `String`, a slice for a `Vec`, and so on. A form of your own needs
/// [`Comparable`](equivalent::Comparable), and a line that says that it is a form:
///
/// ```
/// use std::cmp::Ordering;
/// use tremula_index::{KeyForm, OrderedMap};
/// use tremula_index::equivalent::{Comparable, Equivalent};
///
/// /// The key `(String, u64)`, without a `String`.
/// struct Version<'a>(&'a str, u64);
///
/// impl Equivalent<(String, u64)> for Version<'_> {
///     fn equivalent(&self, key: &(String, u64)) -> bool {
///         self.compare(key).is_eq()
///     }
/// }
///
/// impl Comparable<(String, u64)> for Version<'_> {
///     fn compare(&self, (name, number): &(String, u64)) -> Ordering {
///         self.0.cmp(name).then(self.1.cmp(number))
///     }
/// }
///
/// impl KeyForm<(String, u64)> for Version<'_> {}
///
/// let map = OrderedMap::from([(("aspen".to_owned(), 7), "a tree")]);
/// assert_eq!(map.get(&Version("aspen", 7)), Some("a tree"));
/// ```
///
/// The order of the forms must be that of the keys that they stand for; otherwise a lookup may miss
/// an entry. The code of a form runs where that of `K::cmp` does, under an internal lock perhaps:
/// see [`OrderedIndex`](crate::OrderedIndex).
pub trait KeyForm<K>: Comparable<K> {
    /// The key, if this type is the type of the keys.
    #[doc(hidden)]
    #[inline]
    fn as_key(&self) -> Option<&K> {
        None
    }

    /// Calls `read` with the byte form ([`ByteKey`](crate::ByteKey)) of the key that this stands
    /// for, and returns `true`; or returns `false`. Maps whose engine keeps byte forms, or the
    /// first words of them, look for a form without bytes entry by entry.
    fn read_bytes(&self, read: &mut dyn FnMut(&[u8])) -> bool {
        let _ = read;
        false
    }
}

impl<K: Ord> KeyForm<K> for K {
    #[inline]
    fn as_key(&self) -> Option<&K> {
        Some(self)
    }
}

macro_rules! form_with_bytes {
    ($($Key:ty: $Form:ty, $bytes:expr;)*) => { $(
        impl KeyForm<$Key> for $Form {
            fn read_bytes(&self, read: &mut dyn FnMut(&[u8])) -> bool {
                let bytes: fn(&Self) -> &[u8] = $bytes;
                read(bytes(self));
                true
            }
        }
    )* };
}

form_with_bytes! {
    String: str, |text| text.as_bytes();
    Box<str>: str, |text| text.as_bytes();
    &'static str: str, |text| text.as_bytes();
    Cow<'static, str>: str, |text| text.as_bytes();
    &'static [u8]: [u8], |bytes| bytes;
    Cow<'static, [u8]>: [u8], |bytes| bytes;
    CString: CStr, |text| text.to_bytes();
    OsString: OsStr, |text| text.as_encoded_bytes();
}

// Under the checkers the counted pointer is another type.
#[cfg(not(any(loom, shuttle, tremula_tsan)))]
form_with_bytes! {
    tremula_sync::Arc<str>: str, |text| text.as_bytes();
}

/// A path is compared by its components, not by its bytes.
impl KeyForm<PathBuf> for Path {}

macro_rules! slice {
    ($($Key:ty),*) => { $(
        impl<T: Ord + 'static> KeyForm<$Key> for [T] {
            fn read_bytes(&self, read: &mut dyn FnMut(&[u8])) -> bool {
                if TypeId::of::<T>() != TypeId::of::<u8>() {
                    return false;
                }
                // SAFETY: `T` is `u8`.
                read(unsafe { std::slice::from_raw_parts(self.as_ptr().cast(), self.len()) });
                true
            }
        }
    )* };
}

slice!(Vec<T>, Box<[T]>);
#[cfg(not(any(loom, shuttle, tremula_tsan)))]
slice!(tremula_sync::Arc<[T]>);

/// A borrowed form of a key of type `K`, without its type.
pub trait Form<K> {
    /// How the key that this stands for compares with `key`.
    fn compare(&self, key: &K) -> Ordering;

    /// Does what [`KeyForm::read_bytes`] does.
    fn read_bytes(&self, read: &mut dyn FnMut(&[u8])) -> bool;
}

/// A reference to a form, which need not have a size.
pub(crate) struct FormOf<'q, Q: ?Sized>(pub(crate) &'q Q);

impl<K, Q: KeyForm<K> + ?Sized> Form<K> for FormOf<'_, Q> {
    fn compare(&self, key: &K) -> Ordering {
        self.0.compare(key)
    }

    fn read_bytes(&self, read: &mut dyn FnMut(&[u8])) -> bool {
        self.0.read_bytes(read)
    }
}

/// A key that an operation looks for.
pub enum Sought<'k, K> {
    /// The key.
    Key(&'k K),
    /// A borrowed form of it.
    Form(&'k dyn Form<K>),
}

impl<K> Clone for Sought<'_, K> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Sought<'_, K> {}

impl<'k, K> From<&'k K> for Sought<'k, K> {
    #[inline]
    fn from(key: &'k K) -> Self {
        Self::Key(key)
    }
}

impl<'k, K> Sought<'k, K> {
    /// How the key that is looked for compares with `key`.
    #[inline]
    pub fn compare(self, key: &K) -> Ordering
    where
        K: Ord,
    {
        match self {
            Self::Key(sought) => sought.cmp(key),
            Self::Form(form) => form.compare(key),
        }
    }

    /// How this compares with another; `None` if both are forms.
    pub(crate) fn compare_sought(self, other: Self) -> Option<Ordering>
    where
        K: Ord,
    {
        match (self, other) {
            (_, Self::Key(key)) => Some(self.compare(key)),
            (Self::Key(key), Self::Form(_)) => Some(other.compare(key).reverse()),
            (Self::Form(_), Self::Form(_)) => None,
        }
    }

    /// The key.
    ///
    /// # Panics
    ///
    /// If this is a form. Only operations that read are given forms.
    #[doc(hidden)]
    #[inline]
    pub fn key(self) -> &'k K {
        match self {
            Self::Key(key) => key,
            Self::Form(_) => unreachable!("an operation that keeps the key is given the key"),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Sought<'_, K> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => key.fmt(out),
            Self::Form(_) => out.write_str("a borrowed form"),
        }
    }
}

/// A bound, with the key in it as one that is looked for.
#[inline]
pub(crate) const fn sought<'k, K>(bound: Bound<&'k K>) -> Bound<Sought<'k, K>> {
    match bound {
        Bound::Included(key) => Bound::Included(Sought::Key(key)),
        Bound::Excluded(key) => Bound::Excluded(Sought::Key(key)),
        Bound::Unbounded => Bound::Unbounded,
    }
}
