//! Floats as keys.

use super::ByteKey;
use std::cmp::Ordering;

macro_rules! float {
    ($name:ident, $float:ty, $bits:ty, $signed:ty) => {
        /// A float as a key: in the total order of IEEE 754, which is that of
        #[doc = concat!("[`", stringify!($float), "::total_cmp`]: negative NaN, -∞, …, -0.0, 0.0, …, ∞, NaN.")]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name(pub $float);

        impl $name {
            /// The bits, ordered as unsigned integers.
            #[inline]
            const fn ordered(self) -> $bits {
                let bits = self.0.to_bits();
                // All bits of a negative number are flipped; of any other number, only the sign.
                bits ^ ((bits as $signed >> (<$bits>::BITS - 1)) as $bits | 1 << (<$bits>::BITS - 1))
            }

            const fn from_ordered(ordered: $bits) -> Self {
                let sign = 1 << (<$bits>::BITS - 1);
                let bits = if ordered & sign == 0 { !ordered } else { ordered ^ sign };
                Self(<$float>::from_bits(bits))
            }
        }

        impl Ord for $name {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.total_cmp(&other.0)
            }
        }

        impl PartialOrd for $name {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Eq for $name {}

        impl ByteKey for $name {
            const HEAD_IS_KEY: bool = true;
            const LENGTH: Option<usize> = Some(size_of::<$bits>());

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                read(&self.ordered().to_be_bytes())
            }

            #[inline]
            fn head(&self) -> u64 {
                u64::from(self.ordered()) << (64 - <$bits>::BITS)
            }

            #[inline]
            fn from_head(head: u64) -> Option<Self> {
                Some(Self::from_ordered((head >> (64 - <$bits>::BITS)) as $bits))
            }
        }
    };
}

float!(TotalF32, f32, u32, i32);
float!(TotalF64, f64, u64, i64);
