//! The shape of the tree, and its destruction.

use super::Masstree;
use super::node::{Node, NodeRef, Word};
use super::record::Entry;
use crate::byte_keyed::Record;
use crate::contract::{OrderedIndex, Shape, Storable};
use crate::key::ByteKey;
use crate::kit::Packed;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// Counters of the structural changes. Written only where the shape changes; all accesses are
/// relaxed, because no other memory depends on the counts.
#[derive(Default)]
pub(super) struct Counters {
    /// Nodes split.
    pub(super) splits: AtomicU64,
    /// Neighbours merged.
    pub(super) merges: AtomicU64,
    /// Layers made.
    pub(super) layers: AtomicU64,
    /// Layers folded into the leaf above.
    pub(super) folds: AtomicU64,
    /// Batches of scans that locked the leaves.
    pub(super) locked_scans: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The children, or the words of the entries, of a node at one moment.
enum Below<'g, const W: usize> {
    Children(Vec<NodeRef<'g, W>>),
    Words(Vec<Word>),
}

/// Reads a node as of one moment; `None` if it has been unlinked.
fn below_at_once<const W: usize>(node: NodeRef<'_, W>) -> Option<Below<'_, W>> {
    loop {
        let version = node.lock().read().ok()?;
        let (level, order) = (node.level(), node.order());
        let children: Vec<_> = (0..=node.separators()).map(|at| node.child(at)).collect();
        let words = node.entries(order).map(|entry| entry.1).collect();
        if node.lock().validate(version).is_err() {
            continue;
        }
        if level == 0 {
            return Some(Below::Words(words));
        }
        // SAFETY: validated: children of a node that was linked since the guard was pinned, or that
        // no other thread has.
        let follow = |child| unsafe { NodeRef::from_raw(child) };
        let children = children.into_iter().flatten().map(follow).collect();
        return Some(Below::Children(children));
    }
}

impl<K: ByteKey, V: Storable, const W: usize> Masstree<K, V, W> {
    /// Counts the nodes one after the other, each as of another moment.
    pub(super) fn describe(&self) -> Shape {
        let guard = self.collector.pin();
        let (mut leaves, mut inner, mut layers, mut records) = (0_u64, 0_u64, 1_u64, 0_u64);
        let (mut layer_depth, mut depth, mut values) = (0_u64, 0_u64, 0_u64);
        let mut ahead = vec![(self.root(), 1, 1)];
        while let Some((node, level, layer)) = ahead.pop() {
            depth = depth.max(level);
            layer_depth = layer_depth.max(layer);
            match below_at_once(node) {
                None => {}
                Some(Below::Children(children)) => {
                    inner += 1;
                    ahead.extend(children.into_iter().map(|node| (node, level + 1, layer)));
                }
                Some(Below::Words(words)) if K::HEAD_IS_KEY => {
                    leaves += 1;
                    values += words.len() as u64;
                }
                Some(Below::Words(words)) => {
                    leaves += 1;
                    for word in words {
                        // SAFETY: validated, and the leaf was linked since the guard was pinned.
                        match unsafe { Entry::<K, W>::of_word(word, &guard) } {
                            Entry::Record(_) => records += 1,
                            Entry::Layer(root) => {
                                layers += 1;
                                ahead.push((root, level + 1, layer + 1));
                            }
                        }
                    }
                }
            }
        }
        let bytes = size_of::<Self>() as u64
            + (leaves + inner) * size_of::<Node<W>>() as u64
            + records * size_of::<Record<K>>() as u64
            + (records + values) * Packed::<V>::bytes_beside() as u64;
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        Shape {
            engine: self.engine(),
            figures: vec![
                ("entries", self.len() as u64),
                ("leaves", leaves),
                ("inner_nodes", inner),
                ("layers", layers),
                ("records", records),
                ("depth", depth),
                ("depth_in_layers", layer_depth),
                ("splits", read(&self.counters.splits)),
                ("merges", read(&self.counters.merges)),
                ("layers_made", read(&self.counters.layers)),
                ("layers_folded", read(&self.counters.folds)),
                ("locked_scans", read(&self.counters.locked_scans)),
                ("restarts", self.restarts.sum().unsigned_abs() as u64),
                ("bytes", bytes),
            ],
        }
    }
}

impl<K: ByteKey, V: Storable, const W: usize> Drop for Masstree<K, V, W> {
    fn drop(&mut self) {
        let root = NodeRef::of(&*self.root);
        let mut ahead = vec![root];
        while let Some(node) = ahead.pop() {
            match below_at_once(node) {
                None => {}
                Some(Below::Children(children)) => ahead.extend(children),
                Some(Below::Words(words)) if K::HEAD_IS_KEY => {
                    for word in words {
                        // SAFETY: a thread that drops the tree has it to itself, and frees each
                        // part once.
                        drop(unsafe { Packed::<V>::of_word(word).take() });
                    }
                }
                Some(Below::Words(words)) => {
                    for word in words {
                        // SAFETY: this thread has the tree to itself, and frees each part once.
                        match unsafe { Entry::<K, W>::of_word_alone(word) } {
                            // SAFETY: this thread has the tree to itself, and frees each part once.
                            Entry::Record(record) => unsafe { record.free::<V>(true) },
                            Entry::Layer(root) => ahead.push(root),
                        }
                    }
                }
            }
            if node != root {
                // SAFETY: this thread has the tree to itself, and frees each part once.
                unsafe { node.free() };
            }
        }
    }
}
