//! Base nodes, with the areas for their deltas.

use super::BwTreeSwitches;
use super::node::{Delta, Entry};
use super::spread::{SUB_CHAINS, SubChain};
use super::word::Word;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::ptr::{self, NonNull};
use std::slice;
use tremula_index::kit::{GROUP, STRIDE, Spec, StoredKey, prefetch};
use tremula_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

pub(super) const NO_NODE: usize = usize::MAX;

/// Bytes of a cache line. Headers and deltas are aligned to it.
pub(super) const LINE: usize = 64;

/// Words of a node's filter.
const FILTER: usize = 2;

// Bits of a base node's `flags`.
const HAS_HIGH: u16 = 1;
const HAS_LOW: u16 = 2;
const SHORTCUTS: u16 = 4;
const SORTED_RUNS: u16 = 8;
const SPLIT_DELTAS: u16 = 16;
const SPREAD: u16 = 32;

/// The fences of a node, and all else that a consolidation does not change.
#[derive(Clone, Copy)]
pub(super) struct Fences<S: Spec> {
    /// 0 for a leaf, else one more than the level of the children.
    pub(super) level: u32,
    /// The keys of the node lie at or above this, if it has a left neighbour.
    pub(super) low: Option<StoredKey<S>>,
    /// They lie below this, if it has a right neighbour.
    pub(super) high: Option<StoredKey<S>>,
    pub(super) right: usize,
    /// The child for keys below the first separator.
    pub(super) first_child: usize,
}

/// What a base node has besides its entries.
#[derive(Clone, Copy)]
pub(super) struct BaseOptions {
    /// Places for deltas in its area.
    pub(super) slots: usize,
    pub(super) is_spread: bool,
    /// How much contention it begins with.
    pub(super) contention: u32,
    pub(super) switches: BwTreeSwitches,
}

/// A base node: immutable but for the claims to its area, and its filter.
///
/// ```text
/// in front: deltas, claimed downward | sub-chains, if spread
/// then:     this header | hints | heads | keys, unless heads determine them | values | trailer
/// ```
///
/// The *hints* are copies of each sixteenth head but the first. A search waits for memory twice:
/// for the header and the hints, which determine a segment of sixteen entries, and for that
/// segment. The *filter* has a bit for each delta, chosen by a hash of the key's head: a thread
/// that finds the bit of a key unset need not look at the deltas.
#[repr(C)]
pub(super) struct Base<S: Spec> {
    filter: [AtomicU64; FILTER],
    high_head: u64,
    high_word: *mut (),
    /// The node on the right when it was made.
    pub(super) made_right: usize,
    pub(super) first_child: usize,
    /// How many places of the area have been claimed; more than `slots` when more were asked for.
    claimed: AtomicU32,
    pub(super) count: u32,
    pub(super) level: u32,
    slots: u16,
    flags: u16,
    of: PhantomData<S>,
}

/// What lookups do not need of a base node: it lies behind all else.
#[repr(C)]
struct Trailer {
    low_head: u64,
    low_word: *mut (),
    /// Compare-and-swaps on the leaf that were lost; those before this base node count by halves.
    contention: AtomicU32,
    /// Whether a split delta was made for a chain on this base node.
    was_split: AtomicBool,
}

/// The distances of a base node's parts from its header, in words unless said otherwise.
struct NodeLayout {
    layout: Layout,
    /// Bytes of the area in front of the header.
    area: usize,
    heads: usize,
}

/// Arrays of words, one word an entry in each: heads, keys unless the heads determine them, values.
const fn arrays_of<S: Spec>() -> usize {
    if S::HEAD_IS_KEY { 2 } else { 3 }
}

fn node_layout<S: Spec>(count: usize, slots: usize, is_spread: bool) -> NodeLayout {
    let words = arrays_of::<S>();
    let sub_chains = if is_spread { SUB_CHAINS } else { 0 };
    let area = slots * size_of::<Delta<S>>() + sub_chains * size_of::<SubChain>();
    let heads = heads_at::<S>(count);
    let size = area + (heads + count * words) * size_of::<u64>() + size_of::<Trailer>();
    match Layout::from_size_align(size, LINE) {
        Ok(layout) => NodeLayout {
            layout,
            area,
            heads,
        },
        Err(_) => unreachable!("a node is small"),
    }
}

/// Hints of a node with `count` heads: whole groups. The last may be above all heads.
const fn hints_of(count: usize) -> usize {
    (count.saturating_sub(1) / STRIDE).next_multiple_of(GROUP)
}

/// Words of header and hints; the heads begin at a cache line.
#[inline]
const fn heads_at<S: Spec>(count: usize) -> usize {
    let words = size_of::<Base<S>>() / size_of::<u64>() + hints_of(count);
    words.next_multiple_of(LINE / size_of::<u64>())
}

/// A base node that is not freed for `'g`: the thread is pinned, or alone with it. What lies around
/// the header is reached through this, not through a plain reference to the header.
#[derive(Clone, Copy)]
pub(super) struct BaseRef<'g, S: Spec> {
    at: NonNull<Base<S>>,
    alive: PhantomData<&'g Base<S>>,
}

impl<S: Spec> Deref for BaseRef<'_, S> {
    type Target = Base<S>;

    #[inline]
    fn deref(&self) -> &Base<S> {
        // SAFETY: it lives for `'g`.
        unsafe { self.at.as_ref() }
    }
}

/// The word of the filter, and the bit in it, for a head.
#[inline]
fn filter_bit(head: u64) -> (usize, u64) {
    // The upper bits of a product depend on all bits of the head.
    let hash = head.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - 7);
    (hash as usize / 64, 1 << (hash % 64))
}

impl<S: Spec> Base<S> {
    /// The fence that the base node was made with. For a chain on it, see
    /// [`View::high`](super::node::View::high).
    #[inline]
    pub(super) fn made_high(&self) -> Option<StoredKey<S>> {
        (self.flags & HAS_HIGH != 0).then(|| StoredKey::of_words(self.high_head, self.high_word))
    }

    /// Whether the deltas that a search passes narrow the search in the base node.
    #[inline]
    pub(super) fn has_shortcuts(&self) -> bool {
        self.flags & SHORTCUTS != 0
    }

    #[inline]
    pub(super) fn is_spread(&self) -> bool {
        self.flags & SPREAD != 0
    }

    /// Whether the tree uses split deltas.
    #[inline]
    pub(super) fn has_split_deltas(&self) -> bool {
        self.flags & SPLIT_DELTAS != 0
    }

    /// Whether its entries are copied in runs when it is consolidated.
    pub(super) fn has_sorted_runs(&self) -> bool {
        self.flags & SORTED_RUNS != 0
    }

    /// Whether a chain that the caller has found may have a delta on a key with this head.
    #[inline]
    pub(super) fn may_have_deltas(&self, head: u64) -> bool {
        let (word, bit) = filter_bit(head);
        // Relaxed: a writer sets the bit of a delta before it publishes the word by which the
        // caller came to the delta.
        self.filter[word].load(Ordering::Relaxed) & bit != 0
    }

    /// A writer calls this before it publishes a delta on a key with this head.
    #[inline]
    pub(super) fn announce_delta(&self, head: u64) {
        let (word, bit) = filter_bit(head);
        let filter = &self.filter[word];
        // Relaxed, both: see `may_have_deltas`. A writer that finds the bit set has seen it, and so
        // has every thread that sees what this writer publishes.
        if filter.load(Ordering::Relaxed) & bit == 0 {
            filter.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether deltas are allocated by themselves, on the heap.
    #[inline]
    pub(super) fn has_no_area(&self) -> bool {
        self.slots == 0
    }

    /// How many places of the area have been claimed.
    pub(super) fn claimed(&self) -> usize {
        // Relaxed: only a statistic.
        let claimed = self.claimed.load(Ordering::Relaxed) as usize;
        claimed.min(self.slots as usize)
    }
}

impl<'g, S: Spec> BaseRef<'g, S> {
    /// # Safety
    ///
    /// The base node lives for `'g`.
    #[inline]
    pub(super) unsafe fn of(at: NonNull<Base<S>>) -> Self {
        Self {
            at,
            alive: PhantomData,
        }
    }

    #[inline]
    pub(super) fn as_ptr(self) -> NonNull<Base<S>> {
        self.at
    }

    /// Prefetches the header and the hints.
    #[inline]
    pub(super) fn prefetch(self) {
        let header = self.at.as_ptr().cast::<u8>();
        prefetch(header);
        prefetch(header.wrapping_add(LINE));
        prefetch(header.wrapping_add(2 * LINE));
    }

    pub(super) fn bytes(self) -> usize {
        node_layout::<S>(self.count as usize, self.slots as usize, self.is_spread())
            .layout
            .size()
    }

    #[inline]
    fn trailer(self) -> &'g Trailer {
        let words = arrays_of::<S>();
        // SAFETY: the trailer has been written behind the arrays.
        unsafe { &*self.arrays().add(words * self.count as usize).cast() }
    }

    #[inline]
    pub(super) fn low(self) -> Option<StoredKey<S>> {
        (self.flags & HAS_LOW != 0).then(|| {
            let trailer = self.trailer();
            StoredKey::of_words(trailer.low_head, trailer.low_word)
        })
    }

    pub(super) fn contention(self) -> u32 {
        // Relaxed, here and below: only a heuristic.
        self.trailer().contention.load(Ordering::Relaxed)
    }

    /// Counts contention, up to a limit; from then on nobody writes to the counter.
    pub(super) fn note_contention(self, limit: u32) {
        if self.contention() < limit {
            self.trailer().contention.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a chain that the caller has found may have a split delta.
    #[inline]
    pub(super) fn may_be_split(self) -> bool {
        // Relaxed: a writer sets it before it publishes the word by which the caller came to the
        // delta.
        self.trailer().was_split.load(Ordering::Relaxed)
    }

    /// A writer calls this before it publishes a split delta.
    pub(super) fn announce_split(self) {
        // Relaxed: see `may_be_split`.
        self.trailer().was_split.store(true, Ordering::Relaxed);
    }

    pub(super) fn bytes_of_area(self) -> usize {
        self.slots as usize * size_of::<Delta<S>>()
    }

    /// Claims a place for a delta, for the caller alone; returns it and its distance from the
    /// header, in deltas.
    #[inline]
    pub(super) fn claim(self) -> Option<(NonNull<Delta<S>>, usize)> {
        // Relaxed, both: each place is claimed once, in whatever order; what is written there is
        // published by the word that leads to it.
        let slots = u32::from(self.slots);
        if self.claimed.load(Ordering::Relaxed) >= slots {
            return None;
        }
        let place = self.claimed.fetch_add(1, Ordering::Relaxed);
        if place >= slots {
            return None;
        }
        let distance = place as usize + 1;
        // SAFETY: the area in front of the header holds `slots` deltas, and `distance` is 1 to
        // `slots`. A `BaseRef` has a pointer to the whole allocation.
        unsafe {
            let header = self.at.cast::<Delta<S>>();
            Some((header.sub(distance), distance))
        }
    }

    /// The header and what follows it, as words.
    #[inline]
    fn start(self) -> *const u64 {
        self.at.as_ptr().cast()
    }

    #[inline]
    pub(super) fn hints(self) -> &'g [u64] {
        // SAFETY: the hints follow the header.
        unsafe {
            let hints = self.at.as_ptr().add(1).cast();
            slice::from_raw_parts(hints, hints_of(self.count as usize))
        }
    }

    #[inline]
    fn arrays(self) -> *const u64 {
        // SAFETY: the arrays lie there.
        unsafe { self.start().add(heads_at::<S>(self.count as usize)) }
    }

    #[inline]
    pub(super) fn heads(self) -> &'g [u64] {
        // SAFETY: `count` heads have been written there.
        unsafe { slice::from_raw_parts(self.arrays(), self.count as usize) }
    }

    #[inline]
    fn words(self, array: usize) -> &'g [*mut ()] {
        let count = self.count as usize;
        // SAFETY: `count` words have been written in each array.
        unsafe { slice::from_raw_parts(self.arrays().add(array * count).cast(), count) }
    }

    #[inline]
    pub(super) fn values(self) -> &'g [*mut ()] {
        self.words(if S::HEAD_IS_KEY { 1 } else { 2 })
    }

    #[inline]
    pub(super) fn key(self, at: usize) -> StoredKey<S> {
        let word = if S::HEAD_IS_KEY {
            ptr::null_mut()
        } else {
            self.words(1)[at]
        };
        StoredKey::of_words(self.heads()[at], word)
    }

    #[inline]
    pub(super) fn entry(self, at: usize) -> Entry<S> {
        Entry {
            key: self.key(at),
            value: self.values()[at],
        }
    }

    pub(super) fn entries(self) -> impl Iterator<Item = Entry<S>> + use<'g, S> {
        (0..self.count as usize).map(move |at| self.entry(at))
    }
}

/// Frees a base node, but nothing that it points to.
///
/// # Safety
///
/// Nobody else has it, or uses it ever again.
pub(super) unsafe fn free_base<S: Spec>(base: NonNull<Base<S>>) {
    // SAFETY: the caller alone has it; it was allocated with this layout, at this distance.
    unsafe {
        let (count, slots) = (base.as_ref().count, base.as_ref().slots);
        let sub_chains = BaseRef::of(base).sub_chains();
        let node = node_layout::<S>(count as usize, slots as usize, !sub_chains.is_empty());
        ptr::from_ref(sub_chains).cast_mut().drop_in_place();
        let trailer = ptr::from_ref(BaseRef::of(base).trailer()).cast_mut();
        trailer.drop_in_place();
        base.drop_in_place();
        dealloc(base.as_ptr().cast::<u8>().sub(node.area), node.layout);
    }
}

/// A base node that is being filled. Dropping it frees it, but nothing that it points to.
pub(super) struct Draft<S: Spec> {
    base: NonNull<Base<S>>,
    /// Where the heads begin.
    heads: NonNull<u64>,
    count: usize,
    filled: usize,
}

impl<S: Spec> Draft<S> {
    pub(super) fn new(fences: Fences<S>, count: usize, options: BaseOptions) -> Self {
        let node = node_layout::<S>(count, options.slots, options.is_spread);
        // SAFETY: a header has a size.
        let start = unsafe { alloc(node.layout) };
        if start.is_null() {
            handle_alloc_error(node.layout);
        }
        let words = |key: Option<StoredKey<S>>| {
            key.map_or((0, ptr::null_mut()), |key| (key.head, key.word))
        };
        let ((low_head, low_word), (high_head, high_word)) =
            (words(fences.low), words(fences.high));
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        let flags = flag(fences.high.is_some(), HAS_HIGH)
            | flag(fences.low.is_some(), HAS_LOW)
            | flag(options.switches.search_shortcuts, SHORTCUTS)
            | flag(options.switches.fast_consolidation, SORTED_RUNS)
            | flag(!options.switches.whole_splits, SPLIT_DELTAS)
            | flag(options.is_spread, SPREAD);
        // A filter that is not used has all bits set: all writers would compete for a shared one.
        let filter = if options.switches.chain_filter && !options.is_spread {
            0
        } else {
            u64::MAX
        };
        // SAFETY: the allocation has room for the header behind the area, and for the heads behind
        // that.
        unsafe {
            let base = NonNull::new_unchecked(start.add(node.area).cast::<Base<S>>());
            base.write(Base {
                filter: std::array::from_fn(|_| AtomicU64::new(filter)),
                high_head,
                high_word,
                made_right: fences.right,
                first_child: fences.first_child,
                claimed: AtomicU32::new(0),
                count: count as u32,
                level: fences.level,
                slots: options.slots as u16,
                flags,
                of: PhantomData,
            });
            let words = arrays_of::<S>();
            let heads = base.cast::<u64>().add(node.heads);
            heads.add(words * count).cast::<Trailer>().write(Trailer {
                low_head,
                low_word,
                contention: AtomicU32::new(options.contention),
                was_split: AtomicBool::new(false),
            });
            if options.is_spread {
                for number in 1..=SUB_CHAINS {
                    let empty = SubChain::new(Word::base(base));
                    base.cast::<SubChain>().sub(number).write(empty);
                }
            }
            Self {
                base,
                heads,
                count,
                filled: 0,
            }
        }
    }

    pub(super) fn of_entries(
        fences: Fences<S>,
        entries: &[Entry<S>],
        options: BaseOptions,
    ) -> Self {
        let mut draft = Self::new(fences, entries.len(), options);
        entries.iter().for_each(|entry| draft.push(*entry));
        draft
    }

    /// The place of entry `at` in an array.
    ///
    /// # Safety
    ///
    /// `array` is less than the number of arrays, and `at` than the number of entries.
    #[inline]
    unsafe fn place(&self, array: usize, at: usize) -> NonNull<u64> {
        // SAFETY: the arrays have room for `count` words each, one behind the other.
        unsafe { self.heads.add(array * self.count + at) }
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry<S>) {
        let at = self.filled;
        assert!(at < self.count, "a node has the entries that it counted");
        // SAFETY: `at` is one of the places.
        unsafe {
            self.place(0, at).write(entry.key.head);
            if S::HEAD_IS_KEY {
                self.place(1, at).cast().write(entry.value);
            } else {
                self.place(1, at).cast().write(entry.key.word);
                self.place(2, at).cast().write(entry.value);
            }
        }
        self.advance(1);
    }

    /// Copies a run of entries from another node.
    #[inline]
    pub(super) fn push_run(&mut self, from: BaseRef<'_, S>, run: Range<usize>) {
        let (at, length) = (self.filled, run.len());
        assert!(
            at + length <= self.count && run.end <= from.count as usize,
            "a node has the entries that it counted"
        );
        for array in 0..arrays_of::<S>() {
            // SAFETY: both arrays are that long, and belong to different nodes.
            unsafe {
                let source = from.arrays().add(array * from.count as usize + run.start);
                source.copy_to_nonoverlapping(self.place(array, at).as_ptr(), length);
            }
        }
        self.advance(length);
    }

    /// Replaces the value of an entry that has been filled in.
    #[inline]
    pub(super) fn replace(&mut self, at: usize, value: *mut ()) {
        assert!(at < self.filled, "an entry is there before it is changed");
        let values = if S::HEAD_IS_KEY { 1 } else { 2 };
        // SAFETY: `at` is one of the places.
        unsafe { self.place(values, at).cast().write(value) };
    }

    /// Counts entries as filled in; after the last one it copies the hints from the heads.
    #[inline]
    fn advance(&mut self, entries: usize) {
        self.filled += entries;
        if self.filled < self.count {
            return;
        }
        for hint in 0..hints_of(self.count) {
            let first = (hint + 1) * STRIDE;
            // SAFETY: `hints_of` hints follow the header, and all heads have been written.
            unsafe {
                let head = if first < self.count {
                    self.place(0, first).read()
                } else {
                    u64::MAX
                };
                self.base.add(1).cast::<u64>().add(hint).write(head);
            }
        }
    }

    /// The word that leads to the base node. After publishing it, the caller calls
    /// [`give`](Self::give).
    pub(super) fn word(&self) -> Word {
        assert!(
            self.filled == self.count,
            "a node has the entries that it counted"
        );
        Word::base(self.base)
    }

    /// Passes ownership to the mapping table.
    pub(super) fn give(self) {
        std::mem::forget(self);
    }
}

impl<S: Spec> Drop for Draft<S> {
    fn drop(&mut self) {
        // SAFETY: no other thread has seen it.
        unsafe { free_base(self.base) };
    }
}
