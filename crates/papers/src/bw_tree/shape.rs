//! The figures of the tree: its nodes, and counts of what it did.

use super::base::NO_NODE;
use super::node::{Delta, View};
use super::reclaim::Guard;
use super::{ROOT, Tree};
use tremula_index::Shape;
use tremula_index::key::KeyHead;
use tremula_index::kit::{Packed, Spec};
use tremula_sync::StripedCounter;

/// Counts of events. Only rare events are counted.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) consolidations: StripedCounter,
    pub(super) splits: StripedCounter,
    pub(super) merges: StripedCounter,
    /// Leaves that were spread because their head was contended.
    pub(super) spreads: StripedCounter,
    /// Spread leaves that were made whole again.
    pub(super) made_whole: StripedCounter,
    /// Deltas that could not be prepended, since another thread was faster.
    pub(super) aborts: StripedCounter,
    /// Scans that had to hold their leaves.
    pub(super) held_scans: StripedCounter,
}

impl<S: Spec> Tree<S> {
    pub(super) fn describe(&self, engine: &'static str) -> Shape {
        let guard = self.pin();
        let count = |counter: &StripedCounter| u64::try_from(counter.sum()).unwrap_or(0);
        let (mut leaves, mut spread_leaves, mut inner_nodes, mut depth) = (0, 0, 0, 0);
        let (mut deltas, mut longest, mut on_heap) = (0, 0, 0);
        let (mut area, mut used, mut wasted) = (0, 0, 0);
        let (mut bytes, mut keys) = (size_of::<Self>(), 0);
        self.each_node(&guard, |view| {
            let base = view.base;
            depth = depth.max(u64::from(base.level) + 1);
            bytes += base.bytes();
            keys += usize::from(base.low().is_some()) + usize::from(view.high().is_some());
            if base.level > 0 {
                inner_nodes += 1;
                keys += view.count();
            } else {
                leaves += 1;
                spread_leaves += u64::from(base.is_spread());
            }
            let (mut here, mut apart) = (0, 0);
            for delta in view.all_deltas() {
                here += 1;
                apart += usize::from(delta.on_heap);
                longest = longest.max(delta.depth);
            }
            deltas += here;
            on_heap += apart;
            let used_here = (here - apart) * Self::BYTES_OF_DELTA;
            area += base.bytes_of_area();
            used += used_here;
            wasted += (base.claimed() * Self::BYTES_OF_DELTA).saturating_sub(used_here);
        });
        let entries = self.entries();
        let key = if S::HEAD_IS_KEY {
            0
        } else {
            S::Head::bytes_beside()
        };
        let ids = self.table.count();
        bytes += ids.bytes
            + on_heap * Self::BYTES_OF_DELTA
            + (entries + keys) * key
            + entries * Packed::<S::Value>::bytes_beside();
        Shape::new(
            engine,
            vec![
                ("entries", entries as u64),
                ("leaves", leaves),
                ("spread_leaves", spread_leaves),
                ("inner_nodes", inner_nodes),
                ("depth", depth),
                ("ids_live", ids.used as u64),
                ("ids_free", (ids.backed - ids.used) as u64),
                ("ids_backed", ids.backed as u64),
                ("deltas", deltas as u64),
                ("longest_chain", u64::from(longest)),
                ("consolidations", count(&self.counters.consolidations)),
                ("splits", count(&self.counters.splits)),
                ("merges", count(&self.counters.merges)),
                ("aborts", count(&self.counters.aborts)),
                ("spreads", count(&self.counters.spreads)),
                ("made_whole", count(&self.counters.made_whole)),
                ("held_scans", count(&self.counters.held_scans)),
                ("area_bytes", area as u64),
                ("area_bytes_used", used as u64),
                ("area_bytes_wasted", wasted as u64),
                ("bytes", bytes as u64),
            ],
        )
    }

    /// Shows each node, level by level; may miss nodes that other threads change meanwhile.
    fn each_node<'g>(&self, guard: &'g Guard, mut show: impl FnMut(&View<'g, S>)) {
        let mut first = ROOT;
        while first != NO_NODE {
            let (mut id, mut below) = (first, NO_NODE);
            while id != NO_NODE {
                // SAFETY: the root is always in use; nodes in use linked to the others.
                let Some(place) = (unsafe { self.visit(id, guard) }) else {
                    break;
                };
                show(&place.view);
                if id == first {
                    below = place.view.base.first_child;
                }
                id = place.view.right();
            }
            first = below;
        }
    }

    const BYTES_OF_DELTA: usize = size_of::<Delta<S>>();

    pub(super) fn entries(&self) -> usize {
        // An insertion may be counted after the removal of the same entry.
        usize::try_from(self.len.sum()).unwrap_or(0)
    }
}
