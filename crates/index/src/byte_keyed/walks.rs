//! Ranges: scans of one moment, visits batch by batch, the ends, removals.

use super::Trie;
use super::bounds::{Bounds, ByteForm, with_bounds};
use super::item::{Item, ItemKey, key_of};
use crate::contract::{Direction, KeyRange, LAST_BATCH, Storable};
use crate::key::ByteKey;
use std::ops::{Bound, ControlFlow};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Backoff, Restart};

/// How often a walk tries to read a batch while others write there; then it locks the nodes.
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

/// A walk over the entries of a range in order, batch by batch, each as of one moment.
pub(crate) trait Walk<'g, 'b, K, V>: Sized {
    /// A walk that has not begun. It locks the nodes that it comes to, or only notes their
    /// versions.
    fn new(bounds: Bounds<'b>, direction: Direction, locks: bool, guard: &'g Guard<'g>) -> Self;

    /// Goes on until there are `limit` items, or the range is over; then validates all.
    ///
    /// # Errors
    ///
    /// [`Restart`] if something changed meanwhile. The walk then has to begin again.
    fn fill(&mut self, limit: usize) -> Result<(), Restart>;

    /// The entries of this batch.
    fn items(&mut self) -> &mut Vec<Item<'g, K, V>>;

    /// Forgets the items, and the nodes that the walk has left.
    fn next_batch(&mut self);

    /// Releases all nodes, of which none has been changed under the locks of this walk.
    fn let_go(&mut self);

    /// Whether the walk has released all nodes, and cannot go on.
    fn has_let_go(&self) -> bool;
}

/// How a trie is walked over, and what of it a walk removes.
pub(crate) trait Walks<K: ByteKey, V: Storable>: Trie<K, V> {
    type Walk<'g, 'b>: Walk<'g, 'b, K, V>
    where
        Self: 'g;

    /// Begins, or begins again, at the root.
    fn begin_walk<'g>(
        &'g self,
        walk: &mut Self::Walk<'g, '_>,
        guard: &'g Guard<'_>,
    ) -> Result<(), Restart>;

    /// Runs `scan`, which locks nodes and waits for locks while it holds others.
    fn while_locking<R>(&self, scan: impl FnOnce() -> R) -> R {
        scan()
    }

    /// Unlinks the entry that a walk has read, alone, if it is still the first. Returns whether
    /// what is left there is to be tidied up.
    fn unlink_first<'g>(
        &'g self,
        walk: &mut Self::Walk<'g, '_>,
        item: &Item<'g, K, V>,
        guard: &'g Guard<'_>,
    ) -> Result<bool, Restart>;

    /// Tidies up where this key was.
    fn tidy_up(&self, _key: &K, _guard: &Guard<'_>) {}

    /// Removes what lies between two bounds, as one step; returns how many entries that was.
    fn cut(&self, bounds: Bounds<'_>, guard: &Guard<'_>) -> usize;

    /// Reads the first `limit` entries of a range: at the end of this call all of them were
    /// there, and no others, at one moment.
    fn batch<'g, 'b>(
        &'g self,
        bounds: Bounds<'b>,
        direction: Direction,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Self::Walk<'g, 'b> {
        let mut walk = Self::Walk::new(bounds, direction, false, guard);
        let backoff = Backoff::new();
        for _ in 0..ATTEMPTS {
            if self.try_batch(&mut walk, limit, guard).is_ok() {
                return walk;
            }
            self.restarts().add(1);
            backoff.wait();
        }
        drop(walk);
        self.while_locking(|| {
            let mut walk = self.locked_batch(bounds, direction, limit, guard);
            walk.let_go();
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

    /// Reads the first `limit` entries of a range. The walk holds the locks of all nodes of this
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
                walk.let_go();
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

    /// Visits some batches. Returns the byte form of the last key visited, if there may be more.
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
            // A batch that was read under locks has let go of its nodes.
            let broken_off = turn == BATCHES_A_PIN || walk.has_let_go();
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
        // Made before anything is changed, for this may panic.
        let made = match item.key {
            ItemKey::Record(_) => None,
            ItemKey::Head(head) => Some(key_of(head)),
        };
        let is_sparse = self.unlink_first(&mut walk, &item, guard)?;
        // SAFETY: unlinked just now, by this thread alone, which keeps no reference to it, and
        // has let go of the locks.
        let (key, value) = unsafe { item.hand_out(made, guard) };
        if is_sparse {
            self.tidy_up(&key, guard);
        }
        Ok(Some((key, value)))
    }

    /// Removes a range; returns how many entries it had.
    fn cut_range(&self, range: KeyRange<'_, K>) -> usize {
        if range.is_empty() {
            return 0;
        }
        let guard = self.collector().pin();
        with_bounds::<Self::Form, _, _>(range, |bounds| self.cut(bounds, &guard))
    }
}
