//! What a leaf has for a slice that is not a whole key: a record or a layer.

use super::node::{NodeRef, Word};
use crate::byte_keyed::{Record, RecordRef};
use crate::key::ByteKey;
use std::ptr::NonNull;
use tremula_sync::reclaim::Guard;

impl<K: ByteKey> Record<K> {
    /// Whether this is the key with these bytes. The first `from` bytes are known to be equal.
    #[inline]
    pub(super) fn is_from(&self, bytes: &[u8], from: usize) -> bool {
        bytes.len() <= from
            || self
                .key()
                .with_bytes(|own| own.len() == bytes.len() && own.get(from..) == bytes.get(from..))
    }
}

/// The bit of an entry's word that says that it is a layer.
const LAYER: usize = 1;

/// What the word of an entry points to, where slices are not whole keys.
pub(super) enum Entry<'g, K, const W: usize> {
    Record(RecordRef<'g, K>),
    Layer(NodeRef<'g, W>),
}

impl<'g, K, const W: usize> Entry<'g, K, W> {
    /// Decodes a word.
    ///
    /// # Safety
    ///
    /// The word was read from a leaf whose version was valid afterwards, or that no thread changes.
    /// The leaf was linked since `guard` was pinned, or no other thread has it.
    #[inline]
    pub(super) unsafe fn of_word(word: Word, _guard: &'g Guard<'_>) -> Self {
        // SAFETY: the caller's promise; the guard keeps the entry allocated.
        unsafe { Self::of_word_alone(word) }
    }

    /// [`of_word`](Self::of_word) without a guard, for a thread that has the tree to itself.
    ///
    /// # Safety
    ///
    /// As for [`of_word`](Self::of_word); no thread frees the entry during `'g`.
    #[inline]
    pub(super) unsafe fn of_word_alone(word: Word) -> Self {
        if !is_layer(word) {
            // SAFETY: the words of leaves are records or layers, none of which is null.
            Self::Record(unsafe { RecordRef::of_word(word) })
        } else {
            let pointer = word.map_addr(|address| address & !LAYER);
            // SAFETY: a layer's word is not null; the root of the layer lives as long as the entry.
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
    let pointer: Word = root.pointer().as_ptr().cast();
    pointer.map_addr(|address| address | LAYER)
}
