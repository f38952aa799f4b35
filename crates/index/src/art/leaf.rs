//! Leaves: a key with its value, wherever no other key goes the same way.

use super::form::Form;
use crate::bounds::ByteForm;
use crate::key::ByteKey;
use crate::packed::Packed;
use std::mem::needs_drop;
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::reclaim::Guard;

/// A key, which never changes, and its value.
///
/// The value is written under the lock of the node that the leaf hangs from, and never again
/// once the leaf has been unlinked: what a late reader finds is what it was last.
#[repr(C, align(8))]
pub(super) struct Leaf<K> {
    value: AtomicPtr<()>,
    key: K,
}

impl<K> Leaf<K> {
    pub(super) fn new<V: 'static>(key: K, value: Packed<V>) -> Self {
        Self {
            value: AtomicPtr::new(value.word()),
            key,
        }
    }

    #[inline]
    pub(super) fn key(&self) -> &K {
        &self.key
    }

    /// The value: that of this moment, or, of an unlinked leaf, the last.
    #[inline]
    pub(super) fn value<V: 'static>(&self) -> Packed<V> {
        // Acquire: pairs with the release of `set`. What the value leads to is visible.
        Packed::of_word(self.value.load(Ordering::Acquire))
    }

    /// Writes the value; what it was is not freed. The caller holds the lock of the node that
    /// the leaf hangs from.
    #[inline]
    pub(super) fn set<V: 'static>(&self, value: Packed<V>) {
        // Release: pairs with the acquire in `value`.
        self.value.store(value.word(), Ordering::Release);
    }

    /// The parts of a leaf that has not been linked.
    pub(super) fn into_parts<V: 'static>(self) -> (K, Packed<V>) {
        let value = self.value();
        (self.key, value)
    }
}

impl<K: ByteKey> Leaf<K> {
    /// Whether this is the key with this byte form.
    #[inline]
    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        Form::with(&self.key, |own| own == bytes)
    }

    /// How many bytes this key's form has in common with another, and the symbol that follows
    /// them in this one.
    pub(super) fn agreement(&self, bytes: &[u8]) -> (usize, super::header::Symbol) {
        Form::with(&self.key, |own| {
            let common = common_bytes(own, bytes);
            (common, super::header::symbol_at(own, common))
        })
    }
}

/// How many bytes two byte strings begin with alike.
pub(super) fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    one.iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}

/// Frees a leaf; and its value, unless that has moved elsewhere.
///
/// # Safety
///
/// Nobody has the leaf any more. It is freed once, and its value is.
pub(super) unsafe fn free<K, V: 'static>(leaf: *mut Leaf<K>, with_value: bool) {
    // SAFETY: it came from a box, and the caller alone has it.
    let (key, value) = unsafe { Box::from_raw(leaf) }.into_parts::<V>();
    if with_value {
        // SAFETY: as the caller promises.
        drop(unsafe { value.take() });
    }
    drop(key);
}

/// Hands out key and value of a leaf: themselves, if no other thread can be looking at them; else
/// `copy` makes something of them, and they are freed when no thread can any more.
///
/// # Safety
///
/// The leaf has been unlinked, by the calling thread alone, which keeps no reference to it, and
/// holds no lock: `copy` may be code of the user's.
#[inline]
pub(super) unsafe fn hand_out<K: Send, V: Send + 'static, R>(
    leaf: *mut Leaf<K>,
    guard: &Guard<'_>,
    take: impl FnOnce(K, V) -> R,
    copy: impl FnOnce(&K, &V) -> R,
) -> R {
    if (needs_drop::<K>() || needs_drop::<V>()) && guard.is_alone() {
        // SAFETY: it came from a box, and nobody else has it or comes to it.
        let (key, value) = unsafe { Box::from_raw(leaf) }.into_parts::<V>();
        // SAFETY: likewise.
        return take(key, unsafe { value.take() });
    }
    // SAFETY: unlinked, as the caller promises. It is freed when this guard is gone, at the
    // earliest, and so can still be looked at.
    unsafe {
        retire::<K, V>(leaf, true, guard);
        let leaf = &*leaf;
        leaf.value().with(|value| copy(&leaf.key, value))
    }
}

/// Frees a leaf, and perhaps its value, once nobody pinned now can be looking at it.
///
/// # Safety
///
/// It has been unlinked, and is retired once.
pub(super) unsafe fn retire<K: Send, V: Send + 'static>(
    leaf: *mut Leaf<K>,
    with_value: bool,
    guard: &Guard<'_>,
) {
    // SAFETY: whoever could have come to the leaf has unpinned when this runs. Keys and values
    // are `Send` and own what they hold: any thread may drop them, any time.
    unsafe { guard.defer_unchecked(move || free::<K, V>(leaf, with_value)) };
}
