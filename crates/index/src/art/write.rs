//! Operations that change one entry.
//!
//! A writer notes versions on its way and locks nodes by upgrading these versions. It locks the
//! node whose slots it changes and, if that node has to be replaced, the node above. It never
//! blocks on a lock while it holds one; where it would have to, it starts over.

use super::Art;
use super::child::{Child, Is, NodeRef, Word};
use super::form::Form;
use super::header::Symbol;
use super::locate::{Above, Ahead, Found, Place, Spot};
use crate::byte_keyed::{ByteForm, RecordRef, Writes, key_of};
use crate::contract::{Storable, Update};
use crate::key::ByteKey;
use crate::kit::Packed;
use tremula_sync::atomic::Ordering;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, VersionGuard};

/// The locks for an insertion.
struct Room<'g> {
    node: VersionGuard<'g>,
    /// Held if the insertion replaces the node, or puts a node above it.
    above: Option<VersionGuard<'g>>,
}

/// The locks for a removal.
pub(super) struct Loss<'g> {
    node: VersionGuard<'g>,
    /// The slot in the node above, and that node's lock, if the removal replaces the node.
    above: Option<(Above<'g>, VersionGuard<'g>)>,
    /// The only other child, if that is a node: it replaces the node.
    heir: Option<(NodeRef<'g>, VersionGuard<'g>)>,
}

impl Room<'_> {
    fn unchanged(self) {
        self.node.unchanged();
        if let Some(above) = self.above {
            above.unchanged();
        }
    }
}

impl Loss<'_> {
    /// Releases the locks. Nothing has been changed under them.
    pub(super) fn unchanged(self) {
        self.node.unchanged();
        if let Some((_, above)) = self.above {
            above.unchanged();
        }
        if let Some((_, heir)) = self.heir {
            heir.unchanged();
        }
    }

    /// Whether one of the locks is that of this node.
    pub(super) fn holds(&self, node: NodeRef<'_>, of: &Place<'_, impl Sized>) -> bool {
        of.spot.node.is(node) || (self.above.as_ref()).is_some_and(|(above, _)| above.node.is(node))
    }
}

/// Locks a node and the one above it, if their versions have not changed.
fn lock_both<'g>(
    above: &Above<'g>,
    spot: &Spot<'g>,
) -> Result<(VersionGuard<'g>, VersionGuard<'g>), Restart> {
    let upper = above.node.header().lock.upgrade(above.version)?;
    match spot.lock() {
        Ok(lower) => Ok((upper, lower)),
        Err(restart) => {
            upper.unchanged();
            Err(restart)
        }
    }
}

impl<'g> Spot<'g> {
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
        self.depth > 0 && self.node.is_sparse()
    }
}

impl<'g, K> Ahead<'g, K> {
    /// If the key is present, its leaf, or `Some(None)` if its value is in the slot.
    #[inline]
    fn present(&self) -> Option<Option<RecordRef<'g, K>>> {
        match self {
            Ahead::Leaf(leaf) => Some(Some(*leaf)),
            Ahead::Value => Some(None),
            _ => None,
        }
    }
}

impl<'g, K> Place<'g, K> {
    fn leaf(&self) -> Option<RecordRef<'g, K>> {
        match self.found {
            Found::Leaf(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// The value of the key, which is present. The caller holds the lock.
    fn value<V: 'static>(&self) -> Option<Packed<V>> {
        self.spot.value(self.leaf())
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
        let (spot, ahead) = Form::with(key, |bytes| self.reach(bytes, guard))?;
        if let Some(leaf) = ahead.present() {
            return if replaces {
                self.replace_value(&spot, leaf, entry, guard)
            } else {
                Ok(None)
            };
        }
        if matches!(ahead, Ahead::Vacant) && !spot.node.is_crowded() {
            let lock = spot.lock()?;
            let unused = entry.take().and_then(|(key, value)| {
                self.len.add(1);
                let (word, unused) = Self::entry_word(spot.depth, key, Packed::new(value));
                spot.node.insert(spot.symbol, word);
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
        let (spot, ahead) = Form::with(key, |bytes| self.reach(bytes, guard))?;
        let Some(leaf) = ahead.present() else {
            return Ok(None);
        };
        if spot.is_sparse() {
            return self.remove_with_node(key, guard);
        }
        let lock = spot.lock()?;
        let old = spot.value::<K, V>(leaf).ok_or(Restart)?;
        self.len.add(-1);
        spot.node
            .remove(spot.symbol, Self::has_values_at(spot.depth));
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
        if !matches!(place.found, Found::Leaf(_) | Found::Value) {
            let room = self.lock_for_insertion(&place)?;
            match (decide(None), key.take()) {
                (Update::Put(value), Some(key)) => self.settle(place, room, key, value, guard),
                _ => room.unchanged(),
            }
            return Ok(None);
        }
        let head = Self::head_if_values(borrowed);
        // Lock everything that a removal needs, so that each decision can be carried out.
        let loss = self.lock_for_removal(&place, guard)?;
        let Some(old) = place.value() else {
            return Err(Restart);
        };
        // SAFETY: the value was read under the lock, and the guard keeps it.
        let decision = unsafe { old.with(|value| decide(Some(value))) };
        match decision {
            Update::Keep => {
                loss.unchanged();
                Ok(None)
            }
            Update::Put(value) => {
                place.spot.set(place.leaf(), Packed::new(value));
                drop(loss);
                // SAFETY: this thread replaced the value under the lock, and keeps no reference to
                // it.
                Ok(Some(unsafe { old.hand_out(guard) }))
            }
            Update::Remove => {
                self.take_out(&place, loss, head, guard);
                Ok(Some(Self::hand_out(place.leaf(), old, guard)))
            }
        }
    }
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// Replaces the value of a key that is present.
    #[inline]
    fn replace_value(
        &self,
        spot: &Spot<'_>,
        leaf: Option<RecordRef<'_, K>>,
        entry: &mut Option<(K, V)>,
        guard: &Guard<'_>,
    ) -> Result<Option<V>, Restart> {
        let lock = spot.lock()?;
        let old = spot.value::<K, V>(leaf).ok_or(Restart)?;
        let taken = entry.take().map(|(key, value)| {
            spot.set(leaf, Packed::new(value));
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
        if matches!(place.found, Found::Leaf(_) | Found::Value) {
            // Another thread has inserted the key meanwhile.
            return Err(Restart);
        }
        let room = self.lock_for_insertion(&place)?;
        if let Some((key, value)) = entry.take() {
            self.settle(place, room, key, value, guard);
        }
        Ok(None)
    }

    /// Removes a key from a node that has to be replaced.
    #[inline(never)]
    fn remove_with_node(&self, key: &K, guard: &Guard<'_>) -> Result<Option<V>, Restart> {
        let place = Form::with(key, |bytes| self.locate(bytes, guard))?;
        if !matches!(place.found, Found::Leaf(_) | Found::Value) {
            return Ok(None);
        }
        let head = Self::head_if_values(key);
        let loss = self.lock_for_removal(&place, guard)?;
        let old = place.value().ok_or(Restart)?;
        self.take_out(&place, loss, head, guard);
        Ok(Some(Self::hand_out(place.leaf(), old, guard)))
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
    fn lock_for_insertion<'g>(&self, place: &Place<'g, K>) -> Result<Room<'g>, Restart> {
        let displaced = match place.found {
            Found::Diverges(..) => true,
            Found::Vacant => place.spot.node.is_crowded(),
            _ => false,
        };
        // The root is never crowded and has no prefix.
        match &place.parent {
            Some(above) if displaced => {
                let (above, node) = lock_both(above, &place.spot)?;
                Ok(Room {
                    node,
                    above: Some(above),
                })
            }
            _ => Ok(Room {
                node: place.spot.lock()?,
                above: None,
            }),
        }
    }

    /// Inserts a new entry at its place, and unlocks. No user code runs before that is done: a key
    /// that is not stored is dropped last.
    fn settle(&self, place: Place<'_, K>, room: Room<'_>, key: K, value: V, guard: &Guard<'_>) {
        self.len.add(1);
        let Place {
            spot,
            parent,
            found,
        } = place;
        let Spot {
            node,
            depth,
            symbol,
            ..
        } = spot;
        let value = Packed::new(value);
        match found {
            Found::Other(other, branch) => {
                let of_values = Self::has_values_at(branch.depth);
                let old = if of_values {
                    other.get().value::<V>().word()
                } else {
                    Child::leaf(other).word()
                };
                let (new, unused) = Self::entry_word(branch.depth, key, value);
                let mut entries = [(branch.old, old), (branch.new, new)];
                entries.sort_unstable_by_key(|(symbol, _)| *symbol);
                let branch = NodeRef::of(branch.depth, branch.prefix, &entries, of_values);
                Self::check_changed(branch, guard);
                node.replace(symbol, branch.child().word());
                drop(room);
                drop(unused);
                if of_values {
                    // SAFETY: this thread has unlinked the leaf. Its value has moved into the slot.
                    unsafe { other.retire::<V>(false, guard) };
                }
            }
            Found::Diverges(branch, rest) => {
                let (new, unused) = Self::entry_word(branch.depth, key, value);
                node.header().set_prefix(rest);
                let mut entries = [(branch.old, node.child().word()), (branch.new, new)];
                entries.sort_unstable_by_key(|(symbol, _)| *symbol);
                let branch = NodeRef::of(branch.depth, branch.prefix, &entries, false);
                Self::check_changed(branch, guard);
                if let Some(above) = parent {
                    above.node.replace(above.symbol, branch.child().word());
                    Self::check_changed(above.node, guard);
                }
                self.figures.splits.fetch_add(1, Ordering::Relaxed);
                drop(room);
                drop(unused);
            }
            _ => {
                let (new, unused) = Self::entry_word(depth, key, value);
                match (room.above, parent) {
                    (Some(lock_above), Some(above)) => {
                        let mut entries = Vec::with_capacity(node.children() + 1);
                        entries.extend(node.entries());
                        let place = entries.partition_point(|(other, _)| *other < symbol);
                        entries.insert(place, (symbol, new));
                        let prefix = node.header().snapshot().prefix();
                        let of_values = Self::has_values_at(depth);
                        let grown = NodeRef::of(depth, prefix, &entries, of_values);
                        Self::check_changed(grown, guard);
                        above.node.replace(above.symbol, grown.child().word());
                        Self::check_changed(above.node, guard);
                        room.node.obsolete();
                        Self::check_unlinked(node);
                        drop(lock_above);
                        self.figures.growths.fetch_add(1, Ordering::Relaxed);
                        // SAFETY: this thread has unlinked the node.
                        unsafe { node.retire(guard) };
                    }
                    _ => {
                        node.insert(symbol, new);
                        drop(room.node);
                    }
                }
                drop(unused);
            }
        }
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
    ) -> Result<Loss<'g>, Restart> {
        let Some(above) = place.parent.filter(|_| place.spot.is_sparse()) else {
            return Ok(Loss {
                node: place.spot.lock()?,
                above: None,
                heir: None,
            });
        };
        let (upper, node) = lock_both(&above, &place.spot)?;
        let mut loss = Loss {
            node,
            above: Some((above, upper)),
            heir: None,
        };
        if place.spot.node.children() == 2 && !Self::has_values_at(place.spot.depth) {
            let mut entries = place.spot.node.entries();
            let heir = entries.find(|(symbol, _)| *symbol != place.spot.symbol);
            // SAFETY: the node that has it is locked and linked.
            let heir = heir.map(|(_, word)| unsafe { Child::of_word(word).follow::<K>(guard) });
            if let Some(Is::Node(heir)) = heir {
                match heir.header().lock.try_lock() {
                    Ok(lock) => loss.heir = Some((heir, lock)),
                    Err(restart) => {
                        loss.unchanged();
                        return Err(restart);
                    }
                }
            }
        }
        Ok(loss)
    }

    /// Removes the entry at a place, and unlocks. The caller retires or hands out the leaf or
    /// value. `head` is that of the key, if slots are values.
    pub(super) fn take_out(
        &self,
        place: &Place<'_, K>,
        loss: Loss<'_>,
        head: u64,
        guard: &Guard<'_>,
    ) {
        let node = place.spot.node;
        let of_values = Self::has_values_at(place.spot.depth);
        if let Some((above, lock_above)) = loss.above {
            let rest: Vec<_> = node
                .entries()
                .filter(|(symbol, _)| *symbol != place.spot.symbol)
                .collect();
            let prefix = node.header().snapshot().prefix();
            let word = match rest[..] {
                // The only user code here; nothing has been changed yet.
                [(symbol, word)] if of_values => {
                    Self::leaf_of_value(Self::key_of_value(head, symbol), word)
                }
                [(symbol, word)] => match &loss.heir {
                    Some((heir, _)) => {
                        let behind = heir.header().snapshot().prefix();
                        let byte = (symbol - 1) as u8;
                        heir.header().set_prefix(prefix.joined(byte, behind));
                        heir.child().word()
                    }
                    None => word,
                },
                _ => NodeRef::of(place.spot.depth, prefix, &rest, of_values)
                    .child()
                    .word(),
            };
            self.len.add(-1);
            let figure = if rest.len() == 1 {
                &self.figures.merges
            } else {
                &self.figures.shrinks
            };
            figure.fetch_add(1, Ordering::Relaxed);
            above.node.replace(above.symbol, word);
            Self::check_changed(above.node, guard);
            loss.node.obsolete();
            Self::check_unlinked(node);
            drop((lock_above, loss.heir));
            // SAFETY: this thread has unlinked the node.
            unsafe { node.retire(guard) };
        } else {
            self.len.add(-1);
            node.remove(place.spot.symbol, of_values);
            drop(loss.node);
        }
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
