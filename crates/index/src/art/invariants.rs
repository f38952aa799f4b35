//! The invariants about the state of the tree ([module](super)), as functions. Each panics and
//! names the invariant if it does not hold. Only a debug build calls them.
//!
//! A writer that changes the structure checks the nodes that it has made or changed, while it holds
//! their locks, and those that it has unlinked. [`Art::check_at_rest`] checks a tree that no other
//! thread uses.
//!
//! The other invariants are about the order of events. Tests check them:
//!
//! - 3: loom models in which a reader meets a change, such as
//!   `a_shift_of_slots_is_not_seen_half_done`,
//! - 5, except for the words of full nodes: `a_cut_prefix_hides_nothing_from_a_reader`,
//! - 6: shuttle programs that scan upwards and downwards at once,
//! - 7: the tests of reclamation.

use super::Art;
use super::child::{Child, ChildRef, Kind, NodeRef};
use super::form::Form;
use super::header::{END, LAST, STORED, Symbol, symbol_at};
use super::node::vacant;
use crate::byte_keyed::ByteForm;
use crate::contract::Storable;
use crate::key::ByteKey;
use crate::kit::CHANGES_ARE_CHECKED;
use tremula_sync::reclaim::Guard;

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// The child nodes of a node that the caller has locked, or that no other thread has. Their
    /// prefixes change only under the lock of this node, too.
    fn nodes_below<'g>(
        node: NodeRef<'g>,
        guard: &'g Guard<'_>,
    ) -> impl Iterator<Item = (Symbol, NodeRef<'g>)> {
        let of_values = Self::has_values_at(node.header().snapshot().depth());
        let entries = node.entries().into_iter().filter(move |_| !of_values);
        entries.filter_map(|(symbol, word)| {
            // SAFETY: the children of a locked node are linked.
            match unsafe { Child::of_word(word).follow::<K>(guard) } {
                ChildRef::Node(below) => Some((symbol, below)),
                _ => None,
            }
        })
    }

    /// Invariant 1, for the children of a node: a prefix begins where the node branches.
    fn prefixes_are_the_last_part_of_the_path(node: NodeRef<'_>, guard: &Guard<'_>) {
        let start = node.header().snapshot().depth() + 1;
        for (_, below) in Self::nodes_below(node, guard) {
            let begins = below.header().snapshot().begins_at(start);
            assert!(
                begins,
                "invariant 1 of Art: a prefix begins at the wrong byte"
            );
        }
    }

    /// Invariant 1, for the keys in a node at rest, which the bytes `path` lead to. Returns the
    /// node's whole path.
    fn keys_begin_with_the_path(
        node: NodeRef<'_>,
        mut path: Vec<u8>,
        guard: &Guard<'_>,
    ) -> Vec<u8> {
        let snapshot = node.header().snapshot();
        let (start, depth) = (path.len(), snapshot.depth());
        let stored = snapshot.prefix().stored();
        let length = snapshot.prefix_length();
        match stored.get(..length).filter(|_| length <= STORED) {
            Some(prefix) => path.extend(prefix),
            None => {
                let leaf = Self::any_leaf(node, guard).expect("no thread disturbs a tree at rest");
                Form::with(leaf.get().key(), |bytes| path.extend(&bytes[start..depth]));
                let stored = &stored[..STORED];
                assert!(
                    path[start..].starts_with(stored),
                    "invariant 1 of Art: a prefix differs from the keys below"
                );
            }
        }
        if Self::has_values_at(depth) {
            return path;
        }
        for (symbol, word) in node.entries() {
            // SAFETY: the tree is at rest.
            if let ChildRef::Leaf(leaf) = unsafe { Child::of_word(word).follow::<K>(guard) } {
                let agrees = Form::with(leaf.get().key(), |bytes| {
                    bytes.starts_with(&path) && symbol_at(bytes, depth) == symbol
                });
                assert!(agrees, "invariant 1 of Art: a key is not on its path");
            }
        }
        path
    }

    /// Invariant 2, for a node.
    fn nodes_have_two_children(node: NodeRef<'_>) {
        let symbols: Vec<_> = node.entries().iter().map(|entry| entry.0).collect();
        assert!(
            symbols.len() == node.children() && symbols.is_sorted_by(|a, b| a < b),
            "invariant 2 of Art: the count of children is wrong"
        );
        assert!(
            if node.header().snapshot().depth() == 0 {
                matches!(node.kind(), Kind::Full(_))
            } else {
                symbols.len() >= 2
            },
            "invariant 2 of Art: the root is not a full node, or another has fewer than two children"
        );
    }

    /// Invariant 4, for a node that is linked or has just been unlinked.
    fn obsolete_is_what_was_unlinked(node: NodeRef<'_>, is_linked: bool) {
        let is_obsolete = node.header().lock.is_obsolete();
        assert!(
            is_obsolete != is_linked,
            "invariant 4 of Art: a node is obsolete and linked, or neither"
        );
    }

    /// Invariant 5, for the words that are read without validation: those of a full node, and those
    /// that point to a full node without a prefix.
    fn full_nodes_tell_all_in_one_word(node: NodeRef<'_>, guard: &Guard<'_>) {
        let of_values = Self::has_values_at(node.header().snapshot().depth());
        if let Kind::Full(full) = node.kind() {
            for symbol in END..=LAST {
                let is_vacant = full.slot(symbol).load() == vacant(of_values && symbol != END);
                let is_present = full.find(node.header().tail(), symbol).is_some();
                // A value may be the same word as a vacant slot.
                assert!(
                    is_vacant != is_present || of_values && is_present,
                    "invariant 5 of Art: the slot of a full node tells something else than the node"
                );
            }
        }
        for (_, below) in Self::nodes_below(node, guard) {
            assert!(
                below.plain().is_none() || below.header().snapshot().prefix_length() == 0,
                "invariant 5 of Art: a pointer says that a node has no prefix, which has one"
            );
        }
    }

    /// Checks a node that the caller has changed and still holds, or has made and not yet linked.
    #[inline]
    pub(super) fn check_changed(node: NodeRef<'_>, guard: &Guard<'_>) {
        if CHANGES_ARE_CHECKED {
            Self::prefixes_are_the_last_part_of_the_path(node, guard);
            Self::nodes_have_two_children(node);
            Self::full_nodes_tell_all_in_one_word(node, guard);
        }
    }

    /// Checks a node that has just been unlinked.
    #[inline]
    pub(super) fn check_unlinked(node: NodeRef<'_>) {
        if CHANGES_ARE_CHECKED {
            Self::obsolete_is_what_was_unlinked(node, false);
        }
    }

    /// Checks the whole tree. No other thread may use the tree meanwhile.
    pub(super) fn check_at_rest(&self) {
        let guard = &self.collector.pin();
        let root = self.root(guard);
        let is_root = root.header().snapshot().depth() == 0;
        assert!(is_root, "invariant 2 of Art: the root is not at depth 0");
        let mut ahead = vec![(root, Vec::new())];
        while let Some((node, path)) = ahead.pop() {
            Self::obsolete_is_what_was_unlinked(node, true);
            Self::nodes_have_two_children(node);
            Self::prefixes_are_the_last_part_of_the_path(node, guard);
            Self::full_nodes_tell_all_in_one_word(node, guard);
            let path = Self::keys_begin_with_the_path(node, path, guard);
            for (symbol, below) in Self::nodes_below(node, guard) {
                let byte = u8::try_from(symbol - 1).expect("a node is under a byte");
                ahead.push((below, path.iter().copied().chain([byte]).collect()));
            }
        }
    }
}
