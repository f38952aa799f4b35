//! Base nodes, with the areas for their deltas.

use super::BwTreeSwitches;
use super::keys::StoredKey;
use super::node::{Delta, Entry};
use super::spread::{SUB_CHAINS, SubChain};
use super::word::Word;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::ptr::{self, NonNull};
use std::slice;
use tremula_index::Storable;
use tremula_index::key::KeyHead;
use tremula_index::kit::{head_is_key, prefetch};
use tremula_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The id that stands for no node.
pub(super) const NO_NODE: usize = usize::MAX;

/// Bytes of a cache line. Headers and deltas lie at multiples of it.
pub(super) const LINE: usize = 64;

/// Heads that are compared together, in the second step of a search: two cache lines.
pub(super) const STRIDE: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

/// Heads of which the greatest is compared before the others are.
pub(super) const GROUP: usize = if cfg!(any(loom, shuttle)) { 1 } else { 4 };

/// Words of a node's filter.
const FILTER: usize = 2;

// What a base node's flags say.
const HAS_HIGH: u16 = 1;
const HAS_LOW: u16 = 2;
const SHORTCUTS: u16 = 4;
const SORTED_RUNS: u16 = 8;
const SPLIT_DELTAS: u16 = 16;
const SPREAD: u16 = 32;

/// Where a node is in the tree: what stays the same when its contents are consolidated.
pub(super) struct Position<K, H> {
    /// 0 of a leaf, else one more than the children have.
    pub(super) level: u32,
    /// The keys of the node lie at or above this, if there is anything to its left.
    pub(super) low: Option<StoredKey<K, H>>,
    /// They lie below this, if there is anything to its right.
    pub(super) high: Option<StoredKey<K, H>>,
    /// The node on the right.
    pub(super) right: usize,
    /// The child for keys below the first separator.
    pub(super) first_child: usize,
}

impl<K, H> Clone for Position<K, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H> Copy for Position<K, H> {}

/// What a base node has beside its entries.
#[derive(Clone, Copy)]
pub(super) struct Fittings {
    /// Places for deltas in its area.
    pub(super) slots: usize,
    /// Whether it has sub-chains.
    pub(super) is_spread: bool,
    /// How much contention it begins with.
    pub(super) contention: u32,
    /// How it is searched and consolidated.
    pub(super) switches: BwTreeSwitches,
}

/// A base node: immutable but for the claims to its area, and its filter.
///
/// ```text
/// deltas … <- claimed downward | sub-chains, if spread | this header | hints | heads | keys, unless heads tell them | values | margin
/// ```
///
/// The *hints* are copies of each sixteenth head but the first. A search waits for memory
/// twice: for the header and the hints, which tell a segment of sixteen entries, and for that. The
/// *filter* has a bit for each delta, which a hash of the key's head chooses: whoever finds the
/// bit of a key unset need not look at the deltas.
#[repr(C)]
pub(super) struct Base<K, V, H> {
    filter: [AtomicU64; FILTER],
    high_head: u64,
    high_word: *mut (),
    /// The node on the right when it was made.
    pub(super) made_right: usize,
    pub(super) first_child: usize,
    /// Places of the area that were claimed; more than `slots` when more were asked for.
    claimed: AtomicU32,
    pub(super) count: u32,
    pub(super) level: u32,
    slots: u16,
    flags: u16,
    of: PhantomData<(fn() -> (K, H), V)>,
}

/// What of a base node lookups do not need: it lies behind all else.
#[repr(C)]
struct Margin {
    low_head: u64,
    low_word: *mut (),
    /// Compare-and-swaps that were lost on the leaf, those before this by halves.
    contention: AtomicU32,
    /// Whether a split delta was made for a chain on this.
    was_split: AtomicBool,
}

/// The distances of a base node's parts from its header, in words where not said otherwise.
struct Plan {
    layout: Layout,
    /// Bytes of the area in front of the header.
    area: usize,
    heads: usize,
}

/// Words of an entry, each in an array of its own: the head, the key unless the head tells it, the
/// value.
const fn arrays_of<K, H: KeyHead<K>>() -> usize {
    if head_is_key::<K, H>() { 2 } else { 3 }
}

fn plan<K, V, H: KeyHead<K>>(count: usize, slots: usize, is_spread: bool) -> Plan {
    let words = arrays_of::<K, H>();
    let sub_chains = if is_spread { SUB_CHAINS } else { 0 };
    let area = slots * size_of::<Delta<K, V, H>>() + sub_chains * size_of::<SubChain>();
    let heads = heads_at::<K, V, H>(count);
    let size = area + (heads + count * words) * size_of::<u64>() + size_of::<Margin>();
    match Layout::from_size_align(size, LINE) {
        Ok(layout) => Plan {
            layout,
            area,
            heads,
        },
        Err(_) => unreachable!("a node is small"),
    }
}

/// Hints of so many heads: whole groups. The last may be above all heads.
const fn hints_of(count: usize) -> usize {
    (count.saturating_sub(1) / STRIDE).next_multiple_of(GROUP)
}

/// Words of header and hints; the heads begin at a cache line.
#[inline]
const fn heads_at<K, V, H>(count: usize) -> usize {
    let words = size_of::<Base<K, V, H>>() / size_of::<u64>() + hints_of(count);
    words.next_multiple_of(LINE / size_of::<u64>())
}

/// A base node that is not freed for `'g`: the thread is pinned, or alone with it. By it, not by
/// a plain reference to the header, what lies around the header is reached.
pub(super) struct BaseRef<'g, K, V, H> {
    at: NonNull<Base<K, V, H>>,
    alive: PhantomData<&'g Base<K, V, H>>,
}

impl<K, V, H> Clone for BaseRef<'_, K, V, H> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, H> Copy for BaseRef<'_, K, V, H> {}

impl<K, V, H> Deref for BaseRef<'_, K, V, H> {
    type Target = Base<K, V, H>;

    #[inline]
    fn deref(&self) -> &Base<K, V, H> {
        // SAFETY: it lives.
        unsafe { self.at.as_ref() }
    }
}

/// The word of a filter, and in it the bit, that a head has.
#[inline]
fn filter_bit(head: u64) -> (usize, u64) {
    // The upper bits of a product depend on all bits of the head.
    let hash = head.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - 7);
    (hash as usize / 64, 1 << (hash % 64))
}

impl<K: Ord + Storable, V, H: KeyHead<K>> Base<K, V, H> {
    /// The fence that it was made with. Of a chain on it, [`View::high`](super::node::View::high)
    /// knows better.
    #[inline]
    pub(super) fn made_high(&self) -> Option<StoredKey<K, H>> {
        (self.flags & HAS_HIGH != 0).then(|| StoredKey::of_words(self.high_head, self.high_word))
    }

    /// Whether what is searched for in deltas narrows the search in here.
    #[inline]
    pub(super) fn has_shortcuts(&self) -> bool {
        self.flags & SHORTCUTS != 0
    }

    #[inline]
    pub(super) fn is_spread(&self) -> bool {
        self.flags & SPREAD != 0
    }

    /// Whether there are split deltas in the tree.
    #[inline]
    pub(super) fn has_split_deltas(&self) -> bool {
        self.flags & SPLIT_DELTAS != 0
    }

    /// Whether its entries are copied in runs when it is consolidated.
    pub(super) fn has_sorted_runs(&self) -> bool {
        self.flags & SORTED_RUNS != 0
    }

    /// Whether a delta of a chain that was found before may be about a key with this head.
    #[inline]
    pub(super) fn may_have_deltas(&self, head: u64) -> bool {
        let (word, bit) = filter_bit(head);
        // Relaxed: the bit of a delta was set before the word was published by which the caller
        // came to the delta.
        self.filter[word].load(Ordering::Relaxed) & bit != 0
    }

    /// To be called before a delta on a key with this head is published.
    #[inline]
    pub(super) fn announce_delta(&self, head: u64) {
        let (word, bit) = filter_bit(head);
        let filter = &self.filter[word];
        // Relaxed, both: see `may_have_deltas`. Who finds the bit set has seen it, and so does
        // whoever sees what he publishes.
        if filter.load(Ordering::Relaxed) & bit == 0 {
            filter.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether deltas have places of their own on the heap.
    #[inline]
    pub(super) fn has_no_area(&self) -> bool {
        self.slots == 0
    }

    /// How many places of the area have been claimed.
    pub(super) fn claimed(&self) -> usize {
        // Relaxed: a figure.
        let claimed = self.claimed.load(Ordering::Relaxed) as usize;
        claimed.min(self.slots as usize)
    }
}

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> BaseRef<'g, K, V, H> {
    /// # Safety
    ///
    /// The base node lives for `'g`.
    #[inline]
    pub(super) unsafe fn of(at: NonNull<Base<K, V, H>>) -> Self {
        Self {
            at,
            alive: PhantomData,
        }
    }

    #[inline]
    pub(super) fn as_ptr(self) -> NonNull<Base<K, V, H>> {
        self.at
    }

    /// Asks for the header and the hints.
    #[inline]
    pub(super) fn prefetch(self) {
        let header = self.at.as_ptr().cast::<u8>();
        prefetch(header);
        prefetch(header.wrapping_add(LINE));
        prefetch(header.wrapping_add(2 * LINE));
    }

    pub(super) fn bytes(self) -> usize {
        plan::<K, V, H>(self.count as usize, self.slots as usize, self.is_spread())
            .layout
            .size()
    }

    #[inline]
    fn margin(self) -> &'g Margin {
        let words = arrays_of::<K, H>();
        // SAFETY: the margin has been written behind the arrays.
        unsafe { &*self.arrays().add(words * self.count as usize).cast() }
    }

    #[inline]
    pub(super) fn low(self) -> Option<StoredKey<K, H>> {
        (self.flags & HAS_LOW != 0).then(|| {
            let margin = self.margin();
            StoredKey::of_words(margin.low_head, margin.low_word)
        })
    }

    pub(super) fn contention(self) -> u32 {
        // Relaxed, here and below: a figure.
        self.margin().contention.load(Ordering::Relaxed)
    }

    /// Counts contention, up to a limit: beyond that nobody writes to it.
    pub(super) fn note_contention(self, limit: u32) {
        if self.contention() < limit {
            self.margin().contention.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether there may be a split delta in a chain that was found before.
    #[inline]
    pub(super) fn may_be_split(self) -> bool {
        // Relaxed: set before the word was published by which the caller came to the delta.
        self.margin().was_split.load(Ordering::Relaxed)
    }

    /// To be called before a split delta is published.
    pub(super) fn announce_split(self) {
        // Relaxed: see `may_be_split`.
        self.margin().was_split.store(true, Ordering::Relaxed);
    }

    pub(super) fn bytes_of_area(self) -> usize {
        self.slots as usize * size_of::<Delta<K, V, H>>()
    }

    /// Claims a place for a delta, for the caller alone; returns it, and how far in front of the
    /// header it lies.
    #[inline]
    pub(super) fn claim(self) -> Option<(NonNull<Delta<K, V, H>>, usize)> {
        // Relaxed, both: each place is given out once, whatever the order; what is written there
        // is published by the word that leads to it.
        let slots = u32::from(self.slots);
        if self.claimed.load(Ordering::Relaxed) >= slots {
            return None;
        }
        let place = self.claimed.fetch_add(1, Ordering::Relaxed);
        if place >= slots {
            return None;
        }
        let distance = place as usize + 1;
        // SAFETY: `slots` deltas have room in front of the header, and `distance` is one of 1 to
        // `slots`. A base node is used by pointers to the whole allocation.
        unsafe {
            let header = self.at.cast::<Delta<K, V, H>>();
            Some((header.sub(distance), distance))
        }
    }

    /// The node behind the header, by words.
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
        unsafe { self.start().add(heads_at::<K, V, H>(self.count as usize)) }
    }

    #[inline]
    pub(super) fn heads(self) -> &'g [u64] {
        // SAFETY: `count` heads have been written there.
        unsafe { slice::from_raw_parts(self.arrays(), self.count as usize) }
    }

    #[inline]
    fn words(self, array: usize) -> &'g [*mut ()] {
        let count = self.count as usize;
        // SAFETY: so many words have been written there.
        unsafe { slice::from_raw_parts(self.arrays().add(array * count).cast(), count) }
    }

    #[inline]
    pub(super) fn values(self) -> &'g [*mut ()] {
        self.words(if head_is_key::<K, H>() { 1 } else { 2 })
    }

    #[inline]
    pub(super) fn key(self, at: usize) -> StoredKey<K, H> {
        let word = if head_is_key::<K, H>() {
            ptr::null_mut()
        } else {
            self.words(1)[at]
        };
        StoredKey::of_words(self.heads()[at], word)
    }

    #[inline]
    pub(super) fn entry(self, at: usize) -> Entry<K, H> {
        Entry {
            key: self.key(at),
            value: self.values()[at],
        }
    }

    pub(super) fn entries(self) -> impl Iterator<Item = Entry<K, H>> + use<'g, K, V, H> {
        (0..self.count as usize).map(move |at| self.entry(at))
    }
}

/// Frees a base node, but nothing that it leads to.
///
/// # Safety
///
/// Nobody else has it, or uses it ever again.
pub(super) unsafe fn free_base<K: Ord + Storable, V: Storable, H: KeyHead<K>>(
    base: NonNull<Base<K, V, H>>,
) {
    // SAFETY: the caller alone has it; it was allocated with this layout, at this distance.
    unsafe {
        let (count, slots) = (base.as_ref().count, base.as_ref().slots);
        let sub_chains = BaseRef::of(base).sub_chains();
        let plan = plan::<K, V, H>(count as usize, slots as usize, !sub_chains.is_empty());
        ptr::from_ref(sub_chains).cast_mut().drop_in_place();
        let margin = ptr::from_ref(BaseRef::of(base).margin()).cast_mut();
        margin.drop_in_place();
        base.drop_in_place();
        dealloc(base.as_ptr().cast::<u8>().sub(plan.area), plan.layout);
    }
}

/// A base node that is being filled. Dropping it frees it, but nothing that it leads to.
pub(super) struct Draft<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    base: NonNull<Base<K, V, H>>,
    /// Where the heads begin.
    heads: NonNull<u64>,
    count: usize,
    filled: usize,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Draft<K, V, H> {
    pub(super) fn new(position: Position<K, H>, count: usize, fittings: Fittings) -> Self {
        let plan = plan::<K, V, H>(count, fittings.slots, fittings.is_spread);
        // SAFETY: a header has a size.
        let start = unsafe { alloc(plan.layout) };
        if start.is_null() {
            handle_alloc_error(plan.layout);
        }
        let words = |key: Option<StoredKey<K, H>>| {
            key.map_or((0, ptr::null_mut()), |key| (key.head, key.word))
        };
        let ((low_head, low_word), (high_head, high_word)) =
            (words(position.low), words(position.high));
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        let flags = flag(position.high.is_some(), HAS_HIGH)
            | flag(position.low.is_some(), HAS_LOW)
            | flag(fittings.switches.search_shortcuts, SHORTCUTS)
            | flag(fittings.switches.fast_consolidation, SORTED_RUNS)
            | flag(!fittings.switches.whole_splits, SPLIT_DELTAS)
            | flag(fittings.is_spread, SPREAD);
        // All bits are set in a filter that is not to be used: one that all write to would be fought
        // over, too.
        let filter = if fittings.switches.chain_filter && !fittings.is_spread {
            0
        } else {
            u64::MAX
        };
        // SAFETY: the allocation has room for the header behind the area, and for the heads
        // behind that.
        unsafe {
            let base = NonNull::new_unchecked(start.add(plan.area).cast::<Base<K, V, H>>());
            base.write(Base {
                filter: std::array::from_fn(|_| AtomicU64::new(filter)),
                high_head,
                high_word,
                made_right: position.right,
                first_child: position.first_child,
                claimed: AtomicU32::new(0),
                count: count as u32,
                level: position.level,
                slots: fittings.slots as u16,
                flags,
                of: PhantomData,
            });
            let words = arrays_of::<K, H>();
            let heads = base.cast::<u64>().add(plan.heads);
            heads.add(words * count).cast::<Margin>().write(Margin {
                low_head,
                low_word,
                contention: AtomicU32::new(fittings.contention),
                was_split: AtomicBool::new(false),
            });
            if fittings.is_spread {
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

    /// A base node of entries.
    pub(super) fn of_entries(
        position: Position<K, H>,
        entries: &[Entry<K, H>],
        fittings: Fittings,
    ) -> Self {
        let mut draft = Self::new(position, entries.len(), fittings);
        entries.iter().for_each(|entry| draft.push(*entry));
        draft
    }

    /// Where an entry's word of an array goes.
    ///
    /// # Safety
    ///
    /// There are so many entries and arrays.
    #[inline]
    unsafe fn place(&self, array: usize, at: usize) -> NonNull<u64> {
        // SAFETY: the arrays have room for `count` words each, one behind the other.
        unsafe { self.heads.add(array * self.count + at) }
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry<K, H>) {
        let at = self.filled;
        assert!(at < self.count, "a node has the entries that it counted");
        // SAFETY: `at` is one of the places.
        unsafe {
            self.place(0, at).write(entry.key.head);
            if head_is_key::<K, H>() {
                self.place(1, at).cast().write(entry.value);
            } else {
                self.place(1, at).cast().write(entry.key.word);
                self.place(2, at).cast().write(entry.value);
            }
        }
        self.advance(1);
    }

    /// Copies a run of entries from a node.
    #[inline]
    pub(super) fn push_run(&mut self, from: BaseRef<'_, K, V, H>, run: Range<usize>) {
        let (at, length) = (self.filled, run.len());
        assert!(
            at + length <= self.count && run.end <= from.count as usize,
            "a node has the entries that it counted"
        );
        for array in 0..arrays_of::<K, H>() {
            // SAFETY: both arrays are that long, and belong to different nodes.
            unsafe {
                let source = from.arrays().add(array * from.count as usize + run.start);
                source.copy_to_nonoverlapping(self.place(array, at).as_ptr(), length);
            }
        }
        self.advance(length);
    }

    /// Replaces the value of an entry that is there.
    #[inline]
    pub(super) fn replace(&mut self, at: usize, value: *mut ()) {
        assert!(at < self.filled, "an entry is there before it is changed");
        let values = if head_is_key::<K, H>() { 1 } else { 2 };
        // SAFETY: `at` is one of the places.
        unsafe { self.place(values, at).cast().write(value) };
    }

    /// Counts entries as filled in; copies the hints from the heads when all are.
    #[inline]
    fn advance(&mut self, entries: usize) {
        self.filled += entries;
        if self.filled < self.count {
            return;
        }
        for hint in 0..hints_of(self.count) {
            let first = (hint + 1) * STRIDE;
            // SAFETY: the header is followed by so many hints, and all heads have been written.
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

    /// The word that leads to it. When it has been published, [`give`](Self::give) is next.
    pub(super) fn word(&self) -> Word {
        assert!(
            self.filled == self.count,
            "a node has the entries that it counted"
        );
        Word::base(self.base)
    }

    /// Leaves it to the mapping table.
    pub(super) fn give(self) {
        std::mem::forget(self);
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Drop for Draft<K, V, H> {
    fn drop(&mut self) {
        // SAFETY: nobody has seen it.
        unsafe { free_base(self.base) };
    }
}
