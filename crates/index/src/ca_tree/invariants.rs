//! The invariants of the tree ([module](super)) that speak of its state, as functions: each panics,
//! and names the invariant, if it does not hold. Only a debug build calls them.
//!
//! A thread that splits or joins base nodes checks them before it releases their locks, without
//! running user code. [`CaTree::check_at_rest`] checks a tree that no other thread uses, with the
//! order of its keys.
//!
//! The others speak of the order in which things happen, and tests hold them:
//!
//! - 6 by the programs of shuttle that scan while the index changes,
//! - 7 by the model of loom `joins_of_neighbours_meet`, and by the same programs of shuttle,
//! - 8 by the tests of keys whose drop calls the tree,
//! - 9 by the tests of keys that contradict one another,
//! - 10, as far as it speaks of retiring, by the tests of reclamation.

use super::descend::{Parent, Place};
use super::node::{BaseNode, Node, NodeRef, RouteNode};
use super::{CaTree, Container};
use crate::contract::{Direction, KeyRange};
use crate::kit::CHANGES_ARE_CHECKED;
use std::ops::ControlFlow;
use tremula_sync::reclaim::Guard;

/// Invariant 1, of a key of a tree at rest, and the boundaries around it.
fn key_is_on_its_side<K: Ord>(key: &K, low: Option<&K>, high: Option<&K>) {
    assert!(
        low.is_none_or(|low| low <= key) && high.is_none_or(|high| key < high),
        "invariant 1 of CaTree: a key is on the wrong side of a route node"
    );
}

/// Invariant 2, of a node that is linked or has just been unlinked.
fn valid_is_what_is_linked(is_valid: bool, is_linked: bool) {
    assert!(
        is_valid == is_linked,
        "invariant 2 of CaTree: a node is valid and not linked, or linked and not valid"
    );
}

/// Invariant 3, of a base node to which the link is about to change.
fn base_is_locked<C>(base: &BaseNode<C>) {
    assert!(
        base.lock.try_write().is_none(),
        "invariant 3 of CaTree: the link to a base node changes, and the base node is not locked"
    );
}

/// Invariant 4, of a route node that is about to be unlinked, or of the one above it.
fn route_is_locked<K, C>(route: &RouteNode<K, C>) {
    assert!(
        route.join.try_lock().is_none(),
        "invariant 4 of CaTree: the link to a route node changes, and it or its parent is not locked"
    );
}

/// Invariant 5, of a route node that is about to be unlinked, and the two locked base nodes.
fn neighbours_meet_at<K, C>(
    parent: Parent<'_, K, C>,
    place: &Place<'_, K, C>,
    neighbour: &Place<'_, K, C>,
) {
    // The descent to the neighbour began below the route node.
    let meets = if parent.route.left.leads_to(place.node) {
        neighbour.low.is_none()
    } else {
        parent.route.right.leads_to(place.node) && neighbour.high.is_none()
    };
    assert!(
        meets,
        "invariant 5 of CaTree: a join does not hold the two base nodes next to the route node"
    );
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// Invariant 10, as far as it speaks of the trunk, of the root after a join or at rest.
    fn only_base_node_is_the_trunk(&self, root: NodeRef<'_, K, C>) {
        assert!(
            matches!(root.kind(), Node::Route(_)) || self.trunk.is(root),
            "invariant 10 of CaTree: the only base node is not the trunk"
        );
    }

    /// Checks a base node that is about to be replaced by a split.
    #[inline]
    pub(super) fn check_before_split(place: &Place<'_, K, C>) {
        if CHANGES_ARE_CHECKED {
            base_is_locked(place.base);
        }
    }

    /// Checks what a join is about to unlink, and the route node above it.
    #[inline]
    pub(super) fn check_before_join(
        place: &Place<'_, K, C>,
        parent: Parent<'_, K, C>,
        neighbour: &Place<'_, K, C>,
        grandparent: Option<Parent<'_, K, C>>,
    ) {
        if CHANGES_ARE_CHECKED {
            base_is_locked(place.base);
            base_is_locked(neighbour.base);
            route_is_locked(parent.route);
            if let Some(above) = grandparent {
                route_is_locked(above.route);
            }
            neighbours_meet_at(parent, place, neighbour);
        }
    }

    /// Checks a node that the caller has just unlinked from `parent`, and the tree above it.
    /// `are_valid` is what the caller, which still holds them, knows of all unlinked nodes.
    #[inline]
    pub(super) fn check_unlinked<'g>(
        &'g self,
        node: NodeRef<'_, K, C>,
        parent: Option<Parent<'g, K, C>>,
        are_valid: &[bool],
        guard: &Guard<'_>,
    ) {
        if CHANGES_ARE_CHECKED {
            let is_linked = self.link_to(node, parent).leads_to(node);
            for is_valid in are_valid {
                valid_is_what_is_linked(*is_valid, is_linked);
            }
            self.only_base_node_is_the_trunk(self.root.get(guard));
        }
    }

    /// Panics, and names the invariant, if one does not hold. No other thread may use the tree
    /// meanwhile.
    pub(super) fn check_at_rest(&self) {
        let guard = &self.collector.pin();
        let root = self.root.get(guard);
        self.only_base_node_is_the_trunk(root);
        let mut ahead = vec![(root, None, None)];
        while let Some((node, low, high)) = ahead.pop() {
            match node.kind() {
                Node::Route(route) => {
                    valid_is_what_is_linked(*route.join.lock(), true);
                    key_is_on_its_side(&route.key, low, high);
                    ahead.push((route.left.get(guard), low, Some(&route.key)));
                    ahead.push((route.right.get(guard), Some(&route.key), high));
                }
                Node::Base(base) => {
                    let base = base.lock.read_unbiased();
                    valid_is_what_is_linked(base.valid, true);
                    let _ = base.container.visit(
                        KeyRange::all(),
                        Direction::Ascending,
                        &mut |key, _| {
                            key_is_on_its_side(key, low, high);
                            ControlFlow::Continue(())
                        },
                    );
                }
            }
        }
    }
}
