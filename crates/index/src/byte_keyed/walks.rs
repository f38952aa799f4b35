//! Operations on ranges: atomic scans, visits in batches, the first and the last entry, removals.

use super::Trie;
use super::bounds::{Bounds, ByteForm, with_bounds};
use super::item::{Item, ItemKey, key_of};
use crate::contract::{Direction, KeyRange, LAST_BATCH, Storable};
use crate::key::ByteKey;
use std::ops::{Bound, ControlFlow};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version, VersionGuard, VersionLock};

/// How often a walk tries to read a batch while other threads write there, before it locks the
/// nodes.
const ATTEMPTS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 8 };

/// The size of the first batch of a visit: as many entries as the cache misses that a core has
/// under way at once.
const FIRST_BATCH: usize = 16;

/// How many batches have the same size before the size doubles, up to [`LAST_BATCH`]. Batches begin
/// small because the visitor may break early.
const BATCHES_OF_A_SIZE: usize = 4;

/// How many batches of a visit one pin covers. A long visit must not keep unlinked memory
/// allocated.
const BATCHES_A_PIN: usize = 16;

/// How a walk holds a node: by a version of its lock, or locked.
pub(crate) enum Hold<'g> {
    Noted(Version),
    Locked(VersionGuard<'g>),
}

impl<'g> Hold<'g> {
    #[inline]
    pub(crate) fn new(lock: &'g VersionLock, locks: bool) -> Result<Self, Restart> {
        Ok(if locks {
            Self::Locked(lock.lock()?)
        } else {
            Self::Noted(lock.read()?)
        })
    }

    /// Validates the version, if it is noted. `lock` is the node's.
    #[inline]
    pub(crate) fn validate(&self, lock: &VersionLock) -> Result<(), Restart> {
        match self {
            Self::Noted(version) => lock.validate(*version),
            Self::Locked(_) => Ok(()),
        }
    }

    /// Releases the node, which has not been changed.
    pub(crate) fn release(self) {
        if let Self::Locked(lock) = self {
            lock.unchanged();
        }
    }
}

/// The visitor of a range.
type Visit<'v, K, V> = &'v mut dyn FnMut(&K, &V) -> ControlFlow<()>;

/// A cursor over the entries of a range, in order, in batches. Each batch is as of one moment.
pub(crate) trait Walk<'g, 'b, K, V>: Sized {
    /// A walk that has not begun. It locks the nodes that it visits if `locks`, and otherwise notes
    /// their versions.
    fn new(bounds: Bounds<'b>, direction: Direction, locks: bool, guard: &'g Guard<'g>) -> Self;

    /// Collects items until there are `limit`, or the range is over; then validates all noted
    /// versions.
    ///
    /// # Errors
    ///
    /// [`Restart`] if another thread changed something meanwhile. The walk then has to begin again.
    fn fill(&mut self, limit: usize) -> Result<(), Restart>;

    /// The entries of this batch.
    fn items(&mut self) -> &mut Vec<Item<'g, K, V>>;

    /// Drops the items, and the nodes that the walk has left.
    fn next_batch(&mut self);

    /// Releases all nodes. None has been changed under the locks of this walk.
    fn release(&mut self);

    /// Whether the walk has released all nodes, and cannot continue.
    fn is_released(&self) -> bool;
}

/// How a trie begins a walk, and removes the entries of one.
pub(crate) trait Walks<K: ByteKey, V: Storable>: Trie<K, V> {
    type Walk<'g, 'b>: Walk<'g, 'b, K, V>
    where
        Self: 'g;

    /// Begins a walk, or restarts it, at the root.
    fn begin_walk<'g>(
        &'g self,
        walk: &mut Self::Walk<'g, '_>,
        guard: &'g Guard<'_>,
    ) -> Result<(), Restart>;

    /// Runs `scan`, which may block on locks while it holds others.
    fn while_locking<R>(&self, scan: impl FnOnce() -> R) -> R {
        scan()
    }

    /// Unlinks the one entry that a walk has read, if it is still the first. Returns whether the
    /// nodes there have become sparse.
    fn unlink_first<'g>(
        &'g self,
        walk: &mut Self::Walk<'g, '_>,
        item: &Item<'g, K, V>,
        guard: &'g Guard<'_>,
    ) -> Result<bool, Restart>;

    /// Merges sparse nodes where this key was.
    fn tidy_up(&self, _key: &K, _guard: &Guard<'_>) {}

    /// Removes the entries between two bounds, in one atomic step. Returns the number of entries
    /// removed.
    fn cut(&self, bounds: Bounds<'_>, guard: &Guard<'_>) -> usize;

    /// Reads the first `limit` entries of a range: exactly these were there at one moment during
    /// this call.
    fn batch<'g, 'b>(
        &'g self,
        bounds: Bounds<'b>,
        direction: Direction,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Self::Walk<'g, 'b> {
        let mut walk = Self::Walk::new(bounds, direction, false, guard);
        let attempt = || self.try_batch(&mut walk, limit, guard);
        if self.attempt(ATTEMPTS, attempt).is_some() {
            return walk;
        }
        drop(walk);
        self.while_locking(|| {
            let mut walk = self.locked_batch(bounds, direction, limit, guard);
            walk.release();
            walk
        })
    }

    fn try_batch<'g>(
        &'g self,
        walk: &mut Self::Walk<'g, '_>,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Result<(), Restart> {
        self.begin_walk(walk, guard)?;
        walk.fill(limit)
    }

    /// Reads the first `limit` entries of a range. The walk holds the locks of all nodes of the
    /// batch.
    #[cold]
    fn locked_batch<'g, 'b>(
        &'g self,
        bounds: Bounds<'b>,
        direction: Direction,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Self::Walk<'g, 'b> {
        let mut walk = Self::Walk::new(bounds, direction, true, guard);
        self.persist(|| {
            let outcome = self.try_batch(&mut walk, limit, guard);
            if outcome.is_err() {
                walk.release();
            }
            outcome
        });
        walk
    }

    /// Appends the first `limit` entries of a range, as of one moment.
    fn copy_range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        if limit == 0 || range.is_empty() {
            return;
        }
        let guard = self.collector().pin();
        with_bounds::<Self::Form, _, _>(range, |bounds| {
            let mut walk = self.batch(bounds, direction, limit, &guard);
            out.reserve(walk.items().len());
            out.extend(walk.items().iter().map(Item::copy));
        });
    }

    /// The first entry of a range.
    fn first_of(&self, range: KeyRange<'_, K>, direction: Direction) -> Option<(K, V)> {
        let guard = self.collector().pin();
        with_bounds::<Self::Form, _, _>(range, |bounds| {
            let mut walk = self.batch(bounds, direction, 1, &guard);
            walk.items().first().map(Item::copy)
        })
    }

    /// Visits the entries of a range until `visit` breaks.
    fn visit_range(&self, range: KeyRange<'_, K>, direction: Direction, visit: Visit<'_, K, V>) {
        if range.is_empty() {
            return;
        }
        let mut size = FIRST_BATCH;
        let mut resume = with_bounds::<Self::Form, _, _>(range, |bounds| {
            self.visit_under_a_pin(bounds, direction, &mut size, visit)
        });
        while let Some(key) = resume {
            resume = with_bounds::<Self::Form, _, _>(range, |bounds| {
                let (mut low, mut high) = (bounds.low, bounds.high);
                match direction {
                    Direction::Ascending => low = Bound::Excluded(&key),
                    Direction::Descending => high = Bound::Excluded(&key),
                }
                self.visit_under_a_pin(Bounds { low, high }, direction, &mut size, visit)
            });
        }
    }

    /// Visits the batches of one pin. Returns the byte form of the last key visited, if there may
    /// be more.
    fn visit_under_a_pin(
        &self,
        bounds: Bounds<'_>,
        direction: Direction,
        size: &mut usize,
        visit: Visit<'_, K, V>,
    ) -> Option<Vec<u8>> {
        let guard = self.collector().pin();
        let mut walk = self.batch(bounds, direction, *size, &guard);
        for turn in 1.. {
            for item in walk.items().iter() {
                if item.show(&mut *visit).is_break() {
                    return None;
                }
            }
            if walk.items().len() < *size {
                return None;
            }
            if turn % BATCHES_OF_A_SIZE == 0 {
                *size = (*size * 2).min(LAST_BATCH);
            }
            // A walk that locked its nodes has released them.
            let broken_off = turn == BATCHES_A_PIN || walk.is_released();
            let last = walk.items().pop()?;
            walk.next_batch();
            if broken_off || walk.fill(*size).is_err() {
                return Some(last.show(|key, _| Self::Form::with(key, <[u8]>::to_vec)));
            }
        }
        None
    }

    /// Removes the first entry in this direction.
    fn pop(&self, direction: Direction) -> Option<(K, V)> {
        let guard = self.collector().pin();
        self.persist(|| self.try_pop(direction, &guard))
    }

    fn try_pop(&self, direction: Direction, guard: &Guard<'_>) -> Result<Option<(K, V)>, Restart> {
        let all = Bounds {
            low: Bound::Unbounded,
            high: Bound::Unbounded,
        };
        let mut walk = Self::Walk::new(all, direction, false, guard);
        self.try_batch(&mut walk, 1, guard)?;
        let Some(item) = walk.items().pop() else {
            return Ok(None);
        };
        // The key is made before anything is changed, because this may panic.
        let made = match item.key {
            ItemKey::Record(_) => None,
            ItemKey::Head(head) => Some(key_of(head)),
        };
        let is_sparse = self.unlink_first(&mut walk, &item, guard)?;
        // SAFETY: this thread has just unlinked the entry, keeps no reference to it, and has
        // released the locks.
        let (key, value) = unsafe { item.hand_out(made, guard) };
        if is_sparse {
            self.tidy_up(&key, guard);
        }
        Ok(Some((key, value)))
    }

    /// Removes a range; returns the number of entries removed.
    fn cut_range(&self, range: KeyRange<'_, K>) -> usize {
        if range.is_empty() {
            return 0;
        }
        let guard = self.collector().pin();
        with_bounds::<Self::Form, _, _>(range, |bounds| self.cut(bounds, &guard))
    }
}
