//! Visiting a range by reference, batch by batch.

use super::node::{Entry, LeafKey, LeafRef};
use super::tree::Tree;
use crate::contract::{Direction, KeyRange};
use crate::kit::{SearchKey, SearchRange, Spec, prefetch};
use std::mem::MaybeUninit;
use std::ops::{Bound, ControlFlow, Range};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version};

/// The size of the first batch, in entries: a visit that soon breaks has not read many more.
const FIRST: usize = 16;

/// The size of the largest batch, in entries. Each batch is twice as large as the last, up to this.
const LARGEST: usize = 64;

/// How many batches a visit reads before it unpins the thread for a moment: about a thousand
/// entries, so that the next descent costs little by comparison.
const BATCHES_A_PIN: usize = if cfg!(any(loom, shuttle)) { 1 } else { 16 };

/// Entries that were read from a leaf, and validated.
struct Batch<S: Spec> {
    entries: [MaybeUninit<Entry<S>>; LARGEST],
    length: usize,
}

impl<S: Spec> Batch<S> {
    fn new() -> Self {
        Self {
            entries: [const { MaybeUninit::uninit() }; LARGEST],
            length: 0,
        }
    }

    fn fill(&mut self, entries: impl Iterator<Item = Entry<S>>) {
        let mut length = 0;
        for (slot, entry) in self.entries.iter_mut().zip(entries) {
            slot.write(entry);
            length += 1;
        }
        self.length = length;
    }

    fn entries(&self) -> impl Iterator<Item = Entry<S>> {
        // SAFETY: `fill` has written the first `length` entries.
        self.entries[..self.length]
            .iter()
            .map(|entry| unsafe { entry.assume_init() })
    }
}

/// How far a visit has come.
struct Cursor<'g, S: Spec> {
    leaf: LeafRef<'g, S>,
    version: Version,
    /// The entries of the leaf that are still to be visited.
    indices: Range<usize>,
    /// Whether the range goes on beyond the leaf.
    goes_on: bool,
}

impl<S: Spec> Tree<S> {
    /// Visits a range. Unpins the thread every [`BATCHES_A_PIN`] batches, so that what other
    /// threads remove meanwhile is freed however long the visit takes.
    pub(super) fn visit(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
        mut visit: impl FnMut(&S::Key, &S::Value) -> ControlFlow<()>,
    ) {
        if range.is_empty() {
            return;
        }
        let mut size = FIRST;
        let mut behind: Option<S::Key> = None;
        loop {
            let guard = self.collector.pin();
            let whole = SearchRange::new(range);
            let rest = match &behind {
                None => whole,
                Some(key) => beyond(&whole, key, direction),
            };
            match self.visit_pinned(&rest, direction, &mut size, &mut visit, &guard) {
                // SAFETY: the key was read and validated; the thread has been pinned since.
                Some(last) => behind = Some(unsafe { last.to_key() }),
                None => return,
            }
        }
    }

    /// Visits the next batches of a range. Returns the last key, if entries may follow it.
    fn visit_pinned(
        &self,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
        size: &mut usize,
        visit: &mut impl FnMut(&S::Key, &S::Value) -> ControlFlow<()>,
        guard: &Guard<'_>,
    ) -> Option<LeafKey<S>> {
        let mut batch = Batch::new();
        let mut cursor = None;
        let mut last: Option<LeafKey<S>> = None;
        let mut scratch = Vec::new();
        for _ in 0..BATCHES_A_PIN {
            let mut fill = |bounds: &SearchRange<'_, S>| {
                self.retry(|| self.fill(&mut batch, *size, &mut cursor, bounds, direction, guard))
            };
            let goes_on = match last {
                None => fill(bounds),
                Some(last) => {
                    let fill = |key: &S::Key| fill(&beyond(bounds, key, direction));
                    // SAFETY: the key was read and validated; the thread has been pinned since.
                    unsafe { last.with(fill) }
                }
            };
            // The keys lie anywhere: all of them are asked for before the first is shown.
            batch.entries().for_each(|entry| entry.key.prefetch());
            for entry in batch.entries() {
                // SAFETY: the entry was read and validated; the thread has been pinned since.
                let flow = unsafe {
                    let show = |key: &S::Key| entry.value.with(|value| visit(key, value));
                    entry.key.with_scratch(&mut scratch, show)
                };
                if flow.is_break() {
                    return None;
                }
                last = Some(entry.key);
            }
            if !goes_on {
                return None;
            }
            *size = (*size * 2).min(LARGEST);
        }
        last
    }

    /// Reads the next entries, as of one moment, and moves the cursor behind them. Returns whether
    /// more entries may follow. An attempt that fails leaves no cursor, so the next attempt
    /// descends to where `bounds` begin.
    fn fill<'g>(
        &self,
        batch: &mut Batch<S>,
        size: usize,
        cursor: &mut Option<Cursor<'g, S>>,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
        guard: &'g Guard<'_>,
    ) -> Result<bool, Restart> {
        let mut here = match cursor.take() {
            Some(here) if here.leaf.lock().validate(here.version).is_ok() => here,
            _ => {
                let (leaf, version) = self.start(bounds, direction, guard)?;
                Cursor::new(leaf, version, bounds, direction)?
            }
        };
        while here.indices.is_empty() {
            let neighbour = if here.goes_on {
                self.neighbour(here.leaf, here.version, direction)?
            } else {
                here.leaf.lock().validate(here.version)?;
                None
            };
            let Some((leaf, version)) = neighbour else {
                batch.length = 0;
                return Ok(false);
            };
            here = Cursor::new(leaf, version, bounds, direction)?;
        }
        here.read(batch, size, direction)?;
        let more = here.goes_on || !here.indices.is_empty();
        *cursor = Some(here);
        Ok(more)
    }
}

impl<'g, S: Spec> Cursor<'g, S> {
    fn new(
        leaf: LeafRef<'g, S>,
        version: Version,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
    ) -> Result<Self, Restart> {
        let indices = bounds.indices_in(leaf, leaf.still(version))?;
        let goes_on = match direction {
            Direction::Ascending => indices.end >= leaf.count(),
            Direction::Descending => indices.start == 0,
        };
        Ok(Self {
            leaf,
            version,
            indices,
            goes_on,
        })
    }

    /// Reads up to `size` entries.
    fn read(
        &mut self,
        batch: &mut Batch<S>,
        size: usize,
        direction: Direction,
    ) -> Result<(), Restart> {
        let (leaf, indices) = (self.leaf, self.indices.clone());
        // The beginning of the next batch arrives while this batch is read and visited.
        let ahead = indices.len().min(3 * size);
        match direction {
            Direction::Ascending => {
                leaf.prefetch_entries(indices.start, ahead);
                if let (true, Some(next)) = (indices.len() <= size && self.goes_on, leaf.next()) {
                    prefetch(next.as_ptr());
                }
                let end = indices.end.min(indices.start + size);
                batch.fill((indices.start..end).map(|at| leaf.entry(at)));
                self.indices.start = end;
            }
            Direction::Descending => {
                leaf.prefetch_entries(indices.end - ahead, ahead);
                let start = indices.start.max(indices.end.saturating_sub(size));
                batch.fill((start..indices.end).rev().map(|at| leaf.entry(at)));
                self.indices.end = start;
            }
        }
        leaf.lock().validate(self.version)
    }
}

/// The part of a range that lies behind a key.
fn beyond<'k, S: Spec>(
    bounds: &SearchRange<'k, S>,
    last: &'k S::Key,
    direction: Direction,
) -> SearchRange<'k, S> {
    let last = Bound::Excluded(SearchKey::new(last));
    match direction {
        Direction::Ascending => SearchRange {
            low: last,
            high: bounds.high,
        },
        Direction::Descending => SearchRange {
            low: bounds.low,
            high: last,
        },
    }
}
