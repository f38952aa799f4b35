//! Routes: hints which leaf a key belongs to.
//!
//! ```text
//! key ──> slot ──> leaf at the slot's beginning, or behind its border
//!           └────> (more than one border) a table of its own, which spans only these
//! ```
//!
//! A table divides the keys from the lowest border between leaves to the highest into slots of one
//! size. A route may be stale: the leaf itself says which keys belong to it. A thread that was led
//! astray asks the separators, and mends the slot. So no reader validates a route, and none waits.
//!
//! A table stays until the map is dropped, for readers that are there. One that is out of use is
//! used again: a reader that is still there then finds a route that leads astray, no worse.

use super::leaf::MOST_LEAVES;
use std::ptr;
use tremula_sync::Mutex;
use tremula_sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Bits of a border within a slot.
const BORDER_BITS: u32 = 10;
const ID_BITS: u32 = 26;
const ID: u64 = (1 << ID_BITS) - 1;
const BEFORE_AT: u32 = BORDER_BITS;
const BEHIND_AT: u32 = BEFORE_AT + ID_BITS;
/// Stands for a table of its own: the sign.
const NESTED: u64 = 1 << 63;
/// How many tables a route may lead through.
const DEEPEST: usize = 10;
/// Slots for each leaf of which a table knows.
const SLOTS_A_LEAF: usize = 2;

const _: () = assert!(MOST_LEAVES <= 1 << ID_BITS);

/// The lowest key of a leaf, and the leaf.
pub(super) type Border = (u64, u32);

/// The keys from the first to the last.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u64,
    last: u64,
}

/// Slots that divide a part of the keys. All loads and stores of its words are relaxed: whatever a
/// reader sees is a hint.
struct Table {
    /// The first key of the first slot.
    first: AtomicU64,
    /// The distance from there to the last key of the last slot. Farther keys belong to that slot.
    reach: AtomicU64,
    /// A slot has 2^shift keys.
    shift: AtomicU64,
    /// A power of two of them.
    slots: Box<[AtomicU64]>,
    /// Their number less one.
    mask: usize,
    /// The tables to which slots lead, by slot: null, or a boxed array of as many pointers as there
    /// are slots.
    nested: AtomicPtr<AtomicPtr<Table>>,
}

fn plain(id: u32) -> u64 {
    route(id, id, 0)
}

fn route(before: u32, behind: u32, border: u64) -> u64 {
    border | u64::from(before) << BEFORE_AT | u64::from(behind) << BEHIND_AT
}

impl Table {
    fn with_slots(count: usize) -> Self {
        Self {
            first: AtomicU64::new(0),
            reach: AtomicU64::new(0),
            shift: AtomicU64::new(0),
            slots: (0..count).map(|_| AtomicU64::new(0)).collect(),
            mask: count - 1,
            nested: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The slot of a key, and the key's distance from the first key of the table.
    #[inline(always)]
    fn locate(&self, key: u64) -> (usize, u64) {
        let distance = key
            .saturating_sub(self.first.load(Ordering::Relaxed))
            .min(self.reach.load(Ordering::Relaxed));
        let shift = self.shift();
        // The mask only matters to a reader of a table that has come to another use meanwhile.
        ((distance >> shift) as usize & self.mask, distance)
    }

    #[inline(always)]
    fn slot(&self, slot: usize) -> u64 {
        // SAFETY: `locate` has masked the number, and there is a slot for each masked number.
        unsafe { self.slots.get_unchecked(slot & self.mask) }.load(Ordering::Relaxed)
    }

    /// The table to which a slot leads.
    #[inline]
    fn nested(&self, slot: usize) -> Option<&Table> {
        // Acquire: pairs with the releases in `lead_to`, for the array and for the table.
        let nested = self.nested.load(Ordering::Acquire);
        if nested.is_null() {
            return None;
        }
        // SAFETY: the array has as many pointers as there are slots; tables live as long as the
        // routes.
        unsafe { (*nested.add(slot)).load(Ordering::Acquire).as_ref() }
    }

    /// Lets a slot lead to a table.
    fn lead_to(&self, slot: usize, table: &Table) {
        let mut nested = self.nested.load(Ordering::Relaxed);
        if nested.is_null() {
            let none = || AtomicPtr::new(ptr::null_mut());
            let array: Box<[AtomicPtr<Table>]> = self.slots.iter().map(|_| none()).collect();
            nested = Box::into_raw(array).cast();
            self.nested.store(nested, Ordering::Release);
        }
        // SAFETY: as in `nested`.
        let place = unsafe { &*nested.add(slot) };
        place.store(ptr::from_ref(table).cast_mut(), Ordering::Release);
        self.slots[slot].store(NESTED, Ordering::Relaxed);
    }

    /// The keys of a slot: of the first and the last one also those beyond them, as far as `whole`
    /// goes.
    fn span_of(&self, slot: usize, whole: Span) -> Span {
        let (first, shift) = (self.first.load(Ordering::Relaxed), self.shift());
        let start = |slot: usize| first.saturating_add((slot as u64) << shift);
        let last_slot = (self.reach.load(Ordering::Relaxed) >> shift) as usize;
        Span {
            first: if slot == 0 { whole.first } else { start(slot) },
            last: if slot == last_slot {
                whole.last
            } else {
                start(slot + 1) - 1
            },
        }
    }

    #[inline(always)]
    fn shift(&self) -> u64 {
        self.shift.load(Ordering::Relaxed) & 63
    }

    /// How far into its slot a key lies that has this distance from the first key of the table, as
    /// a border says it: in steps of a slot's 1,024th part, or of that of 1,024 keys if it has
    /// fewer.
    #[inline(always)]
    fn step(&self, distance: u64) -> u64 {
        // For a slot of one key this is the whole distance, of which nothing is left here: its
        // border is 0.
        distance << (self.shift().wrapping_neg() & 63) >> (u64::BITS - BORDER_BITS)
    }

    /// Lets a slot lead to the leaf `before` and, from the border on, to the leaf behind it.
    /// Returns whether a slot can express that.
    fn set(&self, slot: usize, before: u32, border: Option<Border>) -> bool {
        let word = match border {
            None => plain(before),
            Some((low, id)) => {
                let start = self.first.load(Ordering::Relaxed) + ((slot as u64) << self.shift());
                let Some(distance) = low.checked_sub(start) else {
                    return false;
                };
                let finer = (1 << self.shift().saturating_sub(BORDER_BITS.into())) - 1;
                if distance >> self.shift() != 0 || distance & finer != 0 {
                    return false;
                }
                route(before, id, self.step(distance))
            }
        };
        self.slots[slot].store(word, Ordering::Relaxed);
        true
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let nested = self.nested.load(Ordering::Relaxed);
        if !nested.is_null() {
            let array = ptr::slice_from_raw_parts_mut(nested, self.slots.len());
            // SAFETY: it came from a box of this length in `lead_to`.
            drop(unsafe { Box::from_raw(array) });
        }
    }
}

/// Where the truth is found.
pub(super) trait Separators {
    /// The leaf to which a key belongs.
    fn leaf_of(&self, key: u64) -> u32;

    /// Appends the borders from `first` to `last`, ascending, `limit` at most.
    fn borders(&self, first: u64, last: u64, limit: usize, borders: &mut Vec<Border>);
}

/// The tables, and which of them are in use.
struct Keeper {
    /// Never null: each came from a box, and is freed when the routes are.
    tables: Vec<*mut Table>,
    unused: Vec<*mut Table>,
    /// For how many leaves the first table was made.
    leaves: usize,
    /// Slots that should have led to a table of their own, but were too deep, since then.
    too_deep: usize,
    /// The tables that were made since then, and those for which one was used again.
    rebuilt: u64,
}

/// The routes of a map.
pub(super) struct Routes {
    first: AtomicPtr<Table>,
    keeper: Mutex<Keeper>,
}

// SAFETY: the tables belong to the routes, and nothing is tied to a thread.
unsafe impl Send for Routes {}
// SAFETY: all of a table that changes is atomic; the list of tables is behind a mutex.
unsafe impl Sync for Routes {}

impl Keeper {
    /// A table with this many slots and no routes, and with no tables behind it.
    fn table(&mut self, slots: usize) -> *mut Table {
        let slots = slots.next_power_of_two();
        // SAFETY: tables live as long as the keeper.
        let fits = |table: &*mut Table| unsafe { &**table }.slots.len() == slots;
        if let Some(at) = self.unused.iter().position(fits) {
            return self.unused.swap_remove(at);
        }
        let table = Box::into_raw(Box::new(Table::with_slots(slots)));
        self.tables.push(table);
        table
    }

    /// Fills a table for these borders, of which there is at least one. `before` is the leaf in
    /// front of them. `ahead`: more borders are expected behind the last.
    fn build(
        &mut self,
        before: u32,
        borders: &[Border],
        whole: Span,
        ahead: bool,
        depth: usize,
    ) -> *mut Table {
        let (low, high) = (borders[0].0, borders[borders.len() - 1].0);
        let bits = u64::BITS - (high - low).leading_zeros();
        let wanted = (SLOTS_A_LEAF * borders.len()).next_power_of_two().ilog2();
        let shift = bits.saturating_sub(wanted).min(63);
        // The slot in which the first border lies, so that keys before it have a leaf too.
        let first = (low - 1) >> shift << shift;
        let end = if ahead {
            high.saturating_add(high - low).min(whole.last)
        } else {
            high
        };
        let count = ((end - first) >> shift) as usize + 1;
        let made = self.table(count);
        // SAFETY: tables live as long as the keeper.
        let table = unsafe { &*made };
        let reach = ((count as u128) << shift) - 1;
        table.first.store(first, Ordering::Relaxed);
        table
            .reach
            .store(u64::try_from(reach).unwrap_or(u64::MAX), Ordering::Relaxed);
        table.shift.store(u64::from(shift), Ordering::Relaxed);
        let (mut before, mut next) = (before, 0);
        for slot in 0..count {
            let span = table.span_of(slot, whole);
            while next < borders.len() && borders[next].0 <= span.first {
                before = borders[next].1;
                next += 1;
            }
            let end = next + borders[next..].partition_point(|border| border.0 <= span.last);
            self.set(table, slot, before, &borders[next..end], span, depth);
            if end > next {
                before = borders[end - 1].1;
                next = end;
            }
        }
        made
    }

    /// Lets a slot lead to the leaves at these borders.
    fn set(
        &mut self,
        table: &Table,
        slot: usize,
        before: u32,
        borders: &[Border],
        span: Span,
        depth: usize,
    ) {
        if borders.len() <= 1 && table.set(slot, before, borders.first().copied()) {
            return;
        }
        if depth + 1 == DEEPEST {
            self.too_deep += 1;
            table.set(slot, before, None);
            return;
        }
        let nested = self.build(before, borders, span, false, depth + 1);
        // SAFETY: tables live as long as the keeper.
        table.lead_to(slot, unsafe { &*nested });
    }

    /// Lets a slot lead to the leaves that have its keys now.
    fn make_slot(
        &mut self,
        table: &Table,
        slot: usize,
        span: Span,
        depth: usize,
        separators: &impl Separators,
    ) {
        let mut borders = Vec::new();
        let before = separators.leaf_of(span.first);
        if span.first < span.last {
            separators.borders(span.first + 1, span.last, usize::MAX, &mut borders);
        }
        self.set(table, slot, before, &borders, span, depth);
    }

    /// Puts a table, and those behind it, among the unused ones.
    fn retire(&mut self, table: *mut Table) {
        self.unused.push(table);
        // SAFETY: tables live as long as the keeper.
        let table = unsafe { &*table };
        for (slot, word) in table.slots.iter().enumerate() {
            if word.load(Ordering::Relaxed) == NESTED
                && let Some(nested) = table.nested(slot)
            {
                self.retire(ptr::from_ref(nested).cast_mut());
            }
            word.store(0, Ordering::Relaxed);
        }
    }
}

const ALL: Span = Span {
    first: 0,
    last: u64::MAX,
};

impl Routes {
    /// Routes that lead to leaf 0.
    pub(super) fn new() -> Self {
        let mut keeper = Keeper {
            tables: Vec::new(),
            unused: Vec::new(),
            leaves: 1,
            too_deep: 0,
            rebuilt: 0,
        };
        let first = keeper.table(1);
        Self {
            first: AtomicPtr::new(first),
            keeper: Mutex::new(keeper),
        }
    }

    /// The leaf to which a key probably belongs. It has been in use.
    #[inline(always)]
    pub(super) fn leaf_of(&self, key: u64) -> u32 {
        // Acquire: pairs with the release in `rebuild`, for the table that was made.
        // SAFETY: never null; tables live as long as `self`.
        let mut table = unsafe { &*self.first.load(Ordering::Acquire) };
        loop {
            let (slot, distance) = table.locate(key);
            let word = table.slot(slot);
            if word & NESTED == 0 {
                let is_before = table.step(distance) < word & ((1 << BORDER_BITS) - 1);
                let id = word >> if is_before { BEFORE_AT } else { BEHIND_AT };
                return (id & ID) as u32;
            }
            match table.nested(slot) {
                Some(nested) => table = nested,
                None => return 0,
            }
        }
    }

    /// Corrects the slot of a key. Does nothing while another thread changes routes.
    pub(super) fn mend(&self, key: u64, separators: &impl Separators) {
        let Some(mut keeper) = self.keeper.try_lock() else {
            return;
        };
        // SAFETY: never null; tables live as long as `self`.
        let first = unsafe { &*self.first.load(Ordering::Relaxed) };
        let (mut table, mut span, mut depth) = (first, ALL, 0);
        let too_deep = keeper.too_deep;
        loop {
            let (slot, _) = table.locate(key);
            span = table.span_of(slot, span);
            match table.nested(slot) {
                Some(nested) if table.slots[slot].load(Ordering::Relaxed) == NESTED => {
                    table = nested;
                    depth += 1;
                }
                _ => {
                    keeper.make_slot(table, slot, span, depth, separators);
                    break;
                }
            }
        }
        if keeper.too_deep == too_deep || depth == 0 {
            return;
        }
        // Tables were put below one another where borders came one by one. Made at once, they are
        // not so deep.
        let (slot, _) = first.locate(key);
        let nested = first.nested(slot).map(ptr::from_ref);
        keeper.make_slot(first, slot, first.span_of(slot, ALL), 0, separators);
        if let Some(nested) = nested {
            keeper.retire(nested.cast_mut());
        }
    }

    /// Makes the tables anew, if there are twice as many leaves as when they were made, or too
    /// many slots lead nowhere. `ahead`: the last leaf has been split at its end.
    pub(super) fn keep_up(&self, leaves: usize, ahead: bool, separators: &impl Separators) {
        let Some(mut keeper) = self.keeper.try_lock() else {
            return;
        };
        if leaves < 2 * keeper.leaves && keeper.too_deep <= leaves / 8 + 1 {
            return;
        }
        let mut borders = Vec::with_capacity(leaves);
        separators.borders(1, u64::MAX, usize::MAX, &mut borders);
        if borders.is_empty() {
            return;
        }
        let old = self.first.load(Ordering::Relaxed);
        keeper.too_deep = 0;
        keeper.leaves = borders.len() + 1;
        keeper.rebuilt += 1;
        let first = keeper.build(separators.leaf_of(0), &borders, ALL, ahead, 0);
        // What is still too deep now would be so again.
        keeper.too_deep = 0;
        // Release: pairs with the acquire in `leaf_of`.
        self.first.store(first, Ordering::Release);
        keeper.retire(old);
    }

    /// Slots of all tables, and how often the tables were made anew.
    pub(super) fn count(&self) -> (usize, u64) {
        let keeper = self.keeper.lock();
        // SAFETY: tables live as long as the keeper.
        let slots = |table: &*mut Table| unsafe { &**table }.slots.len();
        (keeper.tables.iter().map(slots).sum(), keeper.rebuilt)
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        for table in self.keeper.lock().tables.drain(..) {
            // SAFETY: it came from a box in `table`, and nobody has it any more.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}
