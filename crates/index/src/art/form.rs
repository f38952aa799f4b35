//! The byte forms of keys, as the tree takes them.

use crate::byte_keyed::ByteForm;
use crate::key::ByteKey;
use std::marker::PhantomData;

/// How the tree takes the byte forms of keys of a type. Nothing else in the tree asks a key for
/// its bytes.
pub(crate) struct Form<K>(PhantomData<K>);

impl<K: ByteKey> Form<K> {
    /// The depth of nodes whose slots are values; none is as deep as the greatest number.
    pub(super) const VALUES_AT: usize = match K::LENGTH {
        Some(length @ 1..=8) if K::HEAD_IS_KEY => length - 1,
        _ => usize::MAX,
    };
}

impl<K: ByteKey> ByteForm<K> for Form<K> {
    /// Where slots may be values, the bytes come from the head, as many as there have to be: a
    /// longer form would lead to children below a node of values, a shorter one to the slot of
    /// the end, which holds no value. [`ByteKey`] is a safe trait, so its length proves nothing.
    #[inline(always)]
    fn with<R>(key: &K, read: impl FnOnce(&[u8]) -> R) -> R {
        if Self::VALUES_AT == usize::MAX {
            key.with_bytes(read)
        } else {
            read(&key.head().to_be_bytes()[..=Self::VALUES_AT])
        }
    }
}
