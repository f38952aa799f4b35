//! From the root to a base node.

use super::Tree;
use super::node::{BaseRef, Link, Node, NodePtr, RouteNode};
use crate::contract::Direction;
use crate::kit::{self, SearchKey, Spec};
use tremula_sync::reclaim::Guard;

/// Where to go in the order of keys.
pub(super) type Position<'k, S> = kit::Position<SearchKey<'k, S>>;

impl<S: Spec> Position<'_, S> {
    #[inline]
    fn is_left_of(&self, route: &RouteNode<S>) -> bool {
        match self {
            Self::At(probe) if S::HEAD_IS_KEY => probe.head < route.head,
            Self::Below(probe) if S::HEAD_IS_KEY => probe.head <= route.head,
            Self::At(probe) | Self::Below(probe) if probe.head != route.head => {
                probe.head < route.head
            }
            Self::At(probe) => *probe.key < route.key,
            Self::Below(probe) => *probe.key <= route.key,
            Self::First => true,
            Self::Last => false,
        }
    }
}

/// A base node, and between which keys it was found.
pub(super) struct Place<'g, S: Spec> {
    pub(super) base: BaseRef<'g, S>,
    low: Option<&'g S::Key>,
    high: Option<&'g S::Key>,
}

impl<'g, S: Spec> Place<'g, S> {
    /// The key at which the neighbour in this direction begins or ends, if there is one. The base
    /// node may reach further: see invariant 6.
    pub(super) fn boundary(&self, direction: Direction) -> Option<&'g S::Key> {
        match direction {
            Direction::Ascending => self.high,
            Direction::Descending => self.low,
        }
    }
}

impl<S: Spec> Tree<S> {
    /// Follows the route nodes to a base node. It was linked at some moment meanwhile.
    #[inline]
    pub(super) fn locate<'g>(
        &'g self,
        position: &Position<'_, S>,
        guard: &'g Guard<'_>,
    ) -> Place<'g, S> {
        Self::locate_below(&self.root, position, guard)
    }

    /// The same, from a link somewhere in the tree; boundaries above it are not known.
    #[inline]
    pub(super) fn locate_below<'g>(
        link: &'g Link<S>,
        position: &Position<'_, S>,
        guard: &'g Guard<'_>,
    ) -> Place<'g, S> {
        let mut node = link.load();
        let (mut low, mut high) = (None, None);
        loop {
            // SAFETY: the node was linked when it was loaded, or its parent was unlinked after
            // this thread was pinned and still had it: it is not freed yet.
            match unsafe { node.as_ref() } {
                Node::Base(_) => {
                    // SAFETY: as above.
                    let base = unsafe { BaseRef::of(node, guard) };
                    return Place { base, low, high };
                }
                Node::Route(route) => {
                    if position.is_left_of(route) {
                        high = Some(&route.key);
                        node = route.left.load();
                    } else {
                        low = Some(&route.key);
                        node = route.right.load();
                    }
                }
            }
        }
    }

    /// The route node above another, `None` if that is the root; or `Err` if it is not linked.
    /// With each the number of route nodes from the root to the lower one, inclusive.
    pub(super) fn parent_of(
        &self,
        wanted: NodePtr<S>,
        key: &S::Key,
        _pinned: &Guard<'_>,
    ) -> Result<(Option<NodePtr<S>>, usize), Unlinked> {
        let position = Position::At(SearchKey::new(key));
        let (mut above, mut depth) = (None, 1);
        let mut node = self.root.load();
        // SAFETY: as in `locate_below`.
        while let Node::Route(route) = unsafe { node.as_ref() } {
            if node == wanted {
                return Ok((above, depth));
            }
            above = Some(node);
            depth += 1;
            node = if position.is_left_of(route) {
                route.left.load()
            } else {
                route.right.load()
            };
        }
        Err(Unlinked)
    }
}

/// A route node is not in the tree any more.
pub(super) struct Unlinked;
