//! The shape of the tree, and its destruction.

use super::Art;
use super::child::{Child, ChildRef, Kind, NodeRef, Word};
use super::header::Symbol;
use crate::byte_keyed::Record;
use crate::contract::{OrderedIndex, Shape, Storable};
use crate::key::ByteKey;
use crate::kit::Packed;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// Counters of the structural changes.
#[derive(Default)]
pub(super) struct Figures {
    /// Nodes replaced by larger ones.
    pub(super) growths: AtomicU64,
    /// Nodes replaced by smaller ones.
    pub(super) shrinks: AtomicU64,
    /// Prefixes cut in two by a new node.
    pub(super) splits: AtomicU64,
    /// Nodes replaced by their last child.
    pub(super) merges: AtomicU64,
}

impl<K: ByteKey, V: Storable> Art<K, V> {
    /// Counts the nodes one after the other, each as of another moment.
    pub(super) fn describe(&self) -> Shape {
        let guard = self.collector.pin();
        let (mut kinds, mut leaves, mut values, mut depth) = ([0_u64; 4], 0_usize, 0_usize, 0_u64);
        let mut bytes = size_of::<Self>();
        let mut ahead = vec![(self.root(&guard), 1)];
        while let Some((node, level)) = ahead.pop() {
            let Some(entries) = entries_at_once(node) else {
                continue;
            };
            let kind = match node.kind() {
                Kind::Four(_) => 0,
                Kind::Sixteen(_) => 1,
                Kind::FortyEight(_) => 2,
                Kind::Full(_) => 3,
            };
            kinds[kind] += 1;
            bytes += node.bytes();
            depth = depth.max(level);
            if Self::has_values_at(node.header().snapshot().depth()) {
                values += entries.len();
                continue;
            }
            for (_, word) in entries {
                // SAFETY: validated, and the node was reached since the guard was pinned.
                match unsafe { Child::of_word(word).follow::<K>(&guard) } {
                    ChildRef::Leaf(_) => leaves += 1,
                    ChildRef::Node(node) => ahead.push((node, level + 1)),
                    ChildRef::Nothing => {}
                }
            }
        }
        bytes += leaves * size_of::<Record<K>>();
        bytes += (leaves + values) * Packed::<V>::bytes_beside();
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let [four, sixteen, forty_eight, full] = kinds;
        Shape {
            engine: self.engine(),
            figures: vec![
                ("entries", self.len() as u64),
                ("nodes_4", four),
                ("nodes_16", sixteen),
                ("nodes_48", forty_eight),
                ("nodes_256", full),
                ("leaves", leaves as u64),
                ("values_in_slots", values as u64),
                ("depth", depth),
                ("growths", read(&self.figures.growths)),
                ("shrinks", read(&self.figures.shrinks)),
                ("splits", read(&self.figures.splits)),
                ("merges", read(&self.figures.merges)),
                ("restarts", self.restarts.sum().unsigned_abs() as u64),
                ("bytes", bytes as u64),
            ],
        }
    }
}

/// The entries of a node at one moment; `None` if the node has been unlinked.
fn entries_at_once(node: NodeRef<'_>) -> Option<Vec<(Symbol, Word)>> {
    let lock = &node.header().lock;
    loop {
        let version = lock.read().ok()?;
        let entries = node.entries();
        if lock.validate(version).is_ok() {
            return Some(entries);
        }
    }
}

impl<K: ByteKey, V: Storable> Drop for Art<K, V> {
    fn drop(&mut self) {
        let root = Child::of_word(self.root.load(Ordering::Relaxed));
        let mut ahead = vec![root];
        while let Some(child) = ahead.pop() {
            // SAFETY: a thread that drops the tree has it to itself, and frees each part once; the
            // same holds for the other parts.
            match unsafe { child.follow_alone::<K>() } {
                ChildRef::Nothing => {}
                // SAFETY: this thread has the tree to itself, and frees each part once.
                ChildRef::Leaf(leaf) => unsafe { leaf.free::<V>(true) },
                ChildRef::Node(node) => {
                    let of_values = Self::has_values_at(node.header().snapshot().depth());
                    node.for_each(|_, word| {
                        if of_values {
                            // SAFETY: this thread has the tree to itself, and frees each part once.
                            drop(unsafe { Packed::<V>::of_word(word).take() });
                        } else {
                            ahead.push(Child::of_word(word));
                        }
                    });
                    // SAFETY: this thread has the tree to itself, and frees each part once.
                    unsafe { node.free() };
                }
            }
        }
    }
}
