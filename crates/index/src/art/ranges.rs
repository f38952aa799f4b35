//! How this tree begins a walk, and removes the first entry of one.

use super::Art;
use super::locate::{Above, Found, Place, Spot};
use super::walk::{Hold, Walk};
use crate::byte_keyed::{Bounds, Item, ItemKey, Trie, Walks};
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
        let (frame, symbol) = walk.place_of_last();
        let Hold::Noted(version) = frame.hold else {
            return Err(Restart);
        };
        let parent = walk.frames.get(frame.above).and_then(|above| {
            let Hold::Noted(version) = above.hold else {
                return None;
            };
            Some(Above {
                node: above.node,
                version,
                symbol: frame.symbol,
            })
        });
        let (found, head) = match item.key {
            ItemKey::Record(leaf) => (Found::Leaf(leaf), 0),
            ItemKey::Head(head) => (Found::Value, head),
        };
        let place = Place {
            spot: Spot {
                node: frame.node,
                version,
                depth: frame.depth,
                symbol,
            },
            parent,
            found,
        };
        let loss = self.lock_for_removal(&place, guard)?;
        // The locks cover the entry. It is still the first one if no node on the way has changed.
        let others = walk.frames.iter();
        let mut others = others.filter(|frame| !loss.holds(frame.node, &place));
        if others.try_for_each(Walk::<K, V>::validate_frame).is_err() {
            loss.unchanged();
            return Err(Restart);
        }
        self.take_out(&place, loss, head, guard);
        Ok(false)
    }

    fn cut(&self, bounds: Bounds<'_>, guard: &Guard<'_>) -> usize {
        self.persist(|| self.try_cut(bounds, guard))
    }
}
