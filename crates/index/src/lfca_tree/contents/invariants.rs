//! The invariants of contents ([module](super)) that speak of their state, as functions: each
//! panics and names the invariant if it does not hold. Only a debug build calls them.
//!
//! A thread checks the nodes that it makes before other threads see them. It compares no keys: that
//! is user code, and keys may lie. [`View::check_at_rest`] checks all of a tree.
//!
//! That no count is left over, and that keys and values have the counts that invariant 3 asks for,
//! is held by `contents::tests`.

use super::edit::Edit;
use super::node::{NodeRef, Part, most};
use super::{Root, View};
use crate::kit::{CHANGES_ARE_CHECKED, Spec};

fn children<S: Spec>(node: NodeRef<'_, S>) -> impl Iterator<Item = NodeRef<'_, S>> {
    let inner = (node.level() > 0).then_some(node);
    inner
        .into_iter()
        .flat_map(|node| (0..node.len()).map(move |at| node.child(at)))
}

/// Invariant 1, of a node whose keys lie at or above `low` and below `high`. Returns its keys.
fn keys_ascend<S: Spec>(
    node: NodeRef<'_, S>,
    low: Option<&S::Key>,
    high: Option<&S::Key>,
) -> Vec<S::Key> {
    let key = |at| node.with_key(at, S::Key::clone);
    let keys: Vec<_> = (0..node.len()).map(key).collect();
    assert!(
        keys.is_sorted_by(|a, b| a < b) && node.heads().is_sorted(),
        "invariant 1 of contents: the keys of a node do not ascend"
    );
    let inside = |key| low.is_none_or(|low| low <= key) && high.is_none_or(|high| key < high);
    assert!(
        keys.iter().all(inside),
        "invariant 1 of contents: a key lies on the wrong side of a key above"
    );
    keys
}

/// Invariant 2, of a node and its children.
fn levels_fit<S: Spec>(node: NodeRef<'_, S>) {
    assert!(
        (1..=most(node.level())).contains(&node.len()),
        "invariant 2 of contents: a node is empty or too large"
    );
    assert!(
        children(node).all(|child| child.level() + 1 == node.level()),
        "invariant 2 of contents: leaves are on different levels"
    );
}

/// Checks a node that has just been made.
#[inline]
pub(super) fn check_made<S: Spec>(node: NodeRef<'_, S>) {
    if CHANGES_ARE_CHECKED {
        levels_fit(node);
    }
}

/// Invariant 3, of the children of nodes that were made of `parts`: those of runs keep the count of
/// their old parent, and have one of the new parent.
#[inline]
pub(super) fn check_shared<S: Spec>(made: [Option<NodeRef<'_, S>>; 2], parts: &[Part<'_, '_, S>]) {
    if CHANGES_ARE_CHECKED {
        let is_new = |child: NodeRef<'_, S>| {
            let word = child.pointer().as_ptr().cast();
            let leads_there =
                |part: &Part<'_, '_, S>| matches!(part, Part::One(entry) if entry.word == word);
            parts.iter().any(leads_there)
        };
        let mut children = made.into_iter().flatten().flat_map(children);
        assert!(
            children.all(|child| is_new(child) || !child.is_exclusive()),
            "invariant 3 of contents: a node has two parents and one count"
        );
    }
}

impl<S: Spec> Edit<'_, '_, S> {
    /// Invariant 4, of an edit that has replaced a tree. No other thread may be in the index, for
    /// it could add a count meanwhile, in vain.
    pub(in crate::lfca_tree) fn check_moved(&self) {
        assert!(
            self.moved().all(NodeRef::is_exclusive),
            "invariant 4 of contents: an edit moves what is in a node that others have, too"
        );
    }
}

impl<S: Spec> View<'_, S> {
    /// Panics, and names the invariant, if the tree is not as its invariants say, or has a key
    /// below `low`, or not below `high`.
    pub(in crate::lfca_tree) fn check_at_rest(self, low: Option<&S::Key>, high: Option<&S::Key>) {
        let Some(root) = self.root else { return };
        levels_fit(root);
        let keys = keys_ascend(root, low, high);
        for (at, child) in children(root).enumerate() {
            let root = Root(Some(child.pointer()));
            // SAFETY: the child lives as long as its parent.
            let below: View<'_, S> = unsafe { root.view() };
            below.check_at_rest(Some(&keys[at]), keys.get(at + 1).or(high));
        }
    }
}
