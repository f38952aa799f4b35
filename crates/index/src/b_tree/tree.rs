//! The tree itself: its root, its ends and its counts, and how it is freed.

use super::finger::Era;
use super::node::{Header, InnerRef, Kind, LeafRef, NodeRef};
use super::snapshots::Snapshots;
use super::text::Heap;
use crate::kit::blocks::Blocks;
use crate::kit::{self, SearchKey, Spec};
use std::marker::PhantomData;
use std::ptr::NonNull;
use tremula_sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use tremula_sync::reclaim::{Collector, Guard};
use tremula_sync::{CachePadded, Restart, StripedCounter, Version, retry};

/// The algorithm behind [`OlcBTree`](super::OlcBTree).
pub(super) struct Tree<S> {
    /// Changed only under the lock of the node that it leads to.
    root: AtomicPtr<Header>,
    /// The first leaf. It is never unlinked: a split makes a right neighbour, a merge unlinks one.
    first: NonNull<Header>,
    pub(super) len: CachePadded<StripedCounter>,
    pub(super) counters: CachePadded<Counters>,
    pub(super) collector: Collector,
    /// Where leaves of text lie. Dropped after the collector, which has leaves and blocks to free.
    pub(super) blocks: Option<Box<Blocks>>,
    pub(super) snapshots: Snapshots,
    pub(super) era: CachePadded<Era>,
    /// Frees the tree below its root. Stored, so that the type needs no bounds on keys and values.
    free: unsafe fn(NonNull<Header>),
    owns: PhantomData<fn(S) -> S>,
}

/// What the tree has decided so far, and what it consists of. Written only where the shape changes
/// or an operation has to start again. All accesses are relaxed: the figures order nothing.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) restarts: AtomicU64,
    pub(super) locked_scans: AtomicU64,
    pub(super) snapshots: AtomicU64,
    pub(super) copied_leaves: AtomicU64,
    pub(super) splits: AtomicU64,
    pub(super) merges: AtomicU64,
    pub(super) borrows: AtomicU64,
    pub(super) leaves: AtomicU64,
    pub(super) inner_nodes: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn discount(counter: &AtomicU64) {
    counter.fetch_sub(1, Ordering::Relaxed);
}

// SAFETY: the links own nodes of keys and values, all of which are `Send`; nothing is tied to a
// thread. A tree can only be made for an `S` that is a `Spec`. Were that a bound here, a value that
// has a map of such values in it could not be shown to be `Send`.
unsafe impl<S> Send for Tree<S> {}
// SAFETY: threads share keys and values by shared reference (`Sync`), and any thread may free them
// (`Send`): a `Spec` guarantees both.
unsafe impl<S> Sync for Tree<S> {}

pub(super) type Position<'k, S> = kit::Position<SearchKey<'k, S>>;

impl<S: Spec> Position<'_, S> {
    /// The index of the child of an inner node that this position leads to.
    #[inline(always)]
    pub(super) fn child(
        &self,
        inner: InnerRef<'_, S>,
        sound: impl Fn() -> Result<(), Restart>,
    ) -> Result<usize, Restart> {
        let count = inner.count();
        let (probe, right_of_equal) = match self {
            Self::At(probe) => (probe, true),
            Self::Below(probe) => (probe, false),
            Self::First => return Ok(0),
            Self::Last => return Ok(count),
        };
        if S::HEAD_IS_KEY {
            return Ok(if right_of_equal {
                inner.heads().at_or_below(probe.head, count)
            } else {
                inner.heads().below(probe.head)
            });
        }
        Ok(match inner.find(probe, sound)? {
            Ok(equal) => equal + usize::from(right_of_equal),
            Err(at) => at,
        })
    }
}

/// An inner node that a descent has passed.
pub(super) struct Parent<'g, S: Spec> {
    pub(super) inner: InnerRef<'g, S>,
    pub(super) version: Version,
    /// The index of the child that the descent went on to.
    pub(super) index: usize,
}

/// The node at which a descent has ended, or has come to so far.
pub(super) struct Place<'g, S: Spec, N = NodeRef<'g, S>> {
    pub(super) node: N,
    pub(super) version: Version,
    /// What [`NodeRef::moves`] was when the node was responsible for the key.
    pub(super) moves: u32,
    pub(super) parent: Option<Parent<'g, S>>,
}

/// A leaf at which a descent has ended.
pub(super) type LeafPlace<'g, S> = Place<'g, S, LeafRef<'g, S>>;

impl<S: Spec> Tree<S> {
    pub(super) fn new() -> Self {
        let blocks = blocks_of::<S>();
        let leaf = LeafRef::new(Heap::of(blocks.as_deref()));
        let tree = Self::with_root(leaf.node(), blocks);
        count(&tree.counters.leaves);
        tree
    }

    /// A tree that takes over these nodes. The caller still has to count them.
    pub(super) fn with_root(root: NodeRef<'static, S>, blocks: Option<Box<Blocks>>) -> Self {
        let mut first = root;
        while let Kind::Inner(inner) = first.kind()
            && let Some(child) = inner.child(0)
        {
            // SAFETY: the children of a node that the caller hands over are linked.
            first = unsafe { NodeRef::from_raw(child) };
        }
        Self {
            root: AtomicPtr::new(root.as_ptr()),
            first: first.as_non_null(),
            len: CachePadded::new(StripedCounter::new()),
            counters: CachePadded::new(Counters::default()),
            collector: Collector::new(),
            blocks,
            snapshots: Snapshots::new(),
            era: CachePadded::new(Era::begin()),
            free: free_root::<S>,
            owns: PhantomData,
        }
    }

    /// Repeats `attempt` until it succeeds.
    #[inline(always)]
    pub(super) fn retry<T>(&self, attempt: impl FnMut() -> Result<T, Restart>) -> T {
        retry(attempt, || self.restarted())
    }

    #[cold]
    pub(super) fn restarted(&self) {
        count(&self.counters.restarts);
    }

    /// The root, with a version at which it was the root.
    #[inline(always)]
    pub(super) fn root<'g>(&self, guard: &'g Guard<'_>) -> Result<Place<'g, S>, Restart> {
        self.enter_root(self.root_node(guard))
    }

    /// The root at some moment. Reads no lock.
    #[inline(always)]
    pub(super) fn root_node<'g>(&self, _: &'g Guard<'_>) -> NodeRef<'g, S> {
        // Acquire: pairs with the release in `set_root`, for what the node was made with.
        let root = self.root.load(Ordering::Acquire);
        // SAFETY: a tree always has a root; a root that was read while this thread is pinned is not
        // freed before the thread unpins.
        unsafe { NodeRef::from_raw(NonNull::new_unchecked(root)) }
    }

    /// Notes a version at which `node`, which [`root_node`](Self::root_node) gave, was the root.
    #[inline(always)]
    pub(super) fn enter_root<'g>(&self, node: NodeRef<'g, S>) -> Result<Place<'g, S>, Restart> {
        let root = node.as_ptr();
        let version = node.lock().read()?;
        let moves = node.moves();
        // A node stops being the root only while it is locked. If `version` was noted after that,
        // this load sees the new root. Relaxed: the acquire in `read` orders it.
        if self.root.load(Ordering::Relaxed) != root {
            return Err(Restart);
        }
        Ok(Place {
            node,
            version,
            moves,
            parent: None,
        })
    }

    /// Makes a node the root. The caller holds the lock of the present root.
    pub(super) fn set_root(&self, node: NodeRef<'_, S>, old: NodeRef<'_, S>) {
        self.check_before_new_root(old);
        // Release: pairs with the acquire in `root`.
        self.root.store(node.as_ptr(), Ordering::Release);
    }

    #[inline]
    pub(super) fn first<'g>(&self, _: &'g Guard<'_>) -> LeafRef<'g, S> {
        // SAFETY: the first leaf lives as long as the tree.
        unsafe { LeafRef::from_raw(self.first) }
    }

    /// The child of an inner node at `index`. The caller still has to note the child's version and
    /// to validate `version` after that.
    #[inline(always)]
    pub(super) fn child<'g>(
        &self,
        inner: InnerRef<'g, S>,
        version: Version,
        index: usize,
    ) -> Result<NodeRef<'g, S>, Restart> {
        let child = inner.child(index);
        inner.lock().validate(version)?;
        let Some(child) = child else {
            unreachable!("an inner node has one child more than separators");
        };
        // SAFETY: the child was linked when the inner node had this version, which the thread
        // noted after it was pinned.
        Ok(unsafe { NodeRef::from_raw(child) })
    }

    /// Goes from an inner node to its child at `index`.
    #[inline(always)]
    pub(super) fn enter<'g>(
        &self,
        inner: InnerRef<'g, S>,
        version: Version,
        index: usize,
    ) -> Result<Place<'g, S>, Restart> {
        let node = self.child(inner, version, index)?;
        node.prefetch_below(inner.level());
        let child_version = node.lock().read()?;
        let moves = node.moves();
        // Still the child: so the range that it was responsible for at `child_version` is known.
        inner.lock().validate(version)?;
        Ok(Place {
            node,
            version: child_version,
            moves,
            parent: Some(Parent {
                inner,
                version,
                index,
            }),
        })
    }

    /// Goes down to a leaf. Inlined, so that the result stays in registers.
    #[inline(always)]
    pub(super) fn descend<'g>(
        &self,
        position: &Position<'_, S>,
        guard: &'g Guard<'_>,
    ) -> Result<LeafPlace<'g, S>, Restart> {
        let mut here = self.root(guard)?;
        loop {
            let version = here.version;
            match here.node.kind() {
                Kind::Leaf(leaf) => {
                    return Ok(Place {
                        node: leaf,
                        version,
                        moves: here.moves,
                        parent: here.parent,
                    });
                }
                Kind::Inner(inner) => {
                    let index = position.child(inner, inner.still(version))?;
                    here = self.enter(inner, version, index)?;
                }
            }
        }
    }

    /// Goes down to the node of `level` that is responsible for a key, or to the root if its level
    /// is lower.
    pub(super) fn descend_to<'g>(
        &self,
        probe: &SearchKey<'_, S>,
        level: u32,
        guard: &'g Guard<'_>,
    ) -> Result<Place<'g, S>, Restart> {
        self.descend_from(self.root(guard)?, &Position::At(*probe), level)
    }

    /// Goes down from `here` to the node of `level` at a position. Reads no lock below that level.
    pub(super) fn descend_from<'g>(
        &self,
        mut here: Place<'g, S>,
        position: &Position<'_, S>,
        level: u32,
    ) -> Result<Place<'g, S>, Restart> {
        loop {
            match here.node.kind() {
                Kind::Inner(inner) if inner.level() > level => {
                    let index = position.child(inner, inner.still(here.version))?;
                    here = self.enter(inner, here.version, index)?;
                }
                _ => return Ok(here),
            }
        }
    }
}

/// The regions of a new tree, if its leaves are leaves of text.
pub(super) fn blocks_of<S: Spec>() -> Option<Box<Blocks>> {
    let has_regions = S::is_text() && cfg!(not(any(loom, shuttle)));
    has_regions.then(|| Box::new(Blocks::new()))
}

impl<S> Drop for Tree<S> {
    fn drop(&mut self) {
        let root = self.root.load(Ordering::Relaxed);
        // SAFETY: never null; no other thread uses the tree any more, and each node and entry is
        // linked once.
        unsafe { (self.free)(NonNull::new_unchecked(root)) };
    }
}

/// Frees the tree below a root.
///
/// # Safety
///
/// As for [`free_subtree`].
unsafe fn free_root<S: Spec>(root: NonNull<Header>) {
    // SAFETY: passed on to the caller.
    unsafe { free_subtree::<S>(NodeRef::from_raw(root)) };
}

/// Frees a node, its entries and all nodes below it.
///
/// # Safety
///
/// No other thread has the node, and the caller does not use it again.
pub(super) unsafe fn free_subtree<S: Spec>(node: NodeRef<'_, S>) {
    let count = node.count();
    // SAFETY: the caller owns the node, and the node owns the entries, separators and children
    // below its count.
    unsafe {
        match node.kind() {
            Kind::Leaf(leaf) => {
                for at in 0..count {
                    leaf.entry(at).loose().free();
                }
                drop(leaf.take_undo());
            }
            Kind::Inner(inner) => {
                for at in 0..count {
                    inner.key(at).free();
                }
                for child in (0..=count).filter_map(|at| inner.child(at)) {
                    free_subtree::<S>(NodeRef::from_raw(child));
                }
            }
        }
        node.free();
    }
}
