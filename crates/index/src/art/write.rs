//! Operations that change one entry.
//!
//! A writer notes versions on its way and locks nodes by upgrading these versions. It locks the
//! node whose slots it changes and, if that node has to be replaced, the node above. It never
//! blocks on a lock while it holds one; where it would have to, it starts over.

use super::Art;
use super::child::{Child, ChildRef, NodeRef, Word};
use super::form::Form;
use super::header::Symbol;
use super::locate::{Branch, KeyState, Place, SlotRef};
use crate::byte_keyed::{ByteForm, RecordRef, Writes, key_of};
use crate::contract::{Storable, Update};
use crate::key::ByteKey;
use crate::kit::Packed;
use tremula_sync::atomic::Ordering;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, VersionGuard};

/// The locks for an insertion.
struct InsertionLocks<'g> {
    node: VersionGuard<'g>,
    /// Held if the insertion replaces the node, or puts a node above it.
    above: Option<VersionGuard<'g>>,
}

/// The locks for a removal.
pub(super) struct RemovalLocks<'g> {
    node: VersionGuard<'g>,
    /// The slot in the node above, and that node's lock, if the removal replaces the node.
    above: Option<(SlotRef<'g>, VersionGuard<'g>)>,
    /// The only other child, if that is a node: it replaces the node.
    last_child: Option<(NodeRef<'g>, VersionGuard<'g>)>,
}

impl InsertionLocks<'_> {
    fn unchanged(self) {
        self.node.unchanged();
        self.above.into_iter().for_each(VersionGuard::unchanged);
    }
}

impl RemovalLocks<'_> {
    /// Releases the locks. Nothing has been changed under them.
    pub(super) fn unchanged(self) {
        let above = self.above.map(|(_, lock)| lock);
        let last_child = self.last_child.map(|(_, lock)| lock);
        let locks = [Some(self.node), above, last_child];
        locks
            .into_iter()
            .flatten()
            .for_each(VersionGuard::unchanged);
    }

    /// Whether one of the locks, which are those of `place`, is that of this node.
    pub(super) fn cover(&self, node: NodeRef<'_>, place: &Place<'_, impl Sized>) -> bool {
        let above = self.above.as_ref();
        place.slot.node.is(node) || above.is_some_and(|(above, _)| above.node.is(node))
    }
}

/// Locks the nodes of two slots, the upper one first, if their versions have not changed.
fn lock_both<'g>(
    upper: &SlotRef<'g>,
    lower: &SlotRef<'g>,
) -> Result<(VersionGuard<'g>, VersionGuard<'g>), Restart> {
    let upper = upper.lock()?;
    match lower.lock() {
        Ok(lower) => Ok((upper, lower)),
        Err(restart) => {
            upper.unchanged();
            Err(restart)
        }
    }
}

impl<'g> SlotRef<'g> {
    #[inline]
    fn lock(&self) -> Result<VersionGuard<'g>, Restart> {
        self.node.header().lock.upgrade(self.version)
    }

    /// The value of the key, which is present, in the leaf or in this slot. The caller holds the
    /// lock.
    #[inline]
    fn value<K, V: 'static>(&self, leaf: Option<RecordRef<'_, K>>) -> Option<Packed<V>> {
        match leaf {
            Some(leaf) => Some(leaf.get().value()),
            None => {
                let tail = self.node.header().tail();
                self.node.find(tail, self.symbol).map(Packed::of_word)
            }
        }
    }

    /// Replaces that value.
    #[inline]
    fn set<K, V: 'static>(&self, leaf: Option<RecordRef<'_, K>>, value: Packed<V>) {
        match leaf {
            Some(leaf) => leaf.get().set(value),
            None => self.node.replace(self.symbol, value.word()),
        }
    }

    /// Whether the node has to be replaced if it loses a child. The root never has to be.
    #[inline]
    fn is_sparse(&self) -> bool {
        self.depth() > 0 && self.node.is_sparse()
    }
}

impl<K: ByteKey, V: Storable> Writes<K, V> for Art<K, V> {
    #[inline]
    fn try_put(
        &self,
        entry: &mut Option<(K, V)>,
        replaces: bool,
        guard: &Guard<'_>,
    ) -> Result<Option<V>, Restart> {
        let Some((key, _)) = entry else {
            return Ok(None);
        };
        let (slot, state) = Form::with(key, |bytes| self.reach(bytes, guard))?;
        let state = state.as_ref();
        if let Some(leaf) = state.and_then(KeyState::present) {
            return if replaces {
                self.replace_value(&slot, leaf, entry, guard)
            } else {
                Ok(None)
            };
        }
        if matches!(state, Some(KeyState::Vacant)) && !slot.node.is_crowded() {
            let lock = slot.lock()?;
            let unused = entry.take().and_then(|(key, value)| {
                self.len.add(1);
                let (word, unused) = Self::entry_word(slot.depth(), key, Packed::new(value));
                slot.node.insert(slot.symbol, word);
                unused
            });
            drop(lock);
            drop(unused);
            return Ok(None);
        }
        self.put_with_node(entry, guard)
    }

    #[inline]
    fn try_remove(&self, key: &K, guard: &Guard<'_>) -> Result<Option<V>, Restart> {
        let (slot, state) = Form::with(key, |bytes| self.reach(bytes, guard))?;
        let Some(leaf) = state.as_ref().and_then(KeyState::present) else {
            return Ok(None);
        };
        if slot.is_sparse() {
            return self.remove_with_node(key, guard);
        }
        let lock = slot.lock()?;
        let old = slot.value::<K, V>(leaf).ok_or(Restart)?;
        self.len.add(-1);
        slot.node
            .remove(slot.symbol, Self::has_values_at(slot.depth()));
        drop(lock);
        Ok(Some(Self::hand_out(leaf, old, guard)))
    }

    fn try_update(
        &self,
        key: &mut Option<K>,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
        guard: &Guard<'_>,
    ) -> Result<Option<V>, Restart> {
        let Some(borrowed) = key.as_ref() else {
            return Ok(None);
        };
        let place = Form::with(borrowed, |bytes| self.locate(bytes, guard))?;
        let Some(leaf) = place.state.present() else {
            let locks = self.lock_for_insertion(&place)?;
            match (decide(None), key.take()) {
                (Update::Put(value), Some(key)) => self.insert_at(place, locks, key, value, guard),
                _ => locks.unchanged(),
            }
            return Ok(None);
        };
        let head = Self::head_if_values(borrowed);
        // Lock everything that a removal needs, so that each decision can be carried out.
        let locks = self.lock_for_removal(&place, guard)?;
        let old = place.slot.value::<K, V>(leaf).ok_or(Restart)?;
        // SAFETY: the value was read under the lock, and the guard keeps it.
        let decision = unsafe { old.with(|value| decide(Some(value))) };
        match decision {
            Update::Keep => {
                locks.unchanged();
                Ok(None)
            }
            Update::Put(value) => {
                place.slot.set(leaf, Packed::new(value));
                drop(locks);
                // SAFETY: this thread replaced the value under the lock, and keeps no reference to
                // it.
                Ok(Some(unsafe { old.hand_out(guard) }))
            }
            Update::Remove => {
                self.remove_at(&place, locks, head, guard);
                Ok(Some(Self::hand_out(leaf, old, guard)))
            }
        }
    }
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// Replaces the value of a key that is present.
    #[inline]
    fn replace_value(
        &self,
        slot: &SlotRef<'_>,
        leaf: Option<RecordRef<'_, K>>,
        entry: &mut Option<(K, V)>,
        guard: &Guard<'_>,
    ) -> Result<Option<V>, Restart> {
        let lock = slot.lock()?;
        let old = slot.value::<K, V>(leaf).ok_or(Restart)?;
        let taken = entry.take().map(|(key, value)| {
            slot.set(leaf, Packed::new(value));
            key
        });
        drop(lock);
        // The stored key stays.
        drop(taken);
        // SAFETY: this thread replaced the value under the lock, and keeps no reference to it.
        Ok(Some(unsafe { old.hand_out(guard) }))
    }

    /// Stores an entry whose key was absent and needs a new node.
    #[inline(never)]
    fn put_with_node(
        &self,
        entry: &mut Option<(K, V)>,
        guard: &Guard<'_>,
    ) -> Result<Option<V>, Restart> {
        let Some((key, _)) = entry else {
            return Ok(None);
        };
        let place = Form::with(key, |bytes| self.locate(bytes, guard))?;
        if place.state.present().is_some() {
            // Another thread has inserted the key meanwhile.
            return Err(Restart);
        }
        let locks = self.lock_for_insertion(&place)?;
        if let Some((key, value)) = entry.take() {
            self.insert_at(place, locks, key, value, guard);
        }
        Ok(None)
    }

    /// Removes a key from a node that has to be replaced.
    #[inline(never)]
    fn remove_with_node(&self, key: &K, guard: &Guard<'_>) -> Result<Option<V>, Restart> {
        let place = Form::with(key, |bytes| self.locate(bytes, guard))?;
        let Some(leaf) = place.state.present() else {
            return Ok(None);
        };
        let head = Self::head_if_values(key);
        let locks = self.lock_for_removal(&place, guard)?;
        let old = place.slot.value::<K, V>(leaf).ok_or(Restart)?;
        self.remove_at(&place, locks, head, guard);
        Ok(Some(Self::hand_out(leaf, old, guard)))
    }

    /// The head of a key if there are nodes whose slots are values, otherwise 0.
    fn head_if_values(key: &K) -> u64 {
        if Self::VALUES_AT == usize::MAX {
            0
        } else {
            key.head()
        }
    }

    /// Locks the nodes that the insertion of an absent key changes.
    fn lock_for_insertion<'g>(&self, place: &Place<'g, K>) -> Result<InsertionLocks<'g>, Restart> {
        let displaced = match place.state {
            KeyState::OtherPrefix(..) => true,
            KeyState::Vacant => place.slot.node.is_crowded(),
            _ => false,
        };
        // The root is never crowded and has no prefix.
        let (above, node) = match place.parent.filter(|_| displaced) {
            Some(parent) => {
                let (above, node) = lock_both(&parent, &place.slot)?;
                (Some(above), node)
            }
            None => (None, place.slot.lock()?),
        };
        Ok(InsertionLocks { node, above })
    }

    /// Inserts a new entry at its place, and unlocks. No user code runs before that is done: a key
    /// that is not stored is dropped last.
    fn insert_at(
        &self,
        place: Place<'_, K>,
        locks: InsertionLocks<'_>,
        key: K,
        value: V,
        guard: &Guard<'_>,
    ) {
        self.len.add(1);
        let SlotRef { node, symbol, .. } = place.slot;
        let depth = place.slot.depth();
        let entry_depth = match &place.state {
            KeyState::OtherLeaf(_, branch) | KeyState::OtherPrefix(branch, _) => branch.depth,
            _ => depth,
        };
        let of_values = Self::has_values_at(entry_depth);
        let (new, unused) = Self::entry_word(entry_depth, key, Packed::new(value));
        let replace = |slot: SlotRef<'_>, node: NodeRef<'_>| {
            Self::check_changed(node, guard);
            slot.node.replace(slot.symbol, node.child().word());
        };
        // The node that has the new entry and, under this word, what was there before.
        let branch_node = |branch: Branch, old: Word| {
            let mut entries = [(branch.old, old), (branch.new, new)];
            entries.sort_unstable_by_key(|(symbol, _)| *symbol);
            NodeRef::of(branch.depth, branch.prefix, &entries, of_values)
        };
        match (place.state, place.parent, locks.above) {
            (KeyState::OtherLeaf(other, branch), ..) => {
                let old = if of_values {
                    other.get().value::<V>().word()
                } else {
                    Child::leaf(other).word()
                };
                replace(place.slot, branch_node(branch, old));
                drop(locks.node);
                if of_values {
                    // SAFETY: this thread has unlinked the leaf. Its value has moved into the slot.
                    unsafe { other.retire::<V>(false, guard) };
                }
            }
            (KeyState::OtherPrefix(branch, rest), Some(parent), lock_above) => {
                node.header().set_prefix(rest);
                replace(parent, branch_node(branch, node.child().word()));
                Self::check_changed(parent.node, guard);
                self.figures.splits.fetch_add(1, Ordering::Relaxed);
                drop((locks.node, lock_above));
            }
            (_, Some(parent), Some(lock_above)) => {
                let mut entries = node.entries();
                let at = entries.partition_point(|(other, _)| *other < symbol);
                entries.insert(at, (symbol, new));
                let prefix = node.header().snapshot().prefix();
                replace(parent, NodeRef::of(depth, prefix, &entries, of_values));
                Self::check_changed(parent.node, guard);
                locks.node.obsolete();
                Self::check_unlinked(node);
                drop(lock_above);
                self.figures.growths.fetch_add(1, Ordering::Relaxed);
                // SAFETY: this thread has unlinked the node.
                unsafe { node.retire(guard) };
            }
            _ => {
                node.insert(symbol, new);
                drop(locks.node);
            }
        }
        drop(unused);
    }

    /// The word for a new entry in a node at this depth, and the key if it is not stored. The
    /// caller drops the key when it holds no lock, because that runs user code.
    #[inline]
    fn entry_word(depth: usize, key: K, value: Packed<V>) -> (Word, Option<K>) {
        if Self::has_values_at(depth) {
            (value.word(), Some(key))
        } else {
            (Child::leaf(RecordRef::new(key, value)).word(), None)
        }
    }

    /// Locks the nodes that a removal at a place changes.
    pub(super) fn lock_for_removal<'g>(
        &self,
        place: &Place<'g, K>,
        guard: &'g Guard<'_>,
    ) -> Result<RemovalLocks<'g>, Restart> {
        let slot = &place.slot;
        let Some(parent) = place.parent.filter(|_| slot.is_sparse()) else {
            return Ok(RemovalLocks {
                node: slot.lock()?,
                above: None,
                last_child: None,
            });
        };
        let (upper, node) = lock_both(&parent, slot)?;
        let mut locks = RemovalLocks {
            node,
            above: Some((parent, upper)),
            last_child: None,
        };
        if slot.node.children() == 2 && !Self::has_values_at(slot.depth()) {
            let last = slot.node.first(|symbol| symbol != slot.symbol);
            // SAFETY: the node that has it is locked and linked.
            let last = last.map(|word| unsafe { Child::of_word(word).follow::<K>(guard) });
            if let Some(ChildRef::Node(child)) = last {
                match child.header().lock.try_lock() {
                    Ok(lock) => locks.last_child = Some((child, lock)),
                    Err(restart) => {
                        locks.unchanged();
                        return Err(restart);
                    }
                }
            }
        }
        Ok(locks)
    }

    /// Removes the entry at a place, and unlocks. The caller retires or hands out the leaf or
    /// value. `head` is that of the key, if slots are values.
    pub(super) fn remove_at(
        &self,
        place: &Place<'_, K>,
        locks: RemovalLocks<'_>,
        head: u64,
        guard: &Guard<'_>,
    ) {
        let node = place.slot.node;
        let depth = place.slot.depth();
        let of_values = Self::has_values_at(depth);
        let Some((parent, lock_above)) = locks.above else {
            self.len.add(-1);
            node.remove(place.slot.symbol, of_values);
            drop(locks.node);
            return;
        };
        let mut rest = node.entries();
        rest.retain(|(symbol, _)| *symbol != place.slot.symbol);
        let prefix = node.header().snapshot().prefix();
        let word = match (&rest[..], &locks.last_child) {
            // The only user code here; nothing has been changed yet.
            ([(symbol, word)], _) if of_values => {
                Self::leaf_of_value(Self::key_of_value(head, *symbol), *word)
            }
            ([(symbol, _)], Some((child, _))) => child.with_prefix_of_parent(prefix, *symbol),
            ([(_, word)], None) => *word,
            _ => NodeRef::of(depth, prefix, &rest, of_values).child().word(),
        };
        self.len.add(-1);
        let figure = if rest.len() == 1 {
            &self.figures.merges
        } else {
            &self.figures.shrinks
        };
        figure.fetch_add(1, Ordering::Relaxed);
        parent.node.replace(parent.symbol, word);
        Self::check_changed(parent.node, guard);
        locks.node.obsolete();
        Self::check_unlinked(node);
        drop((lock_above, locks.last_child));
        // SAFETY: this thread has unlinked the node.
        unsafe { node.retire(guard) };
    }

    /// The key of the value under `symbol`, in the same node as the key with this head.
    pub(super) fn key_of_value(head: u64, symbol: Symbol) -> K {
        let shift = 56 - 8 * Self::VALUES_AT;
        let head = head & !(0xff << shift) | u64::from(symbol - 1) << shift;
        key_of(head)
    }

    /// A leaf for a key whose value was in a slot.
    pub(super) fn leaf_of_value(key: K, word: Word) -> Word {
        Child::leaf(RecordRef::new(key, Packed::<V>::of_word(word))).word()
    }

    /// Hands out the value of an entry that this thread has just unlinked.
    #[inline]
    fn hand_out(leaf: Option<RecordRef<'_, K>>, value: Packed<V>, guard: &Guard<'_>) -> V {
        match leaf {
            // SAFETY: this thread unlinked the leaf under the lock, has unlocked, and keeps no
            // reference to it.
            Some(leaf) => unsafe {
                leaf.hand_out(guard, |_, value| value, |_, value: &V| value.clone())
            },
            // SAFETY: as for a leaf.
            None => unsafe { value.hand_out(guard) },
        }
    }
}
