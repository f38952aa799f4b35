//! The part of std's `Arc` that is used here, for builds under ThreadSanitizer. std orders the last
//! drop by a fence, which ThreadSanitizer does not see; here the counter's own accesses order it.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The value comes first, so a pointer to the value is also a pointer to the whole.
#[repr(C)]
struct Counted<T> {
    value: T,
    count: AtomicUsize,
}

/// A counted reference like std's.
pub struct Arc<T> {
    counted: NonNull<Counted<T>>,
    value: PhantomData<Counted<T>>,
}

// SAFETY: like std's: any thread that has a reference may read the value, and may drop it.
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: as for `Send`.
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
        // SAFETY: this reference is counted, so the value lives.
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
        // SAFETY: a pointer from `into_raw` is not null.
        Self::of(unsafe { NonNull::new_unchecked(value.cast_mut().cast()) })
    }

    /// As std's.
    ///
    /// # Safety
    ///
    /// `value` came from `into_raw`, and at least one count is left.
    pub unsafe fn increment_strong_count(value: *const T) {
        // SAFETY: the caller's promise is that of `from_raw`, except that the count is not the
        // caller's: `ManuallyDrop` leaves it alone.
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

    /// # Errors
    ///
    /// Returns the reference if there are others.
    ///
    /// AcqRel: pairs with the same access of every thread that dropped its reference before: what
    /// those threads did with the value happens before it is taken out.
    pub fn try_unwrap(this: Self) -> Result<T, Self> {
        // SAFETY: the exchange took the last count.
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
        // Relaxed: a thread that holds a reference may copy it; the copy orders nothing.
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
        // AcqRel: pairs with the subtractions of the other references, as in `try_unwrap`.
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
