//! Long ranges as of one moment, beside writers.
//!
//! As in the [B+tree](crate::b_tree), whose module `snapshots` has the picture, a snapshot takes a
//! number, the next of the clock, and walks over its leaves. A thread that changes a leaf to which
//! it has not come yet *notes* what the key held ([`Undo`]), and the snapshot undoes that. If there
//! is no more room to note, or entries go to another leaf, the thread *preserves* the leaf: it
//! copies what the snapshots under way lack of it.
//!
//! - The clock stands at 0 while no snapshot is under way. Then a writer looks at nothing else: the
//!   number up to which a leaf is preserved lies apart from the leaf, with what is noted.
//! - Of a hot leaf, each bucket has such a number, and nothing is noted. So threads go on appending
//!   beside a snapshot, which holds all buckets while it copies them, as any scan does.
//!
//! A copy of a value is a copy of its word. The thread that takes the snapshot is pinned all the
//! time if words are pointers, so no value that it may have is freed. If they are not, a snapshot
//! can also be read part by part, as slowly as one likes: a [`Reading`].
//!
//! # Invariants
//!
//! 1. What a leaf or bucket holds, with what is noted there undone, has not changed since the
//!    moment of a snapshot under way whose number is higher than that up to which it is preserved,
//!    but for entries that came over in a split. Its lock guards the numbers and the notes.
//! 2. A thread looks at the clock once it holds all leaves that it will change in one step, and
//!    notes or preserves for the moments up to what it saw, no further: the step is before the
//!    moment of every later snapshot in all of its leaves. A merge preserves both leaves up to one
//!    number; what makes a hot leaf smaller or ordinary preserves all of its buckets so.
//! 3. What is noted in a leaf has changed at one number of the clock, the moment of the [`Undo`].
//!    If a change comes at a later one, or entries leave, the leaf is first preserved up to it. The
//!    halves of a split are preserved up to the number of the leaf, and nothing is noted in them.
//! 4. A snapshot is in the list of those under way before the clock shows its number, and until it
//!    has all leaves of its range, or its reading is dropped.
//! 5. A number that was preserved up to or noted at while no snapshot was under way means nothing:
//!    all later snapshots have higher ones. So do notes from before the oldest one under way.
//! 6. A snapshot gets each key once, and the keys of its parts do not overlap. So once it has the
//!    leaves up to a key, nothing that comes to it later lies before what it has up to there.

use super::build::Batch;
use super::format::Entry;
use super::hot::{HeldBucket, Whole};
use super::leaf::Leaf;
use super::ranges::{Keys, Sink};
use super::undo::Undo;
use super::{Found, Words, count};
use crate::contract::Direction;
use crate::snapshot::NOT_BEGUN_HERE;
use std::collections::BTreeMap;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{Arc, Backoff, CachePadded, Mutex};

/// How many entries are read before they are shown: as many as stay near the processor.
const PART: usize = 4096;

/// A number of the clock; 0 if no snapshot is under way.
pub(super) type Moment = u64;

/// The snapshots under way, and the clock of their moments.
pub(super) struct Snapshots {
    times: CachePadded<Times>,
    list: Mutex<List>,
}

/// Written only with the list locked.
struct Times {
    /// The number of the last snapshot, or 0 if none is under way.
    clock: AtomicU64,
    /// The lowest number of those under way. If a thread sees an earlier one, it only does more
    /// than it need do.
    oldest: AtomicU64,
}

struct List {
    /// The number of the last snapshot.
    last: Moment,
    /// In the order of their numbers.
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
    /// Room for the entries of a part.
    own: Vec<Entry>,
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
            times: CachePadded::new(Times {
                clock: AtomicU64::new(0),
                oldest: AtomicU64::new(0),
            }),
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
        self.times.clock.load(Ordering::Acquire)
    }

    /// Whether a snapshot under way may have a number up to this one.
    fn are_there_up_to(&self, moment: Moment) -> bool {
        // Relaxed: a thread that has seen a number of the clock sees at least what was the oldest
        // then.
        self.times.oldest.load(Ordering::Relaxed) <= moment
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
        let oldest = list.under_way[0].number;
        self.times.oldest.store(oldest, Ordering::Relaxed);
        self.times.clock.store(number, Ordering::Release);
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
            .map(|at| list.under_way.remove(at));
        match list.under_way.first() {
            Some(oldest) => self.times.oldest.store(oldest.number, Ordering::Relaxed),
            None => self.times.clock.store(0, Ordering::Release),
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
            let entries = within(entries, keys);
            if let Some(first) = entries.first() {
                self.parts.insert(first.0, entries.to_vec());
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
        let mut taken = Self::default();
        while let Some(first) = self.parts.first_entry()
            && *first.key() <= up_to
        {
            let (key, part) = first.remove_entry();
            taken.parts.insert(key, part);
        }
        taken.loose = self
            .loose
            .extract_if(.., |entry| entry.0 <= up_to)
            .collect();
        taken
    }

    /// Shows in order what there is, and entries that are in order.
    fn show(self, own: &[Entry], sink: &mut impl Sink) {
        let (mut rest, mut parts) = (own, self.parts);
        if !self.loose.is_empty() {
            let mut all = self.loose;
            all.extend_from_slice(rest);
            parts.into_values().for_each(|part| all.extend(part));
            // Much of it is in order already.
            all.sort_by_key(|entry| entry.0);
            return sink.take(&all);
        }
        while let Some((first, part)) = parts.pop_first() {
            let before;
            (before, rest) = rest.split_at(rest.partition_point(|entry| entry.0 < first));
            if !before.is_empty() {
                sink.take(before);
            }
            sink.take(&part);
        }
        if !rest.is_empty() {
            sink.take(rest);
        }
    }
}

/// What a snapshot got of a leaf to which it came.
struct Got {
    /// The leaf's greatest key.
    last: u64,
    /// Whether it lies in the list, and not among the snapshot's own entries.
    in_list: bool,
}

impl<const UNITS: usize> Words<UNITS> {
    /// Notes what a key holds that is about to change, in a leaf that this thread has locked, if no
    /// other leaf changes in the same step.
    #[inline(always)]
    pub(super) fn note(&self, id: u32, leaf: &Leaf, key: u64, value: Option<u64>) {
        self.note_at(self.snapshots.now(), id, leaf, key, value);
    }

    /// The same in a step, at the moment when all of its leaves were locked.
    #[inline(always)]
    pub(super) fn note_at(&self, now: Moment, id: u32, leaf: &Leaf, key: u64, value: Option<u64>) {
        if now > 0 {
            self.note_slowly(now, id, leaf, key, value);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_slowly(&self, now: Moment, id: u32, leaf: &Leaf, key: u64, value: Option<u64>) {
        if self.leaves.preserved(id) >= now {
            return;
        }
        // SAFETY: this thread has locked the leaf, and is done with this when it goes on.
        match unsafe { self.leaves.undo(id) } {
            Some(undo) if undo.moment == now => {
                if !undo.note(key, value) {
                    self.preserve_slowly(id, leaf, now);
                }
                return;
            }
            Some(_) => self.settle_changes(id, leaf),
            None => {}
        }
        let mut undo = Box::new(Undo::new(now));
        let _has_room = undo.note(key, value);
        // SAFETY: this thread has locked the leaf.
        unsafe { self.leaves.set_undo(id, Some(undo)) };
    }

    /// Preserves a leaf that this thread has locked up to the moment at which changes are noted, so
    /// that none need be noted, and entries may go to another leaf.
    pub(super) fn settle_changes(&self, id: u32, leaf: &Leaf) {
        // SAFETY: this thread has locked the leaf.
        if let Some(moment) = unsafe { self.leaves.undo(id) }.map(|undo| undo.moment) {
            if self.snapshots.now() > 0 && self.snapshots.are_there_up_to(moment) {
                self.preserve_slowly(id, leaf, moment);
            }
            // SAFETY: this thread has locked the leaf.
            unsafe { self.leaves.set_undo(id, None) };
        }
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
        let is_new = self.preserve_by(id, leaf, now, |preserved, up_to, entries| {
            self.snapshots.give(preserved, up_to, entries, true);
        });
        if is_new {
            count(&self.counters.copied_leaves);
        }
    }

    /// Preserves a leaf that this thread has locked: gives what it held to the snapshots with
    /// numbers above one and up to another, and no other ones. Returns whether any lacked it.
    fn preserve_by(
        &self,
        id: u32,
        leaf: &Leaf,
        up_to: Moment,
        mut give: impl FnMut(Moment, Moment, &[Entry]),
    ) -> bool {
        let mut preserved = self.leaves.preserved(id);
        if preserved >= up_to {
            return false;
        }
        let mut entries = Batch::new();
        entries.take(leaf, 0, u64::MAX);
        // SAFETY: this thread has locked the leaf, and `give` does not come to it.
        if let Some(undo) = unsafe { self.leaves.undo(id) } {
            let moment = undo.moment;
            if moment >= up_to {
                undo.apply(&mut entries);
            } else if moment > preserved && self.snapshots.are_there_up_to(moment) {
                undo.apply(&mut entries);
                give(preserved, moment, &entries);
                preserved = moment;
                entries.clear();
                entries.take(leaf, 0, u64::MAX);
            }
            // What is noted at a later moment stays for the snapshots of that.
            if moment <= up_to {
                // SAFETY: this thread has locked the leaf.
                unsafe { self.leaves.set_undo(id, None) };
            }
        }
        give(preserved, up_to, &entries);
        self.leaves.set_preserved(id, up_to);
        true
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
        let mut reading = self.begin_snapshot(Some(keys));
        let mut first = First { sink, left: limit };
        if direction == Direction::Descending {
            let mut all = All(Vec::new());
            while self.read_part(&mut reading, PART, &mut all, &mut between) {}
            all.0.reverse();
            return first.take(&all.0);
        }
        while first.left > 0
            && self.read_part(&mut reading, first.left.min(PART), &mut first, &mut between)
        {
        }
    }

    /// Begins a snapshot that is read part by part. Values are words, or the thread is pinned until
    /// it is dropped.
    pub(in crate::aspen) fn begin_snapshot(&self, keys: Option<Keys>) -> Reading {
        count(&self.counters.snapshots);
        Reading {
            snapshots: Arc::clone(&self.snapshots),
            number: keys.map_or(0, |keys| self.snapshots.begin(keys)),
            rest: keys,
            own: Vec::new(),
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
        self.read_part(reading, wanted, sink, &mut || ())
    }

    fn read_part(
        &self,
        reading: &mut Reading,
        wanted: usize,
        sink: &mut impl Sink,
        between: &mut impl FnMut(),
    ) -> bool {
        let Some(keys) = reading.rest else {
            return false;
        };
        let (number, mut at) = (reading.number, keys.first);
        let mut own = std::mem::take(&mut reading.own);
        own.clear();
        let mut look = false;
        let last = loop {
            let Got { last, in_list } = self.read_leaf_of(at, number, keys, &mut own);
            look |= in_list;
            let others = match look {
                true => self.snapshots.count(number, last),
                false => 0,
            };
            // At least one, so that a reader who wants none comes to an end, too.
            if last >= keys.last || own.len() + others >= wanted.max(1) {
                break last;
            }
            at = last + 1;
            between();
        };
        let taken = if last < keys.last {
            reading.rest = Some(Keys::new(last + 1, keys.last));
            self.snapshots.take(number, last)
        } else {
            reading.rest = None;
            self.snapshots.end(number)
        };
        taken.show(&own, sink);
        reading.own = own;
        reading.rest.is_some()
    }

    /// Gets what the leaf of a key held at the moment of a snapshot, unless the list has it. Since
    /// a leaf is found by the key, none need be locked meanwhile: a merge that takes entries behind
    /// the walk preserves them.
    fn read_leaf_of(&self, key: u64, number: Moment, keys: Keys, own: &mut Vec<Entry>) -> Got {
        let backoff = Backoff::new();
        loop {
            match self.find(key) {
                Ok(Found { id, leaf, .. }) => {
                    if let Ok(lock) = self.wait_for_lock(leaf, key) {
                        let got = leaf.covers(key).then(|| Got {
                            last: leaf.last(),
                            in_list: !self.read_leaf(id, leaf, number, keys, own),
                        });
                        lock.unchanged();
                        if let Some(got) = got {
                            return got;
                        }
                    }
                }
                Err(table) => {
                    if let Some(whole) = table.hold_all(key) {
                        self.preserve_whole(&whole, number);
                        let last = whole.keys().last;
                        whole.release();
                        return Got {
                            last,
                            in_list: true,
                        };
                    }
                }
            }
            backoff.wait();
        }
    }

    /// Appends what a leaf, which this thread has locked, held at the moment of a snapshot. Returns
    /// `false` if the list has it.
    fn read_leaf(
        &self,
        id: u32,
        leaf: &Leaf,
        number: Moment,
        keys: Keys,
        own: &mut Vec<Entry>,
    ) -> bool {
        self.preserve_by(id, leaf, number, |preserved, up_to, entries| {
            if up_to == number {
                own.extend_from_slice(within(entries, keys));
            }
            // Older snapshots, which lack it, too.
            if self.snapshots.are_there_up_to(number - 1) {
                let up_to = up_to.min(number - 1);
                self.snapshots.give(preserved, up_to, entries, true);
            }
        })
    }
}

/// The entries of a range among some that are in order.
fn within(entries: &[Entry], keys: Keys) -> &[Entry] {
    let from = entries.partition_point(|entry| entry.0 < keys.first);
    let to = entries.partition_point(|entry| entry.0 <= keys.last);
    &entries[from..to.max(from)]
}

/// Keeps all that is put into it.
struct All(Vec<Entry>);

impl Sink for All {
    fn take(&mut self, entries: &[Entry]) {
        self.0.extend_from_slice(entries);
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// Passes on the first entries.
struct First<'a, S> {
    sink: &'a mut S,
    left: usize,
}

impl<S: Sink> Sink for First<'_, S> {
    fn take(&mut self, entries: &[Entry]) {
        let entries = &entries[..entries.len().min(self.left)];
        self.left -= entries.len();
        if !entries.is_empty() {
            self.sink.take(entries);
        }
    }

    fn clear(&mut self) {
        self.sink.clear();
    }
}
