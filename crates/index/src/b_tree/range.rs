//! Visiting a range by reference, batch by batch.

use super::node::{Entry, LeafKey, LeafRef};
use super::text::KeyScratch;
use super::tree::Tree;
use crate::contract::{Direction, KeyRange};
use crate::kit::{SearchKey, SearchRange, Spec};
use std::mem::MaybeUninit;
use std::ops::{Bound, ControlFlow, Range};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version};

/// The size of the first batches, in entries: a visit that soon breaks has not read many more.
const FIRST: usize = 16;

/// The size of the largest batch, in entries. A batch is half as large as those before it together,
/// from [`FIRST`] up to this: so a visit does not read many more entries than it shows.
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
    /// How many of the entries that are still to be visited have been asked for.
    asked: usize,
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
        let mut visited = 0;
        let mut behind: Option<S::Key> = None;
        loop {
            let guard = self.collector.pin();
            let whole = SearchRange::new(range);
            let rest = match &behind {
                None => whole,
                Some(key) => beyond(&whole, key, direction),
            };
            match self.visit_pinned(&rest, direction, &mut visited, &mut visit, &guard) {
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
        visited: &mut usize,
        visit: &mut impl FnMut(&S::Key, &S::Value) -> ControlFlow<()>,
        guard: &Guard<'_>,
    ) -> Option<LeafKey<S>> {
        let mut batch = Batch::new();
        let mut cursor = None;
        let mut last: Option<LeafKey<S>> = None;
        let mut scratch = KeyScratch::new();
        for _ in 0..BATCHES_A_PIN {
            let size = (*visited / 2).clamp(FIRST, LARGEST);
            let here = cursor.take();
            let next = here.and_then(|here| {
                let next = self.go_on(here, &mut batch, size, bounds, direction);
                next.inspect_err(|Restart| self.restarted()).ok()
            });
            let next = next.unwrap_or_else(|| {
                let mut begin = |bounds: &SearchRange<'_, S>| {
                    self.retry(|| self.begin(&mut batch, size, bounds, direction, guard))
                };
                match last {
                    None => begin(bounds),
                    Some(last) => {
                        let begin = |key: &S::Key| begin(&beyond(bounds, key, direction));
                        // SAFETY: the key was read and validated; the thread has been pinned since.
                        unsafe { last.with(begin) }
                    }
                }
            });
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
            cursor = Some(next?);
            *visited += batch.length;
        }
        last
    }

    /// Reads the first entries of a range, as of one moment. Returns where others may follow.
    fn begin<'g>(
        &self,
        batch: &mut Batch<S>,
        size: usize,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
        guard: &'g Guard<'_>,
    ) -> Result<Option<Cursor<'g, S>>, Restart> {
        let (leaf, version) = self.start(bounds, direction, guard)?;
        let indices = bounds.indices_in(leaf, leaf.still(version))?;
        let here = Cursor::new(leaf, version, indices, direction);
        self.go_on(here, batch, size, bounds, direction)
    }

    /// Reads the next entries, as of one moment. Returns where others may follow. Fails if the leaf
    /// that the visit has come to has changed since.
    #[inline]
    fn go_on<'g>(
        &self,
        mut here: Cursor<'g, S>,
        batch: &mut Batch<S>,
        size: usize,
        bounds: &SearchRange<'_, S>,
        direction: Direction,
    ) -> Result<Option<Cursor<'g, S>>, Restart> {
        while here.indices.is_empty() {
            let neighbour = if here.goes_on {
                self.neighbour(here.leaf, here.version, direction)?
            } else {
                here.leaf.lock().validate(here.version)?;
                None
            };
            let Some((leaf, version)) = neighbour else {
                batch.length = 0;
                return Ok(None);
            };
            // All its keys lie behind those of the leaf that the visit comes from, and so behind
            // the bound at which the range begins.
            let still = leaf.still(version);
            let indices = match direction {
                Direction::Ascending => 0..bounds.end_in(leaf, still)?,
                Direction::Descending => bounds.start_in(leaf, still)?..leaf.count(),
            };
            here = Cursor::new(leaf, version, indices, direction);
        }
        here.read(batch, size, direction)?;
        let more = here.goes_on || !here.indices.is_empty();
        Ok(more.then_some(here))
    }
}

impl<'g, S: Spec> Cursor<'g, S> {
    /// The range has the entries at these indices in a leaf.
    fn new(
        leaf: LeafRef<'g, S>,
        version: Version,
        indices: Range<usize>,
        direction: Direction,
    ) -> Self {
        let goes_on = match direction {
            Direction::Ascending => indices.end >= leaf.count(),
            Direction::Descending => indices.start == 0,
        };
        Self {
            leaf,
            version,
            indices,
            goes_on,
            asked: 0,
        }
    }

    /// Reads up to `size` entries.
    fn read(
        &mut self,
        batch: &mut Batch<S>,
        size: usize,
        direction: Direction,
    ) -> Result<(), Restart> {
        let (leaf, indices) = (self.leaf, self.indices.clone());
        // The beginning of the next batch arrives while this batch is visited.
        let (asked, ahead) = (self.asked, indices.len().min(2 * size));
        let more = ahead.saturating_sub(asked);
        self.asked = (asked + more).saturating_sub(size);
        match direction {
            Direction::Ascending => {
                leaf.prefetch_entries(indices.start + asked, more);
                let is_near = self.goes_on && indices.len() <= 2 * size;
                if let (true, Some(next)) = (is_near, leaf.next()) {
                    LeafRef::<S>::prefetch_next(next.as_ptr());
                }
                let end = indices.end.min(indices.start + size);
                batch.fill((indices.start..end).map(|at| leaf.entry(at)));
                self.indices.start = end;
            }
            Direction::Descending => {
                leaf.prefetch_entries(indices.end - asked - more, more);
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
