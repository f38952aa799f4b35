//! Visits a range in order.

use super::node::{Link, Side};
use std::ops::{Bound, ControlFlow};
use tremula_index::KeyRange;

/// Visits the entries of `range`, beginning at side `from`, until `visit` breaks.
///
/// A key is compared with a bound only on the way down to that bound. Every subtree strictly inside
/// the range is visited with both bounds open.
pub(super) fn visit<'a, K: Ord, V>(
    link: &'a Link<K, V>,
    range: KeyRange<'_, K>,
    from: Side,
    visitor: &mut dyn FnMut(&'a K, &'a V) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some(node) = link else {
        return ControlFlow::Continue(());
    };
    let (above_low, below_high) = (range.starts_before(&node.key), range.ends_after(&node.key));
    // The part of the range on one side of this node, if any.
    let part = |side| match side {
        Side::Lower if !above_low => None,
        Side::Lower if below_high => Some(KeyRange::between(range.low, Bound::Unbounded)),
        Side::Upper if !below_high => None,
        Side::Upper if above_low => Some(KeyRange::between(Bound::Unbounded, range.high)),
        Side::Lower | Side::Upper => Some(range),
    };
    if let Some(part) = part(from) {
        visit(&node[from], part, from, visitor)?;
    }
    if above_low && below_high {
        visitor(&node.key, &node.value)?;
    }
    let to = from.opposite();
    if let Some(part) = part(to) {
        visit(&node[to], part, from, visitor)?;
    }
    ControlFlow::Continue(())
}
