//! What an index may know of its keys beside their order: an order-preserving byte form, and the
//! first word of that form, the *head*.
//!
//! - [`ByteKey`]: the trait of keys with a byte form. Its impls for the types of the standard
//!   library are in `numbers`, `strings`, `tuples` (with arrays), `variants` (`Option`, `Reverse`
//!   and others) and `delegated` (types that have the form of another).
//! - `built_in`: the same forms for a `K` of which the compiler knows only `Ord`.
//! - [`ByteString`]: byte strings whose heads are made for text, by the code of `text_code`.
//! - `parts`: what the byte forms of composite keys are made of.
//! - `packing`: a key in a word, as a node keeps it.
//! - `read_back`: keys that are made of their bytes again, and [`TextHead`], which says that an
//!   index may keep them so.
//! - [`KeyHead`]: where a comparing index gets the heads from, if there are any.
//! - [`TotalF32`], [`TotalF64`]: floats, in their total order.

pub(crate) mod built_in;
mod byte_string;
mod delegated;
mod float;
pub(crate) mod head;
mod numbers;
pub(crate) mod packing;
#[doc(hidden)]
pub mod parts;
mod read_back;
mod strings;
mod text_code;
mod text_head;
mod tuples;
mod variants;

pub use built_in::BuiltInHead;
pub use byte_string::{ByteString, INLINE_BYTES};
pub use float::{TotalF32, TotalF64};
#[doc(hidden)]
pub use head::PlainBytes;
pub use head::{ByteHead, HeadWord, KeyHead, NoHead};
pub(crate) use head::{has_own_heads, head_is_key};
pub(crate) use read_back::OnlyHere;
#[doc(hidden)]
pub use read_back::ReadBack;
#[doc(hidden)]
pub use text_head::TextHead;

/// A key with a byte form in the same order.
///
/// For all keys `a` and `b`, `a.cmp(&b)` equals the comparison of their byte forms, byte by byte as
/// unsigned numbers, with a prefix before its extensions. So different keys have different forms.
/// The forms may have any length, and one may be a prefix of another.
///
/// Radix trees need the byte form. Comparing indexes use its first word, the [head](Self::head), so
/// that most comparisons touch no other memory.
///
/// These types of the standard library have it:
///
/// - integers (also [`NonZero`](std::num::NonZero), [`Wrapping`](std::num::Wrapping) and
///   `Saturating`), `bool`, `char`, `()`, floats in a wrapper ([`TotalF64`]);
/// - `String`, `Vec<u8>`, their boxed, counted (`Arc`), `'static` and `Cow` forms, `CString`,
///   `OsString`;
/// - tuples of up to eight parts, arrays, `Option`, `Result`, [`Reverse`](std::cmp::Reverse),
///   `Box`, `Arc` and `PhantomData` of types that have it;
/// - addresses (`IpAddr`, `SocketAddr` and their parts), `Duration`, `SystemTime`,
///   [`Ordering`](std::cmp::Ordering).
///
/// So the newest version of a document comes first under the key `(String, Reverse<u64>)`:
///
/// ```
/// use std::cmp::Reverse;
/// use tremula_index::{Art, OrderedIndex};
///
/// let versions = Art::new();
/// versions.insert(("plan".to_owned(), Reverse(1_u64)), "a draft");
/// versions.insert(("plan".to_owned(), Reverse(2)), "the plan");
/// assert_eq!(versions.first().map(|(_, text)| text), Some("the plan"));
/// ```
///
/// A struct or an enum that derives `Ord` can derive `ByteKey`, with the feature `derive`. A key of
/// your own needs one method:
///
/// ```
/// use tremula_index::ByteKey;
///
/// #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct Host(String);
///
/// impl ByteKey for Host {
///     fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
///         read(self.0.as_bytes())
///     }
/// }
///
/// assert_eq!(Host("aspen".to_owned()).head(), u64::from_be_bytes(*b"aspen\0\0\0"));
/// ```
pub trait ByteKey: Ord + Clone + Send + Sync + 'static {
    /// Whether the head determines the key: different keys have different heads, and
    /// [`from_head`](Self::from_head) returns the key.
    const HEAD_IS_KEY: bool = false;

    /// The length in bytes of every byte form, if all have the same. Such forms need no delimiter:
    /// a type that sets a length and overrides [`append_delimited`](Self::append_delimited) must
    /// append the byte form as it is.
    const LENGTH: Option<usize> = None;

    /// Set if the key is its byte form.
    #[doc(hidden)]
    const PLAIN_BYTES: Option<PlainBytes<Self>> = None;

    /// Calls `read` with the byte form.
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R;

    /// The first eight bytes of the byte form as a big-endian number, padded with zeros; or what
    /// [`head_of_bytes`](Self::head_of_bytes) makes of the form. A smaller key never has a greater
    /// head.
    #[inline]
    fn head(&self) -> u64 {
        self.with_bytes(Self::head_of_bytes)
    }

    /// The head of the key with this byte form.
    ///
    /// A type whose keys often agree in their first eight bytes, and which has no
    /// [length](Self::LENGTH), can override it, with any number that is never greater for smaller
    /// bytes.
    #[inline]
    fn head_of_bytes(bytes: &[u8]) -> u64 {
        head_of(bytes)
    }

    /// Whether no more than one key has this head, though others may share theirs. Where it is so,
    /// an index that has found the head does not look at the key, and takes one key for another if
    /// the answer is wrong. Only for a type that overrides [`head_of_bytes`](Self::head_of_bytes).
    #[inline]
    fn is_only_of_one(head: u64) -> bool {
        let _ = head;
        Self::HEAD_IS_KEY
    }

    /// The key with this head if [`HEAD_IS_KEY`](Self::HEAD_IS_KEY), otherwise `None`.
    #[inline]
    fn from_head(head: u64) -> Option<Self> {
        let _ = head;
        None
    }

    /// Appends the byte form.
    ///
    /// A key with parts, whose form must be put together, overrides it, and makes the form for
    /// [`with_bytes`](Self::with_bytes) by it. So a type may contain itself: if `with_bytes` of
    /// the whole called `with_bytes` of a part with a closure of its own, each level would have
    /// another closure type, without end.
    #[inline]
    fn append_bytes(&self, out: &mut Vec<u8>) {
        self.with_bytes(|bytes| out.extend_from_slice(bytes));
    }

    /// Appends the byte form in a self-delimiting encoding, so that other bytes may follow it: no
    /// encoding is a prefix of another, and the encodings are in the order of the keys.
    ///
    /// If all forms have one [length](Self::LENGTH), the default appends the form as it is. If not,
    /// it encodes a zero byte as 0, 255 and ends with 0, 0.
    #[inline]
    fn append_delimited(&self, out: &mut Vec<u8>) {
        if Self::LENGTH.is_some() {
            return self.append_bytes(out);
        }
        self.with_bytes(|bytes| {
            for &byte in bytes {
                out.push(byte);
                if byte == 0 {
                    out.push(255);
                }
            }
            out.extend([0, 0]);
        });
    }
}

/// The head of a byte form.
#[inline]
#[must_use]
pub fn head_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(first)
        }
    }
}
