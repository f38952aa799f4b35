//! Records: allocated keys with their values.

use crate::kit::Packed;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ptr::NonNull;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::reclaim::Guard;

/// A key, which never changes, and its value.
///
/// A writer changes the value under the lock of the node that points to the record. No thread
/// changes it once the record has been unlinked, so a late reader finds the last value.
#[repr(C, align(8))]
pub(crate) struct Record<K> {
    value: AtomicPtr<()>,
    key: K,
}

impl<K> Record<K> {
    #[inline]
    pub(crate) fn key(&self) -> &K {
        &self.key
    }

    /// The current value; if the record has been unlinked, the last one.
    #[inline]
    pub(crate) fn value<V: 'static>(&self) -> Packed<V> {
        // Acquire: pairs with the release in `set`. This thread sees what the value points to.
        Packed::of_word(self.value.load(Ordering::Acquire))
    }

    /// Replaces the value, and does not free the old one. The caller holds the lock of the node
    /// that points to the record.
    #[inline]
    pub(crate) fn set<V: 'static>(&self, value: Packed<V>) {
        // Release: pairs with the acquire in `value`.
        self.value.store(value.word(), Ordering::Release);
    }
}

/// A record that stays allocated for `'g`.
pub(crate) struct RecordRef<'g, K> {
    pointer: NonNull<Record<K>>,
    life: PhantomData<&'g Record<K>>,
}

impl<K> Clone for RecordRef<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for RecordRef<'_, K> {}

impl<'g, K> RecordRef<'g, K> {
    /// A new record, which no other thread has yet.
    pub(crate) fn new<V: 'static>(key: K, value: Packed<V>) -> Self {
        let value = AtomicPtr::new(value.word());
        let record = Box::into_raw(Box::new(Record { value, key }));
        // SAFETY: a box is not null, and the record lives until it is freed through this reference.
        unsafe { Self::of_word(record.cast()) }
    }

    /// The record that this word points to.
    ///
    /// # Safety
    ///
    /// [`word`](Self::word) returned the word, which is not null, and the record lives for `'g`.
    #[inline]
    pub(crate) unsafe fn of_word(word: *mut ()) -> Self {
        Self {
            // SAFETY: the caller's promise.
            pointer: unsafe { NonNull::new_unchecked(word.cast()) },
            life: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn word(self) -> *mut () {
        self.pointer.as_ptr().cast()
    }

    #[inline]
    pub(crate) fn get(self) -> &'g Record<K> {
        // SAFETY: the caller of `of_word` promised that the record lives for `'g`.
        unsafe { self.pointer.as_ref() }
    }

    /// Frees the record, and returns its key and its value.
    ///
    /// # Safety
    ///
    /// No other thread has the record, and the caller does this once.
    unsafe fn into_parts<V: 'static>(self) -> (K, Packed<V>) {
        // SAFETY: `new` made it from a box, and no other thread has it.
        let record = *unsafe { Box::from_raw(self.pointer.as_ptr()) };
        let value = record.value();
        (record.key, value)
    }

    /// Frees the record with its key. Frees its value too if `with_value`; otherwise the value has
    /// moved elsewhere.
    ///
    /// # Safety
    ///
    /// No other thread has the record any more. It is freed once, and so is its value.
    pub(crate) unsafe fn free<V: 'static>(self, with_value: bool) {
        // SAFETY: the caller's promise.
        let (key, value) = unsafe { self.into_parts::<V>() };
        if with_value {
            // SAFETY: the caller's promise.
            drop(unsafe { value.take() });
        }
        drop(key);
    }
}

impl<K: Send> RecordRef<'_, K> {
    /// Hands out the key and the value. If no other thread can be looking at them, it moves them
    /// out. Otherwise it calls `copy`, and they are freed when no thread can be looking at them any
    /// more.
    ///
    /// # Safety
    ///
    /// The calling thread has unlinked the record, keeps no reference to it, and holds no lock,
    /// because `copy` may be user code.
    #[inline]
    pub(crate) unsafe fn hand_out<V: Send + 'static, R>(
        self,
        guard: &Guard<'_>,
        take: impl FnOnce(K, V) -> R,
        copy: impl FnOnce(&K, &V) -> R,
    ) -> R {
        if (needs_drop::<K>() || needs_drop::<V>()) && guard.is_alone() {
            // SAFETY: the record is unlinked and no other thread is pinned, so no other thread has
            // it.
            let (key, value) = unsafe { self.into_parts::<V>() };
            // SAFETY: as for the record.
            return take(key, unsafe { value.take() });
        }
        // SAFETY: the caller promises that it is unlinked. It is freed after this guard is gone, at
        // the earliest, so it can still be read.
        unsafe {
            self.retire::<V>(true, guard);
            let record = self.pointer.as_ref();
            record.value().with(|value| copy(&record.key, value))
        }
    }

    /// Frees the record once no thread that is pinned now can be looking at it, and its value too
    /// if `with_value`.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    pub(crate) unsafe fn retire<V: Send + 'static>(self, with_value: bool, guard: &Guard<'_>) {
        // SAFETY: keys and values are `Send` and own what they hold, so any thread may drop them at
        // any time. When this runs, each thread that could have reached the record has unpinned.
        unsafe {
            let record = RecordRef::<K>::of_word(self.word());
            guard.defer_unchecked(move || record.free::<V>(with_value));
        }
    }
}
