//! One readers-writer lock over a sequential container: the base line.
//!
//! ETS worked like this before contention adaptation, and a Rust program gets the same from
//! `RwLock<BTreeMap>`. Every operation is linearizable, scans and snapshots too, because each holds
//! the one lock. Use it if one thread does nearly all the work. With several threads every
//! operation, reads too, writes the cache line of the lock.

use crate::container::{BTree, Container};
use crate::contract::{Direction, KeyRange, OrderedIndex, Shape, Update};
use crate::form::Form;
use crate::key::NoHead;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use tremula_sync::RwLock;

/// An ordered map behind one readers-writer lock. See the [module](self) for when to use it.
///
/// ```
/// use tremula_index::{Locked, OrderedIndex};
///
/// let index = Locked::<u32, &'static str>::new();
/// index.insert(2, "two");
/// index.insert(1, "one");
/// assert_eq!(index.first(), Some((1, "one")));
/// ```
pub struct Locked<K, V, H = NoHead, C = BTree<K, V, H>> {
    inner: RwLock<Inner<C>>,
    entry: PhantomData<(K, V)>,
    heads: PhantomData<fn() -> H>,
}

#[derive(Default)]
struct Inner<C> {
    container: C,
    len: usize,
}

impl<C> Inner<C> {
    fn changed(&mut self, difference: i8) {
        self.len = self.len.wrapping_add_signed(difference.into());
    }
}

impl<K: Ord + Clone + Send + Sync, V: Send + Sync> Locked<K, V> {
    /// An empty index. One of another container, or with heads of keys, is made by
    /// [`default`](Default::default).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K, V, H, C: Container<K, V>> Locked<K, V, H, C>
where
    K: Ord + Clone,
{
    /// Runs `work` under the lock. Keys that the container drops are dropped after the lock has
    /// been released, because `K::drop` may call this index.
    #[inline]
    fn write<R>(&self, work: impl FnOnce(&mut Inner<C>) -> R) -> R {
        let dropped;
        let mut inner = self.inner.write();
        let result = work(&mut inner);
        dropped = inner.container.take_dropped();
        drop(inner);
        drop(dropped);
        result
    }
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> Default for Locked<K, V, H, C> {
    fn default() -> Self {
        Self {
            inner: RwLock::new(Inner::default()),
            entry: PhantomData,
            heads: PhantomData,
        }
    }
}

fn owned<K: Clone, V: Clone>((key, value): (&K, &V)) -> (K, V) {
    (key.clone(), value.clone())
}

impl<K, V, H, C> OrderedIndex<K, V> for Locked<K, V, H, C>
where
    K: Ord + Clone + Send + Sync,
    V: Clone + Send + Sync,
    C: Container<K, V>,
{
    fn engine(&self) -> &'static str {
        "locked"
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        self.inner.read().container.get(key).map(read).is_some()
    }

    fn get(&self, key: &K) -> Option<V> {
        self.inner.read().container.get(key).cloned()
    }

    fn can_seek(&self, form: &dyn Form<K>) -> bool {
        C::can_seek(form)
    }

    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool {
        self.inner.read().container.seek(form).map(read).is_some()
    }

    fn insert(&self, key: K, value: V) -> Option<V> {
        self.write(|inner| {
            let old = inner.container.insert(key, value);
            inner.changed(i8::from(old.is_none()));
            old
        })
    }

    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        self.write(|inner| {
            inner.container.insert_if_absent(key, value)?;
            inner.changed(1);
            Ok(())
        })
    }

    fn remove(&self, key: &K) -> Option<V> {
        self.write(|inner| {
            let old = inner.container.remove(key);
            inner.changed(-i8::from(old.is_some()));
            old
        })
    }

    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        self.write(|inner| {
            let (old, difference) = inner.container.update(key, decide);
            inner.changed(difference);
            old
        })
    }

    fn first(&self) -> Option<(K, V)> {
        self.inner.read().container.first().map(owned)
    }

    fn last(&self) -> Option<(K, V)> {
        self.inner.read().container.last().map(owned)
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        self.inner.read().container.next(key).map(owned)
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        self.inner.read().container.prev(key).map(owned)
    }

    fn step_with(&self, key: &K, direction: Direction, read: &mut dyn FnMut(&K, &V)) -> bool {
        let inner = self.inner.read();
        let entry = match direction {
            Direction::Ascending => inner.container.next(key),
            Direction::Descending => inner.container.prev(key),
        };
        entry.map(|(key, value)| read(key, value)).is_some()
    }

    fn pop_first(&self) -> Option<(K, V)> {
        self.write(|inner| {
            let entry = inner.container.pop_first();
            inner.changed(-i8::from(entry.is_some()));
            entry
        })
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.write(|inner| {
            let entry = inner.container.pop_last();
            inner.changed(-i8::from(entry.is_some()));
            entry
        })
    }

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        if limit == 0 {
            return;
        }
        let end = out.len().saturating_add(limit);
        let inner = self.inner.read();
        let _ = inner.container.visit(range, direction, &mut |key, value| {
            out.push((key.clone(), value.clone()));
            if out.len() == end {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        let removed = self.write(|inner| {
            let removed = inner.container.split_range(range);
            let count = removed.count();
            inner.len -= count;
            (removed, count)
        });
        // The entries are dropped here, after the lock has been released.
        removed.1
    }

    fn len(&self) -> usize {
        self.inner.read().len
    }

    fn shape(&self) -> Shape {
        let inner = self.inner.read();
        Shape {
            engine: self.engine(),
            figures: vec![
                ("entries", inner.len as u64),
                ("depth", inner.container.depth() as u64),
                (
                    "bytes",
                    (size_of::<Self>() + inner.container.bytes()) as u64,
                ),
            ],
        }
    }
}
