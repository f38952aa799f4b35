//! Steps over several leaves, all of which are locked meanwhile.
//!
//! Leaves are locked from left to right, as by every thread that waits for a leaf while it holds
//! others. A leaf that a step splits stays locked, and so does its new neighbour: no thread sees a
//! part of the step.

use super::format::{Entry, View};
use super::leaf::Leaf;
use super::ranges::Keys;
use super::snapshots::Moment;
use super::structure::Half;
use super::write::Held;
use super::{Separators, Words};
use std::ops::ControlFlow;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{Backoff, Restart};

/// A leaf of a step.
struct Locked<'a> {
    held: Held<'a>,
    changed: bool,
    /// A key around which few entries are left.
    sparse: Option<u64>,
}

impl<'a> Locked<'a> {
    fn new(held: Held<'a>) -> Self {
        Self {
            held,
            changed: false,
            sparse: None,
        }
    }
}

/// The leaves of some keys, which this thread has locked. Dropping it unlocks them.
pub(in crate::aspen) struct Locks<'a, const UNITS: usize> {
    words: &'a Words<UNITS>,
    /// Ascending.
    leaves: Vec<Locked<'a>>,
    /// By how much the number of entries has changed.
    difference: isize,
    /// Where leaves were split, and whether more entries are expected there.
    cuts: Vec<(u64, bool)>,
    /// When all leaves were locked.
    now: Moment,
}

impl<const UNITS: usize> Words<UNITS> {
    /// Locks the leaves of these keys, which ascend.
    pub(in crate::aspen) fn lock(&self, over: &[Keys]) -> Locks<'_, UNITS> {
        let mut leaves: Vec<Locked<'_>> = Vec::new();
        for keys in over {
            let mut last = leaves.last().map(|before| before.held.leaf.last());
            if last.is_none_or(|last| last < keys.first) {
                let held = match last {
                    None => self.hold(keys.first),
                    Some(_) => self.hold_behind(keys.first),
                };
                last = Some(held.leaf.last());
                leaves.push(Locked::new(held));
            }
            while let Some(end) = last
                && end < keys.last
            {
                let held = self.hold_next(end);
                last = Some(held.leaf.last());
                leaves.push(Locked::new(held));
            }
        }
        Locks {
            words: self,
            leaves,
            difference: 0,
            cuts: Vec::new(),
            now: self.snapshots.now(),
        }
    }

    /// Locks the leaf of a key that lies behind all leaves that this thread has locked.
    fn hold_behind(&self, key: u64) -> Held<'_> {
        let backoff = Backoff::new();
        loop {
            // By the separators, as in `hold_next`. A leaf may have come to use elsewhere by the
            // time that its lock is free, so this does not wait for it, but asks again.
            let id = self.borders.leaf_of(key);
            if let Some(held) = self.hold_if_free(id, key) {
                return held;
            }
            if let Some(table) = self.leaves.get(id).table() {
                self.cool_at(table, key);
                continue;
            }
            backoff.wait();
        }
    }

    /// Locks the leaf with a number, if no other thread has locked it and the key belongs to it.
    pub(super) fn hold_if_free(&self, id: u32, key: u64) -> Option<Held<'_>> {
        let leaf = self.leaves.get(id);
        let lock = leaf.lock.try_lock().ok()?;
        if leaf.covers(key) {
            return Some(Held { id, leaf, lock });
        }
        lock.unchanged();
        None
    }
}

impl<'a, const UNITS: usize> Locks<'a, UNITS> {
    /// Which of the leaves a key belongs to; `None` if to none of them.
    fn position(&self, key: u64) -> Option<usize> {
        let above = (self.leaves).partition_point(|locked| locked.held.leaf.low() <= key);
        let at = above.checked_sub(1)?;
        self.leaves[at].held.leaf.covers(key).then_some(at)
    }

    /// Where a key belongs that is to be changed.
    ///
    /// # Panics
    ///
    /// If to none of these leaves. The ranges of the step contain the key, so its head is not where
    /// its order is.
    #[track_caller]
    pub(in crate::aspen) fn place(&self, key: u64) -> (usize, u64) {
        let Some(at) = self.position(key) else {
            panic!("the heads of the keys of a step are not in the order of the keys");
        };
        (at, key)
    }

    pub(in crate::aspen) fn get(&self, key: u64) -> Option<u64> {
        let view = View::of(self.leaves[self.position(key)?].held.leaf);
        view.find(key).ok().map(|at| view.value(at))
    }

    /// Shows the entries with these keys, ascending, until `visit` breaks.
    pub(in crate::aspen) fn visit(
        &self,
        keys: Keys,
        mut visit: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        let from = (self.leaves).partition_point(|locked| locked.held.leaf.last() < keys.first);
        for Locked { held, .. } in &self.leaves[from..] {
            if held.leaf.low() > keys.last {
                break;
            }
            View::of(held.leaf).ascend(keys.first, keys.last, |entry| {
                flow = visit(entry);
                flow.is_continue()
            });
            flow?;
        }
        flow
    }

    /// Puts a value under a key, and returns the one that it replaces.
    pub(in crate::aspen) fn put(&mut self, (at, key): (usize, u64), value: u64) -> Option<u64> {
        let locked = &mut self.leaves[at];
        locked.changed = true;
        let Held { id, leaf, .. } = locked.held;
        let view = View::of(leaf);
        let place = match view.find(key) {
            Ok(place) => {
                let old = view.value(place);
                self.words.note_at(self.now, id, leaf, key, Some(old));
                view.set_value(place, value);
                return Some(old);
            }
            Err(place) => place,
        };
        self.words.note_at(self.now, id, leaf, key, None);
        self.difference += 1;
        if !view.insert(place, (key, value))
            && let Some(half) = self.words.refit(&locked.held, Some((key, value)))
        {
            let Half { held, cut, at_end } = half;
            self.cuts.push((cut, at_end));
            let mut right = Locked::new(held);
            right.changed = true;
            self.leaves.insert(at + 1, right);
        }
        None
    }

    /// Removes a key, and returns its value.
    pub(in crate::aspen) fn take(&mut self, (at, key): (usize, u64)) -> Option<u64> {
        let locked = &mut self.leaves[at];
        let view = View::of(locked.held.leaf);
        let place = view.find(key).ok()?;
        let old = view.value(place);
        let Held { id, leaf, .. } = locked.held;
        self.words.note_at(self.now, id, leaf, key, Some(old));
        view.remove(place);
        locked.changed = true;
        if view.is_sparse_at(place) {
            locked.sparse = Some(key);
        }
        self.difference -= 1;
        Some(old)
    }

    /// Unlocks all leaves.
    pub(in crate::aspen) fn release(mut self) {
        // Counted before others can remove what has been inserted here.
        self.words.len.add(self.difference);
        let mut sparse = Vec::new();
        for Locked {
            held,
            changed,
            sparse: key,
        } in self.leaves.drain(..)
        {
            sparse.extend(key);
            if changed {
                drop(held.lock);
            } else {
                held.lock.unchanged();
            }
        }
        for (cut, at_end) in self.cuts {
            self.words.mend_routes(cut, at_end);
        }
        for key in sparse {
            self.words.thin_out(self.words.hold(key), key);
            self.words.settle(key);
        }
    }

    /// The leaves, still locked and not changed, but preserved.
    pub(super) fn into_leaves(self) -> impl Iterator<Item = Held<'a>> {
        for Locked { held, .. } in &self.leaves {
            self.words.preserve_up_to(held.id, held.leaf, self.now);
        }
        self.leaves.into_iter().map(|locked| locked.held)
    }
}

/// A leaf as a walk has found it.
pub(in crate::aspen) struct Passed {
    /// The lowest key in it, from that of the walk on.
    pub(in crate::aspen) first: Option<u64>,
    /// `None` if a writer has locked it.
    pub(in crate::aspen) entries: Option<usize>,
    pub(in crate::aspen) waits: u32,
    pub(in crate::aspen) changes: u64,
    /// How its entries lie; empty if a writer has locked it.
    pub(in crate::aspen) format: &'static str,
    /// Where the next leaf begins.
    pub(in crate::aspen) next: Option<u64>,
}

impl<const UNITS: usize> Words<UNITS> {
    /// Looks at the leaf of a key. Does not wait for a writer that has locked it.
    pub(in crate::aspen) fn pass(&self, key: u64) -> Passed {
        let looked = self.look_at(self.routes.leaf_of(key), key);
        if let Ok(passed) = looked {
            return passed;
        }
        // The route leads astray, or a writer has the leaf. The separators are locked only for the
        // moment in which they change.
        let id = self.borders.leaf_of(key);
        self.look_at(id, key).unwrap_or_else(|Restart| {
            let mut next = Vec::new();
            if let Some(above) = key.checked_add(1) {
                self.borders.borders(above, u64::MAX, 1, &mut next);
            }
            Passed {
                first: None,
                entries: None,
                waits: self.grains.waits(id),
                changes: self.leaves.get(id).lock.changes(),
                format: "",
                next: next.first().map(|(low, _)| *low),
            }
        })
    }

    /// Looks at a leaf as of one moment, if a key belongs to it and no writer has it.
    fn look_at(&self, id: u32, key: u64) -> Result<Passed, Restart> {
        let leaf: &Leaf = self.leaves.get(id);
        let version = leaf.lock.try_read()?;
        if !leaf.covers(key) {
            return Err(Restart);
        }
        let view = View::of(leaf);
        let mut first = None;
        view.ascend(key, u64::MAX, |(key, _)| {
            first = Some(key);
            false
        });
        let passed = Passed {
            first,
            entries: Some(view.count()),
            waits: self.grains.waits(id),
            changes: version.changes(),
            format: view.name(),
            next: leaf.last().checked_add(1),
        };
        leaf.lock.validate(version)?;
        Ok(passed)
    }

    /// How often leaves were split and merged.
    pub(in crate::aspen) fn adapted(&self) -> (u64, u64) {
        let counter = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let splits = counter(&self.counters.splits) + counter(&self.counters.contention_splits);
        (splits, counter(&self.counters.merges))
    }
}
