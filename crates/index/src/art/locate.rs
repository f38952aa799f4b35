//! Descents of writers: from the root to the place of a key.

use super::Art;
use super::child::{Child, ChildRef, NodeRef};
use super::form::Form;
use super::header::{Agreement, END, Prefix, STORED, Snapshot, Symbol, symbol_at};
use super::leaf::common_bytes;
use super::lookup::SlotContent;
use crate::byte_keyed::{ByteForm, Record, RecordRef};
use crate::contract::Storable;
use crate::key::ByteKey;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version};

/// A slot of a node on the way of a key, at the version that the thread read.
#[derive(Clone, Copy)]
pub(super) struct SlotRef<'g> {
    pub(super) node: NodeRef<'g>,
    pub(super) version: Version,
    /// The symbol under which the key lies if it has the node's prefix.
    pub(super) symbol: Symbol,
}

impl SlotRef<'_> {
    /// The depth of the node, which never changes.
    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.node.header().snapshot().depth()
    }
}

/// Where a key is, or where it would be inserted, as of the versions noted in it.
pub(super) struct Place<'g, K> {
    pub(super) slot: SlotRef<'g>,
    /// The slot in the node above; `None` at the root.
    pub(super) parent: Option<SlotRef<'g>>,
    pub(super) state: KeyState<'g, K>,
}

/// Whether a key is at its place, and what an insertion has to do if it is not.
pub(super) enum KeyState<'g, K> {
    /// The leaf of the key.
    Leaf(RecordRef<'g, K>),
    /// The slot is the key's value.
    Value,
    /// The slot is vacant, so the key is absent.
    Vacant,
    /// The slot has the leaf of another key. An insertion makes this node for both.
    OtherLeaf(RecordRef<'g, K>, Branch),
    /// The key differs from the node's prefix. An insertion makes this node above, and the rest of
    /// the prefix stays.
    OtherPrefix(Branch, Prefix),
}

impl<'g, K> KeyState<'g, K> {
    /// If the key is present, its leaf, or `Some(None)` if its value is in the slot.
    #[inline]
    pub(super) fn present(&self) -> Option<Option<RecordRef<'g, K>>> {
        match self {
            KeyState::Leaf(leaf) => Some(Some(*leaf)),
            KeyState::Value => Some(None),
            _ => None,
        }
    }
}

/// The node that an insertion has to make where the new key differs from what is there.
pub(super) struct Branch {
    pub(super) depth: usize,
    pub(super) prefix: Prefix,
    /// The symbols of the new key and of what was there before.
    pub(super) new: Symbol,
    pub(super) old: Symbol,
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// Descends to the last node on the way of a key: all that an operation needs that changes one
    /// slot of it. `None` if the key is absent and its slot is not vacant, or if bytes of a prefix
    /// have not been compared: then [`locate`](Self::locate) has to find its place.
    #[inline(always)]
    pub(super) fn reach<'g>(
        &self,
        bytes: &[u8],
        guard: &'g Guard<'_>,
    ) -> Result<(SlotRef<'g>, Option<KeyState<'g, K>>), Restart> {
        let mut node = self.root(guard);
        let mut start = 0;
        let mut skipped = false;
        loop {
            let lock = &node.header().lock;
            let plain = node.plain();
            if let Some(full) = plain
                && !Self::has_values_at(start)
            {
                let word = full.slot(symbol_at(bytes, start)).load();
                if let SlotContent::Child(ChildRef::Node(next)) = Self::content(start, word, guard)
                {
                    node = next;
                    start += 1;
                    continue;
                }
            }
            let version = lock.read()?;
            let snapshot = node.header().snapshot();
            let depth = snapshot.depth();
            let mut slot = SlotRef {
                node,
                version,
                symbol: END,
            };
            if plain.is_none() {
                if !snapshot.begins_at(start) {
                    return Err(Restart);
                }
                let agreement = snapshot.agreement(bytes, start);
                if matches!(agreement, Agreement::Until(_)) || bytes.len() < depth {
                    lock.validate(version)?;
                    return Ok((slot, None));
                }
                skipped |= agreement == Agreement::Stored;
            }
            slot.symbol = symbol_at(bytes, depth);
            let word = match plain {
                Some(full) => full.find(snapshot.tail(), slot.symbol),
                None => node.find(snapshot.tail(), slot.symbol),
            };
            lock.validate(version)?;
            let child = match word.map(|word| Self::content(depth, word, guard)) {
                Some(SlotContent::Child(child)) => child,
                Some(SlotContent::Value(_)) => return Ok((slot, Some(KeyState::Value))),
                None => ChildRef::Nothing,
            };
            let state = match child {
                ChildRef::Node(next) => {
                    node = next;
                    start = depth + 1;
                    continue;
                }
                ChildRef::Leaf(leaf) if leaf.get().is(bytes) => Some(KeyState::Leaf(leaf)),
                ChildRef::Nothing if !skipped => Some(KeyState::Vacant),
                _ => None,
            };
            return Ok((slot, state));
        }
    }

    /// Descends to the place of a key.
    pub(super) fn locate<'g>(
        &self,
        bytes: &[u8],
        guard: &'g Guard<'_>,
    ) -> Result<Place<'g, K>, Restart> {
        match self.try_locate(bytes, false, guard)? {
            Some(place) => Ok(place),
            // It differs from a prefix in a byte that no node stores.
            None => match self.try_locate(bytes, true, guard)? {
                Some(place) => Ok(place),
                None => panic!(
                    "keys of an index keep their byte forms, and different keys have different \
                     ones: the key sought, or one that it met, has not"
                ),
            },
        }
    }

    /// If `thorough`, compares all bytes of long prefixes, which takes a leaf below. Otherwise
    /// returns `None` where that turns out to be necessary. A thorough descent returns `None` only
    /// if the byte form of a key has changed, or if several keys have the same one.
    #[inline]
    fn try_locate<'g>(
        &self,
        bytes: &[u8],
        thorough: bool,
        guard: &'g Guard<'_>,
    ) -> Result<Option<Place<'g, K>>, Restart> {
        let mut node = self.root(guard);
        let mut parent = None;
        let mut start = 0;
        // Whether bytes of a prefix on the way have not been compared.
        let mut skipped = false;
        loop {
            let lock = &node.header().lock;
            let version = lock.read()?;
            let snapshot = node.header().snapshot();
            let depth = snapshot.depth();
            if !snapshot.begins_at(start) {
                return Err(Restart);
            }
            let mut place = Place {
                slot: SlotRef {
                    node,
                    version,
                    symbol: END,
                },
                parent,
                state: KeyState::Vacant,
            };
            let agreement = snapshot.agreement(bytes, start);
            if agreement != Agreement::Whole {
                lock.validate(version)?;
                let parts = match agreement {
                    Agreement::Until(_) => true,
                    _ if thorough => {
                        let witness = Self::any_leaf(node, guard)?.get();
                        witness.agreement(bytes).0 < depth
                    }
                    _ => {
                        skipped = true;
                        false
                    }
                };
                if parts {
                    let divergence = Self::divergence(node, snapshot, bytes, start, guard)?;
                    return Ok(divergence
                        .filter(|_| !skipped)
                        .map(|state| Place { state, ..place }));
                }
                if bytes.len() < depth {
                    return Ok(None);
                }
            }
            let symbol = symbol_at(bytes, depth);
            place.slot.symbol = symbol;
            let word = node.find(snapshot.tail(), symbol);
            lock.validate(version)?;
            let child = match word {
                None => ChildRef::Nothing,
                Some(word) => match Self::content(depth, word, guard) {
                    SlotContent::Child(child) => child,
                    SlotContent::Value(_) => {
                        place.state = KeyState::Value;
                        return Ok(Some(place));
                    }
                },
            };
            match child {
                ChildRef::Node(next) => {
                    parent = Some(place.slot);
                    node = next;
                    start = depth + 1;
                }
                ChildRef::Nothing => {
                    let compared = !skipped || {
                        let witness = Self::any_leaf(node, guard)?.get();
                        witness.agreement(bytes).0 >= depth
                    };
                    return Ok(compared.then_some(place));
                }
                ChildRef::Leaf(leaf) => {
                    if leaf.get().is(bytes) {
                        place.state = KeyState::Leaf(leaf);
                        return Ok(Some(place));
                    }
                    let (common, old) = leaf.get().agreement(bytes);
                    let new = symbol_at(bytes, common);
                    // Keys with one symbol here would be one child of the new node, which must have
                    // two.
                    if common <= depth || old == new {
                        return Ok(None);
                    }
                    let branch = Branch {
                        depth: common,
                        prefix: Prefix::new(&bytes[depth + 1..common]),
                        new,
                        old,
                    };
                    place.state = KeyState::OtherLeaf(leaf, branch);
                    return Ok(Some(place));
                }
            }
        }
    }

    /// Where a key differs from the prefix of a node, of which this is a valid snapshot. `None` if
    /// the key has the whole prefix, although it did not have it before.
    fn divergence<'g>(
        node: NodeRef<'g>,
        snapshot: Snapshot,
        bytes: &[u8],
        start: usize,
        guard: &'g Guard<'_>,
    ) -> Result<Option<KeyState<'g, K>>, Restart> {
        let depth = snapshot.depth();
        let part = |path: &[u8]| {
            // `path` has the bytes from `start` to `depth`.
            let common = start + common_bytes(path, &bytes[start..]);
            let (old, rest) = path[common - start..].split_first()?;
            let branch = Branch {
                depth: common,
                prefix: Prefix::new(&bytes[start..common]),
                new: symbol_at(bytes, common),
                old: Symbol::from(*old) + 1,
            };
            Some(KeyState::OtherPrefix(branch, Prefix::new(rest)))
        };
        let length = depth - start;
        if length <= STORED {
            return Ok(part(&snapshot.prefix().stored()[..length]));
        }
        let witness: &Record<K> = Self::any_leaf(node, guard)?.get();
        Ok(Form::with(witness.key(), |whole| {
            whole.get(start..depth).and_then(part)
        }))
    }

    /// Some leaf below a node. The path of a node never changes while it lives, so the leaf has
    /// that path even if it has been unlinked by now. Nodes whose slots are values have short
    /// prefixes and no leaves; this is not called for them.
    pub(super) fn any_leaf<'g>(
        mut node: NodeRef<'g>,
        guard: &'g Guard<'_>,
    ) -> Result<RecordRef<'g, K>, Restart> {
        loop {
            let lock = &node.header().lock;
            let version = lock.read()?;
            let child = node.first(|_| true);
            lock.validate(version)?;
            let word = child.ok_or(Restart)?;
            // SAFETY: validated, and the node was reached since `guard` was pinned.
            match unsafe { Child::of_word(word).follow(guard) } {
                ChildRef::Leaf(leaf) => return Ok(leaf),
                ChildRef::Node(next) => node = next,
                ChildRef::Nothing => return Err(Restart),
            }
        }
    }
}
