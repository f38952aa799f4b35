//! The descent from the root to a base node.

use super::node::{BaseNode, Link, Node, NodeRef, RouteNode};
use super::{CaTree, Container, Direction};
use crate::form::Sought;
use crate::kit;
use tremula_sync::reclaim::Guard;

pub(super) type Position<'k, K> = kit::Position<Sought<'k, K>>;

impl<K: Ord> Position<'_, K> {
    #[inline]
    fn is_left_of(self, boundary: &K) -> bool {
        match self {
            Self::At(key) => key.compare(boundary).is_lt(),
            Self::Below(key) => key.compare(boundary).is_le(),
            Self::First => true,
            Self::Last => false,
        }
    }
}

/// The base node at which a descent has ended, with what the descent passed.
pub(super) struct Place<'g, K, C> {
    pub(super) node: NodeRef<'g, K, C>,
    pub(super) base: &'g BaseNode<C>,
    pub(super) parent: Option<Parent<'g, K, C>>,
    /// Where the range of the base node begins; `None` if it is the leftmost.
    pub(super) low: Option<&'g K>,
    /// Where the range of its right neighbour begins; `None` if it is the rightmost.
    pub(super) high: Option<&'g K>,
}

/// The route node directly above a base node.
pub(super) struct Parent<'g, K, C> {
    pub(super) node: NodeRef<'g, K, C>,
    pub(super) route: &'g RouteNode<K, C>,
}

impl<K, C> Clone for Parent<'_, K, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, C> Copy for Parent<'_, K, C> {}

impl<'g, K, C> Place<'g, K, C> {
    /// Whether a scan in this direction comes to this base node directly from `boundary`, the key
    /// of a route node. Compares addresses, so that the answer holds even if keys contradict one
    /// another (invariant 9).
    pub(super) fn begins_at(&self, boundary: &K, direction: Direction) -> bool {
        self.boundary(direction.opposite())
            .is_some_and(|near| std::ptr::eq(near, boundary))
    }

    /// The boundary to the neighbour in this direction, if it has one.
    pub(super) fn boundary(&self, direction: Direction) -> Option<&'g K> {
        match direction {
            Direction::Ascending => self.high,
            Direction::Descending => self.low,
        }
    }
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// The trunk, if it is the only base node. It may be invalid by the time the caller locks it.
    #[inline]
    pub(super) fn undivided(&self) -> Option<Place<'_, K, C>> {
        let (node, base) = self.trunk.get();
        let place = Place {
            node,
            base,
            parent: None,
            low: None,
            high: None,
        };
        self.root.leads_to(node).then_some(place)
    }

    /// Follows the route nodes to a base node. It may be invalid by the time the caller locks it.
    #[inline]
    pub(super) fn locate<'g>(
        &self,
        position: Position<'_, K>,
        guard: &'g Guard<'_>,
    ) -> Place<'g, K, C> {
        Self::locate_below(&self.root, position, guard)
    }

    /// The same, from a link somewhere in the tree. The boundaries above that link are not known.
    #[inline]
    pub(super) fn locate_below<'g>(
        link: &Link<K, C>,
        position: Position<'_, K>,
        guard: &'g Guard<'_>,
    ) -> Place<'g, K, C> {
        let mut node = link.get(guard);
        let (mut parent, mut low, mut high) = (None, None, None);
        loop {
            match node.kind() {
                Node::Base(base) => {
                    return Place {
                        node,
                        base,
                        parent,
                        low,
                        high,
                    };
                }
                Node::Route(route) => {
                    parent = Some(Parent { node, route });
                    if position.is_left_of(&route.key) {
                        high = Some(&route.key);
                        node = route.left.get(guard);
                    } else {
                        low = Some(&route.key);
                        node = route.right.get(guard);
                    }
                }
            }
        }
    }
}
