//! A key as it is in a node.

use super::{Packed, Retire, SearchKey, Spec, key_of_head};
use crate::key::KeyHead;
use crate::key::head::{free_packed_key, pack_key, with_packed_key};
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;

/// A key as it is in a node: its head, and where that does not tell the key, the packed key.
///
/// A pair of words that owns nothing: the owner of the node that it is in sees to it that the key is
/// freed, once.
#[derive(Clone, Copy)]
pub struct StoredKey<S: Spec> {
    /// The head.
    pub head: u64,
    /// Null where the head is the key.
    pub word: *mut (),
    of: PhantomData<S>,
}

impl<S: Spec> StoredKey<S> {
    /// A key that was read from a node.
    #[inline]
    pub fn of_words(head: u64, word: *mut ()) -> Self {
        Self {
            head,
            word,
            of: PhantomData,
        }
    }

    /// Stores a key, whose head this is: may allocate, unless the head tells the key. Then dropping the
    /// key does nothing ([`Spec::HEAD_IS_KEY`]), so the caller may hold a lock.
    #[inline]
    pub fn new(key: S::Key, head: u64) -> Self {
        let word = if S::HEAD_IS_KEY {
            ptr::null_mut()
        } else {
            pack_key::<S::Key, S::Head>(key)
        };
        Self::of_words(head, word)
    }

    /// Stores a copy of a key.
    pub fn copy_of(key: &SearchKey<'_, S>) -> Self {
        let word = if S::HEAD_IS_KEY {
            ptr::null_mut()
        } else {
            pack_key::<S::Key, S::Head>(key.key.clone())
        };
        Self::of_words(key.head, word)
    }

    /// Shows the key to `read`.
    ///
    /// # Safety
    ///
    /// This was read from a node, or stored, as a whole (what an optimistic reader read has been
    /// validated), and the key has not been freed: the caller owns it, or is pinned since before it was
    /// unlinked.
    #[inline]
    pub unsafe fn with<R>(self, read: impl FnOnce(&S::Key) -> R) -> R {
        if S::HEAD_IS_KEY {
            read(&key_of_head::<S>(self.head))
        } else {
            // SAFETY: passed on to the caller.
            unsafe { with_packed_key::<S::Key, S::Head, R>(self.head, self.word, read) }
        }
    }

    /// Shows the key to `read`, to be looked for.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    #[inline]
    pub unsafe fn search<R>(self, read: impl FnOnce(SearchKey<'_, S>) -> R) -> R {
        // SAFETY: passed on to the caller.
        unsafe { self.with(|key| read(SearchKey::with_head(key, self.head))) }
    }

    /// A copy of the key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    #[inline]
    pub unsafe fn to_key(self) -> S::Key {
        if S::HEAD_IS_KEY {
            key_of_head::<S>(self.head)
        } else {
            // SAFETY: passed on to the caller.
            unsafe { self.with(S::Key::clone) }
        }
    }

    /// A copy of this key, with the same head, to be stored elsewhere.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with).
    pub unsafe fn duplicate(self) -> Self {
        if S::HEAD_IS_KEY {
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
        self.head.cmp(&other.head).then_with(|| {
            if S::HEAD_IS_KEY {
                return Ordering::Equal;
            }
            // SAFETY: passed on to the caller.
            unsafe { self.with(|key| other.with(|other| key.cmp(other))) }
        })
    }

    /// Whether this is the very key that the other is, not merely an equal one. Runs no user code.
    #[inline]
    pub fn is(self, other: Self) -> bool {
        self.head == other.head && self.word == other.word
    }

    /// Whether there is something to be freed.
    #[inline]
    fn owns() -> bool {
        let is_word = S::Head::OWN_PACKING.is_none() && Packed::<S::Key>::is_word();
        !S::HEAD_IS_KEY && !is_word
    }

    /// Frees the key once no reader pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); it has been unlinked, so that no thread that pins from now on comes
    /// to it; and it is retired once.
    #[inline]
    pub unsafe fn retire(self, guard: &impl Retire) {
        if Self::owns() {
            let word = self.word;
            // SAFETY: it is freed here only, when every thread that could have come to it has unpinned.
            // `Key: Send + 'static`: any thread may free it, any time.
            unsafe { guard.defer_unchecked(move || free_packed_key::<S::Key, S::Head>(word)) };
        }
    }

    /// The key itself.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); and nobody else has it, or uses it ever again.
    pub unsafe fn take(self) -> S::Key {
        // SAFETY: passed on to the caller.
        unsafe {
            if S::HEAD_IS_KEY || S::Head::OWN_PACKING.is_some() {
                let key = self.to_key();
                self.free();
                key
            } else {
                Packed::of_word(self.word).take()
            }
        }
    }

    /// Frees the key.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); and nobody else has it, or uses it ever again.
    #[inline]
    pub unsafe fn free(self) {
        if Self::owns() {
            // SAFETY: passed on to the caller.
            unsafe { free_packed_key::<S::Key, S::Head>(self.word) };
        }
    }

    /// The bytes allocated for a key beside its words.
    pub fn bytes_beside() -> usize {
        if S::HEAD_IS_KEY {
            0
        } else {
            S::Head::bytes_beside()
        }
    }
}

/// A stored key that is in no node yet. Dropping it frees it.
pub struct OwnedKey<S: Spec>(StoredKey<S>);

impl<S: Spec> OwnedKey<S> {
    /// Asks for the head.
    #[inline]
    pub fn new(key: S::Key) -> Self {
        let head = S::Head::head(&key);
        Self(StoredKey::new(key, head))
    }

    /// A copy of a key that is in a node. It has the same head.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`].
    pub unsafe fn copy_of(stored: StoredKey<S>) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { stored.duplicate() })
    }

    /// Takes a stored key over.
    ///
    /// # Safety
    ///
    /// The caller owns it, and nobody else does.
    pub unsafe fn of_stored(stored: StoredKey<S>) -> Self {
        Self(stored)
    }

    /// The key as it will be in a node; it lives as long as this does.
    #[inline]
    pub fn stored(&self) -> StoredKey<S> {
        self.0
    }

    /// Shows the key to `read`, to be looked for.
    #[inline]
    pub fn search<R>(&self, read: impl FnOnce(SearchKey<'_, S>) -> R) -> R {
        // SAFETY: this owns the key.
        unsafe { self.0.search(read) }
    }

    /// Leaves the key to the node that it is in now.
    #[inline]
    pub fn give(self) -> StoredKey<S> {
        ManuallyDrop::new(self).0
    }
}

impl<S: Spec> Drop for OwnedKey<S> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this owns the key.
        unsafe { self.0.free() };
    }
}
