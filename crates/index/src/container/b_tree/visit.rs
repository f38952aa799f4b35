//! Visiting a range in either direction.

use super::node::{Inner, Leaf, Node};
use crate::contract::{Direction, KeyRange};
use crate::key::KeyHead;
use std::ops::{Bound, ControlFlow, Range};

impl<K: Ord, V, H: KeyHead<K>, const N: usize> Leaf<K, V, H, N> {
    /// The indices of the entries within `range`.
    fn places(&self, range: KeyRange<'_, K>) -> Range<usize> {
        let from = match range.low {
            Bound::Included(low) => self.keys().below_sought(low),
            Bound::Excluded(low) => self.keys().at_or_below_sought(low),
            Bound::Unbounded => 0,
        };
        let to = match range.high {
            Bound::Included(high) => self.keys().at_or_below_sought(high),
            Bound::Excluded(high) => self.keys().below_sought(high),
            Bound::Unbounded => self.len(),
        };
        from..to.max(from)
    }
}

impl<K: Ord, V, H: KeyHead<K>, const N: usize> Inner<K, V, H, N> {
    /// The first and the last child that may have entries within `range`.
    fn outermost(&self, range: KeyRange<'_, K>) -> (usize, usize) {
        let first = match range.low {
            Bound::Included(low) | Bound::Excluded(low) => self.keys().at_or_below_sought(low),
            Bound::Unbounded => 0,
        };
        let last = match range.high {
            Bound::Included(high) | Bound::Excluded(high) => self.keys().at_or_below_sought(high),
            Bound::Unbounded => self.keys().len(),
        };
        (first, last)
    }
}

impl<K: Ord, V, H: KeyHead<K>, const N: usize> Node<K, V, H, N> {
    /// Visits the entries within `range`, whose bounds are not those of an empty range.
    pub(super) fn visit<'a>(
        &'a self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&'a K, &'a V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Self::Leaf(leaf) => {
                let mut entry = |at: usize| visit(&leaf.keys().keys[at], &leaf.values()[at]);
                let mut places = leaf.places(range);
                match direction {
                    Direction::Ascending => places.try_for_each(&mut entry),
                    Direction::Descending => places.rev().try_for_each(&mut entry),
                }
            }
            Self::Inner(inner) => {
                let (first, last) = inner.outermost(range);
                // Only the outermost children can have entries outside the range.
                let mut child = |at: usize| {
                    let low = if at == first {
                        range.low
                    } else {
                        Bound::Unbounded
                    };
                    let high = if at == last {
                        range.high
                    } else {
                        Bound::Unbounded
                    };
                    inner.children()[at].visit(KeyRange::between(low, high), direction, visit)
                };
                match direction {
                    Direction::Ascending => (first..=last).try_for_each(&mut child),
                    Direction::Descending => (first..=last).rev().try_for_each(&mut child),
                }
            }
        }
    }
}
