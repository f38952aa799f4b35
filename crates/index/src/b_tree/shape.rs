//! The figures of a tree.

use super::layout::Plan;
use super::tree::Tree;
use crate::contract::Shape;
use crate::kit::{Packed, Spec, StoredKey};
use tremula_sync::atomic::{AtomicU64, Ordering};

impl<S: Spec> Tree<S> {
    pub(super) fn entries(&self) -> usize {
        // The sum may be negative: another thread may count the removal of an entry before the
        // inserting thread counts the insertion.
        usize::try_from(self.len.sum()).unwrap_or(0)
    }

    /// Gathers what the operations have counted. Visits only the root.
    pub(super) fn describe(&self, engine: &'static str) -> Shape {
        let counters = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let entries = self.entries() as u64;
        let (leaves, inner_nodes) = (read(&counters.leaves), read(&counters.inner_nodes));
        let key = StoredKey::<S>::bytes_beside();
        // A separator stands between each leaf and the next, in some inner node.
        let separators = leaves - 1;
        let bytes = (leaves + inner_nodes) * const { Plan::of::<S>().layout.size() } as u64
            + entries * (key + Packed::<S::Value>::bytes_beside()) as u64
            + separators * key as u64
            + size_of::<Self>() as u64;
        let guard = self.collector.pin();
        let level = self.retry(|| self.root(&guard)).node.level();
        Shape {
            engine,
            figures: vec![
                ("entries", entries),
                ("leaves", leaves),
                ("inner_nodes", inner_nodes),
                ("depth", u64::from(level) + 1),
                ("splits", read(&counters.splits)),
                ("merges", read(&counters.merges)),
                ("borrows", read(&counters.borrows)),
                ("restarts", read(&counters.restarts)),
                ("locked_scans", read(&counters.locked_scans)),
                ("bytes", bytes),
            ],
        }
    }
}
