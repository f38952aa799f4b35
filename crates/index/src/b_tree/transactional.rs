//! Steps over several entries, for the users of the tree.

use super::OlcBTree;
use crate::contract::{Direction, KeyRange, Storable};
use crate::key::KeyHead;
use crate::transactional::{Adapted, Part, Steps, Transaction, View, run, show};
use std::ops::ControlFlow;

impl<K: Ord + Storable, V: Storable, H: KeyHead<K>, const NODE_BYTES: usize> Steps<K, V>
    for OlcBTree<K, V, H, NODE_BYTES>
{
    fn pop_with(&self, direction: Direction, note: &mut dyn FnMut(&K, &V)) -> Option<(K, V)> {
        self.tree.pop(direction, |entry| {
            // SAFETY: the entry is in a leaf that this thread has locked.
            unsafe {
                entry
                    .key
                    .with(|key| entry.value.with(|value| note(key, value)))
            };
        })
    }

    fn remove_range_with(
        &self,
        range: KeyRange<'_, K>,
        note: &mut dyn FnMut(&dyn View<K, V>),
    ) -> usize {
        self.tree
            .remove_range_with(range, |held| show(held, range, note))
    }

    fn atomically(
        &self,
        over: &[KeyRange<'_, K>],
        step: &mut dyn FnMut(&mut dyn Transaction<K, V>),
    ) {
        let guard = self.tree.collector.pin();
        run(self.tree.hold_all(over, &guard), over, step);
    }

    fn walk(&self, visit: &mut dyn FnMut(&Part<K>) -> ControlFlow<()>) -> Adapted {
        self.tree.walk(visit)
    }
}
