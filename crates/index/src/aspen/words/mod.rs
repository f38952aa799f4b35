//! A concurrent ordered map from numbers to words.

mod build;
mod format;
mod grain;
mod heat;
mod hot;
#[cfg(all(test, not(any(loom, shuttle))))]
mod hot_tests;
mod ids;
mod invariants;
mod leaf;
mod place;
mod ranges;
mod routes;
#[cfg(all(test, not(any(loom, shuttle))))]
mod snapshot_tests;
mod snapshots;
mod step;
mod structure;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod undo;
mod write;

use crate::OlcBTree;
use crate::contract::{Direction, KeyRange, OrderedIndex};
use crate::kit::blocks::Blocks;
use crate::kit::prefetch;
pub(super) use build::Batch;
pub(super) use format::Entry;
use format::View;
use grain::Grains;
#[cfg(any(test, loom, shuttle))]
pub(super) use hot::End;
use hot::{Table, Tables};
use ids::Ids;
use leaf::{Leaf, Leaves};
pub(super) use ranges::{Cursor, Keys, Sink};
use routes::{Border, Routes, Separators};
pub(crate) use snapshots::Reading;
use snapshots::Snapshots;
use std::ops::{Bound, ControlFlow};
pub(super) use step::Locks;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{Arc, Backoff, CachePadded, Mutex, Restart, StripedCounter, Version};
pub(super) use write::Change;
use write::Held;

/// The lowest key of each leaf, and the leaf's number.
struct Borders(OlcBTree<u64, u32>);

impl Separators for Borders {
    fn leaf_of(&self, key: u64) -> u32 {
        let up_to = KeyRange::new(Bound::Unbounded, Bound::Included(&key));
        let mut found = None;
        OrderedIndex::range(&self.0, up_to, Direction::Descending, &mut |_, id| {
            found = Some(*id);
            ControlFlow::Break(())
        });
        found.unwrap_or_else(|| unreachable!("the first leaf begins with the lowest key"))
    }

    fn borders(&self, first: u64, last: u64, limit: usize, borders: &mut Vec<Border>) {
        let range = KeyRange::new(Bound::Included(&first), Bound::Included(&last));
        OrderedIndex::scan(&self.0, range, Direction::Ascending, limit, borders);
    }
}

/// A leaf to which a key belonged at this version.
#[derive(Clone, Copy)]
struct Found<'a> {
    id: u32,
    leaf: &'a Leaf,
    version: Version,
}

/// What the map has decided so far. Written only where the shape changes or an operation was led
/// astray. All accesses are relaxed: the figures order nothing.
#[derive(Default)]
struct Counters {
    restarts: AtomicU64,
    detours: AtomicU64,
    locked_scans: AtomicU64,
    snapshots: AtomicU64,
    copied_leaves: AtomicU64,
    fills: AtomicU64,
    splits: AtomicU64,
    merges: AtomicU64,
    waits: AtomicU64,
    contention_splits: AtomicU64,
    heated: AtomicU64,
    drains: AtomicU64,
    cooled: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The map. Its leaves hold at most as many entries as fit into `UNITS` units.
pub(super) struct Words<const UNITS: usize> {
    routes: Routes,
    leaves: Leaves,
    borders: Borders,
    blocks: Blocks,
    ids: Mutex<Ids>,
    len: CachePadded<StripedCounter>,
    counters: CachePadded<Counters>,
    grains: Grains,
    tables: Tables,
    snapshots: Arc<Snapshots>,
}

/// Whether a key belonged to a leaf at this version.
#[inline(always)]
fn belongs(leaf: &Leaf, key: u64, version: Version) -> Result<Version, Restart> {
    let belongs = leaf.covers(key);
    leaf.lock.validate(version)?;
    if belongs { Ok(version) } else { Err(Restart) }
}

/// Lookups whose cache misses overlap.
const LANES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

impl<const UNITS: usize> Words<UNITS> {
    pub(super) fn new() -> Self {
        const { assert!(UNITS >= 1 && UNITS <= place::MOST_UNITS) };
        let words = Self {
            routes: Routes::new(),
            leaves: Leaves::new(),
            borders: Borders(OlcBTree::new()),
            blocks: Blocks::new(),
            ids: Mutex::new(Ids::new()),
            len: CachePadded::new(StripedCounter::new()),
            counters: CachePadded::new(Counters::default()),
            grains: Grains::new(),
            tables: Tables::new(),
            snapshots: Snapshots::new(),
        };
        let Held { id, leaf, lock } = words.take_leaf();
        leaf.set_range(0, u64::MAX);
        words.borders.0.insert(0, id);
        drop(lock);
        words
    }

    /// The value of a key.
    #[inline]
    pub(super) fn get(&self, key: u64) -> Option<u64> {
        let leaf = self.leaves.get(self.routes.leaf_of(key));
        match self.get_at_once(leaf, key) {
            Some(found) => found,
            None => self.get_slowly(leaf, key),
        }
    }

    /// What a lookup finds where nothing is in its way; `None` if something is.
    #[inline(always)]
    fn get_at_once(&self, leaf: &Leaf, key: u64) -> Option<Option<u64>> {
        let version = leaf.lock.try_read().ok()?;
        let low = leaf.low();
        if key.wrapping_sub(low) > leaf.span() {
            return None;
        }
        let found = View::from(leaf, low).get_at_once(key)?;
        leaf.lock.validate(version).ok()?;
        Some(found)
    }

    /// Looks for a key in a leaf, if the key belongs to it and the leaf is not hot.
    #[inline(always)]
    fn look_into(&self, leaf: &Leaf, key: u64) -> Result<Option<u64>, Restart> {
        let version = leaf.lock.read()?;
        if !leaf.covers(key) {
            return Err(Restart);
        }
        let value = View::of(leaf).get(key);
        leaf.lock.validate(version)?;
        Ok(value)
    }

    /// Looks for a key, first in this leaf.
    #[inline(never)]
    fn get_slowly(&self, leaf: &Leaf, key: u64) -> Option<u64> {
        let mut leaf = leaf;
        loop {
            if let Ok(value) = self.look_into(leaf, key) {
                return value;
            }
            if let Some(table) = leaf.table()
                && let Ok(value) = table.get(key)
            {
                return value;
            }
            leaf = match self.find(key) {
                Ok(found) => found.leaf,
                Err(table) => self.leaves.get(table.leaf()),
            };
        }
    }

    /// The leaf to which a key belongs, with a version at which it did; or its table, if it is hot.
    #[inline(always)]
    fn find(&self, key: u64) -> Result<Found<'_>, &Table> {
        let id = self.routes.leaf_of(key);
        let leaf = self.leaves.get(id);
        let version = leaf.lock.try_read();
        match version.and_then(|version| belongs(leaf, key, version)) {
            Ok(version) => Ok(Found { id, leaf, version }),
            Err(Restart) => self.find_slowly(id, key),
        }
    }

    /// The leaf to which a key belongs, if it is ordinary and no writer has it. Does not wait for
    /// any leaf.
    fn find_at_once(&self, key: u64) -> Option<Found<'_>> {
        let id = self.borders.leaf_of(key);
        let leaf = self.leaves.get(id);
        let version = leaf.lock.try_read().ok()?;
        let version = belongs(leaf, key, version).ok()?;
        Some(Found { id, leaf, version })
    }

    /// Waits for a leaf or its table, if a key belongs to it.
    fn wait_for(&self, id: u32, key: u64) -> Option<Result<Found<'_>, &Table>> {
        let leaf = self.leaves.get(id);
        if let Some(table) = leaf.table() {
            return table.has(key).then_some(Err(table));
        }
        let version = leaf.lock.read().ok()?;
        let version = belongs(leaf, key, version).ok()?;
        Some(Ok(Found { id, leaf, version }))
    }

    /// Finds what is not found at once. Asks the separators where the route leads astray, and mends
    /// it.
    #[cold]
    #[inline(never)]
    fn find_slowly(&self, id: u32, key: u64) -> Result<Found<'_>, &Table> {
        if let Some(found) = self.wait_for(id, key) {
            return found;
        }
        count(&self.counters.detours);
        let backoff = Backoff::new();
        loop {
            if let Some(found) = self.wait_for(self.borders.leaf_of(key), key) {
                self.routes.mend(key, &self.borders);
                return found;
            }
            backoff.wait();
        }
    }

    /// The values of keys, whose cache misses overlap.
    pub(super) fn get_many(
        &self,
        keys: impl IntoIterator<Item = u64>,
        mut take: impl FnMut(Option<u64>),
    ) {
        let mut keys = keys.into_iter();
        loop {
            let mut lanes: [(u64, Option<&Leaf>); LANES] = [(0, None); LANES];
            let mut used = 0;
            for (lane, key) in lanes.iter_mut().zip(keys.by_ref()) {
                let leaf = self.leaves.get(self.routes.leaf_of(key));
                prefetch(leaf);
                *lane = (key, Some(leaf));
                used += 1;
            }
            for (key, leaf) in &lanes[..used] {
                if let Some(leaf) = leaf {
                    View::of(leaf).prefetch(*key);
                }
            }
            for (key, leaf) in &lanes[..used] {
                let Some(leaf) = leaf else {
                    continue;
                };
                let found = self.get_at_once(leaf, *key);
                take(found.unwrap_or_else(|| self.get_slowly(leaf, *key)));
            }
            if used < LANES {
                return;
            }
        }
    }

    /// The number of entries: exact while no change is under way.
    pub(super) fn len(&self) -> usize {
        self.len.sum().max(0) as usize
    }

    /// Every value, in any order. No other thread may use the map meanwhile.
    pub(super) fn each_value(&mut self, mut take: impl FnMut(u64)) {
        let used = self.ids.lock().end();
        for id in 0..used {
            let leaf = self.leaves.get(id);
            if let Some(table) = leaf.table() {
                table.each(|(_, value)| take(value));
            } else if !leaf.lock.is_obsolete() {
                View::of(leaf).ascend(0, u64::MAX, |(_, value)| {
                    take(value);
                    true
                });
            }
        }
    }

    /// Named figures, in reading order. `beside` is what is allocated for a value beside its word.
    pub(super) fn figures(&self, beside: usize) -> Vec<(&'static str, u64)> {
        let kinds = self.kinds();
        let memory = self.blocks.memory();
        let (slots, rebuilt) = self.routes.count();
        let counter = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let separators = OrderedIndex::shape(&self.borders.0).get("bytes");
        let leaves = self.ids.lock().end() as usize * Leaves::BYTES_EACH;
        let own = memory.bytes + leaves + slots * size_of::<AtomicU64>() + self.tables.bytes();
        let bytes = (own + self.len() * beside) as u64 + separators.unwrap_or(0);
        let mut figures = vec![
            ("entries", self.len() as u64),
            ("bytes", bytes),
            ("leaves", kinds.iter().sum()),
            ("linear_leaves", kinds[0]),
            ("dense_leaves", kinds[1]),
            ("sorted_leaves", kinds[2]),
            ("hot_leaves", kinds[3]),
        ];
        figures.extend(memory.figures());
        figures.extend([
            ("route_slots", slots as u64),
            ("route_rebuilds", rebuilt),
            ("fills", counter(&self.counters.fills)),
            ("splits", counter(&self.counters.splits)),
            (
                "contention_splits",
                counter(&self.counters.contention_splits),
            ),
            ("merges", counter(&self.counters.merges)),
            ("heated", counter(&self.counters.heated)),
            ("drains", counter(&self.counters.drains)),
            ("cooled", counter(&self.counters.cooled)),
            ("waits", counter(&self.counters.waits)),
            ("detours", counter(&self.counters.detours)),
            ("restarts", counter(&self.counters.restarts)),
            ("locked_scans", counter(&self.counters.locked_scans)),
            ("snapshots", counter(&self.counters.snapshots)),
            ("copied_leaves", counter(&self.counters.copied_leaves)),
        ]);
        figures
    }

    /// Leaves of each format: linear, dense, sorted, hot.
    fn kinds(&self) -> [u64; 4] {
        let mut kinds = [0; 4];
        let used = self.ids.lock().end();
        for id in 0..used {
            let leaf = self.leaves.get(id);
            if leaf.table().is_some() {
                kinds[3] += 1;
            } else if !leaf.lock.is_obsolete() {
                kinds[match leaf.place().kind() {
                    place::Kind::Linear(_) => 0,
                    place::Kind::Dense => 1,
                    place::Kind::Sorted => 2,
                }] += 1;
            }
        }
        kinds
    }
}
