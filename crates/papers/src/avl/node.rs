//! The node and its two sides.

use std::ops::{Index, IndexMut};

/// A subtree, possibly empty.
pub(super) type Link<K, V> = Option<Box<Node<K, V>>>;

/// One entry and the subtrees on its two sides.
pub(super) struct Node<K, V> {
    pub(super) key: K,
    pub(super) value: V,
    children: [Link<K, V>; 2],
    /// The levels of the subtree that starts here: at most 1.45 log₂(n + 2), so 8 bits are enough
    /// for more entries than can be addressed.
    pub(super) height: u8,
}

/// A side of a node. A parameter of rotations and joins, which are otherwise symmetric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Towards smaller keys.
    Lower = 0,
    /// Towards larger keys.
    Upper = 1,
}

impl Side {
    pub(super) const fn opposite(self) -> Self {
        match self {
            Self::Lower => Self::Upper,
            Self::Upper => Self::Lower,
        }
    }
}

impl<K, V> Index<Side> for Node<K, V> {
    type Output = Link<K, V>;

    fn index(&self, side: Side) -> &Link<K, V> {
        &self.children[side as usize]
    }
}

impl<K, V> IndexMut<Side> for Node<K, V> {
    fn index_mut(&mut self, side: Side) -> &mut Link<K, V> {
        &mut self.children[side as usize]
    }
}

impl<K, V> Node<K, V> {
    /// A node without children.
    pub(super) fn leaf(key: K, value: V) -> Box<Self> {
        Box::new(Self {
            key,
            value,
            children: [None, None],
            height: 1,
        })
    }

    pub(super) fn entry(&self) -> (&K, &V) {
        (&self.key, &self.value)
    }

    /// The entry of a node that has been removed from its tree.
    pub(super) fn into_entry(self) -> (K, V) {
        debug_assert!(self.children.iter().all(Option::is_none));
        (self.key, self.value)
    }

    /// Computes the height from the children's (invariant 2).
    pub(super) fn refresh_height(&mut self) {
        let [lower, upper] = &self.children;
        self.height = 1 + height(lower).max(height(upper));
    }
}

/// The levels of a subtree, 0 if it is empty.
pub(super) fn height<K, V>(link: &Link<K, V>) -> u8 {
    link.as_ref().map_or(0, |node| node.height)
}

/// The number of entries in a subtree.
pub(super) fn count<K, V>(link: &Link<K, V>) -> usize {
    link.as_ref().map_or(0, |node| {
        1 + count(&node[Side::Lower]) + count(&node[Side::Upper])
    })
}
