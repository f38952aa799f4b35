//! Leaves that become hot, are drained, and become ordinary again.
//!
//! ```text
//!   heat       [ low  entries …  last ]   ──>   [ low  entries ] [ cut  hot  last ]
//!   drain      [ low       hot   last ]   ──>   [ low  ][      ][      ] [ cut  hot  last ]
//!   cool       [ low       hot   last ]   ──>   [ low  ][      ][      ][            last ]
//! ```
//!
//! The picture is that of the high end; at the low end it is the other way round. A hot leaf keeps
//! its number and its table when it is drained: routes go on leading to it, and a thread that waits
//! for a bucket goes on as soon as the table has its new range. What has been taken out of it is
//! put in order afterwards, in new leaves that are locked so long.

use super::format::{Entry, View};
use super::hot::{BUCKET_ENTRIES, End, Table, Whole};
use super::leaf::Leaf;
use super::ranges::Keys;
use super::structure::round_between;
use super::write::Held;
use super::{Words, count};
use crate::contract::{Direction, OrderedIndex};

/// Entries between two of which a drain cuts: where the cut has few bits.
const NEAR_END: usize = 2 * BUCKET_ENTRIES.div_ceil(5);
/// How many entries may lie between a new key and the end of a leaf if the key counts as appended:
/// threads that append at once come in any order.
const MOST_BEHIND: usize = 8;

/// The end of a leaf near which a missing key belongs.
pub(super) fn end_of(leaf: &Leaf, key: u64) -> Option<End> {
    let view = View::of(leaf);
    if view.find(key).is_ok() {
        return None;
    }
    let most = MOST_BEHIND.min(view.count() / 8);
    let (mut above, mut below) = (0, 0);
    view.walk_down(view.all_places(), key, |_| {
        above += 1;
        above <= most
    });
    view.ascend(0, key, |_| {
        below += 1;
        below <= most
    });
    if above <= most {
        Some(End::High)
    } else {
        (below <= most).then_some(End::Low)
    }
}

impl<const UNITS: usize> Words<UNITS> {
    /// Entries of a leaf that is made from those of a hot one, but for a few more or less: more
    /// than of other leaves, since few will come here.
    const DRAINED: usize = Self::SLOTS * 5 / 6;

    /// Gives the keys beyond the entries of a leaf, to which threads append, to a hot leaf; and
    /// unlocks the leaf. `key` is one of them. Returns the leaf if that cannot be done.
    pub(super) fn heat<'a>(&'a self, held: Held<'a>, key: u64, end: End) -> Result<(), Held<'a>> {
        let leaf = held.leaf;
        let (low, last) = (leaf.low(), leaf.last());
        let (entries, _) = Self::entries_with(leaf, None);
        let (Some((first, _)), Some((greatest, _))) = (entries.first(), entries.last()) else {
            return Err(held);
        };
        let (cut, left) = match end {
            End::High if *greatest == last => return Err(held),
            End::High => (round_between(*greatest, key.max(greatest + 1)), true),
            End::Low if *first == low => return Err(held),
            End::Low => (round_between(key.min(first - 1), *first), false),
        };
        let (rest, beyond) = if left {
            (Keys::new(low, cut - 1), Keys::new(cut, last))
        } else {
            (Keys::new(cut, last), Keys::new(low, cut - 1))
        };
        let Some(plan) = Self::plan(&entries, rest.first, rest.last) else {
            return Err(held);
        };
        let Some(table) = self.tables.take() else {
            return Err(held);
        };
        count(&self.counters.heated);
        self.settle_changes(held.id, leaf);
        let hot = self.take_leaf_alone();
        hot.leaf.set_range(beyond.first, beyond.last);
        self.set_borders(cut, low, &hot, &held, left);
        leaf.set_range(rest.first, rest.last);
        self.fill(leaf, plan, &entries, false);
        hot.leaf.set_table(table);
        // From here on the locks of the buckets are that of the leaf.
        let whole = table.open(hot.id, beyond, end, self.leaves.preserved(held.id));
        hot.lock.leave();
        drop(whole);
        drop(held.lock);
        self.mend_routes(cut, left);
        Ok(())
    }

    /// Makes a leaf hot for the keys at this end of the leaf of `key`, if that can be done: for
    /// tests and models, which need no threads for it then.
    #[cfg(any(test, loom, shuttle))]
    pub(in crate::aspen) fn heat_at(&self, key: u64, end: End) {
        let held = self.hold(key);
        if let Err(held) = self.heat(held, key, end) {
            held.lock.unchanged();
        }
    }

    /// Divides the keys from `low` on between two leaves, which this thread has locked, at `cut`.
    /// Before the one that has them all gives up a part of them, as with every split.
    fn set_borders(&self, cut: u64, low: u64, hot: &Held<'_>, rest: &Held<'_>, left: bool) {
        let (before, behind) = if left { (rest, hot) } else { (hot, rest) };
        self.borders.0.insert(cut, behind.id);
        self.borders.0.insert(low, before.id);
    }

    /// Drains the hot leaf of a key, if there is still no room for the key in it.
    pub(super) fn make_room(&self, table: &Table, key: u64) {
        let Some(whole) = table.hold_all(key) else {
            return;
        };
        if !whole.is_full_for(key) {
            whole.release();
        } else if whole.is_one_threads() {
            drop(self.cool(whole).lock);
        } else {
            self.drain(whole);
        }
    }

    /// Takes as many entries out of a hot leaf as fill leaves, and puts them in order in new ones.
    fn drain(&self, whole: Whole<'_>) {
        count(&self.counters.drains);
        let Keys { first: low, last } = whole.keys();
        let end = whole.end();
        let id = whole.table.leaf();
        let leaf = self.leaves.get(id);
        let now = self.snapshots.now();
        self.preserve_whole(&whole, now);
        let mut entries = whole.entries(Keys::ALL);
        let all = entries.len();
        // There are at least `NEAR_END`, since a bucket is full.
        let most = all - NEAR_END / 2;
        let most = if most < Self::DRAINED {
            most
        } else {
            most / Self::DRAINED * Self::DRAINED
        };
        // The cut is between two of these.
        let (from, to) = (most.saturating_sub(NEAR_END / 2).max(1), most);
        let (cut, kept, moved, rest);
        match end {
            End::High => {
                entries.select_nth_unstable_by_key(from - 1, |entry| entry.0);
                entries[from - 1..].sort_unstable_by_key(|entry| entry.0);
                cut = round_between(entries[from - 1].0, entries[to].0);
                kept = entries.split_off(entries.partition_point(|entry| entry.0 < cut));
                moved = Keys::new(low, cut - 1);
                rest = Keys::new(cut, last);
            }
            End::Low => {
                let (from, to) = (all - to, all - from);
                entries.select_nth_unstable_by_key(to, |entry| entry.0);
                entries[..to].sort_unstable_by_key(|entry| entry.0);
                cut = round_between(entries[from - 1].0, entries[to].0);
                let at = entries[..to].partition_point(|entry| entry.0 < cut);
                let others = entries.split_off(at);
                kept = std::mem::replace(&mut entries, others);
                moved = Keys::new(cut, last);
                rest = Keys::new(low, cut - 1);
            }
        }
        let ordered = self.take_leaf();
        ordered.leaf.set_range(moved.first, moved.last);
        self.leaves.set_preserved(ordered.id, now);
        let (before, behind) = match end {
            End::High => (ordered.id, id),
            End::Low => (id, ordered.id),
        };
        self.borders.0.insert(cut, behind);
        self.borders.0.insert(low, before);
        leaf.set_range(rest.first, rest.last);
        whole.refill(rest, &kept);
        // From here on threads go on appending.
        drop(whole);
        self.routes.mend(cut, &self.borders);
        entries.sort_unstable_by_key(|entry| entry.0);
        drop(self.spread(&ordered, &entries));
        drop(ordered.lock);
        self.mend_routes(moved.first, end == End::High);
    }

    /// Makes a hot leaf an ordinary one, with new ones on its right if need be, and returns it
    /// locked.
    pub(super) fn cool<'a>(&'a self, whole: Whole<'a>) -> Held<'a> {
        count(&self.counters.cooled);
        let now = self.snapshots.now();
        self.preserve_whole(&whole, now);
        let entries = whole.sorted(Keys::ALL, Direction::Ascending, usize::MAX);
        let id = whole.table.leaf();
        let leaf = self.leaves.get(id);
        // The thread that opened the table left it, and all buckets are locked.
        let lock = leaf.lock.take_over();
        let held = Held { id, leaf, lock };
        self.leaves.set_preserved(id, now);
        leaf.set_place(super::place::Place::NONE);
        self.tables.close(whole);
        drop(self.spread(&held, &entries));
        held
    }

    /// Makes the leaf of a key ordinary, if it is still hot.
    pub(super) fn cool_at(&self, table: &Table, key: u64) {
        if let Some(whole) = table.hold_all(key) {
            drop(self.cool(whole).lock);
        }
    }

    /// Divides entries among a leaf, which this thread has locked and which has no block, and new
    /// leaves on its right, which it returns locked.
    fn spread<'a>(&'a self, first: &Held<'a>, entries: &[Entry]) -> Vec<Held<'a>> {
        let (low, last) = (first.leaf.low(), first.leaf.last());
        let parts = entries.len().div_ceil(Self::DRAINED).max(1);
        let mut others = Vec::with_capacity(parts - 1);
        // The last key and the end of the part that comes next, from the right.
        let (mut to, mut end) = (last, entries.len());
        for at in (1..parts).rev().map(|index| index * entries.len() / parts) {
            let near = entries.len() / parts / 32;
            let cut = round_between(entries[at - 1 - near].0, entries[at + near].0);
            let from = entries.partition_point(|entry| entry.0 < cut);
            let other = self.take_leaf();
            other.leaf.set_range(cut, to);
            let preserved = self.leaves.preserved(first.id);
            self.leaves.set_preserved(other.id, preserved);
            self.fill_part(other.leaf, &entries[from..end]);
            self.borders.0.insert(cut, other.id);
            others.push(other);
            (to, end) = (cut - 1, from);
        }
        first.leaf.set_range(low, to);
        self.fill_part(first.leaf, &entries[..end]);
        others
    }

    fn fill_part(&self, leaf: &Leaf, entries: &[Entry]) {
        let plan = Self::plan(entries, leaf.low(), leaf.last())
            .unwrap_or_else(|| unreachable!("a part of a hot leaf fits into a leaf"));
        self.fill(leaf, plan, entries, false);
    }
}
