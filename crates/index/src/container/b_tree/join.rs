//! Split and join: they move whole subtrees and touch only the nodes along the cut.
//!
//! Join inserts the root of the shallower tree into the other tree, on its outermost path at the
//! matching height, and splits nodes upwards where they overflow: O(difference in height × N).
//! Split descends to the cut, and on its way back up joins the subtrees to the left of the path
//! into one tree and those to the right into another. The differences in height add up to the
//! height of the tree, so split is O(height × N). (Blelloch, Ferizovic, Sun, "Just Join for
//! Parallel Ordered Sets", SPAA 2016, has the argument for binary trees.)

use super::BTree;
use super::keys::{Headed, SearchKey};
use super::node::{Inner, Node, Upper};
use crate::container::Dropped;
use crate::contract::KeyRange;
use crate::form::Sought;
use crate::key::KeyHead;
use std::mem;
use std::ops::Bound;

/// A tree that is being split or joined: its root and height, 0 if it is empty.
struct Part<K, V, H: KeyHead<K>, const N: usize> {
    root: Option<Node<K, V, H, N>>,
    height: usize,
}

/// Where to cut: the child to descend to at each inner node, and the entry of the leaf that
/// becomes the first of the upper part.
pub(super) struct Cut {
    children: Vec<usize>,
    entry: usize,
}

impl<K: Ord + Clone, V, H: KeyHead<K>, const N: usize> BTree<K, V, H, N> {
    fn take_part(&mut self) -> Part<K, V, H, N> {
        let height = self.root.as_ref().map_or(0, Node::height);
        Part {
            root: self.root.take(),
            height,
        }
    }

    /// Appends `upper`; `separator` lies above all of `self`'s keys and at or below `upper`'s.
    /// Runs no user code.
    pub(super) fn append(&mut self, separator: Headed<K, H>, mut upper: Self) {
        self.dropped.append(&mut upper.dropped);
        let lower = self.take_part();
        self.root = lower
            .join(separator, upper.take_part(), &mut self.dropped)
            .root;
        self.lower_root();
    }

    /// Where to cut for two parts of about the same size. `None` if there are fewer than two
    /// entries.
    pub(super) fn middle(&self) -> Option<Cut> {
        let root = self.root.as_ref()?;
        match root {
            Node::Leaf(leaf) => (leaf.len() > 1).then(|| Cut {
                children: vec![],
                entry: leaf.len() / 2,
            }),
            Node::Inner(inner) => {
                let mut children = vec![0; root.height() - 1];
                children[0] = inner.children().len() / 2;
                Some(Cut { children, entry: 0 })
            }
        }
    }

    /// Where to cut so that the upper part begins with the first key above `key`, or at or above it
    /// if `inclusive`.
    fn cut(&self, key: Sought<'_, K>, inclusive: bool) -> Option<Cut> {
        let key = SearchKey::new(key.key());
        let mut node = self.root.as_ref()?;
        let mut children = Vec::new();
        loop {
            match node {
                Node::Inner(inner) => {
                    let at = inner.keys().at_or_below(key);
                    children.push(at);
                    node = &inner.children()[at];
                }
                Node::Leaf(leaf) => {
                    let entry = if inclusive {
                        leaf.keys().below(key)
                    } else {
                        leaf.keys().at_or_below(key)
                    };
                    return Some(Cut { children, entry });
                }
            }
        }
    }

    /// Cuts: `self` keeps the entries before the cut. `None` if there are none behind it.
    pub(super) fn split_at(&mut self, cut: &Cut) -> Option<(Headed<K, H>, Self)> {
        let separator = self.root.as_ref()?.key_at(cut)?;
        let whole = self.take_part();
        let (lower, upper) = whole.split(&cut.children, cut.entry, &mut self.dropped);
        self.root = lower.root;
        self.lower_root();
        let mut upper = Self::of(upper.root);
        upper.lower_root();
        Some((separator, upper))
    }

    /// Takes out the entries of `range`.
    pub(super) fn take_range(&mut self, range: KeyRange<'_, K>) -> Self {
        if range.is_empty() {
            return Self::of(None);
        }
        let cut = match range.low {
            Bound::Included(low) => self.cut(low, true),
            Bound::Excluded(low) => self.cut(low, false),
            Bound::Unbounded => None,
        };
        let (separator, upper) = match (range.low, cut) {
            (Bound::Unbounded, _) => (None, Self::of(self.root.take())),
            (_, Some(cut)) => match self.split_at(&cut) {
                Some((separator, upper)) => (Some(separator), upper),
                None => return Self::of(None),
            },
            (_, None) => return Self::of(None),
        };
        let mut taken = Taken {
            lower: self,
            separator,
            upper,
        };
        let cut = match range.high {
            Bound::Included(high) => taken.upper.cut(high, false),
            Bound::Excluded(high) => taken.upper.cut(high, true),
            Bound::Unbounded => None,
        };
        let rest = cut.and_then(|cut| taken.upper.split_at(&cut));
        let result = Self::of(taken.upper.root.take());
        if let Some((separator, rest)) = rest {
            taken.lower.append(separator, rest);
        }
        result
    }
}

/// The upper part of a tree while [`BTree::take_range`] searches for the end of the range. If a
/// comparison panics, its `Drop` appends the part again.
struct Taken<'a, K: Ord + Clone, V, H: KeyHead<K>, const N: usize> {
    lower: &'a mut BTree<K, V, H, N>,
    separator: Option<Headed<K, H>>,
    upper: BTree<K, V, H, N>,
}

impl<K: Ord + Clone, V, H: KeyHead<K>, const N: usize> Drop for Taken<'_, K, V, H, N> {
    fn drop(&mut self) {
        self.lower.dropped.append(&mut self.upper.dropped);
        let upper = BTree::of(self.upper.root.take());
        match self.separator.take() {
            Some(separator) if upper.root.is_some() => self.lower.append(separator, upper),
            Some(separator) => self.lower.dropped.keep(separator.key),
            None if upper.root.is_some() => self.lower.root = upper.root,
            None => (),
        }
    }
}

impl<K: Ord + Clone, V, H: KeyHead<K>, const N: usize> Part<K, V, H, N> {
    const EMPTY: Self = Self {
        root: None,
        height: 0,
    };

    /// The children of `inner`, a node of height `height`, as a tree.
    fn of(mut inner: Box<Inner<K, V, H, N>>, height: usize) -> Self {
        match inner.children().len() {
            0 => Self::EMPTY,
            1 => Self {
                root: Some(inner.remove(0).1),
                height: height - 1,
            },
            _ => Self {
                root: Some(Node::Inner(inner)),
                height,
            },
        }
    }

    /// Joins `self` and `upper`. `separator` lies above all keys of `self` and at or below all keys
    /// of `upper`.
    fn join(self, separator: Headed<K, H>, upper: Self, dropped: &mut Dropped<K>) -> Self {
        let height = self.height.max(upper.height);
        let levels = self.height.abs_diff(upper.height);
        let lower_is_higher = self.height > upper.height;
        let (mut low, mut high) = match (self.root, upper.root) {
            (Some(low), Some(high)) => (low, high),
            (root, None) | (None, root) => {
                dropped.keep(separator.key);
                return Self { root, height };
            }
        };
        let (root, split) = if levels == 0 {
            let split = low.absorb(separator, high, BTree::<K, V, H, N>::MERGED, dropped);
            (low, split)
        } else if lower_is_higher {
            let split = low.hang_last(levels, separator, high, dropped);
            (low, split)
        } else {
            let split = high.hang_first(levels, low, separator, dropped);
            (high, split)
        };
        match split {
            None => Self {
                root: Some(root),
                height,
            },
            Some((separator, upper)) => Self {
                root: Some(Node::pair(root, separator, upper)),
                height: height + 1,
            },
        }
    }

    /// Splits into the parts before and behind the cut.
    fn split(self, children: &[usize], entry: usize, dropped: &mut Dropped<K>) -> (Self, Self) {
        match self.root {
            None => (Self::EMPTY, Self::EMPTY),
            Some(Node::Leaf(mut leaf)) => {
                if entry == 0 {
                    return (
                        Self::EMPTY,
                        Self {
                            root: Some(Node::Leaf(leaf)),
                            height: 1,
                        },
                    );
                }
                let upper = (entry < leaf.len()).then(|| Node::Leaf(leaf.split_off(entry)));
                let upper = Self {
                    height: usize::from(upper.is_some()),
                    root: upper,
                };
                (
                    Self {
                        root: Some(Node::Leaf(leaf)),
                        height: 1,
                    },
                    upper,
                )
            }
            Some(Node::Inner(mut inner)) => {
                let at = children[0];
                let right = (at + 1 < inner.children().len()).then(|| inner.split_off(at + 1));
                let (separator, child) = inner.remove(at);
                let child = Self {
                    root: Some(child),
                    height: self.height - 1,
                };
                let (mut lower, mut upper) = child.split(&children[1..], entry, dropped);
                if let Some(separator) = separator {
                    lower = Self::of(inner, self.height).join(separator, lower, dropped);
                }
                if let Some((separator, right)) = right {
                    upper = upper.join(separator, Self::of(right, self.height), dropped);
                }
                (lower, upper)
            }
        }
    }
}

impl<K: Ord + Clone, V, H: KeyHead<K>, const N: usize> Node<K, V, H, N> {
    /// A copy of the first key behind the cut.
    fn key_at(&self, cut: &Cut) -> Option<Headed<K, H>> {
        let mut node = self;
        let mut right = None;
        for at in &cut.children {
            if let Self::Inner(inner) = node {
                right = inner.children().get(at + 1).or(right);
                node = &inner.children()[*at];
            }
        }
        match node {
            Self::Leaf(leaf) if cut.entry < leaf.len() => Some(leaf.keys().copy(cut.entry)),
            _ => right.map(Self::first_key),
        }
    }

    /// A copy of the first key of this subtree.
    fn first_key(&self) -> Headed<K, H> {
        let mut node = self;
        loop {
            match node {
                Self::Inner(inner) => node = &inner.children()[0],
                Self::Leaf(leaf) => return leaf.keys().copy(0),
            }
        }
    }

    /// Inserts `node`, whose height is `levels` less, after all others. Returns the upper part if
    /// this node was split.
    fn hang_last(
        &mut self,
        levels: usize,
        separator: Headed<K, H>,
        node: Self,
        dropped: &mut Dropped<K>,
    ) -> Upper<K, V, H, N> {
        let Self::Inner(inner) = self else {
            unreachable!("a leaf has nothing below it")
        };
        let last = inner.children().len() - 1;
        let child = &mut inner.children_mut()[last];
        let (separator, node) = if levels == 1 {
            child.absorb(separator, node, BTree::<K, V, H, N>::MERGED, dropped)?
        } else {
            child.hang_last(levels - 1, separator, node, dropped)?
        };
        inner.add_behind(last, separator, node)
    }

    /// Inserts `node`, whose height is `levels` less, before all others. Returns the upper part if
    /// this node was split.
    fn hang_first(
        &mut self,
        levels: usize,
        node: Self,
        separator: Headed<K, H>,
        dropped: &mut Dropped<K>,
    ) -> Upper<K, V, H, N> {
        let Self::Inner(inner) = self else {
            unreachable!("a leaf has nothing below it")
        };
        let child = &mut inner.children_mut()[0];
        if levels > 1 {
            let (separator, upper) = child.hang_first(levels - 1, node, separator, dropped)?;
            return inner.add_behind(0, separator, upper);
        }
        if child.len() + node.len() > BTree::<K, V, H, N>::MERGED {
            return inner.add_first(node, separator);
        }
        let upper = mem::replace(child, node);
        let left = child.absorb(separator, upper, N, dropped);
        debug_assert!(left.is_none(), "it was seen to fit");
        None
    }
}
