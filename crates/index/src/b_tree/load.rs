//! Building a tree from sorted entries, bottom up.

use super::layout::Plan;
use super::node::{InnerRef, Kind, LeafRef, NodeRef};
use super::text::Heap;
use super::tree::{Tree, blocks_of, free_subtree};
use crate::bulk::{Ascending, NotSorted};
use crate::key::KeyHead;
use crate::kit::{PackedValue, Retire, SearchKey, Spec, StoredKey};
use std::ptr::NonNull;
use tremula_sync::atomic::Ordering;

/// A node, and the lowest key that belongs to it, which becomes the separator to its left. The
/// first node of a level has none.
struct Built<S: Spec> {
    low: Option<StoredKey<S>>,
    node: NodeRef<'static, S>,
}

/// The nodes of a level, left to right. Owns them: dropping it frees those that are still in it.
struct Row<S: Spec>(Vec<Built<S>>);

impl<S: Spec> Drop for Row<S> {
    fn drop(&mut self) {
        for Built { low, node } in self.0.drain(..) {
            // SAFETY: no other thread has these, and they are not used again.
            unsafe {
                if let Some(low) = low {
                    low.free();
                }
                free_subtree(node);
            }
        }
    }
}

/// Stands for a guard where no other thread has the nodes yet.
struct Unshared;

impl Retire for Unshared {
    unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        work();
    }
}

/// How many entries, or children, each node gets.
fn filled(capacity: usize, percent: usize) -> usize {
    (capacity * percent.min(100) / 100).max(2)
}

impl<S: Spec> Tree<S> {
    /// A tree of `entries`, with leaves and inner nodes filled to `percent`.
    pub(super) fn from_sorted(
        entries: impl Iterator<Item = (S::Key, S::Value)>,
        percent: usize,
    ) -> Result<Self, NotSorted> {
        let blocks = blocks_of::<S>();
        let heap = Heap::of(blocks.as_deref());
        let (mut row, length) = leaves_of::<S>(entries, percent, heap)?;
        let leaves = row.0.len();
        let mut inner_nodes = 0;
        while row.0.len() > 1 {
            row = inner_nodes_above(row, percent);
            inner_nodes += row.0.len();
        }
        let tree = match row.0.pop() {
            None => Self::new(),
            Some(root) => Self::with_root(root.node, blocks),
        };
        tree.len.add(length as isize);
        let counters = &tree.counters;
        counters
            .leaves
            .store(leaves.max(1) as u64, Ordering::Relaxed);
        counters
            .inner_nodes
            .store(inner_nodes as u64, Ordering::Relaxed);
        Ok(tree)
    }
}

/// Puts entries into linked leaves. Also returns the number of entries.
fn leaves_of<S: Spec>(
    entries: impl Iterator<Item = (S::Key, S::Value)>,
    percent: usize,
    heap: Heap,
) -> Result<(Row<S>, usize), NotSorted> {
    let mut row = Row::<S>(Vec::new());
    let mut length = 0;
    let full = filled(const { Plan::of::<S>().capacity }, percent);
    let mut last: Option<(LeafRef<'static, S>, usize)> = None;
    for entry in Ascending::new(entries) {
        let (key, value) = entry?;
        let head = S::Head::head(&key);
        let (leaf, count) = match last {
            Some((leaf, count))
                if count < full && leaf.has_room(&SearchKey::with_head(&key, head)) =>
            {
                (leaf, count)
            }
            _ => {
                // Copied before the leaf is made, because the clone may panic.
                let low = last.map(|_| StoredKey::new(key.clone(), head));
                let leaf = LeafRef::new(heap);
                if let Some((left, _)) = last {
                    left.set_next(NonNull::new(leaf.as_ptr()));
                    leaf.set_prev(left);
                }
                row.0.push(Built {
                    low,
                    node: leaf.node(),
                });
                (leaf, 0)
            }
        };
        // Counted each time, because the input may panic: then the entries counted are freed.
        leaf.append(key, head, PackedValue::new(value), &Unshared);
        last = Some((leaf, count + 1));
        length += 1;
    }
    for built in &row.0 {
        if let Kind::Leaf(leaf) = built.node.kind() {
            leaf.end_filling();
        }
    }
    Ok((row, length))
}

/// Puts nodes under as few parents as `percent` allows. Where three children fit into a parent,
/// each parent gets at least two.
fn inner_nodes_above<S: Spec>(mut children: Row<S>, percent: usize) -> Row<S> {
    let most = filled(const { Plan::of::<S>().capacity }, percent);
    let parents = children.0.len().div_ceil(most);
    let mut row = Row(Vec::with_capacity(parents));
    let total = children.0.len();
    let mut taken = children.0.drain(..);
    for parent in 0..parents {
        // The children are spread evenly.
        let share = total * (parent + 1) / parents - total * parent / parents;
        let mut nodes = taken.by_ref().take(share);
        let Some(first) = nodes.next() else {
            break;
        };
        let inner = InnerRef::new(first.node.level() + 1, NonNull::new(first.node.as_ptr()));
        for (at, Built { low, node }) in nodes.enumerate() {
            let Some(low) = low else {
                unreachable!("only the first of a row has no lowest key");
            };
            inner.store_separator(at, low);
            inner.store_child(at + 1, NonNull::new(node.as_ptr()));
            inner.node().set_count(at + 1);
        }
        inner.node().seal(inner.count());
        row.0.push(Built {
            low: first.low,
            node: inner.node(),
        });
    }
    drop(taken);
    row
}
