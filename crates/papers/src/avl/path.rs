//! Paths: an operation finds its paths with comparisons before it changes anything, and then
//! follows them without comparisons (invariant 4).

use super::balance::rebalance;
use super::node::{Link, Side};
use std::cmp::Ordering;

/// A way down from the root, one bit a level: 0 to the lower child, 1 to the upper.
///
/// 128 levels are enough: by invariant 3 a tree of that height has more than 2⁸⁸ entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// The first step is the lowest bit.
    bits: u128,
    length: u8,
}

impl Path {
    const EMPTY: Self = Self { bits: 0, length: 0 };

    fn push(&mut self, side: Side) {
        self.bits |= (side as u128) << self.length;
        self.length += 1;
    }

    /// The first step, and the rest of the path below it.
    pub(super) fn step(self) -> Option<(Side, Self)> {
        let length = self.length.checked_sub(1)?;
        let side = match self.bits & 1 {
            0 => Side::Lower,
            _ => Side::Upper,
        };
        let bits = self.bits >> 1;
        Some((side, Self { bits, length }))
    }

    /// The path to the key that `compare` finds equal, or to the empty place where it belongs.
    /// `compare` compares the wanted key with its argument.
    pub(super) fn search<K, V>(
        mut link: &Link<K, V>,
        mut compare: impl FnMut(&K) -> Ordering,
    ) -> Self {
        let mut path = Self::EMPTY;
        while let Some(node) = link {
            let side = match compare(&node.key) {
                Ordering::Less => Side::Lower,
                Ordering::Greater => Side::Upper,
                Ordering::Equal => break,
            };
            path.push(side);
            link = &node[side];
        }
        path
    }

    /// The path to the empty place between the keys that are not `above` and those that are, which
    /// must all come after the former.
    pub(super) fn boundary<K, V>(link: &Link<K, V>, mut above: impl FnMut(&K) -> bool) -> Self {
        Self::search(link, |key| {
            if above(key) {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        })
    }

    /// The subtree at the end of the path.
    pub(super) fn end<K, V>(self, mut link: &Link<K, V>) -> &Link<K, V> {
        let mut path = self;
        while let (Some((side, rest)), Some(node)) = (path.step(), link) {
            link = &node[side];
            path = rest;
        }
        link
    }

    /// The subtree at the end of the path, to change it.
    pub(super) fn end_mut<K, V>(self, mut link: &mut Link<K, V>) -> &mut Link<K, V> {
        let mut path = self;
        while let Some((side, rest)) = path.step() {
            let Some(node) = link else {
                unreachable!("a path leads through nodes of the tree it was found in");
            };
            link = &mut node[side];
            path = rest;
        }
        link
    }

    /// Restores height and balance at every node of the path, from its end up to `link`, after the
    /// subtree at the end has grown or shrunk by one level.
    pub(super) fn rebalance<K, V>(self, link: &mut Link<K, V>) {
        if let (Some((side, rest)), Some(node)) = (self.step(), link.as_mut()) {
            rest.rebalance(&mut node[side]);
            rebalance(link);
        }
    }
}
