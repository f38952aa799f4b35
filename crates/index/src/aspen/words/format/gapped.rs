//! Slots in ascending order, some of them gaps. Each slot has a key, so that a search need not ask
//! which are gaps.
//!
//! - A gap has the key of the slot on its left, or the lowest key of the leaf if it is the first; a
//!   gap behind the last entry may have the greatest number instead. So keys never descend.
//! - If the lowest key of the leaf has an entry, it is in slot 0.
//! - In a linear block each entry is at its *home* or behind it, so a search begins at the home of
//!   its key. The first slot from there on whose key is not below is that of the key, if it has
//!   an entry. This is a Robin Hood hash table whose hash function keeps the order.

use super::{Entry, Plan, Present, View, home_of};
use crate::aspen::words::place::{
    HEAD_WORDS, Kind, MOST_UNITS, Model, UNIT_SLOTS, WINDOW, slots_of,
};
use crate::kit::apart;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// Slots that an insertion moves at most; for more, the leaf is filled anew.
const MOST_MOVES: usize = 64;
/// Slots of a segment of a sorted block, of which each has a sample: its first key.
const SEGMENT: usize = if slots_of(1) < 16 { slots_of(1) } else { 16 };
/// How full a leaf is made when it is filled anew, in percent.
const FILL: usize = 72;
/// How full a leaf of the most units may be made, in percent. Under a checker it has three slots,
/// and may be divided into one entry and three.
const FULL: usize = if cfg!(any(loom, shuttle)) { 100 } else { 90 };

/// Where the search for a key begins, in a linear block.
#[inline(always)]
pub(super) fn home(view: View<'_>, key: u64) -> usize {
    view.place.home(key.wrapping_sub(view.low))
}

/// How many of the slots from `at` on, `LENGTH` of them, have a key below `key`.
///
/// # Safety
///
/// There is a block, and it has these slots.
#[inline(always)]
unsafe fn below<const LENGTH: usize>(view: View<'_>, at: usize, key: u64) -> usize {
    // Two sums, which do not wait for each other.
    let mut sums = [0; 2];
    for slot in 0..LENGTH {
        // SAFETY: the caller says so.
        let word = unsafe { view.word(2 * (at + slot)) };
        let sum = &mut sums[slot % 2];
        *sum = apart(*sum + usize::from(word.load(Ordering::Relaxed) < key));
    }
    sums[0] + sums[1]
}

#[inline(always)]
pub(super) fn seek_linear(view: View<'_>, key: u64) -> usize {
    let home = home(view, key);
    // SAFETY: a linear leaf has a block, and a home is below the most slots.
    let count = unsafe { below::<WINDOW>(view, home, key) };
    if count == WINDOW {
        return seek_on(view, home + WINDOW, key);
    }
    home + count
}

/// The value of a key in a linear block, if it is not far from its home.
#[inline(always)]
pub(super) fn get_linear(view: View<'_>, key: u64) -> Option<Option<u64>> {
    let home = home(view, key);
    // SAFETY: as in `seek_linear`.
    let count = unsafe { below::<WINDOW>(view, home, key) };
    if count == WINDOW {
        return None;
    }
    let at = home + count;
    // SAFETY: among the slots that were compared.
    let (found, value) = unsafe { view.entry::<false>(at) };
    if found != key {
        return Some(None);
    }
    // Of the slots with one key the first has an entry, unless gaps at the ends have these keys.
    if key == view.low || key == u64::MAX {
        return None;
    }
    Some(Some(value))
}

/// The value of a key for which a lookup needs more than a window of a linear block.
#[inline(never)]
pub(super) fn get_slowly(view: View<'_>, key: u64) -> Option<u64> {
    let at = if view.place.is_linear() {
        seek_linear(view, key)
    } else {
        seek_sorted(view, key)
    };
    value_if(view, at, key)
}

/// The value at a slot, if it is that of a key.
#[inline(always)]
fn value_if(view: View<'_>, at: usize, key: u64) -> Option<u64> {
    if at >= view.slots() {
        return None;
    }
    // SAFETY: compared above.
    let (found, value) = unsafe { view.entry::<false>(at) };
    (found == key && view.is_present(at)).then_some(value)
}

/// Goes on slot by slot.
#[cold]
fn seek_on(view: View<'_>, from: usize, key: u64) -> usize {
    let is_below = |slot: &usize| view.key_in(*slot) < key;
    from + (from..view.slots()).take_while(is_below).count()
}

/// Compares the samples, whose cache misses overlap, and then the slots of one segment.
#[inline]
pub(super) fn seek_sorted(view: View<'_>, key: u64) -> usize {
    let slots = view.slots();
    if slots == 0 {
        return 0;
    }
    let mut segment = 0;
    for sample in (SEGMENT..slots).step_by(SEGMENT) {
        segment = apart(segment + usize::from(view.key_in(sample) < key));
    }
    // The last segment may be shorter, and is searched with slots before it.
    let start = (SEGMENT * segment).min(slots - SEGMENT);
    // SAFETY: there are slots, and these are among them.
    start + unsafe { below::<SEGMENT>(view, start, key) }
}

#[inline(always)]
fn put(view: View<'_>, slot: usize, (key, value): Entry) {
    let words = &view.words()[2 * slot..][..2];
    words[0].store(key, Ordering::Relaxed);
    words[1].store(value, Ordering::Relaxed);
}

/// Puts an entry at a slot from `home` on. `at` is the first of them whose key is not below.
#[inline(always)]
pub(super) fn insert(view: View<'_>, home: usize, at: usize, entry: Entry) -> bool {
    let slots = view.slots();
    if at < slots && !view.is_present(at) {
        // A gap at one of the ends. What lies between it and the last entry keeps the order.
        let from = view.last_below(at).map_or(0, |last| last + 1);
        let left = match from.checked_sub(1) {
            Some(last) => view.key_in(last),
            None => view.low,
        };
        for slot in from..at {
            view.words()[2 * slot].store(left, Ordering::Relaxed);
        }
        put(view, at, entry);
        view.mark(at);
        return true;
    }
    // The gaps right on the left.
    let from = view.last_below(at).map_or(0, |last| last + 1).max(home);
    if from < at {
        for slot in from + 1..at {
            view.words()[2 * slot].store(entry.0, Ordering::Relaxed);
        }
        put(view, from, entry);
        view.mark(from);
        return true;
    }
    if at >= slots {
        return false;
    }
    let Some(gap) = view
        .next(at, false)
        .filter(|gap| *gap < slots && gap - at <= MOST_MOVES)
    else {
        return false;
    };
    for slot in (at..gap).rev() {
        // SAFETY: `gap` is below the number of slots.
        put(view, slot + 1, unsafe { view.entry::<false>(slot) });
    }
    put(view, at, entry);
    view.mark(gap);
    true
}

/// Makes a gap of a slot.
#[inline(always)]
pub(super) fn remove(view: View<'_>, at: usize) {
    view.unmark(at);
    let left = match at.checked_sub(1) {
        Some(left) => view.key_in(left),
        None => view.low,
    };
    match view.next(at, true).filter(|next| *next < view.slots()) {
        Some(next) => {
            for slot in at..next {
                view.words()[2 * slot].store(left, Ordering::Relaxed);
            }
        }
        // The gaps up to those that have the greatest number have the removed key.
        None => {
            for slot in at..view.slots() {
                if view.key_in(slot) == u64::MAX {
                    break;
                }
                view.words()[2 * slot].store(u64::MAX, Ordering::Relaxed);
            }
        }
    }
}

/// How many units this number of entries takes.
fn units_for(entries: usize, most: usize) -> Option<usize> {
    let units = (entries * 100).div_ceil(FILL * UNIT_SLOTS).max(1);
    let units = units.min(most);
    let limit = if units == most { FULL } else { 100 };
    (entries * 100 <= limit * slots_of(units)).then_some(units)
}

pub(super) fn plan(entries: &[Entry], low: u64, last: u64, most: usize) -> Option<Plan> {
    let units = units_for(entries.len(), most.min(MOST_UNITS))?;
    Some(plan_for(entries, low, last, units))
}

pub(super) fn plan_for(entries: &[Entry], low: u64, last: u64, units: usize) -> Plan {
    let slots = slots_of(units);
    let linear = (0..3).find_map(|less| {
        let homes = (slots - WINDOW)
            .checked_sub(less * (WINDOW / 2))
            .filter(|homes| *homes > 0)?;
        let model = Model::new(last - low, homes);
        is_good(entries, low, model, slots).then_some(Kind::Linear(model))
    });
    Plan {
        kind: linear.unwrap_or(Kind::Sorted),
        units,
    }
}

/// How many entries of a linear block may lie beyond the slots that a search looks at first, in
/// percent, when it is filled.
const MOST_FAR: usize = 30;

/// Whether the entries lie near their homes.
fn is_good(entries: &[Entry], low: u64, model: Model, slots: usize) -> bool {
    let (mut next, mut sum, mut far) = (0, 0, 0);
    for (key, _) in entries {
        let home = home_of(model, low, *key);
        let at = next.max(home);
        sum += at - home;
        far += usize::from(at - home >= WINDOW);
        next = at + 1;
    }
    next <= slots && sum <= 8 * entries.len() && far * 100 <= MOST_FAR * entries.len()
}

/// Writes the slots of a block: entries at ascending slots, and gaps.
fn fill(words: &[AtomicU64], low: u64, entries: impl Iterator<Item = (usize, Entry)>) -> Present {
    let mut present = [0; HEAD_WORDS];
    let (mut next, mut left) = (0, low);
    for (at, (key, value)) in entries {
        for gap in next..at {
            words[2 * gap].store(left, Ordering::Relaxed);
        }
        words[2 * at].store(key, Ordering::Relaxed);
        words[2 * at + 1].store(value, Ordering::Relaxed);
        present[at / 64] |= 1 << (at % 64);
        (next, left) = (at + 1, key);
    }
    for gap in next..words.len() / 2 {
        words[2 * gap].store(u64::MAX, Ordering::Relaxed);
    }
    present
}

pub(super) fn fill_linear(
    words: &[AtomicU64],
    low: u64,
    model: Model,
    entries: &[Entry],
) -> Present {
    let mut next = 0;
    fill(
        words,
        low,
        entries.iter().map(|entry| {
            let at = next.max(home_of(model, low, entry.0));
            next = at + 1;
            (at, *entry)
        }),
    )
}

/// Spreads the entries evenly, or leaves all gaps at the end, for entries to come there.
pub(super) fn fill_sorted(
    words: &[AtomicU64],
    low: u64,
    entries: &[Entry],
    at_end: bool,
) -> Present {
    let (slots, count) = (words.len() / 2, entries.len().max(1));
    let spread = |(index, entry): (usize, &Entry)| {
        let at = if at_end { index } else { index * slots / count };
        (at, *entry)
    };
    fill(words, low, entries.iter().enumerate().map(spread))
}

/// Checks that keys never descend, that gaps have the keys that they should, and that entries of a
/// linear block lie at or behind their homes.
pub(super) fn check(view: View<'_>) {
    let last = view.last_below(view.slots()).map_or(0, |last| last + 1);
    let mut left = view.low;
    for slot in 0..view.slots() {
        let key = view.key_in(slot);
        if view.is_present(slot) {
            assert!(key >= left, "keys never descend");
            let home = if view.place.is_linear() {
                home(view, key)
            } else {
                0
            };
            assert!(home <= slot, "an entry is not before its home");
            assert!(key > view.low || slot == 0, "the lowest key is in slot 0");
            left = key;
        } else {
            let at_end = slot >= last && key == u64::MAX;
            assert!(at_end || key == left, "a gap has the key on its left");
        }
    }
}
