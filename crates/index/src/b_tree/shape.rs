//! The figures of a tree, and of each of its leaves.

use super::layout::Plan;
use super::node::{Kind, LeafRef};
use super::tree::{Position, Tree};
use crate::contract::Shape;
use crate::kit::blocks::{Blocks, Memory};
use crate::kit::{PackedValue, SearchKey, Spec, StoredKey};
use crate::transactional::{Adapted, Part};
use std::ops::ControlFlow;
use tremula_sync::Restart;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::reclaim::Guard;

/// How many more stretches a walk reads than it has counted: the counts lag behind the nodes.
const MORE_STRETCHES: u64 = 64;

/// Some neighbouring leaves: those under one inner node of level 1.
struct Stretch<K> {
    parts: Vec<Part<K>>,
    /// Where the next stretch begins.
    next: Option<K>,
}

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
        // Leaves of text, with the keys in them; but not those aside.
        let blocks = self.blocks.as_deref().map(Blocks::memory);
        let (nodes, keys) = match blocks {
            Some(_) => (inner_nodes, 0),
            None => (inner_nodes + leaves, entries),
        };
        // A separator stands between each leaf and the next, in some inner node.
        let separators = leaves - 1;
        let bytes = nodes * const { Plan::of::<S>().layout.size() } as u64
            + blocks.map_or(0, |memory| memory.bytes as u64)
            + keys * key as u64
            + entries * PackedValue::<S>::bytes_beside() as u64
            + separators * key as u64
            + size_of::<Self>() as u64;
        let guard = self.collector.pin();
        let level = self.retry(|| self.root(&guard)).node.level();
        let mut figures = vec![
            ("entries", entries),
            ("leaves", leaves),
            ("inner_nodes", inner_nodes),
            ("depth", u64::from(level) + 1),
            ("splits", read(&counters.splits)),
            ("merges", read(&counters.merges)),
            ("borrows", read(&counters.borrows)),
            ("restarts", read(&counters.restarts)),
            ("locked_scans", read(&counters.locked_scans)),
            ("snapshots", read(&counters.snapshots)),
            ("copied_leaves", read(&counters.copied_leaves)),
            ("bytes", bytes),
        ];
        figures.extend(blocks.into_iter().flat_map(Memory::figures));
        Shape { engine, figures }
    }

    /// Shows all leaves, one stretch after the other. While `visit` runs, the thread is not pinned.
    pub(super) fn walk(&self, visit: &mut dyn FnMut(&Part<S::Key>) -> ControlFlow<()>) -> Adapted {
        let counters = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let adapted = || Adapted::new(read(&counters.splits), read(&counters.merges));
        let before = adapted().splits;
        let nodes = read(&counters.inner_nodes);
        let mut begin = None;
        let mut stretches = 0;
        // There are no more stretches than inner nodes at the beginning, and splits since. An order
        // of keys that contradicts itself may lead back to the same ones for ever.
        while stretches <= nodes + (adapted().splits - before) + MORE_STRETCHES {
            let guard = self.collector.pin();
            let stretch = self.retry(|| self.stretch(begin.as_ref(), &guard));
            drop(guard);
            let shown = stretch.parts.iter().try_for_each(&mut *visit);
            begin = stretch.next;
            if shown.is_break() || begin.is_none() {
                break;
            }
            stretches += 1;
        }
        adapted()
    }

    /// Reads the stretch of a key, or the first one, from the leaf of that key on.
    fn stretch(
        &self,
        begin: Option<&S::Key>,
        guard: &Guard<'_>,
    ) -> Result<Stretch<S::Key>, Restart> {
        let position = begin.map_or(Position::First, |key| Position::At(SearchKey::new(key)));
        // The separators to the left and to the right of the node.
        let (mut low, mut high) = (None, None);
        let root = self.root_node(guard);
        if let Kind::Leaf(leaf) = root.kind() {
            let part = part_of(leaf, None).ok_or(Restart)?;
            if self.root_node(guard).as_ptr() != root.as_ptr() {
                return Err(Restart);
            }
            return Ok(Stretch {
                parts: vec![part],
                next: None,
            });
        }
        let mut here = self.enter_root(root)?;
        loop {
            let (node, version) = (here.node, here.version);
            let Kind::Inner(inner) = node.kind() else {
                unreachable!("the descent ends above the leaves");
            };
            let first = position.child(inner, inner.still(version))?;
            let count = inner.count();
            if let Some(left) = first.checked_sub(1) {
                low = Some(inner.key(left));
            }
            if inner.level() > 1 {
                if first < count {
                    high = Some(inner.key(first));
                }
                here = self.enter(inner, version, first)?;
                continue;
            }
            let separators = (first..count).map(|at| Some(inner.key(at)));
            let lows: Vec<_> = std::iter::once(low).chain(separators).collect();
            let children: Vec<_> = (first..=count).filter_map(|at| inner.child(at)).collect();
            inner.lock().validate(version)?;
            // SAFETY: these were read, and the node validated, while the thread was pinned.
            let copy = |key: StoredKey<S>| unsafe { key.to_key() };
            let parts = children.into_iter().zip(lows).filter_map(|(child, low)| {
                // SAFETY: it was read, and the node validated, while the thread was pinned. The
                // children of a node of level 1 are leaves.
                let leaf = unsafe { LeafRef::<S>::from_raw(child) };
                part_of(leaf, low.map(copy))
            });
            return Ok(Stretch {
                parts: parts.collect(),
                next: high.map(copy),
            });
        }
    }
}

/// The figures of a leaf; `None` if it has been unlinked. Does not wait for a writer.
fn part_of<S: Spec>(leaf: LeafRef<'_, S>, low: Option<S::Key>) -> Option<Part<S::Key>> {
    let lock = leaf.lock();
    let count = |version| {
        let entries = leaf.count();
        lock.validate(version).map(|()| entries)
    };
    let entries = lock.try_read().and_then(count).ok();
    if entries.is_none() && lock.is_obsolete() {
        return None;
    }
    let waits = u64::from(leaf.waits());
    Some(Part::new(low, entries, waits, lock.changes()))
}
