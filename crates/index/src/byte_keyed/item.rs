//! Entries, as a walk comes by them.

use super::record::RecordRef;
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::kit::Packed;
use tremula_sync::reclaim::Guard;

/// An entry that a walk has come by.
pub(crate) struct Item<'g, K, V> {
    pub(crate) key: ItemKey<'g, K>,
    pub(crate) value: Packed<V>,
}

/// The key of an item: in a record, or put together from its head.
pub(crate) enum ItemKey<'g, K> {
    Record(RecordRef<'g, K>),
    Head(u64),
}

/// The key with this head.
pub(crate) fn key_of<K: ByteKey>(head: u64) -> K {
    K::from_head(head).expect("a key whose head is the key comes of its head")
}

impl<K: ByteKey, V: Storable> Item<'_, K, V> {
    /// Shows the entry, of a batch that has been read as a whole.
    #[inline]
    pub(super) fn show<R>(&self, see: impl FnOnce(&K, &V) -> R) -> R {
        let key = match &self.key {
            ItemKey::Record(record) => {
                let key = record.get().key();
                // SAFETY: read by a walk that has been validated, or held the locks, and kept by
                // its guard.
                return unsafe { self.value.with(|value| see(key, value)) };
            }
            ItemKey::Head(head) => key_of::<K>(*head),
        };
        // SAFETY: the same holds of a value in a slot.
        unsafe { self.value.with(|value| see(&key, value)) }
    }

    pub(super) fn copy(&self) -> (K, V) {
        self.show(|key, value| (key.clone(), value.clone()))
    }

    /// Hands the entry out. `made` is its key, if no record has it.
    ///
    /// # Safety
    ///
    /// The entry has been unlinked, by the calling thread alone, which keeps no reference to it,
    /// and holds no lock.
    pub(super) unsafe fn hand_out(&self, made: Option<K>, guard: &Guard<'_>) -> (K, V) {
        match (&self.key, made) {
            // SAFETY: as the caller promises.
            (ItemKey::Record(record), _) => unsafe {
                let copy = |key: &K, value: &V| (key.clone(), value.clone());
                record.hand_out(guard, |key, value| (key, value), copy)
            },
            // SAFETY: likewise.
            (_, Some(key)) => (key, unsafe { self.value.hand_out(guard) }),
            (_, None) => unreachable!("the key of an entry without a record has been made"),
        }
    }

    /// Frees the entry once no thread that is pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    pub(crate) unsafe fn retire(&self, guard: &Guard<'_>) {
        match &self.key {
            // SAFETY: as the caller promises.
            ItemKey::Record(record) => unsafe { record.retire::<V>(true, guard) },
            // SAFETY: as the caller promises.
            ItemKey::Head(_) => unsafe { self.value.retire(guard) },
        }
    }
}
