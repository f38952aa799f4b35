//! Changes of one entry.

use super::format::View;
use super::leaf::Leaf;
use super::{Separators, Words, count};
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
    pub(super) leaf: &'a Leaf,
    pub(super) lock: VersionGuard<'a>,
}

impl<const UNITS: usize> Words<UNITS> {
    /// Locks the leaf to which a key belongs.
    #[inline(always)]
    pub(super) fn hold(&self, key: u64) -> Held<'_> {
        let leaf = self.leaves.get(self.routes.leaf_of(key));
        match self.try_to_hold(leaf, key) {
            Ok(lock) => Held { leaf, lock },
            Err(Restart) => self.hold_contended(leaf, key),
        }
    }

    #[inline(always)]
    fn try_to_hold<'a>(&self, leaf: &'a Leaf, key: u64) -> Result<VersionGuard<'a>, Restart> {
        let version = leaf.lock.read()?;
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
            let leaf = self.leaves.get(self.borders.leaf_of(last + 1));
            if let Ok(lock) = leaf.lock.lock() {
                debug_assert_eq!(leaf.low(), last + 1, "leaves are neighbours");
                return Held { leaf, lock };
            }
        }
    }

    /// Waits for the lock of the leaf. If the key does not belong to it any more, looks for another
    /// leaf.
    #[cold]
    #[inline(never)]
    fn hold_contended<'a>(&'a self, leaf: &'a Leaf, key: u64) -> Held<'a> {
        let mut leaf = leaf;
        loop {
            if let Ok(lock) = leaf.lock.lock() {
                if leaf.covers(key) {
                    return Held { leaf, lock };
                }
                lock.unchanged();
            }
            count(&self.counters.restarts);
            (leaf, _) = self.find(key);
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
        let Held { leaf, lock } = self.hold(key);
        let view = View::of(leaf);
        match view.find(key) {
            Ok(at) => {
                let old = view.value(at);
                match decide(Some(old)) {
                    Change::Put(value) => view.set_value(at, value),
                    Change::Remove => {
                        self.remove_at(Held { leaf, lock }, view, at, key);
                        return Some(old);
                    }
                    Change::Keep => {
                        lock.unchanged();
                        return None;
                    }
                }
                drop(lock);
                Some(old)
            }
            Err(at) => {
                match decide(None) {
                    Change::Put(value) => {
                        if view.insert(at, (key, value)) {
                            drop(lock);
                        } else {
                            self.fill_anew(Held { leaf, lock }, Some((key, value)));
                        }
                        self.len.add(1);
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
        let (leaf, version) = self.find(key);
        let missed = View::of(leaf).find(key).is_err();
        if missed && leaf.lock.validate(version).is_ok() {
            return None;
        }
        let held = match leaf.lock.upgrade(version) {
            Ok(lock) => Held { leaf, lock },
            Err(Restart) => self.hold_contended(leaf, key),
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
