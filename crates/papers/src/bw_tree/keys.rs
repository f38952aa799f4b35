//! Keys: the one that is looked for, those in the nodes, and places between them.

use super::node::View;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Bound;
use std::ptr;
use tremula_index::key::KeyHead;
use tremula_index::kit::{Packed, free_packed_key, head_is_key, pack_key, with_packed_key};
use tremula_index::{KeyRange, Storable};

/// A key that an operation is given, with its head.
pub(super) struct Probe<'k, K, H> {
    key: &'k K,
    pub(super) head: u64,
    heads: PhantomData<H>,
}

impl<K, H> Clone for Probe<'_, K, H> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H> Copy for Probe<'_, K, H> {}

impl<'k, K: Ord + Storable, H: KeyHead<K>> Probe<'k, K, H> {
    #[inline]
    pub(super) fn new(key: &'k K) -> Self {
        Self {
            key,
            head: H::head(key),
            heads: PhantomData,
        }
    }

    /// The same of a key whose head is known: so an operation, and all that it leaves in the tree,
    /// has one head for the key, whatever the user's code says when it is asked again.
    #[inline]
    pub(super) fn with_head(key: &'k K, head: u64) -> Self {
        Self {
            key,
            head,
            heads: PhantomData,
        }
    }

    /// A hash of the key: equal ones have the same.
    #[inline]
    pub(super) fn hash(&self) -> u64 {
        H::hash(self.key, self.head)
    }

    /// How this key compares with one in a node.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`].
    #[inline]
    pub(super) unsafe fn compare(&self, stored: StoredKey<K, H>) -> Ordering {
        self.head.cmp(&stored.head).then_with(|| {
            if head_is_key::<K, H>() {
                Ordering::Equal
            } else {
                // SAFETY: passed on to the caller.
                unsafe { stored.with(|key| self.key.cmp(key)) }
            }
        })
    }
}

/// A key as it is in a node: its head, and where that does not tell it, the packed key.
///
/// A plain pair of words that owns nothing: see the module's invariants for who does.
pub(super) struct StoredKey<K, H> {
    pub(super) head: u64,
    /// Null where the head is the key.
    pub(super) word: *mut (),
    of: PhantomData<fn() -> (K, H)>,
}

impl<K, H> Clone for StoredKey<K, H> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H> Copy for StoredKey<K, H> {}

impl<K: Ord + Storable, H: KeyHead<K>> StoredKey<K, H> {
    #[inline]
    pub(super) fn of_words(head: u64, word: *mut ()) -> Self {
        Self {
            head,
            word,
            of: PhantomData,
        }
    }

    /// Shows the key to `read`.
    ///
    /// # Safety
    ///
    /// The key has not been freed: the caller owns it, or is pinned since before it was retired.
    #[inline]
    pub(super) unsafe fn with<R>(self, read: impl FnOnce(&K) -> R) -> R {
        if head_is_key::<K, H>() {
            match H::key(self.head) {
                Some(key) => read(&key),
                None => not_told(self.head),
            }
        } else {
            // SAFETY: passed on to the caller.
            unsafe { with_packed_key::<K, H, _>(self.head, self.word, read) }
        }
    }

    /// Shows the key to `read`, to be looked for.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    #[inline]
    pub(super) unsafe fn probe<R>(self, read: impl FnOnce(Probe<'_, K, H>) -> R) -> R {
        // SAFETY: passed on to the caller.
        unsafe { self.with(|key| read(Probe::with_head(key, self.head))) }
    }

    /// How two stored keys compare.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with), for both.
    pub(super) unsafe fn compare(self, other: Self) -> Ordering {
        self.head.cmp(&other.head).then_with(|| {
            if head_is_key::<K, H>() {
                return Ordering::Equal;
            }
            // SAFETY: passed on to the caller.
            unsafe { self.with(|key| other.with(|other| key.cmp(other))) }
        })
    }

    /// Frees the key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); and nobody else has it, or uses it ever again.
    pub(super) unsafe fn free(self) {
        if !head_is_key::<K, H>() {
            // SAFETY: passed on to the caller.
            unsafe { free_packed_key::<K, H>(self.word) };
        }
    }

    /// Whether this is the very key that the other is, not merely an equal one. Asks no user code.
    #[inline]
    pub(super) fn is(self, other: Self) -> bool {
        self.head == other.head && self.word == other.word
    }
}

/// Why a head gives no key: the key's type, or its [`KeyHead`], breaks its word.
#[cold]
pub(super) fn not_told(head: u64) -> ! {
    panic!("KeyHead::IS_KEY is true, but KeyHead::key({head:#x}) gave no key")
}

/// A stored key that is in no node yet. Dropping it frees it.
pub(super) struct OwnedKey<K: Ord + Storable, H: KeyHead<K>>(StoredKey<K, H>);

impl<K: Ord + Storable, H: KeyHead<K>> OwnedKey<K, H> {
    #[inline]
    pub(super) fn new(key: K) -> Self {
        let head = H::head(&key);
        let word = if head_is_key::<K, H>() {
            ptr::null_mut()
        } else {
            pack_key::<K, H>(key)
        };
        Self(StoredKey::of_words(head, word))
    }

    /// A copy of a key that is in a node. It has the same head.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`].
    pub(super) unsafe fn copy_of(stored: StoredKey<K, H>) -> Self {
        if head_is_key::<K, H>() {
            return Self(stored);
        }
        // SAFETY: passed on to the caller.
        let key = unsafe { stored.with(K::clone) };
        Self(StoredKey::of_words(stored.head, pack_key::<K, H>(key)))
    }

    /// Takes a stored key over.
    ///
    /// # Safety
    ///
    /// The caller owns it, and nobody else does.
    pub(super) unsafe fn of_stored(stored: StoredKey<K, H>) -> Self {
        Self(stored)
    }

    #[inline]
    pub(super) fn stored(&self) -> StoredKey<K, H> {
        self.0
    }

    /// Shows the key to `read`, to be looked for.
    #[inline]
    pub(super) fn probe<R>(&self, read: impl FnOnce(Probe<'_, K, H>) -> R) -> R {
        // SAFETY: this owns the key.
        unsafe { self.0.probe(read) }
    }

    /// Leaves the key to the node that it is in now.
    #[inline]
    pub(super) fn give(self) -> StoredKey<K, H> {
        ManuallyDrop::new(self).0
    }
}

impl<K: Ord + Storable, H: KeyHead<K>> Drop for OwnedKey<K, H> {
    fn drop(&mut self) {
        // SAFETY: this owns the key.
        unsafe { self.0.free() };
    }
}

/// A packed value that is in no node yet. Dropping it frees it.
pub(super) struct OwnedValue<V: Storable>(Packed<V>);

impl<V: Storable> OwnedValue<V> {
    #[inline]
    pub(super) fn new(value: V) -> Self {
        Self(Packed::new(value))
    }

    /// Takes a packed value over.
    ///
    /// # Safety
    ///
    /// The caller owns it, and nobody else does.
    pub(super) unsafe fn of_word(word: *mut ()) -> Self {
        Self(Packed::of_word(word))
    }

    #[inline]
    pub(super) fn word(&self) -> *mut () {
        self.0.word()
    }

    /// Leaves the value to the node that it is in now.
    #[inline]
    pub(super) fn give(self) {
        std::mem::forget(self);
    }

    /// The value itself.
    pub(super) fn take(self) -> V {
        // SAFETY: this owns the value, and ends here.
        unsafe { ManuallyDrop::new(self).0.take() }
    }
}

impl<V: Storable> Drop for OwnedValue<V> {
    fn drop(&mut self) {
        // SAFETY: this owns the value.
        drop(unsafe { self.0.take() });
    }
}

/// A place between the keys, which one node on each level is responsible for.
pub(super) enum Place<'k, K, H> {
    /// In front of every key.
    Start,
    /// At a key: the node whose range it is in.
    At(Probe<'k, K, H>),
    /// Just in front of a key: the node in whose range, or at whose end, that is.
    Before(Probe<'k, K, H>),
    /// Behind every key.
    End,
}

impl<'k, K: Ord + Storable, H: KeyHead<K>> Place<'k, K, H> {
    #[inline]
    pub(super) fn at(key: &'k K) -> Self {
        Self::At(Probe::new(key))
    }

    /// Where a range begins.
    pub(super) fn low(range: &KeyRange<'k, K>) -> Self {
        match range.low {
            Bound::Included(key) | Bound::Excluded(key) => Self::at(key),
            Bound::Unbounded => Self::Start,
        }
    }

    /// Where a range ends.
    pub(super) fn high(range: &KeyRange<'k, K>) -> Self {
        match range.high {
            Bound::Included(key) => Self::at(key),
            Bound::Excluded(key) => Self::Before(Probe::new(key)),
            Bound::Unbounded => Self::End,
        }
    }

    /// Whether it lies beyond the range of a node, to the right.
    #[inline]
    pub(super) fn is_beyond<V: Storable>(&self, view: &View<'_, K, V, H>) -> bool {
        // SAFETY: the node can be read, and its fences live as long as that.
        (view.high()).is_some_and(|high| unsafe { self.is_behind(high) })
    }

    /// Whether it belongs to what begins at a fence or separator, or lies further to the right.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`].
    #[inline]
    pub(super) unsafe fn is_behind(&self, fence: StoredKey<K, H>) -> bool {
        // SAFETY: passed on to the caller.
        unsafe {
            match self {
                Self::Start => false,
                Self::At(probe) => probe.compare(fence).is_ge(),
                Self::Before(probe) => probe.compare(fence).is_gt(),
                Self::End => true,
            }
        }
    }
}
