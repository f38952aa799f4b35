//! Adapting the grain: splits where the tree is contended, joins where it is not.

use super::descend::{Parent, Place, Position};
use super::node::{BaseGuard, Link, NewNode, Node, NodeRef};
use super::{CaTree, Container};
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::reclaim::Guard;
use tremula_sync::{MutexGuard, StatisticsLock};

/// What the tree has decided so far. Written only where the shape changes or an operation has to
/// start again. All accesses are relaxed: the figures order nothing.
#[derive(Default)]
pub(super) struct Adaptations {
    pub(super) splits: AtomicU64,
    pub(super) joins: AtomicU64,
    pub(super) retries: AtomicU64,
    /// The acquisitions of base nodes that have been replaced since.
    pub(super) contended: AtomicU64,
    pub(super) uncontended: AtomicU64,
}

impl Adaptations {
    /// Counts an operation that found its base node replaced.
    #[cold]
    pub(super) fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    fn keep_acquisitions<T>(&self, lock: &StatisticsLock<T>) {
        let (contended, uncontended) = lock.acquisitions();
        self.contended
            .fetch_add(contended.into(), Ordering::Relaxed);
        self.uncontended
            .fetch_add(uncontended.into(), Ordering::Relaxed);
    }
}

impl<K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// Splits or joins a base node whose statistics are beyond a limit, and unlocks it.
    #[inline]
    pub(super) fn adapt_if_asked<'g>(&self, place: &Place<'g, K, C>, base: BaseGuard<'g, C>) {
        let statistics = base.statistics();
        let limits = &self.config.statistics;
        if statistics > limits.split_above || statistics < limits.join_below {
            self.adapt(place, base);
        }
    }

    #[cold]
    fn adapt<'g>(&self, place: &Place<'g, K, C>, mut base: BaseGuard<'g, C>) {
        let guard = self.collector.pin();
        if base.statistics() > 0 {
            self.split(place, base, &guard);
        } else if let Some(parent) = place.parent {
            self.join(place, parent, base, &guard);
        } else {
            base.set_statistics(0);
            // Unlocked before this thread gives up its pin, because it may then drop the keys of
            // route nodes that have been unlinked, and `K::drop` may call this tree.
            drop(base);
        }
    }

    /// Splits or joins the base node at `position`, if its statistics are beyond a limit and its
    /// lock is free.
    pub(super) fn adapt_at(&self, position: Position<'_, K>, guard: &Guard<'_>) {
        let place = self.locate(position, guard);
        if let Some(base) = place.base.lock.try_write()
            && base.valid
        {
            self.adapt_if_asked(&place, base);
        }
    }

    /// Replaces a base node by a route node with two base nodes, and unlocks it. If it is too deep
    /// or too small, sets its statistics to 0 instead.
    fn split(&self, place: &Place<'_, K, C>, mut base: BaseGuard<'_, C>, guard: &Guard<'_>) {
        let too_deep = || self.depth_of(place.parent, guard) >= self.config.max_route_depth;
        let upper = if too_deep() {
            None
        } else {
            base.container.split()
        };
        let Some((key, upper)) = upper else {
            base.set_statistics(0);
            return;
        };
        let lower = std::mem::take(&mut base.container);
        let [lower, upper] = [lower, upper].map(|part| NewNode::base(part, &self.domain));
        Self::check_before_split(place);
        self.link_to(place.node, place.parent)
            .set(NewNode::route(key, lower, upper));
        base.valid = false;
        self.adaptations.splits.fetch_add(1, Ordering::Relaxed);
        self.check_unlinked(place.node, place.parent, &[base.valid], guard);
        drop(base);
        // SAFETY: this thread has replaced the only link to the node, while it held its lock and
        // the node was valid.
        unsafe { self.retire_base(place.node, guard) };
    }

    /// Retires a base node, unless it is the trunk.
    ///
    /// # Safety
    ///
    /// As for [`NodeRef::retire`].
    unsafe fn retire_base(&self, node: NodeRef<'_, K, C>, guard: &Guard<'_>) {
        if self.trunk.is(node) {
            return;
        }
        if let Node::Base(base) = node.kind() {
            self.adaptations.keep_acquisitions(&base.lock);
        }
        // SAFETY: passed on to the caller.
        unsafe { node.retire(guard) };
    }

    /// Replaces this base node and its neighbour on the other side of `parent` by one base node,
    /// and unlinks `parent`. Returns whether it did: if the neighbour is locked, sets the
    /// statistics to 0 instead. Unlocks the base node.
    pub(super) fn join<'g>(
        &self,
        place: &Place<'g, K, C>,
        parent: Parent<'g, K, C>,
        base: BaseGuard<'g, C>,
        guard: &'g Guard<'_>,
    ) -> bool {
        // Keys to be dropped. Declared before the locks, so that they are dropped after the locks
        // are released, even if user code panics.
        let (mut key, separator, dropped);
        let mut base = base;
        let is_left = parent.route.left.leads_to(place.node);
        let (sibling, nearest) = if is_left {
            (&parent.route.right, Position::First)
        } else {
            (&parent.route.left, Position::Last)
        };
        let neighbour = Self::locate_below(sibling, nearest, guard);
        let Some(mut other) = neighbour.base.lock.try_write().filter(|other| other.valid) else {
            base.set_statistics(0);
            return false;
        };
        // The last user code, a clone here and comparisons below, runs before the first change.
        key = Some(parent.route.key.clone());
        separator = C::separator_from(&mut key);
        let mut parent_valid = parent.route.join.lock();
        let grandparent = self.lock_grandparent(parent, guard);
        let above = grandparent.as_ref().map(|(above, _)| *above);
        Self::check_before_join(place, parent, &neighbour, above);

        let [lower, upper] = if is_left {
            [&mut base, &mut other]
        } else {
            [&mut other, &mut base]
        };
        let mut joined = std::mem::take(&mut lower.container);
        let Some(separator) = separator else {
            unreachable!("there is a key")
        };
        joined.join_at(separator, std::mem::take(&mut upper.container));
        dropped = joined.take_dropped();
        match (above, neighbour.parent) {
            // If the neighbour is the other child of the parent, the joined base node replaces the
            // parent.
            (None, None) => self.rejoin_trunk(joined),
            (Some(_), None) => {
                self.link_to(parent.node, above)
                    .set(NewNode::base(joined, &self.domain));
            }
            // If the neighbour is further down, the sibling replaces the parent, and then the
            // joined base node replaces the neighbour. In this order, because no thread may hold
            // the joined node while a descent can still pass the parent, which no longer bounds it.
            (_, Some(nearer)) => {
                self.link_to(parent.node, above).raise(sibling.get(guard));
                self.link_to(neighbour.node, Some(nearer))
                    .set(NewNode::base(joined, &self.domain));
            }
        }
        *parent_valid = false;
        base.valid = false;
        other.valid = false;
        self.adaptations.joins.fetch_add(1, Ordering::Relaxed);
        let are_valid = [*parent_valid, base.valid, other.valid];
        self.check_unlinked(parent.node, above, &are_valid, guard);
        drop((grandparent, parent_valid, base, other));
        drop(dropped);
        // SAFETY: no link leads to any of the three any more. Each was valid until this thread
        // unlinked it, under a lock that this thread held.
        unsafe {
            self.retire_base(place.node, guard);
            self.retire_base(neighbour.node, guard);
            parent.node.retire(guard);
        }
        true
    }

    /// Makes the trunk the only base node again. Waits only for threads that are about to find the
    /// trunk invalid.
    fn rejoin_trunk(&self, container: C) {
        let (node, trunk) = self.trunk.get();
        let mut state = trunk.lock.write();
        state.container = container;
        state.valid = true;
        state.set_statistics(0);
        self.root.raise(node);
    }

    /// The link that leads to `node`, a child of `parent`.
    pub(super) fn link_to<'a>(
        &'a self,
        node: NodeRef<'_, K, C>,
        parent: Option<Parent<'a, K, C>>,
    ) -> &'a Link<K, C> {
        match parent {
            None => &self.root,
            Some(Parent { route, .. }) if route.left.leads_to(node) => &route.left,
            Some(Parent { route, .. }) => &route.right,
        }
    }

    /// Locks the route node above `route`, which the caller has locked. Returns `None` if `route`
    /// is the root; it stays the root while the caller holds the lock.
    fn lock_grandparent<'g>(
        &self,
        route: Parent<'g, K, C>,
        guard: &'g Guard<'_>,
    ) -> Option<(Parent<'g, K, C>, MutexGuard<'g, bool>)> {
        loop {
            let above = self.parent_of(route, guard)?;
            let valid = above.route.join.lock();
            if *valid {
                return Some((above, valid));
            }
        }
    }

    /// The route node that is now above `route`, which is linked.
    fn parent_of<'g>(
        &self,
        route: Parent<'g, K, C>,
        guard: &'g Guard<'_>,
    ) -> Option<Parent<'g, K, C>> {
        let mut above = None;
        let mut node = self.root.get(guard);
        while let Node::Route(passed) = node.kind() {
            if std::ptr::eq(passed, route.route) {
                return above;
            }
            above = Some(Parent {
                node,
                route: passed,
            });
            let link = if route.route.key < passed.key {
                &passed.left
            } else {
                &passed.right
            };
            node = link.get(guard);
        }
        unreachable!("a route node that is locked and valid can be reached by its key")
    }

    /// The number of route nodes down to and including `route`.
    pub(super) fn depth_of(&self, route: Option<Parent<'_, K, C>>, guard: &Guard<'_>) -> usize {
        let Some(route) = route else { return 0 };
        let mut depth = 1;
        let mut node = self.root.get(guard);
        while let Node::Route(passed) = node.kind() {
            if std::ptr::eq(passed, route.route) {
                break;
            }
            depth += 1;
            let link = if route.route.key < passed.key {
                &passed.left
            } else {
                &passed.right
            };
            node = link.get(guard);
        }
        depth
    }
}

/// Adaptation on demand, for the checkers: a model explores what other threads do meanwhile, not
/// what leads to a split or join.
#[cfg(any(loom, shuttle))]
impl<K: Ord + Clone, V, H, C: Container<K, V>> CaTree<K, V, H, C> {
    /// Splits the base node that is responsible for `key`, if it has at least two entries.
    pub fn split_now(&self, key: &K) {
        let guard = self.collector.pin();
        let place = self.locate(Position::At(key.into()), &guard);
        let base = place.base.lock.write();
        if base.valid {
            self.split(&place, base, &guard);
        }
    }

    /// Joins the base node that is responsible for `key` with its neighbour, if the neighbour is
    /// not locked.
    pub fn join_now(&self, key: &K) {
        let guard = self.collector.pin();
        let place = self.locate(Position::At(key.into()), &guard);
        let base = place.base.lock.write();
        if base.valid
            && let Some(parent) = place.parent
        {
            self.join(&place, parent, base, &guard);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::ca_tree::CaTreeConfig;
    use crate::{CaTree, OrderedIndex};
    use std::cell::Cell;
    use std::mem::ManuallyDrop;
    use std::sync::{OnceLock, mpsc};
    use std::thread;
    use std::time::Duration;
    use tremula_sync::StatisticsConfig;

    static TREE: OnceLock<CaTree<Caller, u64>> = OnceLock::new();
    /// How long the test may make no progress. Normally it takes less than a second.
    const PATIENCE: Duration = Duration::from_secs(60);

    thread_local! {
        static CALLING: Cell<bool> = const { Cell::new(false) };
        static CALLS: Cell<u64> = const { Cell::new(0) };
    }

    /// A key whose drop calls the tree.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
    struct Caller(u64);

    impl Drop for Caller {
        fn drop(&mut self) {
            if CALLING.replace(true) {
                return;
            }
            if let Some(tree) = TREE.get() {
                tree.get(&ManuallyDrop::new(Self(self.0)));
                CALLS.set(CALLS.get() + 1);
            }
            CALLING.set(false);
        }
    }

    /// Splits the trunk, and joins it again, which unlinks a route node with its key.
    fn split_and_join(tree: &CaTree<Caller, u64>) {
        let guard = tree.collector.pin();
        let place = tree.locate(Position::First, &guard);
        tree.split(&place, place.base.lock.write(), &guard);
        let place = tree.locate(Position::First, &guard);
        let parent = place.parent.unwrap();
        assert!(tree.join(&place, parent, place.base.lock.write(), &guard));
    }

    /// Fails, by never ending, if a thread that has lowered the statistics of an undivided tree
    /// gives up its pin, and drops keys of route nodes, before it unlocks the tree.
    #[test]
    fn keys_of_route_nodes_are_dropped_while_an_undivided_tree_is_unlocked() {
        let statistics = StatisticsConfig::default().uncontended(1).join_below(-2);
        let config = CaTreeConfig::default().statistics(statistics);
        let (done, finished) = mpsc::channel();
        thread::spawn(move || {
            let tree = TREE.get_or_init(|| CaTree::with_config(config));
            for round in 0..100 {
                for key in 0..10 {
                    tree.insert(Caller(key), round);
                }
                split_and_join(tree);
                for key in 0..1_000 {
                    tree.remove(&ManuallyDrop::new(Caller(10 + key)));
                }
            }
            let _ = done.send(CALLS.get());
        });
        let calls = finished.recv_timeout(PATIENCE);
        assert!(calls.is_ok_and(|calls| calls > 100), "{calls:?}");
    }
}
