//! The contract of an ordered index, implemented on the tree.

use super::contents::{Owned, Word};
use super::node::Node;
use super::{LfcaTree, Tree};
use crate::contract::{Direction, KeyRange, OrderedIndex, Shape, Storable, Update};
use crate::key::KeyHead;
use crate::key::head::head_of_form;
use crate::kit::{Form, Parameters, Sought, Spec};
use std::ops::{Bound, ControlFlow};
use tremula_sync::atomic::Ordering;
use tremula_sync::reclaim::Guard;

/// A copy of a value that was in the tree during this pin.
#[inline]
fn copied<V: Storable>(value: Word<V>, _pinned: &Guard<'_>) -> V {
    // SAFETY: what is in the tree during a pin is not dropped before its end.
    unsafe { value.with(V::clone) }
}

impl<S: Spec> Tree<S> {
    fn entry(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
    ) -> Option<(S::Key, S::Value)> {
        let guard = &self.collector.pin();
        let entry = self.neighbour(range, direction, guard)?;
        Some(entry.copy())
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> OrderedIndex<K, V> for LfcaTree<K, V, H> {
    fn engine(&self) -> &'static str {
        "lfca_tree"
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        let guard = &self.tree.collector.pin();
        match self.tree.lookup(key, guard) {
            Some(value) => {
                // SAFETY: what is in the tree during a pin is not dropped before its end.
                unsafe { value.with(read) };
                true
            }
            None => false,
        }
    }

    fn get(&self, key: &K) -> Option<V> {
        let guard = &self.tree.collector.pin();
        self.tree
            .lookup(key, guard)
            .map(|value| copied(value, guard))
    }

    fn contains_key(&self, key: &K) -> bool {
        self.tree.lookup(key, &self.tree.collector.pin()).is_some()
    }

    fn can_seek(&self, form: &dyn Form<K>) -> bool {
        head_of_form::<K, H>(form).is_some()
    }

    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool {
        let guard = &self.tree.collector.pin();
        let value = self.tree.lookup(Sought::Form(form), guard);
        // SAFETY: what is in the tree during a pin is not dropped before its end.
        value.map(|value| unsafe { value.with(read) }).is_some()
    }

    fn insert(&self, key: K, value: V) -> Option<V> {
        let guard = &self.tree.collector.pin();
        let value = Owned::new(value);
        let old = Tree::<Parameters<K, V, H>>::with_owned(key, |key, word| {
            self.tree.put(key, word, value, true, guard)
        });
        old.unwrap_or_else(|_| unreachable!("a value that may be replaced is put"))
    }

    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        let guard = &self.tree.collector.pin();
        let value = Owned::new(value);
        let put = Tree::<Parameters<K, V, H>>::with_owned(key, |key, word| {
            self.tree.put(key, word, value, false, guard)
        });
        match put.map_err(Owned::take) {
            Ok(_) => Ok(()),
            Err(Some(value)) => Err(value),
            Err(None) => unreachable!("nobody has seen the value"),
        }
    }

    fn remove(&self, key: &K) -> Option<V> {
        let guard = &self.tree.collector.pin();
        self.tree.take(key, guard)
    }

    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        let guard = &self.tree.collector.pin();
        Tree::<Parameters<K, V, H>>::with_owned(key, |key, word| {
            self.tree.decide(key, word, decide, guard)
        })
    }

    fn first(&self) -> Option<(K, V)> {
        self.tree.entry(KeyRange::all(), Direction::Ascending)
    }

    fn last(&self) -> Option<(K, V)> {
        self.tree.entry(KeyRange::all(), Direction::Descending)
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        let range = KeyRange::new(Bound::Excluded(key), Bound::Unbounded);
        self.tree.entry(range, Direction::Ascending)
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        let range = KeyRange::new(Bound::Unbounded, Bound::Excluded(key));
        self.tree.entry(range, Direction::Descending)
    }

    fn pop_first(&self) -> Option<(K, V)> {
        self.tree
            .pop(Direction::Ascending, &self.tree.collector.pin())
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.tree
            .pop(Direction::Descending, &self.tree.collector.pin())
    }

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        self.tree
            .collect(range, direction, limit, out, &self.tree.collector.pin());
    }

    /// Copies nothing. Visits the entries of a base node as of one moment, and those of the next as
    /// of a later one. The thread stays pinned meanwhile: what other threads remove is not freed
    /// before the closure has seen the last entry.
    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        self.tree
            .visit_bases(range, direction, &self.tree.collector.pin(), |entry| {
                entry.with(&mut *visit)
            });
    }

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        self.tree.remove_entries(range, &self.tree.collector.pin())
    }

    fn len(&self) -> usize {
        usize::try_from(self.tree.len.sum()).unwrap_or(0)
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.tree.check_at_rest();
        }
    }

    fn shape(&self) -> Shape {
        let _pinned = self.tree.collector.pin();
        let read = |counter: &tremula_sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (mut routes, mut bases, mut route_depth, mut levels) = (0, 0, 0, 0);
        let mut bytes = size_of::<Self>();
        let mut nodes = vec![(self.tree.root.load(), 0_u64)];
        while let Some((node, depth)) = nodes.pop() {
            bytes += size_of::<Node<Parameters<K, V, H>>>();
            // SAFETY: it was linked during this pin.
            match unsafe { node.as_ref() } {
                Node::Route(route) => {
                    routes += 1;
                    nodes.push((route.left.load(), depth + 1));
                    nodes.push((route.right.load(), depth + 1));
                }
                Node::Base(base) => {
                    // SAFETY: the base node was linked during this pin.
                    let contents = unsafe { base.contents.view() }.measure();
                    bases += 1;
                    route_depth = route_depth.max(depth);
                    levels = levels.max(contents.0 as u64);
                    bytes += contents.2 + contents.1 * Tree::<Parameters<K, V, H>>::bytes_beside();
                }
            }
        }
        let adaptations = &self.tree.adaptations;
        Shape {
            engine: self.engine(),
            figures: vec![
                ("entries", self.len() as u64),
                ("route_nodes", routes),
                ("base_nodes", bases),
                ("route_depth", route_depth),
                ("depth", route_depth + levels),
                ("splits", read(&adaptations.splits)),
                ("joins", read(&adaptations.joins)),
                ("aborted_joins", read(&adaptations.aborted_joins)),
                ("frozen_ranges", read(&adaptations.frozen_ranges)),
                ("retries", read(&adaptations.retries)),
                ("bytes", bytes as u64),
            ],
        }
    }
}
