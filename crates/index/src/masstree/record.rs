//! Records: keys that their slice alone does not tell, with their values.

use super::node::{NodeRef, Word};
use crate::key::ByteKey;
use crate::packed::{Packed, Slot};
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ptr::NonNull;
use tremula_sync::reclaim::Guard;

/// A key, which never changes, and its value.
///
/// The value is written under the lock of the leaf that the record is in, and never again once
/// the record has been unlinked: what a late reader finds is what it was last.
#[repr(align(8))]
pub(super) struct Record<K, V> {
    value: Slot<V>,
    key: K,
}

impl<K, V: 'static> Record<K, V> {
    pub(super) fn new(key: K, value: Packed<V>) -> Box<Self> {
        let slot = Slot::empty();
        slot.store(value);
        Box::new(Self { value: slot, key })
    }

    #[inline]
    pub(super) fn key(&self) -> &K {
        &self.key
    }

    /// The value: that of this moment, or, of an unlinked record, the last.
    #[inline]
    pub(super) fn value(&self) -> Packed<V> {
        self.value.observe()
    }

    /// Writes the value; what it was is not freed. The caller holds the lock of the leaf.
    #[inline]
    pub(super) fn set(&self, value: Packed<V>) {
        self.value.publish(value);
    }
}

impl<K: ByteKey, V> Record<K, V> {
    /// Whether this is the key with these bytes, which are known to be the same up to `from`.
    #[inline]
    pub(super) fn is(&self, bytes: &[u8], from: usize) -> bool {
        bytes.len() <= from
            || self
                .key
                .with_bytes(|own| own.len() == bytes.len() && own.get(from..) == bytes.get(from..))
    }
}

/// In the word of an entry: it is a layer.
const LAYER: usize = 1;

/// What the word of an entry is, where slices do not tell keys.
pub(super) enum Entry<'g, K, V, const W: usize> {
    Record(RecordRef<'g, K, V>),
    Layer(NodeRef<'g, W>),
}

impl<'g, K, V, const W: usize> Entry<'g, K, V, W> {
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
            let pointer = unsafe { NonNull::new_unchecked(word.cast()) };
            Self::Record(RecordRef {
                pointer,
                life: PhantomData,
            })
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

/// A record that lives for `'g`.
pub(super) struct RecordRef<'g, K, V> {
    pointer: NonNull<Record<K, V>>,
    life: PhantomData<&'g Record<K, V>>,
}

impl<K, V> Clone for RecordRef<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for RecordRef<'_, K, V> {}

impl<'g, K, V> RecordRef<'g, K, V> {
    #[inline]
    pub(super) fn get(self) -> &'g Record<K, V> {
        // SAFETY: it lives for `'g`, as whoever made this promised.
        unsafe { self.pointer.as_ref() }
    }

    pub(super) fn word(self) -> Word {
        self.pointer.as_ptr().cast()
    }

    /// A new record, which nobody else has yet.
    pub(super) fn new(record: Box<Record<K, V>>) -> Self {
        Self {
            // SAFETY: a box is not null.
            pointer: unsafe { NonNull::new_unchecked(Box::into_raw(record)) },
            life: PhantomData,
        }
    }
}

impl<K: Send, V: Send + 'static> RecordRef<'_, K, V> {
    /// Frees the record and its value.
    ///
    /// # Safety
    ///
    /// Nobody has it any more, and it is freed once.
    pub(super) unsafe fn free(self) {
        // SAFETY: it came from a box, in `new`, and the caller alone has it.
        let record = unsafe { Box::from_raw(self.pointer.as_ptr()) };
        // SAFETY: as above.
        drop(unsafe { record.value.observe().take() });
    }

    /// Hands out key and value: themselves, if no other thread can be looking at them; else
    /// `copy` makes something of them, and they are freed when no thread can any more.
    ///
    /// # Safety
    ///
    /// The record has been unlinked, by the calling thread alone, which keeps no reference to it,
    /// and holds no lock: `copy` may be code of the user's.
    #[inline]
    pub(super) unsafe fn hand_out<R>(
        self,
        guard: &Guard<'_>,
        take: impl FnOnce(K, V) -> R,
        copy: impl FnOnce(&K, &V) -> R,
    ) -> R {
        if (needs_drop::<K>() || needs_drop::<V>()) && guard.is_alone() {
            // SAFETY: it came from a box, in `new`, and nobody else has it or comes to it.
            let record = *unsafe { Box::from_raw(self.pointer.as_ptr()) };
            // SAFETY: likewise.
            return take(record.key, unsafe { record.value.observe().take() });
        }
        // SAFETY: unlinked, as the caller promises. It is freed when this guard is gone, at the
        // earliest, and so can still be looked at.
        unsafe {
            self.retire(guard);
            let record = self.pointer.as_ref();
            record.value().with(|value| copy(&record.key, value))
        }
    }

    /// Frees the record and its value once nobody pinned now can be looking at them.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    pub(super) unsafe fn retire(self, guard: &Guard<'_>) {
        let pointer = self.pointer;
        let free = move || {
            let record = RecordRef {
                pointer,
                life: PhantomData,
            };
            // SAFETY: whoever could have come to it has unpinned since.
            unsafe { record.free() };
        };
        // SAFETY: keys and values are `Send` and own what they hold: any thread may drop them,
        // at any time.
        unsafe { guard.defer_unchecked(free) };
    }
}
