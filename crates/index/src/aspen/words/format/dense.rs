//! A value for each number from the lowest key of the leaf on, and no keys. At three fifths full it
//! needs less memory than a format with keys, and its search is a subtraction.

use super::{Entry, Plan, Present, View};
use crate::aspen::words::place::{self, HEAD_WORDS, Kind, UNIT_SLOTS, slots_of};
use tremula_sync::atomic::{AtomicU64, Ordering};

/// The least share of numbers that have an entry, in percent, for which this format is chosen.
/// Below it a format with keys needs less memory.
const LEAST_SHARE: usize = 42;

/// Units of the largest dense block: all its places have bits.
const MOST_UNITS: usize = {
    let units = 64 * HEAD_WORDS / (2 * UNIT_SLOTS);
    if units < place::MOST_UNITS {
        units
    } else {
        place::MOST_UNITS
    }
};

/// The place of a key; behind all places if it lies beyond them.
#[inline(always)]
pub(super) fn seek(view: View<'_>, key: u64) -> usize {
    let distance = key.wrapping_sub(view.low);
    distance.min(view.words().len() as u64) as usize
}

/// The value of a key.
#[inline(always)]
pub(super) fn get(view: View<'_>, key: u64) -> Option<u64> {
    let at = key.wrapping_sub(view.low);
    if at >= 2 * view.place.some_slots() as u64 || !view.is_present(at as usize) {
        return None;
    }
    // SAFETY: a dense leaf has a block, and the index was compared with its length.
    Some(unsafe { view.word(at as usize) }.load(Ordering::Relaxed))
}

pub(super) fn insert(view: View<'_>, at: usize, (_, value): Entry) -> bool {
    let Some(word) = view.words().get(at) else {
        return false;
    };
    word.store(value, Ordering::Relaxed);
    view.mark(at);
    true
}

/// Units of the largest dense block of a map whose largest block has `most` of them.
pub(super) fn most_units(most: usize) -> usize {
    most.min(MOST_UNITS)
}

/// Whether a dense leaf would be dense with an entry behind its last place too, in a block of this
/// many units.
pub(super) fn reaches(view: View<'_>, key: u64, units: usize) -> bool {
    let distance = (key - view.low) as usize;
    distance < 2 * slots_of(units) && is_dense(view.count() + 1, distance + 1)
}

/// Whether entries would fill dense leaves, but not a single one.
pub(super) fn is_wide(entries: &[Entry], most: usize) -> bool {
    let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else {
        return false;
    };
    let distance = last - first;
    let limit = 2 * slots_of(most_units(most)) as u64;
    // Compared first, so that the sum does not overflow.
    (limit..4 * limit).contains(&distance) && is_dense(entries.len(), distance as usize + 1)
}

fn is_dense(entries: usize, numbers: usize) -> bool {
    entries * 100 > LEAST_SHARE * numbers
}

/// Chooses this format if it needs the least memory.
pub(super) fn plan(entries: &[Entry], low: u64, most: usize) -> Option<Plan> {
    let (last, _) = entries.last()?;
    let distance = last - low;
    let limit = 2 * slots_of(most_units(most)) as u64;
    if distance >= limit || !is_dense(entries.len(), distance as usize + 1) {
        return None;
    }
    Some(Plan {
        kind: Kind::Dense,
        units: (HEAD_WORDS + distance as usize + 1).div_ceil(2 * UNIT_SLOTS),
    })
}

pub(super) fn fill(words: &[AtomicU64], low: u64, entries: &[Entry]) -> Present {
    let mut present = [0; HEAD_WORDS];
    for &(key, value) in entries {
        let at = (key - low) as usize;
        words[at].store(value, Ordering::Relaxed);
        present[at / 64] |= 1 << (at % 64);
    }
    present
}
