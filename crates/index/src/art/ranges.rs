//! How this tree begins a walk, and removes the first entry of one.

use super::Art;
use super::locate::{KeyState, Place, SlotRef};
use super::walk::{Frame, Walk};
use crate::byte_keyed::{Bounds, Hold, Item, ItemKey, Trie, Walks};
use crate::contract::Storable;
use crate::key::ByteKey;
use tremula_sync::Restart;
use tremula_sync::reclaim::Guard;

/// A walk that locks takes the lock of each node after those above it and before it. The root comes
/// first. So of two threads that do this, one waits at the root for the other, and no thread waits
/// for a node above, or before, one that it holds.
impl<K: ByteKey, V: Storable> Walks<K, V> for Art<K, V> {
    type Walk<'g, 'b> = Walk<'g, 'b, K, V>;

    fn begin_walk<'g>(
        &'g self,
        walk: &mut Walk<'g, '_, K, V>,
        guard: &'g Guard<'_>,
    ) -> Result<(), Restart> {
        walk.begin(self.root(guard), 0)
    }

    fn unlink_first<'g>(
        &'g self,
        walk: &mut Walk<'g, '_, K, V>,
        item: &Item<'g, K, V>,
        guard: &'g Guard<'_>,
    ) -> Result<bool, Restart> {
        let (frame, symbol) = walk.last_slot();
        let slot = |frame: &Frame<'g>, symbol| match frame.hold {
            Hold::Noted(version) => Some(SlotRef {
                node: frame.node,
                version,
                symbol,
            }),
            Hold::Locked(_) => None,
        };
        let above = walk.frames.get(frame.above);
        let (state, head) = match item.key {
            ItemKey::Record(leaf) => (KeyState::Leaf(leaf), 0),
            ItemKey::Head(head) => (KeyState::Value, head),
        };
        let place = Place {
            slot: slot(frame, symbol).ok_or(Restart)?,
            parent: above.and_then(|above| slot(above, frame.symbol)),
            state,
        };
        let locks = self.lock_for_removal(&place, guard)?;
        // The locks cover the entry. It is still the first one if no node on the way has changed.
        let others = walk.frames.iter();
        let mut others = others.filter(|frame| !locks.cover(frame.node, &place));
        if others.try_for_each(Frame::validate).is_err() {
            locks.unchanged();
            return Err(Restart);
        }
        self.remove_at(&place, locks, head, guard);
        Ok(false)
    }

    fn cut(&self, bounds: Bounds<'_>, guard: &Guard<'_>) -> usize {
        self.persist(|| self.try_cut(bounds, guard))
    }
}
