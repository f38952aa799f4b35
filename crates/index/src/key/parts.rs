//! What the byte forms of composite keys are made of: the forms of their parts, one after the
//! other. Tuples, arrays and `Option` use it, and so does the code of `#[derive(ByteKey)]`.
//!
//! Every part but the last is in its self-delimiting encoding, so no form runs on into the next. An
//! enum begins with a tag for the variant. If every variant of an enum has forms of one length, the
//! shorter ones are padded with zeros to the longest, so that the enum has one length too. Two
//! forms of different variants differ in their tags, so the padding never decides.

use super::{ByteKey, head_of};

/// The initial capacity of a byte form: enough for most, so that making one allocates once.
const TYPICAL: usize = 64;

/// Bytes in a head.
const HEAD: usize = size_of::<u64>();

/// The length of parts one after the other, if each part has one length.
#[must_use]
pub const fn sum(lengths: &[Option<usize>]) -> Option<usize> {
    let mut sum: usize = 0;
    let mut at = 0;
    while at < lengths.len() {
        sum = match lengths[at] {
            // No value has a form as long as the address space, so an overflow is no length.
            Some(length) => match sum.checked_add(length) {
                Some(sum) => sum,
                None => return None,
            },
            None => return None,
        };
        at += 1;
    }
    Some(sum)
}

/// The length of the longest variant, if each variant has one length.
#[must_use]
pub const fn longest(lengths: &[Option<usize>]) -> Option<usize> {
    let mut longest = 0;
    let mut at = 0;
    while at < lengths.len() {
        match lengths[at] {
            Some(length) if length > longest => longest = length,
            Some(_) => {}
            None => return None,
        }
        at += 1;
    }
    Some(longest)
}

/// Whether the head determines a composite key of this length. `of_parts` says which parts their
/// heads determine.
#[must_use]
pub const fn head_is_key(length: Option<usize>, of_parts: &[bool]) -> bool {
    let mut at = 0;
    while at < of_parts.len() {
        if !of_parts[at] {
            return false;
        }
        at += 1;
    }
    matches!(length, Some(0..=HEAD))
}

/// Calls `read` with the byte form of a composite key. Allocates unless the form fits into a head.
/// The type must have its own [`head`](ByteKey::head) and [`append_bytes`](ByteKey::append_bytes).
#[inline]
pub fn with_form<K: ByteKey, R>(key: &K, read: impl FnOnce(&[u8]) -> R) -> R {
    if let Some(length @ 0..=HEAD) = K::LENGTH {
        return read(&key.head().to_be_bytes()[..length]);
    }
    let mut bytes = Vec::with_capacity(TYPICAL);
    key.append_bytes(&mut bytes);
    read(&bytes)
}

/// Appends the tag of a variant, a number of `width` bytes.
#[inline]
pub fn append_tag(tag: u64, width: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&tag.to_be_bytes()[HEAD - width..]);
}

/// Pads the form that begins at `start` with zeros, if all forms have one length.
#[inline]
pub fn pad(start: usize, length: Option<usize>, out: &mut Vec<u8>) {
    if let Some(end) = length.and_then(|length| start.checked_add(length))
        && out.len() < end
    {
        out.resize(end, 0);
    }
}

/// The first bytes of a head, the others replaced by zeros.
#[inline]
pub(super) const fn beginning(head: u64, bytes: usize) -> u64 {
    if bytes < HEAD {
        head & !(u64::MAX >> (8 * bytes))
    } else {
        head
    }
}

/// The head of a composite key, put together from the heads of its parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    bits: u64,
    /// The bytes of the form so far; those past the end of the head are counted too.
    bytes: usize,
}

impl Head {
    /// The head of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { bits: 0, bytes: 0 }
    }

    /// Whether further parts change nothing.
    #[inline]
    pub(super) const fn is_full(self) -> bool {
        self.bytes >= HEAD
    }

    /// Followed by the tag of a variant, a number of `width` bytes.
    #[inline]
    #[must_use]
    pub fn tag(self, tag: u64, width: usize) -> Self {
        // A tag of no bytes is 0.
        let aligned = if width == 0 {
            0
        } else {
            tag << (8 * (HEAD - width))
        };
        self.followed_by(aligned, width)
    }

    /// Followed by the self-delimiting encoding of a part.
    #[inline]
    #[must_use]
    pub fn part<K: ByteKey>(self, part: &K) -> Self {
        if self.is_full() {
            return self;
        }
        if let Some(length) = K::LENGTH {
            // A key that lies about its length must not change the parts behind it.
            return self.followed_by(beginning(part.head(), length), length);
        }
        let mut bytes = Vec::with_capacity(TYPICAL);
        part.append_delimited(&mut bytes);
        self.followed_by(head_of(&bytes), bytes.len())
    }

    /// Followed by the byte form of the last part.
    #[inline]
    #[must_use]
    pub fn last<K: ByteKey>(self, part: &K) -> Self {
        if self.is_full() {
            return self;
        }
        self.followed_by(part.head(), HEAD)
    }

    /// The head of the parts so far.
    #[inline]
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    #[inline]
    const fn followed_by(self, head: u64, bytes: usize) -> Self {
        if self.is_full() {
            return self;
        }
        Self {
            bits: self.bits | head >> (8 * self.bytes),
            bytes: self.bytes.saturating_add(bytes),
        }
    }
}

/// The rest of a head that determines a composite key, from which the parts are taken in turn.
#[derive(Debug)]
pub struct Rest(u64);

impl Rest {
    /// A whole head.
    #[must_use]
    pub const fn of(head: u64) -> Self {
        Self(head)
    }

    /// The tag of a variant, a number of `width` bytes.
    #[inline]
    pub fn tag(&mut self, width: usize) -> u64 {
        let first = self.take(width);
        if width == 0 {
            0
        } else {
            first >> (8 * (HEAD - width))
        }
    }

    /// The next part; `None` if its head does not determine it, or no key has this head.
    #[inline]
    pub fn part<K: ByteKey>(&mut self) -> Option<K> {
        K::from_head(self.take(K::LENGTH?))
    }

    /// Takes the first bytes, as a head.
    #[inline]
    fn take(&mut self, bytes: usize) -> u64 {
        let first = beginning(self.0, bytes);
        self.0 = if bytes < HEAD {
            self.0 << (8 * bytes)
        } else {
            0
        };
        first
    }
}
