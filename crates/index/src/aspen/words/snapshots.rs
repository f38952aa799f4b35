//! Long ranges as of one moment, beside writers: each leaf is copied once, by the snapshot or by
//! the first writer that comes after its moment.
//!
//! It works as in the [B+tree](crate::b_tree), whose module `snapshots` has the picture: a snapshot
//! takes a number, the next of the clock, and walks over its leaves; the first thread that changes
//! a leaf *preserves* it, that is, copies what the snapshots under way lack. There are two
//! differences.
//!
//! - The clock stands at 0 while no snapshot is under way. Then a writer looks at nothing else: the
//!   number up to which a leaf is preserved lies apart from the leaf.
//! - Of a hot leaf, each bucket has such a number. So threads go on appending beside a snapshot,
//!   which holds all buckets while it copies them, as any scan does.
//!
//! A copy of a value is a copy of its word. The thread that takes the snapshot is pinned all the
//! time if words are pointers, so no value that it may have is freed. If they are not, a snapshot
//! can also be read part by part, as slowly as one likes: a [`Reading`].
//!
//! # Invariants
//!
//! 1. What a leaf or bucket holds that is preserved up to a number lower than that of a snapshot
//!    under way has not changed since the snapshot's moment, but for entries that came over in a
//!    split. Its lock guards the number.
//! 2. A thread looks at the clock once it holds all leaves that it will change in one step, and
//!    preserves them up to what it saw, no further: the step is before the moment of every later
//!    snapshot in all of its leaves. A merge preserves both leaves up to one number; what makes a
//!    hot leaf smaller or ordinary preserves all of its buckets so.
//! 3. The halves of a split are preserved up to the number of the leaf.
//! 4. A snapshot is in the list of those under way before the clock shows its number, and until it
//!    has all leaves of its range, or its reading is dropped.
//! 5. A number that was preserved up to while no snapshot was under way means nothing: all later
//!    snapshots have higher ones.
//! 6. A snapshot gets each key once, and the keys of its parts do not overlap. So once it has the
//!    leaves up to a key, nothing that comes to it later lies before what it has up to there.

use super::build::Batch;
use super::format::Entry;
use super::hot::{HeldBucket, Whole};
use super::leaf::Leaf;
use super::ranges::{Keys, Sink};
use super::{Found, Words, count};
use crate::contract::Direction;
use crate::snapshot::NOT_BEGUN_HERE;
use std::collections::BTreeMap;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{Arc, Backoff, CachePadded, Mutex, Restart};

/// A number of the clock; 0 if no snapshot is under way.
pub(super) type Moment = u64;

/// The snapshots under way, and the clock of their moments.
pub(super) struct Snapshots {
    /// The number of the last snapshot, or 0 if none is under way. Written only with the list
    /// locked.
    clock: CachePadded<AtomicU64>,
    list: Mutex<List>,
}

struct List {
    /// The number of the last snapshot.
    last: Moment,
    under_way: Vec<UnderWay>,
}

/// A snapshot that is not complete yet.
struct UnderWay {
    number: Moment,
    keys: Keys,
    taken: Taken,
}

/// What a snapshot has of its moment, and nobody has read.
#[derive(Default)]
struct Taken {
    /// Of leaves, each in order and under its first key. None is empty.
    parts: BTreeMap<u64, Vec<Entry>>,
    /// Of buckets, in no order.
    loose: Vec<Entry>,
}

/// A snapshot that is read part by part. Dropping it ends it.
pub(crate) struct Reading {
    snapshots: Arc<Snapshots>,
    /// `None` at the end.
    walk: Option<Walk>,
}

/// How far a snapshot has come.
#[derive(Clone, Copy)]
struct Walk {
    number: Moment,
    /// The number of the last snapshot before it that was under way when it began, or 0.
    others: Moment,
    keys: Keys,
    /// It goes on with the leaf of this key.
    at: u64,
}

impl Reading {
    /// The number of entries that have been copied and not been read.
    pub(crate) fn held(&self) -> usize {
        let count = |walk: Walk| self.snapshots.count(walk.number, u64::MAX);
        self.walk.map_or(0, count)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(walk) = self.walk {
            drop(self.snapshots.end(walk.number));
        }
    }
}

impl Snapshots {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            clock: CachePadded::new(AtomicU64::new(0)),
            list: Mutex::new(List {
                last: 0,
                under_way: Vec::new(),
            }),
        })
    }

    /// The moment for a thread that has locked all leaves that it is about to change.
    #[inline(always)]
    pub(super) fn now(&self) -> Moment {
        // Acquire: pairs with the release in `begin`. The lock of a leaf orders it behind the walk
        // of a snapshot that has been there.
        self.clock.load(Ordering::Acquire)
    }

    /// Begins a snapshot: its moment is now.
    fn begin(&self, keys: Keys) -> Walk {
        let mut list = self.list.lock();
        list.last += 1;
        let number = list.last;
        let others = list.under_way.iter().map(|one| one.number).max();
        list.under_way.push(UnderWay {
            number,
            keys,
            taken: Taken::default(),
        });
        self.clock.store(number, Ordering::Release);
        Walk {
            number,
            others: others.unwrap_or(0),
            keys,
            at: keys.first,
        }
    }

    /// Takes out what a snapshot has up to a key.
    fn take(&self, number: Moment, up_to: u64) -> Taken {
        let mut list = self.list.lock();
        let one = (list.under_way.iter_mut()).find(|one| one.number == number);
        one.map_or_else(Taken::default, |one| one.taken.take(up_to))
    }

    /// Ends a snapshot, and returns what it has.
    fn end(&self, number: Moment) -> Taken {
        let mut list = self.list.lock();
        let ended = (list.under_way.iter())
            .position(|one| one.number == number)
            .map(|at| list.under_way.swap_remove(at));
        if list.under_way.is_empty() {
            self.clock.store(0, Ordering::Release);
        }
        ended.map_or_else(Taken::default, |one| one.taken)
    }

    /// Gives the entries of a leaf to the snapshots that lack them: those with numbers above
    /// `preserved`, and up to `now`.
    fn give_leaf(&self, preserved: Moment, now: Moment, entries: &[Entry]) {
        // Copied before the list is locked, which all writers want.
        let mut copy = entries.to_vec();
        let mut list = self.list.lock();
        let lacking = list.under_way.iter_mut();
        let mut lacking = lacking
            .filter(|one| one.number > preserved && one.number <= now)
            .peekable();
        while let Some(one) = lacking.next() {
            let is_last = lacking.peek().is_none();
            let part = if is_last {
                std::mem::take(&mut copy)
            } else {
                copy.clone()
            };
            one.taken.add_part(one.keys, part);
        }
    }

    /// The same with the entries of a bucket, which are in no order.
    fn give_bucket(&self, preserved: Moment, now: Moment, entries: &[Entry]) {
        let mut list = self.list.lock();
        for one in &mut list.under_way {
            if one.number > preserved && one.number <= now {
                one.taken.add_loose(one.keys, entries);
            }
        }
    }

    /// The number of entries that a snapshot has up to a key, and of those in the same parts.
    fn count(&self, number: Moment, up_to: u64) -> usize {
        let list = self.list.lock();
        let one = list.under_way.iter().find(|one| one.number == number);
        one.map_or(0, |one| one.taken.count(up_to))
    }
}

impl Taken {
    /// Adds what the entries of a leaf have of a range.
    fn add_part(&mut self, keys: Keys, mut entries: Vec<Entry>) {
        let wanted = within(keys, &entries);
        if wanted.len() < entries.len() {
            entries = wanted.to_vec();
        }
        if let Some(first) = entries.first() {
            self.parts.insert(first.0, entries);
        }
    }

    fn add_loose(&mut self, keys: Keys, entries: &[Entry]) {
        let is_wanted = |entry: &&Entry| (keys.first..=keys.last).contains(&entry.0);
        self.loose.extend(entries.iter().filter(is_wanted));
    }

    fn count(&self, up_to: u64) -> usize {
        let parts = self.parts.range(..=up_to).map(|(_, part)| part.len());
        let loose = self.loose.iter().filter(|entry| entry.0 <= up_to);
        parts.sum::<usize>() + loose.count()
    }

    /// Takes out the parts that begin up to a key, and what else there is up to it.
    fn take(&mut self, up_to: u64) -> Self {
        let mut parts = std::mem::take(&mut self.parts);
        if let Some(behind) = up_to.checked_add(1) {
            self.parts = parts.split_off(&behind);
        }
        let loose = self.loose.extract_if(.., |entry| entry.0 <= up_to);
        Self {
            loose: loose.collect(),
            parts,
        }
    }

    /// What it has, in order.
    fn in_order(mut self) -> Vec<Vec<Entry>> {
        let parts: Vec<_> = self.parts.into_values().collect();
        if self.loose.is_empty() {
            return parts;
        }
        let mut all = parts.concat();
        all.append(&mut self.loose);
        // Nearly in order already.
        all.sort_by_key(|entry| entry.0);
        vec![all]
    }
}

impl Sink for Vec<Entry> {
    fn take(&mut self, entries: &[Entry]) {
        self.extend_from_slice(entries);
    }

    fn clear(&mut self) {
        Vec::clear(self);
    }
}

/// Those of a range among entries in order.
fn within(keys: Keys, entries: &[Entry]) -> &[Entry] {
    let to = entries.partition_point(|entry| entry.0 <= keys.last);
    let from = entries[..to].partition_point(|entry| entry.0 < keys.first);
    &entries[from..to]
}

impl<const UNITS: usize> Words<UNITS> {
    /// Preserves a leaf that this thread has locked and is about to change, if no other one changes
    /// in the same step.
    #[inline(always)]
    pub(super) fn preserve(&self, id: u32, leaf: &Leaf) {
        self.preserve_up_to(id, leaf, self.snapshots.now());
    }

    /// Preserves a leaf that this thread has locked and is about to change.
    #[inline(always)]
    pub(super) fn preserve_up_to(&self, id: u32, leaf: &Leaf, now: Moment) {
        if now > 0 {
            self.preserve_slowly(id, leaf, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn preserve_slowly(&self, id: u32, leaf: &Leaf, now: Moment) {
        let preserved = self.leaves.preserved(id);
        if preserved >= now {
            return;
        }
        let mut entries = Batch::new();
        entries.take(leaf, 0, u64::MAX);
        self.snapshots.give_leaf(preserved, now, &entries);
        self.leaves.set_preserved(id, now);
        count(&self.counters.copied_leaves);
    }

    /// Preserves a hot leaf that this thread holds and is about to change.
    pub(super) fn preserve_whole(&self, whole: &Whole<'_>, now: Moment) {
        if now > 0 {
            whole.preserve(now, |preserved, entries| {
                self.snapshots.give_bucket(preserved, now, entries);
            });
            count(&self.counters.copied_leaves);
        }
    }

    /// Preserves a bucket that this thread has locked and is about to change.
    #[inline]
    pub(super) fn preserve_bucket(&self, bucket: &HeldBucket<'_>) {
        let now = self.snapshots.now();
        if now > 0 {
            bucket.preserve(now, |preserved, entries| {
                self.snapshots.give_bucket(preserved, now, entries);
            });
        }
    }

    /// Puts the first `limit` entries of a range into `sink`, all as of one moment, however much is
    /// written meanwhile. If values are not words, the thread is pinned.
    pub(in crate::aspen) fn collect_beside_writers(
        &self,
        keys: Keys,
        direction: Direction,
        limit: usize,
        sink: &mut impl Sink,
    ) {
        self.collect_leaf_by_leaf(keys, direction, limit, sink, || ());
    }

    /// As `collect_beside_writers`. Calls `between` behind each leaf.
    pub(super) fn collect_leaf_by_leaf(
        &self,
        keys: Keys,
        direction: Direction,
        limit: usize,
        sink: &mut impl Sink,
        between: impl FnMut(),
    ) {
        let mut reading = self.begin_snapshot(Some(keys));
        match direction {
            Direction::Ascending => self.read_on(&mut reading, limit, limit, sink, between),
            Direction::Descending => {
                let mut all: Vec<Entry> = Vec::new();
                self.read_on(&mut reading, usize::MAX, usize::MAX, &mut all, between);
                all.reverse();
                all.truncate(limit);
                sink.take(&all);
            }
        }
    }

    /// Begins a snapshot. If it is to be read by a thread that is not pinned, values are words.
    pub(in crate::aspen) fn begin_snapshot(&self, keys: Option<Keys>) -> Reading {
        count(&self.counters.snapshots);
        Reading {
            snapshots: Arc::clone(&self.snapshots),
            walk: keys.map(|keys| self.snapshots.begin(keys)),
        }
    }

    /// Puts the next entries of a snapshot into `sink`: `wanted` at least, unless it ends. Returns
    /// whether it goes on.
    pub(in crate::aspen) fn read_snapshot(
        &self,
        reading: &mut Reading,
        wanted: usize,
        sink: &mut impl Sink,
    ) -> bool {
        assert!(
            Arc::ptr_eq(&reading.snapshots, &self.snapshots),
            "{NOT_BEGUN_HERE}"
        );
        self.read_on(reading, wanted.max(1), usize::MAX, sink, || ());
        reading.walk.is_some()
    }

    /// Puts the next entries of a snapshot into `sink`: `wanted` at least unless it ends, and
    /// `most` at most. Calls `between` behind each leaf.
    fn read_on(
        &self,
        reading: &mut Reading,
        wanted: usize,
        most: usize,
        sink: &mut impl Sink,
        mut between: impl FnMut(),
    ) {
        let mut shown = 0;
        while let Some(walk) = &mut reading.walk {
            let mut show = |part: &[Entry]| {
                let part = &part[..part.len().min(most - shown)];
                shown += part.len();
                sink.take(part);
            };
            let (last, entries) = self.take_part(walk);
            match entries {
                Some(entries) => show(within(walk.keys, &entries)),
                None => {
                    let taken = self.snapshots.take(walk.number, last);
                    taken.in_order().iter().for_each(|part| show(part));
                }
            }
            if last < walk.keys.last {
                walk.at = last + 1;
                self.look_ahead(walk.at, Direction::Ascending);
            } else {
                drop(self.snapshots.end(walk.number));
                reading.walk = None;
            }
            if shown >= wanted {
                break;
            }
            between();
        }
    }

    /// The greatest key of the leaf at which a walk is, and the leaf's entries unless somebody has
    /// preserved them. Since a leaf is found by the key, none need be locked meanwhile: a merge
    /// that takes entries behind the walk preserves them.
    fn take_part(&self, walk: &Walk) -> (u64, Option<Batch>) {
        let backoff = Backoff::new();
        loop {
            match self.find(walk.at) {
                Ok(found) => {
                    let last = found.leaf.last();
                    if let Ok(entries) = self.copy_for(walk, found) {
                        return (last, entries);
                    }
                }
                Err(table) => {
                    if let Some(whole) = table.hold_all(walk.at) {
                        self.preserve_whole(&whole, walk.number);
                        let last = whole.keys().last;
                        whole.release();
                        return (last, None);
                    }
                }
            }
            backoff.wait();
        }
    }

    /// The entries of a leaf that the snapshot of a walk lacks. They are copied before the leaf is
    /// locked, so that writers hardly wait: if one has changed it meanwhile, that has preserved it.
    fn copy_for(&self, walk: &Walk, found: Found<'_>) -> Result<Option<Batch>, Restart> {
        let Found { id, leaf, version } = found;
        if self.leaves.preserved(id) >= walk.number {
            return leaf.lock.validate(version).map(|()| None);
        }
        let mut entries = Batch::new();
        entries.take(leaf, 0, u64::MAX);
        let lock = leaf.lock.upgrade(version)?;
        // The walk of another snapshot may have preserved it.
        let preserved = self.leaves.preserved(id);
        let lacks = preserved < walk.number;
        if lacks {
            if preserved < walk.others {
                self.snapshots.give_leaf(preserved, walk.others, &entries);
            }
            self.leaves.set_preserved(id, walk.number);
        }
        lock.unchanged();
        Ok(lacks.then_some(entries))
    }
}
