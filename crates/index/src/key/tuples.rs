//! The byte forms of tuples and arrays: the forms of the parts one after the other, all but the
//! last self-delimiting.

use super::parts::{self, Head, Rest};
use super::{ByteKey, head_of};
use std::any::Any;
use std::array;

macro_rules! tuple {
    ($($part:ident . $index:tt,)* ; $last:ident . $last_index:tt) => {
        impl<$($part: ByteKey,)* $last: ByteKey> ByteKey for ($($part,)* $last,) {
            const LENGTH: Option<usize> = parts::sum(&[$($part::LENGTH,)* $last::LENGTH]);
            const HEAD_IS_KEY: bool =
                parts::head_is_key(Self::LENGTH, &[$($part::HEAD_IS_KEY,)* $last::HEAD_IS_KEY]);

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                parts::with_form(self, read)
            }

            #[inline]
            fn append_bytes(&self, out: &mut Vec<u8>) {
                $(self.$index.append_delimited(out);)*
                self.$last_index.append_bytes(out);
            }

            #[inline]
            fn head(&self) -> u64 {
                Head::new()$(.part(&self.$index))*.last(&self.$last_index).bits()
            }

            #[inline]
            fn from_head(head: u64) -> Option<Self> {
                if !Self::HEAD_IS_KEY {
                    return None;
                }
                let mut rest = Rest::of(head);
                Some(($(rest.part::<$part>()?,)* rest.part::<$last>()?,))
            }

            fn append_delimited(&self, out: &mut Vec<u8>) {
                $(self.$index.append_delimited(out);)*
                self.$last_index.append_delimited(out);
            }
        }
    };
}

tuple!(; A.0);
tuple!(A.0, ; B.1);
tuple!(A.0, B.1, ; C.2);
tuple!(A.0, B.1, C.2, ; D.3);
tuple!(A.0, B.1, C.2, D.3, ; E.4);
tuple!(A.0, B.1, C.2, D.3, E.4, ; F.5);
tuple!(A.0, B.1, C.2, D.3, E.4, F.5, ; G.6);
tuple!(A.0, B.1, C.2, D.3, E.4, F.5, G.6, ; H.7);

/// An array of bytes, if this is one: its form is the array itself, so nothing is copied. The
/// compiler decides it.
#[inline]
fn as_bytes<T: 'static, const N: usize>(array: &[T; N]) -> Option<&[u8; N]> {
    (array as &dyn Any).downcast_ref()
}

impl<T: ByteKey, const N: usize> ByteKey for [T; N] {
    const LENGTH: Option<usize> = match T::LENGTH {
        _ if N == 0 => Some(0),
        Some(length) => length.checked_mul(N),
        None => None,
    };
    const HEAD_IS_KEY: bool = N == 0 || parts::head_is_key(Self::LENGTH, &[T::HEAD_IS_KEY]);

    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match as_bytes(self) {
            Some(bytes) => read(bytes),
            None => parts::with_form(self, read),
        }
    }

    fn append_bytes(&self, out: &mut Vec<u8>) {
        if let Some(bytes) = as_bytes(self) {
            out.extend_from_slice(bytes);
        } else if let Some((last, others)) = self.split_last() {
            others.iter().for_each(|part| part.append_delimited(out));
            last.append_bytes(out);
        }
    }

    #[inline]
    fn head(&self) -> u64 {
        if let Some(bytes) = as_bytes(self) {
            return head_of(bytes);
        }
        let Some((last, others)) = self.split_last() else {
            return 0;
        };
        let mut head = Head::new();
        for part in others {
            if head.is_full() {
                break;
            }
            head = head.part(part);
        }
        head.last(last).bits()
    }

    #[inline]
    fn from_head(head: u64) -> Option<Self> {
        if !Self::HEAD_IS_KEY {
            return None;
        }
        let mut rest = Rest::of(head);
        let parts: [Option<T>; N] = array::from_fn(|_| rest.part());
        if parts.iter().any(Option::is_none) {
            return None;
        }
        Some(parts.map(|part| part.expect("every part has just been found")))
    }

    fn append_delimited(&self, out: &mut Vec<u8>) {
        if let Some(bytes) = as_bytes(self) {
            out.extend_from_slice(bytes);
        } else {
            self.iter().for_each(|part| part.append_delimited(out));
        }
    }
}
