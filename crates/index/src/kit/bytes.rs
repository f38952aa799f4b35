//! Search among up to sixteen bytes that lie in two words, the first byte lowest.
//!
//! A node that is read optimistically keeps its bytes in atomic words, which are loaded and then
//! searched in registers. Each kernel has two forms: SSE2, which every x86-64 has, and words
//! (*SWAR*) elsewhere. A test compares the two.

/// Sixteen bytes, the first in the lowest bits of the first word.
pub(crate) type Bytes = [u64; 2];

/// The place of the first byte equal to `byte` among the first `count` bytes.
#[inline]
pub(crate) fn position(bytes: Bytes, byte: u8, count: usize) -> Option<usize> {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
    let place = sse2::position(bytes, byte);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
    let place = swar::position(bytes, byte);
    (place < count).then_some(place)
}

/// The number of bytes below `byte` among the first `count` bytes, which are ascending.
#[inline]
pub(crate) fn rank(bytes: Bytes, byte: u8, count: usize) -> usize {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(miri)))]
    let place = sse2::rank(bytes, byte);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", not(miri))))]
    let place = swar::rank(bytes, byte);
    place.min(count)
}

/// The place of the first byte equal to `byte` among the first `count` of the four bytes of
/// `bytes`.
#[inline]
pub(crate) fn position_of_four(bytes: u32, byte: u8, count: usize) -> Option<usize> {
    let place = swar::first_equal(u64::from(bytes), byte);
    (place < count).then_some(place)
}

/// [`rank`] among four bytes.
#[inline]
pub(crate) fn rank_of_four(bytes: u32, byte: u8, count: usize) -> usize {
    swar::first_not_below(u64::from(bytes), byte).min(count)
}

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[cfg_attr(miri, allow(dead_code))]
mod sse2 {
    use super::Bytes;
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8,
        _mm_xor_si128,
    };

    #[inline]
    fn register(bytes: Bytes) -> __m128i {
        // SAFETY: this module is compiled only where SSE2 exists.
        unsafe { _mm_set_epi64x(bytes[1].cast_signed(), bytes[0].cast_signed()) }
    }

    /// The place of the first byte equal to `byte`; 32 if no byte is equal.
    #[inline]
    pub(super) fn position(bytes: Bytes, byte: u8) -> usize {
        // SAFETY: this module is compiled only where SSE2 exists.
        let equal = unsafe {
            let wanted = _mm_set1_epi8(byte.cast_signed());
            _mm_movemask_epi8(_mm_cmpeq_epi8(register(bytes), wanted))
        };
        equal.trailing_zeros() as usize
    }

    #[inline]
    pub(super) fn rank(bytes: Bytes, byte: u8) -> usize {
        // SSE2 compares signed bytes, so the sign bits are flipped.
        // SAFETY: this module is compiled only where SSE2 exists.
        let below = unsafe {
            let flipped = _mm_xor_si128(register(bytes), _mm_set1_epi8(i8::MIN));
            let limit = _mm_set1_epi8((byte ^ 0x80).cast_signed());
            _mm_movemask_epi8(_mm_cmplt_epi8(flipped, limit))
        };
        (!below).trailing_zeros() as usize
    }
}

mod swar {
    #[cfg(any(test, miri, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
    use super::Bytes;

    /// `LOW` is the lowest bit of each byte, `HIGH` the highest.
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;

    /// The place of the first byte of the word that equals `byte`; 8 if no byte does.
    #[inline]
    pub(super) fn first_equal(word: u64, byte: u8) -> usize {
        let difference = word ^ (LOW * u64::from(byte));
        // Borrows run upwards only, so the mark of the lowest zero byte is right.
        let zeros = difference.wrapping_sub(LOW) & !difference & HIGH;
        zeros.trailing_zeros() as usize / 8
    }

    /// The place of the first byte of the word that is not below `byte`; 8 if all are below it.
    #[inline]
    pub(super) fn first_not_below(word: u64, byte: u8) -> usize {
        let splat = LOW * u64::from(byte);
        // With the sign bits set in the one and cleared in the other, no byte borrows from the
        // next.
        let difference = (word | HIGH) - (splat & !HIGH);
        let below = ((!word & splat) | (!(word ^ splat) & !difference)) & HIGH;
        (!below & HIGH).trailing_zeros() as usize / 8
    }

    #[cfg(any(test, miri, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
    pub(super) fn position(bytes: Bytes, byte: u8) -> usize {
        match first_equal(bytes[0], byte) {
            8 => 8 + first_equal(bytes[1], byte),
            place => place,
        }
    }

    #[cfg(any(test, miri, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
    pub(super) fn rank(bytes: Bytes, byte: u8) -> usize {
        match first_not_below(bytes[0], byte) {
            8 => 8 + first_not_below(bytes[1], byte),
            place => place,
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(bytes: &[u8; 16]) -> Bytes {
        let (low, high) = bytes.split_at(8);
        [low, high].map(|half| u64::from_le_bytes(half.try_into().unwrap()))
    }

    proptest! {
        #[test]
        fn the_kernels_find_what_a_loop_finds(
            mut bytes: [u8; 16],
            byte: u8,
            close in any::<bool>(),
            count in 0_usize..=16,
        ) {
            // Few different bytes, so that equal ones occur.
            if close {
                bytes = bytes.map(|other| byte.wrapping_add(other % 5).wrapping_sub(2));
            }
            let wanted = bytes[..count].iter().position(|other| *other == byte);
            let place = |place: usize| (place < count).then_some(place);
            prop_assert_eq!(position(words(&bytes), byte, count), wanted);
            prop_assert_eq!(place(swar::position(words(&bytes), byte)), wanted);
            let four = u32::from_le_bytes(*bytes.first_chunk().unwrap());
            let wanted = wanted.filter(|place| *place < 4);
            prop_assert_eq!(position_of_four(four, byte, count.min(4)), wanted);

            bytes.sort_unstable();
            let wanted = bytes[..count].iter().filter(|other| **other < byte).count();
            prop_assert_eq!(rank(words(&bytes), byte, count), wanted);
            prop_assert_eq!(swar::rank(words(&bytes), byte).min(count), wanted);
            let four = u32::from_le_bytes(*bytes.first_chunk().unwrap());
            prop_assert_eq!(rank_of_four(four, byte, count.min(4)), wanted.min(4));
        }
    }
}
