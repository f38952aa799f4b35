//! The contract of an ordered index, implemented on the tree.

use super::node::Entry;
use super::reclaim::Unlinked;
use super::write::copied;
use super::{BwTree, Tree};
use std::ops::{Bound, ControlFlow};
use tremula_index::key::KeyHead;
use tremula_index::kit::{
    Form, Implementation as OrderedIndex, OwnedValue, Packed, Parameters, Sought, Spec,
    head_of_form,
};
use tremula_index::{Direction, KeyRange, Shape, Storable, Update};

impl<S: Spec> Tree<S> {
    fn nearest(
        &self,
        range: KeyRange<'_, S::Key>,
        direction: Direction,
    ) -> Option<(S::Key, S::Value)> {
        let guard = &self.pin();
        let mut found = Vec::new();
        self.collect(&range, direction, 1, &mut found, guard);
        // SAFETY: what was in the tree during a pin is not freed before its end.
        found.first().map(|entry| unsafe { entry.copy() })
    }
}

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>> OrderedIndex<K, V> for BwTree<K, V, H> {
    fn engine(&self) -> &'static str {
        "bw_tree"
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        let guard = &self.tree.pin();
        match self.tree.lookup(key, guard) {
            Some(value) => {
                // SAFETY: what was in the tree during a pin is not freed before its end.
                unsafe { Packed::<V>::of_word(value).with(read) };
                true
            }
            None => false,
        }
    }

    fn get(&self, key: &K) -> Option<V> {
        let guard = &self.tree.pin();
        self.tree
            .lookup(key, guard)
            .map(|value| copied(value, guard))
    }

    fn contains_key(&self, key: &K) -> bool {
        self.tree.lookup(key, &self.tree.pin()).is_some()
    }

    fn can_seek(&self, form: &dyn Form<K>) -> bool {
        head_of_form::<K, H>(form).is_some()
    }

    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool {
        let guard = &self.tree.pin();
        let value = self.tree.lookup(Sought::Form(form), guard);
        // SAFETY: what was in the tree during a pin is not freed before its end.
        let read = value.map(|value| unsafe { Packed::<V>::of_word(value).with(read) });
        read.is_some()
    }

    fn insert(&self, key: K, value: V) -> Option<V> {
        let guard = &self.tree.pin();
        match self.tree.put(key, OwnedValue::new(value), true, guard) {
            Ok(old) => old.map(Unlinked::hand_out),
            Err(_) => unreachable!("a value that may be replaced is put"),
        }
    }

    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        let guard = &self.tree.pin();
        match self.tree.put(key, OwnedValue::new(value), false, guard) {
            Ok(_) => Ok(()),
            Err(value) => Err(value.take()),
        }
    }

    fn remove(&self, key: &K) -> Option<V> {
        let guard = &self.tree.pin();
        self.tree.take(key, guard).map(Unlinked::hand_out)
    }

    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        let guard = &self.tree.pin();
        self.tree.decide(key, decide, guard).map(Unlinked::hand_out)
    }

    fn first(&self) -> Option<(K, V)> {
        self.tree.nearest(KeyRange::all(), Direction::Ascending)
    }

    fn last(&self) -> Option<(K, V)> {
        self.tree.nearest(KeyRange::all(), Direction::Descending)
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        let above = KeyRange::new(Bound::Excluded(key), Bound::Unbounded);
        self.tree.nearest(above, Direction::Ascending)
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        let below = KeyRange::new(Bound::Unbounded, Bound::Excluded(key));
        self.tree.nearest(below, Direction::Descending)
    }

    fn pop_first(&self) -> Option<(K, V)> {
        self.tree.pop(Direction::Ascending, &self.tree.pin())
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.tree.pop(Direction::Descending, &self.tree.pin())
    }

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        let guard = &self.tree.pin();
        let mut found = Vec::new();
        self.tree
            .collect(&range, direction, limit, &mut found, guard);
        // SAFETY: what was in the tree during a pin is not freed before its end.
        out.extend(found.iter().map(|entry| unsafe { entry.copy() }));
    }

    /// Copies no keys or values. What lies in one leaf is as of one moment, the next leaf as of a
    /// later one. The thread stays pinned until the closure has seen the last entry: what others
    /// remove meanwhile is not freed before that.
    fn range(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &V) -> ControlFlow<()>,
    ) {
        let guard = &self.tree.pin();
        // SAFETY: what was in the tree during a pin is not freed before its end.
        let show = |entry: &Entry<Parameters<K, V, H>>| unsafe {
            let value = Packed::<V>::of_word(entry.value);
            entry.key.with(|key| value.with(|value| visit(key, value)))
        };
        self.tree.visit_range(&range, direction, show, guard);
    }

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        self.tree.remove_entries(&range)
    }

    fn len(&self) -> usize {
        self.tree.entries()
    }

    fn shape(&self) -> Shape {
        self.tree.describe(self.engine())
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.tree.check_at_rest();
        }
    }
}
