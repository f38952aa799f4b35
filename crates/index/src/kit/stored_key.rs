//! A key as it is in a node.

use super::{Packed, Retire, SearchKey, Spec, key_of_head, prefetch};
use crate::key::packing::{
    address_of_packed_key, bytes_beside_packed_key, free_packed_key, pack_key, take_packed_key,
    with_packed_key,
};
use crate::key::{KeyHead, has_own_heads};
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;

/// Stands for a head that has not been computed, where heads are made of bytes by a function of
/// their own (`has_own_heads`): no key has it.
pub const UNKNOWN_HEAD: u64 = u64::MAX;

/// A key as it is in a node: its head, and the packed key if the head does not determine it.
///
/// It is a pair of words and owns nothing: the owner of the node that contains it must free the key
/// once.
#[derive(Clone, Copy)]
pub struct StoredKey<S: Spec> {
    /// The head, or [`UNKNOWN_HEAD`].
    pub head: u64,
    /// Null if the head is the key, or determines it ([`KeyHead::SOME_ARE_KEYS`]).
    pub word: *mut (),
    of: PhantomData<S>,
}

impl<S: Spec> StoredKey<S> {
    /// A key from the words that a node holds.
    #[inline]
    pub fn of_words(head: u64, word: *mut ()) -> Self {
        Self {
            head,
            word,
            of: PhantomData,
        }
    }

    /// Stores a key whose head is `head`. May allocate, unless the head determines the key. In that
    /// case dropping the key does nothing ([`Spec::HEAD_IS_KEY`], [`KeyHead::SOME_ARE_KEYS`]), so
    /// the caller may hold a lock.
    #[inline]
    pub fn new(key: S::Key, head: u64) -> Self {
        let word = if is_in_head::<S>(head) {
            ptr::null_mut()
        } else {
            pack_key::<S::Key, S::Head>(key)
        };
        Self::of_words(head, word)
    }

    /// Stores a copy of a key.
    pub fn copy_of(key: &SearchKey<'_, S>) -> Self {
        let word = if is_in_head::<S>(key.head) {
            ptr::null_mut()
        } else {
            pack_key::<S::Key, S::Head>(key.key.key().clone())
        };
        Self::of_words(key.head, word)
    }

    /// Calls `read` with the key.
    ///
    /// # Safety
    ///
    /// This was read from a node, or stored, as a whole (an optimistic reader has validated it),
    /// and the key has not been freed: the caller owns it, or has been pinned since before it was
    /// unlinked.
    #[inline]
    pub unsafe fn with<R>(self, read: impl FnOnce(&S::Key) -> R) -> R {
        if self.is_in_head() {
            // It is not dropped: a key that its head determines has nothing to drop.
            read(&ManuallyDrop::new(key_of_head::<S>(self.head)))
        } else {
            // SAFETY: passed on to the caller; the word is not null, so it came from `pack_key`.
            unsafe { with_packed_key::<S::Key, S::Head, R>(self.head, self.word, read) }
        }
    }

    /// Whether the head has been computed.
    #[inline]
    pub fn has_head(self) -> bool {
        !(has_own_heads::<S::Key, S::Head>() && self.head == UNKNOWN_HEAD)
    }

    /// Calls `read` with the key as a search key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    #[inline]
    pub unsafe fn search<R>(self, read: impl FnOnce(SearchKey<'_, S>) -> R) -> R {
        let search = |key: &S::Key| {
            if self.has_head() {
                read(SearchKey::with_head(key, self.head))
            } else {
                read(SearchKey::new(key))
            }
        };
        // SAFETY: passed on to the caller.
        unsafe { self.with(search) }
    }

    /// A copy of the key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    #[inline]
    pub unsafe fn to_key(self) -> S::Key {
        if self.is_in_head() {
            key_of_head::<S>(self.head)
        } else {
            // SAFETY: passed on to the caller.
            unsafe { self.with(S::Key::clone) }
        }
    }

    /// A copy of this stored key, with the same head.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    pub unsafe fn duplicate(self) -> Self {
        if self.is_in_head() {
            return self;
        }
        // SAFETY: passed on to the caller.
        Self::new(unsafe { self.to_key() }, self.head)
    }

    /// How two stored keys compare.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with), for both.
    pub unsafe fn compare(self, other: Self) -> Ordering {
        let known = self.has_head() && other.has_head();
        if known && self.head != other.head {
            return self.head.cmp(&other.head);
        }
        if known && S::Head::is_only_of_one(self.head) {
            return Ordering::Equal;
        }
        // SAFETY: passed on to the caller.
        unsafe { self.with(|key| other.with(|other| key.cmp(other))) }
    }

    /// Whether the head determines the key, and no word leads to it.
    #[inline(always)]
    fn is_in_head(self) -> bool {
        S::HEAD_IS_KEY || some_are_in_heads::<S>() && self.word.is_null()
    }

    /// Whether both are the same stored key, not merely equal keys. Runs no user code.
    #[inline]
    pub fn is(self, other: Self) -> bool {
        let own_heads = has_own_heads::<S::Key, S::Head>();
        self.word == other.word && (own_heads || self.head == other.head)
    }

    /// Whether stored keys have memory to free.
    #[inline]
    pub fn owns() -> bool {
        let is_word = S::Head::OWN_PACKING.is_none() && Packed::<S::Key>::is_word();
        !S::HEAD_IS_KEY && !is_word
    }

    /// Frees the key once no reader pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with). The key has been unlinked, so that no thread that pins from now
    /// on can reach it, and it is retired once.
    #[inline]
    pub unsafe fn retire(self, guard: &impl Retire) {
        if Self::owns() && !self.is_in_head() {
            let word = self.word;
            // SAFETY: the key is freed only here, when every thread that could reach it has
            // unpinned. `Key: Send + 'static`, so any thread may drop it at any time.
            unsafe { guard.defer_unchecked(move || free_packed_key::<S::Key, S::Head>(word)) };
        }
    }

    /// The key itself.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); and no thread uses this stored key from now on.
    pub unsafe fn take(self) -> S::Key {
        // SAFETY: passed on to the caller.
        unsafe {
            if self.is_in_head() || S::Head::OWN_PACKING.is_some() {
                let key = self.to_key();
                self.free();
                key
            } else {
                take_packed_key::<S::Key, S::Head>(self.word)
            }
        }
    }

    /// Frees the key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); and no thread uses this stored key from now on.
    #[inline]
    pub unsafe fn free(self) {
        if Self::owns() && !self.is_in_head() {
            // SAFETY: passed on to the caller.
            unsafe { free_packed_key::<S::Key, S::Head>(self.word) };
        }
    }

    /// Prefetches what the word leads to, if the key is not the head.
    #[inline]
    pub fn prefetch(self) {
        if !S::HEAD_IS_KEY {
            prefetch(address_of_packed_key::<S::Key, S::Head>(self.word));
        }
    }

    /// The size of what is allocated for a key, beside its words.
    pub fn bytes_beside() -> usize {
        if S::HEAD_IS_KEY {
            0
        } else {
            bytes_beside_packed_key::<S::Key, S::Head>()
        }
    }
}

/// Whether a node keeps the keys that their heads determine without a word.
#[inline(always)]
const fn some_are_in_heads<S: Spec>() -> bool {
    S::Head::SOME_ARE_KEYS && S::Head::OWN_PACKING.is_none()
}

/// Whether the key with this head is kept without a word. Whatever `S::Head` says of the head at
/// other times, the word then says it: no other key has a word that is null, except a key that is
/// a word by itself, of which nothing is freed.
#[inline(always)]
fn is_in_head<S: Spec>(head: u64) -> bool {
    S::HEAD_IS_KEY || some_are_in_heads::<S>() && S::Head::is_only_of_one(head)
}

/// A stored key that is in no node yet. Dropping it frees it.
pub struct OwnedKey<S: Spec>(StoredKey<S>);

impl<S: Spec> OwnedKey<S> {
    /// Stores a key, with the head that `S::Head` computes.
    #[inline]
    pub fn new(key: S::Key) -> Self {
        let head = S::Head::head(&key);
        Self(StoredKey::new(key, head))
    }

    /// A copy of a key that is in a node, with the same head.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`].
    pub unsafe fn copy_of(stored: StoredKey<S>) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { stored.duplicate() })
    }

    /// Takes over a stored key.
    ///
    /// # Safety
    ///
    /// The caller owns the key, and gives it up.
    pub unsafe fn of_stored(stored: StoredKey<S>) -> Self {
        Self(stored)
    }

    /// The key as it will be in a node. It is valid as long as this owner lives.
    #[inline]
    pub fn stored(&self) -> StoredKey<S> {
        self.0
    }

    /// Calls `read` with the key as a search key.
    #[inline]
    pub fn search<R>(&self, read: impl FnOnce(SearchKey<'_, S>) -> R) -> R {
        // SAFETY: `self` owns the key.
        unsafe { self.0.search(read) }
    }

    /// Releases the key to the node that contains it now.
    #[inline]
    pub fn give(self) -> StoredKey<S> {
        ManuallyDrop::new(self).0
    }
}

impl<S: Spec> Drop for OwnedKey<S> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` owns the key.
        unsafe { self.0.free() };
    }
}
