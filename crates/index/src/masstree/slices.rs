//! Keys as sequences of slices: numbers of eight bytes, one for each layer.
//!
//! A slice has to say where a key ends, because "a" and "a\0" would be the same eight bytes after
//! padding with zeros. The paper keeps the lengths beside the slices, so up to ten keys of a leaf
//! share one slice. Here the length is in the slice. If all keys have one length, a slice is eight
//! bytes of the key. Otherwise it is seven bytes, then their count, or a mark that more bytes
//! follow. So each slice is in a layer once, a search compares only numbers, and leaves may be
//! split anywhere.

use crate::key::{ByteKey, head_of};
use std::marker::PhantomData;

/// The last byte of a slice of keys of any length, if more bytes follow.
const MORE: u64 = 8;

/// How keys of a type are cut into slices.
pub(super) struct Slices<K>(PhantomData<K>);

impl<K: ByteKey> Slices<K> {
    /// Whether slices are bytes of the key only, without a count.
    const WHOLE: bool = K::HEAD_IS_KEY || K::LENGTH.is_some();

    /// How many bytes of the key are in a slice.
    pub(super) const STEP: usize = if Self::WHOLE { 8 } else { 7 };

    /// The slice of a key in the layer at this depth. The depth is in bytes, at most the key's
    /// length.
    #[inline]
    pub(super) fn at(bytes: &[u8], depth: usize) -> u64 {
        let rest = bytes.get(depth..).unwrap_or_default();
        if Self::WHOLE {
            return head_of(rest);
        }
        head_of(rest) & !0xff | (rest.len() as u64).min(MORE)
    }

    /// Whether bytes of the key follow the slice at this depth.
    #[inline]
    pub(super) fn go_on(bytes: &[u8], depth: usize) -> bool {
        !K::HEAD_IS_KEY && bytes.len() > depth + Self::STEP
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slices<K: ByteKey>(bytes: &[u8]) -> Vec<u64> {
        let mut slices = vec![Slices::<K>::at(bytes, 0)];
        let mut depth = 0;
        while Slices::<K>::go_on(bytes, depth) {
            depth += Slices::<K>::STEP;
            slices.push(Slices::<K>::at(bytes, depth));
        }
        slices
    }

    proptest! {
        #[test]
        fn slices_are_ordered_as_the_keys_are(
            one in prop::collection::vec(0..3_u8, 0..20),
            other in prop::collection::vec(0..3_u8, 0..20),
            wide: [u128; 2],
        ) {
            let [a, b] = [&one, &other].map(|bytes| slices::<Vec<u8>>(bytes));
            prop_assert_eq!(a.cmp(&b), one.cmp(&other));
            let [a, b] = wide.map(|key| key.with_bytes(slices::<u128>));
            prop_assert_eq!(a.cmp(&b), wide[0].cmp(&wide[1]));
            prop_assert_eq!(a.len(), 2);
        }
    }

    #[test]
    fn a_number_is_one_slice() {
        assert_eq!(0x0102_u64.with_bytes(slices::<u64>), [0x0102]);
        assert_eq!(7_u32.with_bytes(slices::<u32>), [7 << 32]);
    }
}
