//! The figures of a tree.

use super::node::{Allocation, Node};
use super::{CaTree, Container};
use crate::contract::{OrderedIndex, Shape};
use tremula_sync::StatisticsLock;
use tremula_sync::atomic::Ordering;

impl<K, V, H, C> CaTree<K, V, H, C>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    C: Container<K, V> + 'static,
{
    /// Gathers the figures. Visits the base nodes one after the other, and may miss those that
    /// other threads replace meanwhile.
    pub(super) fn describe(&self) -> Shape {
        let adaptations = &self.adaptations;
        let read = |counter: &tremula_sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let (mut bases, mut biased, mut route_depth, mut container_depth, mut bytes) =
            (0, 0, 0, 0, 0);
        let (mut contended, mut uncontended) =
            (read(&adaptations.contended), read(&adaptations.uncontended));
        let mut count_acquisitions = |lock: &StatisticsLock<_>| {
            let acquisitions = lock.acquisitions();
            contended += u64::from(acquisitions.0);
            uncontended += u64::from(acquisitions.1);
        };
        count_acquisitions(&self.trunk.get().1.lock);
        let guard = self.collector.pin();
        // By links and not by keys, so that even with keys that contradict one another it visits
        // each node once.
        let mut nodes = vec![(self.root.get(&guard), 0)];
        while let Some((node, depth)) = nodes.pop() {
            let place = match node.kind() {
                Node::Route(route) => {
                    let children = [&route.right, &route.left];
                    nodes.extend(children.map(|child| (child.get(&guard), depth + 1)));
                    continue;
                }
                Node::Base(base) => base,
            };
            let base = place.lock.read_unbiased();
            if !base.valid {
                // Another thread has just replaced it.
                adaptations.retry();
                continue;
            }
            bases += 1;
            biased += u64::from(place.lock.is_reader_biased());
            route_depth = route_depth.max(depth);
            container_depth = container_depth.max(base.container.depth());
            bytes += base.container.bytes();
            if !self.trunk.is(node) {
                count_acquisitions(&place.lock);
            }
        }
        // Every route node has two children, so the tree has one fewer than base nodes.
        let routes = u64::saturating_sub(bases, 1);
        bytes += size_of::<Self>() + (bases + routes) as usize * size_of::<Allocation<K, C>>();
        Shape {
            engine: self.engine(),
            figures: vec![
                ("entries", self.len() as u64),
                ("route_nodes", routes),
                ("base_nodes", bases),
                ("route_depth", route_depth as u64),
                ("depth", (route_depth + container_depth) as u64),
                ("splits", read(&adaptations.splits)),
                ("joins", read(&adaptations.joins)),
                ("contended", contended),
                ("uncontended", uncontended),
                ("retries", read(&adaptations.retries)),
                ("reader_biased", biased),
                ("bytes", bytes as u64),
            ],
        }
    }
}
