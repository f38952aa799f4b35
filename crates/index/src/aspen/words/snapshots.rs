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
use tremula_sync::{Arc, Backoff, CachePadded, Mutex};

/// How many leaves a snapshot passes before it looks whether it has enough.
const LEAVES_A_LOOK: usize = 16;

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
    number: Moment,
    /// What has not been read; `None` at the end.
    rest: Option<Keys>,
}

impl Reading {
    /// The number of entries that have been copied and not been read.
    pub(crate) fn held(&self) -> usize {
        self.snapshots.count(self.number, u64::MAX)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if self.rest.is_some() {
            drop(self.snapshots.end(self.number));
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
    fn begin(&self, keys: Keys) -> Moment {
        let mut list = self.list.lock();
        list.last += 1;
        let number = list.last;
        list.under_way.push(UnderWay {
            number,
            keys,
            taken: Taken::default(),
        });
        self.clock.store(number, Ordering::Release);
        number
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

    /// Gives entries of a leaf, which are in order, or of a bucket to the snapshots that lack them:
    /// those with numbers above `preserved`, and up to `now`.
    fn give(&self, preserved: Moment, now: Moment, entries: &[Entry], is_leaf: bool) {
        let mut list = self.list.lock();
        for one in &mut list.under_way {
            if one.number > preserved && one.number <= now {
                one.taken.add(one.keys, entries, is_leaf);
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
    fn add(&mut self, keys: Keys, entries: &[Entry], is_leaf: bool) {
        if is_leaf {
            let from = entries.partition_point(|entry| entry.0 < keys.first);
            let to = entries.partition_point(|entry| entry.0 <= keys.last);
            if let Some(first) = entries[from..to.max(from)].first() {
                self.parts.insert(first.0, entries[from..to].to_vec());
            }
        } else {
            let is_wanted = |entry: &&Entry| (keys.first..=keys.last).contains(&entry.0);
            self.loose.extend(entries.iter().filter(is_wanted));
        }
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

    /// Shows the first `limit` entries in order.
    fn show(mut self, direction: Direction, limit: usize, sink: &mut impl Sink) {
        let mut parts: Vec<_> = self.parts.into_values().collect();
        if !self.loose.is_empty() {
            let mut all = parts.concat();
            all.append(&mut self.loose);
            // Nearly in order already.
            all.sort_by_key(|entry| entry.0);
            parts = vec![all];
        }
        if direction == Direction::Descending {
            parts.reverse();
            parts.iter_mut().for_each(|part| part.reverse());
        }
        let mut left = limit;
        for part in parts {
            let part = &part[..part.len().min(left)];
            left -= part.len();
            sink.take(part);
        }
    }
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
        self.snapshots.give(preserved, now, &entries, true);
        self.leaves.set_preserved(id, now);
        count(&self.counters.copied_leaves);
    }

    /// Preserves a hot leaf that this thread holds and is about to change.
    pub(super) fn preserve_whole(&self, whole: &Whole<'_>, now: Moment) {
        if now > 0 {
            whole.preserve(now, |preserved, entries| {
                self.snapshots.give(preserved, now, entries, false);
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
                self.snapshots.give(preserved, now, entries, false);
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
        mut between: impl FnMut(),
    ) {
        count(&self.counters.snapshots);
        let number = self.snapshots.begin(keys);
        let is_limited = limit < usize::MAX && direction == Direction::Ascending;
        let (mut at, mut leaves) = (keys.first, 0_usize);
        loop {
            let last = self.preserve_leaf_of(at, number);
            leaves += 1;
            let looks = is_limited && leaves.is_multiple_of(LEAVES_A_LOOK);
            if last >= keys.last || looks && self.snapshots.count(number, last) >= limit {
                break;
            }
            at = last + 1;
            between();
        }
        self.snapshots.end(number).show(direction, limit, sink);
    }

    /// Begins a snapshot that is read part by part. Values are words.
    pub(in crate::aspen) fn begin_snapshot(&self, keys: Option<Keys>) -> Reading {
        count(&self.counters.snapshots);
        Reading {
            snapshots: Arc::clone(&self.snapshots),
            number: keys.map_or(0, |keys| self.snapshots.begin(keys)),
            rest: keys,
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
        let Some(keys) = reading.rest else {
            return false;
        };
        let (number, mut at) = (reading.number, keys.first);
        let last = loop {
            let last = self.preserve_leaf_of(at, number);
            // At least one, so that a reader who wants none comes to an end, too.
            if last >= keys.last || self.snapshots.count(number, last) >= wanted.max(1) {
                break last;
            }
            at = last + 1;
        };
        let taken = if last < keys.last {
            reading.rest = Some(Keys::new(last + 1, keys.last));
            self.snapshots.take(number, last)
        } else {
            reading.rest = None;
            self.snapshots.end(number)
        };
        taken.show(Direction::Ascending, usize::MAX, sink);
        reading.rest.is_some()
    }

    /// Preserves the leaf of a key for a snapshot. Returns the leaf's greatest key. Since a leaf is
    /// found by the key, none need be locked meanwhile: a merge that takes entries behind the walk
    /// preserves them.
    fn preserve_leaf_of(&self, key: u64, number: Moment) -> u64 {
        let backoff = Backoff::new();
        loop {
            match self.find(key) {
                Ok(Found { id, leaf, .. }) => {
                    if let Ok(lock) = self.wait_for_lock(leaf, key) {
                        let last = leaf.covers(key).then(|| leaf.last());
                        if last.is_some() {
                            self.preserve_up_to(id, leaf, number);
                        }
                        lock.unchanged();
                        if let Some(last) = last {
                            return last;
                        }
                    }
                }
                Err(table) => {
                    if let Some(whole) = table.hold_all(key) {
                        self.preserve_whole(&whole, number);
                        let last = whole.keys().last;
                        whole.release();
                        return last;
                    }
                }
            }
            backoff.wait();
        }
    }
}
