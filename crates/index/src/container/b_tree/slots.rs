//! A fixed array whose first slots are in use: a vector whose owner keeps the length, so that a
//! node can keep it beside its first keys.

use std::mem::MaybeUninit;
use std::{ptr, slice};

/// `N` slots for `T`. Every method takes the number `len` of slots in use. The owner ensures that
/// these are the first `len` slots and that they are initialized. Dropping `Slots` drops no value.
pub(super) struct Slots<T, const N: usize>([MaybeUninit<T>; N]);

impl<T, const N: usize> Slots<T, N> {
    pub(super) const fn new() -> Self {
        Self([const { MaybeUninit::uninit() }; N])
    }

    /// # Safety
    ///
    /// The first `len` slots are in use.
    #[inline]
    pub(super) unsafe fn used(&self, len: usize) -> &[T] {
        debug_assert!(len <= N);
        // SAFETY: the caller says that these slots are initialized.
        unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), len) }
    }

    /// # Safety
    ///
    /// The first `len` slots are in use.
    #[inline]
    pub(super) unsafe fn used_mut(&mut self, len: usize) -> &mut [T] {
        debug_assert!(len <= N);
        // SAFETY: the caller says that these slots are initialized.
        unsafe { slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }

    /// Inserts `value` at `at` and moves the values from there on up by one: `len + 1` slots are in
    /// use then.
    ///
    /// # Panics
    ///
    /// If `at > len` or `len >= N`.
    ///
    /// # Safety
    ///
    /// The first `len` slots are in use.
    #[inline]
    pub(super) unsafe fn insert(&mut self, len: usize, at: usize, value: T) {
        assert!(at <= len && len < N);
        #[cfg(sim)]
        moved(&self.0[at..=len]);
        let slots = self.0.as_mut_ptr();
        // SAFETY: `at + 1 + (len - at) <= N`, so both ranges lie within the array.
        unsafe {
            ptr::copy(slots.add(at), slots.add(at + 1), len - at);
            slots.add(at).write(MaybeUninit::new(value));
        }
    }

    /// Takes out the value at `at` and moves those behind it down by one: `len - 1` slots are in
    /// use then.
    ///
    /// # Panics
    ///
    /// If `at >= len` or `len > N`.
    ///
    /// # Safety
    ///
    /// The first `len` slots are in use.
    #[inline]
    pub(super) unsafe fn remove(&mut self, len: usize, at: usize) -> T {
        assert!(at < len && len <= N);
        #[cfg(sim)]
        moved(&self.0[at..len]);
        let slots = self.0.as_mut_ptr();
        // SAFETY: slot `at` is initialized. Both ranges lie within the first `len` slots, and after
        // the copy the last of them is not in use.
        unsafe {
            let value = slots.add(at).read().assume_init();
            ptr::copy(slots.add(at + 1), slots.add(at), len - at - 1);
            value
        }
    }

    /// Moves the slots `from..len` of `source` behind the first `len_here` slots of `self`.
    ///
    /// # Panics
    ///
    /// If `from > len`, `len > N`, or `self` has too few free slots.
    ///
    /// # Safety
    ///
    /// The first `len` slots of `source` are in use; after the call only the first `from` are.
    pub(super) unsafe fn take_tail(
        &mut self,
        len_here: usize,
        source: &mut Self,
        len: usize,
        from: usize,
    ) {
        assert!(from <= len && len <= N && len_here + (len - from) <= N);
        // SAFETY: both ranges lie within their arrays, which are different ones.
        unsafe {
            ptr::copy_nonoverlapping(
                source.0.as_ptr().add(from),
                self.0.as_mut_ptr().add(len_here),
                len - from,
            );
        }
    }
}

/// The price of values that are moved by a place: they are read, which waits for their lines, and
/// written.
#[cfg(sim)]
fn moved<T>(slots: &[T]) {
    for writes in [false, true] {
        tremula_sync::sim::touch(slots.as_ptr(), size_of_val(slots), writes);
    }
}
