//! Batches of lookups, whose cache misses overlap.

use super::node::{Aim, Kind, NodeRef};
use super::point::look_into;
use super::tree::{Position, Tree};
use crate::kit::{PackedValue, SearchKey, Spec};
use tremula_sync::reclaim::Guard;
use tremula_sync::{Restart, Version};

/// How many lookups go down together: more than the cache misses that a core can have outstanding
/// would gain nothing.
const LANES: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

/// One of the lookups that go down together.
struct Lane<'k, 'g, S: Spec> {
    probe: SearchKey<'k, S>,
    node: NodeRef<'g, S>,
    version: Version,
    /// The node that the lane has come from. It is validated once the version of `node` is known.
    parent: Option<(NodeRef<'g, S>, Version)>,
    /// Where the search goes on in the node.
    aim: Aim,
    /// Whether another thread has changed a node meanwhile: this lookup is repeated alone.
    failed: bool,
}

impl<S: Spec> Tree<S> {
    pub(super) fn get_many(&self, keys: &[S::Key], out: &mut Vec<Option<S::Value>>) {
        out.reserve(keys.len());
        for keys in keys.chunks(LANES) {
            let guard = self.collector.pin();
            if let [key] = keys {
                out.push(self.get_with(key, S::Value::clone));
            } else {
                self.get_together(keys, out, &guard);
            }
        }
    }

    fn get_together(&self, keys: &[S::Key], out: &mut Vec<Option<S::Value>>, guard: &Guard<'_>) {
        let root = self.retry(|| self.root(guard));
        let mut lanes: [Option<Lane<'_, '_, S>>; LANES] = std::array::from_fn(|number| {
            keys.get(number).map(|key| Lane {
                probe: SearchKey::new(key),
                node: root.node,
                version: root.version,
                parent: None,
                aim: Aim::default(),
                failed: false,
            })
        });
        // All leaves are equally deep below this root, so all lanes do each step before the next.
        for _ in 0..root.node.level() {
            for_each(&mut lanes, |lane| lane.enter());
            for_each(&mut lanes, |lane| lane.go_down(self));
        }
        for_each(&mut lanes, |lane| lane.enter());
        if !S::HEAD_IS_KEY {
            for_each(&mut lanes, |lane| {
                if let Kind::Leaf(leaf) = lane.node.kind() {
                    leaf.prefetch_aim(lane.aim);
                }
                Ok(())
            });
        }
        for lane in lanes.iter().flatten() {
            let value = match lane.finish() {
                Ok(value) => value,
                Err(Restart) => self.retry(|| {
                    self.restarted();
                    self.look_up(&lane.probe, guard)
                }),
            };
            // SAFETY: the value was read from an entry and validated while the thread was pinned.
            out.push(value.map(|value| unsafe { value.with(S::Value::clone) }));
        }
    }
}

/// Does one step of each lane that has not failed.
#[inline]
fn for_each<'k, 'g, S: Spec>(
    lanes: &mut [Option<Lane<'k, 'g, S>>],
    mut step: impl FnMut(&mut Lane<'k, 'g, S>) -> Result<(), Restart>,
) {
    for lane in lanes.iter_mut().flatten().filter(|lane| !lane.failed) {
        if step(lane).is_err() {
            lane.failed = true;
        }
    }
}

impl<'g, S: Spec> Lane<'_, 'g, S> {
    /// Reads the first cache lines of the node, and prefetches those that the search goes on in.
    #[inline]
    fn enter(&mut self) -> Result<(), Restart> {
        if let Some((parent, version)) = self.parent {
            self.version = self.node.lock().read()?;
            parent.lock().validate(version)?;
        }
        if let (Kind::Leaf(leaf), true) = (self.node.kind(), S::is_text()) {
            self.aim = leaf.aim(&self.probe);
            leaf.prefetch_slots(self.aim.segment);
            return Ok(());
        }
        self.aim = self.node.aim(&self.probe);
        self.node.heads().prefetch(self.aim.segment);
        self.node.prefetch_slots(self.aim.segment);
        Ok(())
    }

    /// Finds the child of an inner node, and prefetches its first cache lines.
    #[inline]
    fn go_down(&mut self, tree: &Tree<S>) -> Result<(), Restart> {
        let Kind::Inner(inner) = self.node.kind() else {
            return Err(Restart);
        };
        let position = Position::At(self.probe);
        let index = position.child(inner, inner.still(self.version))?;
        let child = tree.child(inner, self.version, index)?;
        child.prefetch_front_below(inner.level());
        self.parent = Some((self.node, self.version));
        self.node = child;
        Ok(())
    }

    #[inline]
    fn finish(&self) -> Result<Option<PackedValue<S>>, Restart> {
        match self.node.kind() {
            Kind::Leaf(leaf) if !self.failed => look_into(leaf, self.version, &self.probe),
            _ => Err(Restart),
        }
    }
}
