//! Operations that change one entry.

use super::Masstree;
use super::node::{NodeRef, Word, is_underfull};
use super::order::Order;
use super::record::{Entry, word_of_layer};
use super::shape::count;
use super::slices::Slices;
use crate::byte_keyed::{RecordRef, Walks, Writes};
use crate::contract::{Storable, Update};
use crate::key::ByteKey;
use crate::kit::Packed;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, VersionGuard};

/// Where a key is, or where it would be inserted: a leaf, which is locked, and what it has for the
/// key.
struct Place<'g, K, const W: usize> {
    /// The root of the layer, and how many bytes of the key precede the layer.
    root: NodeRef<'g, W>,
    depth: usize,
    leaf: NodeRef<'g, W>,
    lock: VersionGuard<'g>,
    order: Order,
    slice: u64,
    state: KeyState<'g, K>,
}

/// Whether the key is at its place, and what an insertion has to do if it is not.
enum KeyState<'g, K> {
    /// The word in this slot is the key's value.
    Value(usize),
    /// The record of the key.
    Record(RecordRef<'g, K>),
    /// No entry has the slice, so the key is absent.
    Vacant,
    /// This slot has the record of another key with the same slice. An insertion makes a layer for
    /// both.
    OtherRecord(usize, RecordRef<'g, K>, Parting),
}

/// Where two keys with a common slice differ.
struct Parting {
    /// The slices after it that they also have in common, and then the two that differ.
    shared: Vec<u64>,
    old: u64,
    new: u64,
}

impl Parting {
    /// Where two keys differ after the slice at a depth. `None` if they do not differ, which cannot
    /// happen with honest byte forms.
    #[cold]
    fn of<K: ByteKey>(old: &[u8], new: &[u8], mut depth: usize) -> Option<Self> {
        let mut shared = Vec::new();
        while [old, new].map(|bytes| Slices::<K>::go_on(bytes, depth)) == [true; 2] {
            depth += Slices::<K>::STEP;
            let [old, new] = [old, new].map(|bytes| Slices::<K>::at(bytes, depth));
            if old != new {
                return Some(Self { shared, old, new });
            }
            shared.push(old);
        }
        None
    }
}

impl<K, const W: usize> Place<'_, K, W> {
    /// The value of the key, if the key is present.
    #[inline]
    fn value<V: 'static>(&self) -> Option<Packed<V>> {
        match &self.state {
            KeyState::Value(slot) => Some(Packed::of_word(self.leaf.word(*slot))),
            KeyState::Record(record) => Some(record.get().value()),
            _ => None,
        }
    }

    /// Replaces the value of a key that is present. Does not free the old value.
    #[inline]
    fn set<V: 'static>(&self, value: Packed<V>) {
        match &self.state {
            KeyState::Value(slot) => self.leaf.publish_word(*slot, value.word()),
            KeyState::Record(record) => record.get().set(value),
            _ => unreachable!("only a key that is there has a value to replace"),
        }
    }

    /// Whether the key is absent and the leaf has no free slot.
    #[inline]
    fn is_full(&self) -> bool {
        matches!(self.state, KeyState::Vacant) && self.order.count() == W
    }
}

impl<K: ByteKey, V: Storable, const W: usize> Writes<K, V> for Masstree<K, V, W> {
    fn try_put(
        &self,
        entry: &mut Option<(K, V)>,
        replaces: bool,
        guard: &Guard<'_>,
    ) -> Result<Option<V>, Restart> {
        let Some((key, _)) = entry else {
            return Ok(None);
        };
        let place = self.locate_with_room(key, guard)?;
        let Some(old) = place.value() else {
            if let Some((key, value)) = entry.take() {
                self.insert_at(place, key, value);
            }
            return Ok(None);
        };
        if !replaces {
            place.lock.unchanged();
            return Ok(None);
        }
        // The stored key stays. The other is dropped after the lock.
        let unused = entry.take();
        let unused = unused.map(|(key, value)| {
            place.set(Packed::new(value));
            key
        });
        drop(place);
        drop(unused);
        // SAFETY: this thread unlinked the value by `set`, and keeps no reference to it.
        Ok(Some(unsafe { old.hand_out(guard) }))
    }

    fn try_remove(&self, key: &K, guard: &Guard<'_>) -> Result<Option<V>, Restart> {
        key.with_bytes(|bytes| self.try_remove_bytes(bytes, guard))
    }

    fn try_update(
        &self,
        key: &mut Option<K>,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
        guard: &Guard<'_>,
    ) -> Result<Option<V>, Restart> {
        let Some(wanted) = key else {
            return Ok(None);
        };
        let place = self.locate_with_room(wanted, guard)?;
        let Some(old) = place.value() else {
            match decide(None) {
                Update::Put(value) => {
                    if let Some(key) = key.take() {
                        self.insert_at(place, key, value);
                    }
                }
                Update::Keep | Update::Remove => place.lock.unchanged(),
            }
            return Ok(None);
        };
        // SAFETY: the leaf is locked, so no other thread has unlinked the value.
        let decision = unsafe { old.with(|old| decide(Some(old))) };
        if matches!(decision, Update::Keep) {
            place.lock.unchanged();
            return Ok(None);
        }
        if let Update::Put(value) = decision {
            place.set(Packed::new(value));
            drop(place);
            // SAFETY: this thread unlinked the value by `set`, and keeps no reference to it.
            return Ok(Some(unsafe { old.hand_out(guard) }));
        }
        let (previous, sparse) = self.remove_at(place, old, guard);
        if sparse {
            self.tidy_up(wanted, guard);
        }
        Ok(Some(previous))
    }
}

impl<K: ByteKey, V: Storable, const W: usize> Masstree<K, V, W> {
    /// Descends to the place of a key and locks the leaf.
    #[inline]
    fn locate<'g>(
        &'g self,
        bytes: &[u8],
        guard: &'g Guard<'_>,
    ) -> Result<Place<'g, K, W>, Restart> {
        let mut root = self.root();
        let mut depth = 0;
        loop {
            let slice = Slices::<K>::at(bytes, depth);
            let (leaf, version) = root.reach(slice)?;
            if Slices::<K>::go_on(bytes, depth)
                && let Some(word) = leaf.word_of(version, slice)?
                // SAFETY: validated by `word_of`, and the leaf was linked since the guard was
                // pinned.
                && let Entry::Layer(next) = unsafe { Entry::<K, W>::of_word(word, guard) }
            {
                (root, depth) = (next, depth + Slices::<K>::STEP);
                continue;
            }
            let (leaf, lock) = leaf.lock_seen(version, slice)?;
            let order = leaf.order();
            let state = match leaf.find(order, slice) {
                None => KeyState::Vacant,
                Some(slot) if K::HEAD_IS_KEY => KeyState::Value(slot),
                // SAFETY: the leaf is locked and linked.
                Some(slot) => match unsafe { Entry::<K, W>::of_word(leaf.word(slot), guard) } {
                    Entry::Layer(next) => {
                        lock.unchanged();
                        (root, depth) = (next, depth + Slices::<K>::STEP);
                        continue;
                    }
                    Entry::Record(record) => state_of_record(slot, record, bytes, depth),
                },
            };
            return Ok(Place {
                root,
                depth,
                leaf,
                lock,
                order,
                slice,
                state,
            });
        }
    }

    /// Descends to the place of a key, and splits the leaf if an insertion needs a free slot.
    #[inline]
    fn locate_with_room<'g>(
        &'g self,
        key: &K,
        guard: &'g Guard<'_>,
    ) -> Result<Place<'g, K, W>, Restart> {
        loop {
            // The place is not returned through the key's code, which could forget it, and the lock
            // with it.
            let mut place = Err(Restart);
            key.with_bytes(|bytes| place = self.locate(bytes, guard));
            let place = place?;
            if !place.is_full() {
                return Ok(place);
            }
            let (root, slice) = (place.root, place.slice);
            place.lock.unchanged();
            self.split_down(root, slice);
        }
    }

    /// Inserts an entry whose key is absent, at a place that is not full.
    #[inline]
    fn insert_at(&self, place: Place<'_, K, W>, key: K, value: V) {
        let value = Packed::new(value);
        let (word, unused) = if K::HEAD_IS_KEY {
            (value.word(), Some(key))
        } else {
            (RecordRef::new(key, value).word(), None)
        };
        match &place.state {
            KeyState::OtherRecord(slot, other, parting) => {
                let layer = self.layer(parting, other.word(), word);
                place.leaf.publish_word(*slot, layer);
            }
            _ => {
                let rank = place.leaf.rank(place.order, place.slice);
                place.leaf.insert(place.order, rank, place.slice, word);
            }
        }
        drop((place, unused));
        self.len.add(1);
    }

    /// A new layer of two keys, below one further layer for each slice that they have in common.
    fn layer(&self, parting: &Parting, old: Word, new: Word) -> Word {
        let mut entries = [(parting.old, old), (parting.new, new)];
        entries.sort_unstable_by_key(|entry| entry.0);
        let lowest = NodeRef::<W>::new(0);
        lowest.set_entries(entries);
        count(&self.counters.layers);
        parting
            .shared
            .iter()
            .rev()
            .fold(word_of_layer(lowest), |below, slice| {
                let root = NodeRef::<W>::new(0);
                root.set_entries([(*slice, below)]);
                count(&self.counters.layers);
                word_of_layer(root)
            })
    }

    #[inline]
    fn try_remove_bytes(&self, bytes: &[u8], guard: &Guard<'_>) -> Result<Option<V>, Restart> {
        let place = self.locate(bytes, guard)?;
        let Some(value) = place.value() else {
            place.lock.unchanged();
            return Ok(None);
        };
        let (previous, sparse) = self.remove_at(place, value, guard);
        if sparse {
            self.tidy(bytes, guard);
        }
        Ok(Some(previous))
    }

    /// Removes the entry at a place, and hands out its value. The second result says whether the
    /// nodes there have become sparse.
    fn remove_at(&self, place: Place<'_, K, W>, value: Packed<V>, guard: &Guard<'_>) -> (V, bool) {
        let leaf = place.leaf;
        {
            // Otherwise a lookup could take the word that the next insertion puts into the slot for
            // this one.
            let _change = leaf.get().change();
            let rank = leaf.rank(place.order, place.slice);
            leaf.set_order(place.order.removed(rank));
        }
        drop(place.lock);
        self.len.add(-1);
        let left = place.order.count() - 1;
        let sparse = if leaf == place.root {
            place.depth > 0 && left <= 1
        } else {
            is_underfull(left, W)
        };
        let value = match place.state {
            // SAFETY: this thread has just unlinked the record, and keeps no reference to it.
            KeyState::Record(record) => unsafe {
                record.hand_out(guard, |_, value| value, |_, value: &V| value.clone())
            },
            // SAFETY: as for a record.
            _ => unsafe { value.hand_out(guard) },
        };
        (value, sparse)
    }
}

/// Compares a key with the record that has the same slice.
#[inline]
fn state_of_record<'g, K: ByteKey>(
    slot: usize,
    record: RecordRef<'g, K>,
    bytes: &[u8],
    depth: usize,
) -> KeyState<'g, K> {
    if record.get().is_from(bytes, depth + Slices::<K>::STEP) {
        return KeyState::Record(record);
    }
    let part = |own: &[u8]| Parting::of::<K>(own, bytes, depth);
    match record.get().key().with_bytes(part) {
        Some(parting) => KeyState::OtherRecord(slot, record, parting),
        None => KeyState::Record(record),
    }
}
