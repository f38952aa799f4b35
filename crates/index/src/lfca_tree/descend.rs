//! From the root to a base node.

use super::Tree;
use super::node::{BaseRef, Link, Node, NodePtr, RouteNode};
use crate::contract::Direction;
use crate::kit::{self, SearchKey, Spec};
use tremula_sync::reclaim::Guard;

/// Where a descent goes in the order of keys.
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
            Self::At(probe) => probe.key.compare(&route.key).is_lt(),
            Self::Below(probe) => probe.key.compare(&route.key).is_le(),
            Self::First => true,
            Self::Last => false,
        }
    }
}

/// The base node at the end of a descent, and the keys of the nearest route nodes passed on either
/// side.
pub(super) struct Place<'g, S: Spec> {
    pub(super) base: BaseRef<'g, S>,
    low: Option<&'g S::Key>,
    high: Option<&'g S::Key>,
}

impl<'g, S: Spec> Place<'g, S> {
    /// The key at which the neighbour in this direction, if there is one, begins or ends. The base
    /// node may reach further: see invariant 6.
    pub(super) fn boundary(&self, direction: Direction) -> Option<&'g S::Key> {
        match direction {
            Direction::Ascending => self.high,
            Direction::Descending => self.low,
        }
    }
}

impl<S: Spec> Tree<S> {
    /// Follows the route nodes to a base node, which was linked at some moment during the descent.
    #[inline]
    pub(super) fn locate<'g>(
        &'g self,
        position: &Position<'_, S>,
        guard: &'g Guard<'_>,
    ) -> Place<'g, S> {
        Self::locate_below(&self.root, position, guard)
    }

    /// Does the same from a link somewhere in the tree. The boundaries above it are not known.
    #[inline]
    pub(super) fn locate_below<'g>(
        link: &'g Link<S>,
        position: &Position<'_, S>,
        guard: &'g Guard<'_>,
    ) -> Place<'g, S> {
        let mut node = link.load();
        let (mut low, mut high) = (None, None);
        loop {
            // SAFETY: the node was linked when this thread loaded the link; or its parent, which
            // still led to it, was unlinked after this thread was pinned. It is not freed yet.
            match unsafe { node.as_ref() } {
                Node::Base(_) => {
                    // SAFETY: as for `as_ref`: it was linked during this pin.
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

    /// The route node above `wanted`, or `None` if `wanted` is the root; and the number of route
    /// nodes from the root to `wanted`, inclusive. An error if `wanted` is not linked.
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
        self.parent_anywhere(wanted)
    }

    /// The same, for a route node that its key does not lead to: it is not linked any more, or the
    /// order of the keys contradicts itself. Looks at all route nodes.
    #[cold]
    fn parent_anywhere(&self, wanted: NodePtr<S>) -> Result<(Option<NodePtr<S>>, usize), Unlinked> {
        let mut waiting = vec![(None, 1, self.root.load())];
        while let Some((above, depth, node)) = waiting.pop() {
            if node == wanted {
                return Ok((above, depth));
            }
            // SAFETY: as in `locate_below`.
            if let Node::Route(route) = unsafe { node.as_ref() } {
                let below = |link: &Link<S>| (Some(node), depth + 1, link.load());
                waiting.extend([below(&route.left), below(&route.right)]);
            }
        }
        Err(Unlinked)
    }
}

/// The route node is not linked any more.
pub(super) struct Unlinked;
