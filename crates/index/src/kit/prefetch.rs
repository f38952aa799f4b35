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

/// The same for a line that is going to be written: it comes without being shared first, which
/// would take another message between the processors that fight over it.
#[inline(always)]
pub fn prefetch_to_write<T>(address: *const T) {
    #[cfg(sim)]
    tremula_sync::sim::prefetch(address, true);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 processor knows the instruction or takes it for one that does nothing;
    // it has no effect that a program can observe, whatever the address.
    unsafe {
        std::arch::asm!(
            "prefetchw [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
