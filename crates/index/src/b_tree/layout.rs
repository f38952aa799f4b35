//! How a node lies in memory: a header and arrays, sized by what the keys need.

use super::node::{Header, prefix_words};
use crate::kit::{Heads, STRIDE, Spec};
use std::alloc::Layout;
use tremula_sync::atomic::{AtomicPtr, AtomicU64};

/// Where the arrays of a node begin. Leaves and inner nodes have the same layout.
///
/// ```text
/// | header | hints | prefix | heads … | keys … | slots … |
///   64 B     one a   of keys            none       values, or children
///            segment that are           where the
///                    their bytes        head is the key
/// ```
pub(super) struct Plan {
    pub(super) layout: Layout,
    /// Entries of a leaf, and children of an inner node.
    pub(super) capacity: usize,
    pub(super) hints: usize,
    /// The bytes that all keys have in common.
    pub(super) prefix: usize,
    pub(super) heads: usize,
    /// The packed keys.
    pub(super) keys: usize,
    /// Values of a leaf, or children of an inner node: a pointer's size each.
    pub(super) slots: usize,
}

impl Plan {
    pub(super) const fn of<S: Spec>() -> Self {
        Self::new(S::NODE_BYTES, S::HEAD_IS_KEY, prefix_words::<S>())
    }

    const fn new(bytes: usize, head_is_key: bool, prefix: usize) -> Self {
        let mut plan = Self::with_capacity(STRIDE, head_is_key, prefix);
        // Nodes are small under a checker, so that a few steps reach a split.
        if cfg!(any(loom, shuttle)) {
            return Self::with_capacity(2 * STRIDE, head_is_key, prefix);
        }
        loop {
            let larger = Self::with_capacity(plan.capacity + STRIDE, head_is_key, prefix);
            if larger.layout.size() > bytes {
                return plan;
            }
            plan = larger;
        }
    }

    const fn with_capacity(capacity: usize, head_is_key: bool, prefix: usize) -> Self {
        let keys = if head_is_key { 0 } else { capacity };
        let layout = Layout::new::<Header>();
        let (layout, hints) = array::<AtomicU64>(layout, Heads::hints_of(capacity));
        // In the last of the lines that a search begins with.
        let (layout, prefix) = array::<AtomicU64>(layout, prefix);
        // Segments of heads, and of values, begin with a cache line.
        let layout = layout.pad_to_align();
        let (layout, heads) = array::<AtomicU64>(layout, capacity);
        let (layout, keys) = array::<AtomicPtr<()>>(layout, keys);
        let (layout, slots) = array::<AtomicPtr<()>>(layout, capacity);
        Self {
            layout: layout.pad_to_align(),
            capacity,
            hints,
            prefix,
            heads,
            keys,
            slots,
        }
    }
}

/// Appends an array to a layout; returns also where the array begins.
const fn array<T>(layout: Layout, length: usize) -> (Layout, usize) {
    match Layout::array::<T>(length) {
        Ok(array) => match layout.extend(array) {
            Ok(extended) => extended,
            Err(_) => panic!("a node is too large"),
        },
        Err(_) => panic!("a node is too large"),
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::key::ByteHead;
    use crate::kit::Parameters;

    #[test]
    fn a_node_of_a_page_holds_240_words_or_160_boxed_keys() {
        let words = Plan::new(4096, true, 0);
        assert_eq!((words.capacity, words.layout.size()), (240, 4032));
        let boxed = Plan::new(4096, false, 0);
        assert_eq!((boxed.capacity, boxed.layout.size()), (160, 4032));
        let strings = Plan::of::<Parameters<String, u64, ByteHead, 4096>>();
        assert_eq!((strings.capacity, strings.layout.size()), (160, 4032));
        for plan in [words, boxed, strings] {
            assert_eq!((plan.heads % 64, plan.slots % 64), (0, 0));
        }
    }

    #[test]
    fn the_smallest_node_holds_one_segment() {
        assert_eq!(Plan::new(0, false, 0).capacity, STRIDE);
    }
}
