//! What a leaf has beside a slice that does not tell the key: a record or a layer.

use super::node::{NodeRef, Word};
use crate::byte_keyed::{Record, RecordRef};
use crate::key::ByteKey;
use std::ptr::NonNull;
use tremula_sync::reclaim::Guard;

impl<K: ByteKey> Record<K> {
    /// Whether this is the key with these bytes, which are known to be the same up to `from`.
    #[inline]
    pub(super) fn is_from(&self, bytes: &[u8], from: usize) -> bool {
        bytes.len() <= from
            || self
                .key()
                .with_bytes(|own| own.len() == bytes.len() && own.get(from..) == bytes.get(from..))
    }
}

/// In the word of an entry: it is a layer.
const LAYER: usize = 1;

/// What the word of an entry is, where slices do not tell keys.
pub(super) enum Entry<'g, K, const W: usize> {
    Record(RecordRef<'g, K>),
    Layer(NodeRef<'g, W>),
}

impl<'g, K, const W: usize> Entry<'g, K, W> {
    /// What a word is.
    ///
    /// # Safety
    ///
    /// The word was read from a leaf whose version was valid afterwards, or that nobody changes;
    /// and the leaf was linked since `guard` was pinned, or nobody else has it.
    #[inline]
    pub(super) unsafe fn of_word(word: Word, _guard: &'g Guard<'_>) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::of_word_alone(word) }
    }

    /// The same without a guard, for whoever is alone with the tree.
    ///
    /// # Safety
    ///
    /// As for [`of_word`](Self::of_word); nobody frees the entry during `'g`.
    #[inline]
    pub(super) unsafe fn of_word_alone(word: Word) -> Self {
        if !is_layer(word) {
            // SAFETY: the words of leaves are records or layers, none of which is null.
            Self::Record(unsafe { RecordRef::of_word(word) })
        } else {
            let pointer = word.map_addr(|address| address & !LAYER);
            // SAFETY: as above; the root of a layer lives as long as the entry.
            Self::Layer(unsafe { NodeRef::from_raw(NonNull::new_unchecked(pointer.cast())) })
        }
    }
}

/// Whether the word of an entry is a layer.
#[inline]
pub(super) fn is_layer(word: Word) -> bool {
    word.addr() & LAYER != 0
}

/// The word of a layer with this root.
pub(super) fn word_of_layer<const W: usize>(root: NodeRef<'_, W>) -> Word {
    let pointer: Word = root.as_ptr().cast();
    pointer.map_addr(|address| address | LAYER)
}
