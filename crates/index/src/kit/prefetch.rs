//! Asking for memory before it is needed.

/// Starts to load the cache line at `address`, and returns at once. The address need not be valid,
/// because nothing is read.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE exists here; a prefetch of any address has no effect that a program can
        // observe.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse", not(miri))))]
    let _ = address;
}
