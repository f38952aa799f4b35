//! How this trie begins a walk, and removes the entries of one.

use super::Masstree;
use super::node::is_underfull;
use super::order::Order;
use super::shape::count;
use super::walk::Walk;
use crate::byte_keyed::{Bounds, Hold, Item, Walks, retire_all};
use crate::contract::{Direction, Storable};
use crate::key::ByteKey;
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, VersionGuard};

impl<K: ByteKey, V: Storable, const W: usize> Walks<K, V> for Masstree<K, V, W> {
    type Walk<'g, 'b> = Walk<'g, 'b, K, V, W>;

    fn begin_walk<'g>(
        &'g self,
        walk: &mut Walk<'g, '_, K, V, W>,
        _: &'g Guard<'_>,
    ) -> Result<(), Restart> {
        walk.begin(self.root())
    }

    /// Only a thread that holds `holders_of_many` blocks on a lock while it holds another. So such
    /// threads exclude one another first.
    fn while_locking<R>(&self, scan: impl FnOnce() -> R) -> R {
        let _alone = self.holders_of_many.lock();
        count(&self.counters.locked_scans);
        scan()
    }

    fn unlink_first<'g>(
        &'g self,
        walk: &mut Walk<'g, '_, K, V, W>,
        _: &Item<'g, K, V>,
        _: &'g Guard<'_>,
    ) -> Result<bool, Restart> {
        let visited = walk.frames.pop().ok_or(Restart)?.visited;
        let Hold::Noted(version) = visited.hold else {
            return Err(Restart);
        };
        let leaf = visited.leaf.get();
        let lock = leaf.lock().upgrade(version)?;
        // The lock covers the entry. It is still the first one if no leaf on the way has changed.
        if let Err(restart) = walk.validate() {
            lock.unchanged();
            return Err(restart);
        }
        let change = leaf.change();
        leaf.set_order(
            visited
                .order
                .removed(visited.taken.trailing_zeros() as usize),
        );
        drop(change);
        drop(lock);
        self.len.add(-1);
        Ok(is_underfull(visited.order.count() - 1, W))
    }

    fn tidy_up(&self, key: &K, guard: &Guard<'_>) {
        key.with_bytes(|bytes| self.tidy(bytes, guard));
    }

    /// Locks all leaves of the range, then changes one after the other, and releases none before
    /// all are changed.
    fn cut(&self, bounds: Bounds<'_>, guard: &Guard<'_>) -> usize {
        let alone = self.holders_of_many.lock();
        let mut walk = self.locked_batch(bounds, Direction::Ascending, usize::MAX, guard);
        // No user code runs from here on, so nothing can stop the removal.
        let (items, left) = (std::mem::take(&mut walk.items), walk.left);
        let mut sparse = Vec::new();
        let mut changes = Vec::new();
        let (mut locks, mut unchanged) = (Vec::new(), Vec::new());
        for visited in left {
            let Hold::Locked(lock) = visited.hold else {
                continue;
            };
            // A leaf without entries of the range also stays locked. Otherwise a key that is
            // inserted there would survive the removal, and its thread could still find entries
            // that the removal is about to take.
            if visited.taken == 0 {
                unchanged.push(lock);
                continue;
            }
            locks.push(lock);
            changes.push(visited.leaf.get().change());
            sparse.push(visited.first_item);
            // Lookups cannot validate anything here until all leaves have changed.
            let ranks = (0..visited.order.count()).rev();
            let taken = ranks.filter(|rank| visited.taken & 1 << rank != 0);
            visited
                .leaf
                .set_order(taken.fold(visited.order, Order::removed));
        }
        drop((changes, locks));
        unchanged.into_iter().for_each(VersionGuard::unchanged);
        drop(alone);
        self.len
            .add(-isize::try_from(items.len()).unwrap_or(isize::MAX));
        // SAFETY: this thread has just unlinked the entries.
        unsafe { retire_all(items.iter().copied(), guard) };
        for first in sparse {
            Self::with_bytes_of(&items[first], |bytes| self.tidy(bytes, guard));
        }
        items.len()
    }
}
