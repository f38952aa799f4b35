//! Route nodes, base nodes, and the links between them.

use super::Tree;
use super::adapt::Join;
use super::contents::{NodeList, Root, View};
use super::ranges::Storage;
use crate::kit::Spec;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use tremula_sync::Arc;
use tremula_sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use tremula_sync::reclaim::Guard;

pub(super) enum Node<S: Spec> {
    Route(RouteNode<S>),
    Base(BaseNode<S>),
}

/// Leads searches for keys below its own to the left, and all others to the right.
pub(super) struct RouteNode<S: Spec> {
    pub(super) key: S::Key,
    pub(super) head: u64,
    pub(super) left: Link<S>,
    pub(super) right: Link<S>,
    /// The mark: the join that unlinks this node (it stays for ever), or that unlinks a route node
    /// below it.
    pub(super) join: AtomicPtr<Join<S>>,
}

/// The entries of a range of keys between two changes. Immutable.
pub(super) struct BaseNode<S: Spec> {
    pub(super) contents: Root<S>,
    pub(super) statistics: i32,
    /// The route node above; `None` at the root.
    pub(super) parent: Option<NodePtr<S>>,
    pub(super) role: Role<S>,
}

/// The role of a base node in an operation that several threads carry out.
pub(super) enum Role<S: Spec> {
    /// It has none.
    Normal,
    /// This join unlinks it.
    Main(Arc<Join<S>>),
    /// This join replaces it by a base node with the contents of both; or it is that base node.
    Neighbour(Arc<Join<S>>),
    /// This query has frozen it.
    Range(Arc<Storage<S>>),
    /// An `update` holds it while its closure runs, until this is `true`.
    Held(Arc<AtomicBool>),
}

pub(super) type NodePtr<S> = NonNull<Node<S>>;

impl<S: Spec> BaseNode<S> {
    /// A base node that can replace this one, with the same contents.
    pub(super) fn again(&self, statistics: i32, role: Role<S>) -> Self {
        Self {
            contents: self.contents,
            statistics,
            parent: self.parent,
            role,
        }
    }

    /// A base node that can replace this one, with other contents.
    pub(super) fn with(&self, contents: Root<S>, statistics: i32) -> Self {
        Self {
            contents,
            statistics,
            parent: self.parent,
            role: Role::Normal,
        }
    }

    /// Whether its role allows it to be replaced. Once it does, it always does.
    #[inline]
    pub(super) fn is_replaceable(&self) -> bool {
        match &self.role {
            Role::Normal => true,
            Role::Main(join) => join.is_aborted(),
            Role::Neighbour(join) => join.is_aborted() || join.is_done(),
            Role::Range(storage) => storage.is_over(),
            // SeqCst: see `Link::load`.
            Role::Held(released) => released.load(Ordering::SeqCst),
        }
    }

    /// Whether its contents are exactly the entries of its range, if it is linked.
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

/// A base node that a pinned thread has found. It may be unlinked, but is not freed.
#[derive(Clone, Copy)]
pub(super) struct BaseRef<'g, S: Spec> {
    node: NodePtr<S>,
    pinned: PhantomData<&'g Node<S>>,
}

impl<S: Spec> PartialEq for BaseRef<'_, S> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<S: Spec> Deref for BaseRef<'_, S> {
    type Target = BaseNode<S>;

    #[inline]
    fn deref(&self) -> &BaseNode<S> {
        self.get()
    }
}

impl<'g, S: Spec> BaseRef<'g, S> {
    /// # Safety
    ///
    /// The node is a base node that was linked, and not freed, at some time during this pin.
    #[inline]
    pub(super) unsafe fn of(node: NodePtr<S>, _pinned: &'g Guard<'_>) -> Self {
        Self {
            node,
            pinned: PhantomData,
        }
    }

    #[inline]
    pub(super) fn as_ptr(self) -> NodePtr<S> {
        self.node
    }

    #[inline]
    pub(super) fn get(self) -> &'g BaseNode<S> {
        // SAFETY: it was linked during this pin, and the collector frees it only after the pin.
        match unsafe { self.node.as_ref() } {
            Node::Base(base) => base,
            Node::Route(_) => unreachable!("this refers to base nodes only"),
        }
    }

    /// Its contents.
    #[inline]
    pub(super) fn view(self) -> View<'g, S> {
        // SAFETY: the base node was linked during this pin, and the collector releases its contents
        // only after the pin.
        unsafe { self.get().contents.view() }
    }

    /// The route node above.
    pub(super) fn parent(self) -> Option<&'g RouteNode<S>> {
        // SAFETY: invariant 3: the parent was linked while the base node was, during this pin.
        self.get().parent.map(|node| unsafe { route(node) })
    }
}

/// A route node.
///
/// # Safety
///
/// The node is a route node that was linked, and not freed, at some time during the pin of `'g`.
pub(super) unsafe fn route<'g, S: Spec>(node: NodePtr<S>) -> &'g RouteNode<S> {
    // SAFETY: the caller's promise.
    match unsafe { node.as_ref() } {
        Node::Route(route) => route,
        Node::Base(_) => unreachable!("what is above a node is a route node"),
    }
}

/// A link to a node; never null once other threads see it. Dropping it frees nothing.
pub(super) struct Link<S: Spec>(AtomicPtr<Node<S>>);

impl<S: Spec> Link<S> {
    pub(super) fn new(node: *mut Node<S>) -> Self {
        Self(AtomicPtr::new(node))
    }

    /// The node.
    ///
    /// SeqCst, as all accesses of links, and of the states on which `BaseNode::is_replaceable` and
    /// `BaseNode::is_readable` depend: a query that reads base nodes and later finds all of them
    /// unchanged relies on a single order of all changes.
    #[inline]
    pub(super) fn load(&self) -> NodePtr<S> {
        let node = self.0.load(Ordering::SeqCst);
        // SAFETY: a link that other threads see is never null.
        unsafe { NonNull::new_unchecked(node) }
    }

    #[inline]
    pub(super) fn leads_to(&self, node: NodePtr<S>) -> bool {
        ptr::eq(self.0.load(Ordering::SeqCst), node.as_ptr())
    }

    /// Replaces `from` by `to`, if the link still leads to `from`.
    #[inline]
    pub(super) fn swing(&self, from: NodePtr<S>, to: NodePtr<S>) -> bool {
        self.0
            .compare_exchange(
                from.as_ptr(),
                to.as_ptr(),
                Ordering::SeqCst,
                Ordering::SeqCst,
            )
            .is_ok()
    }

    /// Sets the link of a node that no other thread has seen.
    pub(super) fn prepare(&self, node: NodePtr<S>) {
        self.0.store(node.as_ptr(), Ordering::Relaxed);
    }
}

/// Allocates a node.
pub(super) fn allocate<S: Spec>(node: Node<S>) -> NodePtr<S> {
    NonNull::from(Box::leak(Box::new(node)))
}

/// Frees a node, but nothing that it leads to.
///
/// # Safety
///
/// It came from [`allocate`], and no thread uses it.
pub(super) unsafe fn free<S: Spec>(node: NodePtr<S>) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(node.as_ptr()) });
}

/// What is to be freed with a base node, when no thread can use it any more.
#[derive(Clone, Copy)]
pub(super) struct Retired<S: Spec> {
    /// Nodes of contents, whose counts of keys, values and children have moved to other nodes.
    pub(super) nodes: NodeList<S>,
    /// Contents, of which one count is released.
    pub(super) contents: Root<S>,
}

impl<S: Spec> Retired<S> {
    /// Nothing but the base node itself: its contents belong to the one that replaced it.
    pub(super) const NOTHING: Self = Self {
        nodes: NodeList::new(),
        contents: Root::EMPTY,
    };

    /// One count of these contents.
    pub(super) fn contents(contents: Root<S>) -> Self {
        Self {
            contents,
            ..Self::NOTHING
        }
    }
}

impl<S: Spec> Tree<S> {
    /// The link to a base node, if it is still linked.
    #[inline]
    pub(super) fn link_to<'g>(&'g self, base: BaseRef<'g, S>) -> &'g Link<S> {
        match base.parent() {
            None => &self.root,
            Some(route) if route.left.leads_to(base.as_ptr()) => &route.left,
            Some(route) => &route.right,
        }
    }

    /// Replaces a base node by another, if it is still linked. The caller then retires it.
    #[inline]
    pub(super) fn replace<'g>(
        &'g self,
        base: BaseRef<'g, S>,
        new: BaseNode<S>,
        guard: &'g Guard<'_>,
    ) -> Option<BaseRef<'g, S>> {
        let new = allocate(Node::Base(new));
        if self.link_to(base).swing(base.as_ptr(), new) {
            // SAFETY: it is a base node, and was linked just now.
            Some(unsafe { BaseRef::of(new, guard) })
        } else {
            // SAFETY: no other thread has seen it.
            unsafe { free(new) };
            None
        }
    }

    /// Frees a base node that was replaced, once no thread can use it.
    ///
    /// # Safety
    ///
    /// The caller has unlinked it, and owns what is retired with it.
    #[inline]
    pub(super) unsafe fn retire(
        &self,
        base: BaseRef<'_, S>,
        retired: Retired<S>,
        guard: &Guard<'_>,
    ) {
        let node = base.as_ptr();
        // SAFETY: when this runs, no thread is pinned that was pinned while it was linked. Any
        // thread may drop nodes, keys and values at any time: they are `Send` and `'static`.
        unsafe { guard.defer_unchecked(move || Self::free_retired(node, retired)) };
    }

    /// Frees a base node that was replaced.
    ///
    /// # Safety
    ///
    /// As for [`retire`](Self::retire); and no other thread uses any of it now or later.
    pub(super) unsafe fn free_retired(node: NodePtr<S>, retired: Retired<S>) {
        let Retired { nodes, contents } = retired;
        // SAFETY: the caller's promise. If the `Drop` of a key or value panics, the rest leaks.
        unsafe {
            free(node);
            nodes.free();
            drop(contents.own());
        }
    }
}
