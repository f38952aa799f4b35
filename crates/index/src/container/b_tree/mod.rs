//! A B+tree: the cache-conscious container.
//!
//! ```text
//!                    inner  keys   [ 30 | 60 ]
//!                           children /  |   \
//!        leaf keys [ 3  9 20 ] [ 30 41 ] [ 60 77 80 ]
//!             values a  b  c      d  e      f  g  h
//! ```
//!
//! Keys lie side by side in wide nodes, so a search of `Copy` keys follows no pointer within a
//! node and does not branch. Split and join move whole subtrees: they touch only the nodes along
//! the cut.
//!
//! # Invariants
//!
//! Those that speak of the state of a tree are functions (`invariants`).
//!
//! 1. All leaves are at the same depth.
//! 2. Leaves have 1 to `N` entries, inner nodes 1 to `N` children; an inner root has at least
//!    two. Keys ascend strictly within a leaf.
//! 3. In an inner node, key `i` lies above all keys of child `i` and at or below all keys of
//!    child `i + 1`. It need not be present in the tree.
//! 4. A removal from a small leaf merges the small nodes of its path with neighbours, where two
//!    nodes fit well into one. It never moves entries to balance two nodes that do not fit, because
//!    that needs a new separator and `K::clone` may panic. It unlinks a node that becomes empty.
//! 5. User code (`K::cmp`, `K::clone`) runs before an operation changes anything, and no operation
//!    drops a key: keys to be dropped wait in `dropped`.
//!
//! The type does *not* keep the number of entries; its owner does.

mod edit;
mod invariants;
mod join;
mod keys;
mod node;
mod search;
mod slots;
mod visit;

use super::{Container, Dropped};
use crate::contract::{Direction, KeyRange, Update};
use crate::form::Form;
use crate::key::head::head_of_form;
use crate::key::{KeyHead, NoHead};
use edit::Offer;
pub use keys::Headed;
use keys::{Probe, SearchForm, SearchKey};
use node::Node;
use std::ops::ControlFlow;

/// The most entries of a leaf, and children of an inner node. 64 keys of eight bytes are eight
/// cache lines.
#[cfg(not(any(loom, shuttle)))]
const WIDTH: usize = 64;
/// Nodes are small under a checker, so that small models have several.
#[cfg(any(loom, shuttle))]
const WIDTH: usize = 4;

/// A sequential B+tree with nodes of `N` entries or children.
///
/// Keys lie side by side in wide nodes. A search of small keys that need no drop follows no pointer
/// and mispredicts no branch; a search of other keys is a binary search. If `H` gives heads, these
/// lie beside the keys and are searched like small keys, and a key is compared only where its head
/// equals the head of the search key. A removal merges small neighbours; appends leave full leaves
/// behind.
///
/// `N` must be even, at least 4, and below 65,536.
///
/// ```
/// use tremula_index::container::{BTree, Container};
///
/// let mut lower: BTree<u32, char> = BTree::default();
/// for (key, value) in [(1, 'a'), (2, 'b'), (3, 'c')] {
///     lower.insert(key, value);
/// }
/// let (separator, upper) = lower.split().unwrap();
/// assert!(lower.last().unwrap().0 < &separator && upper.first().unwrap().0 == &separator);
/// lower.join(separator, upper);
/// assert_eq!(lower.count(), 3);
/// ```
pub struct BTree<K, V, H: KeyHead<K> = NoHead, const N: usize = WIDTH> {
    root: Option<Node<K, V, H, N>>,
    dropped: Dropped<K>,
}

impl<K, V, H: KeyHead<K>, const N: usize> BTree<K, V, H, N> {
    const fn of(root: Option<Node<K, V, H, N>>) -> Self {
        Self {
            root,
            dropped: Dropped::new(),
        }
    }
}

impl<K, V, H: KeyHead<K>, const N: usize> Default for BTree<K, V, H, N> {
    fn default() -> Self {
        const {
            assert!(
                N >= 4 && N.is_multiple_of(2) && N < 1 << 16,
                "see the docs of BTree for N"
            )
        };
        Self::of(None)
    }
}

impl<K, V, H, const N: usize> Container<K, V> for BTree<K, V, H, N>
where
    K: Ord + Clone + Send + Sync,
    V: Send + Sync,
    H: KeyHead<K>,
{
    const NAME: &'static str = "b_tree";

    #[inline]
    fn get(&self, key: &K) -> Option<&V> {
        self.value_of(SearchKey::new(key))
    }

    fn can_seek(form: &dyn Form<K>) -> bool {
        head_of_form::<K, H>(form).is_some()
    }

    fn seek(&self, form: &dyn Form<K>) -> Option<&V> {
        self.value_of(SearchForm::new(form))
    }

    #[inline]
    fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.insert_entry(key, value)
    }

    fn insert_from(&mut self, key: &mut Option<K>, value: &mut Option<V>) -> Option<V> {
        self.insert_offered(&mut Offer::new(key, value)?)
    }

    fn insert_if_absent(&mut self, key: K, value: V) -> Result<(), V> {
        if self.get(&key).is_some() {
            self.dropped.keep(key);
            return Err(value);
        }
        self.insert_entry(key, value);
        Ok(())
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<V> {
        let (key, value) = self.remove_sought(SearchKey::new(key))?;
        self.dropped.keep(key);
        Some(value)
    }

    fn remove_entry(&mut self, key: &K) -> Option<(K, V)> {
        self.remove_sought(SearchKey::new(key))
    }

    fn update(
        &mut self,
        key: K,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
    ) -> (Option<V>, i8) {
        self.update_entry(key, decide)
    }

    fn first(&self) -> Option<(&K, &V)> {
        self.root.as_ref().map(Node::first)
    }

    fn last(&self) -> Option<(&K, &V)> {
        self.root.as_ref().map(Node::last)
    }

    #[inline]
    fn next(&self, key: &K) -> Option<(&K, &V)> {
        self.entry_above(key)
    }

    #[inline]
    fn prev(&self, key: &K) -> Option<(&K, &V)> {
        self.entry_below(key)
    }

    fn pop_first(&mut self) -> Option<(K, V)> {
        self.pop(Direction::Ascending)
    }

    fn pop_last(&mut self) -> Option<(K, V)> {
        self.pop(Direction::Descending)
    }

    fn visit<'a>(
        &'a self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&'a K, &'a V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &self.root {
            Some(root) if !range.is_empty() => root.visit(range, direction, visit),
            _ => ControlFlow::Continue(()),
        }
    }

    fn split_range(&mut self, range: KeyRange<'_, K>) -> Self {
        self.take_range(range)
    }

    fn split(&mut self) -> Option<(K, Self)> {
        let cut = self.middle()?;
        let (separator, upper) = self.split_at(&cut)?;
        Some((separator.key, upper))
    }

    type Separator = Headed<K, H>;

    fn separator(key: K) -> Headed<K, H> {
        Headed::new(key)
    }

    fn separator_from(key: &mut Option<K>) -> Option<Headed<K, H>> {
        let word = SearchKey::<K, H>::new(key.as_ref()?).word();
        let key = key.take()?;
        Some(Headed { key, word })
    }

    fn join_at(&mut self, separator: Headed<K, H>, upper: Self) {
        self.append(separator, upper);
    }

    #[inline]
    fn take_dropped(&mut self) -> Dropped<K> {
        self.dropped.take()
    }

    fn keep_dropped(&mut self, mut dropped: Dropped<K>) {
        self.dropped.append(&mut dropped);
    }

    fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    fn count(&self) -> usize {
        self.root.as_ref().map_or(0, Node::count)
    }

    fn depth(&self) -> usize {
        self.root.as_ref().map_or(0, Node::height)
    }

    fn bytes(&self) -> usize {
        self.root.as_ref().map_or(0, Node::bytes)
    }

    fn check(&self) {
        if let Some(root) = &self.root {
            if let Node::Inner(inner) = root {
                assert!(
                    inner.children().len() >= 2,
                    "invariant 2 of BTree: an inner root has only one child"
                );
            }
            root.check(KeyRange::all());
        }
    }
}
