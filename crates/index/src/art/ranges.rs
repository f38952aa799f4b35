//! Reading ranges: scans of one moment, visits batch by batch, the ends.

use super::Art;
use super::form::Form;
use super::leaf;
use super::locate::{Above, Found, Place, Spot};
use super::walk::{Entry, Hold, Item, Walk};
use crate::bounds::{Bounds, ByteForm, with_bounds};
use crate::contract::{Direction, KeyRange, LAST_BATCH, Storable};
use crate::key::ByteKey;
use std::ops::{Bound, ControlFlow};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Backoff, Restart, retry};

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

impl<K: ByteKey, V: Storable> Item<'_, K, V> {
    /// Shows the entry, of a batch that has been read as a whole.
    fn show<R>(&self, see: impl FnOnce(&K, &V) -> R) -> R {
        let key = match &self.entry {
            Entry::Leaf(leaf) => {
                let key = leaf.get().key();
                // SAFETY: read by a walk that has been validated, or held the locks, and kept by
                // its guard.
                return unsafe { self.value.with(|value| see(key, value)) };
            }
            Entry::Head(head) => Art::<K, V>::key_of(*head),
        };
        // SAFETY: as above.
        unsafe { self.value.with(|value| see(&key, value)) }
    }

    fn copy(&self) -> (K, V) {
        self.show(|key, value| (key.clone(), value.clone()))
    }
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// Reads the first `limit` entries of a range: at the end of this call all of them were
    /// there, and no others, at one moment.
    fn batch<'g, 'b>(
        &self,
        bounds: Bounds<'b>,
        direction: Direction,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Walk<'g, 'b, K, V> {
        let mut walk = Walk::new(bounds, direction, false, guard);
        let backoff = Backoff::new();
        for _ in 0..ATTEMPTS {
            if self.try_batch(&mut walk, limit, guard).is_ok() {
                return walk;
            }
            self.restarts.add(1);
            backoff.wait();
        }
        drop(walk);
        self.locked_batch(bounds, direction, limit, guard)
    }

    fn try_batch<'g>(
        &self,
        walk: &mut Walk<'g, '_, K, V>,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Result<(), Restart> {
        walk.begin(self.root(guard), 0)?;
        walk.fill(limit)
    }

    /// The same with all nodes of the batch locked, each after those above it and before it. The
    /// root comes first: so of two who do this one waits there for the other, and nobody waits
    /// for a node above, or before, one that he holds.
    #[cold]
    fn locked_batch<'g, 'b>(
        &self,
        bounds: Bounds<'b>,
        direction: Direction,
        limit: usize,
        guard: &'g Guard<'_>,
    ) -> Walk<'g, 'b, K, V> {
        let walk = std::cell::RefCell::new(Walk::new(bounds, direction, true, guard));
        let attempt = || {
            let mut walk = walk.borrow_mut();
            let outcome = self.try_batch(&mut walk, limit, guard);
            if outcome.is_err() {
                walk.frames.clear();
            }
            outcome
        };
        retry(attempt, || self.restarts.add(1));
        let mut walk = walk.into_inner();
        for frame in walk.frames.drain(..) {
            if let Hold::Locked(lock) = frame.hold {
                lock.unchanged();
            }
        }
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
        with_bounds::<Form<K>, _, _>(range, |bounds| {
            let walk = self.batch(bounds, direction, limit, &guard);
            out.reserve(walk.items.len());
            out.extend(walk.items.iter().map(Item::copy));
        });
    }

    /// The first entry of a range.
    pub(super) fn first_of(&self, range: KeyRange<'_, K>, direction: Direction) -> Option<(K, V)> {
        let guard = self.collector.pin();
        with_bounds::<Form<K>, _, _>(range, |bounds| {
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
        let mut resume = with_bounds::<Form<K>, _, _>(range, |bounds| {
            self.visit_under_a_pin(bounds, direction, &mut size, visit)
        });
        while let Some(key) = resume {
            resume = with_bounds::<Form<K>, _, _>(range, |bounds| {
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
            // A batch that was read under locks has let go of its nodes.
            let broken_off = turn == BATCHES_A_PIN || walk.frames.is_empty();
            let last = walk.items.pop()?;
            walk.next_batch();
            if broken_off || walk.fill(*size).is_err() {
                let bytes = last.show(|key, _| Form::with(key, <[u8]>::to_vec));
                return Some(bytes);
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
        let mut walk = Walk::<K, V>::new(bounds, direction, false, guard);
        self.try_batch(&mut walk, 1, guard)?;
        let Some(item) = walk.items.first() else {
            return Ok(None);
        };
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
        let (found, head) = match item.entry {
            Entry::Leaf(leaf) => (Found::Leaf(leaf), 0),
            Entry::Head(head) => (Found::Value, head),
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
        // Made before anything is changed, for this may panic.
        let key = match item.entry {
            Entry::Leaf(_) => None,
            Entry::Head(head) => Some(Self::key_of(head)),
        };
        let loss = self.lock_for_removal(&place, guard)?;
        // Locked is where the entry is; it is still the first if the way there is the same.
        let others = walk.frames.iter();
        let mut others = others.filter(|frame| !loss.holds(frame.node, &place));
        if others.try_for_each(Walk::<K, V>::validate_frame).is_err() {
            loss.unchanged();
            return Err(Restart);
        }
        self.take_out(&place, loss, head, guard);
        Ok(Some(match (&item.entry, key) {
            // SAFETY: unlinked under the locks, by this thread alone, which keeps no reference to
            // it, and has let go of the locks.
            (Entry::Leaf(leaf), _) => unsafe {
                let copy = |key: &K, value: &V| (key.clone(), value.clone());
                leaf::hand_out(leaf.pointer(), guard, |key, value| (key, value), copy)
            },
            // SAFETY: likewise.
            (_, Some(key)) => (key, unsafe { item.value.hand_out(guard) }),
            (_, None) => unreachable!("an entry without a leaf has a head"),
        }))
    }
}
