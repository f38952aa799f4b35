//! Leaves that grow, split and merge.

use super::build::{Batch, New};
use super::format::{Entry, MOST_ENTRIES, View};
use super::leaf::Leaf;
use super::place::slots_of;
use super::write::Held;
use super::{Ids, Words, count};
use crate::contract::OrderedIndex;
use tremula_sync::VersionGuard;

/// How much of a leaf's slots must be in use after a removal, in percent. Below it the leaf gets a
/// smaller block.
const LEAST_FILL: usize = 30;

impl<const UNITS: usize> Words<UNITS> {
    /// Slots of the largest leaf.
    const SLOTS: usize = slots_of(UNITS);
    /// A leaf with at most this many entries is merged with a neighbour,
    const MERGE_FROM: usize = Self::SLOTS / 4;
    /// if both together have at most this many.
    const MERGE_TO: usize = Self::SLOTS * 6 / 10;

    /// A leaf that is not in use, locked, without a block.
    pub(super) fn take_leaf(&self) -> (u32, &Leaf, VersionGuard<'_>) {
        let mut ids = self.ids.lock();
        let id = ids.free.pop().unwrap_or_else(|| self.new_id(&mut ids));
        drop(ids);
        let leaf = self.leaves.get(id);
        (id, leaf, leaf.lock.renew())
    }

    /// The same, but a leaf whose line of the cache no other leaf in use shares: threads that fight
    /// over one of them would slow down those at the other.
    fn take_leaf_alone(&self) -> (u32, &Leaf, VersionGuard<'_>) {
        let mut ids = self.ids.lock();
        let id = ids.alone.pop().unwrap_or_else(|| {
            if ids.next % 2 == 1 {
                let odd = self.new_id(&mut ids);
                ids.free.push(odd);
            }
            let even = self.new_id(&mut ids);
            // Never in use.
            self.new_id(&mut ids);
            ids.ever_alone.insert(even);
            even
        });
        drop(ids);
        let leaf = self.leaves.get(id);
        (id, leaf, leaf.lock.renew())
    }

    fn new_id(&self, ids: &mut Ids) -> u32 {
        let id = ids.next;
        self.leaves.add(id);
        ids.next += 1;
        id
    }

    /// Leaves in use.
    pub(super) fn leaf_count(&self) -> usize {
        let ids = self.ids.lock();
        ids.in_use()
    }

    /// Fills a leaf anew, with one entry more: in another format, in a larger block, or divided
    /// between two leaves. Unlocks it.
    #[cold]
    #[inline(never)]
    pub(super) fn fill_anew(&self, held: Held<'_>, new: Option<Entry>) {
        let leaf = held.leaf;
        let (entries, at) = Self::entries_with(leaf, new);
        match Self::plan(&entries, leaf.low(), leaf.last()) {
            Some(plan) if new.is_none() || !leaf.place().is_like(plan.kind, plan.units) => {
                self.fill(leaf, plan, &entries, at == New::Last);
                drop(held.lock);
            }
            // There is no room, or not where it is needed.
            _ => self.split(held, &entries, at),
        }
    }

    /// Divides the entries of a leaf, to which one has come, between it and a new right neighbour.
    fn split(&self, held: Held<'_>, entries: &[Entry], at: New) {
        count(&self.counters.splits);
        let (leaf, low, last) = (held.leaf, held.leaf.low(), held.leaf.last());
        let cut = Self::cut(entries, low, at);
        let (left, right) = entries.split_at(entries.partition_point(|entry| entry.0 < cut));
        let (Some(left_plan), Some(right_plan)) =
            (Self::plan(left, low, cut - 1), Self::plan(right, cut, last))
        else {
            unreachable!("each part of a leaf fits into a leaf");
        };
        let (id, new, new_lock) = self.take_leaf();
        new.set_range(cut, last);
        self.fill(new, right_plan, right, at == New::Last);
        // Before the left leaf gives up these keys, so that they are always to be found.
        self.borders.0.insert(cut, id);
        leaf.set_range(low, cut - 1);
        self.fill(leaf, left_plan, left, false);
        drop(new_lock);
        drop(held.lock);
        self.routes.mend(cut, &self.borders);
        self.routes
            .keep_up(self.leaf_count(), at == New::Last, &self.borders);
    }

    /// Divides the entries of a leaf that is fought over, and unlocks it.
    pub(super) fn split_apart(&self, held: Held<'_>, cut: u64) {
        count(&self.counters.contention_splits);
        let (leaf, low, last) = (held.leaf, held.leaf.low(), held.leaf.last());
        let (entries, _) = Self::entries_with(leaf, None);
        let (left, right) = entries.split_at(entries.partition_point(|entry| entry.0 < cut));
        let (Some(left_plan), Some(right_plan)) =
            (Self::plan(left, low, cut - 1), Self::plan(right, cut, last))
        else {
            // All on one side, and more than a leaf is made for.
            return held.lock.unchanged();
        };
        let (id, new, new_lock) = self.take_leaf_alone();
        new.set_range(cut, last);
        self.fill(new, right_plan, right, false);
        // As in `split`.
        self.borders.0.insert(cut, id);
        leaf.set_range(low, cut - 1);
        self.fill(leaf, left_plan, left, false);
        drop(new_lock);
        drop(held.lock);
        self.routes.mend(cut, &self.borders);
        self.routes.keep_up(self.leaf_count(), false, &self.borders);
    }

    /// Merges a small leaf that nobody fights over any more.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&self, key: u64) {
        let leaf = self.find(key).leaf;
        if View::of(leaf).count() <= Self::MERGE_FROM {
            self.merge(key);
        }
    }

    /// The lowest key for the right part of a leaf: a number with few bits, so that a route can
    /// express it.
    fn cut(entries: &[Entry], low: u64, at: New) -> u64 {
        let count = entries.len();
        let (from, to) = match at {
            // All that is there stays together, as far as it fits.
            New::Last => {
                let most = count - 1;
                let fits = Self::plan(&entries[..most], low, entries[most].0 - 1).is_some();
                let left = if fits { most } else { Self::SLOTS * 7 / 8 };
                (left, left)
            }
            New::First => {
                let last = entries[count - 1].0;
                let fits = Self::plan(&entries[1..], entries[1].0, last).is_some();
                if fits {
                    // No number below: it might be too far from the others for their format.
                    return entries[1].0;
                }
                let right = count - Self::SLOTS * 7 / 8;
                (right, right)
            }
            // Not always at the same share: leaves that were full together would be so again.
            New::Within => {
                let share = 40 + (scatter(entries[count / 2].0) % 21) as usize;
                let middle = count * share / 100;
                (middle - count / 16, middle + count / 16)
            }
        };
        round_between(entries[from - 1].0, entries[to].0)
    }

    /// What follows after a removal that has left few entries in a part of the leaf. Unlocks it.
    #[cold]
    #[inline(never)]
    pub(super) fn thin_out(&self, held: Held<'_>, key: u64) {
        let entries = View::of(held.leaf).count();
        let units = held.leaf.place().units();
        if units > 1 && entries * 100 < LEAST_FILL * slots_of(units) {
            self.fill_anew(held, None);
        } else {
            drop(held.lock);
        }
        // Not at each removal: if the neighbours have no room, they will not have it soon.
        if entries <= Self::MERGE_FROM && (entries == 0 || entries.is_power_of_two()) {
            self.merge(key);
        }
    }

    /// Merges the leaf of a key with its right neighbour, or else with its left one, if both have
    /// few entries and nobody fights over them.
    ///
    /// The left one counts too: where keys leave at their lower end, each leaf that becomes empty
    /// has a full one on its right, and would stay for ever.
    pub(super) fn merge(&self, key: u64) {
        let held = self.hold(key);
        let low = held.leaf.low();
        if !self.merge_with_next(held)
            && let Some(before) = low.checked_sub(1)
        {
            self.merge_with_next(self.hold(before));
        }
    }

    /// Merges a leaf with its right neighbour if both have few entries. Returns whether it did so.
    fn merge_with_next(&self, held: Held<'_>) -> bool {
        if held.leaf.last() == u64::MAX {
            held.lock.unchanged();
            return false;
        }
        let leaf = held.leaf;
        let next = self.hold_next(leaf.last());
        let total = View::of(leaf).count() + View::of(next.leaf).count();
        let (low, last) = (leaf.low(), next.leaf.last());
        let mut entries = Batch::new();
        let quiet = |held: &Held<'_>| self.grains.is_quiet(held.id, held.lock.changes());
        if total <= Self::MERGE_TO.min(MOST_ENTRIES) && quiet(&held) && quiet(&next) {
            entries.take(leaf, 0, u64::MAX);
            entries.take(next.leaf, 0, u64::MAX);
        }
        let plan = Self::plan(&entries, low, last);
        let (Some(plan), true) = (plan, entries.len() == total) else {
            next.lock.unchanged();
            held.lock.unchanged();
            return false;
        };
        leaf.set_range(low, last);
        self.fill(leaf, plan, &entries, false);
        self.dissolve(next);
        drop(held.lock);
        true
    }

    /// Takes a leaf out of use whose keys belong to the leaf before it now, which the caller has
    /// locked.
    pub(super) fn dissolve(&self, held: Held<'_>) {
        count(&self.counters.merges);
        let Some(id) = self.borders.0.remove(&held.leaf.low()) else {
            unreachable!("each leaf has a border");
        };
        self.strip(held.leaf);
        held.lock.obsolete();
        let mut ids = self.ids.lock();
        if ids.ever_alone.contains(&id) {
            ids.alone.push(id);
        } else {
            ids.free.push(id);
        }
    }
}

/// The number above `below`, and at most `above`, with the fewest bits: a route can express it.
pub(super) fn round_between(below: u64, above: u64) -> u64 {
    let bit = (below ^ above).ilog2();
    above >> bit << bit
}

/// A number that looks random.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}
