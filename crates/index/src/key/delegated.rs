//! Types that have the byte form of another type: of what they convert to, or of what they contain.

use super::ByteKey;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::num::{NonZero, Saturating, Wrapping};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Implements [`ByteKey`] for a type by a conversion to another type in the same order, and back.
macro_rules! converted {
    ($(
        impl($($generics:tt)*) $type:ty as $other:ty: $to:expr, $from:expr;
    )*) => { $(
        impl<$($generics)*> ByteKey for $type {
            const HEAD_IS_KEY: bool = <$other>::HEAD_IS_KEY;
            const LENGTH: Option<usize> = <$other>::LENGTH;

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let to: fn(&Self) -> $other = $to;
                to(self).with_bytes(read)
            }

            #[inline]
            fn append_bytes(&self, out: &mut Vec<u8>) {
                let to: fn(&Self) -> $other = $to;
                to(self).append_bytes(out);
            }

            #[inline]
            fn head(&self) -> u64 {
                let to: fn(&Self) -> $other = $to;
                to(self).head()
            }

            #[inline]
            fn from_head(head: u64) -> Option<Self> {
                let from: fn($other) -> Option<Self> = $from;
                from(<$other>::from_head(head)?)
            }

            fn append_delimited(&self, out: &mut Vec<u8>) {
                let to: fn(&Self) -> $other = $to;
                to(self).append_delimited(out);
            }
        }
    )* };
}

macro_rules! non_zero {
    ($($integer:ty)*) => { converted! {
        $(impl() NonZero<$integer> as $integer: |key| key.get(), NonZero::new;)*
    } };
}

non_zero! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize }

converted! {
    impl() Ordering as i8: |key| *key as i8, |sign| Some(sign.cmp(&0));
    impl(T: Send + Sync + 'static) PhantomData<T> as (): |_| (), |()| Some(PhantomData);
    impl() Ipv4Addr as u32: |key| key.to_bits(), |bits| Some(Self::from_bits(bits));
    impl() Ipv6Addr as u128: |key| key.to_bits(), |bits| Some(Self::from_bits(bits));
    impl() SocketAddrV4 as (Ipv4Addr, u16): |key| (*key.ip(), key.port()), |(address, port)| {
        Some(Self::new(address, port))
    };
    impl() SocketAddrV6 as (Ipv6Addr, u16, u32, u32):
        |key| (*key.ip(), key.port(), key.flowinfo(), key.scope_id()), |_| None;
    impl() Duration as (u64, u32): |key| (key.as_secs(), key.subsec_nanos()), |_| None;
    // In nanoseconds since 1970, or before it: no platform has finer times.
    impl() SystemTime as i128: |key| match key.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    }, |_| None;
}

/// Implements [`ByteKey`] for a type that contains another and has its order.
macro_rules! transparent {
    ($($Wrapper:ident)*) => { $(
        impl<T: ByteKey> ByteKey for $Wrapper<T>
        where
            Self: Ord,
        {
            const HEAD_IS_KEY: bool = T::HEAD_IS_KEY;
            const LENGTH: Option<usize> = T::LENGTH;

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                self.0.with_bytes(read)
            }

            #[inline]
            fn append_bytes(&self, out: &mut Vec<u8>) {
                self.0.append_bytes(out);
            }

            #[inline]
            fn head(&self) -> u64 {
                self.0.head()
            }

            #[inline]
            fn from_head(head: u64) -> Option<Self> {
                T::from_head(head).map($Wrapper)
            }

            fn append_delimited(&self, out: &mut Vec<u8>) {
                self.0.append_delimited(out);
            }
        }
    )* };
}

transparent! { Wrapping Saturating }

/// Implements [`ByteKey`] for a pointer to a key. It states no length, although all forms may have
/// one: a type that contains a pointer to itself would have a length that depends on itself.
macro_rules! pointer {
    ($($Pointer:ty)*) => { $(
        impl<T: ByteKey> ByteKey for $Pointer {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                (**self).with_bytes(read)
            }

            #[inline]
            fn append_bytes(&self, out: &mut Vec<u8>) {
                (**self).append_bytes(out);
            }

            #[inline]
            fn head(&self) -> u64 {
                (**self).head()
            }

            fn append_delimited(&self, out: &mut Vec<u8>) {
                (**self).append_delimited(out);
            }
        }
    )* };
}

pointer! { Box<T> }
// Under the checkers the counted pointer is another type.
#[cfg(not(any(loom, shuttle, tremula_tsan)))]
pointer! { tremula_sync::Arc<T> }
