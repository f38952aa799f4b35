//! Lookups of one key, and of many at once.
//!
//! A lookup validates each node before it goes on from it, but passes a full node without a prefix
//! by one atomic load. It need not return to a node that it has left. Each node was linked when the
//! lookup read it, or was replaced after the lookup began; and a node is on the way of the same
//! keys for as long as it lives. [`Snapshot::begins_at`] notices a prefix that was cut, so the
//! lookup skips no byte.
//!
//! [`Snapshot::begins_at`]: super::header::Snapshot::begins_at

use super::Art;
use super::child::{Child, ChildRef, NodeRef, Word};
use super::header::{Agreement, symbol_at};
use super::node::vacant;
use crate::byte_keyed::{Lookups, RecordRef};
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::kit::{Packed, prefetch};
use std::ops::ControlFlow;
use tremula_sync::Restart;
use tremula_sync::reclaim::Guard;

/// The memory that one lookup of a batch waits for.
pub(crate) enum Waiting<'g, K> {
    /// A node, and how many bytes of the key lead to it.
    Node(NodeRef<'g>, usize),
    /// The only leaf that can have the key.
    Leaf(RecordRef<'g, K>),
}

impl<K> Clone for Waiting<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Waiting<'_, K> {}

impl<K: ByteKey, V: Storable> Lookups<K, V> for Art<K, V> {
    type Lookup<'g> = Waiting<'g, K>;

    #[inline(always)]
    fn look_up(&self, bytes: &[u8], guard: &Guard<'_>) -> Result<Option<Packed<V>>, Restart> {
        let mut node = self.root(guard);
        let mut start = 0;
        loop {
            let (depth, word) = match Self::step(node, bytes, start)? {
                Some(found) => found,
                None => return Ok(None),
            };
            match Self::content(depth, word, guard) {
                SlotContent::Value(value) => return Ok(Some(value)),
                SlotContent::Child(ChildRef::Nothing) => return Ok(None),
                SlotContent::Child(ChildRef::Leaf(leaf)) => {
                    let leaf = leaf.get();
                    return Ok(leaf.is(bytes).then(|| leaf.value()));
                }
                SlotContent::Child(ChildRef::Node(next)) => {
                    node = next;
                    start = depth + 1;
                }
            }
        }
    }

    #[inline]
    fn begin_lookup<'g>(&'g self, guard: &'g Guard<'_>) -> Waiting<'g, K> {
        Waiting::Node(self.root(guard), 0)
    }

    #[inline]
    fn go_on<'g>(
        &'g self,
        lookup: &mut Waiting<'g, K>,
        bytes: &[u8],
        guard: &'g Guard<'_>,
    ) -> Result<ControlFlow<Option<Packed<V>>>, Restart> {
        let (node, start) = match *lookup {
            Waiting::Node(node, start) => (node, start),
            Waiting::Leaf(leaf) => {
                let leaf = leaf.get();
                return Ok(ControlFlow::Break(leaf.is(bytes).then(|| leaf.value())));
            }
        };
        let Some((depth, word)) = Self::step(node, bytes, start)? else {
            return Ok(ControlFlow::Break(None));
        };
        match Self::content(depth, word, guard) {
            SlotContent::Value(value) => return Ok(ControlFlow::Break(Some(value))),
            SlotContent::Child(ChildRef::Nothing) => return Ok(ControlFlow::Break(None)),
            SlotContent::Child(ChildRef::Node(next)) => {
                next.approach(symbol_at(bytes, depth + 1));
                *lookup = Waiting::Node(next, depth + 1);
            }
            SlotContent::Child(ChildRef::Leaf(leaf)) => {
                prefetch(leaf.get());
                *lookup = Waiting::Leaf(leaf);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// The depth of a node, and its word under the key.
    #[inline(always)]
    fn step(
        node: NodeRef<'_>,
        bytes: &[u8],
        start: usize,
    ) -> Result<Option<(usize, Word)>, Restart> {
        if let Some(full) = node.plain() {
            let word = full.slot(symbol_at(bytes, start)).load();
            if start != Self::VALUES_AT || word != vacant(true) {
                return Ok(Some((start, word)));
            }
        }
        Self::step_valid(node, bytes, start)
    }

    #[inline(always)]
    fn step_valid(
        node: NodeRef<'_>,
        bytes: &[u8],
        start: usize,
    ) -> Result<Option<(usize, Word)>, Restart> {
        let header = node.header();
        let version = header.lock.read()?;
        let snapshot = header.snapshot();
        let depth = snapshot.depth();
        if !snapshot.begins_at(start) {
            return Err(Restart);
        }
        let found = if bytes.len() < depth
            || matches!(snapshot.agreement(bytes, start), Agreement::Until(_))
        {
            None
        } else {
            node.find(snapshot.tail(), symbol_at(bytes, depth))
        };
        header.lock.validate(version)?;
        Ok(found.map(|word| (depth, word)))
    }

    /// Decodes a word that [`step`](Self::step) found in a node at this depth.
    #[inline(always)]
    pub(super) fn content<'g>(
        depth: usize,
        word: Word,
        guard: &'g Guard<'_>,
    ) -> SlotContent<'g, K, V> {
        if depth == Self::VALUES_AT {
            SlotContent::Value(Packed::of_word(word))
        } else {
            // SAFETY: it was loaded from a node that had been reached since `guard` was pinned, and
            // it has been validated, or the node is full. So the child was linked then, or when
            // that node was unlinked, which was after the pin.
            SlotContent::Child(unsafe { Child::of_word(word).follow(guard) })
        }
    }
}

/// What a slot holds.
pub(super) enum SlotContent<'g, K, V> {
    Value(Packed<V>),
    Child(ChildRef<'g, K>),
}
