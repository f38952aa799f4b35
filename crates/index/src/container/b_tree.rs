//! placeholder
use super::*;
use std::collections::BTreeMap;
pub struct BTree<K, V>(BTreeMap<K, V>);
impl<K, V> Default for BTree<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}
impl<K: Ord + Clone + Send + Sync, V: Send + Sync> Container<K, V> for BTree<K, V> {
    const NAME: &'static str = "b_tree";
    fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }
    fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }
    fn insert_if_absent(&mut self, key: K, value: V) -> Result<(), V> {
        if self.0.contains_key(&key) {
            Err(value)
        } else {
            self.0.insert(key, value);
            Ok(())
        }
    }
    fn remove(&mut self, key: &K) -> Option<V> {
        self.0.remove(key)
    }
    fn update(
        &mut self,
        key: K,
        decide: &mut dyn FnMut(Option<&V>) -> Update<V>,
    ) -> (Option<V>, i8) {
        match decide(self.0.get(&key)) {
            Update::Put(v) => {
                let o = self.0.insert(key, v);
                let d = i8::from(o.is_none());
                (o, d)
            }
            Update::Keep => (None, 0),
            Update::Remove => {
                let o = self.0.remove(&key);
                let d = -i8::from(o.is_some());
                (o, d)
            }
        }
    }
    fn first(&self) -> Option<(&K, &V)> {
        self.0.first_key_value()
    }
    fn last(&self) -> Option<(&K, &V)> {
        self.0.last_key_value()
    }
    fn next(&self, key: &K) -> Option<(&K, &V)> {
        self.0
            .range((std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded))
            .next()
    }
    fn prev(&self, key: &K) -> Option<(&K, &V)> {
        self.0
            .range((std::ops::Bound::Unbounded, std::ops::Bound::Excluded(key)))
            .next_back()
    }
    fn pop_first(&mut self) -> Option<(K, V)> {
        self.0.pop_first()
    }
    fn pop_last(&mut self) -> Option<(K, V)> {
        self.0.pop_last()
    }
    fn visit<'a>(
        &'a self,
        range: KeyRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&'a K, &'a V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if range.is_empty() {
            return ControlFlow::Continue(());
        }
        let it = self.0.range::<K, _>((range.low, range.high));
        match direction {
            Direction::Ascending => {
                for (k, v) in it {
                    visit(k, v)?;
                }
            }
            Direction::Descending => {
                for (k, v) in it.rev() {
                    visit(k, v)?;
                }
            }
        }
        ControlFlow::Continue(())
    }
    fn split_range(&mut self, range: KeyRange<'_, K>) -> Self {
        Self(self.0.extract_if(.., |k, _| range.contains(k)).collect())
    }
    fn split(&mut self) -> Option<(K, Self)> {
        if self.0.len() < 2 {
            return None;
        }
        let k = self.0.keys().nth(self.0.len() / 2)?.clone();
        let r = self.0.split_off(&k);
        Some((k, Self(r)))
    }
    fn join(&mut self, _separator: K, mut upper: Self) {
        self.0.append(&mut upper.0);
    }
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    fn count(&self) -> usize {
        self.0.len()
    }
    fn depth(&self) -> usize {
        usize::from(!self.0.is_empty())
    }
    fn bytes(&self) -> usize {
        self.0.len() * size_of::<(K, V)>().max(32)
    }
    fn check(&self) {}
}
