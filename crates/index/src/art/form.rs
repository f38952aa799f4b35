//! How the tree obtains the byte forms of keys.

use crate::byte_keyed::ByteForm;
use crate::key::{ByteKey, head_of};
use std::marker::PhantomData;

/// The byte forms of keys of type `K`, as the tree uses them. All code of the tree asks for the
/// bytes of a key here.
pub(crate) struct Form<K>(PhantomData<K>);

impl<K: ByteKey> Form<K> {
    /// The depth of the nodes whose slots are values; `usize::MAX` if there are no such nodes.
    pub(super) const VALUES_AT: usize = match K::LENGTH {
        Some(length @ 1..=8) if K::HEAD_IS_KEY => length - 1,
        _ => usize::MAX,
    };
}

impl<K: ByteKey> ByteForm<K> for Form<K> {
    /// Where slots may be values, the bytes come from the head, exactly as many as the nodes
    /// expect. A longer form would lead to children below a node of values, and a shorter one to
    /// the slot of the end, which holds no value. [`ByteKey`] is a safe trait, so its length proves
    /// nothing.
    #[inline(always)]
    fn with<R>(key: &K, read: impl FnOnce(&[u8]) -> R) -> R {
        if Self::VALUES_AT == usize::MAX {
            key.with_bytes(read)
        } else {
            read(&key.head().to_be_bytes()[..=Self::VALUES_AT])
        }
    }

    fn part_of<R>(bytes: &[u8], read: impl FnOnce(&[u8]) -> R) -> R {
        if Self::VALUES_AT == usize::MAX {
            read(bytes)
        } else {
            read(&head_of(bytes).to_be_bytes()[..=Self::VALUES_AT])
        }
    }
}
