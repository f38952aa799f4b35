//! Keys and values in the slots of nodes that share them.

use crate::kit::{Packed, Spec};
use std::mem::ManuallyDrop;
use tremula_sync::Arc;

/// A key or value as one word: itself where it fits, else a counted pointer to it.
///
/// It is a plain word to copy about and owns nothing: whoever holds the slot that it is in has one
/// of its counts, and sees to it that it is [released](Self::release).
pub(in crate::lfca_tree) struct Word<T>(Packed<T>);

impl<T> Clone for Word<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Word<T> {}

impl<T: 'static> Word<T> {
    /// What stands for a key where heads are keys; never looked at.
    pub(super) const NONE: Self = Self::of(std::ptr::null_mut());

    /// The word of a slot.
    #[inline]
    pub(super) const fn of(word: *mut ()) -> Self {
        Self(Packed::of_word(word))
    }

    /// What [`of`](Self::of) takes.
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

    /// Shows the value to `read`.
    ///
    /// # Safety
    ///
    /// It has not been released for the last time: the caller has a count, or is pinned since
    /// before a node that has one was unlinked.
    #[inline]
    pub(in crate::lfca_tree) unsafe fn with<R>(self, read: impl FnOnce(&T) -> R) -> R {
        // SAFETY: the caller's promise. Where it is not a word, it leads to the value, as a box would.
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

    /// Gives a count back; with the last one the value is dropped.
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

    /// What stands for a key where heads are keys.
    #[inline]
    pub(in crate::lfca_tree) fn none() -> Self {
        Self(Word::NONE)
    }

    /// The word, which lives as long as this does.
    #[inline]
    pub(in crate::lfca_tree) fn word(&self) -> Word<T> {
        self.0
    }

    /// The count goes to the slot that the word is in.
    #[inline]
    pub(super) fn give(self) {
        std::mem::forget(self);
    }

    /// A count of a word that lies in a node.
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

    /// The value, if nobody else has a count of it; else a copy.
    pub(in crate::lfca_tree) fn hand_out(self) -> T
    where
        T: Clone,
    {
        let shared = self.take_or_share();
        shared.unwrap_or_else(|shared| T::clone(&shared))
    }

    /// The value, if nobody else has a count of it.
    pub(in crate::lfca_tree) fn take(self) -> Option<T> {
        self.take_or_share().ok()
    }

    fn take_or_share(self) -> Result<T, Arc<T>> {
        let word = ManuallyDrop::new(self).0;
        if Packed::<T>::is_word() {
            // SAFETY: a value that is a word is always there.
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
