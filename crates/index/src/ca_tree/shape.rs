//! What the tree looks like.

use super::descend::Position;
use super::node::Allocation;
use super::{CaTree, Container};
use crate::contract::{OrderedIndex, Shape};
use tremula_sync::StatisticsLock;
use tremula_sync::atomic::Ordering;

impl<K, V, C> CaTree<K, V, C>
where
    K: Ord + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
    C: Container<K, V> + 'static,
{
    /// Visits the base nodes one after the other, as they are then.
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
        let mut position = Some(Position::First);
        while let Some(here) = position {
            let place = self.locate(here, &guard);
            let base = place.base.lock.read_unbiased();
            if !base.valid {
                adaptations.retry();
                continue;
            }
            bases += 1;
            biased += u64::from(place.base.lock.is_reader_biased());
            route_depth = route_depth.max(self.depth_of(place.parent, &guard));
            container_depth = container_depth.max(base.container.depth());
            bytes += base.container.bytes();
            if !self.trunk.is(place.node) {
                count_acquisitions(&place.base.lock);
            }
            // Again, now that it is locked: see invariant 6.
            position = self.locate(here, &guard).high.map(Position::At);
        }
        // Every route node has two children, so there is one fewer than base nodes.
        let routes = bases - 1;
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
