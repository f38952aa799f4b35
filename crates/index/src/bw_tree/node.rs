//! Base nodes with the areas for their deltas, and deltas.

use super::keys::{OwnedKey, Place, Probe, StoredKey};
use super::word::{Kind, Switch, Word};
use crate::contract::Storable;
use crate::key::KeyHead;
use crate::packed::Packed;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::{Deref, Range};
use std::ptr::{self, NonNull};
use std::slice;
use tremula_sync::atomic::{AtomicIsize, Ordering};
use tremula_sync::epoch::Guard;

/// What a delta says of its key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Insert,
    Update,
    Delete,
}

/// One change of a leaf. Immutable once others see it.
#[repr(C)]
pub(super) struct Delta<K, V, H> {
    pub(super) change: Change,
    /// Allocated by itself, not in the area of the base node.
    pub(super) on_heap: bool,
    /// Whether the base node has the same key, at `offset`.
    pub(super) overwrites: bool,
    /// Deltas from here down to the base node.
    pub(super) depth: u32,
    /// Keys of the base node that lie below this one.
    pub(super) offset: u32,
    /// Entries of the leaf from here on.
    pub(super) count: u32,
    pub(super) key: StoredKey<K, H>,
    /// The value, unless this deletes.
    pub(super) value: *mut (),
    /// The value before this; null if this inserts.
    pub(super) old: *mut (),
    /// What this was prepended to.
    pub(super) next: Word,
    pub(super) base: NonNull<Base<K, V, H>>,
    pub(super) of: PhantomData<V>,
}

impl<K, V, H> Delta<K, V, H> {
    /// The delta below; `None` if that is the base node.
    #[inline]
    pub(super) fn next(&self) -> Option<&Self> {
        // SAFETY: a chain is freed as a whole.
        (self.next.kind() == Kind::Delta).then(|| unsafe { &*self.next.address::<Self>() })
    }
}

/// An entry of a node: words that own nothing. In an inner node the value is the id of the child.
pub(super) struct Entry<K, H> {
    pub(super) key: StoredKey<K, H>,
    pub(super) value: *mut (),
}

impl<K, H> Clone for Entry<K, H> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H> Copy for Entry<K, H> {}

impl<K: Ord + Storable, H: KeyHead<K>> Entry<K, H> {
    pub(super) fn child(&self) -> usize {
        self.value.addr()
    }

    /// Copies of key and value of a leaf's entry.
    ///
    /// # Safety
    ///
    /// Neither has been freed: the caller is pinned since before they were unlinked.
    pub(super) unsafe fn copy<V: Storable>(&self) -> (K, V) {
        // SAFETY: passed on to the caller.
        unsafe {
            let key = self.key.with(K::clone);
            (key, Packed::<V>::of_word(self.value).with(V::clone))
        }
    }
}

/// The id that stands for no node.
pub(super) const NO_NODE: usize = usize::MAX;

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

/// A base node: immutable but for the claims to its area.
///
/// ```text
/// deltas … <- claimed downward | this header | heads | keys, unless heads tell them | values
/// ```
#[repr(C)]
pub(super) struct Base<K, V, H> {
    /// Places of the area that nobody has claimed; below 0 when more were asked for.
    unclaimed: AtomicIsize,
    slots: u32,
    pub(super) count: u32,
    pub(super) level: u32,
    pub(super) low: Option<StoredKey<K, H>>,
    pub(super) high: Option<StoredKey<K, H>>,
    pub(super) right: usize,
    pub(super) first_child: usize,
    of: PhantomData<V>,
}

/// The layout of a base node, and where in it the header begins.
fn layout<K, V, H: KeyHead<K>>(count: usize, slots: usize) -> (Layout, usize) {
    let words = if H::IS_KEY { 2 } else { 3 };
    let area = slots * size_of::<Delta<K, V, H>>();
    let size = area + size_of::<Base<K, V, H>>() + count * words * size_of::<u64>();
    match Layout::from_size_align(size, 8) {
        Ok(layout) => (layout, area),
        Err(_) => unreachable!("a node is small"),
    }
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

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> BaseRef<'g, K, V, H> {
    /// # Safety
    ///
    /// The base node lives for `'g`.
    #[inline]
    unsafe fn of(at: NonNull<Base<K, V, H>>) -> Self {
        Self {
            at,
            alive: PhantomData,
        }
    }

    #[inline]
    pub(super) fn as_ptr(self) -> NonNull<Base<K, V, H>> {
        self.at
    }

    pub(super) fn bytes(self) -> usize {
        layout::<K, V, H>(self.count as usize, self.slots as usize)
            .0
            .size()
    }

    pub(super) fn bytes_of_area(self) -> usize {
        self.slots as usize * size_of::<Delta<K, V, H>>()
    }

    /// How many places of the area have been claimed.
    pub(super) fn claimed(self) -> usize {
        // Relaxed: a figure.
        let unclaimed = self.unclaimed.load(Ordering::Relaxed).max(0);
        self.slots as usize - unclaimed.unsigned_abs()
    }

    pub(super) fn position(self) -> Position<K, H> {
        Position {
            level: self.level,
            low: self.low,
            high: self.high,
            right: self.right,
            first_child: self.first_child,
        }
    }

    /// Claims a place for a delta, for the caller alone.
    #[inline]
    pub(super) fn claim(self) -> Option<NonNull<Delta<K, V, H>>> {
        // Relaxed, both: each place is given out once, whatever the order; what is written there
        // is published by the word that leads to it.
        if self.unclaimed.load(Ordering::Relaxed) <= 0 {
            return None;
        }
        let place = self.unclaimed.fetch_sub(1, Ordering::Relaxed);
        if place <= 0 {
            return None;
        }
        // SAFETY: `slots` deltas have room in front of the header, and `place` is one of 1 to
        // `slots`. A base node is used by pointers to the whole allocation.
        unsafe {
            let header = self.at.cast::<Delta<K, V, H>>();
            Some(header.sub(place.unsigned_abs()))
        }
    }

    fn arrays(self) -> *const u64 {
        // SAFETY: the arrays follow the header.
        unsafe { self.at.as_ptr().add(1).cast() }
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
        self.words(if H::IS_KEY { 1 } else { 2 })
    }

    #[inline]
    pub(super) fn key(self, at: usize) -> StoredKey<K, H> {
        let word = if H::IS_KEY {
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

    /// The place of a key among these, or, as an error, where it belongs.
    #[inline]
    pub(super) fn search(
        &self,
        probe: &Probe<'_, K, H>,
        places: Range<usize>,
    ) -> Result<usize, usize> {
        let end = places.end;
        let heads = &self.heads()[places.clone()];
        let mut first = places.start + heads.partition_point(|head| *head < probe.head);
        if H::IS_KEY {
            let is_there = first < end && self.heads()[first] == probe.head;
            return if is_there { Ok(first) } else { Err(first) };
        }
        let heads = &self.heads()[first..end];
        let mut last = first + heads.partition_point(|head| *head == probe.head);
        while first < last {
            let middle = first.midpoint(last);
            // SAFETY: keys live as long as the nodes that they are in can be read.
            match unsafe { probe.compare(self.key(middle)) } {
                std::cmp::Ordering::Less => last = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => first = middle + 1,
            }
        }
        Err(first)
    }

    /// How many separators lie in front of a place: its child has this index.
    #[inline]
    pub(super) fn child_index(self, place: &Place<'_, K, H>) -> usize {
        let all = 0..self.count as usize;
        match place {
            Place::Start => 0,
            Place::At(probe) => self.search(probe, all).map_or_else(|at| at, |at| at + 1),
            Place::Before(probe) => self.search(probe, all).unwrap_or_else(|at| at),
            Place::End => all.end,
        }
    }

    /// The child with this index.
    #[inline]
    pub(super) fn child(self, index: usize) -> usize {
        match index.checked_sub(1) {
            None => self.first_child,
            Some(at) => self.values()[at].addr(),
        }
    }
}

/// Frees a base node, but nothing that it leads to.
///
/// # Safety
///
/// Nobody else has it, or uses it ever again.
unsafe fn free_base<K: Ord + Storable, V: Storable, H: KeyHead<K>>(base: NonNull<Base<K, V, H>>) {
    // SAFETY: the caller alone has it; it was allocated with this layout, at this distance.
    unsafe {
        let (count, slots) = (base.as_ref().count, base.as_ref().slots);
        let (layout, area) = layout::<K, V, H>(count as usize, slots as usize);
        base.drop_in_place();
        dealloc(base.as_ptr().cast::<u8>().sub(area), layout);
    }
}

/// A base node that is being filled. Dropping it frees it, but nothing that it leads to.
pub(super) struct Draft<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    base: NonNull<Base<K, V, H>>,
    filled: usize,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Draft<K, V, H> {
    pub(super) fn new(position: Position<K, H>, count: usize, slots: usize) -> Self {
        let (layout, area) = layout::<K, V, H>(count, slots);
        // SAFETY: a header has a size.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        let Position {
            level,
            low,
            high,
            right,
            first_child,
        } = position;
        // SAFETY: the allocation has room for the header behind the area.
        let base = unsafe {
            let base = NonNull::new_unchecked(start.add(area).cast::<Base<K, V, H>>());
            base.write(Base {
                unclaimed: AtomicIsize::new(slots.cast_signed()),
                slots: slots as u32,
                count: count as u32,
                level,
                low,
                high,
                right,
                first_child,
                of: PhantomData,
            });
            base
        };
        Self { base, filled: 0 }
    }

    /// A base node of entries.
    pub(super) fn of_entries(
        position: Position<K, H>,
        entries: &[Entry<K, H>],
        slots: usize,
    ) -> Self {
        let mut draft = Self::new(position, entries.len(), slots);
        entries.iter().for_each(|entry| draft.push(*entry));
        draft
    }

    fn count(&self) -> usize {
        // SAFETY: the header has been written.
        unsafe { self.base.as_ref().count as usize }
    }

    fn array(&self, index: usize) -> *mut u64 {
        // SAFETY: the arrays follow the header.
        unsafe {
            let arrays = self.base.as_ptr().add(1).cast::<u64>();
            arrays.add(index * self.count())
        }
    }

    #[inline]
    pub(super) fn push(&mut self, entry: Entry<K, H>) {
        let at = self.filled;
        assert!(at < self.count(), "a node has the entries that it counted");
        // SAFETY: the arrays have room for `count` words each.
        unsafe {
            self.array(0).add(at).write(entry.key.head);
            if H::IS_KEY {
                self.array(1).cast::<*mut ()>().add(at).write(entry.value);
            } else {
                let key = entry.key.word;
                self.array(1).cast::<*mut ()>().add(at).write(key);
                self.array(2).cast::<*mut ()>().add(at).write(entry.value);
            }
        }
        self.filled += 1;
    }

    /// Copies a run of entries from a node.
    #[inline]
    pub(super) fn push_run(&mut self, from: BaseRef<'_, K, V, H>, run: Range<usize>) {
        let (at, length) = (self.filled, run.len());
        assert!(
            at + length <= self.count() && run.end <= from.count as usize,
            "a node has the entries that it counted"
        );
        let arrays = if H::IS_KEY { 2 } else { 3 };
        for array in 0..arrays {
            // SAFETY: both arrays are that long, and belong to different nodes.
            unsafe {
                let source = from.arrays().add(array * from.count as usize + run.start);
                source.copy_to_nonoverlapping(self.array(array).add(at), length);
            }
        }
        self.filled += length;
    }

    /// The word that leads to it. When it has been published, [`give`](Self::give) is next.
    pub(super) fn word(&self) -> Word {
        assert!(
            self.filled == self.count(),
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

/// A place for a delta that nobody sees yet.
pub(super) struct Claim<K, V, H> {
    at: NonNull<Delta<K, V, H>>,
    on_heap: bool,
    /// The base node that it may be used on.
    pub(super) base: NonNull<Base<K, V, H>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Claim<K, V, H> {
    /// A place in the area of a base node, if there is one left.
    #[inline]
    pub(super) fn in_area(base: BaseRef<'_, K, V, H>) -> Option<Self> {
        Some(Self {
            at: base.claim()?,
            on_heap: false,
            base: base.as_ptr(),
        })
    }

    /// A place of its own.
    pub(super) fn on_heap(base: BaseRef<'_, K, V, H>) -> Self {
        let layout = Layout::new::<Delta<K, V, H>>();
        // SAFETY: a delta has a size.
        let Some(at) = NonNull::new(unsafe { alloc(layout) }.cast()) else {
            handle_alloc_error(layout)
        };
        Self {
            at,
            on_heap: true,
            base: base.as_ptr(),
        }
    }

    /// Writes the delta; nobody sees it until the word is published, with
    /// [`forget`](Self::forget) next.
    #[inline]
    pub(super) fn write(&self, mut delta: Delta<K, V, H>) -> Word {
        delta.on_heap = self.on_heap;
        // SAFETY: the place is the caller's alone.
        unsafe { self.at.write(delta) };
        Word::delta(self.at)
    }

    /// Leaves the delta to the chain that it is in now.
    #[inline]
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }
}

impl<K, V, H> Drop for Claim<K, V, H> {
    fn drop(&mut self) {
        if self.on_heap {
            // SAFETY: it came from `on_heap`, and nobody has seen it. A delta owns nothing.
            unsafe { dealloc(self.at.as_ptr().cast(), Layout::new::<Delta<K, V, H>>()) };
        }
    }
}

/// A node as it was when a word of it was read.
pub(super) struct View<'g, K, V, H> {
    pub(super) delta: Option<&'g Delta<K, V, H>>,
    pub(super) base: BaseRef<'g, K, V, H>,
}

impl<K, V, H> Clone for View<'_, K, V, H> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V, H> Copy for View<'_, K, V, H> {}

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> View<'g, K, V, H> {
    /// What a word leads to; `None` if the node has been merged away.
    ///
    /// # Safety
    ///
    /// The word was the head of a node of this tree at some time during the pin.
    #[inline]
    pub(super) unsafe fn of(word: Word, _pinned: &'g Guard) -> Option<Self> {
        let mut word = word;
        if word.kind() == Kind::Switch {
            // SAFETY: the caller's promise; the flag lives as long as any switch.
            // SeqCst: as the heads of chains.
            unsafe {
                let switch = &*word.address::<Switch>();
                let is_over = (*switch.is_over).load(Ordering::SeqCst);
                word = if is_over { switch.after } else { switch.before };
            }
        }
        // SAFETY: what a word leads to is retired after it was replaced.
        unsafe {
            match word.kind() {
                Kind::Base => Some(Self {
                    delta: None,
                    base: BaseRef::of(NonNull::new(word.address())?),
                }),
                Kind::Delta => {
                    let delta = &*word.address::<Delta<K, V, H>>();
                    Some(Self {
                        delta: Some(delta),
                        base: BaseRef::of(delta.base),
                    })
                }
                // A switch never leads to another.
                Kind::Switch | Kind::Removed => None,
            }
        }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.delta.map_or(self.base.count, |delta| delta.count) as usize
    }

    #[inline]
    pub(super) fn depth(&self) -> usize {
        self.delta.map_or(0, |delta| delta.depth as usize)
    }

    /// The deltas, the newest first.
    pub(super) fn deltas(&self) -> impl Iterator<Item = &'g Delta<K, V, H>> + use<'g, K, V, H> {
        std::iter::successors(self.delta, |delta| delta.next())
    }
}

/// Frees a chain: base node and deltas, the values that deltas replaced, and the keys that they
/// deleted; but neither the entries that are left nor the fences.
///
/// # Safety
///
/// The word leads to a base node or delta, the chain was unlinked, and nobody has it; another node
/// has the entries that were left.
pub(super) unsafe fn free_chain<K: Ord + Storable, V: Storable, H: KeyHead<K>>(word: Word) {
    // SAFETY: the caller alone has the chain. Each key that was inserted is deleted by at most one
    // delta, and each value replaced by at most one.
    unsafe {
        let mut word = word;
        while word.kind() == Kind::Delta {
            let at = word.address::<Delta<K, V, H>>();
            let (change, key, old) = ((*at).change, (*at).key, (*at).old);
            let (next, on_heap) = ((*at).next, (*at).on_heap);
            if on_heap {
                dealloc(at.cast(), Layout::new::<Delta<K, V, H>>());
            }
            if change != Change::Insert {
                drop(Packed::<V>::of_word(old).take());
            }
            if change == Change::Delete {
                key.free();
            }
            word = next;
        }
        free_base(NonNull::new_unchecked(word.address::<Base<K, V, H>>()));
    }
}

/// Frees a node with everything in it.
///
/// # Safety
///
/// The word is the head of a linked node, and nobody else has the tree, or uses it ever again.
pub(super) unsafe fn free_node<K: Ord + Storable, V: Storable, H: KeyHead<K>>(
    word: Word,
    guard: &Guard,
) {
    // SAFETY: the caller alone has it. What the newest delta on a key says is left of it, and what
    // no delta overwrites.
    unsafe {
        let Some(view) = View::<K, V, H>::of(word, guard) else {
            return;
        };
        let mut owned: Vec<OwnedKey<K, H>> = Vec::new();
        let mut own = |key: StoredKey<K, H>| owned.push(OwnedKey::of_stored(key));
        let is_leaf = view.base.level == 0;
        let free_value = |value: *mut ()| {
            if is_leaf {
                drop(Packed::<V>::of_word(value).take());
            }
        };
        [view.base.low, view.base.high]
            .into_iter()
            .flatten()
            .for_each(&mut own);
        let mut seen: Vec<StoredKey<K, H>> = Vec::new();
        let mut overwritten = vec![false; view.base.count as usize];
        for delta in view.deltas() {
            if delta.overwrites {
                overwritten[delta.offset as usize] = true;
            }
            if seen.iter().any(|key| key.is(delta.key)) {
                continue;
            }
            seen.push(delta.key);
            if delta.change != Change::Delete {
                own(delta.key);
                free_value(delta.value);
            }
        }
        for (entry, overwritten) in view.base.entries().zip(overwritten) {
            if !overwritten {
                own(entry.key);
                free_value(entry.value);
            }
        }
        free_chain::<K, V, H>(word);
    }
}
