//! Blocks that are filled anew: a leaf that grows, is divided, joined, or gets another prefix.

use super::block::{Block, MOST_UNITS, MOST_WORDS, UNIT_WORDS, Word, store_bytes, words_in_front};
use super::edit::{lies_aside, write_entry};
use super::find::slot_of;
use super::slot::{Slot, entry_words};
use super::{
    Aside, CAPACITY, Figures, Full, Heap, IS_MODEL, MOST_PREFIX, PREFIX_WORDS, TextEntry, TextLeaf,
    WORD,
};
use crate::b_tree::node::word_at;
use crate::kit::{Heads, Retire};
use std::ops::Range;
use tremula_sync::atomic::Ordering;

/// How many bytes longer a prefix has to become before all keys are read for new slots, unless
/// heads are equal.
const GAIN: usize = WORD / 2;

/// How many words a block of the greatest length may have in use if it is filled anew for another
/// key: so the next insertions find room, and do not fill it anew each.
const MOST_REFILLED: usize = MOST_WORDS / 8 * 7;

/// The length, in units, of the block in which `needed` words are in use.
///
/// A leaf that is only divided or joined gets the shortest one. One that grows gets a unit more, so
/// that not every dozen of insertions fills a block anew, with a lock that all leaves share. Where
/// entries also go, a sixteenth more than is needed stays free, for the reason of
/// [`MOST_REFILLED`]. Under a checker a small model must come to the next block.
fn units_for(needed: usize, grows: bool, some_have_gone: bool) -> usize {
    let spare = match (grows, some_have_gone) {
        (_, true) => needed / 16,
        (true, false) if !IS_MODEL => UNIT_WORDS,
        _ => 0,
    };
    (needed + spare).div_ceil(UNIT_WORDS).clamp(1, MOST_UNITS)
}

/// Entries of a leaf that lie beside one another.
#[derive(Clone)]
pub(in crate::b_tree) struct Run<'a> {
    pub(in crate::b_tree) leaf: &'a TextLeaf,
    pub(in crate::b_tree) indices: Range<usize>,
}

impl<'a> Run<'a> {
    pub(in crate::b_tree) fn new(leaf: &'a TextLeaf, indices: Range<usize>) -> Self {
        Self { leaf, indices }
    }

    fn entries(&self) -> impl Iterator<Item = TextEntry> + Clone + use<'a> {
        let leaf = self.leaf;
        self.indices.clone().map(move |at| leaf.entry(at))
    }
}

/// What a leaf is to have: a block with entries, and slots that lead to them. Dropped without being
/// given to a leaf, it frees what it has made.
pub(in crate::b_tree) struct Assembled {
    block: Block,
    heap: Heap,
    figures: Figures,
    slots: [u64; CAPACITY],
    count: usize,
    /// Keys that lie aside from now on, because their suffixes have become longer.
    asides: Vec<Aside>,
}

impl Drop for Assembled {
    fn drop(&mut self) {
        // SAFETY: no leaf has them.
        unsafe {
            self.asides.drain(..).for_each(|aside| aside.free());
            self.block.free(self.heap);
        }
    }
}

/// The bytes of a key that does not lie aside, without an allocation.
pub(super) struct Scratch(Vec<u8>);

impl Scratch {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(MOST_PREFIX + 32 * WORD))
    }

    /// The bytes of a key.
    ///
    /// # Safety
    ///
    /// As for [`TextEntry::append_key`].
    pub(super) unsafe fn read(&mut self, entry: TextEntry) -> &[u8] {
        self.0.clear();
        // SAFETY: passed on to the caller.
        unsafe { entry.append_key(&mut self.0) };
        &self.0
    }
}

/// How many bytes are alike at the beginning of two keys, as far as a prefix can have them.
pub(super) fn common_of(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.iter().zip(other).take(MOST_PREFIX);
    pairs.take_while(|(one, other)| one == other).count()
}

/// The length of the prefix that all of these leaves have, if they have the same one.
fn skip_of_all(runs: &[Run<'_>]) -> Option<usize> {
    let first = runs.first()?.leaf;
    let is_same = runs.iter().all(|run| run.leaf.has_prefix_of(first));
    is_same.then(|| first.figures().skip)
}

/// The length of the prefix that a leaf is to have with these runs, which are in order, and with
/// another key, if there is one.
///
/// # Safety
///
/// The caller has locked the leaves, or has them alone.
unsafe fn skip_for(runs: &[Run<'_>], more: Option<&[u8]>) -> usize {
    let mut filled = runs.iter().filter(|run| !run.indices.is_empty());
    let (Some(first), last) = (filled.next(), filled.next_back()) else {
        return 0;
    };
    let last = last.unwrap_or(first);
    let (mut one, mut other) = (Scratch::new(), Scratch::new());
    // SAFETY: passed on to the caller.
    let (lowest, highest) = unsafe {
        let lowest = one.read(first.leaf.entry(first.indices.start));
        (lowest, other.read(last.leaf.entry(last.indices.end - 1)))
    };
    let mut common = common_of(lowest, highest);
    if let Some(more) = more {
        common = common.min(common_of(lowest, more));
    }
    let Some(skip) = skip_of_all(runs) else {
        return common;
    };
    if common < skip {
        return common;
    }
    let entries: usize = runs.iter().map(|run| run.indices.len()).sum();
    let has_equal_heads = || {
        let heads = runs
            .iter()
            .flat_map(Run::entries)
            .map(|entry| entry.slot.head());
        heads
            .clone()
            .zip(heads.skip(1))
            .any(|(one, other)| one == other)
    };
    let gains = entries > 1 && common > skip && (common - skip >= GAIN || has_equal_heads());
    if gains { common } else { skip }
}

/// What a block will be.
struct Plan {
    skip: usize,
    /// The words of the entries that are there now.
    live: usize,
    units: usize,
}

impl Plan {
    /// # Safety
    ///
    /// As for [`Assembled::new`].
    unsafe fn of(runs: &[Run<'_>], more: Option<&[u8]>) -> Result<Self, Full> {
        // SAFETY: passed on to the caller.
        let skip = unsafe { skip_for(runs, more) };
        match (Self::with_skip(runs, skip, more), skip_of_all(runs)) {
            // A longer prefix takes a word, and may spare none.
            (Err(Full), Some(own)) if own < skip => Self::with_skip(runs, own, more),
            (plan, _) => plan,
        }
    }

    /// All keys have `skip` bytes in common.
    fn with_skip(runs: &[Run<'_>], skip: usize, more: Option<&[u8]>) -> Result<Self, Full> {
        let live = |run: &Run<'_>| {
            let own = run.leaf.figures().skip;
            let words = |entry: TextEntry| {
                let length = entry.slot.length().map(|length| own + length - skip);
                entry_words(length.filter(|length| !lies_aside(*length)))
            };
            run.entries().map(words).sum::<usize>()
        };
        let live: usize = runs.iter().map(live).sum();
        let more_words = more.map_or(0, |key| {
            let length = key.len() - skip;
            entry_words((!lies_aside(length)).then_some(length))
        });
        let needed = words_in_front(skip) + live + more_words;
        let is_longest = |run: &Run<'_>| run.leaf.block().length() == MOST_WORDS;
        let most = if more.is_some() && runs.iter().any(is_longest) {
            MOST_REFILLED
        } else {
            MOST_WORDS
        };
        if needed > most {
            return Err(Full);
        }
        let some_have_gone = runs.iter().any(|run| run.leaf.some_have_gone());
        Ok(Self {
            skip,
            live,
            units: units_for(needed, more.is_some(), some_have_gone),
        })
    }
}

impl Assembled {
    /// Copies entries into a new block, with the prefix that they have in common, and with room for
    /// another key, if one is given. Changes no leaf.
    ///
    /// # Errors
    ///
    /// [`Full`] if no block has this room. A part of the entries of one leaf, without another key,
    /// always has room.
    ///
    /// # Safety
    ///
    /// The caller has locked the leaves, or has them alone. The runs are in order, and are not more
    /// than a leaf's entries.
    pub(in crate::b_tree) unsafe fn new(
        runs: &[Run<'_>],
        more: Option<&[u8]>,
    ) -> Result<Self, Full> {
        // SAFETY: passed on to the caller.
        let plan = unsafe { Plan::of(runs, more)? };
        let heap = runs.first().map_or(Heap::NONE, |run| run.leaf.heap);
        let mut assembled = Self {
            block: Block::allocate(plan.units, heap),
            heap,
            figures: Figures {
                skip: plan.skip,
                next: words_in_front(plan.skip),
                live: 0,
            },
            slots: [u64::MAX; CAPACITY],
            count: 0,
            asides: Vec::new(),
        };
        let mut scratch = Scratch::new();
        for run in runs {
            let is_same = run.leaf.figures().skip == plan.skip;
            for entry in run.entries() {
                // SAFETY: passed on to the caller.
                unsafe {
                    if is_same {
                        assembled.copy(entry);
                    } else {
                        assembled.write(entry, plan.skip, &mut scratch);
                    }
                }
            }
        }
        // SAFETY: passed on to the caller.
        unsafe { assembled.write_prefix(runs, more, &mut scratch) };
        debug_assert_eq!(assembled.figures.live, plan.live);
        Ok(assembled)
    }

    /// Whether [`new`](Self::new) would find room.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new).
    pub(super) unsafe fn fits(runs: &[Run<'_>], more: Option<&[u8]>) -> bool {
        // SAFETY: passed on to the caller.
        unsafe { Plan::of(runs, more) }.is_ok()
    }

    fn words(&self) -> &[Word] {
        // SAFETY: this owns the block.
        unsafe { self.block.words() }
    }

    /// Writes the prefix, which is that of the first key.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new).
    unsafe fn write_prefix(&self, runs: &[Run<'_>], more: Option<&[u8]>, scratch: &mut Scratch) {
        let skip = self.figures.skip;
        let first = runs.iter().find_map(|run| run.entries().next());
        let first = match first {
            // SAFETY: passed on to the caller.
            Some(first) => unsafe { scratch.read(first) },
            None => more.unwrap_or_default(),
        };
        let prefix = &first[..skip];
        store_bytes(&self.words()[0], skip as u64);
        for at in 0..skip.div_ceil(WORD) {
            store_bytes(&self.words()[1 + at], word_at(prefix, at * WORD));
        }
    }

    /// Takes the next words of the block.
    fn take(&mut self, words: usize) -> usize {
        let place = self.figures.next;
        self.figures.next += words;
        self.figures.live += words;
        place
    }

    fn push(&mut self, slot: Slot) {
        self.slots[self.count] = slot.word();
        self.count += 1;
    }

    /// Copies an entry of a leaf with the same skip.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new).
    unsafe fn copy(&mut self, entry: TextEntry) {
        let length = entry.slot.entry_words();
        let place = self.take(length);
        // SAFETY: passed on to the caller.
        let from = &unsafe { entry.words() }[..length];
        for (to, from) in self.words()[place..].iter().zip(from) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.push(entry.slot.moved_to(place));
    }

    /// Writes an entry of a leaf with another skip.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new).
    unsafe fn write(&mut self, entry: TextEntry, skip: usize, scratch: &mut Scratch) {
        // SAFETY: passed on to the caller.
        let (value, mut aside) = unsafe { (entry.value(), entry.aside()) };
        let key = match aside {
            // SAFETY: passed on to the caller.
            Some(aside) => unsafe { aside.bytes() },
            // SAFETY: passed on to the caller.
            None => unsafe { scratch.read(entry) },
        };
        let length = key.len() - skip;
        if aside.is_none() && lies_aside(length) {
            let new = Aside::new(key);
            self.asides.push(new);
            aside = Some(new);
        }
        let place = self.take(entry_words(aside.is_none().then_some(length)));
        write_entry(&self.words()[place..], key, skip, value, aside);
        self.push(slot_of(key, skip, aside.is_some(), place));
    }

    /// How many entries the leaf will have.
    pub(in crate::b_tree) fn count(&self) -> usize {
        self.count
    }

    /// Makes this the content of a leaf, and retires the block that the leaf had. The caller has
    /// locked the leaf, or has it alone, and writes the count.
    pub(in crate::b_tree) fn give_to(mut self, leaf: &TextLeaf, guard: &impl Retire) {
        let old = leaf.block();
        let block = std::mem::replace(&mut self.block, Block::NONE);
        self.asides.clear();
        // SAFETY: the leaf owns the block from now on, and this thread has it locked.
        let front = unsafe { block.words() };
        for at in 0..PREFIX_WORDS {
            let word = if at < self.figures.skip.div_ceil(WORD) {
                super::block::load_bytes(&front[1 + at])
            } else {
                0
            };
            leaf.prefix[at].store(word, Ordering::Relaxed);
        }
        leaf.set_block(block);
        leaf.set_figures(self.figures);
        let heads: Heads<'_> = leaf.heads();
        for (at, slot) in self.slots[..self.count].iter().enumerate() {
            heads.store(at, *slot);
        }
        heads.seal(self.count);
        // SAFETY: it has just been unlinked.
        unsafe { old.retire(leaf.heap, guard) };
    }
}

impl TextLeaf {
    /// Whether the block has words of removed entries.
    fn some_have_gone(&self) -> bool {
        let figures = self.figures();
        figures.next > words_in_front(figures.skip) + figures.live
    }

    /// Whether another leaf has the same prefix.
    fn has_prefix_of(&self, other: &Self) -> bool {
        let words = 0..self.figures().skip.div_ceil(WORD);
        self.figures().skip == other.figures().skip
            && words
                .into_iter()
                .all(|at| self.prefix_word(at) == other.prefix_word(at))
    }
}
