//! Changes of one entry.

use super::format::View;
use super::leaf::Leaf;
use super::structure::round_between;
use super::{Found, Separators, Words, count};
use tremula_sync::{Restart, VersionGuard};

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

/// A leaf with fewer entries is not split however it is fought over.
const LEAST_ENTRIES: usize = 8;
/// A leaf is settled after this many changes.
const SETTLES_IN: u64 = 4096;

impl<const UNITS: usize> Words<UNITS> {
    /// Locks the leaf to which a key belongs.
    #[inline(always)]
    pub(super) fn hold(&self, key: u64) -> Held<'_> {
        let id = self.routes.leaf_of(key);
        let leaf = self.leaves.get(id);
        match self.try_to_hold(leaf, key) {
            Ok(lock) => Held { id, leaf, lock },
            Err(Restart) => self.hold_contended(id, key),
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
        view.prefetch(key);
        view.prefetch_head();
        leaf.lock.upgrade(version)
    }

    /// Locks the leaf behind one that this thread has locked, whose greatest key is `last`.
    pub(super) fn hold_next(&self, last: u64) -> Held<'_> {
        loop {
            // Not by a route, which might lead to a leaf that this thread holds: it would wait for
            // itself. The separators are right: only the holder of the leaf before changes them.
            let id = self.borders.leaf_of(last + 1);
            let leaf = self.leaves.get(id);
            if let Ok(lock) = leaf.lock.lock() {
                debug_assert_eq!(leaf.low(), last + 1, "leaves are neighbours");
                return Held { id, leaf, lock };
            }
        }
    }

    /// Waits for the lock of a leaf. If the key does not belong to it any more, looks for another
    /// leaf. Splits the leaf first if it is fought over.
    #[cold]
    #[inline(never)]
    fn hold_contended(&self, id: u32, key: u64) -> Held<'_> {
        let mut id = id;
        loop {
            let leaf = self.leaves.get(id);
            // A route may have led astray, to a leaf that is not fought over.
            let (lock, waited) = match leaf.lock.try_lock() {
                Ok(lock) => (Ok(lock), false),
                Err(Restart) => (leaf.lock.lock(), true),
            };
            if let Ok(lock) = lock {
                let held = Held { id, leaf, lock };
                if !leaf.covers(key) {
                    held.lock.unchanged();
                } else if waited && let Some(cut) = self.note_wait(&held, key) {
                    self.split_apart(held, cut);
                } else {
                    return held;
                }
            }
            count(&self.counters.restarts);
            id = self.find(key).id;
        }
    }

    /// Notes that a writer has waited for a leaf. Returns the key at which the leaf is to be split,
    /// if it is.
    fn note_wait(&self, held: &Held<'_>, key: u64) -> Option<u64> {
        count(&self.counters.waits);
        let changes = held.lock.changes();
        let (below, above) = self.grains.waited(held.id, changes, key)?;
        let has_entries = View::of(held.leaf).count() >= LEAST_ENTRIES;
        // Both belonged to the leaf once; it may have been split since.
        let covers = held.leaf.covers(below) && held.leaf.covers(above);
        (has_entries && covers).then(|| round_between(below, above))
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
        let Held { id, leaf, lock } = self.hold(key);
        let changes = lock.changes();
        let view = View::of(leaf);
        match view.find(key) {
            Ok(at) => {
                let old = view.value(at);
                match decide(Some(old)) {
                    Change::Put(value) => view.set_value(at, value),
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

    /// Removes the value of a key. Writes nothing if the key is missing.
    #[inline]
    pub(in crate::aspen) fn remove(&self, key: u64) -> Option<u64> {
        let Found { id, leaf, version } = self.find(key);
        let missed = View::of(leaf).find(key).is_err();
        if missed && leaf.lock.validate(version).is_ok() {
            return None;
        }
        let held = match leaf.lock.upgrade(version) {
            Ok(lock) => Held { id, leaf, lock },
            Err(Restart) => self.hold_contended(id, key),
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
        view.remove(at);
        let sparse = view.is_sparse_at(at);
        self.len.add(-1);
        if sparse {
            self.thin_out(held, key);
        }
    }
}
