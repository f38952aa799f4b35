//! Long ranges as of one moment, beside writers: each leaf is copied once, by the snapshot or by
//! the first writer that comes after its moment.
//!
//! ```text
//!   clock 7      leaves, with the moment up to which each is settled
//!   snapshot 7     [7]   [7]   [5]   [7]   [5]   [6]
//!                   └──── │     ↑     │            copied by the snapshot, which is here ↑
//!                         └───────────┘            copied by writers before they changed them
//! ```
//!
//! Scans that are short, or meet no writer, need none of this ([`scan`](super::scan)). A long scan
//! beside writers would fail its validation again and again, and if it locked all of its leaves, it
//! would stop them. So it takes a number, the next of the *clock*: the snapshot's moment is that
//! step of the clock. A leaf has the number up to which it is *settled*: the snapshots with numbers
//! up to that have what the leaf held at their moments. A writer looks at the clock when it has
//! locked the leaf. If the leaf is not settled up to now, it copies the entries for the snapshots
//! that are under way and lack them. The snapshot itself walks over its leaves, one lock after the
//! other, and does the same. In the end it has all parts of its range, which it puts in order.
//!
//! So a writer waits for a snapshot no longer than for a copy of a leaf, and a snapshot ends
//! however much is written beside it. In all, each leaf is copied once for a snapshot. While none
//! is under way, a writer compares two numbers.
//!
//! # Invariants
//!
//! 1. The entries of a leaf that is settled up to a number lower than that of a snapshot have not
//!    changed since the snapshot's moment, but for entries that came over from a neighbour in a
//!    split. Its lock guards the number up to which it is settled.
//! 2. A thread looks at the clock once it holds all leaves that it will change in one step, and
//!    settles them up to what it saw, no further: the step is before the moment of every later
//!    snapshot in all of its leaves. A merge, and an exchange of entries between two leaves,
//!    settles both up to one number.
//! 3. The halves of a split are settled up to the number of the leaf.
//! 4. A snapshot is in the list of those under way before the clock shows its number.

use super::node::LeafRef;
use super::point::locked;
use super::tree::{Tree, count};
use crate::contract::KeyRange;
use crate::kit::{SearchRange, Spec};
use std::any::Any;
use std::cmp::Ordering as KeyOrdering;
use std::ops::Bound;
use std::panic::RefUnwindSafe;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{CachePadded, Mutex};

/// How many leaves a snapshot passes before it looks whether it has enough.
const LEAVES_A_LOOK: usize = 16;

/// The snapshots under way, and the clock of their moments.
pub(super) struct Snapshots {
    /// The number of the last snapshot. Written only with the list locked.
    clock: CachePadded<AtomicU64>,
    /// Each is an [`UnderWay`] of the tree's keys and values.
    under_way: Mutex<Vec<Box<dyn Any + Send>>>,
}

/// A snapshot that is not complete yet.
struct UnderWay<K, V> {
    number: u64,
    low: Bound<K>,
    high: Bound<K>,
    /// What leaves held at its moment, in any order. None is empty.
    parts: Vec<Vec<(K, V)>>,
}

// A panic leaves the list as it was, and the clock with it.
impl RefUnwindSafe for Snapshots {}

impl Snapshots {
    pub(super) fn new() -> Self {
        Self {
            clock: CachePadded::new(AtomicU64::new(0)),
            under_way: Mutex::new(Vec::new()),
        }
    }

    /// The moment for a thread that has locked all leaves that it is about to change.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        // Acquire: pairs with the release in `begin`. The lock of a leaf orders it behind the walk
        // of a snapshot that has been there.
        self.clock.load(Ordering::Acquire)
    }

    /// Runs `look` with each snapshot under way.
    fn each<K: 'static, V: 'static>(&self, look: impl FnMut(&mut UnderWay<K, V>)) {
        let mut list = self.under_way.lock();
        list.iter_mut()
            .filter_map(|one| one.downcast_mut())
            .for_each(look);
    }

    /// Begins a snapshot: its moment is now.
    fn begin<K: Send + 'static, V: Send + 'static>(
        &self,
        (low, high): (Bound<K>, Bound<K>),
    ) -> u64 {
        let mut list = self.under_way.lock();
        let number = self.clock.load(Ordering::Relaxed) + 1;
        let parts = Vec::<Vec<(K, V)>>::new();
        list.push(Box::new(UnderWay {
            number,
            low,
            high,
            parts,
        }));
        self.clock.store(number, Ordering::Release);
        number
    }

    /// Ends a snapshot, and returns its parts.
    fn end<K: 'static, V: 'static>(&self, number: u64) -> Vec<Vec<(K, V)>> {
        let mut list = self.under_way.lock();
        let is = |one: &Box<dyn Any + Send>| {
            let one = one.downcast_ref::<UnderWay<K, V>>();
            one.is_some_and(|one| one.number == number)
        };
        let ended = list.iter().position(is).map(|at| list.swap_remove(at));
        // Not under the lock: a part may have to be dropped.
        drop(list);
        let ended = ended.and_then(|one| one.downcast::<UnderWay<K, V>>().ok());
        ended.map_or_else(Vec::new, |one| one.parts)
    }
}

/// A snapshot that has begun. Dropping it ends it, also if a clone panics.
pub(super) struct Begun<'t, S: Spec> {
    tree: &'t Tree<S>,
    number: u64,
}

impl<S: Spec> Begun<'_, S> {
    /// The first `limit` entries of the range that it was begun with.
    pub(super) fn complete(
        self,
        range: KeyRange<'_, S::Key>,
        limit: usize,
    ) -> Vec<(S::Key, S::Value)> {
        let Self { tree, number } = self;
        let bounds = SearchRange::new(range);
        let guard = tree.collector.pin();
        let (mut leaf, mut lock) = tree.retry(|| tree.lock_start(&bounds, &guard));
        let mut leaves = 0_usize;
        loop {
            tree.settle(leaf, number);
            leaves += 1;
            if leaves.is_multiple_of(LEAVES_A_LOOK) && tree.has_copied(number, limit, leaf) {
                lock.unchanged();
                break;
            }
            // Never an error: nothing is validated.
            let end = bounds.end_in(leaf, locked).unwrap_or(0);
            let next = leaf.next().filter(|_| end == leaf.count());
            let Some(next) = next else {
                lock.unchanged();
                break;
            };
            // SAFETY: the right neighbour of a leaf that this thread has locked stays linked.
            let next = unsafe { LeafRef::<S>::from_raw(next) };
            // Before this leaf is unlocked: so no entry comes from ahead of the walk behind it.
            let Ok(next_lock) = next.wait_to_lock() else {
                unreachable!("only who holds the left neighbour unlinks a leaf");
            };
            lock.unchanged();
            (leaf, lock) = (next, next_lock);
        }
        drop(guard);
        let mut parts = tree.snapshots.end::<S::Key, S::Value>(number);
        parts.sort_by(|one, other| match (one.first(), other.first()) {
            (Some(one), Some(other)) => one.0.cmp(&other.0),
            _ => KeyOrdering::Equal,
        });
        let mut entries = Vec::with_capacity(parts.iter().map(Vec::len).sum());
        parts.into_iter().for_each(|part| entries.extend(part));
        entries.truncate(limit);
        entries
    }
}

impl<S: Spec> Drop for Begun<'_, S> {
    fn drop(&mut self) {
        drop(self.tree.snapshots.end::<S::Key, S::Value>(self.number));
    }
}

impl<S: Spec> Tree<S> {
    /// Settles a leaf that this thread has locked and is about to change. Clones its entries if a
    /// snapshot under way lacks them; if a clone panics, nothing has happened.
    #[inline]
    pub(super) fn settle(&self, leaf: LeafRef<'_, S>, now: u64) {
        if leaf.settled() < now {
            self.settle_slowly(leaf, now);
        }
    }

    /// [`settle`](Self::settle) of the only leaf that changes.
    #[inline]
    pub(super) fn settle_now(&self, leaf: LeafRef<'_, S>) {
        self.settle(leaf, self.snapshots.now());
    }

    #[cold]
    fn settle_slowly(&self, leaf: LeafRef<'_, S>, now: u64) {
        let lacks = leaf.settled() + 1..=now;
        let mut wanted = Vec::new();
        self.snapshots.each(|one: &mut UnderWay<S::Key, S::Value>| {
            if lacks.contains(&one.number) {
                wanted.push((one.number, one.low.clone(), one.high.clone()));
            }
        });
        for (number, low, high) in wanted {
            let part = copy_of(leaf, KeyRange::new(low.as_ref(), high.as_ref()));
            if part.is_empty() {
                continue;
            }
            let mut part = Some(part);
            self.snapshots.each(|one: &mut UnderWay<S::Key, S::Value>| {
                if one.number == number {
                    one.parts.extend(part.take());
                }
            });
            count(&self.counters.copied_leaves);
        }
        leaf.set_settled(now);
    }

    /// The first `limit` entries of a range as of one moment, however much is written meanwhile.
    pub(super) fn snapshot_beside_writers(
        &self,
        range: KeyRange<'_, S::Key>,
        limit: usize,
    ) -> Vec<(S::Key, S::Value)> {
        self.begin_snapshot(range).complete(range, limit)
    }

    /// Begins a snapshot of a range: its moment is now.
    pub(super) fn begin_snapshot(&self, range: KeyRange<'_, S::Key>) -> Begun<'_, S> {
        let number = self.snapshots.begin::<_, S::Value>(range.to_keys());
        count(&self.counters.snapshots);
        Begun { tree: self, number }
    }

    /// Whether a snapshot, which has come to this leaf, has as many entries as it wants. It may
    /// have others from ahead, which writers copied.
    fn has_copied(&self, number: u64, limit: usize, leaf: LeafRef<'_, S>) -> bool {
        let Some(last) = leaf.count().checked_sub(1) else {
            return false;
        };
        if limit == usize::MAX {
            return false;
        }
        let last = leaf.key(last);
        let mut entries = 0;
        self.snapshots.each(|one: &mut UnderWay<S::Key, S::Value>| {
            if one.number == number {
                let is_behind = |part: &&Vec<(S::Key, S::Value)>| {
                    // SAFETY: the key is in a leaf that this thread has locked.
                    let is_below = |first: &S::Key| unsafe { last.with(|last| first <= last) };
                    part.first().is_some_and(|(first, _)| is_below(first))
                };
                entries = one.parts.iter().filter(is_behind).map(Vec::len).sum();
            }
        });
        entries >= limit
    }
}

/// Copies of what a leaf, which this thread has locked, holds of a range.
fn copy_of<S: Spec>(leaf: LeafRef<'_, S>, range: KeyRange<'_, S::Key>) -> Vec<(S::Key, S::Value)> {
    let indices = SearchRange::new(range).indices_in(leaf, locked);
    let indices = indices.unwrap_or(0..0);
    indices.clone().for_each(|at| leaf.prefetch_key(at));
    let entries = indices.map(|at| leaf.entry(at));
    // SAFETY: the entries are in a leaf that this thread has locked.
    entries.map(|entry| unsafe { entry.to_pair() }).collect()
}
