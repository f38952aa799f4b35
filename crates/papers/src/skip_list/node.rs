//! A node: an entry, and the tower of links by which the list's levels go through it.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering::{Equal, Greater, Less};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use tremula_index::key::KeyHead;
use tremula_index::kit::{Packed, SearchKey, Slot, Spec, key_of_head, prefetch};
use tremula_sync::Backoff;
use tremula_sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The most levels a list has. One tower in two is a level higher than the rest: with more entries
/// than 2^24 the highest level becomes longer, by a step for each 2^24 of them.
pub(super) const MOST_LEVELS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 24 };

/// A writer is at the entry.
const LOCKED: u32 = 1;
/// The entry has been removed; never cleared.
const REMOVED: u32 = 1 << 1;
/// There is no value yet, and the entry counts as absent: [`update`](super::SkipList) is asking
/// for one.
const VACANT: u32 = 1 << 2;
/// The builder is still linking the tower, or has yet to begin. Only towers of more than one level
/// have a builder.
const BUILDING: u32 = 1 << 3;
/// The remover has marked every link of the tower, and leaves it to the builder to unlink the node.
const MARKED: u32 = 1 << 4;
/// The rest of the state counts what keeps the node (invariant 5): the levels that it is linked
/// on, those that its builder has yet to link it on, and the tasks of the list's own thread that
/// are to unlink it.
const KEEPER: u32 = 1 << 5;

/// What a link holds: the next node of its level, and whether the node that the link is *in* has
/// been removed (the *mark*, in the lowest bit of the address). A marked link never changes.
#[derive(Clone, Copy)]
pub(super) struct Link<S: Spec>(*mut Node<S>);

impl<S: Spec> PartialEq for Link<S> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<S: Spec> Link<S> {
    /// The end of a level.
    pub(super) const fn end() -> Self {
        Self(ptr::null_mut())
    }

    #[inline]
    pub(super) fn is_marked(self) -> bool {
        self.0.addr() & 1 != 0
    }

    fn marked(self) -> Self {
        Self(self.0.map_addr(|address| address | 1))
    }

    #[inline]
    pub(super) fn unmarked(self) -> Self {
        Self(self.0.map_addr(|address| address & !1))
    }

    /// The address of the node that the link leads to.
    pub(super) fn address(self) -> usize {
        self.unmarked().0.addr()
    }

    /// Frees the node that the link leads to.
    ///
    /// # Safety
    ///
    /// Nobody else has the node, or comes to it, ever again.
    pub(super) unsafe fn free(self) {
        // SAFETY: the caller has the node alone.
        if let Some(node) = unsafe { self.node() } {
            // SAFETY: as above.
            let parts = unsafe { node.take_apart() };
            drop(parts);
        }
    }

    /// The node that the link leads to.
    ///
    /// # Safety
    ///
    /// The link was read from a tower of the list while the thread was pinned, and stays pinned
    /// during `'g`; or nobody else has the list.
    #[inline]
    pub(super) unsafe fn node<'g>(self) -> Option<NodeRef<'g, S>> {
        NonNull::new(self.unmarked().0).map(|node| NodeRef {
            node,
            alive: PhantomData,
        })
    }
}

/// The links of a node, or those by which the levels begin.
#[derive(Clone, Copy)]
pub(super) struct Tower<'g, S: Spec>(NonNull<AtomicPtr<Node<S>>>, PhantomData<&'g ()>);

impl<'g, S: Spec> Tower<'g, S> {
    /// The tower in which every level begins.
    pub(super) fn base(links: &'g [AtomicPtr<Node<S>>; MOST_LEVELS]) -> Self {
        Self(NonNull::from(links).cast(), PhantomData)
    }

    #[inline]
    fn link(self, level: usize) -> &'g AtomicPtr<Node<S>> {
        // SAFETY: callers stay below the tower's height: a node is met on its own levels only.
        unsafe { self.0.add(level).as_ref() }
    }

    /// The link of a level below the tower's height.
    #[inline]
    pub(super) fn load(self, level: usize) -> Link<S> {
        // Acquire: pairs with `exchange`, which publishes the node that the link leads to.
        Link(self.link(level).load(Ordering::Acquire))
    }

    /// Replaces a link; whether it was `from` still.
    #[inline]
    pub(super) fn exchange(self, level: usize, from: Link<S>, to: Link<S>) -> bool {
        // Release: pairs with `load`; the node linked is complete.
        self.link(level)
            .compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Starts to bring the nodes near to which the links of the next two levels below lead: a
    /// search goes there if the node on this level is too far, and their ways from memory overlap
    /// with that one's.
    #[inline]
    pub(super) fn prefetch_below(self, level: usize) {
        // Written out: a search does this at each step, and a loop of two takes twice as long.
        // Relaxed: the nodes are not looked at. A mark does not lead to another cache line.
        if level > 0 {
            prefetch(self.link(level - 1).load(Ordering::Relaxed));
        }
        if level > 1 {
            prefetch(self.link(level - 2).load(Ordering::Relaxed));
        }
    }

    /// Sets a link of a node that is in no list yet.
    pub(super) fn set(self, level: usize, to: Link<S>) {
        // Relaxed: `exchange` publishes it with the node.
        self.link(level).store(to.0, Ordering::Relaxed);
    }

    /// Marks a link.
    pub(super) fn mark(self, level: usize) {
        let mut link = self.load(level);
        while !link.is_marked() {
            if self.exchange(level, link, link.marked()) {
                return;
            }
            link = self.load(level);
        }
    }
}

/// The fixed part of a node; behind it lie the key, unless the head is the key, and the tower.
#[repr(C)]
pub(super) struct Node<S: Spec> {
    value: Slot<S::Value>,
    state: AtomicU32,
    height: u32,
    /// Last, to be close to the tower: a search looks at these two.
    head: u64,
    key: PhantomData<(S::Key, S::Head)>,
}

/// A node that lives during `'g`: the thread is pinned, and found the node by a link.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'g, S: Spec> {
    node: NonNull<Node<S>>,
    alive: PhantomData<&'g Node<S>>,
}

impl<S: Spec> PartialEq for NodeRef<'_, S> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<'g, S: Spec> NodeRef<'g, S> {
    const KEY: usize = size_of::<Node<S>>().next_multiple_of(align_of::<S::Key>());
    const TOWER: usize = {
        let end = if S::HEAD_IS_KEY {
            size_of::<Node<S>>()
        } else {
            Self::KEY + size_of::<S::Key>()
        };
        end.next_multiple_of(align_of::<AtomicPtr<()>>())
    };

    fn layout(height: usize) -> Layout {
        let size = Self::TOWER + height * size_of::<AtomicPtr<Node<S>>>();
        let align = align_of::<Node<S>>()
            .max(align_of::<AtomicPtr<()>>())
            .max(if S::HEAD_IS_KEY {
                1
            } else {
                align_of::<S::Key>()
            });
        match Layout::from_size_align(size, align) {
            Ok(layout) => layout,
            Err(_) => unreachable!("a node of {size} bytes, aligned to {align}"),
        }
    }

    /// The bytes that the node takes.
    pub(super) fn bytes(self) -> usize {
        Self::layout(self.height()).size()
    }

    /// A node that is in no list yet, its links at the end of their levels. Without a value it is
    /// vacant, and locked by the caller.
    pub(super) fn new(key: S::Key, value: Option<S::Value>, height: usize) -> Self {
        // First: the code of the key may panic, and a slot does not drop its value.
        let head = S::Head::head(&key);
        let mut state = height as u32 * KEEPER;
        if height > 1 {
            state |= BUILDING;
        }
        let value = match value {
            Some(value) => {
                let slot = Slot::empty();
                slot.store(Packed::new(value));
                slot
            }
            None => {
                state |= VACANT | LOCKED;
                Slot::empty()
            }
        };
        let layout = Self::layout(height);
        // SAFETY: the layout is not empty. The parts lie inside it and apart, as KEY and TOWER
        // are computed, and each is aligned.
        unsafe {
            let Some(place) = NonNull::new(alloc(layout)) else {
                handle_alloc_error(layout);
            };
            let node = place.cast::<Node<S>>();
            node.write(Node {
                head,
                value,
                state: AtomicU32::new(state),
                height: height as u32,
                key: PhantomData,
            });
            if !S::HEAD_IS_KEY {
                place.add(Self::KEY).cast::<S::Key>().write(key);
            }
            let tower = place.add(Self::TOWER).cast::<AtomicPtr<Node<S>>>();
            for level in 0..height {
                tower.add(level).write(AtomicPtr::new(ptr::null_mut()));
            }
            Self {
                node,
                alive: PhantomData,
            }
        }
    }

    #[inline]
    fn fixed(self) -> &'g Node<S> {
        // SAFETY: the node lives during 'g and is shared from its publication on.
        unsafe { self.node.as_ref() }
    }

    #[inline]
    pub(super) fn link(self) -> Link<S> {
        Link(self.node.as_ptr())
    }

    #[inline]
    pub(super) fn height(self) -> usize {
        self.fixed().height as usize
    }

    #[inline]
    pub(super) fn tower(self) -> Tower<'g, S> {
        // SAFETY: the tower lies there, inside the allocation that the pointer was made from.
        Tower(
            unsafe { self.node.byte_add(Self::TOWER).cast() },
            PhantomData,
        )
    }

    /// Shows the key.
    #[inline]
    pub(super) fn with_key<R>(self, read: impl FnOnce(&S::Key) -> R) -> R {
        if !S::HEAD_IS_KEY {
            // SAFETY: without a head that is the key, the key lies here, and is never changed.
            return read(unsafe { self.node.byte_add(Self::KEY).cast::<S::Key>().as_ref() });
        }
        read(&self.key_of_head())
    }

    /// The key that the head is.
    pub(super) fn key_of_head(self) -> S::Key {
        key_of_head::<S>(self.fixed().head)
    }

    /// How this node's key compares with the one looked for.
    #[inline]
    pub(super) fn compare(self, probe: &SearchKey<'_, S>) -> std::cmp::Ordering {
        match self.fixed().head.cmp(&probe.head) {
            Equal if S::HEAD_IS_KEY => Equal,
            Equal => self.with_key(|key| key.cmp(probe.key)),
            Less => Less,
            Greater => Greater,
        }
    }

    /// Whether the entry is there: with a value, and not removed.
    #[inline]
    pub(super) fn is_present(self) -> bool {
        // Acquire: pairs with the release that publishes a vacant entry's value. Whoever is told
        // that it was removed meanwhile happened before that removal.
        self.fixed().state.load(Ordering::Acquire) & (REMOVED | VACANT) == 0
    }

    /// Whether the entry has been removed, which is for ever.
    pub(super) fn is_removed(self) -> bool {
        // Acquire: pairs with the release in `remove`.
        self.fixed().state.load(Ordering::Acquire) & REMOVED != 0
    }

    /// The value of an entry that was there.
    #[inline]
    pub(super) fn value(self) -> Packed<S::Value> {
        self.fixed().value.observe()
    }

    /// Locks the entry against other writers; `None` if it is or becomes removed.
    pub(super) fn lock(self) -> Option<EntryGuard<'g, S>> {
        let state = &self.fixed().state;
        let backoff = Backoff::new();
        loop {
            let seen = state.load(Ordering::Relaxed);
            if seen & REMOVED != 0 {
                return None;
            }
            if seen & LOCKED != 0 {
                backoff.wait();
                continue;
            }
            // Acquire: pairs with the release of the last writer of the entry.
            if state
                .compare_exchange(seen, seen | LOCKED, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                return Some(EntryGuard { node: self });
            }
        }
    }

    /// The lock of a vacant node, which whoever made it holds.
    pub(super) fn vacant(self) -> EntryGuard<'g, S> {
        EntryGuard { node: self }
    }

    /// Marks every link, from the highest level down: whose link is not marked on a level is in
    /// all the levels below. For an entry that has been removed; who comes second changes
    /// nothing.
    pub(super) fn mark(self) {
        for level in (0..self.height()).rev() {
            self.tower().mark(level);
        }
    }

    /// Says that every link is marked. Whether the caller has to unlink the node; otherwise the
    /// builder does that, or it has been unlinked.
    pub(super) fn finish_removing(self) -> bool {
        if self.height() == 1 {
            return true; // it has no builder
        }
        let state = &self.fixed().state;
        // Acquire: pairs with the release in `finish_building`. If the builder has ended, the
        // caller's search sees every link that it made.
        let mut seen = state.load(Ordering::Acquire);
        if seen & BUILDING != 0 {
            // AcqRel: of this and the builder's last step the second sees the first, and what
            // was done before it. The thread that comes second unlinks the node.
            seen = state.fetch_or(MARKED, Ordering::AcqRel);
        }
        seen & BUILDING == 0 && seen >= KEEPER
    }

    /// Says that nothing will link the node any more, on `missing` of its levels never.
    pub(super) fn finish_building(self, missing: usize) -> Finished {
        let done = BUILDING + missing as u32 * KEEPER;
        // AcqRel: as in `finish_removing`; and as in `release`.
        let left = self.fixed().state.fetch_sub(done, Ordering::AcqRel) - done;
        if left < KEEPER {
            // If no level was missing, another thread has unlinked the last one.
            if missing > 0 {
                Finished::Retire
            } else {
                Finished::Done
            }
        } else if left & MARKED != 0 {
            Finished::Unlink
        } else {
            Finished::Done
        }
    }

    /// Has a task keep the removed node; `false` if nothing keeps it any more: it has been retired.
    pub(super) fn keep(self) -> bool {
        // Relaxed: what the task is to see is ordered by the lock of its queue.
        let state = &self.fixed().state;
        let one_more = |state| (state >= KEEPER).then_some(state + KEEPER);
        state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
    }

    /// Says that a level, or a task, keeps the node no more. Whether that was the last: then the
    /// caller retires the node.
    #[inline]
    pub(super) fn release(self) -> bool {
        if self.height() == 1 {
            return true; // its only level: no task is ever made for it
        }
        // AcqRel: the thread that comes last, and retires the node, has seen all that the others
        // unlinked.
        let seen = self.fixed().state.fetch_sub(KEEPER, Ordering::AcqRel);
        seen < 2 * KEEPER
    }

    /// How many levels and tasks keep the node.
    pub(super) fn keepers(self) -> usize {
        // Relaxed: a hint, but where the list is quiescent.
        (self.fixed().state.load(Ordering::Relaxed) / KEEPER) as usize
    }

    /// Takes the node apart: its memory is freed, key and value are handed over. There is no key
    /// where the head is the key.
    ///
    /// # Safety
    ///
    /// Nobody else has the node, or comes to it, ever again.
    pub(super) unsafe fn take_apart(self) -> (Option<S::Key>, Option<S::Value>) {
        let height = self.height();
        // Relaxed: whoever has the node alone has synchronized with all that wrote.
        let vacant = self.fixed().state.load(Ordering::Relaxed) & VACANT != 0;
        let value = (!vacant).then(|| self.value());
        // SAFETY: the caller alone has the node; the parts lie where `new` wrote them, and none is
        // used behind this. User code runs only behind it: `take` gives the value, and drops
        // nothing.
        unsafe {
            // What `new` has written, it alone decides: not whether `H::key` gives a key now.
            let key =
                (!S::HEAD_IS_KEY).then(|| self.node.byte_add(Self::KEY).cast::<S::Key>().read());
            for level in 0..height {
                self.tower().0.add(level).drop_in_place();
            }
            self.node.drop_in_place();
            dealloc(self.node.as_ptr().cast(), Self::layout(height));
            (key, value.map(|value| value.take()))
        }
    }
}

/// What is left to do for a node whose builder has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Finished {
    /// Nothing: it is in the list, or has been retired, or its remover has yet to unlink it.
    Done,
    /// It has been removed, and is to be unlinked.
    Unlink,
    /// It has been removed, and unlinked from every level that it was linked on.
    Retire,
}

/// The lock of an entry. Dropping it unlocks.
pub(super) struct EntryGuard<'g, S: Spec> {
    pub(super) node: NodeRef<'g, S>,
}

impl<S: Spec> EntryGuard<'_, S> {
    /// Replaces the value and unlocks; returns the old one, which the caller retires.
    pub(super) fn replace(self, value: S::Value) -> Packed<S::Value> {
        let slot = &self.node.fixed().value;
        let old = slot.load();
        slot.publish(Packed::new(value));
        self.unlock(LOCKED);
        old
    }

    /// Gives a vacant entry its value, and unlocks.
    pub(super) fn fill(self, value: S::Value) {
        self.node.fixed().value.publish(Packed::new(value));
        self.unlock(LOCKED | VACANT);
    }

    /// Removes the entry and unlocks. The caller marks it next.
    pub(super) fn remove(self) {
        self.unlock(LOCKED | REMOVED);
    }

    /// The same for an entry that is there; its value leaves the node, and belongs to the caller.
    pub(super) fn remove_with_value(self) -> Packed<S::Value> {
        let value = self.node.fixed().value.load();
        self.unlock(LOCKED | REMOVED | VACANT);
        value
    }

    /// Flips these bits of the state.
    fn unlock(self, flip: u32) {
        let guard = ManuallyDrop::new(self);
        // Release: pairs with the acquire of the next writer, and of readers that look whether
        // the entry is there.
        guard.node.node_state().fetch_xor(flip, Ordering::Release);
    }
}

impl<S: Spec> NodeRef<'_, S> {
    fn node_state(&self) -> &AtomicU32 {
        // SAFETY: the node lives.
        unsafe { &self.node.as_ref().state }
    }
}

impl<S: Spec> Drop for EntryGuard<'_, S> {
    fn drop(&mut self) {
        // Release: as in `unlock`.
        self.node.node_state().fetch_xor(LOCKED, Ordering::Release);
    }
}
