//! Bugs to plant in the index engine masstree.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const LOOM: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-index",
    target: Target::Test("loom"),
    filter: "masstree",
};

const MODEL: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("engines"),
    filter: "masstree",
};

const DISHONEST: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("dishonest_bytes"),
    filter: "",
};

const RECLAMATION: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("reclamation"),
    filter: "",
};

/// Whose trees check their invariants after each change, and at rest.
const INVARIANTS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("masstree"),
    filter: "",
};

/// Whose scans lock leaves as soon as they have been disturbed.
const SHUTTLE: Checker = Checker {
    flavour: Flavour::Shuttle,
    package: "tremula-index",
    target: Target::Test("shuttle"),
    filter: "masstree::scans",
};

/// Whose small leaves are split before the first key, and then are empty for a moment.
const RANGES: Checker = Checker {
    flavour: Flavour::Shuttle,
    package: "tremula-index",
    target: Target::Test("shuttle"),
    filter: "masstree::what_is_put",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "masstree_publishes_before_it_fills",
        file: "crates/index/src/masstree/node.rs",
        original: "        let slot = order.slot(order.count());\n        self.slices[slot % W].store(slice, Ordering::Relaxed);\n        self.words[slot % W].store(word, Ordering::Relaxed);\n        self.set_order(order.inserted(rank));",
        replacement: "        let slot = order.slot(order.count());\n        self.set_order(order.inserted(rank));\n        self.slices[slot % W].store(slice, Ordering::Relaxed);\n        self.words[slot % W].store(word, Ordering::Relaxed);",
        why: "A lookup sees a slot as live that is still being filled, and takes what it held before.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "masstree_publishes_relaxed",
        file: "crates/index/src/masstree/node.rs",
        original: "self.order.store(order.word(), Ordering::Release);",
        replacement: "self.order.store(order.word(), Ordering::Relaxed);",
        why: "A lookup that sees the new permutation need not see what the slot holds.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "masstree_frees_a_slot_unseen",
        file: "crates/index/src/masstree/write.rs",
        original: "            let _change = leaf.get().change();\n            let rank",
        replacement: "            let rank",
        why: "The next insertion fills the slot, and a lookup takes its value for that of the key that was there.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "masstree_stays_in_a_leaf_that_was_split",
        file: "crates/index/src/masstree/descend.rs",
        original: "Some(next) if next.low() <= slice => leaf = next,",
        replacement: "Some(next) if next.low() < slice => leaf = next,",
        why: "After a split a lookup looks for the first key of the new leaf in the old one.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "masstree_splits_under_the_lock_of_scans_only",
        file: "crates/index/src/masstree/split.rs",
        original: "        let _change = node.get().change();\n",
        replacement: "",
        why: "A lookup does not notice that what it looks for has moved to the right.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "masstree_folded_layer_stays_in_use",
        file: "crates/index/src/masstree/merge.rs",
        original: "        root_change.obsolete();\n        root_lock.obsolete();",
        replacement: "        drop(root_change);\n        drop(root_lock);",
        why: "An insertion that was on its way into the layer puts its key where nobody looks for it any more.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "masstree_folds_a_layer_into_another",
        file: "crates/index/src/masstree/merge.rs",
        original: "|| words.next().is_some() || last.is_some_and(is_layer)",
        replacement: "|| words.next().is_some()",
        why: "A layer of one depth is put where one of another is looked for.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "masstree_scan_forgets_the_first_leaf",
        file: "crates/index/src/masstree/walk.rs",
        original: "leaves.chain(&self.left).try_for_each(VisitedLeaf::validate)",
        replacement: "leaves.chain(self.left.iter().skip(1)).try_for_each(VisitedLeaf::validate)",
        why: "A scan shows the first leaf as of another moment than the others.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "masstree_hands_out_what_others_look_at",
        file: "crates/index/src/byte_keyed/record.rs",
        original: "        if (needs_drop::<K>() || needs_drop::<V>()) && guard.is_alone() {",
        replacement: "        if needs_drop::<K>() || needs_drop::<V>() {",
        why: "A record is freed that a thread which is inside the tree looks at.",
        checker: RECLAMATION,
        hangs: false,
    },
    Mutant {
        name: "masstree_gets_a_lock_through_the_code_of_keys",
        file: "crates/index/src/masstree/write.rs",
        original: "key.with_bytes(|bytes| place = self.locate(bytes, guard));",
        replacement: "place = key.with_bytes(|bytes| self.locate(bytes, guard));",
        why: "A key that forgets what was made of its bytes leaves a leaf locked for ever.",
        checker: DISHONEST,
        hangs: false,
    },
    Mutant {
        name: "masstree_merges_leaves_out_of_order",
        file: "crates/index/src/masstree/merge.rs",
        original: "left.insert(order, order.count(), slice, word);",
        replacement: "left.insert(order, 0, slice, word);",
        why: "Invariant 1: the slices of a leaf do not ascend.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "masstree_changes_a_node_without_its_lock",
        file: "crates/index/src/masstree/split.rs",
        original: "        let _lock = node.get().lock_at(step.version)?;",
        replacement: "        node.get().lock_at(step.version)?.unchanged();",
        why: "Invariant 2: a scan does not notice that entries left the leaf.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "masstree_gives_a_new_leaf_another_bound",
        file: "crates/index/src/masstree/split.rs",
        original: "    let right = NodeRef::new(low);",
        replacement: "    let right = NodeRef::new(low.wrapping_add(1));",
        why: "Invariant 4: the first slice of a leaf is looked for in its left neighbour.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "masstree_emptied_child_stays_in_use",
        file: "crates/index/src/masstree/merge.rs",
        original: "    child_change.obsolete();\n    child_lock.obsolete();\n    check",
        replacement: "    drop(child_change);\n    drop(child_lock);\n    check",
        why: "Invariant 5: a thread on its way to the only child of a root changes it after it has moved up.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "masstree_splits_past_the_left_neighbour",
        file: "crates/index/src/masstree/split.rs",
        original: ".set_prev(Some(right.pointer()));",
        replacement: ".set_prev(Some(leaf.pointer()));",
        why: "Invariant 6: a scan downwards misses the new leaf, or begins again for ever.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "masstree_lets_two_threads_hold_many_leaves",
        file: "crates/index/src/masstree/ranges.rs",
        original: "        let _alone = self.holders_of_many.lock();\n        count(",
        replacement: "        count(",
        why: "Invariant 7: a scan upwards and a scan downwards wait for each other's leaves for ever.",
        checker: SHUTTLE,
        hangs: false,
    },
    Mutant {
        name: "masstree_moves_all_of_a_leaf_to_the_right",
        file: "crates/index/src/masstree/split.rs",
        original: "let descends = at == 0 && leaf.slice(order.slot(0)) != slice;",
        replacement: "let descends = at == 0;",
        why: "A leaf that begins with the slice loses all entries to a right leaf with the same bound: two equal separators.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Lib,
            filter: "masstree::split",
        },
        hangs: false,
    },
    Mutant {
        name: "masstree_releases_empty_leaves_before_a_range_is_gone",
        file: "crates/index/src/masstree/ranges.rs",
        original: "                unchanged.push(lock);\n",
        replacement: "                lock.unchanged();\n",
        why: "A key that is put into a leaf without entries outlives a removal that takes place after it.",
        checker: RANGES,
        hangs: false,
    },
];
