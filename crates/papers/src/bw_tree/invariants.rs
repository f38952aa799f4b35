//! The invariants of the tree ([module](super)) that speak of its state, as functions: each panics,
//! and names the invariant, if it does not hold. Only a debug build calls them.
//!
//! A writer checks each delta that it has written, each node that it is about to replace, and the
//! pairs of nodes that it splits or merges; none of these checks compares keys, which may lie.
//! [`Tree::check_at_rest`] checks a tree that no other thread uses; it does compare keys.
//!
//! The others speak of the order in which things happen, and are held by tests:
//!
//! - 2 by the models of loom in which operations hold leaves, such as
//!   `a_range_is_removed_from_nodes_of_a_bw_tree_that_are_being_merged`,
//! - 6 by the models of loom of ids, by `an_id_of_a_bw_tree_is_not_used_again_too_early`, and by
//!   the tests of reclamation,
//! - 11 by the tests of panics, and by `a_drop_that_panics_leaves_the_tree_whole`,
//! - 12 by the tests of keys that lie (`bw_tree_lies.rs`), in which each operation ends.

use super::base::{BaseRef, LINE, NO_NODE};
use super::descend::Place;
use super::node::{Change, Delta, Entry, View};
use super::reclaim::Guard;
use super::spread::sub_chain_of;
use super::word::{Kind, Word};
use super::{ROOT, Tree};
use std::collections::HashSet;
use tremula_index::kit::{Spec, StoredKey};

/// Whether writers check the invariants of what they change: in a debug build, but not under the
/// checker of a model, for which that would be further steps.
const CHANGES_ARE_CHECKED: bool = cfg!(all(debug_assertions, not(any(loom, shuttle))));

/// Invariant 1, of what a delta is prepended to.
fn merge_deltas_are_heads<S: Spec>(delta: &Delta<S>) {
    let is_chain = matches!(delta.next.kind(), Kind::Base | Kind::Delta) && !delta.next.is_held();
    assert!(
        is_chain,
        "invariant 1 of BwTree: a delta is prepended to what no delta may be prepended to"
    );
}

/// Invariant 3, of a node.
fn high_fence_comes_with_a_right_link<S: Spec>(view: &View<'_, S>) {
    assert!(
        view.high().is_some() == (view.right() != NO_NODE),
        "invariant 3 of BwTree: a node has a high fence or a right link, but not both"
    );
}

/// Invariant 3, of a node and the one that replaces it.
fn level_and_low_fence_stay<S: Spec>(id: usize, old: &View<'_, S>, new: &View<'_, S>) {
    let is_same = match (old.base.low(), new.base.low()) {
        (Some(old), Some(new)) => old.is(new),
        (old, new) => old.is_none() && new.is_none(),
    };
    assert!(
        is_same && (id == ROOT || old.base.level == new.base.level),
        "invariant 3 of BwTree: a node changes its level or its low fence"
    );
}

/// Invariant 4, of two neighbours. A fence and its copy have the same head.
fn right_node_begins_where_left_ends<S: Spec>(left: &View<'_, S>, id: usize, right: &View<'_, S>) {
    let fences = left.high().zip(right.base.low());
    assert!(
        left.right() == id
            && left.base.level == right.base.level
            && fences.is_some_and(|(high, low)| high.head == low.head),
        "invariant 4 of BwTree: a node does not begin where the one on its left ends"
    );
}

/// Invariant 5, of a delta in a leaf: what it updates or deletes is a cell that is alive below it.
fn leaf_delta_is_about_a_living_cell<S: Spec>(delta: &Delta<S>, base: BaseRef<'_, S>) {
    let mut below = std::iter::successors(delta.next(), |delta| delta.next());
    let is_alive = match below.find(|below| below.cell() == delta.cell()) {
        Some(newest) => newest.change != Change::Delete,
        None => delta.overwrites && base.key(delta.offset as usize).is(delta.key),
    };
    let must_be_alive = matches!(delta.change, Change::Update | Change::Delete);
    assert!(
        is_alive || !must_be_alive,
        "invariant 5 of BwTree: a delta updates or deletes what is not there"
    );
}

/// Invariant 5, of the separators of an inner node.
fn children_are_there_once<S: Spec>(view: &View<'_, S>) -> Vec<usize> {
    let first = std::iter::once(view.base.first_child);
    let children = Vec::from_iter(first.chain(view.separators().iter().map(Entry::child)));
    let different: HashSet<_> = children.iter().collect();
    assert!(
        different.len() == children.len() && !different.contains(&NO_NODE),
        "invariant 5 of BwTree: an inner node has a child twice"
    );
    children
}

/// Invariant 5, of an inner node.
fn separators_are_counted<S: Spec>(view: &View<'_, S>) {
    assert!(
        view.count() == view.separators().len(),
        "invariant 5 of BwTree: the newest delta of an inner node counts the separators wrongly"
    );
}

/// Invariant 7, of a delta and its word, if it is the head of its chain.
fn delta_leads_to_its_base<S: Spec>(delta: &Delta<S>, base: BaseRef<'_, S>, word: Option<Word>) {
    let at = base.as_ptr();
    let leads_to_base = |word: Word| word.base_node().is_none_or(|base| base == at);
    assert!(
        delta.base == at && at.addr().get().is_multiple_of(LINE) && word.is_none_or(leads_to_base),
        "invariant 7 of BwTree: a delta leads to another base node than its chain"
    );
    assert!(
        base.may_have_deltas(delta.key.head),
        "invariant 7 of BwTree: the filter does not have the bit of a delta"
    );
}

/// Invariant 8, of a delta, as far as that does not depend on keys.
fn offset_is_in_the_base_node<S: Spec>(delta: &Delta<S>, base: BaseRef<'_, S>) {
    assert!(
        delta.offset + u32::from(delta.overwrites) <= base.count,
        "invariant 8 of BwTree: the offset of a delta is not in the base node"
    );
}

/// Invariant 8, of the deltas of a leaf at rest.
fn offsets_count_the_keys_below<S: Spec>(view: &View<'_, S>) {
    // SAFETY: the keys of the node live as long as its chain, which the caller can read.
    let compare = |at: usize, key: StoredKey<S>| unsafe { view.base.key(at).compare(key) };
    for delta in view.changes() {
        let (offset, overwrites) = (delta.offset as usize, delta.overwrites);
        let is_there = offset < view.end() && compare(offset, delta.key).is_eq();
        let mut expected = (0..view.end()).map(|at| compare(at, delta.key).is_lt());
        assert!(
            expected.by_ref().take(offset).all(|is_below| is_below)
                && !expected.next().unwrap_or(false)
                && overwrites == is_there,
            "invariant 8 of BwTree: the offset of a delta is not the number of keys below it"
        );
    }
}

/// Invariant 9, of a delta: one that splits ends the node at a key of the base node, and later ones
/// are in front of it.
fn splits_end_their_node<S: Spec>(delta: &Delta<S>, base: BaseRef<'_, S>) {
    let mut below = std::iter::successors(delta.next(), |delta| delta.next());
    let split = below.find(|below| below.change == Change::Split);
    let is_right = if delta.change == Change::Split {
        let key = delta.overwrites.then(|| base.key(delta.offset as usize));
        base.may_be_split() && split.is_none() && key.is_some_and(|key| key.head == delta.key.head)
    } else {
        split.is_none_or(|split| base.may_be_split() && split.is_in_front(delta))
    };
    assert!(
        is_right,
        "invariant 9 of BwTree: a split is not at a key of the base node, is not announced, or a \
         delta lies behind it"
    );
}

/// Invariant 10, of a spread leaf.
fn spread_leaf_has_its_deltas_in_sub_chains<S: Spec>(word: Word, view: &View<'_, S>) {
    assert!(
        word.kind() == Kind::Base && !word.is_held(),
        "invariant 10 of BwTree: a spread leaf is held, or has a delta"
    );
    let mut cells = HashSet::new();
    for (number, sub_chain) in view.base.sub_chains().iter().enumerate() {
        let deltas = Vec::from_iter(view.of_sub_chain(sub_chain.load()).deltas());
        let here: HashSet<_> = deltas.iter().map(|delta| delta.cell()).collect();
        let belongs_here =
            |delta: &&Delta<S>| !delta.overwrites || sub_chain_of(delta.offset.into()) == number;
        assert!(
            cells.is_disjoint(&here) && deltas.iter().all(belongs_here),
            "invariant 10 of BwTree: deltas on one key are in two sub-chains"
        );
        cells.extend(here);
    }
}

/// Invariant 10, of a spread leaf that is about to be replaced.
fn spread_leaf_is_frozen<S: Spec>(view: &View<'_, S>) {
    let mut sub_chains = view.base.sub_chains().iter();
    assert!(
        sub_chains.all(|sub_chain| sub_chain.load().is_held()),
        "invariant 10 of BwTree: a spread leaf is replaced before its sub-chains are frozen"
    );
}

/// Checks a delta, without a look at the keys in its chain.
fn check_delta<S: Spec>(delta: &Delta<S>, base: BaseRef<'_, S>, word: Option<Word>) {
    merge_deltas_are_heads(delta);
    delta_leads_to_its_base(delta, base, word);
    offset_is_in_the_base_node(delta, base);
    splits_end_their_node(delta, base);
    if base.level == 0 {
        leaf_delta_is_about_a_living_cell(delta, base);
    }
}

/// Checks a delta that has been written, and that no other thread sees yet, and the word that leads
/// to it. The caller can read the chain that it continues.
#[inline]
pub(super) fn check_written<S: Spec>(delta: &Delta<S>, base: BaseRef<'_, S>, word: Word) {
    if CHANGES_ARE_CHECKED {
        check_delta(delta, base, Some(word));
        if base.level > 0 {
            // SAFETY: the caller can read the chain.
            let view = unsafe { View::of_delta(delta, base) };
            children_are_there_once(&view);
            separators_are_counted(&view);
        }
    }
}

/// Checks two neighbours that are about to be merged.
#[inline]
pub(super) fn check_merged<S: Spec>(left: &Place<'_, S>, right: &Place<'_, S>) {
    if CHANGES_ARE_CHECKED {
        right_node_begins_where_left_ends(&left.view, right.id, &right.view);
    }
}

impl<S: Spec> Tree<S> {
    /// Checks a node that the caller is about to replace, and the word that is to replace its word.
    #[inline]
    pub(super) fn check_replaced(
        &self,
        place: &Place<'_, S>,
        new: impl FnOnce() -> Word,
        guard: &Guard,
    ) {
        if CHANGES_ARE_CHECKED {
            spread_leaf_is_frozen(&place.view);
            // SAFETY: the caller has the new node.
            let new = unsafe { View::<S>::of(new(), guard) }.expect("a word that is to be read");
            level_and_low_fence_stay(place.id, &place.view, &new);
            high_fence_comes_with_a_right_link(&new);
            if new.base.level > 0 {
                children_are_there_once(&new);
            }
        }
    }

    /// Checks the halves of a node that is about to be split. The right one has its id.
    #[inline]
    pub(super) fn check_halves(&self, left: impl FnOnce() -> Word, right: usize, guard: &Guard) {
        if CHANGES_ARE_CHECKED {
            // SAFETY: the caller has both nodes.
            let right_view = unsafe { View::<S>::of(self.table.load(right), guard) };
            // SAFETY: as for the right one.
            let views = unsafe { View::<S>::of(left(), guard) }.zip(right_view);
            let (left, right_view) = views.expect("words that are to be read");
            right_node_begins_where_left_ends(&left, right, &right_view);
        }
    }

    /// Panics, and names the invariant, if the tree is not as its invariants say. No other thread
    /// may use the tree meanwhile.
    pub(super) fn check_at_rest(&self) {
        let guard = &self.pin();
        let (mut first, mut children) = (ROOT, vec![ROOT]);
        while first != NO_NODE {
            let mut unseen = children.into_iter().peekable();
            let (mut id, mut left, mut below) = (first, None::<Place<'_, S>>, NO_NODE);
            children = Vec::new();
            while id != NO_NODE {
                // SAFETY: the root is always in use; nodes in use linked to the others.
                let place = unsafe { self.visit(id, guard) }.expect("a node at rest is linked");
                let (view, base) = (&place.view, place.view.base);
                assert!(
                    !place.word.is_held() && place.word.kind() != Kind::Switch,
                    "invariant 1 of BwTree: a node is held by no thread"
                );
                high_fence_comes_with_a_right_link(view);
                match &left {
                    Some(left) => right_node_begins_where_left_ends(&left.view, id, view),
                    None => assert!(
                        base.low().is_none(),
                        "invariant 4 of BwTree: the first node of a level has a low fence"
                    ),
                }
                (view.all_deltas()).for_each(|delta| check_delta(delta, base, None));
                if base.level > 0 {
                    children.extend(children_are_there_once(view));
                    separators_are_counted(view);
                } else {
                    offsets_count_the_keys_below(view);
                }
                if base.is_spread() {
                    spread_leaf_has_its_deltas_in_sub_chains(place.word, view);
                }
                if id == first {
                    below = base.first_child;
                }
                // Parents may not know all nodes yet.
                unseen.next_if_eq(&id);
                id = view.right();
                left = Some(place);
            }
            assert!(
                unseen.next().is_none(),
                "invariant 5 of BwTree: separators are not in the order of the links"
            );
            first = below;
        }
    }
}
