//! The nodes of contents: leaves and inner nodes in one layout.

use super::invariants::check_made;
#[cfg(test)]
use super::tests;
use super::word::Word;
use crate::key::KeyHead;
use crate::kit::{self, SearchKey, Spec, key_of_head, prefetch};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::{self, NonNull};
use tremula_sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// The most entries of a leaf. An update copies a leaf: half a kilobyte at most if an entry
/// consists of a head and a value.
const MOST_OF_LEAF: usize = if cfg!(any(loom, shuttle)) { 4 } else { 32 };

/// The most children of an inner node. An update copies one inner node of each level, so larger
/// nodes on fewer levels cost it the same, and lookups and the allocator prefer fewer levels. A
/// node takes a kilobyte at most if heads are keys.
const MOST_OF_INNER: usize = if cfg!(any(loom, shuttle)) { 4 } else { 56 };

/// The most entries of a node of this level.
#[inline]
pub(super) const fn most(level: u16) -> usize {
    if level == 0 {
        MOST_OF_LEAF
    } else {
        MOST_OF_INNER
    }
}

/// A removal merges a node of this level with a sibling if it leaves fewer entries than this.
#[inline]
pub(super) const fn fewest(level: u16) -> usize {
    most(level) / 4
}

/// The cache lines of a node that are prefetched: those of a leaf of usual length.
const LINES: usize = 6;

/// The bytes of a cache line.
const LINE: usize = 64;

/// A node with more counts than this ends the process. Only snapshots that are cloned and leaked
/// can add that many. The other half of the range leaves space for threads that add a count at the
/// same time.
const MOST_COUNTS: usize = isize::MAX as usize;

/// The `dead` of a node in which nothing is dead.
const NOTHING_DEAD: u32 = 0;
/// The key of the entry at `dead >> 2` is released with the node.
const DEAD_KEY: u32 = 1;
/// The value of that entry is released with the node.
const DEAD_VALUE: u32 = 2;

/// The fixed part of a node. Three arrays of length `len` follow it in the same allocation: the
/// heads of the keys, ascending; the keys, unless heads are keys; and for each key a value in a
/// leaf, or in an inner node the child with the keys from that one on.
///
/// Only the first three fields change once other threads can see the node.
#[repr(C, align(8))]
pub(in crate::lfca_tree) struct Node<S: Spec> {
    /// The number of parents, base nodes and snapshots that lead to it.
    count: AtomicUsize,
    /// The next node in a list of the nodes that an edit made, or of those that it replaced.
    next: AtomicPtr<Node<S>>,
    /// What is released with the node if the node is freed alone.
    dead: AtomicU32,
    len: u16,
    /// 0 for a leaf, otherwise one more than the level of the children.
    level: u16,
    entry: PhantomData<(S::Key, S::Value)>,
}

/// A node that lives during `'g`, because of a count or of a pin.
pub(in crate::lfca_tree) type NodeRef<'g, S> = kit::NodeRef<'g, Node<S>>;

/// An entry of a node, as words. It owns nothing.
pub(super) struct Entry<S: Spec> {
    pub(super) head: u64,
    pub(super) key: Word<S::Key>,
    pub(super) word: *mut (),
    entry: PhantomData<(S::Key, S::Value)>,
}

impl<S: Spec> Entry<S> {
    pub(super) fn of_value(head: u64, key: Word<S::Key>, value: Word<S::Value>) -> Self {
        Self {
            head,
            key,
            word: value.word(),
            entry: PhantomData,
        }
    }

    /// The entry of a child, under this key.
    pub(super) fn of_child(head: u64, key: Word<S::Key>, child: NodeRef<'_, S>) -> Self {
        Self {
            head,
            key,
            word: child.pointer().as_ptr().cast(),
            entry: PhantomData,
        }
    }
}

/// A part of a new node.
pub(super) enum Part<'a, 'g, S: Spec> {
    /// Entries of another node of the same level.
    Run(NodeRef<'g, S>, Range<usize>),
    /// A new entry.
    One(&'a Entry<S>),
}

impl<S: Spec> Part<'_, '_, S> {
    pub(super) fn len(&self) -> usize {
        match self {
            Part::Run(_, range) => range.len(),
            Part::One(_) => 1,
        }
    }
}

impl<'g, S: Spec> NodeRef<'g, S> {
    const ARRAYS: usize = size_of::<Node<S>>();
    const COLUMNS: usize = if S::HEAD_IS_KEY { 2 } else { 3 };

    fn layout(len: usize) -> Layout {
        let bytes = Self::ARRAYS + len * Self::COLUMNS * size_of::<u64>();
        match Layout::from_size_align(bytes, align_of::<Node<S>>()) {
            Ok(layout) => layout,
            Err(_) => unreachable!("a node is no larger than a few pages"),
        }
    }

    /// Prefetches the node, so that its cache lines are not loaded one after the other.
    #[inline]
    pub(super) fn prefetch(self) {
        let first = self.pointer().as_ptr().cast::<u8>();
        for line in 0..LINES {
            prefetch(first.wrapping_add(line * LINE));
        }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.get().len.into()
    }

    #[inline]
    pub(super) fn level(self) -> u16 {
        self.get().level
    }

    pub(in crate::lfca_tree) fn bytes(self) -> usize {
        Self::layout(self.len()).size()
    }

    /// The array with this number.
    #[inline]
    fn column(self, column: usize) -> NonNull<u64> {
        // SAFETY: the arrays follow the fixed part in the same allocation.
        unsafe {
            self.pointer()
                .byte_add(Self::ARRAYS)
                .cast::<u64>()
                .add(column * self.len())
        }
    }

    #[inline]
    pub(super) fn heads(self) -> &'g [u64] {
        // SAFETY: `len` heads lie there, and no thread writes them during `'g`: a node is filled
        // before there is a reference to its heads.
        unsafe { std::slice::from_raw_parts(self.column(0).as_ptr(), self.len()) }
    }

    #[inline]
    pub(super) fn head(self, at: usize) -> u64 {
        self.heads()[at]
    }

    #[inline]
    pub(super) fn key_word(self, at: usize) -> Word<S::Key> {
        debug_assert!(at < self.len());
        if S::HEAD_IS_KEY {
            return Word::NONE;
        }
        // SAFETY: as in `heads`; this array holds words.
        Word::of(unsafe { self.column(1).cast::<*mut ()>().add(at).read() })
    }

    #[inline]
    fn word(self, at: usize) -> *mut () {
        assert!(at < self.len());
        // SAFETY: as in `heads`; this array holds words.
        unsafe {
            self.column(Self::COLUMNS - 1)
                .cast::<*mut ()>()
                .add(at)
                .read()
        }
    }

    /// The value at an index of a leaf.
    #[inline]
    pub(super) fn value(self, at: usize) -> Word<S::Value> {
        debug_assert_eq!(self.level(), 0);
        Word::of(self.word(at))
    }

    /// The child at an index of an inner node.
    #[inline]
    pub(super) fn child(self, at: usize) -> Self {
        debug_assert_ne!(self.level(), 0);
        match NonNull::new(self.word(at).cast()) {
            // SAFETY: an inner node has counts of its children, and lives during `'g`.
            Some(node) => unsafe { Self::from_raw(node) },
            None => unreachable!("an inner node's entries have children"),
        }
    }

    /// Calls `read` with a key.
    #[inline]
    pub(super) fn with_key<R>(self, at: usize, read: impl FnOnce(&S::Key) -> R) -> R {
        if !S::HEAD_IS_KEY {
            // SAFETY: the node lives, and has counts of its keys.
            return unsafe { self.key_word(at).with(read) };
        }
        read(&key_of_head::<S>(self.head(at)))
    }

    /// The number of keys below the search key.
    #[inline]
    pub(super) fn below(self, probe: &SearchKey<'_, S>) -> usize {
        let heads = self.heads();
        let start = heads.partition_point(|head| *head < probe.head);
        if heads.get(start) != Some(&probe.head) || S::Head::is_only_of_one(probe.head) {
            return start;
        }
        self.partition_equal(start, probe, |key| probe.key.compare(key).is_gt())
    }

    /// The number of keys at or below the search key.
    #[inline]
    pub(super) fn through(self, probe: &SearchKey<'_, S>) -> usize {
        let heads = self.heads();
        if S::HEAD_IS_KEY {
            return heads.partition_point(|head| *head <= probe.head);
        }
        let start = heads.partition_point(|head| *head < probe.head);
        if heads.get(start) != Some(&probe.head) {
            return start;
        }
        if S::Head::is_only_of_one(probe.head) {
            return start + 1;
        }
        self.partition_equal(start, probe, |key| probe.key.compare(key).is_ge())
    }

    /// The index behind the small keys, among the keys from `start` on that have the head of the
    /// search key.
    fn partition_equal(
        self,
        start: usize,
        probe: &SearchKey<'_, S>,
        is_small: impl Fn(&S::Key) -> bool,
    ) -> usize {
        let equal = self.heads()[start..].partition_point(|head| *head == probe.head);
        let (mut low, mut high) = (start, start + equal);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.with_key(middle, &is_small) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The child that is responsible for a key.
    #[inline]
    pub(super) fn child_for(self, probe: &SearchKey<'_, S>) -> usize {
        self.through(probe).saturating_sub(1)
    }

    /// Whether the key at an index is the search key.
    #[inline]
    pub(super) fn holds(self, at: usize, probe: &SearchKey<'_, S>) -> bool {
        at < self.len()
            && self.head(at) == probe.head
            && (S::Head::is_only_of_one(probe.head)
                || self.with_key(at, |key| probe.key.compare(key).is_eq()))
    }

    /// Whether the node has one count only.
    #[inline]
    pub(super) fn is_exclusive(self) -> bool {
        // Acquire: pairs with the decrement in `release`: another thread that has released its
        // count read the node before this thread moves what is in it.
        self.get().count.load(Ordering::Acquire) == 1
    }

    /// Adds a count.
    #[inline]
    pub(in crate::lfca_tree) fn share(self) {
        // Relaxed: the caller's count keeps the node alive, and the increment orders nothing.
        let counts = self.get().count.fetch_add(1, Ordering::Relaxed);
        if counts > MOST_COUNTS {
            // `Arc` aborts too: a count that wraps to 0 would free what others still have.
            std::process::abort();
        }
    }

    /// Pretends that the node has this many counts.
    #[cfg(test)]
    pub(super) fn pretend_counts(self, counts: usize) {
        self.get().count.store(counts, Ordering::Relaxed);
    }

    /// Adds a count to the key and the child or value of an entry.
    #[inline]
    pub(super) fn share_entry(self, at: usize) {
        // SAFETY: the node lives, and has a count of the key.
        unsafe { self.key_word(at).share() };
        if self.level() == 0 {
            // SAFETY: the node lives, and has a count of the value.
            unsafe { self.value(at).share() };
        } else {
            self.child(at).share();
        }
    }

    /// A node whose arrays the caller has to fill. It has one count, which is the caller's.
    #[inline]
    fn allocate(level: u16, len: usize) -> Self {
        assert!(len > 0 && len <= usize::from(u16::MAX));
        #[cfg(test)]
        tests::LIVE.set(tests::LIVE.get() + 1);
        let layout = Self::layout(len);
        // SAFETY: the size of the layout is not 0, and the fixed part is written before use.
        unsafe {
            let Some(place) = NonNull::new(alloc(layout)) else {
                handle_alloc_error(layout);
            };
            let node = place.cast::<Node<S>>();
            node.write(Node {
                count: AtomicUsize::new(1),
                next: AtomicPtr::new(ptr::null_mut()),
                dead: AtomicU32::new(NOTHING_DEAD),
                len: len as u16,
                level,
                entry: PhantomData,
            });
            Self::from_raw(node)
        }
    }

    /// Writes an entry into a new node.
    ///
    /// # Safety
    ///
    /// `at` is below the length of the node, and no thread has read the node.
    #[inline]
    unsafe fn fill(self, at: usize, entry: &Entry<S>) {
        // SAFETY: the caller says that `at` lies in the arrays.
        unsafe {
            self.column(0).add(at).write(entry.head);
            if !S::HEAD_IS_KEY {
                let keys = self.column(1).cast::<*mut ()>();
                keys.add(at).write(entry.key.word());
            }
            let words = self.column(Self::COLUMNS - 1).cast::<*mut ()>();
            words.add(at).write(entry.word);
        }
    }

    /// A copy of this node with another entry at an index. It equals what [`build`](Self::build)
    /// makes, but copies all arrays at once. Most new nodes are made so.
    #[inline]
    pub(super) fn with_entry(self, at: usize, entry: &Entry<S>) -> Self {
        let len = self.len();
        assert!(at < len);
        let node = Self::allocate(self.level(), len);
        // SAFETY: the arrays of both nodes have the same length and lie one behind the other, and
        // `at` lies in them. No other thread has the new node.
        unsafe {
            self.column(0)
                .copy_to_nonoverlapping(node.column(0), Self::COLUMNS * len);
            node.fill(at, entry);
        }
        check_made(node);
        node
    }

    /// A node of the entries `range` of these parts. It has one count, which is the caller's. The
    /// counts of keys, values and children stay as they are: the caller adds or moves them.
    pub(super) fn build(level: u16, parts: &[Part<'_, 'g, S>], range: Range<usize>) -> Self {
        let len = range.len();
        let node = Self::allocate(level, len);
        let (mut passed, mut filled) = (0, 0);
        for part in parts {
            let begin = range.start.max(passed) - passed;
            let end = range.end.clamp(passed, passed + part.len()) - passed;
            passed += part.len();
            if begin >= end {
                continue;
            }
            match part {
                Part::Run(source, run) => {
                    let from = run.start + begin;
                    assert!(run.start + end <= source.len());
                    for column in 0..Self::COLUMNS {
                        // SAFETY: the assertion above keeps the run in the source, and the parts of
                        // `range` add up to `len`. No other thread has the new node.
                        unsafe {
                            source.column(column).add(from).copy_to_nonoverlapping(
                                node.column(column).add(filled),
                                end - begin,
                            );
                        }
                    }
                }
                // SAFETY: as for a run.
                Part::One(entry) => unsafe { node.fill(filled, entry) },
            }
            filled += end - begin;
        }
        assert_eq!(filled, len);
        check_made(node);
        node
    }

    /// Releases a count. With the last one it frees the node, and releases its keys and its values
    /// or children.
    ///
    /// # Safety
    ///
    /// The caller has a count, which ends here. A pinned thread can read the node only if there is
    /// another count.
    pub(in crate::lfca_tree) unsafe fn release(self) {
        // AcqRel: pairs with itself: the thread that releases the last count frees the node after
        // all that other threads did before they released theirs.
        if self.get().count.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let leaf = self.level() == 0;
        for at in 0..self.len() {
            // SAFETY: the node has a count of each, which ends here; no other thread has the node.
            unsafe {
                self.key_word(at).release();
                if leaf {
                    self.value(at).release();
                } else {
                    self.child(at).release();
                }
            }
        }
        // SAFETY: no other thread has the node.
        unsafe { self.deallocate() };
    }

    /// Frees the memory.
    ///
    /// # Safety
    ///
    /// No thread uses the node any more.
    unsafe fn deallocate(self) {
        #[cfg(test)]
        tests::LIVE.set(tests::LIVE.get() - 1);
        let layout = Self::layout(self.len());
        // SAFETY: it was allocated with this layout, and the caller says that no thread uses it.
        unsafe {
            self.pointer().drop_in_place();
            dealloc(self.pointer().as_ptr().cast(), layout);
        }
    }
}

/// Nodes to be freed alone: their counts of keys, values and children have moved to other nodes,
/// except for what is dead.
///
/// The list uses the `next` fields of the nodes. Dropping it frees nothing.
#[derive(Clone, Copy)]
pub(in crate::lfca_tree) struct NodeList<S: Spec>(*mut Node<S>);

impl<S: Spec> NodeList<S> {
    pub(in crate::lfca_tree) const fn new() -> Self {
        Self(ptr::null_mut())
    }

    /// Adds a node in which nothing is dead.
    #[inline]
    pub(super) fn push(&mut self, node: NodeRef<'_, S>) {
        // Relaxed: the thread that frees the list has synchronized with this one, through the
        // epoch if it is another thread.
        node.get().next.store(self.0, Ordering::Relaxed);
        self.0 = node.pointer().as_ptr();
    }

    /// Adds a node. If `key` or `value`, the key or the value of the entry at `at` is dead.
    #[inline]
    pub(super) fn push_with(&mut self, node: NodeRef<'_, S>, at: usize, key: bool, value: bool) {
        if key || value {
            let flags = if key { DEAD_KEY } else { 0 } | if value { DEAD_VALUE } else { 0 };
            // Relaxed: as in `push`.
            node.get()
                .dead
                .store((at as u32) << 2 | flags, Ordering::Relaxed);
        }
        self.push(node);
    }

    /// Frees the nodes.
    ///
    /// # Safety
    ///
    /// The list is freed once, and no thread uses its nodes any more, whatever their counts are.
    pub(in crate::lfca_tree) unsafe fn free(self) {
        let mut next = self.0;
        while let Some(node) = NonNull::new(next) {
            // SAFETY: no thread uses it, and it has not been freed.
            unsafe {
                let node: NodeRef<'_, S> = NodeRef::from_raw(node);
                next = node.get().next.load(Ordering::Relaxed);
                let dead = node.get().dead.load(Ordering::Relaxed);
                let at = (dead >> 2) as usize;
                if dead & DEAD_KEY != 0 {
                    node.key_word(at).release();
                }
                if dead & DEAD_VALUE != 0 {
                    node.value(at).release();
                }
                node.deallocate();
            }
        }
    }
}
