//! Filling leaves.

use super::format::{self, Entry, MOST_ENTRIES, Plan, View};
use super::leaf::Leaf;
use super::place::{Kind, Place};
use super::{Words, count};
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::slice;

/// Entries in ascending order, on the stack: those of one leaf and one more, or of two small ones.
pub(in crate::aspen) struct Batch {
    entries: [MaybeUninit<Entry>; MOST_ENTRIES + 1],
    length: usize,
}

impl Batch {
    #[inline(always)]
    pub(in crate::aspen) fn new() -> Self {
        Self {
            entries: [const { MaybeUninit::uninit() }; MOST_ENTRIES + 1],
            length: 0,
        }
    }

    /// Appends an entry. There is room.
    #[inline(always)]
    pub(super) fn push(&mut self, entry: Entry) {
        if let Some(place) = self.entries.get_mut(self.length) {
            place.write(entry);
            self.length += 1;
        }
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    /// Appends the entries of a leaf from `low` to `high`.
    pub(super) fn take(&mut self, leaf: &Leaf, low: u64, high: u64) {
        View::of(leaf).ascend(low, high, |entry| {
            self.push(entry);
            true
        });
    }

    /// Puts an entry where its key belongs. There is room.
    pub(super) fn put(&mut self, entry: Entry) {
        match self.binary_search_by_key(&entry.0, |other| other.0) {
            Ok(at) => drop(self.entries[at].write(entry)),
            Err(_) => drop(self.insert(entry)),
        }
    }

    /// Removes the entry of a key, if there is one.
    pub(super) fn remove(&mut self, key: u64) {
        if let Ok(at) = self.binary_search_by_key(&key, |entry| entry.0) {
            self.entries.copy_within(at + 1..self.length, at);
            self.length -= 1;
        }
    }

    /// Inserts an entry where its key belongs, and returns the index.
    fn insert(&mut self, entry: Entry) -> usize {
        let at = self.partition_point(|other| other.0 < entry.0);
        self.entries.copy_within(at..self.length, at + 1);
        self.entries[at].write(entry);
        self.length += 1;
        at
    }
}

impl Deref for Batch {
    type Target = [Entry];

    #[inline(always)]
    fn deref(&self) -> &[Entry] {
        let entries = &self.entries[..self.length];
        // SAFETY: `push` and `insert` have written the first `length` entries.
        unsafe { slice::from_raw_parts(entries.as_ptr().cast(), entries.len()) }
    }
}

/// Where among the entries of a leaf a new one belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum New {
    First,
    /// With this index, neither the first nor the last.
    Within(usize),
    Last,
    /// No entry is new.
    Nowhere,
}

impl<const UNITS: usize> Words<UNITS> {
    /// The entries of a leaf with a new one, and where it belongs.
    pub(super) fn entries_with(leaf: &Leaf, new: Option<Entry>) -> (Batch, New) {
        let mut entries = Batch::new();
        entries.take(leaf, 0, u64::MAX);
        let at = match new.map(|new| entries.insert(new)) {
            Some(at) if at + 1 == entries.len() => New::Last,
            Some(0) => New::First,
            Some(at) => New::Within(at),
            None => New::Nowhere,
        };
        (entries, at)
    }

    pub(super) fn plan(entries: &[Entry], low: u64, last: u64) -> Option<Plan> {
        format::plan(entries, low, last, UNITS)
    }

    /// Fills a leaf, which the caller has locked, with entries that it may have had before.
    pub(super) fn fill(&self, leaf: &Leaf, plan: Plan, entries: &[Entry], at_end: bool) {
        count(&self.counters.fills);
        let old = leaf.place();
        if old.units() == plan.units
            || !old.is_none() && self.blocks.resize(old.block(), old.units(), plan.units)
        {
            format::fill(leaf, old.block(), plan, entries, at_end);
            return;
        }
        let most = match plan.kind {
            Kind::Dense => plan.units,
            _ => UNITS,
        };
        let (block, units) = self.blocks.allocate(plan.units, most);
        let plan = if units == plan.units {
            plan
        } else {
            format::plan_for(entries, leaf.low(), leaf.last(), units)
        };
        format::fill(leaf, block, plan, entries, at_end);
        self.blocks.free(old.block(), old.units());
    }

    /// Takes the block of a leaf away.
    pub(super) fn strip(&self, leaf: &Leaf) {
        let old = leaf.place();
        leaf.set_place(Place::NONE);
        self.blocks.free(old.block(), old.units());
    }
}
