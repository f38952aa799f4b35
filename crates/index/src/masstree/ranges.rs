//! Reading ranges: scans of one moment, visits batch by batch, the ends; removing a range.

use super::Masstree;
use super::node::is_underfull;
use super::shape::count;
use super::walk::{Hold, Item, ItemKey, Walk};
use crate::bounds::{AsGiven, Bounds, with_bounds};
use crate::contract::{Direction, KeyRange, LAST_BATCH, Storable};
use crate::key::ByteKey;
use std::cell::RefCell;
use std::ops::{Bound, ControlFlow};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Backoff, Restart, retry};

/// How often a walk tries to read a batch while others write there; then it locks the leaves.
const ATTEMPTS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };

/// Entries of the first batch of a visit: as many as a core can have misses under way.
const FIRST_BATCH: usize = 16;

/// Batches of a size; then they are twice as large, up to [`LAST_BATCH`]. So little is read that
/// is not asked for.
const BATCHES_OF_A_SIZE: usize = 4;

/// Batches of a visit under one pin: a long visit must not keep what was unlinked alive.
const BATCHES_A_PIN: usize = 16;

/// What to do with one entry after the other.
type Visit<'v, K, V> = &'v mut dyn FnMut(&K, &V) -> ControlFlow<()>;

/// The key with this head.
fn key_of<K: ByteKey>(head: u64) -> K {
    K::from_head(head).expect("a key whose head is the key comes of its head")
}

impl<K: ByteKey, V: Storable> Item<'_, K, V> {
    /// Shows the entry, of a batch that has been read as a whole.
    #[inline]
    fn show<R>(&self, see: impl FnOnce(&K, &V) -> R) -> R {
        let key = match &self.key {
            ItemKey::Record(record) => {
                let key = record.get().key();
                // SAFETY: read by a walk that has been validated, or held the locks, and kept by
                // its guard.
                return unsafe { self.value.with(|value| see(key, value)) };
            }
            ItemKey::Head(head) => key_of::<K>(*head),
        };
        // SAFETY: as above.
        unsafe { self.value.with(|value| see(&key, value)) }
    }

    fn copy(&self) -> (K, V) {
        self.show(|key, value| (key.clone(), value.clone()))
    }
}

impl<K: ByteKey, V: Storable, const W: usize> Masstree<K, V, W> {
    /// Reads the first `limit` entries of a range: at the end of this call all of them were
    /// there, and no others, at one moment.
    fn batch<'g, 'b>(
        &'g self,
        bounds: Bounds<'b>,
        direction: Direction,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Walk<'g, 'b, K, V, W> {
        let mut walk = Walk::new(bounds, direction, false, guard);
        let backoff = Backoff::new();
        for _ in 0..ATTEMPTS {
            if self.try_batch(&mut walk, limit).is_ok() {
                return walk;
            }
            self.restarts.add(1);
            backoff.wait();
        }
        drop(walk);
        self.locked_batch(bounds, direction, limit, guard)
    }

    fn try_batch<'g>(
        &'g self,
        walk: &mut Walk<'g, '_, K, V, W>,
        limit: usize,
    ) -> Result<(), Restart> {
        walk.begin(self.root())?;
        walk.fill(limit)
    }

    /// The same with all leaves of the batch locked. Nobody else waits for a lock while holding
    /// one, so these wait for one another first.
    #[cold]
    fn locked_batch<'g, 'b>(
        &'g self,
        bounds: Bounds<'b>,
        direction: Direction,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Walk<'g, 'b, K, V, W> {
        let _alone = self.holders_of_many.lock();
        count(&self.counters.locked_scans);
        let walk = RefCell::new(Walk::new(bounds, direction, true, guard));
        let attempt = || {
            let mut walk = walk.borrow_mut();
            let outcome = self.try_batch(&mut walk, limit);
            if outcome.is_err() {
                walk.forget();
            }
            outcome
        };
        retry(attempt, || self.restarts.add(1));
        let mut walk = walk.into_inner();
        let items = std::mem::take(&mut walk.items);
        walk.forget();
        walk.items = items;
        walk
    }

    /// Appends the first `limit` entries of a range, as of one moment.
    pub(super) fn copy_range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        if limit == 0 || range.is_empty() {
            return;
        }
        let guard = self.collector.pin();
        with_bounds::<AsGiven, _, _>(range, |bounds| {
            let walk = self.batch(bounds, direction, limit, &guard);
            out.reserve(walk.items.len());
            out.extend(walk.items.iter().map(Item::copy));
        });
    }

    /// The first entry of a range.
    pub(super) fn first_of(&self, range: KeyRange<'_, K>, direction: Direction) -> Option<(K, V)> {
        let guard = self.collector.pin();
        with_bounds::<AsGiven, _, _>(range, |bounds| {
            let walk = self.batch(bounds, direction, 1, &guard);
            walk.items.first().map(Item::copy)
        })
    }

    /// Visits the entries of a range until `visit` breaks.
    pub(super) fn visit_range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: Visit<'_, K, V>,
    ) {
        if range.is_empty() {
            return;
        }
        let mut size = FIRST_BATCH;
        let mut resume = with_bounds::<AsGiven, _, _>(range, |bounds| {
            self.visit_under_a_pin(bounds, direction, &mut size, visit)
        });
        while let Some(key) = resume {
            resume = with_bounds::<AsGiven, _, _>(range, |bounds| {
                let (mut low, mut high) = (bounds.low, bounds.high);
                match direction {
                    Direction::Ascending => low = Bound::Excluded(&key),
                    Direction::Descending => high = Bound::Excluded(&key),
                }
                self.visit_under_a_pin(Bounds { low, high }, direction, &mut size, visit)
            });
        }
    }

    /// Visits some batches. Returns the byte form of the last key visited, if there may be more.
    fn visit_under_a_pin(
        &self,
        bounds: Bounds<'_>,
        direction: Direction,
        size: &mut usize,
        visit: Visit<'_, K, V>,
    ) -> Option<Vec<u8>> {
        let guard = self.collector.pin();
        let mut walk = self.batch(bounds, direction, *size, &guard);
        for turn in 1.. {
            for item in &walk.items {
                if item.show(&mut *visit).is_break() {
                    return None;
                }
            }
            if walk.items.len() < *size {
                return None;
            }
            if turn % BATCHES_OF_A_SIZE == 0 {
                *size = (*size * 2).min(LAST_BATCH);
            }
            // A batch that was read under locks has let go of its leaves.
            let broken_off = turn == BATCHES_A_PIN || walk.is_over();
            let last = walk.items.pop()?;
            walk.next_batch();
            if broken_off || walk.fill(*size).is_err() {
                return Some(Self::with_bytes_of(&last, <[u8]>::to_vec));
            }
        }
        None
    }

    /// Removes the first entry in this direction.
    pub(super) fn pop(&self, direction: Direction) -> Option<(K, V)> {
        let guard = self.collector.pin();
        retry(|| self.try_pop(direction, &guard), || self.restarts.add(1))
    }

    fn try_pop(&self, direction: Direction, guard: &Guard<'_>) -> Result<Option<(K, V)>, Restart> {
        let bounds = Bounds {
            low: Bound::Unbounded,
            high: Bound::Unbounded,
        };
        let mut walk = Walk::<K, V, W>::new(bounds, direction, false, guard);
        self.try_batch(&mut walk, 1)?;
        let (Some(item), Some(frame)) = (walk.items.first(), walk.frames.pop()) else {
            return Ok(None);
        };
        // Made before anything is changed, for this may panic.
        let key = match &item.key {
            ItemKey::Record(_) => None,
            ItemKey::Head(head) => Some(key_of::<K>(*head)),
        };
        let stop = frame.stop;
        let Hold::Noted(version) = stop.hold else {
            return Err(Restart);
        };
        let leaf = stop.leaf.get();
        let lock = leaf.lock().upgrade(version)?;
        // Locked is where the entry is; it is still the first if the way there is the same.
        if let Err(restart) = walk.validate() {
            lock.unchanged();
            return Err(restart);
        }
        let change = leaf.change();
        leaf.set_order(stop.order.removed(stop.taken.trailing_zeros() as usize));
        drop(change);
        drop(lock);
        self.len.add(-1);
        let (key, value) = match (&item.key, key) {
            // SAFETY: unlinked just now, by this thread alone, which keeps no reference to it.
            (ItemKey::Record(record), _) => unsafe {
                let copy = |key: &K, value: &V| (key.clone(), value.clone());
                record.hand_out(guard, |key, value| (key, value), copy)
            },
            // SAFETY: likewise.
            (_, Some(key)) => (key, unsafe { item.value.hand_out(guard) }),
            (_, None) => unreachable!("an item without a record has a head"),
        };
        if is_underfull(stop.order.count() - 1, W) {
            key.with_bytes(|bytes| self.tidy(bytes, guard));
        }
        Ok(Some((key, value)))
    }

    /// Removes a range as one step; returns how many entries it had.
    ///
    /// All its leaves are locked, then all kept from lookups, then changed.
    pub(super) fn cut(&self, range: KeyRange<'_, K>) -> usize {
        if range.is_empty() {
            return 0;
        }
        let guard = self.collector.pin();
        with_bounds::<AsGiven, _, _>(range, |bounds| {
            let alone = self.holders_of_many.lock();
            let walk = RefCell::new(Walk::<K, V, W>::new(
                bounds,
                Direction::Ascending,
                true,
                &guard,
            ));
            let attempt = || {
                let mut walk = walk.borrow_mut();
                let outcome = self.try_batch(&mut walk, usize::MAX);
                if outcome.is_err() {
                    walk.forget();
                }
                outcome
            };
            retry(attempt, || self.restarts.add(1));
            // The user's code has had its say: what follows happens.
            let mut walk = walk.into_inner();
            let (items, left) = (std::mem::take(&mut walk.items), walk.left);
            let mut sparse = Vec::new();
            let mut changes = Vec::new();
            let mut locks = Vec::new();
            for stop in left {
                let Hold::Locked(lock) = stop.hold else {
                    continue;
                };
                if stop.taken == 0 {
                    lock.unchanged();
                    continue;
                }
                locks.push(lock);
                changes.push(stop.leaf.get().change());
                sparse.push(stop.first_item);
                // Lookups see nothing of it until all are changed.
                let without = |order: super::order::Order, rank: usize| {
                    if stop.taken & 1 << rank == 0 {
                        order
                    } else {
                        order.removed(rank)
                    }
                };
                let order = (0..stop.order.count()).rev().fold(stop.order, without);
                stop.leaf.set_order(order);
            }
            drop((changes, locks, alone));
            self.len
                .add(-isize::try_from(items.len()).unwrap_or(isize::MAX));
            for item in &items {
                // SAFETY: unlinked just now, by this thread.
                unsafe { item.retire(&guard) };
            }
            for first in sparse {
                Self::with_bytes_of(&items[first], |bytes| self.tidy(bytes, &guard));
            }
            items.len()
        })
    }
}

impl<K: ByteKey, V: Storable> Item<'_, K, V> {
    /// Frees the entry once nobody pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// It has been unlinked, and is retired once.
    unsafe fn retire(&self, guard: &Guard<'_>) {
        match &self.key {
            // SAFETY: as the caller promises.
            ItemKey::Record(record) => unsafe { record.retire(guard) },
            // SAFETY: as the caller promises.
            ItemKey::Head(_) => unsafe { self.value.retire(guard) },
        }
    }
}
