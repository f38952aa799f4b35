//! Keys and values in words, which nodes share.

use crate::kit::{Packed, Spec};
use std::mem::ManuallyDrop;
use tremula_sync::Arc;

/// A key or value as one word: the value itself where it fits, otherwise a counted pointer to it.
///
/// A word can be copied freely and owns nothing. The node in whose slot it lies owns one of its
/// counts, and [releases](Self::release) it.
pub(in crate::lfca_tree) struct Word<T>(Packed<T>);

impl<T> Clone for Word<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Word<T> {}

impl<T: 'static> Word<T> {
    /// The word of a key where heads are keys. It is never read.
    pub(super) const NONE: Self = Self::of(std::ptr::null_mut());

    /// The word with these bits.
    #[inline]
    pub(super) const fn of(word: *mut ()) -> Self {
        Self(Packed::of_word(word))
    }

    /// The bits, for [`of`](Self::of).
    #[inline]
    pub(super) fn word(self) -> *mut () {
        self.0.word()
    }

    #[inline]
    fn new(value: T) -> Self {
        if Packed::<T>::is_word() {
            Self(Packed::new(value))
        } else {
            Self::of(Arc::into_raw(Arc::new(value)).cast_mut().cast())
        }
    }

    /// The counted pointer, if the value is not a word.
    #[inline]
    fn counted(self) -> Option<*const T> {
        let is_counted = !Packed::<T>::is_word() && !self.word().is_null();
        is_counted.then(|| self.word().cast::<T>().cast_const())
    }

    /// Calls `read` with the value.
    ///
    /// # Safety
    ///
    /// The value lives: the caller has a count, or has been pinned since before a node that has one
    /// was unlinked.
    #[inline]
    pub(in crate::lfca_tree) unsafe fn with<R>(self, read: impl FnOnce(&T) -> R) -> R {
        // SAFETY: the caller says that the value lives. A counted pointer leads to it like a box.
        unsafe { self.0.with(read) }
    }

    /// Adds a count.
    ///
    /// # Safety
    ///
    /// As for [`with`](Self::with); or it is [`NONE`](Self::NONE).
    #[inline]
    pub(super) unsafe fn share(self) {
        if let Some(counted) = self.counted() {
            // SAFETY: the pointer came from an `Arc`, which lives as the caller promises.
            unsafe { Arc::increment_strong_count(counted) };
        }
    }

    /// Releases a count. The value is dropped with the last one.
    ///
    /// # Safety
    ///
    /// The caller has a count, which ends here; or it is [`NONE`](Self::NONE).
    #[inline]
    pub(super) unsafe fn release(self) {
        if let Some(counted) = self.counted() {
            // SAFETY: the pointer came from an `Arc`, of which the caller has a count.
            unsafe { Arc::decrement_strong_count(counted) };
        }
    }
}

/// A key and a value, with counts of their own.
pub(in crate::lfca_tree) type OwnedEntry<S> = (Owned<<S as Spec>::Key>, Owned<<S as Spec>::Value>);

/// A [`Word`] with a count of its own.
pub(in crate::lfca_tree) struct Owned<T: 'static>(Word<T>);

impl<T: 'static> Owned<T> {
    #[inline]
    pub(in crate::lfca_tree) fn new(value: T) -> Self {
        Self(Word::new(value))
    }

    /// The word of a key where heads are keys.
    #[inline]
    pub(in crate::lfca_tree) fn none() -> Self {
        Self(Word::NONE)
    }

    /// The word. Its value lives as long as this does.
    #[inline]
    pub(in crate::lfca_tree) fn word(&self) -> Word<T> {
        self.0
    }

    /// Passes the count to the node in whose slot the word lies.
    #[inline]
    pub(super) fn give(self) {
        std::mem::forget(self);
    }

    /// Adds a count to a word that lies in a node.
    ///
    /// # Safety
    ///
    /// As for [`Word::share`].
    #[inline]
    pub(in crate::lfca_tree) unsafe fn share(word: Word<T>) -> Self {
        // SAFETY: the caller's promise.
        unsafe { word.share() };
        Self(word)
    }

    /// The value itself if this is the last count, otherwise a copy.
    pub(in crate::lfca_tree) fn hand_out(self) -> T
    where
        T: Clone,
    {
        let shared = self.take_or_share();
        shared.unwrap_or_else(|shared| T::clone(&shared))
    }

    /// The value, if this is the last count.
    pub(in crate::lfca_tree) fn take(self) -> Option<T> {
        self.take_or_share().ok()
    }

    fn take_or_share(self) -> Result<T, Arc<T>> {
        let word = ManuallyDrop::new(self).0;
        if Packed::<T>::is_word() {
            // SAFETY: a value that is a word is in the word itself.
            Ok(unsafe { word.0.take() })
        } else {
            // SAFETY: the pointer came from an `Arc`, of which this had a count.
            Arc::try_unwrap(unsafe { Arc::from_raw(word.word().cast::<T>().cast_const()) })
        }
    }
}

impl<T: 'static> Clone for Owned<T> {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: this has a count.
        unsafe { self.0.share() };
        Self(self.0)
    }
}

impl<T: 'static> Drop for Owned<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this has a count.
        unsafe { self.0.release() };
    }
}
