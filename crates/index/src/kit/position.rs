//! Positions in the order of keys.

use crate::contract::Direction;
use std::ops::Bound;

/// Where a search goes in the order of keys: to the node that is responsible there. `P` is a key,
/// or a key with its head ([`SearchKey`](super::SearchKey)).
#[derive(Clone, Copy)]
pub enum Position<P> {
    /// Before every key.
    First,
    /// At a key.
    At(P),
    /// Just below a key.
    Below(P),
    /// After every key.
    Last,
}

impl<P> Position<P> {
    /// Where a walk over all keys begins.
    pub fn end(direction: Direction) -> Self {
        match direction {
            Direction::Ascending => Self::First,
            Direction::Descending => Self::Last,
        }
    }

    /// Where a walk over a range begins.
    #[inline]
    pub fn start(low: Bound<P>, high: Bound<P>, direction: Direction) -> Self {
        match (direction, low, high) {
            (Direction::Ascending, Bound::Included(low) | Bound::Excluded(low), _) => Self::At(low),
            (Direction::Descending, _, Bound::Included(high)) => Self::At(high),
            (Direction::Descending, _, Bound::Excluded(high)) => Self::Below(high),
            _ => Self::end(direction),
        }
    }

    /// Where a walk continues beyond the boundary between two nodes.
    #[inline]
    pub fn beyond(boundary: P, direction: Direction) -> Self {
        match direction {
            Direction::Ascending => Self::At(boundary),
            Direction::Descending => Self::Below(boundary),
        }
    }
}
