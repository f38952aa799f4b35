//! Where a comparing index gets the heads of its keys.

use super::read_back::OnlyHere;
use super::{ByteKey, ReadBack};
use crate::form::{Form, Sought};
use crate::kit::{InPlace, Packed};
use std::marker::PhantomData;
use std::mem::needs_drop;

/// Gives the heads of keys of type `K`. A head is a number that is never greater for a smaller key.
/// A comparing index keeps it beside the key, and compares the keys only where the heads are equal.
///
/// [`ByteHead`] takes the head from the byte form. [`NoHead`] gives none, for keys that can only be
/// compared. A type may have heads of its own:
///
/// ```
/// use tremula_index::key::KeyHead;
///
/// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
/// struct Version { major: u16, minor: u16, tag: String }
///
/// struct Numbers;
///
/// impl KeyHead<Version> for Numbers {
///     type Word = u64;
///     const IS_KEY: bool = false; // two versions may differ in their tags only
///
///     fn head(key: &Version) -> u64 {
///         u64::from(key.major) << 16 | u64::from(key.minor)
///     }
///
///     fn key(_: u64) -> Option<Version> {
///         None
///     }
/// }
/// # let _ = Numbers::head(&Version { major: 1, minor: 2, tag: String::new() });
/// ```
pub trait KeyHead<K>: Send + Sync + 'static {
    /// The type of a head in a node, beside the key: `u64`, or `()` if there are no heads.
    type Word: HeadWord;

    /// Whether the head determines the key: different keys have different heads, and
    /// [`key`](Self::key) returns the key of each head. The index then keeps only the head, unless
    /// the key type has a `Drop` of its own.
    const IS_KEY: bool;

    /// How many of the lowest bits of a head tell nothing, if [`IS_KEY`](Self::IS_KEY): they are 0
    /// in the head of every key.
    #[doc(hidden)]
    const SPARE_BITS: u32 = 0;

    /// Whether no more than one key has this head ([`ByteKey::is_only_of_one`]).
    #[doc(hidden)]
    #[inline]
    fn is_only_of_one(head: u64) -> bool {
        let _ = head;
        Self::IS_KEY
    }

    /// Whether [`key`](Self::key) gives the key of each head that
    /// [is only of one](Self::is_only_of_one). The index then need not keep such a key beside its
    /// head; it makes the key anew to show it, and never drops what it has made. Such a key must
    /// have nothing to drop.
    #[doc(hidden)]
    const SOME_ARE_KEYS: bool = false;

    /// Whether these heads are made for keys of this type. If not, no method is called.
    #[doc(hidden)]
    #[inline]
    fn suits() -> bool
    where
        K: 'static,
    {
        true
    }

    /// The head of a key.
    fn head(key: &K) -> u64;

    /// The key of a head if [`IS_KEY`](Self::IS_KEY), otherwise `None`.
    fn key(head: u64) -> Option<K>;

    /// The head of the key with this byte form; `None` if it takes the key.
    #[doc(hidden)]
    fn head_of_bytes(bytes: Option<&[u8]>) -> Option<u64> {
        let _ = bytes;
        None
    }

    /// How values of this type are kept in a word of a node without a box ([`InPlace`]); `None` if
    /// they are not.
    #[doc(hidden)]
    #[inline]
    fn in_place<V: 'static>() -> Option<InPlace<V>> {
        None
    }

    /// Set if this type packs its keys by its own versions of the methods below. If not set, these
    /// methods are not called, even if they are overridden.
    #[doc(hidden)]
    const OWN_PACKING: Option<OwnPacking<Self, K>> = None;

    /// Packs into a word the part of a key that its head does not determine.
    #[doc(hidden)]
    #[inline]
    fn pack(key: K) -> *mut ()
    where
        K: 'static,
    {
        Packed::new(key).word()
    }

    /// Calls `read` with the key of this head and word.
    ///
    /// # Safety
    ///
    /// The word came from [`pack`](Self::pack) and has not been freed.
    #[doc(hidden)]
    #[inline]
    unsafe fn with_packed<R>(_head: u64, word: *mut (), read: impl FnOnce(&K) -> R) -> R
    where
        K: 'static,
    {
        // SAFETY: passed on to the caller.
        unsafe { Packed::<K>::of_word(word).with(read) }
    }

    /// Frees what a word points to.
    ///
    /// # Safety
    ///
    /// As for [`with_packed`](Self::with_packed); and no thread uses the word from now on.
    #[doc(hidden)]
    #[inline]
    unsafe fn free_packed(word: *mut ())
    where
        K: 'static,
    {
        // SAFETY: passed on to the caller.
        drop(unsafe { Packed::<K>::of_word(word).take() });
    }

    /// Set if a key is its byte form.
    #[doc(hidden)]
    const PLAIN_BYTES: Option<PlainBytes<K>> = None;

    /// How keys are made of their byte forms again, if an index may keep only these; `None` if it
    /// may not. Only with [`PLAIN_BYTES`](Self::PLAIN_BYTES). The memory of an index depends on
    /// that this always answers the same: so only this crate can name its argument, and write it.
    #[doc(hidden)]
    #[inline]
    fn read_back(_: OnlyHere) -> Option<ReadBack<K>>
    where
        K: 'static,
    {
        None
    }

    /// A hash of a key with this head. Equal keys have equal hashes.
    #[doc(hidden)]
    #[inline]
    fn hash(_: &K, head: u64) -> u64 {
        head
    }

    /// The hash of the key with this head and this byte form.
    #[doc(hidden)]
    fn hash_of_bytes(_: &[u8], head: u64) -> u64 {
        head
    }

    /// The bytes allocated for a key beside its head and word.
    #[doc(hidden)]
    fn bytes_beside() -> usize
    where
        K: 'static,
    {
        Packed::<K>::bytes_beside()
    }
}

/// The type of a head in a node: a `u64`, or `()` where there are no heads. No other type can be
/// one.
pub trait HeadWord: sealed::Sealed + Copy + Ord + Send + Sync + 'static {
    /// The word of a head.
    #[doc(hidden)]
    fn of(head: u64) -> Self;
}

impl HeadWord for u64 {
    #[inline]
    fn of(head: u64) -> Self {
        head
    }
}

impl HeadWord for () {
    #[inline]
    fn of(_: u64) {}
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for () {}
}

/// Whether an index keeps only the heads of these keys. It then makes and drops keys in the middle
/// of operations, with locks held, so no `Drop` of the user's may run there.
pub const fn head_is_key<K, H: KeyHead<K>>() -> bool {
    H::IS_KEY && !needs_drop::<K>()
}

/// Whether heads are numbers that [`PlainBytes`] makes of the bytes, and not their first words.
pub(crate) const fn has_own_heads<K, H: KeyHead<K>>() -> bool {
    match H::PLAIN_BYTES {
        Some(plain) => plain.own_head().is_some(),
        None => false,
    }
}

/// The head of the key that a form stands for; `None` if the form does not determine it.
pub fn head_of_form<K, H: KeyHead<K>>(form: &dyn Form<K>) -> Option<u64> {
    let mut head = H::head_of_bytes(None);
    if head.is_none() {
        form.read_bytes(&mut |bytes| head = H::head_of_bytes(Some(bytes)));
    }
    head
}

/// The head of a key, or of a form that determines it.
#[inline]
pub(crate) fn head_of_sought<K, H: KeyHead<K>>(sought: Sought<'_, K>) -> u64 {
    match sought {
        Sought::Key(key) => H::head(key),
        Sought::Form(form) => {
            let head = head_of_form::<K, H>(form);
            head.unwrap_or_else(|| unreachable!("an engine is given forms that it can look for"))
        }
    }
}

/// The hash of a key, or of a form that determines the head.
pub(crate) fn hash_of_sought<K, H: KeyHead<K>>(sought: Sought<'_, K>, head: u64) -> u64 {
    match sought {
        Sought::Key(key) => H::hash(key, head),
        Sought::Form(form) => {
            let mut hash = head;
            form.read_bytes(&mut |bytes| hash = H::hash_of_bytes(bytes, head));
            hash
        }
    }
}

/// The promise that the hidden methods `pack`, `with_packed` and `free_packed` of a [`KeyHead`] fit
/// together.
///
/// [`KeyHead`] is a safe trait that anybody may implement, so memory safety must not depend on its
/// methods. Its own packing is called only if code makes this promise, which is `unsafe`. A promise
/// holds for one type of heads and one type of keys, so no other type can borrow it.
#[derive(Debug)]
pub struct OwnPacking<H: ?Sized, K>(PhantomData<fn(&H, &K)>);

impl<H: ?Sized, K> OwnPacking<H, K> {
    /// Makes the promise.
    ///
    /// # Safety
    ///
    /// Every word that `pack` returns for a key can be passed to `with_packed`, with the head of
    /// that key, any number of times and by any thread, until it is passed to `free_packed`.
    #[must_use]
    pub const unsafe fn promised() -> Self {
        Self(PhantomData)
    }
}

/// Where the byte form lies in keys that consist of it, such as strings; and their heads, unless
/// these are the first words of the forms.
///
/// An engine calls both in the middle of a change, where no code of the user may run. So only this
/// crate can make one, for types of its own and of the standard library.
#[derive(Debug)]
pub struct PlainBytes<K> {
    bytes: for<'k> fn(&'k K) -> &'k [u8],
    head: Option<fn(&[u8]) -> u64>,
}

impl<K> Clone for PlainBytes<K> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for PlainBytes<K> {}

impl<K> PlainBytes<K> {
    pub(crate) const fn new(bytes: for<'k> fn(&'k K) -> &'k [u8]) -> Self {
        Self { bytes, head: None }
    }

    /// Heads of their own: never greater for smaller bytes, and never the greatest number.
    pub(crate) const fn with_heads(
        bytes: for<'k> fn(&'k K) -> &'k [u8],
        head: fn(&[u8]) -> u64,
    ) -> Self {
        let head = Some(head);
        Self { bytes, head }
    }

    /// The byte form of a key.
    #[inline]
    pub(crate) fn of(self, key: &K) -> &[u8] {
        (self.bytes)(key)
    }

    /// The heads, if they are not the first words.
    #[inline]
    pub(crate) const fn own_head(self) -> Option<fn(&[u8]) -> u64> {
        self.head
    }
}

/// The hash of a byte form that its head does not determine: FNV-1a.
pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, step)
}

/// How many of the lowest bits of a head are always 0 if forms have this many bytes.
pub(super) const fn spare_bits(length: usize) -> u32 {
    // No more, so that a head can be shifted by as many.
    const MOST: u32 = u64::BITS - 1;
    match length {
        0 => MOST,
        1..8 => u64::BITS - 8 * length as u32,
        _ => 0,
    }
}

/// The first word of the byte form ([`ByteKey::head`]).
#[derive(Clone, Copy, Debug)]
pub enum ByteHead {}

impl<K: ByteKey> KeyHead<K> for ByteHead {
    type Word = u64;

    const IS_KEY: bool = K::HEAD_IS_KEY;

    const SPARE_BITS: u32 = match K::LENGTH {
        Some(length) => spare_bits(length),
        None => 0,
    };

    #[inline]
    fn head(key: &K) -> u64 {
        key.head()
    }

    #[inline]
    fn key(head: u64) -> Option<K> {
        K::from_head(head)
    }

    #[inline]
    fn hash(key: &K, head: u64) -> u64 {
        if K::HEAD_IS_KEY {
            return head;
        }
        key.with_bytes(|bytes| <Self as KeyHead<K>>::hash_of_bytes(bytes, head))
    }

    #[inline]
    fn hash_of_bytes(bytes: &[u8], head: u64) -> u64 {
        if K::HEAD_IS_KEY {
            return head;
        }
        hash_of(bytes)
    }

    fn head_of_bytes(bytes: Option<&[u8]>) -> Option<u64> {
        bytes.map(K::head_of_bytes)
    }

    const PLAIN_BYTES: Option<PlainBytes<K>> = K::PLAIN_BYTES;

    #[inline]
    fn is_only_of_one(head: u64) -> bool {
        K::is_only_of_one(head)
    }
}

/// No heads: every comparison compares the keys. For keys of which only the order is known.
#[derive(Clone, Copy, Debug)]
pub enum NoHead {}

impl<K> KeyHead<K> for NoHead {
    type Word = ();

    const IS_KEY: bool = false;

    #[inline]
    fn head(_: &K) -> u64 {
        0
    }

    fn head_of_bytes(_: Option<&[u8]>) -> Option<u64> {
        Some(0)
    }

    #[inline]
    fn key(_: u64) -> Option<K> {
        None
    }
}
