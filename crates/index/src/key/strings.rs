//! The byte forms of strings and byte strings: their bytes.

use super::ByteKey;

macro_rules! bytes {
    ($($type:ty: $as_bytes:expr),* $(,)?) => { $(
        impl ByteKey for $type {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let as_bytes: for<'a> fn(&'a $type) -> &'a [u8] = $as_bytes;
                read(as_bytes(self))
            }
        }
    )* };
}

bytes! {
    String: |key| key.as_bytes(),
    Box<str>: |key| key.as_bytes(),
    &'static str: |key| key.as_bytes(),
    Vec<u8>: |key| key,
    Box<[u8]>: |key| key,
    &'static [u8]: |key| key,
}

impl<const N: usize> ByteKey for [u8; N] {
    const HEAD_IS_KEY: bool = N <= 8;
    const LENGTH: Option<usize> = Some(N);

    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }

    #[inline]
    fn from_head(head: u64) -> Option<Self> {
        head.to_be_bytes().get(..N)?.try_into().ok()
    }

    fn append_delimited(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}
