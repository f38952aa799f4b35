//! Route nodes, base nodes, and the links between them.

use crate::kit;
use std::ptr::{self, NonNull};
use tremula_sync::atomic::{AtomicPtr, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Arc, CachePadded, LockDomain, Mutex, StatisticsLock, WriteGuard};

#[allow(
    clippy::large_enum_variant,
    reason = "the locks of a checker are large"
)]
pub(super) enum Node<K, C> {
    Route(RouteNode<K, C>),
    Base(BaseNode<C>),
}

/// Leads keys below its own key to the left, all others to the right.
pub(super) struct RouteNode<K, C> {
    pub(super) key: K,
    pub(super) left: Link<K, C>,
    pub(super) right: Link<K, C>,
    /// A join holds it while it unlinks this node or a child of it. `true` until this node is
    /// unlinked.
    pub(super) join: Mutex<bool>,
}

/// A part of the entries.
pub(super) struct BaseNode<C> {
    pub(super) lock: StatisticsLock<BaseState<C>>,
}

pub(super) struct BaseState<C> {
    pub(super) container: C,
    /// Whether the node is linked.
    pub(super) valid: bool,
}

/// Exclusive access to a base node.
pub(super) type BaseGuard<'g, C> = WriteGuard<'g, BaseState<C>>;

/// A node on its own cache lines: what every descent reads shares no line with what is written.
pub(super) type Allocation<K, C> = CachePadded<Node<K, C>>;

/// A node that is not linked yet.
pub(super) struct NewNode<K, C>(Box<Allocation<K, C>>);

impl<K, C> NewNode<K, C> {
    pub(super) fn base(container: C, domain: &Arc<LockDomain>) -> Self {
        let state = BaseState {
            container,
            valid: true,
        };
        let base = BaseNode {
            lock: StatisticsLock::new(state, Arc::clone(domain)),
        };
        Self(Box::new(CachePadded::new(Node::Base(base))))
    }

    pub(super) fn route(key: K, left: Self, right: Self) -> Self {
        let route = RouteNode {
            key,
            left: Link::new(left),
            right: Link::new(right),
            join: Mutex::new(true),
        };
        Self(Box::new(CachePadded::new(Node::Route(route))))
    }
}

/// A node that a pinned thread sees: linked, or unlinked but not freed yet.
pub(super) type NodeRef<'g, K, C> = kit::NodeRef<'g, Allocation<K, C>>;

impl<'g, K, C> NodeRef<'g, K, C> {
    #[inline]
    pub(super) fn kind(self) -> &'g Node<K, C> {
        self.get()
    }

    /// Frees the node when every thread that is pinned now has unpinned.
    ///
    /// # Safety
    ///
    /// The caller has unlinked the node, no link leads to it any more, and it is retired once.
    pub(super) unsafe fn retire(self, guard: &Guard<'_>) {
        let node = self.pointer().as_ptr();
        // SAFETY: the node came from a box. When this runs, every thread that was pinned while the
        // node was linked has unpinned. Any thread may drop the node at any time: keys and
        // containers are `Send` and `'static`.
        unsafe { guard.defer_unchecked(move || drop(Box::from_raw(node))) };
    }
}

/// An owning link to a node; never null. Dropping it frees nothing: the tree frees the nodes that
/// are linked, the collector those that are not.
pub(super) struct Link<K, C>(AtomicPtr<Allocation<K, C>>);

impl<K, C> Link<K, C> {
    pub(super) fn new(node: NewNode<K, C>) -> Self {
        Self(AtomicPtr::new(Box::into_raw(node.0)))
    }

    #[inline]
    pub(super) fn get<'g>(&self, _pinned: &'g Guard<'_>) -> NodeRef<'g, K, C> {
        // Acquire: pairs with the release in `set` and `raise`; a thread that sees the node sees
        // it initialized.
        let node = self.0.load(Ordering::Acquire);
        // SAFETY: a link is never null.
        let node = unsafe { NonNull::new_unchecked(node) };
        // SAFETY: the thread stays pinned for `'g`. An unlinked node is retired, so it is not freed
        // before; the trunk lives as long as the tree.
        unsafe { NodeRef::from_raw(node) }
    }

    #[inline]
    pub(super) fn leads_to(&self, node: NodeRef<'_, K, C>) -> bool {
        ptr::eq(self.0.load(Ordering::Relaxed), node.pointer().as_ptr())
    }

    /// Links a new node. The caller holds the locks that invariants 3 and 4 require.
    pub(super) fn set(&self, node: NewNode<K, C>) {
        self.0.store(Box::into_raw(node.0), Ordering::Release);
    }

    /// Links the trunk, or a node that is linked further down. The caller holds the locks that
    /// invariant 4 requires.
    pub(super) fn raise(&self, node: NodeRef<'_, K, C>) {
        self.0.store(node.pointer().as_ptr(), Ordering::Release);
    }
}

/// The base node of an undivided tree.
pub(super) struct Trunk<K, C>(NonNull<Allocation<K, C>>);

impl<K, C> Trunk<K, C> {
    pub(super) fn new(container: C, domain: &Arc<LockDomain>) -> Self {
        Self(NonNull::from(Box::leak(NewNode::base(container, domain).0)))
    }

    pub(super) fn link(&self) -> Link<K, C> {
        Link(AtomicPtr::new(self.0.as_ptr()))
    }

    /// The trunk, alive as long as the tree.
    #[inline]
    pub(super) fn get(&self) -> (NodeRef<'_, K, C>, &BaseNode<C>) {
        // SAFETY: the trunk is freed with the tree, or after it.
        let node = unsafe { NodeRef::from_raw(self.0) };
        match node.kind() {
            Node::Base(base) => (node, base),
            Node::Route(_) => unreachable!("the trunk is a base node"),
        }
    }

    pub(super) fn is(&self, node: NodeRef<'_, K, C>) -> bool {
        node.pointer() == self.0
    }

    /// Frees the trunk and everything below `root`.
    ///
    /// # Safety
    ///
    /// No other thread uses the tree, and neither is used again.
    pub(super) unsafe fn free_with(&self, root: &Link<K, C>) {
        let mut nodes = vec![self.0.as_ptr()];
        let root = root.0.load(Ordering::Relaxed);
        if root != self.0.as_ptr() {
            nodes.push(root);
        }
        while let Some(node) = nodes.pop() {
            // SAFETY: each linked node came from a box and is linked once, the trunk only as the
            // root; the caller promises that no other thread uses the tree.
            let node = unsafe { Box::from_raw(node) };
            if let Node::Route(route) = &**node {
                nodes
                    .extend([&route.left, &route.right].map(|link| link.0.load(Ordering::Relaxed)));
            }
        }
    }
}
