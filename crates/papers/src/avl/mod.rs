//! An AVL tree with split and join: the container that ETS uses, and a check on
//! [`BTree`](tremula_index::container::BTree).
//!
//! ```text
//!                 40 h=4                 One entry a node. Beside each key: the height of
//!            ┌──────┴──────┐             the subtree, 1 for a leaf, 0 for no node. The
//!          20 h=3        60 h=2          children of a node differ by at most one in
//!        ┌───┴───┐     ┌───┴───┐         height; the node is rotated when they would
//!     10 h=1  30 h=2  50      70         differ by two.
//!           ┌───┘
//!          25
//! ```
//!
//! # Invariants
//!
//! 1. **Order.** Every key in a node's lower subtree is below the node's key, and every key in its
//!    upper subtree above it.
//! 2. **Height.** `height` is one more than the greater of the children's heights.
//! 3. **Balance.** The heights of a node's two children differ by at most one. Hence a tree of `n`
//!    entries has at most 1.45 log₂(n + 2) levels, and recursion, with [`Drop`], goes no deeper.
//! 4. **Comparisons first.** No user code (`K::cmp`, `K::clone`, a closure) runs between the first
//!    change to the tree and the last. An operation finds its [`Path`]s, makes all calls, and then
//!    restructures without any. So a panic leaves the tree as it was.
//!
//! # Complexity
//!
//! With `n` entries: search, insertion, removal, [`split`](Container::split),
//! [`split_range`](Container::split_range) and [`join`](Container::join) are O(log n),
//! [`depth`](Container::depth) is O(1), [`count`](Container::count) and [`bytes`](Container::bytes)
//! are O(n). A node of `u64` to `u64` has 40 bytes, in an allocation of its own.
//!
//! # When not to use it
//!
//! Each level of a search is a cache miss. `BTree` needs a fraction of the misses and of the bytes.
//! It is the better container for everything but comparison with ETS.
//!
//! # Sources
//!
//! Adelson-Velsky and Landis, "An algorithm for the organization of information", 1962.
//! Join by heights, and split by joins: Blelloch, Ferizovic and Sun, "Just Join for Parallel
//! Ordered Sets", SPAA 2016, section 4. Split at the root: Sagonas and Winblad, "A contention
//! adapting approach to concurrent ordered sets", JPDC 2018.

mod balance;
mod check;
mod join;
mod node;
mod path;
mod visit;

use node::{Link, Node, Side};
use path::Path;
use std::cmp::Ordering;
use std::mem;
use std::ops::ControlFlow;
use tremula_index::container::{Container, Dropped};
use tremula_index::kit::Form;
use tremula_index::{Direction, KeyRange, Update};

/// A sequential ordered map over an AVL tree: what ETS uses, and a check on
/// [`BTree`](tremula_index::container::BTree).
///
/// Each entry is in a node, and an allocation, of its own, so each level of a search is a cache
/// miss. Search, change, split and join are O(log n), counting is O(n). Joins go by heights and
/// splits by joins (Blelloch, Ferizovic and Sun, "Just Join for Parallel Ordered Sets", SPAA 2016).
///
/// ```
/// use tremula_index::container::Container;
/// use tremula_papers::Avl;
///
/// let mut lower: Avl<u32, &str> = Avl::default();
/// lower.insert(1, "one");
/// lower.insert(2, "two");
/// lower.insert(3, "three");
/// let (key, upper) = lower.split().expect("three entries can be split");
/// assert_eq!(upper.first(), upper.get(&key).map(|value| (&key, value)));
/// lower.join(key, upper);
/// assert_eq!(lower.count(), 3);
/// ```
pub struct Avl<K, V> {
    root: Link<K, V>,
    dropped: Dropped<K>,
}

impl<K, V> Avl<K, V> {
    const fn of(root: Link<K, V>) -> Self {
        Self {
            root,
            dropped: Dropped::new(),
        }
    }
}

impl<K, V> Default for Avl<K, V> {
    fn default() -> Self {
        Self::of(None)
    }
}

impl<K: Ord, V> Avl<K, V> {
    fn path_to(&self, key: &K) -> Path {
        Path::search(&self.root, |candidate| key.cmp(candidate))
    }

    /// Inserts a new entry at the empty place at the end of `path`.
    fn plant(&mut self, path: Path, key: K, value: V) {
        *path.end_mut(&mut self.root) = Some(Node::leaf(key, value));
        path.rebalance(&mut self.root);
    }

    /// Removes the entry at the end of `path`, if there is one.
    fn uproot(&mut self, path: Path) -> Option<V> {
        let node = balance::unlink(path.end_mut(&mut self.root))?;
        path.rebalance(&mut self.root);
        let (key, value) = node.into_entry();
        self.dropped.keep(key);
        Some(value)
    }

    /// The entry whose key is the nearest on one side of `key`, excluding `key`.
    fn neighbour(&self, key: &K, side: Side) -> Option<(&K, &V)> {
        let mut nearest = None;
        let mut link = &self.root;
        while let Some(node) = link {
            // For the upper neighbour, a node above `key` is a candidate; nearer ones are below it.
            let beyond = match side {
                Side::Lower => node.key < *key,
                Side::Upper => node.key > *key,
            };
            if beyond {
                nearest = Some(node.entry());
                link = &node[side.opposite()];
            } else {
                link = &node[side];
            }
        }
        nearest
    }

    fn outermost(&self, side: Side) -> Option<(&K, &V)> {
        let mut node = self.root.as_ref()?;
        while let Some(child) = &node[side] {
            node = child;
        }
        Some(node.entry())
    }
}

impl<K: Ord + Clone + Send + Sync, V: Send + Sync> Container<K, V> for Avl<K, V> {
    const NAME: &'static str = "avl";

    fn get(&self, key: &K) -> Option<&V> {
        let mut link = &self.root;
        while let Some(node) = link {
            match key.cmp(&node.key) {
                Ordering::Less => link = &node[Side::Lower],
                Ordering::Greater => link = &node[Side::Upper],
                Ordering::Equal => return Some(&node.value),
            }
        }
        None
    }

    fn insert(&mut self, key: K, value: V) -> Option<V> {
        let path = self.path_to(&key);
        match path.end_mut(&mut self.root) {
            Some(node) => {
                self.dropped.keep(key);
                Some(mem::replace(&mut node.value, value))
            }
            None => {
                self.plant(path, key, value);
                None
            }
        }
    }

    fn insert_if_absent(&mut self, key: K, value: V) -> Result<(), V> {
        let path = self.path_to(&key);
        if path.end(&self.root).is_some() {
            self.dropped.keep(key);
            return Err(value);
        }
        self.plant(path, key, value);
        Ok(())
    }

    fn can_seek(_: &dyn Form<K>) -> bool {
        true
    }

    fn seek(&self, form: &dyn Form<K>) -> Option<&V> {
        let path = Path::search(&self.root, |candidate| form.compare(candidate));
        path.end(&self.root).as_ref().map(|node| &node.value)
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let path = self.path_to(key);
        self.uproot(path)
    }

    fn update(
        &mut self,
        key: K,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
    ) -> (Option<V>, i8) {
        let path = self.path_to(&key);
        let place = path.end_mut(&mut self.root);
        let result = match (decide(place.as_ref().map(|node| &node.value)), place) {
            (Update::Put(value), Some(node)) => (Some(mem::replace(&mut node.value, value)), 0),
            (Update::Put(value), None) => {
                self.plant(path, key, value);
                return (None, 1);
            }
            (Update::Remove, Some(_)) => (self.uproot(path), -1),
            (Update::Remove, None) | (Update::Keep, _) => (None, 0),
        };
        self.dropped.keep(key);
        result
    }

    fn first(&self) -> Option<(&K, &V)> {
        self.outermost(Side::Lower)
    }

    fn last(&self) -> Option<(&K, &V)> {
        self.outermost(Side::Upper)
    }

    fn next(&self, key: &K) -> Option<(&K, &V)> {
        self.neighbour(key, Side::Upper)
    }

    fn prev(&self, key: &K) -> Option<(&K, &V)> {
        self.neighbour(key, Side::Lower)
    }

    fn pop_first(&mut self) -> Option<(K, V)> {
        balance::pop(&mut self.root, Side::Lower).map(|node| node.into_entry())
    }

    fn pop_last(&mut self) -> Option<(K, V)> {
        balance::pop(&mut self.root, Side::Upper).map(|node| node.into_entry())
    }

    fn visit<'a>(
        &'a self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&'a K, &'a V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let from = match direction {
            Direction::Ascending => Side::Lower,
            Direction::Descending => Side::Upper,
        };
        visit::visit(&self.root, range, from, visit)
    }

    fn split_range(&mut self, range: KeyRange<'_, K>) -> Self {
        if range.is_empty() {
            return Self::default();
        }
        let low = Path::boundary(&self.root, |key| range.starts_before(key));
        let high = Path::boundary(&self.root, |key| !range.ends_after(key));
        let parts = join::split_between(self.root.take(), low, high);
        self.root = join::join_two(parts.below, parts.above);
        Self::of(parts.inside)
    }

    fn split(&mut self) -> Option<(K, Self)> {
        let root = self.root.as_ref()?;
        // A root without a lower child stays in the lower part, which would otherwise be empty.
        let key = match (&root[Side::Lower], &root[Side::Upper]) {
            (Some(_), _) => root.key.clone(),
            (None, Some(upper)) => upper.key.clone(),
            (None, None) => return None,
        };
        let upper = join::split_at_root(&mut self.root);
        Some((key, Self::of(upper)))
    }

    /// A join does not need it, but it is kept: see [`Dropped`].
    type Separator = K;

    fn separator(key: K) -> K {
        key
    }

    fn join_at(&mut self, separator: K, mut upper: Self) {
        self.dropped.keep(separator);
        self.dropped.append(&mut upper.dropped);
        self.root = join::join_two(self.root.take(), upper.root);
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
        node::count(&self.root)
    }

    fn depth(&self) -> usize {
        node::height(&self.root).into()
    }

    fn bytes(&self) -> usize {
        self.count() * size_of::<Node<K, V>>()
    }

    fn check(&self) {
        check::check(&self.root);
    }
}
