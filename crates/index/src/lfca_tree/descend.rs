//! From the root to a base node.

use super::LfcaTree;
use super::contents::Probe;
use super::node::{BaseRef, Link, Node, NodePtr, RouteNode};
use crate::contract::{Direction, KeyRange, Storable};
use crate::key::{KeyHead, head_is_key};
use std::ops::Bound;
use tremula_sync::reclaim::Guard;

/// Where to go in the order of keys.
pub(super) enum Position<'k, K, H> {
    /// To the base node that is responsible for a key.
    At(Probe<'k, K, H>),
    /// To the base node that is responsible for the keys just below a key.
    Below(Probe<'k, K, H>),
    /// To the leftmost base node.
    First,
    /// To the rightmost base node.
    Last,
}

impl<K, H> Clone for Position<'_, K, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, H> Copy for Position<'_, K, H> {}

impl<'k, K: Ord + Storable, H: KeyHead<K>> Position<'k, K, H> {
    /// Where a walk in this direction begins.
    pub(super) fn end(direction: Direction) -> Self {
        match direction {
            Direction::Ascending => Self::First,
            Direction::Descending => Self::Last,
        }
    }

    /// Where a walk over a range in this direction begins.
    pub(super) fn start(range: KeyRange<'k, K>, direction: Direction) -> Self {
        match (direction, range.low, range.high) {
            (Direction::Ascending, Bound::Included(low) | Bound::Excluded(low), _) => {
                Self::At(Probe::new(low))
            }
            (Direction::Descending, _, Bound::Included(high)) => Self::At(Probe::new(high)),
            (Direction::Descending, _, Bound::Excluded(high)) => Self::Below(Probe::new(high)),
            _ => Self::end(direction),
        }
    }

    /// Where the walk goes on behind this boundary between base nodes, unless the range ends
    /// there.
    pub(super) fn beyond(
        range: KeyRange<'_, K>,
        boundary: &'k K,
        direction: Direction,
    ) -> Option<Self> {
        let probe = Probe::new(boundary);
        match direction {
            Direction::Ascending => range.ends_after(boundary).then_some(Self::At(probe)),
            // Keys below the boundary are wanted if the range begins below it.
            Direction::Descending => match range.low {
                Bound::Included(low) | Bound::Excluded(low) => low < boundary,
                Bound::Unbounded => true,
            }
            .then_some(Self::Below(probe)),
        }
    }

    #[inline]
    fn is_left_of<V: Storable>(&self, route: &RouteNode<K, V, H>) -> bool {
        match self {
            Self::At(probe) if head_is_key::<K, H>() => probe.head() < route.head,
            Self::Below(probe) if head_is_key::<K, H>() => probe.head() <= route.head,
            Self::At(probe) | Self::Below(probe) if probe.head() != route.head => {
                probe.head() < route.head
            }
            Self::At(probe) => *probe.key() < route.key,
            Self::Below(probe) => *probe.key() <= route.key,
            Self::First => true,
            Self::Last => false,
        }
    }
}

/// A base node, and between which keys it was found.
pub(super) struct Place<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> {
    pub(super) base: BaseRef<'g, K, V, H>,
    low: Option<&'g K>,
    high: Option<&'g K>,
}

impl<'g, K: Ord + Storable, V: Storable, H: KeyHead<K>> Place<'g, K, V, H> {
    /// The key at which the neighbour in this direction begins or ends, if there is one. The base
    /// node may reach further: see invariant 6.
    pub(super) fn boundary(&self, direction: Direction) -> Option<&'g K> {
        match direction {
            Direction::Ascending => self.high,
            Direction::Descending => self.low,
        }
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> LfcaTree<K, V, H> {
    /// Follows the route nodes to a base node. It was linked at some moment meanwhile.
    #[inline]
    pub(super) fn locate<'g>(
        &'g self,
        position: &Position<'_, K, H>,
        guard: &'g Guard<'_>,
    ) -> Place<'g, K, V, H> {
        Self::locate_below(&self.root, position, guard)
    }

    /// The same, from a link somewhere in the tree; boundaries above it are not known.
    #[inline]
    pub(super) fn locate_below<'g>(
        link: &'g Link<K, V, H>,
        position: &Position<'_, K, H>,
        guard: &'g Guard<'_>,
    ) -> Place<'g, K, V, H> {
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
        wanted: NodePtr<K, V, H>,
        key: &K,
        _pinned: &Guard<'_>,
    ) -> Result<(Option<NodePtr<K, V, H>>, usize), Unlinked> {
        let position = Position::At(Probe::new(key));
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
