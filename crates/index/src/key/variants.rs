//! The byte forms of the standard library's enums with contents, and of [`Reverse`].

use super::parts::{self, Head, Rest};
use super::{ByteKey, head_of};
use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Implements [`ByteKey`] for an enum: a tag of one byte, then the part of the variant.
macro_rules! variants {
    (
        impl($($Generic:ident),*) $type:ty {
            $($tag:literal: $Variant:ident $(($part:ident: $Part:ty))?,)*
        }
    ) => {
        impl<$($Generic: ByteKey),*> ByteKey for $type {
            const LENGTH: Option<usize> = parts::sum(&[
                Some(1),
                parts::longest(&[$(parts::sum(&[$(<$Part>::LENGTH)?])),*]),
            ]);
            const HEAD_IS_KEY: bool =
                parts::head_is_key(Self::LENGTH, &[$($(<$Part>::HEAD_IS_KEY,)?)*]);

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                parts::with_form(self, read)
            }

            #[inline]
            fn append_bytes(&self, out: &mut Vec<u8>) {
                let start = out.len();
                match self {
                    $(Self::$Variant $(($part))? => {
                        parts::append_tag($tag, 1, out);
                        $($part.append_bytes(out);)?
                    })*
                }
                parts::pad(start, Self::LENGTH, out);
            }

            #[inline]
            fn head(&self) -> u64 {
                match self {
                    $(Self::$Variant $(($part))? => {
                        Head::new().tag($tag, 1)$(.last($part))?.bits()
                    })*
                }
            }

            #[inline]
            fn from_head(head: u64) -> Option<Self> {
                if !Self::HEAD_IS_KEY {
                    return None;
                }
                let mut rest = Rest::of(head);
                match rest.tag(1) {
                    $($tag => Some(Self::$Variant $((rest.part::<$Part>()?))?),)*
                    _ => None,
                }
            }

            fn append_delimited(&self, out: &mut Vec<u8>) {
                if Self::LENGTH.is_some() {
                    return self.append_bytes(out);
                }
                match self {
                    $(Self::$Variant $(($part))? => {
                        parts::append_tag($tag, 1, out);
                        $($part.append_delimited(out);)?
                    })*
                }
            }
        }
    };
}

variants! { impl(T) Option<T> { 0: None, 1: Some(value: T), } }
variants! { impl(T, E) Result<T, E> { 0: Ok(value: T), 1: Err(error: E), } }
variants! { impl() IpAddr { 0: V4(address: Ipv4Addr), 1: V6(address: Ipv6Addr), } }
variants! { impl() SocketAddr { 0: V4(address: SocketAddrV4), 1: V6(address: SocketAddrV6), } }

/// The form is the inverted self-delimiting encoding: its complement, bit by bit. A string is less
/// than its extensions, but its complement would be a prefix of theirs and less too, which is
/// wrong. Self-delimiting encodings are no prefixes of one another, so the first difference always
/// decides, and inverting it inverts the order.
impl<T: ByteKey> ByteKey for Reverse<T> {
    const LENGTH: Option<usize> = T::LENGTH;
    const HEAD_IS_KEY: bool = parts::head_is_key(Self::LENGTH, &[T::HEAD_IS_KEY]);

    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        parts::with_form(self, read)
    }

    #[inline]
    fn append_bytes(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.0.append_delimited(out);
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }

    #[inline]
    fn head(&self) -> u64 {
        match T::LENGTH {
            Some(length) => parts::beginning(!self.0.head(), length),
            None => {
                let mut bytes = Vec::new();
                self.append_bytes(&mut bytes);
                head_of(&bytes)
            }
        }
    }

    #[inline]
    fn from_head(head: u64) -> Option<Self> {
        if !Self::HEAD_IS_KEY {
            return None;
        }
        let inverted = parts::beginning(!head, T::LENGTH?);
        T::from_head(inverted).map(Reverse)
    }

    fn append_delimited(&self, out: &mut Vec<u8>) {
        self.append_bytes(out);
    }
}
