//! Changes of one entry.

use super::format::View;
use super::grain::Fought;
use super::heat::end_of;
use super::hot::{HeldBucket, Table};
use super::leaf::Leaf;
use super::structure::round_between;
use super::{Found, Separators, Words, count};
use crate::kit::prefetch_to_write;
use tremula_sync::{Backoff, Restart, VersionGuard};

/// What a closure decides to do with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::aspen) enum Change {
    Put(u64),
    Keep,
    Remove,
}

/// A leaf that this thread has locked.
pub(super) struct Held<'a> {
    pub(super) id: u32,
    pub(super) leaf: &'a Leaf,
    pub(super) lock: VersionGuard<'a>,
}

/// Where a key belongs, locked by this thread.
pub(super) enum Locked<'a> {
    Leaf(Held<'a>),
    /// Of a hot leaf only the bucket.
    Bucket(HeldBucket<'a>),
}

/// What a thread locks the leaf of a key for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It may insert the key: a full bucket is drained first, and waits may make the leaf hot.
    Insert,
    Other,
}

/// A leaf with fewer entries is not split however it is fought over.
const LEAST_ENTRIES: usize = 8;
/// A leaf is settled after this many changes.
const SETTLES_IN: u64 = 4096;

impl<const UNITS: usize> Words<UNITS> {
    /// Locks the leaf to which a key belongs, or its bucket.
    #[inline(always)]
    fn hold_any(&self, key: u64) -> Locked<'_> {
        let id = self.routes.leaf_of(key);
        let leaf = self.leaves.get(id);
        // If other threads use the leaf, its line would be shared by the reads that come first, and
        // taking the lock would ask all of them for it once more.
        prefetch_to_write(leaf);
        match self.try_to_hold(leaf, key) {
            Ok(lock) => Locked::Leaf(Held { id, leaf, lock }),
            Err(Restart) => self.hold_contended(id, key, Purpose::Insert),
        }
    }

    /// Locks the leaf to which a key belongs. If it is hot, makes it ordinary first.
    pub(super) fn hold(&self, key: u64) -> Held<'_> {
        let mut id = self.routes.leaf_of(key);
        if let Ok(lock) = self.try_to_hold(self.leaves.get(id), key) {
            let leaf = self.leaves.get(id);
            return Held { id, leaf, lock };
        }
        loop {
            match self.hold_contended(id, key, Purpose::Other) {
                Locked::Leaf(held) => return held,
                Locked::Bucket(bucket) => {
                    let table = bucket.table();
                    bucket.release();
                    self.cool_at(table, key);
                    id = table.leaf();
                }
            }
        }
    }

    #[inline(always)]
    fn try_to_hold<'a>(&self, leaf: &'a Leaf, key: u64) -> Result<VersionGuard<'a>, Restart> {
        let version = leaf.lock.try_read()?;
        if !leaf.covers(key) {
            return Err(Restart);
        }
        // The block's line comes while the lock is taken, which nothing after it can overtake.
        let view = View::of(leaf);
        view.prefetch_to_write(key);
        leaf.lock.upgrade(version)
    }

    /// Locks the leaf behind one that this thread has locked, whose greatest key is `last`. If it
    /// is hot, makes it ordinary first.
    pub(super) fn hold_next(&self, last: u64) -> Held<'_> {
        loop {
            match self.hold_next_unless_hot(last) {
                Ok(held) => return held,
                Err(table) => {
                    if let Some(whole) = table.hold_all(last + 1) {
                        return self.cool(whole);
                    }
                }
            }
        }
    }

    /// The same, but returns the table if the leaf is hot.
    pub(super) fn hold_next_unless_hot(&self, last: u64) -> Result<Held<'_>, &Table> {
        let key = last + 1;
        loop {
            // Not by a route, which might lead to a leaf that this thread holds: it would wait for
            // itself. The separators know the border: only the holder of the leaf before removes
            // it. But another leaf may have come to lie there by the time that this one is locked.
            let id = self.borders.leaf_of(key);
            let leaf = self.leaves.get(id);
            if let Ok(lock) = self.wait_for_lock(leaf, key) {
                if leaf.low() == key {
                    return Ok(Held { id, leaf, lock });
                }
                lock.unchanged();
            }
            if let Some(table) = leaf.table()
                && table.has(key)
            {
                return Err(table);
            }
        }
    }

    /// Waits for the lock of a leaf, as long as a key seems to belong to it and it is not hot.
    pub(super) fn wait_for_lock<'a>(
        &self,
        leaf: &'a Leaf,
        key: u64,
    ) -> Result<VersionGuard<'a>, Restart> {
        let backoff = Backoff::new();
        loop {
            if let Ok(lock) = leaf.lock.try_lock() {
                return Ok(lock);
            }
            // A hint: a writer may be about to change this.
            if !leaf.lock.is_worth_a_wait() || !leaf.covers(key) {
                return Err(Restart);
            }
            backoff.wait();
        }
    }

    /// Waits for the lock of a leaf, or of the key's bucket in it. If the key does not belong to
    /// the leaf any more, looks for another one. Splits the leaf first if it is fought over, or
    /// makes it hot.
    #[cold]
    #[inline(never)]
    fn hold_contended(&self, id: u32, key: u64, purpose: Purpose) -> Locked<'_> {
        let mut id = id;
        loop {
            let leaf = self.leaves.get(id);
            if let Some(table) = leaf.table()
                && let Ok(bucket) = table.hold(key)
            {
                if purpose == Purpose::Insert && bucket.is_full() {
                    bucket.release();
                    self.make_room(table, key);
                    continue;
                }
                return Locked::Bucket(bucket);
            }
            // A route may have led astray, to a leaf that is not fought over.
            let (lock, waited) = match leaf.lock.try_lock() {
                Ok(lock) => (Ok(lock), false),
                Err(Restart) => (self.wait_for_lock(leaf, key), true),
            };
            if let Ok(lock) = lock {
                let held = Held { id, leaf, lock };
                if !leaf.covers(key) {
                    held.lock.unchanged();
                } else if waited && let Some(fought) = self.note_wait(&held, key, purpose) {
                    self.divide_fought(held, key, fought);
                } else {
                    return Locked::Leaf(held);
                }
            }
            count(&self.counters.restarts);
            id = match self.find(key) {
                Ok(found) => found.id,
                Err(table) => table.leaf(),
            };
        }
    }

    /// Notes that a writer has waited for a leaf. Returns what is to be done with the leaf, if
    /// anything.
    fn note_wait(&self, held: &Held<'_>, key: u64, purpose: Purpose) -> Option<Fought> {
        count(&self.counters.waits);
        let changes = held.lock.changes();
        let end = match purpose {
            Purpose::Insert => end_of(held.leaf, key),
            Purpose::Other => None,
        };
        let fought = self.grains.waited(held.id, changes, key, end)?;
        let has_entries = View::of(held.leaf).count() >= LEAST_ENTRIES;
        let covers = match fought {
            Fought::At(_) => true,
            // Both belonged to the leaf once; it may have been split since.
            Fought::Between(below, above) => held.leaf.covers(below) && held.leaf.covers(above),
        };
        (has_entries && covers).then_some(fought)
    }

    /// Makes two leaves of one that is fought over, and unlocks it.
    fn divide_fought(&self, held: Held<'_>, key: u64, fought: Fought) {
        match fought {
            Fought::Between(below, above) => self.split_apart(held, round_between(below, above)),
            Fought::At(end) => {
                if let Err(held) = self.heat(held, key, end) {
                    held.lock.unchanged();
                }
            }
        }
    }

    /// Calls `decide` once with the value of a key, and does what it says. The leaf of the key is
    /// locked meanwhile; if `decide` panics, nothing has happened. Returns the value that was
    /// replaced or removed.
    #[inline(always)]
    pub(in crate::aspen) fn change(
        &self,
        key: u64,
        decide: impl FnOnce(Option<u64>) -> Change,
    ) -> Option<u64> {
        let Held { id, leaf, lock } = match self.hold_any(key) {
            Locked::Leaf(held) => held,
            Locked::Bucket(bucket) => return self.change_in_bucket(bucket, key, decide),
        };
        let changes = lock.changes();
        let view = View::of(leaf);
        match view.find(key) {
            Ok(at) => {
                let old = view.value(at);
                match decide(Some(old)) {
                    Change::Put(value) => {
                        self.note(id, leaf, key, Some(old));
                        view.set_value(at, value);
                    }
                    Change::Remove => {
                        self.remove_at(Held { id, leaf, lock }, view, at, key);
                        return Some(old);
                    }
                    Change::Keep => {
                        lock.unchanged();
                        return None;
                    }
                }
                drop(lock);
                if changes % SETTLES_IN == SETTLES_IN - 1 {
                    self.settle(key);
                }
                Some(old)
            }
            Err(at) => {
                match decide(None) {
                    Change::Put(value) => {
                        self.note(id, leaf, key, None);
                        if view.insert(at, (key, value)) {
                            drop(lock);
                        } else {
                            self.fill_anew(Held { id, leaf, lock }, Some((key, value)));
                        }
                        self.len.add(1);
                        if changes % SETTLES_IN == SETTLES_IN - 1 {
                            self.settle(key);
                        }
                    }
                    Change::Keep | Change::Remove => lock.unchanged(),
                }
                None
            }
        }
    }

    /// The same in a hot leaf.
    #[cold]
    #[inline(never)]
    fn change_in_bucket(
        &self,
        bucket: HeldBucket<'_>,
        key: u64,
        decide: impl FnOnce(Option<u64>) -> Change,
    ) -> Option<u64> {
        let old = bucket.value();
        let difference = match decide(old) {
            Change::Put(value) => {
                self.preserve_bucket(&bucket);
                bucket.put(key, value);
                isize::from(old.is_none())
            }
            Change::Remove => {
                self.preserve_bucket(&bucket);
                bucket.remove();
                -isize::from(old.is_some())
            }
            Change::Keep => {
                bucket.release();
                return None;
            }
        };
        if difference != 0 {
            self.len.add(difference);
        }
        old
    }

    /// Removes the value of a key. Writes nothing if the key is missing.
    #[inline]
    pub(in crate::aspen) fn remove(&self, key: u64) -> Option<u64> {
        let held = match self.find(key) {
            Ok(Found { id, leaf, version }) => {
                let view = View::of(leaf);
                let missed = view.find(key).is_err();
                if missed && leaf.lock.validate(version).is_ok() {
                    return None;
                }
                // Not before: a thread that removes a key which is missing writes nothing.
                view.prefetch_head_to_write();
                match leaf.lock.upgrade(version) {
                    Ok(lock) => Locked::Leaf(Held { id, leaf, lock }),
                    Err(Restart) => self.hold_contended(id, key, Purpose::Other),
                }
            }
            Err(table) => self.hold_contended(table.leaf(), key, Purpose::Other),
        };
        let held = match held {
            Locked::Leaf(held) => held,
            Locked::Bucket(bucket) => {
                return self.change_in_bucket(bucket, key, |_| Change::Remove);
            }
        };
        let view = View::of(held.leaf);
        let Ok(at) = view.find(key) else {
            held.lock.unchanged();
            return None;
        };
        let old = view.value(at);
        self.remove_at(held, view, at, key);
        Some(old)
    }

    /// Removes an entry and unlocks the leaf.
    #[inline(always)]
    pub(super) fn remove_at(&self, held: Held<'_>, view: View<'_>, at: usize, key: u64) {
        self.note(held.id, held.leaf, key, Some(view.value(at)));
        view.remove(at);
        let sparse = view.is_sparse_at(at);
        self.len.add(-1);
        if sparse {
            self.thin_out(held, key);
        }
    }
}
