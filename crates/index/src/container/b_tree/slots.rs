//! A fixed array of slots of which the first so many are in use: a vector that leaves its
//! length to its owner, so that a node can keep the length beside its first keys.

use std::mem::MaybeUninit;
use std::{ptr, slice};

/// `N` slots for `T`. Every method takes the number of slots in use, `len`; that they are the
/// first `len`, and initialized, is the owner's to keep. Dropping drops nothing.
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
        // SAFETY: these slots are initialized, the caller says.
        unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), len) }
    }

    /// # Safety
    ///
    /// The first `len` slots are in use.
    #[inline]
    pub(super) unsafe fn used_mut(&mut self, len: usize) -> &mut [T] {
        debug_assert!(len <= N);
        // SAFETY: these slots are initialized, the caller says.
        unsafe { slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), len) }
    }

    /// Puts `value` at `at` and moves what is there and behind up by one: `len + 1` are in use.
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
        let slots = self.0.as_mut_ptr();
        // SAFETY: `at + 1 + (len - at) <= N`, so both ranges are within the array.
        unsafe {
            ptr::copy(slots.add(at), slots.add(at + 1), len - at);
            slots.add(at).write(MaybeUninit::new(value));
        }
    }

    /// Takes the value at `at` out and moves what is behind down by one: `len - 1` are in use.
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
        let slots = self.0.as_mut_ptr();
        // SAFETY: slot `at` is initialized; both ranges are within the first `len` slots, and
        // the copy leaves the last one out of use.
        unsafe {
            let value = slots.add(at).read().assume_init();
            ptr::copy(slots.add(at + 1), slots.add(at), len - at - 1);
            value
        }
    }

    /// Moves the slots `from..len` of `source` behind the first `len_here` of `self`.
    ///
    /// # Panics
    ///
    /// If `from > len`, `len > N` or they do not fit.
    ///
    /// # Safety
    ///
    /// The first `len` slots of `source` are in use; from now on only the first `from` are.
    pub(super) unsafe fn take_tail(
        &mut self,
        len_here: usize,
        source: &mut Self,
        len: usize,
        from: usize,
    ) {
        assert!(from <= len && len <= N && len_here + (len - from) <= N);
        // SAFETY: both ranges are within their arrays, which are different ones.
        unsafe {
            ptr::copy_nonoverlapping(
                source.0.as_ptr().add(from),
                self.0.as_mut_ptr().add(len_here),
                len - from,
            );
        }
    }
}
