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

/// Leads keys below its own to the left, all others to the right.
pub(super) struct RouteNode<S: Spec> {
    pub(super) key: S::Key,
    pub(super) head: u64,
    pub(super) left: Link<S>,
    pub(super) right: Link<S>,
    /// The join that is about to unlink this node, for ever, or the route node below it.
    pub(super) join: AtomicPtr<Join<S>>,
}

/// A part of the entries, as it is between two changes. Immutable.
pub(super) struct BaseNode<S: Spec> {
    pub(super) contents: Root<S>,
    pub(super) statistics: i32,
    /// The route node above; `None` at the root.
    pub(super) parent: Option<NodePtr<S>>,
    pub(super) role: Role<S>,
}

/// What a base node has to do with an operation that several threads carry out.
pub(super) enum Role<S: Spec> {
    /// Nothing.
    Normal,
    /// It will disappear in this join.
    Main(Arc<Join<S>>),
    /// It will take in the other's contents in this join, or has done so.
    Neighbour(Arc<Join<S>>),
    /// It is in the range of this query.
    Range(Arc<Storage<S>>),
    /// An `update` is asking its closure what is to be done, until this says `true`.
    Held(Arc<AtomicBool>),
}

pub(super) type NodePtr<S> = NonNull<Node<S>>;

impl<S: Spec> BaseNode<S> {
    /// Another base node in the place of this one, with the same contents.
    pub(super) fn again(&self, statistics: i32, role: Role<S>) -> Self {
        Self {
            contents: self.contents,
            statistics,
            parent: self.parent,
            role,
        }
    }

    /// Another base node in the place of this one, with other contents.
    pub(super) fn with(&self, contents: Root<S>, statistics: i32) -> Self {
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
        // SAFETY: it was linked during this pin; unlinked nodes go to the collector.
        match unsafe { self.node.as_ref() } {
            Node::Base(base) => base,
            Node::Route(_) => unreachable!("this refers to base nodes only"),
        }
    }

    /// What is in it.
    #[inline]
    pub(super) fn view(self) -> View<'g, S> {
        // SAFETY: the base node was linked during this pin, and what it has is given back by way
        // of the collector.
        unsafe { self.get().contents.view() }
    }

    /// The route node above.
    pub(super) fn parent(self) -> Option<&'g RouteNode<S>> {
        // SAFETY: a base node is linked no longer than its parent is.
        self.get().parent.map(|node| unsafe { route(node) })
    }
}

/// A route node.
///
/// # Safety
///
/// It is one, and was linked, and not freed, at some time during the pin that `'g` stands for.
pub(super) unsafe fn route<'g, S: Spec>(node: NodePtr<S>) -> &'g RouteNode<S> {
    // SAFETY: the caller's promise.
    match unsafe { node.as_ref() } {
        Node::Route(route) => route,
        Node::Base(_) => unreachable!("what is above a node is a route node"),
    }
}

/// A link to a node; never null once others see it. Dropping it frees nothing.
pub(super) struct Link<S: Spec>(AtomicPtr<Node<S>>);

impl<S: Spec> Link<S> {
    pub(super) fn new(node: *mut Node<S>) -> Self {
        Self(AtomicPtr::new(node))
    }

    /// The node.
    ///
    /// SeqCst, and so is every other access of links, and of the states that decide what the
    /// contents of a base node are worth: a query that finds base nodes unchanged when it looks
    /// again relies on one order of all changes.
    #[inline]
    pub(super) fn load(&self) -> NodePtr<S> {
        let node = self.0.load(Ordering::SeqCst);
        // SAFETY: a link that others see is never null.
        unsafe { NonNull::new_unchecked(node) }
    }

    #[inline]
    pub(super) fn leads_to(&self, node: NodePtr<S>) -> bool {
        ptr::eq(self.0.load(Ordering::SeqCst), node.as_ptr())
    }

    /// Replaces the node, if it is still the expected one.
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

    /// Sets the link of a node that nobody has seen.
    pub(super) fn prepare(&self, node: NodePtr<S>) {
        self.0.store(node.as_ptr(), Ordering::Relaxed);
    }
}

/// Allocates a node.
pub(super) fn allocate<S: Spec>(node: Node<S>) -> NodePtr<S> {
    NonNull::from(Box::leak(Box::new(node)))
}

/// Frees a node, but for what it leads to.
///
/// # Safety
///
/// It came from [`allocate`], and nobody has it.
pub(super) unsafe fn free<S: Spec>(node: NodePtr<S>) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(node.as_ptr()) });
}

/// What is to be freed when nobody can be looking at it any more.
#[derive(Clone, Copy)]
pub(super) struct Retired<S: Spec> {
    /// Nodes of contents whose entries belong to others now.
    pub(super) nodes: NodeList<S>,
    /// Contents, of which a count is given back.
    pub(super) contents: Root<S>,
}

impl<S: Spec> Retired<S> {
    /// Nothing but the base node itself: its contents belong to the one in its place.
    pub(super) const NOTHING: Self = Self {
        nodes: NodeList::new(),
        contents: Root::EMPTY,
    };

    /// The count of these contents.
    pub(super) fn contents(contents: Root<S>) -> Self {
        Self {
            contents,
            ..Self::NOTHING
        }
    }
}

impl<S: Spec> Tree<S> {
    /// The link to a base node, while it is linked.
    #[inline]
    pub(super) fn link_to<'g>(&'g self, base: BaseRef<'g, S>) -> &'g Link<S> {
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
        base: BaseRef<'g, S>,
        new: BaseNode<S>,
        guard: &'g Guard<'_>,
    ) -> Option<BaseRef<'g, S>> {
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
        base: BaseRef<'_, S>,
        retired: Retired<S>,
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
    pub(super) unsafe fn free_retired(node: NodePtr<S>, retired: Retired<S>) {
        let Retired { nodes, contents } = retired;
        // SAFETY: the caller's promise. If a key's or a value's `Drop` panics, the rest leaks.
        unsafe {
            free(node);
            nodes.free();
            drop(contents.own());
        }
    }
}
