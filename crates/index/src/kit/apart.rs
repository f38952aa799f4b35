//! A number that the compiler must have at hand.

/// Returns its argument, which the compiler must have in a register here.
///
/// In a sum of comparisons it keeps each addition by itself: a comparison and an addition with
/// carry, two instructions. Left alone, the compiler gathers a few comparisons of scattered words
/// into a vector, which takes several times as many.
#[inline(always)]
pub(crate) fn apart(number: usize) -> usize {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut number = number;
        // SAFETY: no instruction at all.
        unsafe {
            std::arch::asm!(
                "/* {0} */",
                inout(reg) number,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        number
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    number
}
