//! Records: keys that are not put together from the way to them, with their values.

use crate::kit::Packed;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ptr::NonNull;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::reclaim::Guard;

/// A key, which never changes, and its value.
///
/// The value is written under the lock of the node that leads to the record, and never again once
/// the record has been unlinked: what a late reader finds is what it was last.
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

    /// The value: that of this moment, or, of an unlinked record, the last.
    #[inline]
    pub(crate) fn value<V: 'static>(&self) -> Packed<V> {
        // Acquire: pairs with the release of `set`. What the value leads to is visible.
        Packed::of_word(self.value.load(Ordering::Acquire))
    }

    /// Writes the value; what it was is not freed. The caller holds the lock of the node that
    /// leads to the record.
    #[inline]
    pub(crate) fn set<V: 'static>(&self, value: Packed<V>) {
        // Release: pairs with the acquire in `value`.
        self.value.store(value.word(), Ordering::Release);
    }
}

/// A record that lives for `'g`.
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
        // SAFETY: a box is not null. The record lives until it is freed through this.
        unsafe { Self::of_word(record.cast()) }
    }

    /// The record that this word leads to.
    ///
    /// # Safety
    ///
    /// The word is not null, [`word`](Self::word) gave it, and the record lives for `'g`.
    #[inline]
    pub(crate) unsafe fn of_word(word: *mut ()) -> Self {
        Self {
            // SAFETY: as the caller promises.
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
        // SAFETY: it lives for `'g`: see `of_word`.
        unsafe { self.pointer.as_ref() }
    }

    /// The key and the value, which are not freed.
    ///
    /// # Safety
    ///
    /// The caller alone has the record, and does this once.
    unsafe fn into_parts<V: 'static>(self) -> (K, Packed<V>) {
        // SAFETY: it came from a box, in `new`, and the caller alone has it.
        let record = *unsafe { Box::from_raw(self.pointer.as_ptr()) };
        let value = record.value();
        (record.key, value)
    }

    /// Frees the record; and its value, unless that has moved elsewhere.
    ///
    /// # Safety
    ///
    /// No thread has the record any more. It is freed once, and so is its value.
    pub(crate) unsafe fn free<V: 'static>(self, with_value: bool) {
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { self.into_parts::<V>() };
        if with_value {
            // SAFETY: as the caller promises.
            drop(unsafe { value.take() });
        }
        drop(key);
    }
}

impl<K: Send> RecordRef<'_, K> {
    /// Hands out key and value: themselves, if no other thread can be looking at them; else
    /// `copy` makes something of them, and they are freed when no thread can any more.
    ///
    /// # Safety
    ///
    /// The record has been unlinked, by the calling thread alone, which keeps no reference to it,
    /// and holds no lock: `copy` may be code of the user's.
    #[inline]
    pub(crate) unsafe fn hand_out<V: Send + 'static, R>(
        self,
        guard: &Guard<'_>,
        take: impl FnOnce(K, V) -> R,
        copy: impl FnOnce(&K, &V) -> R,
    ) -> R {
        if (needs_drop::<K>() || needs_drop::<V>()) && guard.is_alone() {
            // SAFETY: no other thread has the record or comes to it.
            let (key, value) = unsafe { self.into_parts::<V>() };
            // SAFETY: likewise.
            return take(key, unsafe { value.take() });
        }
        // SAFETY: unlinked, as the caller promises. It is freed when this guard is gone, at the
        // earliest, and so can still be looked at.
        unsafe {
            self.retire::<V>(true, guard);
            let record = self.pointer.as_ref();
            record.value().with(|value| copy(&record.key, value))
        }
    }

    /// Frees the record, and perhaps its value, once no thread that is pinned now can be looking at
    /// it.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    pub(crate) unsafe fn retire<V: Send + 'static>(self, with_value: bool, guard: &Guard<'_>) {
        let pointer = self.pointer;
        let free = move || {
            let record = RecordRef {
                pointer,
                life: PhantomData,
            };
            // SAFETY: each thread that could have come to the record has unpinned when this runs.
            unsafe { record.free::<V>(with_value) };
        };
        // SAFETY: keys and values are `Send` and own what they hold: any thread may drop them,
        // at any time.
        unsafe { guard.defer_unchecked(free) };
    }
}
