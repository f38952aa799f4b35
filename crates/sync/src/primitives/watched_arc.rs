//! What is used of std's `Arc`, for ThreadSanitizer: there the last drop is ordered by a fence,
//! which that does not see; here by the counter.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The value comes first: a pointer to one is a pointer to the other.
#[repr(C)]
struct Counted<T> {
    value: T,
    count: AtomicUsize,
}

/// A counted reference, as std's.
pub struct Arc<T> {
    counted: NonNull<Counted<T>>,
    value: PhantomData<Counted<T>>,
}

// SAFETY: as std's: what is shared may be read, and dropped, by any thread that has a count.
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    /// As std's.
    pub fn new(value: T) -> Self {
        let count = AtomicUsize::new(1);
        Self::of(NonNull::from(Box::leak(Box::new(Counted { value, count }))))
    }

    fn of(counted: NonNull<Counted<T>>) -> Self {
        Self {
            counted,
            value: PhantomData,
        }
    }

    fn counted(&self) -> &Counted<T> {
        // SAFETY: this has a count, so it lives.
        unsafe { self.counted.as_ref() }
    }

    /// As std's.
    #[must_use]
    pub fn as_ptr(this: &Self) -> *const T {
        this.counted.as_ptr().cast_const().cast()
    }

    /// As std's.
    #[must_use]
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        ptr::eq(Self::as_ptr(this), Self::as_ptr(other))
    }

    /// As std's.
    #[must_use]
    pub fn strong_count(this: &Self) -> usize {
        this.counted().count.load(Ordering::Acquire)
    }

    /// As std's.
    #[must_use]
    pub fn into_raw(this: Self) -> *const T {
        Self::as_ptr(&ManuallyDrop::new(this))
    }

    /// As std's.
    ///
    /// # Safety
    ///
    /// It came from `into_raw`, and the caller has one of the counts.
    #[must_use]
    pub unsafe fn from_raw(value: *const T) -> Self {
        // SAFETY: what came from `into_raw` is not null.
        Self::of(unsafe { NonNull::new_unchecked(value.cast_mut().cast()) })
    }

    /// As std's.
    ///
    /// # Safety
    ///
    /// It came from `into_raw`, and somebody has one of the counts.
    pub unsafe fn increment_strong_count(value: *const T) {
        // SAFETY: as the caller promises; this one's count stays.
        let shared = ManuallyDrop::new(unsafe { Self::from_raw(value) });
        std::mem::forget(Self::clone(&shared));
    }

    /// As std's.
    ///
    /// # Safety
    ///
    /// As for `from_raw`.
    pub unsafe fn decrement_strong_count(value: *const T) {
        // SAFETY: as the caller promises.
        drop(unsafe { Self::from_raw(value) });
    }

    /// As std's.
    ///
    /// # Errors
    ///
    /// Hands the reference back if there are others.
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        // AcqRel: in order with all who gave theirs back.
        let count = &this.counted().count;
        match count.compare_exchange(1, 0, Ordering::AcqRel, Ordering::Relaxed) {
            // SAFETY: that was the last count.
            Ok(_) => Ok(unsafe { Box::from_raw(ManuallyDrop::new(this).counted.as_ptr()) }.value),
            Err(_) => Err(this),
        }
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        // Relaxed: whoever has one can give it on; nothing is ordered by that.
        self.counted().count.fetch_add(1, Ordering::Relaxed);
        Self::of(self.counted)
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        // AcqRel: as in `try_unwrap`.
        if self.counted().count.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: that was the last count.
            drop(unsafe { Box::from_raw(self.counted.as_ptr()) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}
