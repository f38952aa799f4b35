//! Leaves that grow, split and merge.

use super::build::{Batch, New};
use super::format::{self, Entry, MOST_ENTRIES, Plan, View};
use super::leaf::Leaf;
use super::place::{Kind, Place, slots_of};
use super::write::Held;
use super::{Words, count};
use crate::contract::OrderedIndex;

/// How much of a leaf's slots must be in use after a removal, in percent. Below it the leaf gets a
/// smaller block.
const LEAST_FILL: usize = 30;

/// Entries that lie as close together as in a dense leaf, and the last of which is new: a thread
/// is probably appending to them.
const RUN: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

/// The right part of a leaf that has been split: locked, and already to be found.
pub(super) struct Half<'a> {
    pub(super) held: Held<'a>,
    /// Its lowest key.
    pub(super) cut: u64,
    /// Whether more entries are expected at its end.
    pub(super) at_end: bool,
}

impl<const UNITS: usize> Words<UNITS> {
    /// Slots of the largest leaf.
    pub(super) const SLOTS: usize = slots_of(UNITS);
    /// A leaf with at most this many entries is merged with a neighbour,
    const MERGE_FROM: usize = Self::SLOTS / 4;
    /// if both together have at most this many.
    const MERGE_TO: usize = Self::SLOTS * 6 / 10;

    /// A leaf that is not in use, locked, without a block.
    pub(super) fn take_leaf(&self) -> Held<'_> {
        let id = self.ids.lock().take(&self.leaves);
        self.renew(id)
    }

    /// The same, but a leaf that threads are going to fight over.
    pub(super) fn take_leaf_alone(&self) -> Held<'_> {
        let id = self.ids.lock().take_alone(&self.leaves);
        self.renew(id)
    }

    fn renew(&self, id: u32) -> Held<'_> {
        let leaf = self.leaves.get(id);
        let lock = leaf.lock.renew();
        Held { id, leaf, lock }
    }

    /// Leaves in use.
    pub(super) fn leaf_count(&self) -> usize {
        let ids = self.ids.lock();
        ids.in_use()
    }

    /// Fills a leaf anew, with one entry more, and unlocks it.
    #[cold]
    #[inline(never)]
    pub(super) fn fill_anew(&self, held: Held<'_>, new: Option<Entry>) {
        let half = self.refit(&held, new);
        self.let_go(held, half);
    }

    /// Fills a leaf anew, with one entry more: in another format, in a larger block, or divided
    /// between two leaves. Then it returns the right one.
    #[must_use]
    pub(super) fn refit(&self, held: &Held<'_>, new: Option<Entry>) -> Option<Half<'_>> {
        let leaf = held.leaf;
        if new.is_some_and(|new| self.stretch(leaf, new)) {
            return None;
        }
        let (entries, at) = Self::entries_with(leaf, new);
        let plan = Self::plan(&entries, leaf.low(), leaf.last());
        let plan = match at {
            New::Last => plan.map(|plan| format::plan_ahead(plan, UNITS)),
            _ => plan,
        };
        // Two dense leaves need no more memory than one with keys, and less time.
        let plan =
            plan.filter(|plan| plan.kind == Kind::Dense || !format::is_wide(&entries, UNITS));
        match plan {
            Some(plan) if new.is_none() || !leaf.place().is_like(plan.kind, plan.units) => {
                self.fill(leaf, plan, &entries, at == New::Last);
                None
            }
            // There is no room, or not where it is needed.
            _ => {
                count(&self.counters.splits);
                let cut = Self::cut(&entries, leaf.low(), at);
                let half = self.divide(held, &entries, cut, at, Self::take_leaf);
                Some(half.unwrap_or_else(|| unreachable!("each part of a leaf fits into a leaf")))
            }
        }
    }

    /// Puts an entry into a dense leaf that has no place for it, by making its block longer.
    /// Returns whether that could be done where the block is.
    fn stretch(&self, leaf: &Leaf, entry: Entry) -> bool {
        let (view, place) = (View::of(leaf), leaf.place());
        let Some(units) = format::stretched(view, entry.0, UNITS) else {
            return false;
        };
        if !self.blocks.resize(place.block(), place.units(), units) {
            return false;
        }
        leaf.set_place(Place::new(place.block(), units, place.kind()));
        let view = View::of(leaf);
        view.insert(view.seek(entry.0), entry)
    }

    /// Divides the entries of a leaf that is fought over, and unlocks it.
    pub(super) fn split_apart(&self, held: Held<'_>, cut: u64) {
        count(&self.counters.contention_splits);
        let (entries, at) = Self::entries_with(held.leaf, None);
        match self.divide(&held, &entries, cut, at, Self::take_leaf_alone) {
            Some(half) => self.let_go(held, Some(half)),
            // All on one side, and more than a leaf is made for.
            None => held.lock.unchanged(),
        }
    }

    /// Divides the entries of a leaf between it and a new right neighbour, which begins at `cut`.
    /// Does nothing if they do not fit into these two.
    fn divide<'a>(
        &'a self,
        held: &Held<'_>,
        entries: &[Entry],
        cut: u64,
        at: New,
        take_leaf: impl FnOnce(&'a Self) -> Held<'a>,
    ) -> Option<Half<'a>> {
        let (leaf, low, last) = (held.leaf, held.leaf.low(), held.leaf.last());
        let (left, right) = entries.split_at(entries.partition_point(|entry| entry.0 < cut));
        let left_plan = Self::plan(left, low, cut - 1)?;
        let mut right_plan = Self::plan(right, cut, last)?;
        self.settle_changes(held.id, leaf);
        let half = take_leaf(self);
        let at_end = at == New::Last;
        if at_end && right_plan.kind != Kind::Dense {
            // As large as can be at once, and in order of arrival: no filling anew until it is
            // full.
            right_plan = Plan {
                kind: Kind::Sorted,
                units: UNITS,
            };
        }
        half.leaf.set_range(cut, last);
        let preserved = self.leaves.preserved(held.id);
        self.leaves.set_preserved(half.id, preserved);
        self.fill(half.leaf, right_plan, right, at_end);
        // Before the left leaf gives up these keys, so that they are always to be found.
        self.borders.0.insert(cut, half.id);
        leaf.set_range(low, cut - 1);
        self.fill(leaf, left_plan, left, false);
        Some(Half {
            held: half,
            cut,
            at_end,
        })
    }

    /// Unlocks a leaf that has changed, and the one that has been split from it.
    fn let_go(&self, held: Held<'_>, half: Option<Half<'_>>) {
        let Some(Half {
            held: right,
            cut,
            at_end,
        }) = half
        else {
            return drop(held.lock);
        };
        drop(right.lock);
        drop(held.lock);
        self.mend_routes(cut, at_end);
    }

    /// What follows a split, when both leaves are unlocked.
    pub(super) fn mend_routes(&self, cut: u64, at_end: bool) {
        self.routes.mend(cut, &self.borders);
        self.routes
            .keep_up(self.leaf_count(), at_end, &self.borders);
    }

    /// Merges a small leaf that nobody fights over any more.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&self, key: u64) {
        if let Ok(found) = self.find(key)
            && View::of(found.leaf).count() <= Self::MERGE_FROM
        {
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
            // As at the end: the run stays together, and grows in a leaf with nothing behind it.
            New::Within(at) if ends_run(entries, at) => {
                let left = at + 1;
                let fits = Self::plan(&entries[..left], low, entries[at].0).is_some();
                let left = if fits { left } else { Self::SLOTS * 7 / 8 };
                (left, left)
            }
            // Not always at the same share: leaves that were full together would be so again.
            New::Within(_) | New::Nowhere => {
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
        let Ok(next) = self.hold_next_unless_hot(leaf.last()) else {
            held.lock.unchanged();
            return false;
        };
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
        let now = self.snapshots.now();
        self.preserve_up_to(held.id, leaf, now);
        self.preserve_up_to(next.id, next.leaf, now);
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
        self.ids.lock().give_back(id);
    }
}

/// Whether a new entry is the last of a run, and the next entry is too far away to be reached
/// before the run fills a leaf.
fn ends_run(entries: &[Entry], at: usize) -> bool {
    let (key, next) = (entries[at].0, entries[at + 1].0);
    at >= RUN && key - entries[at - RUN].0 <= 2 * RUN as u64 && next - key > MOST_ENTRIES as u64
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
