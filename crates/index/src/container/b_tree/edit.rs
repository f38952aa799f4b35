//! Inserting and removing single entries.
//!
//! Each operation descends without changing anything and, in the common case, edits one leaf. Only
//! if that leaf is full or becomes small does the operation descend once more, and split, merge or
//! unlink nodes on its way back up, after all comparisons.

use super::BTree;
use super::keys::{Headed, Probe, Row, SearchKey};
use super::node::{Inner, Leaf, Node, Upper};
use crate::container::Dropped;
use crate::contract::{Direction, Update};
use crate::key::KeyHead;
use std::mem;

/// An entry to be inserted. It is taken when all user code has run: if that panics, the caller
/// still has it.
pub(super) struct Offer<'a, K, V, H: KeyHead<K>> {
    word: H::Word,
    key: &'a mut Option<K>,
    value: &'a mut Option<V>,
}

impl<'a, K: Ord, V, H: KeyHead<K>> Offer<'a, K, V, H> {
    /// Computes the word of the key. `None` if there is no key.
    pub(super) fn new(key: &'a mut Option<K>, value: &'a mut Option<V>) -> Option<Self> {
        let word = SearchKey::<K, H>::new(key.as_ref()?).word();
        Some(Self { word, key, value })
    }

    fn search_key(&self) -> SearchKey<'_, K, H> {
        match &self.key {
            Some(key) => SearchKey::with_word(key, self.word),
            None => unreachable!("an entry is taken last"),
        }
    }

    fn take(&mut self) -> (Headed<K, H>, V) {
        let word = self.word;
        match (self.key.take(), self.value.take()) {
            (Some(key), Some(value)) => (Headed { key, word }, value),
            _ => unreachable!("an entry is taken once"),
        }
    }
}

impl<K, V, H: KeyHead<K>, const N: usize> BTree<K, V, H, N> {
    /// The most entries or children of a small node. A removal from a small leaf tries to merge the
    /// small nodes of its path.
    pub(super) const SMALL: usize = N / 4;
    /// Two neighbours merge if they have at most this many entries or children together: few enough
    /// that the next insertion does not split the node again.
    pub(super) const MERGED: usize = N / 4 * 3;
}

impl<K: Ord + Clone, V, H: KeyHead<K>, const N: usize> BTree<K, V, H, N> {
    #[inline]
    fn leaf_of_mut<'a>(
        root: &'a mut Option<Node<K, V, H, N>>,
        key: SearchKey<'_, K, H>,
    ) -> Option<&'a mut Leaf<K, V, H, N>> {
        let mut node = root.as_mut()?;
        loop {
            match node {
                Node::Leaf(leaf) => return Some(leaf),
                Node::Inner(inner) => {
                    let at = inner.keys().at_or_below(key);
                    node = &mut inner.children_mut()[at];
                }
            }
        }
    }

    #[inline]
    pub(super) fn insert_entry(&mut self, key: K, value: V) -> Option<V> {
        let key = Headed::new(key);
        let Some(leaf) = Self::leaf_of_mut(&mut self.root, key.search_key()) else {
            self.insert_at_leaf(key, value);
            return None;
        };
        match leaf.keys().find(key.search_key()) {
            Ok(at) => {
                self.dropped.keep(key.key);
                return Some(mem::replace(&mut leaf.values_mut()[at], value));
            }
            Err(at) if !leaf.is_full() => leaf.insert(at, key, value),
            Err(_) => self.insert_at_leaf(key, value),
        }
        None
    }

    /// Like [`insert_entry`](Self::insert_entry), but leaves a key that is already there.
    pub(super) fn insert_offered(&mut self, offer: &mut Offer<'_, K, V, H>) -> Option<V> {
        let place = Self::leaf_of_mut(&mut self.root, offer.search_key())
            .map(|leaf| (leaf.keys().find(offer.search_key()), leaf));
        match place {
            Some((Ok(at), leaf)) => {
                let value = offer.value.take()?;
                return Some(mem::replace(&mut leaf.values_mut()[at], value));
            }
            Some((Err(at), leaf)) if !leaf.is_full() => {
                let (key, value) = offer.take();
                leaf.insert(at, key, value);
            }
            _ => self.insert_offered_at_leaf(offer),
        }
        None
    }

    /// Inserts an absent key into a tree that is empty or whose leaf is full.
    #[cold]
    fn insert_at_leaf(&mut self, key: Headed<K, H>, value: V) {
        self.insert_offered_at_leaf(&mut Offer {
            word: key.word,
            key: &mut Some(key.key),
            value: &mut Some(value),
        });
    }

    fn insert_offered_at_leaf(&mut self, offer: &mut Offer<'_, K, V, H>) {
        let Some(root) = &mut self.root else {
            let mut leaf = Leaf::new();
            let (key, value) = offer.take();
            leaf.insert(0, key, value);
            self.root = Some(Node::Leaf(leaf));
            return;
        };
        if let Some((separator, upper)) = root.insert(offer)
            && let Some(lower) = self.root.take()
        {
            self.root = Some(Node::pair(lower, separator, upper));
        }
    }

    pub(super) fn update_entry(
        &mut self,
        key: K,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
    ) -> (Option<V>, i8) {
        let key = Headed::new(key);
        let place = Self::leaf_of_mut(&mut self.root, key.search_key())
            .map(|leaf| (leaf.keys().find(key.search_key()), leaf));
        let result = match place {
            Some((Ok(at), leaf)) => match decide(Some(&leaf.values()[at])) {
                Update::Put(value) => (Some(mem::replace(&mut leaf.values_mut()[at], value)), 0),
                Update::Keep => (None, 0),
                Update::Remove => match self.remove_sought(key.search_key()) {
                    Some((stored, value)) => {
                        self.dropped.keep(stored);
                        (Some(value), -1)
                    }
                    None => (None, 0),
                },
            },
            Some((Err(at), leaf)) => match decide(None) {
                Update::Put(value) => {
                    if leaf.is_full() {
                        self.insert_at_leaf(key, value);
                    } else {
                        leaf.insert(at, key, value);
                    }
                    return (None, 1);
                }
                Update::Keep | Update::Remove => (None, 0),
            },
            None => match decide(None) {
                Update::Put(value) => {
                    self.insert_at_leaf(key, value);
                    return (None, 1);
                }
                Update::Keep | Update::Remove => (None, 0),
            },
        };
        self.dropped.keep(key.key);
        result
    }

    #[inline]
    pub(super) fn remove_sought(&mut self, key: SearchKey<'_, K, H>) -> Option<(K, V)> {
        let leaf = Self::leaf_of_mut(&mut self.root, key)?;
        let at = leaf.keys().find(key).ok()?;
        if leaf.len() > Self::SMALL {
            return Some(leaf.remove(at));
        }
        self.remove_mending(|keys| keys.at_or_below(key), |_| at)
    }

    pub(super) fn pop(&mut self, direction: Direction) -> Option<(K, V)> {
        match direction {
            Direction::Ascending => self.remove_mending(|_| 0, |_| 0),
            Direction::Descending => self.remove_mending(|keys| keys.len(), |keys| keys.len() - 1),
        }
    }

    /// Removes the entry to which `child` leads in inner nodes and `entry` in the leaf. Merges or
    /// unlinks nodes that become small.
    fn remove_mending(
        &mut self,
        child: impl Fn(&Row<'_, K, H>) -> usize,
        entry: impl Fn(&Row<'_, K, H>) -> usize,
    ) -> Option<(K, V)> {
        let root = self.root.as_mut()?;
        let removed = root.remove(&child, &entry, &mut self.dropped);
        if root.len() == 0 {
            self.root = None;
        }
        self.lower_root();
        Some(removed)
    }

    /// Replaces a root with an only child by that child.
    pub(super) fn lower_root(&mut self) {
        while let Some(Node::Inner(inner)) = &mut self.root
            && inner.children().len() == 1
        {
            self.root = Some(inner.remove(0).1);
        }
    }
}

impl<K: Ord + Clone, V, H: KeyHead<K>, const N: usize> Node<K, V, H, N> {
    /// An inner node with two children.
    pub(super) fn pair(lower: Self, separator: Headed<K, H>, upper: Self) -> Self {
        let mut inner = Inner::new(lower);
        inner.insert_behind(0, separator, upper);
        inner.check_changed();
        Self::Inner(inner)
    }

    /// Inserts an absent key. Returns the upper part if this node was split.
    fn insert(&mut self, offer: &mut Offer<'_, K, V, H>) -> Upper<K, V, H, N> {
        match self {
            Self::Leaf(leaf) => {
                let at = leaf.keys().below(offer.search_key());
                if !leaf.is_full() {
                    let (key, value) = offer.take();
                    leaf.insert(at, key, value);
                    return None;
                }
                // An append leaves a full leaf behind; other insertions split in the middle.
                if at == leaf.len() {
                    let separator = offer.search_key().copy();
                    let mut upper = Leaf::new();
                    let (key, value) = offer.take();
                    upper.insert(0, key, value);
                    return Some((separator, Self::Leaf(upper)));
                }
                let separator = leaf.keys().copy(N / 2);
                let (key, value) = offer.take();
                let mut upper = leaf.split_off(N / 2);
                if at <= N / 2 {
                    leaf.insert(at, key, value);
                } else {
                    upper.insert(at - N / 2, key, value);
                }
                Some((separator, Self::Leaf(upper)))
            }
            Self::Inner(inner) => {
                let at = inner.keys().at_or_below(offer.search_key());
                let (separator, upper) = inner.children_mut()[at].insert(offer)?;
                inner.add_behind(at, separator, upper)
            }
        }
    }

    /// Removes the entry to which the two functions lead. The caller merges or unlinks this node
    /// if it becomes small or empty.
    fn remove(
        &mut self,
        child: &impl Fn(&Row<'_, K, H>) -> usize,
        entry: &impl Fn(&Row<'_, K, H>) -> usize,
        dropped: &mut Dropped<K>,
    ) -> (K, V) {
        match self {
            Self::Leaf(leaf) => {
                let at = entry(&leaf.keys());
                leaf.remove(at)
            }
            Self::Inner(inner) => {
                let at = child(&inner.keys());
                let removed = inner.children_mut()[at].remove(child, entry, dropped);
                inner.mend(at, dropped);
                inner.check_changed();
                removed
            }
        }
    }

    /// Moves all of `upper`, a node of the same height, into this one if both together have at most
    /// `most` entries or children; otherwise returns it.
    pub(super) fn absorb(
        &mut self,
        separator: Headed<K, H>,
        upper: Self,
        most: usize,
        dropped: &mut Dropped<K>,
    ) -> Upper<K, V, H, N> {
        if self.len() + upper.len() > most {
            return Some((separator, upper));
        }
        match (self, upper) {
            (Self::Leaf(leaf), Self::Leaf(mut upper)) => {
                dropped.keep(separator.key);
                leaf.take_tail(&mut upper, 0);
            }
            (Self::Inner(inner), Self::Inner(mut upper)) => {
                inner.append(separator, &mut upper);
                inner.check_changed();
            }
            _ => unreachable!("neighbours have the same height"),
        }
        None
    }
}

impl<K: Ord + Clone, V, H: KeyHead<K>, const N: usize> Inner<K, V, H, N> {
    /// Inserts `child` after child `at`. Returns the upper part if this node was split.
    pub(super) fn add_behind(
        &mut self,
        at: usize,
        separator: Headed<K, H>,
        child: Node<K, V, H, N>,
    ) -> Upper<K, V, H, N> {
        if !self.is_full() {
            self.insert_behind(at, separator, child);
            self.check_changed();
            return None;
        }
        // An append leaves a nearly full node behind.
        let middle = if at == N - 1 { N - 1 } else { N / 2 };
        let (middle_key, mut upper) = self.split_off(middle);
        if at < middle {
            self.insert_behind(at, separator, child);
        } else {
            upper.insert_behind(at - middle, separator, child);
        }
        self.check_changed();
        upper.check_changed();
        Some((middle_key, Node::Inner(upper)))
    }

    /// Inserts `child` before all others. Returns the upper part if this node was split.
    pub(super) fn add_first(
        &mut self,
        child: Node<K, V, H, N>,
        separator: Headed<K, H>,
    ) -> Upper<K, V, H, N> {
        let split = self.is_full().then(|| self.split_off(N / 2));
        self.insert_first(child, separator);
        self.check_changed();
        split.map(|(separator, upper)| (separator, Node::Inner(upper)))
    }

    /// Merges child `at` with a neighbour if it has become small, or unlinks it if it is empty.
    fn mend(&mut self, at: usize, dropped: &mut Dropped<K>) {
        let small = self.children()[at].len();
        if small == 0 {
            // An empty node has no keys of its own.
            if let (Some(separator), _) = self.remove(at) {
                dropped.keep(separator.key);
            }
        } else if small <= BTree::<K, V, H, N>::SMALL {
            let fits = |other: usize| {
                self.children()
                    .get(other)
                    .is_some_and(|other| other.len() + small <= BTree::<K, V, H, N>::MERGED)
            };
            let lower = if fits(at + 1) {
                at
            } else if at > 0 && fits(at - 1) {
                at - 1
            } else {
                return;
            };
            if let (Some(separator), upper) = self.remove(lower + 1) {
                let left = self.children_mut()[lower].absorb(separator, upper, N, dropped);
                debug_assert!(left.is_none(), "it was seen to fit");
            }
        }
    }
}
