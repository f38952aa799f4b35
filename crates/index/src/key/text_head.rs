//! Heads that allow an index to keep only the bytes of keys.

use super::head::{OwnPacking, PlainBytes};
use super::read_back::OnlyHere;
use super::{KeyHead, ReadBack};
use crate::kit::InPlace;
use std::marker::PhantomData;

/// The heads of `H`, for an index that keeps the bytes of keys in its leaves, and makes keys of
/// them to show them, where the type of the keys allows that.
#[derive(Clone, Copy, Debug)]
pub struct TextHead<H>(PhantomData<fn(H)>);

impl<K: 'static, H: KeyHead<K>> KeyHead<K> for TextHead<H> {
    type Word = H::Word;
    const IS_KEY: bool = H::IS_KEY;
    const SPARE_BITS: u32 = H::SPARE_BITS;
    const SOME_ARE_KEYS: bool = H::SOME_ARE_KEYS;
    const PLAIN_BYTES: Option<PlainBytes<K>> = H::PLAIN_BYTES;
    const OWN_PACKING: Option<OwnPacking<Self, K>> = match H::OWN_PACKING {
        // SAFETY: the methods are those of `H`, for which the promise was made.
        Some(_) => Some(unsafe { OwnPacking::promised() }),
        None => None,
    };

    #[inline]
    fn read_back(_: OnlyHere) -> Option<ReadBack<K>> {
        // By constants and types alone: no code of `H` could answer otherwise the next time.
        if H::PLAIN_BYTES.is_some() {
            ReadBack::of_type()
        } else {
            None
        }
    }

    #[inline]
    fn is_only_of_one(head: u64) -> bool {
        H::is_only_of_one(head)
    }

    #[inline]
    fn suits() -> bool {
        H::suits()
    }

    #[inline]
    fn head(key: &K) -> u64 {
        H::head(key)
    }

    #[inline]
    fn key(head: u64) -> Option<K> {
        H::key(head)
    }

    fn head_of_bytes(bytes: Option<&[u8]>) -> Option<u64> {
        H::head_of_bytes(bytes)
    }

    #[inline]
    fn in_place<V: 'static>() -> Option<InPlace<V>> {
        H::in_place()
    }

    #[inline]
    fn pack(key: K) -> *mut () {
        H::pack(key)
    }

    #[inline]
    unsafe fn with_packed<R>(head: u64, word: *mut (), read: impl FnOnce(&K) -> R) -> R {
        // SAFETY: passed on to the caller.
        unsafe { H::with_packed(head, word, read) }
    }

    #[inline]
    unsafe fn free_packed(word: *mut ()) {
        // SAFETY: passed on to the caller.
        unsafe { H::free_packed(word) };
    }

    #[inline]
    fn hash(key: &K, head: u64) -> u64 {
        H::hash(key, head)
    }

    fn hash_of_bytes(bytes: &[u8], head: u64) -> u64 {
        H::hash_of_bytes(bytes, head)
    }

    fn bytes_beside() -> usize {
        H::bytes_beside()
    }
}
