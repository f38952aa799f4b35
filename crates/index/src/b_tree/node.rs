//! Nodes: what all of them have, and how they are reached, made and freed; and leaves.

mod inner;

use super::layout::Plan;
use crate::kit::{Heads, Packed, STRIDE, SearchKey, Slot, Spec, StoredKey, close, open, prefetch};
use std::alloc::{alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering as KeyOrdering;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use tremula_sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version, VersionLock};

/// The first cache line of a node. Its lock guards all of the node but `prev`.
#[repr(C, align(64))]
pub(super) struct Header {
    lock: VersionLock,
    /// 0 in a leaf, else one more than in the children. Never changes.
    level: u32,
    /// Entries of a leaf, or separators of an inner node: one fewer than its children.
    count: AtomicU32,
    /// How often the range of keys that the node is responsible for has changed, modulo 2^32. A
    /// thread that noted it, and then waits for the node's lock, would take another range for the old
    /// one if meanwhile there were exactly 2^32 changes: each is a split, a merge or an exchange with
    /// a neighbour, so that the thread would have to sleep for many minutes between two instructions.
    moves: AtomicU32,
    /// One above the place of the last insertion, and how many insertions before it followed one
    /// another upwards: `place << 16 | run`.
    insertions: AtomicU32,
    /// The right neighbour of a leaf; null in the last one.
    next: AtomicPtr<Header>,
    /// The left neighbour of a leaf; null in the first one. Guarded by the lock of that
    /// neighbour, not by this node's.
    prev: AtomicPtr<Header>,
}

/// A node that cannot be freed for `'g`: the thread is pinned, or alone with the tree.
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

/// A leaf.
#[derive(Clone, Copy)]
pub(super) struct LeafRef<'g, S: Spec>(NodeRef<'g, S>);

/// An inner node.
#[derive(Clone, Copy)]
pub(super) struct InnerRef<'g, S: Spec>(NodeRef<'g, S>);

/// What a node is.
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

/// An entry as it is in a leaf: plain words that own nothing.
#[derive(Clone, Copy)]
pub(super) struct Entry<S: Spec> {
    pub(super) key: StoredKey<S>,
    // Written so, `derive` does not ask for values that are `Copy`.
    pub(super) value: Packed<<S as Spec>::Value>,
}

impl<S: Spec> Entry<S> {
    /// Copies of key and value.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::with`] and [`Packed::with`].
    #[inline]
    pub(super) unsafe fn to_pair(self) -> (S::Key, S::Value) {
        // SAFETY: passed on to the caller.
        unsafe { (self.key.to_key(), self.value.with(S::Value::clone)) }
    }

    /// Hands key and value out after they have been unlinked: themselves, if no other thread can
    /// be looking at them; else copies, and they are freed when no thread can any more.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::retire`] and [`Packed::hand_out`].
    pub(super) unsafe fn hand_out(self, guard: &Guard<'_>) -> (S::Key, S::Value) {
        let has_drop = needs_drop::<S::Key>() || needs_drop::<S::Value>();
        // SAFETY: passed on to the caller. What is retired lives on as long as this guard does.
        unsafe {
            if has_drop && guard.is_alone() {
                (self.key.take(), self.value.take())
            } else {
                self.retire(guard);
                self.to_pair()
            }
        }
    }

    /// Retires key and value.
    ///
    /// # Safety
    ///
    /// As for [`StoredKey::retire`] and [`Packed::retire`].
    pub(super) unsafe fn retire(self, guard: &Guard<'_>) {
        // SAFETY: passed on to the caller.
        unsafe {
            self.key.retire(guard);
            self.value.retire(guard);
        }
    }
}

/// What a search in a node finds: the place of the key, or, as an error, where it belongs.
pub(super) type Found = Result<usize, usize>;

fn copy_word(to: &AtomicPtr<Header>, from: &AtomicPtr<Header>) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}

impl<'g, S: Spec> NodeRef<'g, S> {
    /// Makes an empty node.
    fn allocate(level: u32) -> Self {
        let plan = const { &Plan::of::<S>() };
        // SAFETY: a header has a size.
        let node = unsafe { alloc(plan.layout) };
        let Some(header) = NonNull::new(node.cast::<Header>()) else {
            handle_alloc_error(plan.layout)
        };
        // SAFETY: the node has room for what is written, at these places.
        unsafe {
            header.write(Header {
                lock: VersionLock::new(),
                level,
                count: AtomicU32::new(0),
                moves: AtomicU32::new(0),
                insertions: AtomicU32::new(0),
                next: AtomicPtr::new(ptr::null_mut()),
                prev: AtomicPtr::new(ptr::null_mut()),
            });
            fill(node.add(plan.hints), Heads::hints_of(plan.capacity), || {
                Heads::unused()
            });
            fill(node.add(plan.heads), plan.capacity, Heads::unused);
            if !S::HEAD_IS_KEY {
                fill(node.add(plan.keys), plan.capacity, || {
                    AtomicPtr::<()>::new(ptr::null_mut())
                });
            }
            if level == 0 {
                fill(node.add(plan.slots), plan.capacity, Slot::<S::Value>::empty);
            } else {
                fill(node.add(plan.slots), plan.capacity, || {
                    AtomicPtr::<Header>::new(ptr::null_mut())
                });
            }
            Self::from_raw(header)
        }
    }

    /// Frees the node, but not what its entries lead to.
    ///
    /// # Safety
    ///
    /// Nobody else has the node, or uses it ever again.
    pub(super) unsafe fn free(self) {
        let plan = const { &Plan::of::<S>() };
        let level = self.level();
        let node = self.header.as_ptr().cast::<u8>();
        // SAFETY: `allocate` made the node and wrote these.
        unsafe {
            empty::<AtomicU64>(node.add(plan.hints), Heads::hints_of(plan.capacity));
            empty::<AtomicU64>(node.add(plan.heads), plan.capacity);
            if !S::HEAD_IS_KEY {
                empty::<AtomicPtr<()>>(node.add(plan.keys), plan.capacity);
            }
            if level == 0 {
                empty::<Slot<S::Value>>(node.add(plan.slots), plan.capacity);
            } else {
                empty::<AtomicPtr<Header>>(node.add(plan.slots), plan.capacity);
            }
            self.header.drop_in_place();
            dealloc(node, plan.layout);
        }
    }

    /// Frees the node, but not what its entries lead to, once no reader pinned now can be
    /// looking at it.
    ///
    /// # Safety
    ///
    /// The node has been unlinked, so that nobody who pins from now on comes to it; and it is
    /// retired once.
    pub(super) unsafe fn retire(self, guard: &Guard<'_>) {
        let header = self.header;
        // SAFETY: freed here only, when nobody is pinned any more who could have come to it.
        unsafe { guard.defer_unchecked(move || NodeRef::<S>::from_raw(header).free()) };
    }

    /// The node at an address.
    ///
    /// # Safety
    ///
    /// A node of a tree of this kind is there, and is not freed for `'g`.
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
        // SAFETY: the node lives for 'g.
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

    /// A check that what was read since `version` was noted is sound.
    #[inline]
    pub(super) fn still(self, version: Version) -> impl Fn() -> Result<(), Restart> + Copy {
        move || self.lock().validate(version)
    }

    #[inline]
    pub(super) fn count(self) -> usize {
        self.header().count.load(Ordering::Relaxed) as usize
    }

    /// From now on the node has so many keys.
    #[inline]
    pub(super) fn set_count(self, count: usize) {
        self.header().count.store(count as u32, Ordering::Relaxed);
    }

    /// How often the node's range of keys has changed.
    #[inline]
    pub(super) fn moves(self) -> u32 {
        self.header().moves.load(Ordering::Relaxed)
    }

    /// Counts a change of the node's range.
    pub(super) fn moved(self) {
        let moves = self.moves().wrapping_add(1);
        self.header().moves.store(moves, Ordering::Relaxed);
    }

    /// The keys that fit: entries of a leaf, separators of an inner node.
    #[inline]
    pub(super) fn capacity(self) -> usize {
        let capacity = const { Plan::of::<S>().capacity };
        if self.level() == 0 {
            capacity
        } else {
            capacity - 1
        }
    }

    #[inline]
    pub(super) fn is_full(self) -> bool {
        self.count() >= self.capacity()
    }

    /// Whether so few keys are left that the node should be merged, or be given some.
    #[inline]
    pub(super) fn is_underfull(self) -> bool {
        self.count() < (self.capacity() / 4).max(1)
    }

    /// Asks for what a search in the node begins with.
    #[inline]
    pub(super) fn prefetch(self) {
        let line = self.header.as_ptr();
        prefetch(line);
        prefetch(line.wrapping_add(1));
        prefetch(line.wrapping_add(2));
    }

    /// The address of the value, or child, at a place; for prefetches only.
    #[inline]
    fn slot_address(self, at: usize) -> *const AtomicPtr<()> {
        let slots = self.header.as_ptr().cast::<u8>();
        let slots = slots.wrapping_add(const { Plan::of::<S>().slots });
        slots.cast::<AtomicPtr<()>>().wrapping_add(at)
    }

    /// Asks for the values, or children, that belong to a segment of heads.
    #[inline]
    pub(super) fn prefetch_slots(self, segment: usize) {
        let start = self.slot_address(Heads::start(segment));
        prefetch(start);
        prefetch(start.wrapping_add(STRIDE / 2));
    }

    /// Asks for the heads and values of so many entries from a place on.
    #[inline]
    pub(super) fn prefetch_entries(self, at: usize, entries: usize) {
        for place in (at..at + entries).step_by(STRIDE / 2) {
            prefetch(self.heads().address(place));
            prefetch(self.slot_address(place));
        }
    }

    /// Asks for where the entries end: an insertion moves them from there.
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
        // SAFETY: the array is there, for as long as the node lives, and is only read.
        unsafe { std::slice::from_raw_parts(node.add(offset).cast::<T>(), length) }
    }

    #[inline]
    pub(super) fn heads(self) -> Heads<'g> {
        let plan = const { &Plan::of::<S>() };
        // SAFETY: as `allocate` wrote them.
        unsafe {
            Heads::new(
                self.array(plan.hints, Heads::hints_of(plan.capacity)),
                self.array(plan.heads, plan.capacity),
            )
        }
    }

    #[inline]
    fn keys(self) -> &'g [AtomicPtr<()>] {
        let plan = const { &Plan::of::<S>() };
        let length = if S::HEAD_IS_KEY { 0 } else { plan.capacity };
        // SAFETY: as `allocate` wrote them.
        unsafe { self.array(plan.keys, length) }
    }

    /// The key at a place; of an optimistic reader, unvalidated.
    #[inline]
    pub(super) fn key(self, at: usize) -> StoredKey<S> {
        let word = if S::HEAD_IS_KEY {
            ptr::null_mut()
        } else {
            self.keys()[at].load(Ordering::Relaxed)
        };
        StoredKey::of_words(self.heads().load(at), word)
    }

    /// Asks for the key at a place, if it is not in the node.
    #[inline]
    pub(super) fn prefetch_key(self, at: usize) {
        if let Some(key) = self.keys().get(at) {
            prefetch(key.load(Ordering::Relaxed));
        }
    }

    /// Where a key is, or belongs. `sound` is asked before a key is looked at, and its error
    /// passed on.
    #[inline]
    pub(super) fn find(
        self,
        probe: &SearchKey<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<Found, Restart> {
        let segment = self.heads().segment(probe.head);
        self.find_in(segment, probe, sound)
    }

    /// [`find`](Self::find), when the segment is known.
    // Always: as `look_into`.
    #[inline(always)]
    pub(super) fn find_in(
        self,
        segment: usize,
        probe: &SearchKey<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<Found, Restart> {
        let (heads, count) = (self.heads(), self.count());
        let at = heads.below_in(segment, probe.head);
        if at >= count || heads.load(at) != probe.head {
            return Ok(Err(at.min(count)));
        }
        if S::HEAD_IS_KEY {
            return Ok(Ok(at));
        }
        self.find_among_equal_heads(at, count, probe, sound)
    }

    fn find_among_equal_heads(
        self,
        mut low: usize,
        count: usize,
        probe: &SearchKey<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<Found, Restart> {
        // Nearly always one head is equal, or two.
        let mut high = low + 1;
        if high < count && self.heads().load(high) == probe.head {
            high = self.heads().at_or_below(probe.head, count).min(count);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            let key = self.key(middle);
            sound()?;
            // SAFETY: `sound` says that nobody was changing the node when the key was read: it
            // is that of an entry, and unlinked at the earliest after the thread was pinned.
            match unsafe { key.with(|key| key.cmp(probe.key)) } {
                KeyOrdering::Less => low = middle + 1,
                KeyOrdering::Equal => return Ok(Ok(middle)),
                KeyOrdering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }

    /// Puts a key at a place among `count`; the slot and the count are for the caller.
    fn insert_key(self, at: usize, count: usize, key: StoredKey<S>) {
        self.heads().insert(at, count, key.head);
        if !S::HEAD_IS_KEY {
            open(self.keys(), at, count, |to, from| {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            });
            self.keys()[at].store(key.word, Ordering::Relaxed);
        }
    }

    /// Takes the key at a place out from among `count`.
    fn remove_key(self, at: usize, count: usize) {
        self.heads().remove(at, count);
        if !S::HEAD_IS_KEY {
            close(self.keys(), at, count, |to, from| {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            });
        }
    }

    /// Writes a key without regard for the hints: [`seal`](Self::seal) follows.
    fn store_key(self, at: usize, key: StoredKey<S>) {
        self.heads().store(at, key.head);
        if !S::HEAD_IS_KEY {
            self.keys()[at].store(key.word, Ordering::Relaxed);
        }
    }

    /// Ends a change of many entries: from now on the node has `count` keys.
    pub(super) fn seal(self, count: usize) {
        self.heads().seal(count);
        self.set_count(count);
    }
}

/// # Safety
///
/// There is room for `length` elements.
unsafe fn fill<T>(start: *mut u8, length: usize, element: impl Fn() -> T) {
    for at in 0..length {
        // SAFETY: as the caller promises.
        unsafe { start.cast::<T>().add(at).write(element()) };
    }
}

/// # Safety
///
/// There are `length` elements, which nobody uses any more.
unsafe fn empty<T>(start: *mut u8, length: usize) {
    // SAFETY: as the caller promises.
    unsafe { ptr::slice_from_raw_parts_mut(start.cast::<T>(), length).drop_in_place() };
}

impl<'g, S: Spec> LeafRef<'g, S> {
    /// Makes an empty leaf.
    pub(super) fn new() -> Self {
        Self(NodeRef::allocate(0))
    }

    /// The leaf at an address.
    ///
    /// # Safety
    ///
    /// As for [`NodeRef::from_raw`]; and it is a leaf.
    #[inline]
    pub(super) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        // SAFETY: passed on to the caller.
        Self(unsafe { NodeRef::from_raw(header) })
    }

    #[inline]
    pub(super) fn node(self) -> NodeRef<'g, S> {
        self.0
    }

    #[inline]
    pub(super) fn values(self) -> &'g [Slot<S::Value>] {
        let plan = const { &Plan::of::<S>() };
        // SAFETY: `allocate` wrote them: this is a leaf.
        unsafe { self.0.array(plan.slots, plan.capacity) }
    }

    /// The entry at a place; of an optimistic reader, unvalidated.
    #[inline]
    pub(super) fn entry(self, at: usize) -> Entry<S> {
        Entry {
            key: self.key(at),
            value: self.values()[at].load(),
        }
    }

    /// The right neighbour; of an optimistic reader, not to be followed before it is validated.
    #[inline]
    pub(super) fn next(self) -> Option<NonNull<Header>> {
        NonNull::new(self.header().next.load(Ordering::Relaxed))
    }

    /// Under this leaf's lock.
    pub(super) fn set_next(self, next: Option<NonNull<Header>>) {
        let next = next.map_or(ptr::null_mut(), NonNull::as_ptr);
        self.header().next.store(next, Ordering::Relaxed);
    }

    /// The left neighbour.
    #[inline]
    pub(super) fn prev(self) -> Option<LeafRef<'g, S>> {
        // Acquire: pairs with the release in `set_prev`, for what the neighbour was made with.
        let prev = NonNull::new(self.header().prev.load(Ordering::Acquire))?;
        // SAFETY: it was this leaf's neighbour at some time since the thread was pinned, for
        // before a leaf is retired its neighbour's link leads elsewhere.
        Some(unsafe { LeafRef::from_raw(prev) })
    }

    /// Under the lock of the left neighbour that is linked, or of the one that is taken out.
    pub(super) fn set_prev(self, prev: LeafRef<'_, S>) {
        // Release: pairs with the acquire in `prev`.
        self.header().prev.store(prev.as_ptr(), Ordering::Release);
    }

    /// Puts an entry at a place; there is room.
    #[inline]
    pub(super) fn insert(self, at: usize, entry: Entry<S>) {
        let count = self.count();
        self.insert_key(at, count, entry.key);
        open(self.values(), at, count, |to, from| to.store(from.load()));
        self.values()[at].store(entry.value);
        self.set_count(count + 1);
    }

    /// Takes the entry at a place out.
    #[inline]
    pub(super) fn remove(self, at: usize) {
        let count = self.count();
        self.remove_key(at, count);
        close(self.values(), at, count, |to, from| to.store(from.load()));
        self.set_count(count - 1);
    }

    /// Takes the entries at `from..to` out.
    pub(super) fn remove_run(self, from: usize, to: usize) {
        let count = self.count();
        self.copy_run(to, count, self, from);
        self.seal(from + (count - to));
    }

    /// Copies the entries at `from..to` to where another leaf, or this one, has them begin at
    /// `at`; below where they were, if it is this one. [`NodeRef::seal`] follows.
    pub(super) fn copy_run(self, from: usize, to: usize, other: LeafRef<'_, S>, at: usize) {
        for (offset, place) in (from..to).enumerate() {
            other.store_entry(at + offset, self.entry(place));
        }
    }

    /// Moves all entries up by so many places. [`NodeRef::seal`] follows.
    pub(super) fn make_way(self, places: usize) {
        for at in (0..self.count()).rev() {
            self.store_entry(at + places, self.entry(at));
        }
    }

    /// Writes an entry without regard for the hints. [`NodeRef::seal`] follows.
    #[inline]
    pub(super) fn store_entry(self, at: usize, entry: Entry<S>) {
        self.store_key(at, entry.key);
        self.values()[at].store(entry.value);
    }

    /// Notes where an entry has been inserted.
    #[inline]
    pub(super) fn note_insertion(self, at: usize) {
        let (place, run) = self.insertions();
        let run = if at == place {
            (run + 1).min(0xffff)
        } else {
            0
        };
        let noted = (at as u32 + 1) << 16 | run;
        self.header().insertions.store(noted, Ordering::Relaxed);
    }

    /// One above the place of the last insertion, and how many insertions before it followed
    /// one another upwards.
    pub(super) fn insertions(self) -> (usize, u32) {
        let noted = self.header().insertions.load(Ordering::Relaxed);
        ((noted >> 16) as usize, noted & 0xffff)
    }
}
