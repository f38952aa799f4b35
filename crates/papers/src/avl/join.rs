//! Join by heights, and split by joins (Blelloch, Ferizovic and Sun, section 4). Nothing here
//! compares keys or runs other user code (invariant 4): the caller gives a [`Path`] to split at.

use super::balance::{pop, rebalance};
use super::node::{Link, Node, Side, height};
use super::path::Path;

/// Joins `lower`, `middle` and `upper`, in this order of keys. O(|height(lower) − height(upper)|).
pub(super) fn join<K, V>(
    mut lower: Link<K, V>,
    middle: Box<Node<K, V>>,
    mut upper: Link<K, V>,
) -> Link<K, V> {
    if height(&lower) > height(&upper) {
        attach(&mut lower, Side::Upper, middle, upper);
        lower
    } else {
        attach(&mut upper, Side::Lower, middle, lower);
        upper
    }
}

/// Attaches `middle` and `shorter` to one side of the subtree at `taller`.
///
/// Goes down that side to the first subtree `t` that is at most one level higher than `shorter`.
/// There, `t` and `shorter` become the children of `middle`:
///
/// ```text
///        taller                          taller
///       a      …               →        a      …
///                 t                              middle
///                                               t      shorter
/// ```
///
/// `t` is not lower than `shorter`: its parent was at least two levels higher than `shorter`, so
/// `t` is at least as high. So `middle` is balanced and at most one level higher than `t` was, and
/// each ancestor needs at most one rebalancing, as after an insertion.
fn attach<K, V>(
    taller: &mut Link<K, V>,
    side: Side,
    mut middle: Box<Node<K, V>>,
    shorter: Link<K, V>,
) {
    match taller {
        Some(node) if node.height > height(&shorter) + 1 => {
            attach(&mut node[side], side, middle, shorter);
            rebalance(taller);
        }
        _ => {
            middle[side.opposite()] = taller.take();
            middle[side] = shorter;
            middle.refresh_height();
            *taller = Some(middle);
        }
    }
}

/// Joins `lower` and `upper`, in this order of keys. O(log n).
pub(super) fn join_two<K, V>(mut lower: Link<K, V>, upper: Link<K, V>) -> Link<K, V> {
    match pop(&mut lower, Side::Upper) {
        Some(middle) => join(lower, middle, upper),
        None => upper,
    }
}

/// Takes off the root's upper part, with the root's entry unless nothing is below it. O(log n).
pub(super) fn split_at_root<K, V>(root: &mut Link<K, V>) -> Link<K, V> {
    let mut middle = root.take()?;
    let upper = middle[Side::Upper].take();
    let lower = middle[Side::Lower].take();
    if lower.is_some() {
        *root = lower;
        join(None, middle, upper)
    } else {
        *root = join(None, middle, None);
        upper
    }
}

/// The result of [`split_between`].
pub(super) struct Parts<K, V> {
    pub(super) below: Link<K, V>,
    pub(super) inside: Link<K, V>,
    pub(super) above: Link<K, V>,
}

/// Splits a tree in three at the boundaries `low` and `high`; `low` must not be beyond `high`.
/// O(log n): each join on the way up costs a difference of heights; their sum is the tree's height.
pub(super) fn split_between<K, V>(link: Link<K, V>, low: Path, high: Path) -> Parts<K, V> {
    let (Some(mut node), Some((low_side, low)), Some((high_side, high))) =
        (link, low.step(), high.step())
    else {
        return Parts {
            below: None,
            inside: None,
            above: None,
        };
    };
    let lower = node[Side::Lower].take();
    let upper = node[Side::Upper].take();
    match (low_side, high_side) {
        // Both boundaries lie below this node.
        (Side::Lower, Side::Lower) => {
            let parts = split_between(lower, low, high);
            let above = join(parts.above, node, upper);
            Parts { above, ..parts }
        }
        // Both boundaries lie above this node.
        (Side::Upper, Side::Upper) => {
            let parts = split_between(upper, low, high);
            let below = join(lower, node, parts.below);
            Parts { below, ..parts }
        }
        // This node lies between the boundaries.
        (Side::Lower, Side::Upper) => {
            let (below, inside_lower) = split_at(lower, low);
            let (inside_upper, above) = split_at(upper, high);
            Parts {
                below,
                inside: join(inside_lower, node, inside_upper),
                above,
            }
        }
        // Possible only if an `Ord` contradicts itself. No entry is lost.
        (Side::Upper, Side::Lower) => Parts {
            below: join(lower, node, upper),
            inside: None,
            above: None,
        },
    }
}

/// Splits a tree in two at a boundary. O(log n), like [`split_between`].
fn split_at<K, V>(link: Link<K, V>, boundary: Path) -> (Link<K, V>, Link<K, V>) {
    let (Some(mut node), Some((side, boundary))) = (link, boundary.step()) else {
        return (None, None);
    };
    let lower = node[Side::Lower].take();
    let upper = node[Side::Upper].take();
    match side {
        Side::Lower => {
            let (below, above) = split_at(lower, boundary);
            (below, join(above, node, upper))
        }
        Side::Upper => {
            let (below, above) = split_at(upper, boundary);
            (join(lower, node, below), above)
        }
    }
}
