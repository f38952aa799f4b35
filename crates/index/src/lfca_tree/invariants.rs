//! The invariants of the tree ([module](super)) that speak of its state, as functions: each panics
//! and names the invariant if it does not hold. Only a debug build calls them. Those of `contents`
//! are in a module of their own.
//!
//! A thread that splits a base node, or completes a join, checks the nodes that it has linked or
//! unlinked. [`Tree::check_at_rest`] checks a tree that no other thread uses.
//!
//! The others speak of the order in which things happen, and are held by tests:
//!
//! - 2 and 6 by the models of loom in which a query meets updates, splits and joins,
//! - 7 by `a_join_hides_nothing_from_a_scan_and_shows_nothing_twice`,
//! - 8 by the tests of reclamation.

use super::Tree;
use super::adapt::Join;
use super::node::{BaseNode, BaseRef, Node, NodePtr, RouteNode, route};
use crate::contract::Direction;
use crate::kit::{CHANGES_ARE_CHECKED, Spec};
use std::ptr;
use tremula_sync::Arc;
use tremula_sync::atomic::Ordering;
use tremula_sync::reclaim::Guard;

/// Invariant 1, of a key at the place for keys at or above `low` and below `high`.
fn is_on_its_side<K: Ord>(key: &K, low: Option<&K>, high: Option<&K>) {
    assert!(
        low.is_none_or(|low| low <= key) && high.is_none_or(|high| key < high),
        "invariant 1 of LfcaTree: a key is on the wrong side of a route node"
    );
}

/// Invariant 3, of a base node to which `parent` leads, or to which the root link leads.
fn base_knows_its_parent<S: Spec>(base: &BaseNode<S>, parent: Option<NodePtr<S>>) {
    assert!(
        base.parent == parent,
        "invariant 3 of LfcaTree: a base node is not linked by its parent"
    );
}

/// Invariant 4, of a base node at rest.
fn base_is_replaceable<S: Spec>(base: &BaseNode<S>) {
    assert!(
        base.is_replaceable() && base.is_readable(),
        "invariant 4 of LfcaTree: an operation is over, and still holds a base node"
    );
}

/// Invariant 5, of a route node that this join marks, or that is unmarked.
fn mark_is<S: Spec>(node: &RouteNode<S>, join: Option<&Arc<Join<S>>>) {
    let mark = node.join.load(Ordering::SeqCst);
    assert!(
        ptr::eq(mark, join.map_or(ptr::null(), Arc::as_ptr)),
        "invariant 5 of LfcaTree: a join left a mark behind, or removed the wrong one"
    );
}

impl<S: Spec> Tree<S> {
    /// Checks a split whose route node is not linked yet.
    #[inline]
    pub(super) fn check_split(node: NodePtr<S>) {
        if CHANGES_ARE_CHECKED {
            // SAFETY: the caller made the route node, and the base nodes below.
            unsafe {
                let new = route(node);
                for part in [new.left.load(), new.right.load()] {
                    if let Node::Base(base) = part.as_ref() {
                        base_knows_its_parent(base, Some(node));
                    }
                }
                mark_is(new, None);
            }
        }
    }

    /// Checks a join that unlinks `parent` and links `joined`. It may be done meanwhile.
    #[inline]
    pub(super) fn check_join(
        &self,
        join: &Arc<Join<S>>,
        joined: NodePtr<S>,
        parent: NodePtr<S>,
        guard: &Guard<'_>,
    ) {
        if CHANGES_ARE_CHECKED {
            // SAFETY: this thread saw, during this pin, that the join was committed: neither had
            // been retired then.
            let (joined, parent) = unsafe { (BaseRef::of(joined, guard), route(parent)) };
            let is_linked = self.link_to(joined).leads_to(joined.as_ptr());
            // The base node may be replaced as soon as the join is done.
            assert!(
                is_linked || join.is_done(),
                "invariant 3 of LfcaTree: a join links a base node, and not by its parent"
            );
            mark_is(parent, Some(join));
        }
    }

    /// Panics, and names the invariant, if the tree is not as its invariants say. No other thread
    /// may use the tree meanwhile, and no user code may have panicked in a removal of a range.
    pub(super) fn check_at_rest(&self) {
        let guard = &self.collector.pin();
        let mut ahead = vec![(self.root.load(), None, None, None)];
        while let Some((node, parent, low, high)) = ahead.pop() {
            // SAFETY: it is linked, and this thread is pinned.
            match unsafe { node.as_ref() } {
                Node::Route(route) => {
                    is_on_its_side(&route.key, low, high);
                    mark_is(route, None);
                    let key = Some(&route.key);
                    ahead.push((route.left.load(), Some(node), low, key));
                    ahead.push((route.right.load(), Some(node), key, high));
                }
                Node::Base(base) => {
                    base_knows_its_parent(base, parent);
                    base_is_replaceable(base);
                    // SAFETY: as for the node.
                    let base = unsafe { BaseRef::of(node, guard) };
                    for direction in [Direction::Ascending, Direction::Descending] {
                        if let Some(end) = base.view().end(direction) {
                            end.with(|key, _| is_on_its_side(key, low, high));
                        }
                    }
                    base.view().check_at_rest(low, high);
                }
            }
        }
    }
}
