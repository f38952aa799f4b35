//! Nodes: their layout, and the operations on them.

use super::invariants::check_before_change;
use super::order::{MOST, Order};
use crate::kit::{self, close, open, prefetch};
use std::array;
use std::ptr::{self, NonNull};
use tremula_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version, VersionGuard, VersionLock};

/// The word of a leaf's entry: a value, a record or a layer.
pub(super) type Word = *mut ();

/// The number in unused positions of an inner node's separators. No search counts it.
const UNUSED: u64 = u64::MAX;

/// A node of a layer: a leaf or an inner node. The root of a layer may turn from one into the
/// other, and stays at its address.
///
/// All fields but `low` are atomic. A leaf is written under `lock`; changes that lookups must see
/// as a whole are made under `version`, too. An inner node is written under both. Accesses are
/// relaxed, because these locks order them, except where a writer publishes an entry of a leaf
/// without changing `version`.
#[repr(C, align(64))]
pub(super) struct Node<const W: usize> {
    /// Locked by a thread that moves entries, or changes which slices the node is responsible for.
    /// Lookups validate it.
    version: VersionLock,
    /// 0 for a leaf; the height above the leaves for an inner node.
    level: AtomicU64,
    /// A leaf's [`Order`]; an inner node's count of separators.
    order: AtomicU64,
    /// Locked by a thread that writes anything. Scans validate it.
    lock: VersionLock,
    /// A leaf's right neighbour; an inner node's first child.
    link: AtomicPtr<Node<W>>,
    /// A leaf's left neighbour. Changed under the lock of that neighbour.
    prev: AtomicPtr<Node<W>>,
    /// The least slice that a leaf is responsible for. It never changes.
    low: u64,
    /// In a leaf, the slices, in any order; in an inner node, the separators, ascending.
    slices: [AtomicU64; W],
    /// In a leaf, the words of the entries; in an inner node, all children but the first.
    words: [AtomicPtr<()>; W],
}

impl<const W: usize> Node<W> {
    /// Rejects widths with which a node could not be split, or a permutation could not order a
    /// leaf.
    const IS_POSSIBLE: () = assert!(
        3 <= W && W <= MOST,
        "a node of a Masstree has 3 to 15 entries"
    );

    /// An empty leaf.
    pub(super) fn new(low: u64) -> Self {
        let () = Self::IS_POSSIBLE;
        Self {
            version: VersionLock::new(),
            level: AtomicU64::new(0),
            order: AtomicU64::new(Order::first(0).word()),
            lock: VersionLock::new(),
            link: AtomicPtr::new(ptr::null_mut()),
            prev: AtomicPtr::new(ptr::null_mut()),
            low,
            slices: array::from_fn(|_| AtomicU64::new(UNUSED)),
            words: array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    #[inline]
    pub(super) fn version(&self) -> &VersionLock {
        &self.version
    }

    #[inline]
    pub(super) fn lock(&self) -> &VersionLock {
        &self.lock
    }

    #[inline]
    pub(super) fn level(&self) -> u64 {
        self.level.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn low(&self) -> u64 {
        self.low
    }

    /// Locks the node, if its version has not changed.
    pub(super) fn lock_at(&self, version: Version) -> Result<VersionGuard<'_>, Restart> {
        let lock = self.lock.try_lock()?;
        match self.version.validate(version) {
            Ok(()) => Ok(lock),
            Err(restart) => {
                lock.unchanged();
                Err(restart)
            }
        }
    }

    /// Locks `version`, for a change that lookups must see as a whole. The caller holds the lock.
    pub(super) fn change(&self) -> VersionGuard<'_> {
        check_before_change(self);
        match self.version.lock() {
            Ok(change) => change,
            Err(Restart) => unreachable!("a node whose lock is held is linked"),
        }
    }

    // Leaves.

    #[inline]
    pub(super) fn order(&self) -> Order {
        // Acquire: pairs with the release in `set_order`. This thread sees what the live slots
        // hold.
        Order::of_word(self.order.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn set_order(&self, order: Order) {
        // Release: pairs with the acquire in `order`.
        self.order.store(order.word(), Ordering::Release);
    }

    #[inline]
    pub(super) fn slice(&self, at: usize) -> u64 {
        self.slices[at % W].load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn word(&self, slot: usize) -> Word {
        // Acquire: pairs with the release in `publish_word`. This thread sees what the word points
        // to.
        self.words[slot % W].load(Ordering::Acquire)
    }

    /// Replaces the word of an entry, in one step for every reader.
    #[inline]
    pub(super) fn publish_word(&self, slot: usize, word: Word) {
        // Release: pairs with the acquire in `word`.
        self.words[slot % W].store(word, Ordering::Release);
    }

    /// The live slot with this slice.
    #[inline]
    pub(super) fn find(&self, order: Order, slice: u64) -> Option<usize> {
        let mut equal = 0_u32;
        for (slot, other) in self.slices.iter().enumerate() {
            equal |= u32::from(other.load(Ordering::Relaxed) == slice) << slot;
        }
        // A free slot may still have the slice, if the slice has been inserted again in another
        // slot.
        while equal != 0 {
            let slot = equal.trailing_zeros() as usize;
            if order.has(slot) {
                return Some(slot);
            }
            equal &= equal - 1;
        }
        None
    }

    /// The number of entries with smaller slices.
    #[inline]
    pub(super) fn rank(&self, order: Order, slice: u64) -> usize {
        // An append needs no search.
        let count = order.count();
        if count > 0 && self.slice(order.slot(count - 1)) < slice {
            return count;
        }
        let mut rank = 0;
        while rank < count && self.slice(order.slot(rank)) < slice {
            rank += 1;
        }
        rank
    }

    /// The slices and words of a leaf, in order.
    #[inline]
    pub(super) fn entries(&self, order: Order) -> impl DoubleEndedIterator<Item = (u64, Word)> {
        (0..order.count()).map(move |rank| {
            let slot = order.slot(rank);
            (self.slice(slot), self.word(slot))
        })
    }

    /// Adds an entry to a leaf that is locked and not full. Readers see the whole entry with the
    /// last store.
    #[inline]
    pub(super) fn insert(&self, order: Order, rank: usize, slice: u64, word: Word) {
        let slot = order.slot(order.count());
        self.slices[slot % W].store(slice, Ordering::Relaxed);
        self.words[slot % W].store(word, Ordering::Relaxed);
        self.set_order(order.inserted(rank));
    }

    /// The right neighbour of a leaf.
    #[inline]
    pub(super) fn next(&self) -> Option<NonNull<Node<W>>> {
        NonNull::new(self.link.load(Ordering::Relaxed))
    }

    pub(super) fn set_next(&self, next: Option<NonNull<Node<W>>>) {
        let next = next.map_or(ptr::null_mut(), NonNull::as_ptr);
        self.link.store(next, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn prev(&self) -> Option<NonNull<Node<W>>> {
        // Acquire: pairs with the release in `set_prev`, because the neighbour may be a new node.
        NonNull::new(self.prev.load(Ordering::Acquire))
    }

    pub(super) fn set_prev(&self, prev: Option<NonNull<Node<W>>>) {
        let prev = prev.map_or(ptr::null_mut(), NonNull::as_ptr);
        // Release: pairs with the acquire in `prev`.
        self.prev.store(prev, Ordering::Release);
    }

    // Inner nodes.

    /// The number of separators of an inner node. Before a reader has validated it, it may be any
    /// number up to the width.
    #[inline]
    pub(super) fn separators(&self) -> usize {
        (self.order.load(Ordering::Relaxed) as usize).min(W)
    }

    /// The index of the child that is responsible for a slice.
    #[inline]
    pub(super) fn child_at(&self, slice: u64) -> usize {
        let at_or_below: usize = self
            .slices
            .iter()
            .map(|separator| usize::from(separator.load(Ordering::Relaxed) <= slice))
            .sum();
        if slice == UNUSED {
            return self.separators();
        }
        at_or_below
    }

    /// A child of an inner node. A reader without the lock has yet to validate it.
    #[inline]
    pub(super) fn child(&self, at: usize) -> Option<NonNull<Node<W>>> {
        NonNull::new(match at.checked_sub(1) {
            None => self.link.load(Ordering::Relaxed),
            Some(behind) => self.words[behind % W].load(Ordering::Relaxed).cast(),
        })
    }

    fn set_child(&self, at: usize, child: Option<NonNull<Node<W>>>) {
        let child = child.map_or(ptr::null_mut(), NonNull::as_ptr);
        match at.checked_sub(1) {
            None => self.link.store(child, Ordering::Relaxed),
            Some(behind) => self.words[behind].store(child.cast(), Ordering::Relaxed),
        }
    }

    /// The separators and children of an inner node whose lock the caller holds.
    pub(super) fn branches(&self) -> (Vec<u64>, Vec<Option<NonNull<Node<W>>>>) {
        let count = self.separators();
        (
            (0..count).map(|at| self.slice(at)).collect(),
            (0..=count).map(|at| self.child(at)).collect(),
        )
    }

    /// Makes this an inner node of these separators and children. The caller holds the node's
    /// `version`, or no other thread has the node.
    pub(super) fn set_branches(
        &self,
        level: u64,
        separators: &[u64],
        children: &[Option<NonNull<Node<W>>>],
    ) {
        debug_assert!(children.len() == separators.len() + 1 && separators.len() <= W);
        self.level.store(level, Ordering::Relaxed);
        for (at, slice) in self.slices.iter().enumerate() {
            let separator = separators.get(at).copied().unwrap_or(UNUSED);
            slice.store(separator, Ordering::Relaxed);
        }
        for (at, child) in children.iter().enumerate() {
            self.set_child(at, *child);
        }
        self.order.store(separators.len() as u64, Ordering::Relaxed);
    }

    /// Makes this a leaf of these entries, without neighbours. The caller holds the node's
    /// `version`, or no other thread has the node.
    pub(super) fn set_entries(&self, entries: impl IntoIterator<Item = (u64, Word)>) {
        self.level.store(0, Ordering::Relaxed);
        self.set_next(None);
        self.set_prev(None);
        let mut order = Order::first(0);
        for (slice, word) in entries {
            self.insert(order, order.count(), slice, word);
            order = self.order();
        }
        self.set_order(order);
    }

    /// Inserts a separator, and the child to its right, into an inner node that is not full. The
    /// caller holds the node's `version`.
    pub(super) fn insert_child(&self, at: usize, separator: u64, child: NodeRef<'_, W>) {
        let count = self.separators();
        open(&self.slices, at, count, copy_slice);
        open(&self.words, at, count, copy_word);
        self.slices[at].store(separator, Ordering::Relaxed);
        self.words[at].store(child.pointer().as_ptr().cast(), Ordering::Relaxed);
        self.order.store(count as u64 + 1, Ordering::Relaxed);
    }

    /// Removes a separator, and the child to its right. The caller holds the node's `version`.
    pub(super) fn remove_child(&self, at: usize) {
        let count = self.separators();
        close(&self.slices, at, count, copy_slice);
        close(&self.words, at, count, copy_word);
        self.slices[count - 1].store(UNUSED, Ordering::Relaxed);
        self.order.store(count as u64 - 1, Ordering::Relaxed);
    }

    /// Replaces a separator by another that keeps the order. The caller holds the node's `version`.
    pub(super) fn set_separator(&self, at: usize, separator: u64) {
        self.slices[at].store(separator, Ordering::Relaxed);
    }

    // Both kinds.

    /// The number of entries or separators. A reader without the lock has yet to validate it.
    pub(super) fn count(&self) -> usize {
        if self.level() == 0 {
            self.order().count()
        } else {
            self.separators()
        }
    }
}

fn copy_slice(to: &AtomicU64, from: &AtomicU64) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}

fn copy_word(to: &AtomicPtr<()>, from: &AtomicPtr<()>) {
    to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Whether a node with `count` entries or separators is to be merged with a neighbour.
pub(super) const fn is_underfull(count: usize, width: usize) -> bool {
    count == 0 || 4 * count < width
}

/// A node that stays allocated for `'g`.
pub(super) type NodeRef<'g, const W: usize> = kit::NodeRef<'g, Node<W>>;

impl<const W: usize> NodeRef<'_, W> {
    /// A new, empty leaf, which no other thread has yet.
    pub(super) fn new(low: u64) -> Self {
        Self::leak(Box::new(Node::new(low)))
    }

    /// Prefetches all cache lines of the node at once.
    #[inline]
    pub(super) fn prefetch(self) {
        let start: *const u8 = self.pointer().as_ptr().cast();
        for line in 0..size_of::<Node<W>>().div_ceil(64) {
            prefetch(start.wrapping_add(64 * line));
        }
    }

    /// Frees the node, but not what it points to.
    ///
    /// # Safety
    ///
    /// It came from [`new`](Self::new), no thread has it any more, and it is freed once.
    pub(super) unsafe fn free(self) {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(self.pointer().as_ptr()) });
    }

    /// Frees the node once no thread that is pinned now can be looking at it.
    ///
    /// # Safety
    ///
    /// As for [`free`](Self::free), except that threads that are pinned now may still have it. It
    /// has been unlinked.
    pub(super) unsafe fn retire(self, guard: &Guard<'_>) {
        let pointer = self.pointer();
        // SAFETY: each thread that could have reached the node has unpinned when this runs. Any
        // thread may free a node, at any time.
        unsafe { guard.defer_unchecked(move || NodeRef::from_raw(pointer).free()) };
    }
}
