//! Checks the invariants.

use super::node::{Link, Side, height};

/// Panics unless invariants 1, 2 and 3 hold in the subtree at `link`. O(n).
pub(super) fn check<K: Ord, V>(link: &Link<K, V>) {
    check_after(link, None);
}

/// Checks a subtree whose keys must all be above `previous`; returns the largest key so far.
fn check_after<'a, K: Ord, V>(link: &'a Link<K, V>, previous: Option<&'a K>) -> Option<&'a K> {
    let Some(node) = link else { return previous };
    let (lower, upper) = (height(&node[Side::Lower]), height(&node[Side::Upper]));
    assert_eq!(node.height, 1 + lower.max(upper), "height (invariant 2)");
    assert!(
        lower.abs_diff(upper) <= 1,
        "balance (invariant 3): children of heights {lower} and {upper}"
    );
    let previous = check_after(&node[Side::Lower], previous);
    assert!(
        previous.is_none_or(|previous| *previous < node.key),
        "order (invariant 1)"
    );
    check_after(&node[Side::Upper], Some(&node.key))
}
