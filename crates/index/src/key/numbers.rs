//! The byte forms of integers and of types that convert to integers: big-endian. The sign bit of
//! signed integers is flipped, so that negative numbers come first.

use super::ByteKey;

/// Implements [`ByteKey`] for a type of up to eight bytes, by conversions to and from unsigned
/// integers in the order of the type.
macro_rules! word {
    ($type:ty, $bits:ty, $to:expr, $from:expr) => {
        impl ByteKey for $type {
            const HEAD_IS_KEY: bool = true;
            const LENGTH: Option<usize> = Some(size_of::<$bits>());

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let to: fn($type) -> $bits = $to;
                read(&to(*self).to_be_bytes())
            }

            #[inline]
            fn head(&self) -> u64 {
                let to: fn($type) -> $bits = $to;
                u64::from(to(*self)) << (64 - <$bits>::BITS)
            }

            #[inline]
            fn from_head(head: u64) -> Option<Self> {
                let from: fn($bits) -> Option<$type> = $from;
                from((head >> (64 - <$bits>::BITS)) as $bits)
            }
        }
    };
}

macro_rules! unsigned {
    ($($type:ty),*) => { $(word!($type, $type, |key| key, Some);)* };
}

macro_rules! signed {
    ($($type:ty as $bits:ty),*) => { $(
        word!($type, $bits, |key| (key ^ <$type>::MIN) as $bits, |bits| {
            Some(bits as $type ^ <$type>::MIN)
        });
    )* };
}

unsigned!(u8, u16, u32, u64);
signed!(i8 as u8, i16 as u16, i32 as u32, i64 as u64);
word!(bool, u8, u8::from, |bits| Some(bits != 0));
word!(char, u32, u32::from, char::from_u32);
word!(usize, u64, |key| key as u64, |bits| Some(bits as usize));
word!(isize, u64, |key| (key as i64 ^ i64::MIN) as u64, |bits| {
    Some((bits as i64 ^ i64::MIN) as isize)
});

/// Implements [`ByteKey`] for the integers of sixteen bytes.
macro_rules! wide {
    ($type:ty, $flip:expr) => {
        impl ByteKey for $type {
            const LENGTH: Option<usize> = Some(size_of::<$type>());

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                read(&(self ^ $flip).to_be_bytes())
            }
        }
    };
}

wide!(u128, 0);
wide!(i128, i128::MIN);

impl ByteKey for () {
    const HEAD_IS_KEY: bool = true;
    const LENGTH: Option<usize> = Some(0);

    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&[])
    }

    fn from_head(_: u64) -> Option<Self> {
        Some(())
    }
}
