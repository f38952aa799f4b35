//! Rotations, and removing a node. Nothing here compares keys or runs user code (invariant 4).

use super::node::{Link, Node, Side, height};

/// Restores height and balance (invariants 2 and 3) at `link`. Its two subtrees must hold them
/// already, and differ by at most two in height.
pub(super) fn rebalance<K, V>(link: &mut Link<K, V>) {
    let Some(node) = link else { return };
    let (lower, upper) = (height(&node[Side::Lower]), height(&node[Side::Upper]));
    if lower > upper + 1 {
        lighten(link, Side::Lower);
    } else if upper > lower + 1 {
        lighten(link, Side::Upper);
    } else {
        node.refresh_height();
    }
}

/// Rotates at `link`, whose subtree on the side `heavy` is two levels higher than the other.
///
/// ```text
///     x               y                  x                   z
///   a   y     →     x   c              a   y       →      x     y
///      b c         a b                    z c            a b1 b2 c
///                                       b1 b2
///   one rotation when `b` is           two rotations when `z`, the inner subtree
///   not higher than `c`                of `y`, is higher than `c`
/// ```
fn lighten<K, V>(link: &mut Link<K, V>, heavy: Side) {
    let inner = heavy.opposite();
    if let Some(node) = link
        && let Some(child) = &node[heavy]
        && height(&child[inner]) > height(&child[heavy])
    {
        rotate(&mut node[heavy], inner);
    }
    rotate(link, heavy);
}

/// Moves the child on side `from` to its parent's place, and the parent below it on the other side.
fn rotate<K, V>(link: &mut Link<K, V>, from: Side) {
    let Some(mut parent) = link.take() else {
        return;
    };
    let Some(mut child) = parent[from].take() else {
        *link = Some(parent);
        return;
    };
    parent[from] = child[from.opposite()].take();
    parent.refresh_height();
    child[from.opposite()] = Some(parent);
    child.refresh_height();
    *link = Some(child);
}

/// Removes the outermost node on one side, without children, and rebalances the path to it.
pub(super) fn pop<K, V>(link: &mut Link<K, V>, side: Side) -> Link<K, V> {
    match link {
        Some(node) if node[side].is_some() => {
            let popped = pop(&mut node[side], side);
            rebalance(link);
            popped
        }
        _ => {
            let mut popped = link.take()?;
            *link = popped[side.opposite()].take();
            Some(popped)
        }
    }
}

/// Removes the node at `link` from its subtree, without its children, and rebalances what remains.
pub(super) fn unlink<K, V>(link: &mut Link<K, V>) -> Option<Box<Node<K, V>>> {
    let mut node = link.take()?;
    let lower = node[Side::Lower].take();
    let mut upper = node[Side::Upper].take();
    // The next entry takes the place of the removed one.
    *link = match pop(&mut upper, Side::Lower) {
        Some(mut successor) => {
            successor[Side::Lower] = lower;
            successor[Side::Upper] = upper;
            Some(successor)
        }
        None => lower,
    };
    rebalance(link);
    Some(node)
}
