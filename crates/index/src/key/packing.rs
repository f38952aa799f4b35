//! A key packed into a word that a node keeps beside the key's head.
//!
//! The word leads to a box with the key. A `String` or `Vec<u8>` is packed by itself: the word
//! leads to its bytes, and has their number in bits that no address needs. So a thread that follows
//! it reads the bytes, and not first where they are.
//!
//! ```text
//!   bit 63   62 … 48   47 … 0
//!      1     length    address of the bytes
//!      0     address of a box with the key, shifted by one bit, which is 0: the bytes are many,
//!            or lie where an address has more bits
//! ```

use super::strings::{bytes_of, into_parts, is_buffer, of_parts};
use super::{KeyHead, NoHead};
use crate::kit::Packed;
use std::mem::ManuallyDrop;

/// Set in a word that leads to bytes.
const BYTES: usize = 1 << (usize::BITS - 1);

/// Where the length begins in such a word. A machine with addresses of 32 bits has no such words.
const LENGTH_AT: u32 = usize::BITS / 4 * 3;

/// The bits of the address in such a word.
const ADDRESS: usize = (1 << LENGTH_AT) - 1;

/// One more than the greatest length in such a word.
const LENGTHS: usize = if cfg!(target_pointer_width = "64") {
    BYTES >> LENGTH_AT
} else {
    0
};

/// Whether keys are packed by themselves. Known at compile time.
#[inline(always)]
fn is_own_buffer<K: 'static, H: KeyHead<K>>() -> bool {
    H::PLAIN_BYTES.is_some() && is_buffer::<K>()
}

/// What a word leads to, of a key that is packed by itself.
enum Led<K> {
    Bytes(*mut u8, usize),
    Boxed(*mut K),
}

impl<K: 'static> Led<K> {
    #[inline(always)]
    fn by(word: *mut ()) -> Self {
        if word.addr() & BYTES == 0 {
            return Self::Boxed(word.map_addr(|address| address << 1).cast());
        }
        let length = (word.addr() & !BYTES) >> LENGTH_AT;
        let bytes = word.map_addr(|address| address & ADDRESS);
        Self::Bytes(bytes.cast(), length)
    }

    fn word(self) -> *mut () {
        match self {
            Self::Bytes(bytes, length) => {
                let bytes = bytes.cast::<()>();
                bytes.map_addr(|address| address | BYTES | length << LENGTH_AT)
            }
            Self::Boxed(key) => key.cast::<()>().map_addr(|address| address >> 1),
        }
    }

    /// Packs a key of a type that has a buffer of its own.
    fn pack(mut key: K) -> Self {
        if bytes_of(&key).is_some_and(|bytes| bytes.len() < LENGTHS) {
            let (bytes, length) = into_parts(key);
            if bytes.addr() & !ADDRESS == 0 {
                return Self::Bytes(bytes, length);
            }
            // SAFETY: these are the parts that it has just come apart into.
            key = ManuallyDrop::into_inner(unsafe { of_parts(bytes, length) });
        }
        Self::Boxed(Box::into_raw(Box::new(key)))
    }
}

/// Packs into a word the part of a key that its head does not determine.
#[inline]
pub(crate) fn pack_key<K: 'static, H: KeyHead<K>>(key: K) -> *mut () {
    if H::OWN_PACKING.is_some() {
        H::pack(key)
    } else if is_own_buffer::<K, H>() {
        Led::pack(key).word()
    } else {
        NoHead::pack(key)
    }
}

/// Calls `read` with the key of this head and word.
///
/// # Safety
///
/// The word came from [`pack_key`] with the same `K` and `H`, and has not been freed.
#[inline]
pub(crate) unsafe fn with_packed_key<K: 'static, H: KeyHead<K>, R>(
    head: u64,
    word: *mut (),
    read: impl FnOnce(&K) -> R,
) -> R {
    if H::OWN_PACKING.is_some() {
        // SAFETY: passed on to the caller; `OWN_PACKING` promises that the methods fit together.
        unsafe { H::with_packed(head, word, read) }
    } else if is_own_buffer::<K, H>() {
        match Led::by(word) {
            // SAFETY: the parts are those of a key that was packed and has not been freed. What is
            // made of them is only read, and not dropped: several threads may make it at once.
            Led::Bytes(bytes, length) => read(&*unsafe { of_parts(bytes, length) }),
            // SAFETY: the box has not been freed, and is never written.
            Led::Boxed(key) => read(unsafe { &*key }),
        }
    } else {
        // SAFETY: passed on to the caller.
        unsafe { NoHead::with_packed(head, word, read) }
    }
}

/// The key of this head and word, which is not freed.
///
/// # Safety
///
/// As for [`with_packed_key`]; and no thread uses the word from now on. `H` has no packing of its
/// own.
pub(crate) unsafe fn take_packed_key<K: 'static, H: KeyHead<K>>(word: *mut ()) -> K {
    if is_own_buffer::<K, H>() {
        match Led::by(word) {
            Led::Bytes(bytes, length) => {
                // SAFETY: the parts are those of a key, of which the caller has the only use.
                ManuallyDrop::into_inner(unsafe { of_parts(bytes, length) })
            }
            // SAFETY: `pack` made the box, of which the caller has the only use.
            Led::Boxed(key) => *unsafe { Box::from_raw(key) },
        }
    } else {
        // SAFETY: passed on to the caller.
        unsafe { Packed::<K>::of_word(word).take() }
    }
}

/// Frees what a word points to.
///
/// # Safety
///
/// As for [`with_packed_key`]; and no thread uses the word from now on.
#[inline]
pub(crate) unsafe fn free_packed_key<K: 'static, H: KeyHead<K>>(word: *mut ()) {
    if H::OWN_PACKING.is_some() {
        // SAFETY: passed on to the caller; `OWN_PACKING` promises that the methods fit together.
        unsafe { H::free_packed(word) };
    } else {
        // SAFETY: passed on to the caller.
        drop(unsafe { take_packed_key::<K, H>(word) });
    }
}

/// The address that a word leads to; for prefetches only.
#[inline]
pub(crate) fn address_of_packed_key<K: 'static, H: KeyHead<K>>(word: *mut ()) -> *const () {
    if !is_own_buffer::<K, H>() {
        return word;
    }
    match Led::<K>::by(word) {
        Led::Bytes(bytes, _) => bytes.cast(),
        Led::Boxed(key) => key.cast(),
    }
}

/// The bytes allocated for a key beside its head and word, and beside what it allocates itself.
pub(crate) fn bytes_beside_packed_key<K: 'static, H: KeyHead<K>>() -> usize {
    if is_own_buffer::<K, H>() {
        0
    } else {
        H::bytes_beside()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::key::{BuiltInHead, ByteHead};
    use std::fmt::Debug;

    fn comes_back<K, H>(key: K, by_itself: bool)
    where
        K: Clone + PartialEq + Debug + 'static,
        H: KeyHead<K>,
    {
        let word = pack_key::<K, H>(key.clone());
        // SAFETY: packed above, and freed last.
        unsafe {
            let same = |seen: &K| assert!(*seen == key, "a key comes back changed");
            with_packed_key::<K, H, _>(0, word, same);
            // As often as one likes.
            with_packed_key::<K, H, _>(0, word, same);
            if is_own_buffer::<K, H>() {
                let leads_to_bytes = matches!(Led::<K>::by(word), Led::Bytes(..));
                assert_eq!(leads_to_bytes, by_itself);
            }
            assert!(take_packed_key::<K, H>(word) == key);
            free_packed_key::<K, H>(pack_key::<K, H>(key));
        }
    }

    #[test]
    fn keys_come_back_as_they_were() {
        let short = cfg!(target_pointer_width = "64");
        for length in [
            0,
            1,
            7,
            8,
            22,
            1000,
            (1 << 15) - 1,
            1 << 15,
            1 << 16,
            100_000,
        ] {
            let by_itself = short && length < 1 << 15;
            let text = "t".repeat(length);
            comes_back::<_, ByteHead>(text.clone(), by_itself);
            comes_back::<_, BuiltInHead>(text.clone(), by_itself);
            comes_back::<_, ByteHead>(text.clone().into_bytes(), by_itself);
            comes_back::<_, BuiltInHead>(text.clone().into_bytes(), by_itself);
            comes_back::<_, NoHead>(text.clone(), false);
            comes_back::<_, ByteHead>(text.into_boxed_str(), false);
        }
        let mut roomy = String::with_capacity(100);
        roomy.push('t');
        comes_back::<_, ByteHead>(roomy, short);
        comes_back::<_, ByteHead>((1_u64, "t".to_owned()), false);
        comes_back::<_, ByteHead>(u128::MAX, false);
    }
}
