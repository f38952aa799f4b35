//! The types and the node size of an engine, in one type parameter.

use crate::contract::Storable;
use crate::key::{KeyHead, OnlyHere, ReadBack, head_is_key};
use std::marker::PhantomData;

/// The types that an engine was given, and the size of its nodes. The types of an engine's parts
/// have this one parameter. It is `Copy`, so that a part that is copied only needs a `derive`.
pub trait Spec: Copy + Send + Sync + 'static {
    /// The keys.
    type Key: Ord + Storable;
    /// The values.
    type Value: Storable;
    /// Where the heads of the keys come from.
    type Head: KeyHead<Self::Key>;
    /// The greatest size of a node, in an engine in which it can be chosen.
    const NODE_BYTES: usize;
    /// How keys are made of the bytes that leaves of text keep of them; `None` if an index keeps
    /// the keys themselves. Known at compile time.
    #[inline(always)]
    fn read_back() -> Option<ReadBack<Self::Key>> {
        // A word of such a leaf has eight bytes of a key, or a pointer.
        if Self::HEAD_IS_KEY || size_of::<usize>() != size_of::<u64>() {
            return None;
        }
        Self::Head::read_back(OnlyHere)
    }

    /// Whether leaves are leaves of text.
    #[inline(always)]
    fn is_text() -> bool {
        Self::read_back().is_some()
    }

    /// Whether only the head of a key is kept. Dropping such a key does nothing.
    const HEAD_IS_KEY: bool = head_is_key::<Self::Key, Self::Head>();
}

/// The [`Spec`] of an engine's type parameters.
pub struct Parameters<K, V, H, const NODE_BYTES: usize = 0>(PhantomData<fn(K, V, H)>);

impl<K, V, H, const NODE_BYTES: usize> Clone for Parameters<K, V, H, NODE_BYTES> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, H, const NODE_BYTES: usize> Copy for Parameters<K, V, H, NODE_BYTES> {}

impl<K, V, H, const NODE_BYTES: usize> Spec for Parameters<K, V, H, NODE_BYTES>
where
    K: Ord + Storable,
    V: Storable,
    H: KeyHead<K>,
{
    type Key = K;
    type Value = V;
    type Head = H;
    const NODE_BYTES: usize = NODE_BYTES;
}

/// The key of a head, if [`Spec::HEAD_IS_KEY`].
#[inline]
pub fn key_of_head<S: Spec>(head: u64) -> S::Key {
    match S::Head::key(head) {
        Some(key) => key,
        None => gives_no_key(head),
    }
}

/// Reports a [`KeyHead`] that breaks its contract.
#[cold]
pub fn gives_no_key(head: u64) -> ! {
    panic!("KeyHead::IS_KEY is true, but KeyHead::key({head:#x}) gave no key")
}
