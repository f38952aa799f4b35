//! How entries lie in a block: three formats behind one set of functions.
//!
//! | format | for | place of a key |
//! |---|---|---|
//! | [`linear`](gapped) | keys spread evenly over the leaf | computed, or just behind |
//! | [`sorted`](gapped) | all others | found among samples, then in a segment |
//! | [`dense`] | keys that lie close together | the distance to the lowest one |
//!
//! The leaf says where its block is and how to search it ([`Place`]). At the head of the block are
//! bits that say which places have an entry. A reader may see any mixture of old and new words:
//! every function here stays within the block, whatever it reads, and leaves it to the caller to
//! validate.

mod dense;
mod gapped;

use super::leaf::Leaf;
use super::place::{HEAD_WORDS, Kind, MOST_SLOTS, Model, Place, WINDOW, slots_of};
use crate::kit::{prefetch, prefetch_to_write};
use std::marker::PhantomData;
use std::slice;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// An entry: a key and its value.
pub(in crate::aspen) type Entry = (u64, u64);

/// The most entries of a leaf: a bit for each is at the head of its block.
pub(super) const MOST_ENTRIES: usize = 64 * HEAD_WORDS;

/// The bits that say which places have an entry.
type Present = [u64; HEAD_WORDS];

/// A leaf's block, as a reader or the holder of the lock sees it.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    low: u64,
    place: Place,
    /// The view does not outlive the leaf, whose block it looks into.
    leaf: PhantomData<&'a Leaf>,
}

impl<'a> View<'a> {
    #[inline(always)]
    pub(super) fn of(leaf: &'a Leaf) -> Self {
        Self::from(leaf, leaf.low())
    }

    /// The block of a leaf whose lowest key was loaded before.
    #[inline(always)]
    pub(super) fn from(leaf: &'a Leaf, low: u64) -> Self {
        Self {
            low,
            place: leaf.place(),
            leaf: PhantomData,
        }
    }

    /// The words of the block.
    #[inline(always)]
    fn words(self) -> &'a [AtomicU64] {
        if self.place.is_none() {
            return &[];
        }
        let words = 2 * self.place.some_slots();
        // SAFETY: a place that has ever been stored is that of a block of this many units; blocks
        // stay where they are as long as the map, which has the leaf.
        unsafe { slice::from_raw_parts(self.place.block().add(HEAD_WORDS), words) }
    }

    /// A word of the block.
    ///
    /// # Safety
    ///
    /// There is a block, and `index` is below the number of words of the largest block and of two
    /// windows: there is memory for that many from each block on.
    #[inline(always)]
    unsafe fn word(self, index: usize) -> &'a AtomicU64 {
        debug_assert!(index < 2 * (MOST_SLOTS + 2 * WINDOW), "near the block");
        // SAFETY: as in `words`, and the caller says so.
        unsafe { &*self.place.block().add(HEAD_WORDS + index) }
    }

    /// Slots of the block.
    #[inline(always)]
    fn slots(self) -> usize {
        self.words().len() / 2
    }

    /// The words whose bits say which places have an entry.
    #[inline(always)]
    fn head(self) -> &'a [AtomicU64] {
        if self.place.is_none() {
            return &[];
        }
        // SAFETY: as in `words`; each block begins with these.
        unsafe { slice::from_raw_parts(self.place.block(), HEAD_WORDS) }
    }

    /// The bits of 64 places, of a number below [`HEAD_WORDS`].
    #[inline(always)]
    fn bits(self, index: usize) -> u64 {
        let word = self.head().get(index);
        word.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn is_present(self, at: usize) -> bool {
        self.bits(at / 64) >> (at % 64) & 1 != 0
    }

    #[inline(always)]
    fn mark(self, at: usize) {
        let word = &self.head()[at / 64];
        word.store(
            word.load(Ordering::Relaxed) | 1 << (at % 64),
            Ordering::Relaxed,
        );
    }

    #[inline(always)]
    fn unmark(self, at: usize) {
        let word = &self.head()[at / 64];
        word.store(
            word.load(Ordering::Relaxed) & !(1 << (at % 64)),
            Ordering::Relaxed,
        );
    }

    /// How many entries there are.
    pub(super) fn count(self) -> usize {
        let ones = |word: &AtomicU64| word.load(Ordering::Relaxed).count_ones() as usize;
        self.head().iter().map(ones).sum()
    }

    /// The first place at or above `from` that has an entry (`wanted`), or has none.
    #[inline]
    fn next(self, from: usize, wanted: bool) -> Option<usize> {
        let mut mask = u64::MAX << (from % 64);
        for index in from / 64..HEAD_WORDS {
            let word = self.bits(index);
            let bits = if wanted { word } else { !word } & mask;
            if bits != 0 {
                return Some(64 * index + bits.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The last place below `to` that has an entry.
    #[inline]
    fn last_below(self, to: usize) -> Option<usize> {
        let mut to = to;
        while to > 0 {
            let index = (to - 1) / 64;
            let mask = u64::MAX >> (63 - (to - 1) % 64);
            let bits = self.bits(index) & mask;
            if bits != 0 {
                return Some(64 * index + 63 - bits.leading_zeros() as usize);
            }
            to = 64 * index;
        }
        None
    }

    /// The place of the first entry whose key is not below `key`, or the place before it where the
    /// key would be put; behind all places if there is neither. The key belongs to the leaf.
    #[inline(always)]
    pub(super) fn seek(self, key: u64) -> usize {
        if self.place.is_linear() {
            gapped::seek_linear(self, key)
        } else if self.place.is_dense() {
            dense::seek(self, key)
        } else {
            gapped::seek_sorted(self, key)
        }
    }

    /// The place of a key, if it has an entry.
    #[inline(always)]
    pub(super) fn find(self, key: u64) -> Result<usize, usize> {
        let at = self.seek(key);
        let found = if self.place.is_dense() {
            at < self.words().len() && self.is_present(at)
        } else {
            at < self.slots() && self.key_in(at) == key && self.is_present(at)
        };
        if found { Ok(at) } else { Err(at) }
    }

    /// The value of a key.
    #[inline(always)]
    pub(super) fn get(self, key: u64) -> Option<u64> {
        self.get_at_once(key)
            .unwrap_or_else(|| gapped::get_slowly(self, key))
    }

    /// The value of a key, unless it takes longer to find.
    #[inline(always)]
    pub(super) fn get_at_once(self, key: u64) -> Option<Option<u64>> {
        if self.place.is_linear() {
            gapped::get_linear(self, key)
        } else if self.place.is_dense() {
            Some(dense::get(self, key))
        } else {
            None
        }
    }

    /// The place at which [`find`](Self::find) looks first.
    #[inline(always)]
    pub(super) fn guess(self, key: u64) -> usize {
        if self.place.is_linear() {
            gapped::home(self, key)
        } else if self.place.is_dense() {
            dense::seek(self, key)
        } else {
            0
        }
    }

    /// Starts to load what [`find`](Self::find) looks at first.
    #[inline(always)]
    pub(super) fn prefetch(self, key: u64) {
        prefetch(self.guessed_word(key));
    }

    /// The same for an entry that is going to be written, and for the head of the block.
    #[inline(always)]
    pub(super) fn prefetch_to_write(self, key: u64) {
        prefetch_to_write(self.guessed_word(key));
        self.prefetch_head_to_write();
    }

    /// Starts to load the head of the block, which is going to be written.
    #[inline(always)]
    pub(super) fn prefetch_head_to_write(self) {
        prefetch_to_write(self.place.block());
    }

    /// Starts to load the head of the block.
    #[inline(always)]
    pub(super) fn prefetch_head(self) {
        prefetch(self.place.block());
    }

    /// The address of a word near the key's entry, if the place that was read is right.
    #[inline(always)]
    fn guessed_word(self, key: u64) -> *mut AtomicU64 {
        let scale = if self.place.is_dense() { 1 } else { 2 };
        let word = HEAD_WORDS + scale * self.guess(key);
        self.place.block().wrapping_add(word)
    }

    #[inline(always)]
    fn key_in(self, slot: usize) -> u64 {
        self.words()[2 * slot].load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn value_word(self, at: usize) -> Option<&'a AtomicU64> {
        let index = if self.place.is_dense() {
            at
        } else {
            2 * at + 1
        };
        self.words().get(index)
    }

    /// The value at a place that has an entry.
    #[inline(always)]
    pub(super) fn value(self, at: usize) -> u64 {
        self.value_word(at)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Replaces the value at a place that has an entry. The caller holds the lock.
    #[inline(always)]
    pub(super) fn set_value(self, at: usize, value: u64) {
        if let Some(word) = self.value_word(at) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Puts an entry where [`find`](Self::find) missed its key. Returns whether there was room. The
    /// caller holds the lock.
    #[inline(always)]
    pub(super) fn insert(self, at: usize, entry: Entry) -> bool {
        if self.place.is_linear() {
            gapped::insert(self, gapped::home(self, entry.0), at, entry)
        } else if self.place.is_dense() {
            dense::insert(self, at, entry)
        } else {
            gapped::insert(self, 0, at, entry)
        }
    }

    /// Removes the entry at a place. The caller holds the lock.
    #[inline(always)]
    pub(super) fn remove(self, at: usize) {
        if self.place.is_dense() {
            self.unmark(at);
        } else {
            gapped::remove(self, at);
        }
    }

    /// Whether the part of the leaf around a place has few entries left, so that counting all of
    /// them is worth it.
    #[inline]
    pub(super) fn is_sparse_at(self, at: usize) -> bool {
        self.bits(at / 64).count_ones() < SPARSE
    }

    /// The entry at a place below `places`.
    ///
    /// # Safety
    ///
    /// The place is one of the block.
    #[inline(always)]
    unsafe fn entry<const DENSE: bool>(self, at: usize) -> Entry {
        // SAFETY: the words of this place are within the block.
        unsafe {
            let load = |index| self.word(index).load(Ordering::Relaxed);
            if DENSE {
                (self.low.wrapping_add(at as u64), load(at))
            } else {
                (load(2 * at), load(2 * at + 1))
            }
        }
    }

    /// Places of the block in this format.
    #[inline(always)]
    fn places<const DENSE: bool>(self) -> usize {
        if DENSE {
            self.words().len()
        } else {
            self.slots()
        }
    }

    /// Where an ascending walk begins that is to show entries from `low` on.
    #[inline(always)]
    pub(super) fn start(self, low: u64) -> usize {
        if low <= self.low { 0 } else { self.seek(low) }
    }

    /// Where a descending walk begins that is to show entries from `high` on.
    #[inline(always)]
    pub(super) fn end(self, high: u64) -> usize {
        match self.find(high) {
            Ok(at) => at + 1,
            Err(at) => at,
        }
    }

    /// Shows the entries from `low` to `high`, ascending, until `take` returns `false`.
    #[inline(always)]
    pub(super) fn ascend(self, low: u64, high: u64, take: impl FnMut(Entry) -> bool) {
        self.walk_up(self.start(low), high, take);
    }

    /// How the entries lie.
    pub(super) fn name(self) -> &'static str {
        if self.place.is_none() {
            "sorted"
        } else if self.place.is_dense() {
            "dense"
        } else {
            "gapped"
        }
    }

    /// Shows the entries from a place on, up to the key `high`, until `take` returns `false`.
    /// Returns the place from which to go on, if it did.
    #[inline(always)]
    pub(super) fn walk_up(
        self,
        from: usize,
        high: u64,
        take: impl FnMut(Entry) -> bool,
    ) -> Option<usize> {
        if self.place.is_dense() {
            self.walk_up_in::<true>(from, high, take)
        } else {
            self.walk_up_in::<false>(from, high, take)
        }
    }

    #[inline(always)]
    fn walk_up_in<const DENSE: bool>(
        self,
        from: usize,
        high: u64,
        mut take: impl FnMut(Entry) -> bool,
    ) -> Option<usize> {
        let places = self.places::<DENSE>();
        let mut mask = u64::MAX << (from % 64);
        for index in from / 64..HEAD_WORDS {
            let mut bits = self.bits(index) & mask;
            mask = u64::MAX;
            while bits != 0 {
                let at = 64 * index + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if at >= places {
                    return None;
                }
                // SAFETY: compared above.
                let entry = unsafe { self.entry::<DENSE>(at) };
                if entry.0 > high {
                    return None;
                }
                if !take(entry) {
                    return Some(at + 1);
                }
            }
        }
        None
    }

    /// Shows the entries below a place, down to the key `low`, until `take` returns `false`.
    /// Returns the place below which to go on, if it did.
    #[inline(always)]
    pub(super) fn walk_down(
        self,
        to: usize,
        low: u64,
        take: impl FnMut(Entry) -> bool,
    ) -> Option<usize> {
        if self.place.is_dense() {
            self.walk_down_in::<true>(to, low, take)
        } else {
            self.walk_down_in::<false>(to, low, take)
        }
    }

    #[inline(always)]
    fn walk_down_in<const DENSE: bool>(
        self,
        to: usize,
        low: u64,
        mut take: impl FnMut(Entry) -> bool,
    ) -> Option<usize> {
        let to = to.min(self.places::<DENSE>()).min(MOST_ENTRIES);
        let mut mask = match to % 64 {
            0 => u64::MAX,
            some => u64::MAX >> (64 - some),
        };
        for index in (0..to.div_ceil(64)).rev() {
            let mut bits = self.bits(index) & mask;
            mask = u64::MAX;
            while bits != 0 {
                let bit = bits.ilog2() as usize;
                bits ^= 1 << bit;
                let at = 64 * index + bit;
                // SAFETY: below `to`, which is at most the number of places.
                let entry = unsafe { self.entry::<DENSE>(at) };
                if entry.0 < low {
                    return None;
                }
                if !take(entry) {
                    return Some(at);
                }
            }
        }
        None
    }

    /// Starts to load the words of the places from `from` to below `to`.
    #[inline(always)]
    pub(super) fn prefetch_places(self, from: usize, to: usize) {
        let scale = if self.place.is_dense() { 1 } else { 2 };
        let block = self.place.block();
        let to = (scale * to).min(self.words().len());
        for word in (scale * from..to).step_by(8) {
            prefetch(block.wrapping_add(HEAD_WORDS + word));
        }
    }

    /// Places of the block.
    #[inline(always)]
    pub(super) fn all_places(self) -> usize {
        if self.place.is_dense() {
            self.places::<true>()
        } else {
            self.places::<false>()
        }
    }
}

impl View<'_> {
    /// Checks the invariants of the format in a leaf whose greatest key is `last`. Returns the
    /// number of entries.
    pub(super) fn check(self, last: u64) -> usize {
        let mut entries = Vec::new();
        self.ascend(0, u64::MAX, |entry| {
            entries.push(entry);
            true
        });
        let ascend = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        assert!(ascend, "keys ascend");
        for (key, value) in &entries {
            assert!((self.low..=last).contains(key), "a key belongs to its leaf");
            let found = self.find(*key).map(|at| self.value(at));
            assert_eq!(found, Ok(*value), "a key is found");
        }
        if !self.place.is_dense() {
            gapped::check(self);
        }
        entries.len()
    }
}

/// Fewer entries than this among 64 places, and a leaf is counted after a removal.
const SPARSE: u32 = 15;

/// How entries are to lie in a block, and how large it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    pub(super) units: usize,
}

/// Chooses a format for entries in ascending order of a leaf with the keys from `low` to `last`. Of
/// more entries than `most` units can hold, it makes no plan.
pub(super) fn plan(entries: &[Entry], low: u64, last: u64, most: usize) -> Option<Plan> {
    dense::plan(entries, low, most).or_else(|| gapped::plan(entries, low, last, most))
}

/// Units of the largest block in which a dense leaf would have a place for a key, behind all its
/// places. `None` if the leaf is not dense or would not be so any more.
pub(super) fn stretched(view: View<'_>, key: u64, most: usize) -> Option<usize> {
    let units = dense::most_units(most);
    let grows = view.place.is_dense() && units > view.place.units();
    (grows && dense::reaches(view, key, units)).then_some(units)
}

/// Whether entries lie as close together as in a dense leaf, but reach farther than one can.
pub(super) fn is_wide(entries: &[Entry], most: usize) -> bool {
    dense::is_wide(entries, most)
}

/// The plan for a leaf at whose end entries arrive: a dense block is as large as can be at once.
pub(super) fn plan_ahead(plan: Plan, most: usize) -> Plan {
    match plan.kind {
        Kind::Dense => Plan {
            units: dense::most_units(most),
            ..plan
        },
        _ => plan,
    }
}

/// Chooses a format with keys, for a block of this many units, which has room for the entries.
pub(super) fn plan_for(entries: &[Entry], low: u64, last: u64, units: usize) -> Plan {
    gapped::plan_for(entries, low, last, units)
}

/// Writes entries into the block of a leaf, and says which places have one. `at_end`: more are
/// expected behind the last.
pub(super) fn fill(
    leaf: &Leaf,
    block: *mut AtomicU64,
    plan: Plan,
    entries: &[Entry],
    at_end: bool,
) {
    let low = leaf.low();
    let length = HEAD_WORDS + 2 * slots_of(plan.units);
    // SAFETY: a block of these units, which stays as long as the map.
    let (head, words) = unsafe { slice::from_raw_parts(block, length) }.split_at(HEAD_WORDS);
    let present = match plan.kind {
        Kind::Dense => dense::fill(words, low, entries),
        Kind::Linear(model) => gapped::fill_linear(words, low, model, entries),
        Kind::Sorted => gapped::fill_sorted(words, low, entries, at_end),
    };
    for (word, bits) in head.iter().zip(present) {
        word.store(bits, Ordering::Relaxed);
    }
    leaf.set_place(Place::new(block, plan.units, plan.kind));
}

/// Home of a key in a leaf that is being filled.
fn home_of(model: Model, low: u64, key: u64) -> usize {
    model.home(key - low)
}
