//! The contention-adapting search tree: one container while one thread uses it, many containers
//! while many threads do.
//!
//! Source: Sagonas and Winblad, "A contention adapting approach to concurrent ordered sets",
//! JPDC 2018; ETS has used the design for its `ordered_set` tables since Erlang/OTP 22.
//!
//! ```text
//!              route 50                 route nodes: a key, two links; read without locks
//!             /        \
//!        route 20      base C           base nodes: a statistics lock and a sequential
//!        /      \      [50 …]           container
//!     base A   base B
//!     [… 20)   [20 … 50)
//! ```
//!
//! While the tree has a single base node, that node is always the same one, the *trunk*. It belongs
//! to the tree and is never freed. So an operation on an undivided tree needs neither a descent nor
//! a pin: it takes one lock, as it would on a single-lock tree.
//!
//! An operation follows the route nodes to a base node, locks it and works on its container. The
//! statistics of the lock say how often threads had to wait for it. Above a limit the base node is
//! *split* in two under a new route node. Below another limit it is *joined* with its neighbour,
//! and the route node between them is unlinked. An operation that finds its base node replaced
//! starts again.
//!
//! # Invariants
//!
//! 1. The key of a route node is above all keys to its left, and at or below all keys to its right.
//!    It never changes.
//! 2. A node is *valid* exactly while it is linked. Both change together, under its lock (the
//!    `join` mutex of a route node). The range of keys that a valid base node is responsible for
//!    never changes: split and join make new base nodes.
//! 3. Only a thread that holds the lock of a base node changes the link to that base node.
//! 4. Only a thread that holds the `join` mutex of a route node and, unless that node is the root,
//!    the `join` mutex of its parent changes the link to the route node. Both are valid then.
//! 5. A thread that unlinks a route node holds the locks of a base node that is a child of it, and
//!    of that base node's neighbour on the other side. So the parent of a locked, valid base node
//!    stays its parent; and the boundary between two neighbours stays where it is while one of them
//!    is locked and valid.
//! 6. A descent may pass route nodes that are being unlinked. It still ends at the base node that
//!    is responsible for its key, if that node is valid once it is locked. But the boundaries that
//!    the descent passed may be too narrow, because a join may have moved them outwards. A thread
//!    that needs a boundary descends again while it holds the base node: from then on the route
//!    nodes that bound it cannot be unlinked (invariant 5).
//! 7. A thread that holds the lock of a base node waits only for base nodes with larger keys. A
//!    join may need one with smaller keys, so it only tries; so does a step over several ranges,
//!    from the second on, unless it locks the base nodes between them, too. A thread locks `join`
//!    mutexes after base nodes, and upwards.
//! 8. No thread drops a key under a lock, because `K::drop` may call the tree. A container keeps
//!    the keys that it no longer needs, and the thread drops them after it has released the lock.
//! 9. Keys may contradict one another, so a comparison alone never decides that a thread waits for
//!    a base node while it holds another: the boundary between the two must be the same route node
//!    seen from both sides.
//! 10. Unlinked nodes are retired: a pinned thread may still read them. The trunk is not freed but
//!     becomes linked and valid again when a join leaves a single base node.
//!
//! # Consistency
//!
//! All operations are linearizable except `len`, `shape`, `walk` and `range`, of which each batch
//! is. A scan over several base nodes holds all their locks in shared mode until it has copied the
//! entries, and a step holds all its locks exclusively until it ends. Reads that meet no writer
//! write nothing to shared memory: see [`StatisticsLock`](tremula_sync::StatisticsLock).
//!
//! # When to use it
//!
//! For keys of any type, with updates and ordered access by several threads. A radix tree is faster
//! for point operations on integers. [`Locked`](crate::Locked) is simpler, and as fast for one
//! thread.

mod adapt;
mod descend;
mod invariants;
mod node;
mod ranges;
mod shape;
mod steps;

use crate::container::{BTree, Container};
use crate::contract::{Direction, KeyRange, OrderedIndex, Shape, Update};
use crate::form::{Form, Sought};
use crate::key::NoHead;
use crate::transactional::Transactional;
use adapt::Adaptations;
use descend::{Place, Position};
use node::{BaseGuard, Link, Trunk};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::Bound;
use tremula_sync::reclaim::Collector;
use tremula_sync::{Arc, Backoff, LockDomain, StatisticsConfig, StripedCounter};

/// How a [`CaTree`] adapts.
///
/// ```
/// use tremula_index::CaTree;
/// use tremula_index::ca_tree::CaTreeConfig;
///
/// let undivided = CaTreeConfig::default().max_route_depth(0);
/// let tree = CaTree::<u64, u64>::with_config(undivided);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaTreeConfig {
    /// How the statistics of a base node change, and when it is split or joined.
    pub statistics: StatisticsConfig,
    /// By how much an operation that needs several base nodes lowers the statistics of each: a
    /// tree that is used for long ranges stays coarse. The paper's value is 100.
    pub range_discount: i32,
    /// The most route nodes on a path: a base node below that many is not split. ETS's value is 16.
    pub max_route_depth: usize,
}

impl Default for CaTreeConfig {
    fn default() -> Self {
        Self {
            statistics: StatisticsConfig::default(),
            range_discount: 100,
            max_route_depth: 16,
        }
    }
}

impl CaTreeConfig {
    /// Sets how the statistics of a base node change, and when it is split or joined.
    #[must_use]
    pub const fn statistics(mut self, statistics: StatisticsConfig) -> Self {
        self.statistics = statistics;
        self
    }

    /// Sets by how much an operation that needs several base nodes lowers the statistics of each.
    #[must_use]
    pub const fn range_discount(mut self, range_discount: i32) -> Self {
        self.range_discount = range_discount;
        self
    }

    /// Sets the most route nodes on a path.
    #[must_use]
    pub const fn max_route_depth(mut self, max_route_depth: usize) -> Self {
        self.max_route_depth = max_route_depth;
        self
    }
}

/// A concurrent ordered map that splits where it is contended and joins where it is not. The
/// [module](self) says how it works and when to use it.
///
/// Point operations take O(log n), and split or join at most one base node, in O(log n).
///
/// ```
/// use tremula_index::{CaTree, OrderedIndex};
///
/// let tree = CaTree::<u64, String>::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4 {
///         let tree = &tree;
///         scope.spawn(move || {
///             for i in 0..1000 {
///                 tree.insert(i * 4 + thread, format!("from {thread}"));
///             }
///         });
///     }
/// });
/// assert_eq!(tree.len(), 4000);
/// assert_eq!(tree.next(&41).map(|(key, _)| key), Some(42));
/// ```
pub struct CaTree<K, V, H = NoHead, C = BTree<K, V, H>> {
    root: Link<K, C>,
    trunk: Trunk<K, C>,
    len: StripedCounter,
    domain: Arc<LockDomain>,
    config: CaTreeConfig,
    adaptations: Adaptations,
    collector: Collector,
    entry: PhantomData<(K, V)>,
    heads: PhantomData<fn() -> H>,
}

// SAFETY: the links own nodes of keys and containers, all of which are `Send`; nothing is tied to a
// thread.
unsafe impl<K: Send, V: Send, H, C: Send> Send for CaTree<K, V, H, C> {}
// SAFETY: threads share nodes, whose keys and containers they see by shared reference (`Sync`); any
// thread may take over a container or free a node (`Send`).
unsafe impl<K: Send + Sync, V: Send + Sync, H, C: Send + Sync> Sync for CaTree<K, V, H, C> {}

impl<K: Ord + Clone + Send + Sync, V: Send + Sync> CaTree<K, V> {
    /// An empty tree in the default configuration. A tree of other containers, or with heads of
    /// keys, is made by [`default`](Default::default).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// An empty tree with this configuration.
    #[must_use]
    pub fn with_config(config: CaTreeConfig) -> Self {
        let domain = Arc::new(LockDomain::new(config.statistics));
        let trunk = Trunk::new(C::default(), &domain);
        Self {
            root: trunk.link(),
            trunk,
            len: StripedCounter::new(),
            domain,
            config,
            adaptations: Adaptations::default(),
            collector: Collector::new(),
            entry: PhantomData,
            heads: PhantomData,
        }
    }

    /// Runs `work` on the container that is responsible for `key`, under an exclusive lock, and
    /// splits or joins the base node if its statistics are beyond a limit. `work` also returns by
    /// how much the number of entries has changed.
    #[inline]
    fn write<Q: Borrow<K>, R>(&self, key: Q, work: impl FnOnce(&mut C, Q) -> (R, i8)) -> R {
        if let Some(place) = self.undivided() {
            let base = place.base.lock.write();
            if base.valid {
                return self.write_locked(&place, base, |container| work(container, key));
            }
        }
        let guard = self.collector.pin();
        loop {
            let place = self.locate(Position::At(key.borrow().into()), &guard);
            let base = place.base.lock.write();
            if base.valid {
                return self.write_locked(&place, base, |container| work(container, key));
            }
            drop(base);
            self.adaptations.retry();
        }
    }

    /// The part of a write under the lock of a valid base node, which it releases.
    #[inline]
    fn write_locked<R>(
        &self,
        place: &Place<'_, K, C>,
        mut base: BaseGuard<'_, C>,
        work: impl FnOnce(&mut C) -> (R, i8),
    ) -> R {
        // Dropped after the lock is released, because `K::drop` may call this tree.
        let dropped;
        let (result, difference) = work(&mut base.container);
        // Counted before the base node is split, because a split runs user code, which may panic.
        if difference != 0 {
            self.len.add(difference.into());
        }
        dropped = base.container.take_dropped();
        self.adapt_if_asked(place, base);
        drop(dropped);
        result
    }

    /// Runs `work` on the container that is responsible for `key`, under a shared lock.
    #[inline]
    fn read<R>(&self, key: Sought<'_, K>, work: impl FnOnce(&C) -> R) -> R {
        if let Some(place) = self.undivided() {
            let base = place.base.lock.read();
            if base.valid {
                return work(&base.container);
            }
        }
        let guard = self.collector.pin();
        loop {
            let base = self.locate(Position::At(key), &guard).base.lock.read();
            if base.valid {
                return work(&base.container);
            }
            drop(base);
            self.adaptations.retry();
        }
    }

    /// Reads the entry that `work` finds in the base node at `position`. If it finds none there,
    /// reads the first entry of `range` in this direction. `None` if the range is empty.
    #[inline]
    fn read_entry<R>(
        &self,
        position: Position<'_, K>,
        direction: Direction,
        work: impl Fn(&C) -> Option<(&K, &V)>,
        range: KeyRange<'_, K>,
        read: impl FnOnce(&K, &V) -> R,
    ) -> Option<R>
    where
        V: Clone,
    {
        if let Some(place) = self.undivided() {
            let base = place.base.lock.read();
            if base.valid {
                return work(&base.container).map(|(key, value)| read(key, value));
            }
        }
        let guard = self.collector.pin();
        let place = self.locate(position, &guard);
        let base = place.base.lock.read();
        if base.valid {
            let entry = work(&base.container);
            if entry.is_some() || place.boundary(direction).is_none() {
                return entry.map(|(key, value)| read(key, value));
            }
        }
        drop(base);
        let mut entries = Vec::with_capacity(1);
        self.scan_bases(range, direction, 1, &mut entries, &guard);
        entries.pop().map(|(key, value)| read(&key, &value))
    }

    /// Reads the entry with the smallest key above `key`.
    #[inline]
    fn above<R>(&self, key: &K, read: impl FnOnce(&K, &V) -> R) -> Option<R>
    where
        V: Clone,
    {
        self.read_entry(
            Position::At(key.into()),
            Direction::Ascending,
            |container| container.next(key),
            KeyRange::new(Bound::Excluded(key), Bound::Unbounded),
            read,
        )
    }

    /// Reads the entry with the largest key below `key`.
    #[inline]
    fn below<R>(&self, key: &K, read: impl FnOnce(&K, &V) -> R) -> Option<R>
    where
        V: Clone,
    {
        self.read_entry(
            Position::Below(key.into()),
            Direction::Descending,
            |container| container.prev(key),
            KeyRange::new(Bound::Unbounded, Bound::Excluded(key)),
            read,
        )
    }

    /// Removes the first entry in this direction. If the base node at that end is empty, joins it
    /// with its neighbour first: so the thread sees at one moment whether the tree is empty.
    fn pop(
        &self,
        direction: Direction,
        mut work: impl FnMut(&mut C) -> Option<(K, V)>,
    ) -> Option<(K, V)> {
        let guard = self.collector.pin();
        let backoff = Backoff::new();
        loop {
            let place = self.locate(Position::end(direction), &guard);
            let mut base = place.base.lock.write();
            if !base.valid {
                drop(base);
                self.adaptations.retry();
                continue;
            }
            if let Some(entry) = work(&mut base.container) {
                self.len.add(-1);
                let dropped = base.container.take_dropped();
                self.adapt_if_asked(&place, base);
                drop(dropped);
                return Some(entry);
            }
            let parent = place.parent?;
            if !self.join(&place, parent, base, &guard) {
                backoff.wait();
            }
        }
    }
}

fn copied<K: Clone, V: Clone>(key: &K, value: &V) -> (K, V) {
    (key.clone(), value.clone())
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> Default for CaTree<K, V, H, C> {
    fn default() -> Self {
        Self::with_config(CaTreeConfig::default())
    }
}

impl<K, V, H, C> Drop for CaTree<K, V, H, C> {
    fn drop(&mut self) {
        // SAFETY: no other thread uses the tree any more.
        unsafe { self.trunk.free_with(&self.root) };
    }
}

impl<K, V, H, C> OrderedIndex<K, V> for CaTree<K, V, H, C>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    C: Container<K, V> + 'static,
{
    fn engine(&self) -> &'static str {
        "ca_tree"
    }

    fn get_with(&self, key: &K, read: &mut dyn FnMut(&V)) -> bool {
        self.read(key.into(), |container| {
            container.get(key).map(read).is_some()
        })
    }

    fn get(&self, key: &K) -> Option<V> {
        self.read(key.into(), |container| container.get(key).cloned())
    }

    fn can_seek(&self, form: &dyn Form<K>) -> bool {
        C::can_seek(form)
    }

    fn seek(&self, form: &dyn Form<K>, read: &mut dyn FnMut(&V)) -> bool {
        self.read(Sought::Form(form), |container| {
            container.seek(form).map(read).is_some()
        })
    }

    fn insert(&self, key: K, value: V) -> Option<V> {
        self.write(key, |container, key| {
            let old = container.insert(key, value);
            let difference = i8::from(old.is_none());
            (old, difference)
        })
    }

    fn insert_if_absent(&self, key: K, value: V) -> Result<(), V> {
        self.write(key, |container, key| {
            let result = container.insert_if_absent(key, value);
            let difference = i8::from(result.is_ok());
            (result, difference)
        })
    }

    fn remove(&self, key: &K) -> Option<V> {
        self.write(key, |container, key| {
            let old = container.remove(key);
            let difference = -i8::from(old.is_some());
            (old, difference)
        })
    }

    fn update(&self, key: K, decide: &mut dyn FnMut(Option<&V>) -> Update<V>) -> Option<V> {
        self.write(key, |container, key| container.update(key, decide))
    }

    fn first(&self) -> Option<(K, V)> {
        self.read_entry(
            Position::First,
            Direction::Ascending,
            Container::first,
            KeyRange::all(),
            copied,
        )
    }

    fn last(&self) -> Option<(K, V)> {
        self.read_entry(
            Position::Last,
            Direction::Descending,
            Container::last,
            KeyRange::all(),
            copied,
        )
    }

    fn next(&self, key: &K) -> Option<(K, V)> {
        self.above(key, copied)
    }

    fn prev(&self, key: &K) -> Option<(K, V)> {
        self.below(key, copied)
    }

    fn step_with(&self, key: &K, direction: Direction, read: &mut dyn FnMut(&K, &V)) -> bool {
        match direction {
            Direction::Ascending => self.above(key, read).is_some(),
            Direction::Descending => self.below(key, read).is_some(),
        }
    }

    fn pop_first(&self) -> Option<(K, V)> {
        self.pop(Direction::Ascending, Container::pop_first)
    }

    fn pop_last(&self) -> Option<(K, V)> {
        self.pop(Direction::Descending, Container::pop_last)
    }

    fn scan(
        &self,
        range: KeyRange<'_, K>,
        direction: Direction,
        limit: usize,
        out: &mut Vec<(K, V)>,
    ) {
        if limit > 0 && !range.is_empty() {
            self.scan_bases(range, direction, limit, out, &self.collector.pin());
        }
    }

    fn remove_range(&self, range: KeyRange<'_, K>) -> usize {
        if range.is_empty() {
            0
        } else {
            self.remove_from_bases(range, &self.collector.pin(), |_| ())
        }
    }

    fn len(&self) -> usize {
        // The sum may be negative: another thread may count the removal of an entry before the
        // inserting thread counts the insertion.
        usize::try_from(self.len.sum()).unwrap_or(0)
    }

    fn shape(&self) -> Shape {
        self.describe()
    }

    fn transactional(&self) -> Option<&dyn Transactional<K, V>> {
        Some(self)
    }

    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            self.check_at_rest();
        }
    }
}
