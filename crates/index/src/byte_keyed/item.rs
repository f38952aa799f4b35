//! The entries that a walk collects.

use super::record::RecordRef;
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::kit::Packed;
use tremula_sync::reclaim::Guard;

/// An entry that a walk has collected.
pub(crate) struct Item<'g, K, V> {
    pub(crate) key: ItemKey<'g, K>,
    pub(crate) value: Packed<V>,
}

/// The key of an item: in a record, or determined by its head.
pub(crate) enum ItemKey<'g, K> {
    Record(RecordRef<'g, K>),
    Head(u64),
}

// Spelled out, so that `derive` does not ask for keys and values that are `Copy`.
impl<K, V> Clone for Item<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Item<'_, K, V> {}

impl<K> Clone for ItemKey<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for ItemKey<'_, K> {}

/// Frees entries once no thread that is pinned now can be looking at them.
///
/// # Safety
///
/// They have been unlinked, and are retired once.
pub(crate) unsafe fn retire_all<'g, K: ByteKey, V: Storable>(
    items: impl IntoIterator<Item = Item<'g, K, V>>,
    guard: &Guard<'_>,
) {
    let owning = items.into_iter().filter(Item::owns);
    // SAFETY: the caller's promise.
    unsafe { guard.defer_each(owning, |item| item.free()) };
}

/// The key with this head.
pub(crate) fn key_of<K: ByteKey>(head: u64) -> K {
    K::from_head(head).expect("a key whose head is the key comes of its head")
}

impl<K: ByteKey, V: Storable> Item<'_, K, V> {
    /// Passes the entry to `see`. The batch has been read as a whole.
    #[inline]
    pub(super) fn show<R>(&self, see: impl FnOnce(&K, &V) -> R) -> R {
        let key = match &self.key {
            ItemKey::Record(record) => {
                let key = record.get().key();
                // SAFETY: the walk that read the value has been validated or held the locks, and
                // its guard keeps the value.
                return unsafe { self.value.with(|value| see(key, value)) };
            }
            ItemKey::Head(head) => key_of::<K>(*head),
        };
        // SAFETY: as for a record.
        unsafe { self.value.with(|value| see(&key, value)) }
    }

    pub(super) fn copy(&self) -> (K, V) {
        self.show(|key, value| (key.clone(), value.clone()))
    }

    /// Hands out the entry. `made` is its key, if no record has it.
    ///
    /// # Safety
    ///
    /// The calling thread has unlinked the entry, keeps no reference to it, and holds no lock.
    pub(super) unsafe fn hand_out(&self, made: Option<K>, guard: &Guard<'_>) -> (K, V) {
        match (&self.key, made) {
            // SAFETY: the caller's promise.
            (ItemKey::Record(record), _) => unsafe {
                let copy = |key: &K, value: &V| (key.clone(), value.clone());
                record.hand_out(guard, |key, value| (key, value), copy)
            },
            // SAFETY: the caller's promise.
            (_, Some(key)) => (key, unsafe { self.value.hand_out(guard) }),
            (_, None) => unreachable!("the key of an entry without a record has been made"),
        }
    }

    /// Whether the entry has memory of its own.
    fn owns(&self) -> bool {
        matches!(self.key, ItemKey::Record(_)) || !Packed::<V>::is_word()
    }

    /// Frees the entry.
    ///
    /// # Safety
    ///
    /// As for [`RecordRef::free`] and [`Packed::take`].
    unsafe fn free(self) {
        match self.key {
            // SAFETY: the caller's promise.
            ItemKey::Record(record) => unsafe { record.free::<V>(true) },
            // SAFETY: the caller's promise.
            ItemKey::Head(_) => unsafe { drop(self.value.take()) },
        }
    }
}
