//! Splitting and joining trees. The results share as many nodes as they can with the trees that
//! they are made of, which do not change.

use super::edit::{cut, parent_of, share_runs};
use super::invariants::check_shared;
use super::node::{Entry, NodeRef, Part, fewest, most};
use super::{OwnedTree, View};
use crate::kit::{SearchKey, SearchRange, Spec};
use std::ops::Bound;

/// One node or two nodes of one level.
type Few<S> = (OwnedTree<S>, Option<OwnedTree<S>>);

impl<S: Spec> OwnedTree<S> {
    fn node(&self) -> NodeRef<'_, S> {
        match self.view().root {
            Some(node) => node,
            None => unreachable!("it was made of a node"),
        }
    }
}

impl<S: Spec> View<'_, S> {
    /// The lower and the upper part of a tree, with about the same number of entries, and a copy of
    /// the smallest key that the upper part may have. `None` if there are fewer than two entries.
    /// O(log n).
    pub(in crate::lfca_tree) fn split(self) -> Option<(OwnedTree<S>, OwnedTree<S>, S::Key)> {
        let root = self.root.filter(|root| root.len() > 1)?;
        let middle = root.len() / 2;
        let key = root.with_key(middle, S::Key::clone);
        let part = |range| collapse(one(root.level(), &[Part::Run(root, range)]));
        Some((part(0..middle), part(middle..root.len()), key))
    }

    /// Joins two trees; the keys of this one lie below those of `upper`. O(log n).
    pub(in crate::lfca_tree) fn join(self, upper: Self) -> OwnedTree<S> {
        match (self.root, upper.root) {
            (None, _) => upper.share(),
            (_, None) => self.share(),
            (Some(lower), Some(upper)) => collapse(match join(lower, upper) {
                (first, None) => first,
                (first, Some(second)) => {
                    let children = [first.node(), second.node()];
                    for child in children {
                        // SAFETY: the child lives, and has a count of its key.
                        unsafe { child.key_word(0).share() };
                    }
                    let root = OwnedTree::of(parent_of(children));
                    // The root owns their counts now.
                    first.into_root();
                    second.into_root();
                    root
                }
            }),
        }
    }

    /// The tree without the entries of a range. O(log n).
    pub(in crate::lfca_tree) fn without(self, span: SearchRange<'_, S>) -> OwnedTree<S> {
        let Some(root) = self.root else {
            return OwnedTree::EMPTY;
        };
        let lower = match span.low {
            Bound::Unbounded => None,
            Bound::Included(low) => prefix(root, |node| node.below(&low)),
            Bound::Excluded(low) => prefix(root, |node| node.through(&low)),
        };
        let upper = match &span.high {
            Bound::Unbounded => None,
            Bound::Included(high) => suffix(root, high, true),
            Bound::Excluded(high) => suffix(root, high, false),
        };
        match (&lower, &upper) {
            (Some(lower), Some(upper)) => lower.view().join(upper.view()),
            _ => collapse(lower.or(upper).unwrap_or(OwnedTree::EMPTY)),
        }
    }
}

/// The tree without roots that have only one child.
pub(super) fn collapse<S: Spec>(mut tree: OwnedTree<S>) -> OwnedTree<S> {
    while let Some(root) = tree.view().root
        && root.level() > 0
        && root.len() == 1
    {
        let child = View {
            root: Some(root.child(0)),
        };
        tree = child.share();
    }
    tree
}

/// A node of these parts, which fit into one.
fn one<S: Spec>(level: u16, parts: &[Part<'_, '_, S>]) -> OwnedTree<S> {
    few(level, parts).0
}

/// One node of these parts, or two. They take over the counts of new entries, and add counts for
/// the entries of runs.
fn few<S: Spec>(level: u16, parts: &[Part<'_, '_, S>]) -> Few<S> {
    share_runs(parts);
    let made = cut(level, parts, false);
    check_shared(made, parts);
    match made {
        [Some(first), second] => (OwnedTree::of(first), second.map(OwnedTree::of)),
        [None, _] => unreachable!("a node is made of something"),
    }
}

/// An entry that leads to a child, under the smallest key of the child. It takes over the count of
/// the child and has a new one of the key.
fn entry<S: Spec>(child: OwnedTree<S>) -> Entry<S> {
    let node = child.node();
    let entry = Entry::of_child(node.head(0), node.key_word(0), node);
    // SAFETY: the child lives, and has a count of its key.
    unsafe { entry.key.share() };
    child.into_root();
    entry
}

/// The entries of both nodes, in nodes of the higher of their levels.
fn join<S: Spec>(lower: NodeRef<'_, S>, upper: NodeRef<'_, S>) -> Few<S> {
    let level = lower.level().max(upper.level());
    if level == 0 {
        let poor = lower.len().min(upper.len()) < fewest(0);
        if !poor && lower.len() + upper.len() > most(0) {
            let share = |node| View { root: Some(node) }.share();
            return (share(lower), Some(share(upper)));
        }
        let parts = [lower, upper].map(|node| Part::Run(node, 0..node.len()));
        return few(level, &parts);
    }
    let last = lower.len() - 1;
    // The nodes joined at the seam, and the children on its outer sides.
    let (below, above, seam) = match lower.level().cmp(&upper.level()) {
        std::cmp::Ordering::Greater => (0..last, 0..0, join(lower.child(last), upper)),
        std::cmp::Ordering::Less => (0..0, 1..upper.len(), join(lower, upper.child(0))),
        std::cmp::Ordering::Equal => (
            0..last,
            1..upper.len(),
            join(lower.child(last), upper.child(0)),
        ),
    };
    let first = entry(seam.0);
    let second = seam.1.map(entry);
    let mut parts = vec![Part::Run(lower, below), Part::One(&first)];
    parts.extend(second.iter().map(Part::One));
    parts.push(Part::Run(upper, above));
    few(level, &parts)
}

/// The entries before a cut, in a node of the same level. `place` returns the number of keys of a
/// node before the cut.
fn prefix<S: Spec>(
    node: NodeRef<'_, S>,
    place: impl Fn(NodeRef<'_, S>) -> usize + Copy,
) -> Option<OwnedTree<S>> {
    let count = place(node);
    if node.level() == 0 {
        return (count > 0).then(|| one(0, &[Part::Run(node, 0..count)]));
    }
    let whole = count.checked_sub(1)?;
    let last = prefix(node.child(whole), place).map(entry);
    let parts = [
        Some(Part::Run(node, 0..whole)),
        last.as_ref().map(Part::One),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (whole > 0 || last.is_some()).then(|| one(node.level(), &parts))
}

/// The entries behind a key (if `is_behind`) or from it on, in a node of the same level.
fn suffix<S: Spec>(
    node: NodeRef<'_, S>,
    key: &SearchKey<'_, S>,
    is_behind: bool,
) -> Option<OwnedTree<S>> {
    if node.level() == 0 {
        let start = if is_behind {
            node.through(key)
        } else {
            node.below(key)
        };
        return (start < node.len()).then(|| one(0, &[Part::Run(node, start..node.len())]));
    }
    let at = node.child_for(key);
    let first = suffix(node.child(at), key, is_behind).map(entry);
    let rest = at + 1..node.len();
    if first.is_none() && rest.is_empty() {
        return None;
    }
    let parts = [first.as_ref().map(Part::One), Some(Part::Run(node, rest))];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    Some(one(node.level(), &parts))
}
