//! Long ranges as of one moment, beside writers: a writer that comes to a leaf before the snapshot
//! notes what its key held, and the snapshot undoes that.
//!
//! ```text
//!   clock 7      leaves, with the moment up to which each is settled
//!   snapshot 7     [7]   [7]   [5]   [7]   [5]   [5, k was 3]
//!                   │     │     ↑     │                └───── noted by a writer
//!                   │     │     │     └───── copied by a writer that had no room to note
//!                   │     │     └─ the snapshot comes here next
//!                   └─────┴───── copied by the snapshot
//! ```
//!
//! Scans that are short, or meet no writer, need none of this ([`scan`](super::scan)). A long scan
//! beside writers would fail its validation again and again, and if it locked all of its leaves, it
//! would stop them. So it takes a number, the next of the *clock*: the snapshot's moment is that
//! step of the clock. A leaf has the number up to which it is *settled*: the snapshots with numbers
//! up to that have what the leaf held at their moments. A writer looks at the clock when it has
//! locked the leaf. If the leaf is not settled up to now, and a snapshot under way lacks it, the
//! writer *notes* what its key holds ([`Undo`]). If there is no more room to note, or entries go to
//! another leaf, or a later snapshot has begun since the notes, it *settles* the leaf: it copies
//! what the leaf held for the snapshots that lack it. The snapshot itself walks over its leaves,
//! one lock after the other, and settles each. In the end it has all parts of its range, which it
//! puts in order.
//!
//! So a writer waits for a snapshot no longer than for a copy of a leaf, and a snapshot ends
//! however much is written beside it. In all, each leaf is copied once for a snapshot, and by a
//! writer only if many of its keys change. While none is under way, a writer compares two numbers.
//!
//! # Invariants
//!
//! 1. What a leaf holds, with what is noted there undone, has not changed since the moment of a
//!    snapshot whose number is higher than that up to which the leaf is settled, but for entries
//!    that came over from a neighbour in a split. Its lock guards the number and the notes.
//! 2. A thread looks at the clock once it holds all leaves that it will change in one step, and
//!    notes or settles for what it saw, no further: the step is before the moment of every later
//!    snapshot in all of its leaves. A merge, and an exchange of entries between two leaves,
//!    settles both up to one number.
//! 3. What is noted in a leaf has changed at one number of the clock, the moment of the [`Undo`],
//!    which is above that up to which the leaf is settled. If a change comes at a later one, or
//!    entries leave or come over, the leaf is first settled up to it. The halves of a split are
//!    settled up to the number of the leaf, and nothing is noted in them.
//! 4. A snapshot is in the list of those under way before the clock shows its number, and until it
//!    has been read to its end, or dropped; and for as long as a writer copies a leaf for it.
//! 5. The ranges of keys of the leaves that were copied for a snapshot do not overlap, as of the
//!    moments of the copies: a leaf takes over keys only from one that is settled in that step (2).
//!    So what a snapshot shows up to the last key of a settled leaf is in that leaf's copy or in
//!    parts that begin below.
//! 6. No code of the user runs under the lock of the list. What a snapshot leaves behind is dropped
//!    by a thread that has locked no leaf: a writer is never the last to have it (4), and the list
//!    gives it up only to a thread that begins or ends a snapshot. What was noted is retired.
//! 7. What is noted for a snapshot that is dropped stays until the leaf is settled: when it is
//!    written to at a later number of the clock, or is read for a later snapshot.

use super::node::{LeafRef, SearchResult};
use super::point::locked;
use super::tree::{Tree, count};
use super::undo::{Undo, copy_of};
use crate::contract::KeyRange;
use crate::kit::{SearchKey, SearchRange, Spec};
use crate::snapshot::NOT_BEGUN_HERE;
use std::any::Any;
use std::cmp::Ordering as KeyOrdering;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::panic::RefUnwindSafe;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Arc, CachePadded, Mutex};

/// The snapshots under way, and the clock of their moments.
pub(super) struct Snapshots {
    /// The number of the last snapshot. Written only with the list locked.
    clock: CachePadded<AtomicU64>,
    /// Each is an [`UnderWay`] of the tree's keys and values.
    under_way: Mutex<Vec<Box<dyn Any + Send>>>,
}

/// What is known of a snapshot that has not been read to its end.
struct Shared<K, V> {
    low: Bound<K>,
    high: Bound<K>,
    parts: Mutex<Parts<K, V>>,
}

/// What is known of a snapshot of a tree.
type SharedBy<S> = Arc<Shared<<S as Spec>::Key, <S as Spec>::Value>>;

impl<K, V> Shared<K, V> {
    fn range(&self) -> KeyRange<'_, K> {
        KeyRange::new(self.low.as_ref(), self.high.as_ref())
    }
}

/// What leaves held at the moment of a snapshot, and what nobody has read.
struct Parts<K, V> {
    in_order: BTreeSet<Part<K, V>>,
    /// All of them together.
    entries: usize,
}

/// What a leaf held of the range: not nothing.
struct Part<K, V>(Vec<(K, V)>);

/// A snapshot that has not been read to its end, as writers see it.
struct UnderWay<K, V> {
    /// [`ENDED`] once it has been read to its end, while writers still copy for it.
    number: u64,
    shared: Arc<Shared<K, V>>,
}

impl<K, V> UnderWay<K, V> {
    /// Whether nobody reads the snapshot any more, and no writer copies for it. Final if the list
    /// is locked, without which nobody gets a reference from here.
    fn is_dropped(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

/// No snapshot has this number, and every leaf is settled up to it.
const ENDED: u64 = 0;

/// How far somebody has read a snapshot.
pub(crate) struct Reading<K, V> {
    number: u64,
    /// What is left of the range begins here.
    low: Bound<K>,
    shared: Arc<Shared<K, V>>,
    is_over: bool,
}

impl<K, V> Reading<K, V> {
    /// The number of entries that have been copied and not been read.
    pub(crate) fn held(&self) -> usize {
        let parts = self.shared.parts.lock();
        parts.entries
    }
}

impl<K, V> Part<K, V> {
    fn first(&self) -> Option<&K> {
        self.0.first().map(|(key, _)| key)
    }
}

impl<K: Ord, V> Ord for Part<K, V> {
    fn cmp(&self, other: &Self) -> KeyOrdering {
        self.first().cmp(&other.first())
    }
}

impl<K: Ord, V> PartialOrd for Part<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<KeyOrdering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, V> PartialEq for Part<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K: Ord, V> Eq for Part<K, V> {}

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

    /// The number of those under way, with those that have been dropped and not been found so.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) fn under_way(&self) -> usize {
        self.under_way.lock().len()
    }

    /// Begins a snapshot: its moment is now.
    fn begin<K, V>(&self, (low, high): (Bound<K>, Bound<K>)) -> Reading<K, V>
    where
        K: Clone + Send + Sync + 'static,
        V: Send + 'static,
    {
        let shared = Arc::new(Shared {
            low: low.clone(),
            high,
            parts: Mutex::new(Parts {
                in_order: BTreeSet::new(),
                entries: 0,
            }),
        });
        let mut under_way = Box::new(UnderWay {
            number: ENDED,
            shared: Arc::clone(&shared),
        });
        let mut list = self.under_way.lock();
        let dropped = take_dropped::<K, V>(&mut list);
        let number = self.clock.load(Ordering::Relaxed) + 1;
        under_way.number = number;
        list.push(under_way);
        self.clock.store(number, Ordering::Release);
        drop(list);
        drop(dropped);
        Reading {
            number,
            low,
            shared,
            is_over: false,
        }
    }

    /// Ends a snapshot. The caller has a reference of its own to what is shared.
    fn end<K: 'static, V: 'static>(&self, number: u64) {
        let mut list = self.under_way.lock();
        let mut all = list.iter_mut().enumerate();
        let ended = all.find_map(|(at, one)| {
            let one = one.downcast_mut::<UnderWay<K, V>>();
            one.filter(|one| one.number == number).map(|one| (at, one))
        });
        let ended = ended.and_then(|(at, one)| {
            one.number = ENDED;
            // The list's reference, and the caller's: no writer copies for it.
            (Arc::strong_count(&one.shared) == 2).then_some(at)
        });
        let ended = ended.map(|at| list.swap_remove(at));
        let dropped = take_dropped::<K, V>(&mut list);
        drop(list);
        drop((ended, dropped));
    }

    /// Whether a snapshot was begun here, and has not ended.
    fn knows<K: 'static, V: 'static>(&self, reading: &Reading<K, V>) -> bool {
        let list = self.under_way.lock();
        let mut all = list.iter().filter_map(|one| one.downcast_ref());
        all.any(|one: &UnderWay<K, V>| Arc::ptr_eq(&one.shared, &reading.shared))
    }
}

/// Takes the snapshots that have been dropped out of the list.
fn take_dropped<K: 'static, V: 'static>(
    list: &mut Vec<Box<dyn Any + Send>>,
) -> Vec<Box<dyn Any + Send>> {
    let is_dropped = |one: &mut Box<dyn Any + Send>| {
        let one = one.downcast_ref::<UnderWay<K, V>>();
        one.is_none_or(UnderWay::is_dropped)
    };
    list.extract_if(.., is_dropped).collect()
}

impl<S: Spec> Tree<S> {
    /// Notes what a key holds that is about to change, and which is or belongs at `at` in a leaf
    /// that this thread has locked, if a snapshot under way lacks the leaf. If a comparison or a
    /// clone panics, nothing has happened.
    #[inline]
    pub(super) fn note(
        &self,
        leaf: LeafRef<'_, S>,
        now: u64,
        key: &SearchKey<'_, S>,
        at: SearchResult,
        guard: &Guard<'_>,
    ) {
        if leaf.settled() < now {
            self.note_slowly(leaf, now, key, at, guard);
        }
    }

    /// [`note`](Self::note) where only one leaf changes.
    #[inline]
    pub(super) fn note_now(
        &self,
        leaf: LeafRef<'_, S>,
        key: &SearchKey<'_, S>,
        at: SearchResult,
        guard: &Guard<'_>,
    ) {
        self.note(leaf, self.snapshots.now(), key, at, guard);
    }

    #[cold]
    #[inline(never)]
    fn note_slowly(
        &self,
        leaf: LeafRef<'_, S>,
        now: u64,
        key: &SearchKey<'_, S>,
        at: SearchResult,
        guard: &Guard<'_>,
    ) {
        // SAFETY: this thread has locked the leaf, and is done with this when it goes on.
        match unsafe { leaf.undo() } {
            Some(undo) if undo.moment == now => {
                if !undo.note(leaf, key, at) {
                    self.settle_slowly(leaf, now, guard);
                }
                return;
            }
            Some(_) => self.settle_changes(leaf, guard),
            None => {}
        }
        if !self.is_lacked(leaf, now) {
            return leaf.set_settled(now);
        }
        let mut undo = Box::new(Undo::new(now));
        let _has_room = undo.note(leaf, key, at);
        // SAFETY: this thread has locked the leaf, in which nothing is noted now.
        unsafe { leaf.set_undo(undo) };
    }

    /// Settles a leaf that this thread has locked up to the moment at which changes are noted, if
    /// any are, so that none is noted, and entries may go to another leaf.
    pub(super) fn settle_changes(&self, leaf: LeafRef<'_, S>, guard: &Guard<'_>) {
        // SAFETY: this thread has locked the leaf, and is done with this.
        if let Some(moment) = unsafe { leaf.undo() }.map(|undo| undo.moment) {
            self.settle_slowly(leaf, moment, guard);
        }
    }

    /// Settles a leaf that this thread has locked. Clones its entries if a snapshot under way lacks
    /// them; if a clone panics, the leaf is as it was.
    #[inline]
    pub(super) fn settle(&self, leaf: LeafRef<'_, S>, now: u64, guard: &Guard<'_>) {
        if leaf.settled() < now {
            self.settle_slowly(leaf, now, guard);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_slowly(&self, leaf: LeafRef<'_, S>, now: u64, guard: &Guard<'_>) {
        // SAFETY: this thread has locked the leaf, and is done with this before it takes it out.
        if let Some(undo) = unsafe { leaf.undo() } {
            let (moment, up_to) = (undo.moment, undo.moment.min(now));
            self.give(leaf, Some(undo), up_to);
            if moment > now {
                // It stays for the snapshots in between.
                return;
            }
            // SAFETY: this thread has locked the leaf.
            if let Some(undo) = unsafe { leaf.take_undo() } {
                // SAFETY: nothing leads to it any more, and any thread may drop keys and values.
                // Not dropped here, under the lock.
                unsafe { guard.defer_unchecked(move || drop(undo)) };
            }
        }
        if leaf.settled() < now {
            self.give(leaf, None, now);
        }
    }

    /// Gives the snapshots under way that lack it, with numbers up to `now`, what a leaf holds, or
    /// held before what is noted. Settles it up to there.
    fn give(&self, leaf: LeafRef<'_, S>, undo: Option<&Undo<S>>, now: u64) {
        for shared in self.those_without(leaf, now) {
            let part = copy_of(leaf, undo, shared.range());
            if !part.is_empty() {
                let mut parts = shared.parts.lock();
                parts.entries += part.len();
                parts.in_order.insert(Part(part));
                count(&self.counters.copied_leaves);
            }
        }
        leaf.set_settled(now);
    }

    /// Whether a snapshot under way with a number up to `now` lacks what a leaf, in which nothing
    /// is noted, holds.
    fn is_lacked(&self, leaf: LeafRef<'_, S>, now: u64) -> bool {
        self.those_without(leaf, now).into_iter().any(|shared| {
            let indices = SearchRange::new(shared.range()).indices_in(leaf, locked);
            indices.is_ok_and(|indices| !indices.is_empty())
        })
    }

    /// The snapshots under way, with numbers up to `now`, up to which a leaf is not settled.
    fn those_without(&self, leaf: LeafRef<'_, S>, now: u64) -> Vec<SharedBy<S>> {
        let lacks = leaf.settled() + 1..=now;
        let mut wanted = Vec::new();
        let list = self.snapshots.under_way.lock();
        for one in list.iter() {
            let one = one.downcast_ref::<UnderWay<S::Key, S::Value>>();
            let one = one.filter(|one| lacks.contains(&one.number) && !one.is_dropped());
            wanted.extend(one.map(|one| Arc::clone(&one.shared)));
        }
        wanted
    }

    /// The first `limit` entries of a range as of one moment, however much is written meanwhile.
    pub(super) fn snapshot_beside_writers(
        &self,
        range: KeyRange<'_, S::Key>,
        limit: usize,
    ) -> Vec<(S::Key, S::Value)> {
        let mut entries = Vec::new();
        let mut reading = self.begin_snapshot(range);
        if self.read_snapshot(&mut reading, limit, &mut entries) {
            self.snapshots.end::<S::Key, S::Value>(reading.number);
        }
        entries.truncate(limit);
        entries
    }

    /// Begins a snapshot of a range: its moment is now.
    pub(super) fn begin_snapshot(&self, range: KeyRange<'_, S::Key>) -> Reading<S::Key, S::Value> {
        count(&self.counters.snapshots);
        self.snapshots.begin(range.to_keys())
    }

    /// Appends the next entries of a snapshot, `wanted` at least unless it ends. Returns whether it
    /// goes on. If a clone panics, the snapshot has ended.
    pub(super) fn read_snapshot(
        &self,
        reading: &mut Reading<S::Key, S::Value>,
        wanted: usize,
        out: &mut Vec<(S::Key, S::Value)>,
    ) -> bool {
        if reading.is_over {
            return false;
        }
        // Otherwise leaves would count as settled for snapshots that are still to begin.
        assert!(self.snapshots.knows(reading), "{NOT_BEGUN_HERE}");
        reading.is_over = true;
        // Put into `out` when no lock is held: that may have to grow.
        let (mut taken, mut count) = (Vec::new(), 0);
        let (number, low, shared) = (reading.number, reading.low.clone(), &reading.shared);
        let bounds = SearchRange::new(KeyRange::new(low.as_ref(), shared.high.as_ref()));
        let guard = self.collector.pin();
        let (mut leaf, mut lock) = self.retry(|| self.lock_start(&bounds, &guard));
        loop {
            self.settle(leaf, number, &guard);
            if let Some(last) = leaf.count().checked_sub(1) {
                let last = leaf.key(last);
                // SAFETY: the key is in a leaf that this thread has locked.
                count += unsafe { last.with(|last| take_up_to(&shared.parts, last, &mut taken)) };
                // At least one, so that a reader who wants none comes to an end, too.
                if count >= wanted.max(1) {
                    // SAFETY: the key is in a leaf that this thread has locked.
                    let last = unsafe { last.to_key() };
                    lock.unchanged();
                    (reading.low, reading.is_over) = (Bound::Excluded(last), false);
                    put(taken, out);
                    return true;
                }
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
        self.snapshots.end::<S::Key, S::Value>(number);
        let mut parts = shared.parts.lock();
        parts.entries = 0;
        let rest = std::mem::take(&mut parts.in_order);
        drop(parts);
        taken.extend(rest.into_iter().map(|part| part.0));
        put(taken, out);
        false
    }
}

/// Takes the parts that begin at or below a key. Returns how many entries they have.
fn take_up_to<K: Ord, V>(
    parts: &Mutex<Parts<K, V>>,
    last: &K,
    taken: &mut Vec<Vec<(K, V)>>,
) -> usize {
    let mut parts = parts.lock();
    let before = parts.entries;
    let is_below = |part: &Part<K, V>| part.first().is_some_and(|first| first <= last);
    while parts.in_order.first().is_some_and(is_below) {
        let part = parts.in_order.pop_first().map(|part| part.0);
        let part = part.unwrap_or_default();
        parts.entries -= part.len();
        taken.push(part);
    }
    before - parts.entries
}

fn put<K, V>(taken: Vec<Vec<(K, V)>>, out: &mut Vec<(K, V)>) {
    out.reserve(taken.iter().map(Vec::len).sum());
    taken.into_iter().for_each(|part| out.extend(part));
}
