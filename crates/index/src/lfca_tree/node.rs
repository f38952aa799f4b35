//! Route nodes, base nodes, and the links between them.

use super::LfcaTree;
use super::adapt::Join;
use super::contents::{NodeList, Root, View};
use super::ranges::Storage;
use crate::contract::Storable;
use crate::key::KeyHead;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use tremula_sync::Arc;
use tremula_sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use tremula_sync::reclaim::Guard;

pub(super) enum Node<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    Route(RouteNode<K, V, H>),
    Base(BaseNode<K, V, H>),
}

/// Leads keys below its own to the left, all others to the right.
pub(super) struct RouteNode<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    pub(super) key: K,
    pub(super) head: u64,
    pub(super) left: Link<K, V, H>,
    pub(super) right: Link<K, V, H>,
    /// The join that is about to unlink this node, for ever, or the route node below it.
    pub(super) join: AtomicPtr<Join<K, V, H>>,
}

/// A part of the entries, as it is between two changes. Immutable.
pub(super) struct BaseNode<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    pub(super) contents: Root<K, V, H>,
    pub(super) statistics: i32,
    /// The route node above; `None` at the root.
    pub(super) parent: Option<NodePtr<K, V, H>>,
    pub(super) role: Role<K, V, H>,
}

/// What a base node has to do with an operation that several threads carry out.
pub(super) enum Role<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    /// Nothing.
    Normal,
    /// It will disappear in this join.
    Main(Arc<Join<K, V, H>>),
    /// It will take in the other's contents in this join, or has done so.
    Neighbour(Arc<Join<K, V, H>>),
    /// It is in the range of this query.
    Range(Arc<Storage<K, V, H>>),
    /// An `update` is asking its closure what is to be done, until this says `true`.
    Held(Arc<AtomicBool>),
}

pub(super) type NodePtr<K, V, H> = NonNull<Node<K, V, H>>;

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> BaseNode<K, V, H> {
    /// Another base node in the place of this one, with the same contents.
    pub(super) fn again(&self, statistics: i32, role: Role<K, V, H>) -> Self {
        Self {
            contents: self.contents,
            statistics,
            parent: self.parent,
            role,
        }
    }

    /// Another base node in the place of this one, with other contents.
    pub(super) fn with(&self, contents: Root<K, V, H>, statistics: i32) -> Self {
        Self {
            contents,
            statistics,
            parent: self.parent,
            role: Role::Normal,
        }
    }

    /// Whether it may be replaced. Once it may, it always may.
    #[inline]
    pub(super) fn is_replaceable(&self) -> bool {
        match &self.role {
            Role::Normal => true,
            Role::Main(join) => join.is_aborted(),
            Role::Neighbour(join) => join.is_aborted() || join.is_done(),
            Role::Range(storage) => storage.is_over(),
            // SeqCst, as all that decides what a base node is worth: see `Link::load`.
            Role::Held(released) => released.load(Ordering::SeqCst),
        }
    }

    /// Whether its contents are all there is in its range, if it is linked.
    #[inline]
    pub(super) fn is_readable(&self) -> bool {
        match &self.role {
            Role::Normal | Role::Held(_) => true,
            Role::Main(join) => !join.is_committed() && !join.is_done(),
            Role::Neighbour(join) => !join.is_committed(),
            Role::Range(storage) => !storage.has_removed(),
        }
    }
}

/// A base node as a pinned thread sees it: linked, or unlinked but not freed yet.
pub(super) struct BaseRef<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    node: NodePtr<K, V, H>,
    pinned: PhantomData<&'g Node<K, V, H>>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Clone for BaseRef<'_, K, V, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Copy for BaseRef<'_, K, V, H> {}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> PartialEq for BaseRef<'_, K, V, H> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Deref for BaseRef<'_, K, V, H> {
    type Target = BaseNode<K, V, H>;

    #[inline]
    fn deref(&self) -> &BaseNode<K, V, H> {
        self.get()
    }
}

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> BaseRef<'g, K, V, H> {
    /// # Safety
    ///
    /// The node is a base node that was linked, and not freed, at some time during this pin.
    #[inline]
    pub(super) unsafe fn of(node: NodePtr<K, V, H>, _pinned: &'g Guard<'_>) -> Self {
        Self {
            node,
            pinned: PhantomData,
        }
    }

    #[inline]
    pub(super) fn as_ptr(self) -> NodePtr<K, V, H> {
        self.node
    }

    #[inline]
    pub(super) fn get(self) -> &'g BaseNode<K, V, H> {
        // SAFETY: it was linked during this pin; unlinked nodes go to the collector.
        match unsafe { self.node.as_ref() } {
            Node::Base(base) => base,
            Node::Route(_) => unreachable!("this refers to base nodes only"),
        }
    }

    /// What is in it.
    #[inline]
    pub(super) fn view(self) -> View<'g, K, V, H> {
        // SAFETY: the base node was linked during this pin, and what it has is given back by way
        // of the collector.
        unsafe { self.get().contents.view() }
    }

    /// The route node above.
    pub(super) fn parent(self) -> Option<&'g RouteNode<K, V, H>> {
        // SAFETY: a base node is linked no longer than its parent is.
        self.get().parent.map(|node| unsafe { route(node) })
    }
}

/// A route node.
///
/// # Safety
///
/// It is one, and was linked, and not freed, at some time during the pin that `'g` stands for.
pub(super) unsafe fn route<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>>(
    node: NodePtr<K, V, H>,
) -> &'g RouteNode<K, V, H> {
    // SAFETY: the caller's promise.
    match unsafe { node.as_ref() } {
        Node::Route(route) => route,
        Node::Base(_) => unreachable!("what is above a node is a route node"),
    }
}

/// A link to a node; never null once others see it. Dropping it frees nothing.
pub(super) struct Link<K: Ord + Storable, V: Storable, H: KeyHead<K>>(AtomicPtr<Node<K, V, H>>);

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Link<K, V, H> {
    pub(super) fn new(node: *mut Node<K, V, H>) -> Self {
        Self(AtomicPtr::new(node))
    }

    /// The node.
    ///
    /// SeqCst, and so is every other access of links, and of the states that decide what the
    /// contents of a base node are worth: a query that finds base nodes unchanged when it looks
    /// again relies on one order of all changes.
    #[inline]
    pub(super) fn load(&self) -> NodePtr<K, V, H> {
        let node = self.0.load(Ordering::SeqCst);
        // SAFETY: a link that others see is never null.
        unsafe { NonNull::new_unchecked(node) }
    }

    #[inline]
    pub(super) fn leads_to(&self, node: NodePtr<K, V, H>) -> bool {
        ptr::eq(self.0.load(Ordering::SeqCst), node.as_ptr())
    }

    /// Replaces the node, if it is still the expected one.
    #[inline]
    pub(super) fn swing(&self, from: NodePtr<K, V, H>, to: NodePtr<K, V, H>) -> bool {
        self.0
            .compare_exchange(
                from.as_ptr(),
                to.as_ptr(),
                Ordering::SeqCst,
                Ordering::SeqCst,
            )
            .is_ok()
    }

    /// Sets the link of a node that nobody has seen.
    pub(super) fn prepare(&self, node: NodePtr<K, V, H>) {
        self.0.store(node.as_ptr(), Ordering::Relaxed);
    }
}

/// Allocates a node.
pub(super) fn allocate<K: Ord + Storable, V: Storable, H: KeyHead<K>>(
    node: Node<K, V, H>,
) -> NodePtr<K, V, H> {
    NonNull::from(Box::leak(Box::new(node)))
}

/// Frees a node, but for what it leads to.
///
/// # Safety
///
/// It came from [`allocate`], and nobody has it.
pub(super) unsafe fn free<K: Ord + Storable, V: Storable, H: KeyHead<K>>(node: NodePtr<K, V, H>) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(node.as_ptr()) });
}

/// What is to be freed when nobody can be looking at it any more.
pub(super) struct Retired<K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    /// Nodes of contents whose entries belong to others now.
    pub(super) nodes: NodeList<K, V, H>,
    /// Contents, of which a count is given back.
    pub(super) contents: Root<K, V, H>,
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Clone for Retired<K, V, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Copy for Retired<K, V, H> {}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> Retired<K, V, H> {
    /// Nothing but the base node itself: its contents belong to the one in its place.
    pub(super) const NOTHING: Self = Self {
        nodes: NodeList::new(),
        contents: Root::EMPTY,
    };

    /// The count of these contents.
    pub(super) fn contents(contents: Root<K, V, H>) -> Self {
        Self {
            contents,
            ..Self::NOTHING
        }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> LfcaTree<K, V, H> {
    /// The link to a base node, while it is linked.
    #[inline]
    pub(super) fn link_to<'g>(&'g self, base: BaseRef<'g, K, V, H>) -> &'g Link<K, V, H> {
        match base.parent() {
            None => &self.root,
            Some(route) if route.left.leads_to(base.as_ptr()) => &route.left,
            Some(route) => &route.right,
        }
    }

    /// Puts a base node in the place of another, if this is still linked. The caller retires it
    /// then.
    #[inline]
    pub(super) fn replace<'g>(
        &'g self,
        base: BaseRef<'g, K, V, H>,
        new: BaseNode<K, V, H>,
        guard: &'g Guard<'_>,
    ) -> Option<BaseRef<'g, K, V, H>> {
        let new = allocate(Node::Base(new));
        if self.link_to(base).swing(base.as_ptr(), new) {
            // SAFETY: it is a base node, and linked.
            Some(unsafe { BaseRef::of(new, guard) })
        } else {
            // SAFETY: nobody has seen it.
            unsafe { free(new) };
            None
        }
    }

    /// Frees a base node that was replaced once nobody can be looking at it.
    ///
    /// # Safety
    ///
    /// The caller unlinked it; what is retired with it belongs to nobody else.
    #[inline]
    pub(super) unsafe fn retire(
        &self,
        base: BaseRef<'_, K, V, H>,
        retired: Retired<K, V, H>,
        guard: &Guard<'_>,
    ) {
        let node = base.as_ptr();
        // SAFETY: when this runs, nobody is pinned who was when it was linked. Nodes, keys and
        // values may be dropped by any thread at any time: they are `Send` and `'static`.
        unsafe { guard.defer_unchecked(move || Self::free_retired(node, retired)) };
    }

    /// Frees a base node that was replaced.
    ///
    /// # Safety
    ///
    /// As for [`retire`](Self::retire); and nobody looks at any of it now or later.
    pub(super) unsafe fn free_retired(node: NodePtr<K, V, H>, retired: Retired<K, V, H>) {
        let Retired { nodes, contents } = retired;
        // SAFETY: the caller's promise. If a key's or a value's `Drop` panics, the rest leaks.
        unsafe {
            free(node);
            nodes.free();
            drop(contents.own());
        }
    }
}
