//! Nodes: what leaves and inner nodes have in common, and how they are made and freed.
//!
//! A leaf is of one of two forms, which the type of the keys determines: arrays as in an inner
//! node, or a leaf of [text](super::text). What `leaf` says holds for both; the methods of
//! [`NodeRef`] that touch the arrays are for inner nodes and leaves of the first form.

mod entry;
mod inner;
mod leaf;
mod leaf_key;
mod links;
mod window;

use super::layout::Plan;
use super::text::{self, Heap, TextLeaf};
use crate::key::KeyHead;
use crate::kit::blocks::UNIT_BYTES;
use crate::kit::{Heads, STRIDE, SearchKey, Spec, StoredKey, ValueSlot, close, open, prefetch};
use std::alloc::{alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering as KeyOrdering;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use tremula_sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version, VersionGuard, VersionLock};

/// The first cache line of a node. Its lock guards all of the node but `prev` and `waits`.
#[repr(C, align(64))]
pub(super) struct Header {
    lock: VersionLock,
    /// 0 in a leaf, otherwise one more than in the children. Never changes.
    level: u32,
    /// Entries of a leaf, or separators of an inner node: one fewer than its children.
    count: AtomicU32,
    /// How often the range of keys that the node is responsible for has changed, modulo 2^32. A
    /// thread that notes it and then waits for the node's lock would mistake another range for the
    /// old one after exactly 2^32 changes. Each change is a split, a merge or an exchange of
    /// entries, so the thread would have to sleep for many minutes between two instructions.
    moves: AtomicU32,
    /// One above the index of the last insertion, and how many insertions before it were each right
    /// above the last: `index << 16 | run`.
    insertions: AtomicU32,
    /// The right neighbour of a leaf; null in the last one.
    next: AtomicPtr<Header>,
    /// The left neighbour of a leaf; null in the first one. Guarded by the lock of that
    /// neighbour, not by this node's.
    prev: AtomicPtr<Header>,
    /// How often a writer had to wait for the lock, modulo 2^32: a figure, which orders nothing.
    waits: AtomicU32,
    /// How many bytes all keys have in common, in front of what their heads show ([`window`]).
    skip: AtomicU32,
    /// In a leaf: the number of the last snapshot that has what the leaf held at its moment
    /// ([`snapshots`](super::snapshots)).
    settled: AtomicU64,
    /// In a leaf: what has changed there since the moment of a later snapshot, an
    /// [`Undo`](super::undo::Undo); null if nothing has.
    undo: AtomicPtr<()>,
}

/// A leaf of text, as it lies in memory.
#[repr(C)]
struct TextNode {
    header: Header,
    text: TextLeaf,
}

impl TextNode {
    /// The units of the heap that it takes.
    const UNITS: usize = size_of::<Self>().div_ceil(UNIT_BYTES);
}

/// A node that is not freed during `'g`: the thread is pinned, or is the only one with the tree.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'g, S: Spec> {
    header: NonNull<Header>,
    alive: PhantomData<&'g S>,
}

impl<S: Spec> PartialEq for NodeRef<'_, S> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.header == other.header
    }
}

#[derive(Clone, Copy)]
pub(super) struct LeafRef<'g, S: Spec>(NodeRef<'g, S>);

#[derive(Clone, Copy)]
pub(super) struct InnerRef<'g, S: Spec>(NodeRef<'g, S>);

pub(super) use entry::{Entry, LooseEntry};
pub(super) use leaf_key::{LeafKey, LooseKey, NewKey};
pub(super) use window::{alike, first_of, prefix_words, word_at};
use window::{has_own_heads, has_windows};

pub(super) enum Kind<'g, S: Spec> {
    Leaf(LeafRef<'g, S>),
    Inner(InnerRef<'g, S>),
}

macro_rules! kind_of_node {
    ($name:ident) => {
        impl<'g, S: Spec> Deref for $name<'g, S> {
            type Target = NodeRef<'g, S>;

            #[inline]
            fn deref(&self) -> &NodeRef<'g, S> {
                &self.0
            }
        }
    };
}

kind_of_node!(LeafRef);
kind_of_node!(InnerRef);

/// What a search in a node finds: the index of the key, or, as an error, where the key belongs.
pub(super) type SearchResult = Result<usize, usize>;

/// Where a search looks in a node: at a head, in its segment.
#[derive(Clone, Copy, Default)]
pub(super) struct Aim {
    pub(super) head: u64,
    pub(super) segment: usize,
    /// Whether no key of the node can be equal, whatever its head: the node is a leaf of text, and
    /// the key does not have its prefix.
    pub(super) is_outside: bool,
}

fn copy_word(to: &AtomicPtr<Header>, from: &AtomicPtr<Header>) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}

impl<'g, S: Spec> NodeRef<'g, S> {
    /// Makes an empty node. A leaf of text lies in the heap.
    fn allocate(level: u32, heap: Heap) -> Self {
        let plan = const { &Plan::of::<S>() };
        let is_text = level == 0 && S::is_text();
        let node = if is_text {
            heap.allocate(TextNode::UNITS).0
        } else {
            // SAFETY: the layout has the size of a header at least.
            unsafe { alloc(plan.layout) }
        };
        let Some(header) = NonNull::new(node.cast::<Header>()) else {
            handle_alloc_error(plan.layout)
        };
        // SAFETY: the layout has room for the header and for each array at its offset.
        unsafe {
            header.write(Header {
                lock: VersionLock::new(),
                level,
                count: AtomicU32::new(0),
                moves: AtomicU32::new(0),
                insertions: AtomicU32::new(0),
                next: AtomicPtr::new(ptr::null_mut()),
                prev: AtomicPtr::new(ptr::null_mut()),
                waits: AtomicU32::new(0),
                skip: AtomicU32::new(0),
                settled: AtomicU64::new(0),
                undo: AtomicPtr::new(ptr::null_mut()),
            });
            if is_text {
                let text = &raw mut (*node.cast::<TextNode>()).text;
                text.write(TextLeaf::new(heap));
                return Self::from_raw(header);
            }
            fill(node.add(plan.hints), Heads::hints_of(plan.capacity), || {
                Heads::unused()
            });
            fill(node.add(plan.prefix), prefix_words::<S>(), || {
                AtomicU64::new(0)
            });
            fill(node.add(plan.heads), plan.capacity, Heads::unused);
            if !S::HEAD_IS_KEY {
                fill(node.add(plan.keys), plan.capacity, || {
                    AtomicPtr::<()>::new(ptr::null_mut())
                });
            }
            if level == 0 {
                fill(node.add(plan.slots), plan.capacity, ValueSlot::<S>::empty);
            } else {
                fill(node.add(plan.slots), plan.capacity, || {
                    AtomicPtr::<Header>::new(ptr::null_mut())
                });
            }
            Self::from_raw(header)
        }
    }

    /// Frees the node, but not its keys, values and children.
    ///
    /// # Safety
    ///
    /// No other thread has the node, and the caller does not use it again.
    pub(super) unsafe fn free(self) {
        let plan = const { &Plan::of::<S>() };
        let level = self.level();
        let node = self.header.as_ptr().cast::<u8>();
        if level == 0 && S::is_text() {
            // SAFETY: `allocate` made the node so.
            unsafe {
                let node = node.cast::<TextNode>();
                let heap = (*node).text.heap();
                (*node).text.free_block();
                node.drop_in_place();
                heap.free(node.cast(), TextNode::UNITS);
            }
            return;
        }
        // SAFETY: `allocate` made the node and wrote these arrays.
        unsafe {
            empty::<AtomicU64>(node.add(plan.hints), Heads::hints_of(plan.capacity));
            empty::<AtomicU64>(node.add(plan.prefix), prefix_words::<S>());
            empty::<AtomicU64>(node.add(plan.heads), plan.capacity);
            if !S::HEAD_IS_KEY {
                empty::<AtomicPtr<()>>(node.add(plan.keys), plan.capacity);
            }
            if level == 0 {
                empty::<ValueSlot<S>>(node.add(plan.slots), plan.capacity);
            } else {
                empty::<AtomicPtr<Header>>(node.add(plan.slots), plan.capacity);
            }
            self.header.drop_in_place();
            dealloc(node, plan.layout);
        }
    }

    /// Frees the node, but not its keys, values and children, when every thread that is pinned now
    /// has unpinned.
    ///
    /// # Safety
    ///
    /// The node has been unlinked, so that no thread that pins from now on comes to it; and it is
    /// retired once.
    pub(super) unsafe fn retire(self, guard: &Guard<'_>) {
        let header = self.header;
        // SAFETY: it is freed only here, when every thread that could have come to it has unpinned.
        unsafe { guard.defer_unchecked(move || NodeRef::<S>::from_raw(header).free()) };
    }

    /// The node at an address.
    ///
    /// # Safety
    ///
    /// A node of a tree of this type is there, and is not freed during `'g`.
    #[inline]
    pub(super) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Self {
            header,
            alive: PhantomData,
        }
    }

    #[inline]
    pub(super) fn as_ptr(self) -> *mut Header {
        self.header.as_ptr()
    }

    #[inline]
    pub(super) fn as_non_null(self) -> NonNull<Header> {
        self.header
    }

    #[inline]
    fn header(self) -> &'g Header {
        // SAFETY: the node is not freed during `'g`.
        unsafe { self.header.as_ref() }
    }

    #[inline]
    pub(super) fn kind(self) -> Kind<'g, S> {
        if self.level() == 0 {
            Kind::Leaf(LeafRef(self))
        } else {
            Kind::Inner(InnerRef(self))
        }
    }

    #[inline]
    pub(super) fn level(self) -> u32 {
        self.header().level
    }

    #[inline]
    pub(super) fn lock(self) -> &'g VersionLock {
        &self.header().lock
    }

    /// Locks the node, and counts if another thread holds it.
    pub(super) fn wait_to_lock(self) -> Result<VersionGuard<'g>, Restart> {
        if let Ok(lock) = self.lock().try_lock() {
            return Ok(lock);
        }
        self.note_wait();
        self.lock().lock()
    }

    /// Counts a wait for the lock. Under a checker it would be one step more, so it does nothing.
    pub(super) fn note_wait(self) {
        if cfg!(not(any(loom, shuttle))) {
            self.header().waits.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn waits(self) -> u32 {
        self.header().waits.load(Ordering::Relaxed)
    }

    /// A function that validates what was read since `version` was noted.
    #[inline]
    pub(super) fn still(self, version: Version) -> impl Fn() -> Result<(), Restart> + Copy {
        move || self.lock().validate(version)
    }

    #[inline]
    pub(super) fn count(self) -> usize {
        self.header().count.load(Ordering::Relaxed) as usize
    }

    #[inline]
    pub(super) fn set_count(self, count: usize) {
        self.header().count.store(count as u32, Ordering::Relaxed);
    }

    /// How often the range of keys that the node is responsible for has changed.
    #[inline]
    pub(super) fn moves(self) -> u32 {
        self.header().moves.load(Ordering::Relaxed)
    }

    /// Counts a change of that range.
    pub(super) fn moved(self) {
        let moves = self.moves().wrapping_add(1);
        self.header().moves.store(moves, Ordering::Relaxed);
    }

    /// How many keys fit: entries of a leaf, separators of an inner node.
    #[inline]
    pub(super) fn capacity(self) -> usize {
        let capacity = const { Plan::of::<S>().capacity };
        if self.level() == 0 {
            if S::is_text() {
                capacity.min(text::CAPACITY)
            } else {
                capacity
            }
        } else {
            capacity - 1
        }
    }

    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.count() >= self.capacity()
    }

    /// Whether the node has so few keys that it should be merged, or take some from a neighbour.
    #[inline]
    pub(super) fn is_underfull(self) -> bool {
        let has_few = self.count() < (self.capacity() / 4).max(1);
        match self.kind() {
            Kind::Leaf(leaf) if S::is_text() => has_few && leaf.text().is_mostly_empty(),
            _ => has_few,
        }
    }

    /// Prefetches the cache lines that a search in the node begins with: of a leaf of text, all.
    /// The parent is at `level`, or would be.
    #[inline]
    pub(super) fn prefetch_below(self, level: u32) {
        let line = self.header.as_ptr();
        prefetch(line);
        if level == 1 && S::is_text() {
            TextLeaf::prefetch(line.wrapping_add(1).cast());
            return;
        }
        prefetch(line.wrapping_add(1));
        prefetch(line.wrapping_add(2));
    }

    /// The same for one of many searches at a time. Of a leaf of text it asks only for the first
    /// lines, which say where the search goes on: all lines of all leaves would be too many.
    #[inline]
    pub(super) fn prefetch_front_below(self, level: u32) {
        if level == 1 && S::is_text() {
            let line = self.header.as_ptr();
            prefetch(line);
            TextLeaf::prefetch_front(line.wrapping_add(1).cast());
        } else {
            self.prefetch_below(level);
        }
    }

    /// The address of the value, or child, at an index; for prefetches only.
    #[inline]
    fn slot_address(self, at: usize) -> *const AtomicPtr<()> {
        let slots = self.header.as_ptr().cast::<u8>();
        let slots = slots.wrapping_add(const { Plan::of::<S>().slots });
        slots.cast::<AtomicPtr<()>>().wrapping_add(at)
    }

    /// Prefetches the values, or children, that belong to a segment of heads; where a search always
    /// looks at a key in the end, also the words of the keys.
    #[inline]
    pub(super) fn prefetch_slots(self, segment: usize) {
        let start = self.slot_address(Heads::start(segment));
        prefetch(start);
        prefetch(start.wrapping_add(STRIDE / 2));
        if has_windows::<S>() && !has_own_heads::<S>() {
            let start = self.keys().as_ptr().wrapping_add(Heads::start(segment));
            prefetch(start);
            prefetch(start.wrapping_add(STRIDE / 2));
        }
    }

    /// Prefetches the heads and values of `entries` entries, from the one at `at` on.
    #[inline]
    pub(super) fn prefetch_entries(self, at: usize, entries: usize) {
        for index in (at..at + entries).step_by(STRIDE / 2) {
            prefetch(self.heads().address(index));
            prefetch(self.slot_address(index));
            if has_windows::<S>() {
                prefetch(self.keys().as_ptr().wrapping_add(index));
            }
        }
    }

    /// Prefetches the end of the entries, where an insertion begins to move them.
    #[inline]
    pub(super) fn prefetch_end(self) {
        let count = self.count();
        let heads = self.heads().address(count);
        prefetch(heads);
        prefetch(self.slot_address(count));
        if !S::HEAD_IS_KEY {
            prefetch(self.keys().as_ptr().wrapping_add(count));
        }
    }

    /// # Safety
    ///
    /// `allocate` wrote `length` elements of this type at this offset.
    #[inline]
    unsafe fn array<T>(self, offset: usize, length: usize) -> &'g [T] {
        let node = self.header.as_ptr().cast::<u8>();
        // SAFETY: the caller promises that the array is there; it lives as long as the node, and
        // has interior mutability.
        unsafe { std::slice::from_raw_parts(node.add(offset).cast::<T>(), length) }
    }

    #[inline]
    pub(super) fn heads(self) -> Heads<'g> {
        let plan = const { &Plan::of::<S>() };
        // SAFETY: `allocate` wrote these arrays.
        unsafe {
            Heads::new(
                self.array(plan.hints, Heads::hints_of(plan.capacity)),
                self.array(plan.heads, plan.capacity),
            )
        }
    }

    /// The hints, to be checked.
    pub(super) fn hints(self) -> &'g [AtomicU64] {
        let plan = const { &Plan::of::<S>() };
        // SAFETY: `allocate` wrote this array.
        unsafe { self.array(plan.hints, Heads::hints_of(plan.capacity)) }
    }

    #[inline]
    fn keys(self) -> &'g [AtomicPtr<()>] {
        let plan = const { &Plan::of::<S>() };
        let length = if S::HEAD_IS_KEY { 0 } else { plan.capacity };
        // SAFETY: `allocate` wrote this array.
        unsafe { self.array(plan.keys, length) }
    }

    /// The key at an index; for an optimistic reader, not validated.
    #[inline]
    pub(super) fn key(self, at: usize) -> StoredKey<S> {
        let word = if S::HEAD_IS_KEY {
            ptr::null_mut()
        } else {
            self.keys()[at].load(Ordering::Relaxed)
        };
        StoredKey::of_words(self.head_of_key(self.heads().load(at)), word)
    }

    /// Prefetches the key at an index, if the key is not in the node itself.
    #[inline]
    pub(super) fn prefetch_key(self, at: usize) {
        if let Some(key) = self.keys().get(at) {
            StoredKey::<S>::of_words(0, key.load(Ordering::Relaxed)).prefetch();
        }
    }

    /// Where a key is, or belongs. Calls `sound` before it looks at a key, and passes on the error.
    #[inline]
    pub(super) fn find(
        self,
        probe: &SearchKey<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<SearchResult, Restart> {
        self.find_at(self.aim(probe), probe, sound)
    }

    /// The head that a key has here, or would have, and the segment of that head.
    #[inline(always)]
    pub(super) fn aim(self, probe: &SearchKey<'_, S>) -> Aim {
        let head = self.head_of_probe(probe);
        let segment = self.heads().segment(head);
        Aim {
            head,
            segment,
            is_outside: false,
        }
    }

    /// [`find`](Self::find), where the head and the segment are known.
    // Always inlined: as `look_into`.
    #[inline(always)]
    pub(super) fn find_at(
        self,
        Aim { head, segment, .. }: Aim,
        probe: &SearchKey<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<SearchResult, Restart> {
        let (heads, count) = (self.heads(), self.count());
        let at = heads.below_in(segment, head);
        if at >= count || heads.load(at) != head {
            return Ok(Err(at.min(count)));
        }
        if S::Head::is_only_of_one(head) {
            return Ok(Ok(at));
        }
        self.find_among_equal_heads(at, count, head, probe, sound)
    }

    fn find_among_equal_heads(
        self,
        mut low: usize,
        count: usize,
        head: u64,
        probe: &SearchKey<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<SearchResult, Restart> {
        // Nearly always one or two heads are equal.
        let mut high = low + 1;
        if high < count && self.heads().load(high) == head {
            high = self.heads().at_or_below(head, count).min(count);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            let key = self.key(middle);
            sound()?;
            // SAFETY: `sound` says that no thread changed the node while the key was read. So it
            // is the key of an entry that was linked after this thread was pinned.
            match unsafe { key.with(|key| probe.key.compare(key).reverse()) } {
                KeyOrdering::Less => low = middle + 1,
                KeyOrdering::Equal => return Ok(Ok(middle)),
                KeyOrdering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }

    /// Inserts a key at an index among `count`. The caller writes the slot and the count.
    fn insert_key(self, at: usize, count: usize, key: StoredKey<S>) {
        let head = self.admit(key, count);
        self.heads().insert(at, count, head);
        if !S::HEAD_IS_KEY {
            open(self.keys(), at, count, |to, from| {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            });
            self.keys()[at].store(key.word, Ordering::Relaxed);
        }
    }

    /// Removes the key at an index among `count`. The caller writes the slot and the count.
    fn remove_key(self, at: usize, count: usize) {
        self.heads().remove(at, count);
        if !S::HEAD_IS_KEY {
            close(self.keys(), at, count, |to, from| {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            });
        }
    }

    /// Writes a key, but no hint. The caller calls [`seal`](Self::seal) after that.
    fn store_key(self, at: usize, key: StoredKey<S>) {
        let head = if has_own_heads::<S>() {
            self.head_before_sealing(key)
        } else {
            self.admit(key, const { Plan::of::<S>().capacity })
        };
        self.heads().store(at, head);
        if !S::HEAD_IS_KEY {
            self.keys()[at].store(key.word, Ordering::Relaxed);
        }
    }

    /// Ends a change of many entries: sets the count to `count`, and writes the hints.
    pub(super) fn seal(self, count: usize) {
        self.fit_window(count);
        self.heads().seal(count);
        self.set_count(count);
    }
}

/// # Safety
///
/// `start` has room for `length` elements.
unsafe fn fill<T>(start: *mut u8, length: usize, element: impl Fn() -> T) {
    for at in 0..length {
        // SAFETY: the caller promises the room.
        unsafe { start.cast::<T>().add(at).write(element()) };
    }
}

/// # Safety
///
/// `start` has `length` elements, which no thread uses any more.
unsafe fn empty<T>(start: *mut u8, length: usize) {
    // SAFETY: the caller promises the elements.
    unsafe { ptr::slice_from_raw_parts_mut(start.cast::<T>(), length).drop_in_place() };
}
