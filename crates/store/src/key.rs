//! The key type.

use crate::small_bytes::SmallBytes;
use crate::text_head::{self, head_of_text};
use std::fmt;
use tremula_index::ByteKey;

/// A key: any bytes, ordered byte by byte as unsigned numbers, a prefix before what extends it.
/// Up to 22 bytes take no allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(SmallBytes);

impl Key {
    /// The bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) const fn bytes(&self) -> &SmallBytes {
        &self.0
    }

    pub(crate) const fn from_bytes(bytes: SmallBytes) -> Self {
        Self(bytes)
    }
}

impl ByteKey for Key {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&self.0)
    }

    #[inline]
    fn head_of_bytes(bytes: &[u8]) -> u64 {
        head_of_text(bytes)
    }

    #[inline]
    fn is_only_of_one(head: u64) -> bool {
        text_head::is_only_of_one(head)
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.0.escape_ascii())
    }
}
