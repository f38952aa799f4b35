//! A node: an entry, and the tower of links by which it is linked on the levels of the list.

use super::invariants::{check_locked, check_marked};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering::{Equal, Greater, Less};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use tremula_index::key::KeyHead;
use tremula_index::kit::{Packed, SearchKey, Slot, Spec, key_of_head, prefetch};
use tremula_sync::Backoff;
use tremula_sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The most levels of a list. Half of the nodes of a level are on the next one too. With more than
/// 2^24 entries the highest level becomes longer, by a node for each 2^24 of them.
pub(super) const MOST_LEVELS: usize = if cfg!(any(loom, shuttle)) { 2 } else { 24 };

/// A writer holds the entry.
pub(super) const LOCKED: u32 = 1;
/// The entry has been removed; never cleared.
pub(super) const REMOVED: u32 = 1 << 1;
/// The entry has no value yet and counts as absent: [`update`](super::SkipList) is computing one.
pub(super) const VACANT: u32 = 1 << 2;
/// The builder has not finished the tower. Only towers of more than one level have a builder.
pub(super) const BUILDING: u32 = 1 << 3;
/// The remover has marked every link of the tower, and leaves unlinking the node to the builder.
const MARKED: u32 = 1 << 4;
/// The unit of the count of keepers (invariant 5) in the rest of the state: the levels that the
/// node is linked on, those that its builder has yet to link it on, and the tasks of the list's own
/// thread that will unlink it.
const KEEPER: u32 = 1 << 5;

/// A link: the next node of its level, and whether the node that *has* the link is removed (the
/// *mark*, in the lowest bit of the address). A marked link never changes.
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

    /// The address of the node that the link points to.
    pub(super) fn address(self) -> usize {
        self.unmarked().0.addr()
    }

    /// Frees the node that the link points to.
    ///
    /// # Safety
    ///
    /// No other thread has the node or reaches it ever again.
    pub(super) unsafe fn free(self) {
        // SAFETY: the caller alone has the node.
        if let Some(node) = unsafe { self.node() } {
            // SAFETY: the caller alone has the node, and does not use it again.
            let parts = unsafe { node.take_apart() };
            drop(parts);
        }
    }

    /// The node that the link points to.
    ///
    /// # Safety
    ///
    /// The link was read from a tower of the list while the thread was pinned, and the thread stays
    /// pinned during `'g`; or no other thread has the list.
    #[inline]
    pub(super) unsafe fn node<'g>(self) -> Option<NodeRef<'g, S>> {
        NonNull::new(self.unmarked().0).map(|node| NodeRef {
            node,
            alive: PhantomData,
        })
    }
}

/// The links of a node, or those at the beginning of the levels.
#[derive(Clone, Copy)]
pub(super) struct Tower<'g, S: Spec>(NonNull<AtomicPtr<Node<S>>>, PhantomData<&'g ()>);

impl<'g, S: Spec> Tower<'g, S> {
    /// The tower at which every level begins.
    pub(super) fn base(links: &'g [AtomicPtr<Node<S>>; MOST_LEVELS]) -> Self {
        Self(NonNull::from(links).cast(), PhantomData)
    }

    #[inline]
    fn link(self, level: usize) -> &'g AtomicPtr<Node<S>> {
        // SAFETY: callers stay below the tower's height, since a node is met only on its levels.
        unsafe { self.0.add(level).as_ref() }
    }

    /// The link of a level below the tower's height.
    #[inline]
    pub(super) fn load(self, level: usize) -> Link<S> {
        // Acquire: pairs with `exchange`, which publishes the node that the link points to.
        Link(self.link(level).load(Ordering::Acquire))
    }

    /// Replaces a link if it is `from`. Returns whether it was.
    #[inline]
    pub(super) fn exchange(self, level: usize, from: Link<S>, to: Link<S>) -> bool {
        // Release: pairs with `load`, so a thread that follows the link sees a complete node.
        self.link(level)
            .compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Prefetches the nodes that the links of the next two levels below point to. A search goes
    /// there if the node on this level is too far, and so the three loads from memory overlap.
    #[inline]
    pub(super) fn prefetch_below(self, level: usize) {
        // Not a loop, because a search does this at each step and a loop of two is slower. Relaxed:
        // the nodes are not read. A mark does not change the cache line.
        if level > 0 {
            prefetch(self.link(level - 1).load(Ordering::Relaxed));
        }
        if level > 1 {
            prefetch(self.link(level - 2).load(Ordering::Relaxed));
        }
    }

    /// Sets a link of a node that is not linked yet.
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

/// The fixed part of a node. In memory the key, unless the head is the key, and the tower follow.
#[repr(C)]
pub(super) struct Node<S: Spec> {
    value: Slot<S::Value>,
    state: AtomicU32,
    height: u32,
    /// Last, next to the tower, because a search reads both.
    head: u64,
    key: PhantomData<(S::Key, S::Head)>,
}

/// A node that lives during `'g`: the thread is pinned and found the node by a link.
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

    /// The size of the node.
    pub(super) fn bytes(self) -> usize {
        Self::layout(self.height()).size()
    }

    /// A node that is not linked yet. Its links are the ends of their levels. Without a value it is
    /// vacant, and the caller holds its lock.
    pub(super) fn new(key: S::Key, value: Option<S::Value>, height: usize) -> Self {
        // First, because the code of the key may panic, and a slot does not drop its value.
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
        // SAFETY: the layout is not empty. The parts lie inside it without overlap, by the
        // computation of KEY and TOWER, and each is aligned.
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
        // SAFETY: the node lives during 'g and is only shared from its publication on.
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
        // SAFETY: the tower is at this offset, inside the allocation of the pointer.
        Tower(
            unsafe { self.node.byte_add(Self::TOWER).cast() },
            PhantomData,
        )
    }

    /// Calls `read` with the key.
    #[inline]
    pub(super) fn with_key<R>(self, read: impl FnOnce(&S::Key) -> R) -> R {
        if !S::HEAD_IS_KEY {
            // SAFETY: if the head is not the key, the key is at this offset and never changes.
            return read(unsafe { self.node.byte_add(Self::KEY).cast::<S::Key>().as_ref() });
        }
        read(&self.key_of_head())
    }

    /// The key, made from the head that determines it.
    pub(super) fn key_of_head(self) -> S::Key {
        key_of_head::<S>(self.fixed().head)
    }

    /// Compares this node's key with a search key.
    #[inline]
    pub(super) fn compare(self, probe: &SearchKey<'_, S>) -> std::cmp::Ordering {
        match self.fixed().head.cmp(&probe.head) {
            Equal if S::HEAD_IS_KEY => Equal,
            Equal => self.with_key(|key| probe.key.compare(key).reverse()),
            Less => Less,
            Greater => Greater,
        }
    }

    #[inline]
    pub(super) fn state(self) -> u32 {
        // Acquire: pairs with the release that publishes a vacant entry's value, so a thread that
        // finds the entry present sees the value. If the entry has been removed meanwhile, this
        // load was before the removal.
        self.fixed().state.load(Ordering::Acquire)
    }

    /// Whether the entry is present: it has a value and is not removed.
    #[inline]
    pub(super) fn is_present(self) -> bool {
        self.state() & (REMOVED | VACANT) == 0
    }

    /// Whether the entry has been removed. It stays removed for ever.
    pub(super) fn is_removed(self) -> bool {
        self.state() & REMOVED != 0
    }

    /// The value of an entry that was present.
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

    /// The lock of a vacant node, which the thread that made the node holds.
    pub(super) fn vacant(self) -> EntryGuard<'g, S> {
        EntryGuard { node: self }
    }

    /// Marks every link of a removed entry's node, from the highest level down, so that a node
    /// whose link on a level is not marked is on all levels below. A second thread changes nothing.
    pub(super) fn mark(self) {
        for level in (0..self.height()).rev() {
            self.tower().mark(level);
            check_marked(self, level);
        }
    }

    /// Records that every link is marked. Returns whether the caller must unlink the node. If not,
    /// the builder does, or the node has been unlinked.
    pub(super) fn finish_removing(self) -> bool {
        if self.height() == 1 {
            return true; // it has no builder
        }
        let state = &self.fixed().state;
        // Acquire: pairs with the release in `finish_building`. If the builder has ended, the
        // caller's search sees every link that the builder made.
        let mut seen = state.load(Ordering::Acquire);
        if seen & BUILDING != 0 {
            // AcqRel: pairs with the builder's last step. The thread whose step comes second sees
            // the first step and all before it. That thread unlinks the node.
            seen = state.fetch_or(MARKED, Ordering::AcqRel);
        }
        seen & BUILDING == 0 && seen >= KEEPER
    }

    /// Records that no thread will link the node any more, and that `missing` levels lack it.
    pub(super) fn finish_building(self, missing: usize) -> Finished {
        let done = BUILDING + missing as u32 * KEEPER;
        // AcqRel: pairs with `finish_removing`, and with `release` like other keepers.
        let left = self.fixed().state.fetch_sub(done, Ordering::AcqRel) - done;
        if left < KEEPER {
            // If no level was missing, the thread that unlinked the last level retires the node.
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

    /// Adds a task as a keeper of the removed node. `false` if it had none left: then it has been
    /// retired.
    pub(super) fn keep(self) -> bool {
        // Relaxed: the lock of the queue orders what the task must see.
        let state = &self.fixed().state;
        let one_more = |state| (state >= KEEPER).then_some(state + KEEPER);
        state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
    }

    /// Takes away one keeper, a level or a task. Returns whether the caller must retire the node,
    /// because it was the last.
    #[inline]
    pub(super) fn release(self) -> bool {
        if self.height() == 1 {
            return true; // only one keeper: no task is ever made for it
        }
        // AcqRel: the thread that takes away the last keeper sees what the others have unlinked.
        let seen = self.fixed().state.fetch_sub(KEEPER, Ordering::AcqRel);
        seen < 2 * KEEPER
    }

    /// The number of keepers.
    pub(super) fn keepers(self) -> usize {
        // Relaxed: a hint, unless no other thread uses the list.
        (self.fixed().state.load(Ordering::Relaxed) / KEEPER) as usize
    }

    /// Frees the node's memory and returns its key, unless the head is the key, and its value.
    ///
    /// # Safety
    ///
    /// No other thread has the node or reaches it ever again.
    pub(super) unsafe fn take_apart(self) -> (Option<S::Key>, Option<S::Value>) {
        let height = self.height();
        // Relaxed: the only thread that has the node has synchronized with all writers.
        let vacant = self.fixed().state.load(Ordering::Relaxed) & VACANT != 0;
        let value = (!vacant).then(|| self.value());
        // SAFETY: the caller alone has the node. The parts are where `new` wrote them, and none is
        // used after this. No user code runs here: `take` drops nothing.
        unsafe {
            // Decided by what `new` has written, not by whether `H::key` gives a key now.
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

/// What remains to be done for a node whose builder has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Finished {
    /// Nothing: the node is in the list, or has been retired, or its remover has yet to unlink it.
    Done,
    /// The node has been removed, and must be unlinked.
    Unlink,
    /// The node has been removed and unlinked from every level, and must be retired.
    Retire,
}

/// The lock of an entry. Dropping it unlocks.
pub(super) struct EntryGuard<'g, S: Spec> {
    pub(super) node: NodeRef<'g, S>,
}

impl<S: Spec> EntryGuard<'_, S> {
    /// Replaces the value and unlocks. Returns the old value, which the caller retires.
    pub(super) fn replace(self, value: S::Value) -> Packed<S::Value> {
        let slot = &self.node.fixed().value;
        let old = slot.load();
        slot.publish(Packed::new(value));
        self.unlock(LOCKED);
        old
    }

    /// Fills a vacant entry with its value, and unlocks.
    pub(super) fn fill(self, value: S::Value) {
        self.node.fixed().value.publish(Packed::new(value));
        self.unlock(LOCKED | VACANT);
    }

    /// Removes the entry and unlocks. The caller must then mark the node.
    pub(super) fn remove(self) {
        self.unlock(LOCKED | REMOVED);
    }

    /// Like [`remove`](Self::remove), but takes the value out of the node. The entry is present.
    pub(super) fn remove_with_value(self) -> Packed<S::Value> {
        let value = self.node.fixed().value.load();
        self.unlock(LOCKED | REMOVED | VACANT);
        value
    }

    /// Flips these bits of the state.
    fn unlock(self, flip: u32) {
        let guard = ManuallyDrop::new(self);
        check_locked(guard.node);
        // Release: pairs with the acquire of the next writer and of readers that check for
        // presence.
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
        check_locked(self.node);
        // Release: pairs with the acquire of the next writer in `lock`.
        self.node.node_state().fetch_xor(LOCKED, Ordering::Release);
    }
}
