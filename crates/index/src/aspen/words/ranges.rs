//! Operations on many entries.

use super::build::Batch;
use super::format::{Entry, MOST_ENTRIES, Plan, View};
use super::hot::{Table, Whole};
use super::leaf::Leaf;
use super::place::Kind;
use super::step::Locks;
use super::write::Held;
use super::{Found, Separators, Words, count};
use crate::contract::Direction;
use tremula_sync::{Backoff, Restart, Version};

/// How often a scan is tried without locks before it takes locks.
const OPTIMISTIC_SCANS: u32 = if cfg!(any(loom, shuttle)) { 1 } else { 4 };

/// A scan that wants more entries than this, from the lowest on, does not stop writers.
const LONG: usize = 1000;

/// How many leaves a scan without locks passes before it looks whether they have changed; then
/// twice as many, and so on.
const LEAVES_A_CHECK: usize = 64;

/// How often a long scan is tried so; in models never, for what comes then to be seen soon.
const OPTIMISTIC_LONG_SCANS: u32 = if cfg!(any(loom, shuttle)) {
    0
} else {
    OPTIMISTIC_SCANS
};

/// The keys from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::aspen) struct Keys {
    pub(in crate::aspen) first: u64,
    pub(in crate::aspen) last: u64,
}

impl Keys {
    pub(super) const ALL: Self = Self::new(0, u64::MAX);

    pub(super) const fn new(first: u64, last: u64) -> Self {
        Self { first, last }
    }
}

/// Where a scan puts entries.
pub(in crate::aspen) trait Sink {
    fn take(&mut self, entries: &[Entry]);
    /// Runs no code of the user from now on: this thread holds locks.
    fn defer(&mut self) {}
    /// Forgets the entries, since the scan starts again, perhaps with locks.
    fn clear(&mut self);
}

/// A scan that has come to a hot leaf.
struct HotScan<'a> {
    keys: Keys,
    direction: Direction,
    limit: usize,
    /// The other leaves.
    seen: Vec<(&'a Leaf, Version)>,
    held: Vec<Whole<'a>>,
}

/// The entries of one leaf that belong to a range, and where the range goes on.
struct Part<'a> {
    id: u32,
    leaf: &'a Leaf,
    version: Version,
    next: Option<u64>,
}

/// Where a range goes on behind the leaf with the keys from `low` to `last`.
fn behind(keys: Keys, direction: Direction, low: u64, last: u64) -> Option<u64> {
    match direction {
        Direction::Ascending if last < keys.last => Some(last + 1),
        Direction::Descending if low > keys.first => Some(low - 1),
        _ => None,
    }
}

fn start(keys: Keys, direction: Direction) -> u64 {
    match direction {
        Direction::Ascending => keys.first,
        Direction::Descending => keys.last,
    }
}

/// Copies the first `limit` entries of a range out of a leaf.
#[inline(always)]
fn copy(view: View<'_>, keys: Keys, direction: Direction, limit: usize, entries: &mut Batch) {
    let limit = limit.min(MOST_ENTRIES);
    let take = |entry| {
        entries.push(entry);
        entries.len() < limit
    };
    match direction {
        Direction::Ascending => view.walk_up(view.start(keys.first), keys.last, take),
        Direction::Descending => view.walk_down(view.end(keys.last), keys.first, take),
    };
}

/// Entries of a batch that a visit copies out.
const BATCH: usize = if cfg!(any(loom, shuttle)) { 2 } else { 32 };
/// Places whose words are loaded ahead of a walk: more than those of a batch.
const AHEAD: usize = 48;

/// Where a visit goes on.
pub(in crate::aspen) struct Cursor<'a> {
    /// The rest of the range.
    keys: Keys,
    /// The leaf of which a part has been shown, at which version, and up to which place.
    part: Option<(&'a Leaf, Version, usize)>,
}

impl Cursor<'_> {
    pub(in crate::aspen) fn new(keys: Keys) -> Self {
        Self { keys, part: None }
    }

    /// Leaves out the keys that are not behind a leaf or an entry, which has those from `low` to
    /// `last`. Returns whether any are left.
    fn go_behind(&mut self, direction: Direction, low: u64, last: u64) -> bool {
        match (behind(self.keys, direction, low, last), direction) {
            (None, _) => return false,
            (Some(next), Direction::Ascending) => self.keys.first = next,
            (Some(next), Direction::Descending) => self.keys.last = next,
        }
        true
    }
}

/// Validates leaves. If it succeeds, all were at these versions at one moment.
fn all_still(seen: &[(&Leaf, Version)]) -> Result<(), Restart> {
    seen.iter()
        .try_for_each(|(leaf, version)| leaf.lock.validate(*version))
}

impl<const UNITS: usize> Words<UNITS> {
    /// The entries of a range in a leaf, the first `limit`, as of one moment.
    #[inline(always)]
    fn part<'a>(
        &self,
        found: Found<'a>,
        keys: Keys,
        direction: Direction,
        limit: usize,
        entries: &mut Batch,
    ) -> Result<Part<'a>, Restart> {
        entries.clear();
        let Found { id, leaf, version } = found;
        let (low, last) = (leaf.low(), leaf.last());
        let within = Keys {
            first: keys.first.max(low),
            last: keys.last.min(last),
        };
        copy(View::of(leaf), within, direction, limit, entries);
        leaf.lock.validate(version)?;
        Ok(Part {
            id,
            leaf,
            version,
            next: behind(keys, direction, low, last),
        })
    }

    /// Puts the first `limit` entries of a range into `sink`, all as of one moment.
    pub(in crate::aspen) fn collect(
        &self,
        keys: Keys,
        direction: Direction,
        limit: usize,
        sink: &mut impl Sink,
    ) {
        if limit == 0 {
            return;
        }
        let is_long = limit == usize::MAX || direction == Direction::Ascending && limit > LONG;
        let tries = if is_long {
            OPTIMISTIC_LONG_SCANS
        } else {
            OPTIMISTIC_SCANS
        };
        let backoff = Backoff::new();
        for _ in 0..tries {
            let mut left = limit;
            let collected = self.try_to_collect(keys, direction, &mut left, sink);
            if collected.is_ok() {
                return;
            }
            count(&self.counters.restarts);
            sink.clear();
            // Too much was read in vain to try that again.
            if is_long && limit - left > LONG {
                break;
            }
            backoff.wait();
        }
        if is_long {
            return self.collect_beside_writers(keys, direction, limit, sink);
        }
        count(&self.counters.locked_scans);
        match direction {
            Direction::Ascending => self.collect_locked(keys, limit, sink),
            Direction::Descending => self.collect_locked_downwards(keys, limit, sink),
        }
    }

    /// `limit` is what is left of it in the end, also if the scan has to start again.
    #[inline]
    fn try_to_collect(
        &self,
        keys: Keys,
        direction: Direction,
        limit: &mut usize,
        sink: &mut impl Sink,
    ) -> Result<(), Restart> {
        let mut entries = Batch::new();
        let mut at = start(keys, direction);
        // The leaves before this one.
        let mut seen: Vec<(&Leaf, Version)> = Vec::new();
        loop {
            let found = match self.find(at) {
                Ok(found) => found,
                Err(table) => {
                    let scan = HotScan {
                        keys,
                        direction,
                        limit: *limit,
                        seen,
                        held: Vec::new(),
                    };
                    return self.collect_hot(scan, table, at, sink);
                }
            };
            let part = self.part(found, keys, direction, *limit, &mut entries)?;
            *limit -= entries.len();
            let next = part.next.filter(|_| *limit > 0);
            if let Some(next) = next {
                self.look_ahead(next, direction);
            }
            sink.take(&entries);
            let Some(next) = next else {
                return all_still(&seen);
            };
            seen.push((part.leaf, part.version));
            // Beside busy writers most long scans fail: better early.
            if seen.len() >= LEAVES_A_CHECK && seen.len().is_power_of_two() {
                all_still(&seen)?;
            }
            at = next;
        }
    }

    /// Goes on with a scan that has come to a hot leaf. Such a leaf stays locked to the end of the
    /// scan.
    #[cold]
    #[inline(never)]
    fn collect_hot<'a>(
        &'a self,
        mut scan: HotScan<'a>,
        table: &'a Table,
        at: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Restart> {
        let (mut table, mut at) = (Some(table), at);
        let mut entries = Batch::new();
        loop {
            let next = if let Some(table) = table {
                // With locks, this thread waits for nothing that lies on their left.
                if !scan.held.is_empty() && scan.direction == Direction::Descending {
                    return Err(Restart);
                }
                let whole = table.hold_all(at).ok_or(Restart)?;
                let of_leaf = whole.keys();
                let sorted = whole.sorted(scan.keys, scan.direction, scan.limit);
                scan.held.push(whole);
                scan.limit -= sorted.len();
                let next = behind(scan.keys, scan.direction, of_leaf.first, of_leaf.last);
                let next = next.filter(|_| scan.limit > 0);
                if next.is_none() {
                    // The usual case: the hot leaf is the last one, and no lock is held when `sink`
                    // has the entries.
                    self.end_hot_scan(scan)?;
                    sink.take(&sorted);
                    return Ok(());
                }
                sink.defer();
                sink.take(&sorted);
                next
            } else {
                let found = self.find_at_once(at).ok_or(Restart)?;
                let (keys, direction) = (scan.keys, scan.direction);
                let part = self.part(found, keys, direction, scan.limit, &mut entries)?;
                scan.limit -= entries.len();
                sink.take(&entries);
                scan.seen.push((part.leaf, part.version));
                part.next.filter(|_| scan.limit > 0)
            };
            let Some(next) = next else {
                return self.end_hot_scan(scan);
            };
            at = next;
            table = self.leaves.get(self.borders.leaf_of(at)).table();
        }
    }

    /// Validates a scan while its hot leaves are locked, and unlocks them.
    fn end_hot_scan(&self, scan: HotScan<'_>) -> Result<(), Restart> {
        let valid = all_still(&scan.seen);
        for whole in scan.held {
            if whole.is_polled_in_vain() {
                drop(self.cool(whole).lock);
            } else {
                whole.release();
            }
        }
        valid
    }

    /// Locks the leaves from that of the first key on, as far as needed.
    fn collect_locked(&self, keys: Keys, mut limit: usize, sink: &mut impl Sink) {
        let mut all = vec![self.hold(keys.first)];
        let mut entries = Batch::new();
        while let Some(Held { leaf, .. }) = all.last() {
            entries.clear();
            copy(
                View::of(leaf),
                keys,
                Direction::Ascending,
                limit,
                &mut entries,
            );
            sink.take(&entries);
            limit -= entries.len();
            let last = leaf.last();
            if limit == 0 || last >= keys.last {
                break;
            }
            all.push(self.hold_next(last));
        }
        for held in all {
            held.lock.unchanged();
        }
    }

    /// Locks the leaves up to that of the last key, from one that lies far enough to the left:
    /// leaves are locked from left to right.
    fn collect_locked_downwards(&self, keys: Keys, limit: usize, sink: &mut impl Sink) {
        let (mut from, mut steps) = (keys.last, 1);
        loop {
            let mut all = vec![self.hold(from)];
            while let Some(last) = all.last().map(|held| held.leaf.last())
                && last < keys.last
            {
                all.push(self.hold_next(last));
            }
            let low = all[0].leaf.low();
            let available: usize = all.iter().map(|held| View::of(held.leaf).count()).sum();
            // Of the first and the last leaf not all entries need be in the range.
            let enough = available.saturating_sub(2 * MOST_ENTRIES) >= limit || low <= keys.first;
            if enough {
                let mut limit = limit;
                let mut entries = Batch::new();
                for Held { leaf, .. } in all.iter().rev() {
                    entries.clear();
                    if limit > 0 && leaf.last() >= keys.first {
                        let within = Keys {
                            first: keys.first,
                            last: keys.last.min(leaf.last()),
                        };
                        copy(
                            View::of(leaf),
                            within,
                            Direction::Descending,
                            limit,
                            &mut entries,
                        );
                        sink.take(&entries);
                        limit -= entries.len();
                    }
                }
            }
            for held in all {
                held.lock.unchanged();
            }
            if enough {
                return;
            }
            from = low - 1;
            for _ in 1..steps {
                let leaf = match self.find(from) {
                    Ok(found) => found.leaf,
                    Err(table) => self.leaves.get(table.leaf()),
                };
                from = leaf.low().saturating_sub(1).min(from);
            }
            from = from.max(keys.first);
            steps *= 2;
        }
    }

    /// Copies the next entries out, all of one leaf and as of one moment. When the range ends, the
    /// cursor is gone.
    #[inline(always)]
    pub(in crate::aspen) fn advance<'a>(
        &'a self,
        cursor: &mut Option<Cursor<'a>>,
        direction: Direction,
        entries: &mut Batch,
    ) {
        while let Some(walk) = cursor {
            entries.clear();
            let (leaf, version, from) = match walk.part.take() {
                Some(part) => part,
                None => {
                    let key = start(walk.keys, direction);
                    let Found { leaf, version, .. } = match self.find(key) {
                        Ok(found) => found,
                        Err(table) => {
                            if !self.advance_hot(table, cursor, direction, entries) {
                                continue;
                            }
                            return;
                        }
                    };
                    let view = View::of(leaf);
                    view.prefetch_head();
                    let guess = view.guess(key);
                    let from = match direction {
                        Direction::Ascending => {
                            view.prefetch_places(guess, guess + AHEAD);
                            view.start(key)
                        }
                        Direction::Descending => {
                            view.prefetch_places(guess.saturating_sub(AHEAD), guess + 1);
                            view.end(key)
                        }
                    };
                    (leaf, version, from)
                }
            };
            let (low, last, view) = (leaf.low(), leaf.last(), View::of(leaf));
            let take = |entry| {
                entries.push(entry);
                entries.len() < BATCH
            };
            let next = match direction {
                Direction::Ascending => {
                    view.prefetch_places(from + AHEAD, from + 2 * AHEAD);
                    view.walk_up(from, walk.keys.last, take)
                }
                Direction::Descending => {
                    let to = from.saturating_sub(AHEAD);
                    view.prefetch_places(to.saturating_sub(AHEAD), to);
                    view.walk_down(from, walk.keys.first, take)
                }
            };
            if leaf.lock.validate(version).is_err() {
                count(&self.counters.restarts);
                continue;
            }
            let goes_on = match (next, entries.last()) {
                (Some(next), Some((key, _))) => {
                    walk.part = Some((leaf, version, next));
                    walk.go_behind(direction, *key, *key)
                }
                _ => {
                    let goes_on = walk.go_behind(direction, low, last);
                    if goes_on {
                        self.look_ahead(start(walk.keys, direction), direction);
                    }
                    goes_on
                }
            };
            if !goes_on {
                *cursor = None;
            }
            if !entries.is_empty() {
                return;
            }
        }
        entries.clear();
    }

    /// Copies the next entries out of a hot leaf. Returns whether there are any.
    #[cold]
    #[inline(never)]
    fn advance_hot(
        &self,
        table: &Table,
        cursor: &mut Option<Cursor<'_>>,
        direction: Direction,
        entries: &mut Batch,
    ) -> bool {
        let Some(walk) = cursor else {
            return false;
        };
        let Some(whole) = table.hold_all(start(walk.keys, direction)) else {
            return false;
        };
        let of_leaf = whole.keys();
        let sorted = whole.sorted(walk.keys, direction, MOST_ENTRIES);
        if whole.is_polled_in_vain() {
            drop(self.cool(whole).lock);
        } else {
            whole.release();
        }
        for entry in &sorted {
            entries.push(*entry);
        }
        let goes_on = match sorted.last() {
            Some((key, _)) if sorted.len() == MOST_ENTRIES => walk.go_behind(direction, *key, *key),
            _ => walk.go_behind(direction, of_leaf.first, of_leaf.last),
        };
        if !goes_on {
            *cursor = None;
        }
        !sorted.is_empty()
    }

    /// Starts to load the entries at the end of a leaf at which a walk comes to it.
    #[inline(always)]
    fn look_ahead(&self, key: u64, direction: Direction) {
        let view = View::of(self.leaves.get(self.routes.leaf_of(key)));
        view.prefetch_head();
        match direction {
            Direction::Ascending => view.prefetch_places(0, AHEAD),
            Direction::Descending => {
                let places = view.all_places();
                view.prefetch_places(places.saturating_sub(AHEAD), places);
            }
        }
    }

    /// Removes the first entry, or the last. Calls `note` once with it before that, while its leaf
    /// is locked.
    pub(in crate::aspen) fn pop(
        &self,
        direction: Direction,
        mut note: impl FnMut(Entry),
    ) -> Option<Entry> {
        let backoff = Backoff::new();
        loop {
            match self.try_to_pop(direction, &mut note) {
                Ok(popped) => return popped,
                Err(Restart) => {
                    count(&self.counters.restarts);
                    backoff.wait();
                }
            }
        }
    }

    fn try_to_pop(
        &self,
        direction: Direction,
        note: &mut impl FnMut(Entry),
    ) -> Result<Option<Entry>, Restart> {
        let keys = Keys::ALL;
        let mut entries = Batch::new();
        let mut at = start(keys, direction);
        // The leaves before this one, which were empty.
        let mut seen: Vec<(&Leaf, Version)> = Vec::new();
        loop {
            let found = match self.find(at) {
                Ok(found) => found,
                Err(table) => {
                    self.cool_at(table, at);
                    return Err(Restart);
                }
            };
            let part = self.part(found, keys, direction, 1, &mut entries)?;
            if let Some(&entry) = entries.first() {
                let lock = part.leaf.lock.upgrade(part.version)?;
                // While this leaf is locked, the entry is the first if the others are still empty.
                if all_still(&seen).is_err() {
                    lock.unchanged();
                    return Err(Restart);
                }
                note(entry);
                let view = View::of(part.leaf);
                if let Ok(place) = view.find(entry.0) {
                    let Part { id, leaf, .. } = part;
                    self.remove_at(Held { id, leaf, lock }, view, place, entry.0);
                }
                return Ok(Some(entry));
            }
            let Some(next) = part.next else {
                all_still(&seen)?;
                return Ok(None);
            };
            seen.push((part.leaf, part.version));
            at = next;
        }
    }

    /// Removes the entries of a range, whose leaves this thread has locked, all at one moment, and
    /// shows their values to `take` while leaves are locked. Returns their number.
    pub(in crate::aspen) fn remove_range(
        &self,
        locks: Locks<'_, UNITS>,
        keys: Keys,
        mut take: impl FnMut(u64),
    ) -> usize {
        let mut removed = 0;
        let mut forget = |leaf: &Leaf| {
            let (first, last) = (keys.first.max(leaf.low()), keys.last.min(leaf.last()));
            View::of(leaf).ascend(first, last, |(_, value)| {
                take(value);
                removed += 1;
                true
            });
        };
        let mut leaves = locks.into_leaves();
        let Some(first) = leaves.next() else {
            return 0;
        };
        let (leaf, low, mut last) = (first.leaf, first.leaf.low(), first.leaf.last());
        forget(leaf);
        let mut kept = Batch::new();
        if let Some(before) = keys.first.checked_sub(1).filter(|before| *before >= low) {
            kept.take(leaf, low, before);
        }
        if keys.last < last {
            kept.take(leaf, keys.last + 1, last);
        }
        for next in leaves {
            forget(next.leaf);
            if next.leaf.last() <= keys.last {
                // The first leaf takes over the keys of those that are empty now.
                last = next.leaf.last();
                self.dissolve(next);
            } else {
                let mut rest = Batch::new();
                rest.take(next.leaf, keys.last + 1, u64::MAX);
                self.refill(next, &rest);
            }
        }
        leaf.set_range(low, last);
        let few = kept.len() <= 1;
        self.refill(first, &kept);
        self.len.add(-(removed as isize));
        if few {
            self.merge(keys.first);
        }
        removed
    }

    /// Leaves a part of its entries in a leaf, and unlocks it.
    fn refill(&self, held: Held<'_>, entries: &[Entry]) {
        let plan = Self::plan(entries, held.leaf.low(), held.leaf.last())
            // A leaf may be fuller than one is made.
            .unwrap_or(Plan {
                kind: Kind::Sorted,
                units: UNITS,
            });
        self.fill(held.leaf, plan, entries, false);
        drop(held.lock);
    }
}
