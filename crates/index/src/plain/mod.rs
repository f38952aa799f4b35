//! One lock over the standard library's map: the least that an engine can be.

use crate::contract::{Direction, Implementation, KeyRange, Shape, Update};
use crate::key::{KeyHead, NoHead};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Bound;
use tremula_sync::RwLock;

/// One lock over a `BTreeMap`.
pub struct Plain<K, V, H = NoHead> {
    map: RwLock<BTreeMap<K, V>>,
    heads: PhantomData<fn() -> H>,
}

impl<K: Ord, V, H> Plain<K, V, H> {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self {
            map: RwLock::new(BTreeMap::new()),
            heads: PhantomData,
        }
    }
}

fn owned<K: Clone, V: Clone>((key, value): (&K, &V)) -> (K, V) {
    (key.clone(), value.clone())
}

impl<K, V, H> Implementation<K, V> for Plain<K, V, H>
where
    K: Ord + Clone + Send + Sync,
    V: Clone + Send + Sync,
    H: KeyHead<K>,
{
    fn engine(&self) -> &'static str {
        "plain"
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        self.map.read().get(key).map(read).is_some()
    }

    fn insert(&self, key: K, value: V) -> Option<V> {
        self.map.write().insert(key, value)
    }

    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        let mut map = self.map.write();
        if map.contains_key(&key) {
            return Err(value);
        }
        map.insert(key, value);
        Ok(())
    }

    fn remove(&self, key: &K) -> Option<V> {
        self.map.write().remove(key)
    }

    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        let mut map = self.map.write();
        match decide(map.get(&key)) {
            Update::Put(value) => map.insert(key, value),
            Update::Keep => None,
            Update::Remove => map.remove(&key),
        }
    }

    fn first(&self) -> Option<(K, V)> {
        self.map.read().first_key_value().map(owned)
    }

    fn last(&self) -> Option<(K, V)> {
        self.map.read().last_key_value().map(owned)
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        let map = self.map.read();
        map.range((Bound::Excluded(key), Bound::Unbounded))
            .next()
            .map(owned)
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        let map = self.map.read();
        map.range((Bound::Unbounded, Bound::Excluded(key)))
            .next_back()
            .map(owned)
    }

    fn pop_first(&self) -> Option<(K, V)> {
        self.map.write().pop_first()
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.map.write().pop_last()
    }

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        if range.is_empty() {
            return;
        }
        let map = self.map.read();
        let entries = map.range((range.low, range.high)).map(owned);
        match direction {
            Direction::Ascending => out.extend(entries.take(limit)),
            Direction::Descending => out.extend(entries.rev().take(limit)),
        }
    }

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        let mut map = self.map.write();
        let before = map.len();
        // All comparisons come first: one of them may panic.
        let is_in: Vec<bool> = map.keys().map(|key| range.contains(key)).collect();
        let mut is_in = is_in.into_iter();
        map.retain(|_, _| is_in.next() != Some(true));
        before - map.len()
    }

    fn len(&self) -> usize {
        self.map.read().len()
    }

    fn shape(&self) -> Shape {
        Shape {
            engine: self.engine(),
            figures: vec![
                ("entries", self.len() as u64),
                ("bytes", (self.len() * size_of::<(K, V)>().max(1)) as u64),
            ],
        }
    }
}
