//! Bugs to plant in the index engine b_tree.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "b_tree_goes_down_without_looking_back",
        file: "crates/index/src/b_tree/tree.rs",
        original: "        // Still the child: so the range that it was responsible for at `child_version` is known.\n        inner.lock().validate(version)?;\n",
        replacement: "",
        why: "A reader comes to a leaf that has been split since it was chosen, and does not find what has moved to the right.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "a_reader_finds_everything_while_a_leaf_splits",
        },
        hangs: false,
    },
    Mutant {
        name: "b_tree_does_not_look_at_the_root_again",
        file: "crates/index/src/b_tree/tree.rs",
        original: "        if self.root.load(Ordering::Relaxed) != root {",
        replacement: "        if root.is_null() {",
        why: "A reader takes the left half of what was the root for the whole tree.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "a_reader_finds_everything_while_the_root_grows",
        },
        hangs: false,
    },
    Mutant {
        name: "b_tree_scan_trusts_the_leaves_behind_it",
        file: "crates/index/src/b_tree/scan.rs",
        original: "                    still()?;\n                    return all_still(&seen);",
        replacement: "                    return still();",
        why: "A snapshot of several leaves shows parts of different moments.",
        checker: Checker {
            flavour: Flavour::Shuttle,
            package: "tremula-index",
            target: Target::Test("shuttle"),
            filter: "b_tree::a_snapshot",
        },
        hangs: false,
    },
    Mutant {
        name: "b_tree_writer_waits_for_a_leaf_that_is_no_longer_its_own",
        file: "crates/index/src/b_tree/point.rs",
        original: "        if place.leaf.moves() == place.moves {",
        replacement: "        if !place.leaf.lock().is_obsolete() {",
        why: "A writer that waited while the leaf was split writes to the wrong half.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "a_writer_that_waited_for_a_leaf",
        },
        hangs: false,
    },
    Mutant {
        name: "b_tree_node_is_freed_at_once",
        file: "crates/index/src/b_tree/node.rs",
        original: "        unsafe { guard.defer_unchecked(move || NodeRef::<S>::from_raw(header).free()) };",
        replacement: "        let _ = guard;\n        // SAFETY: none.\n        unsafe { NodeRef::<S>::from_raw(header).free() };",
        why: "A thread on its way through a node that was just merged reads freed memory.",
        checker: Checker {
            flavour: Flavour::Asan,
            package: "tremula-index",
            target: Target::Test("stress"),
            filter: "b_tree_of_small_nodes",
        },
        hangs: false,
    },
    Mutant {
        name: "b_tree_drops_a_key_under_the_lock_of_its_leaf",
        file: "crates/index/src/kit/spec.rs",
        original: "head_is_key::<Self::Key, Self::Head>()",
        replacement: "<Self::Head as KeyHead<Self::Key>>::IS_KEY",
        why: "Where the head tells a key with a `Drop` of its own, the key is dropped, and its drop, which calls the tree, waits for the leaf that its own thread has locked. (This one was real.)",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Test("drops_that_call"),
            filter: "whole_heads",
        },
        hangs: false,
    },
    Mutant {
        name: "b_tree_visit_stays_pinned",
        file: "crates/index/src/b_tree/range.rs",
        original: "        for _ in 0..BATCHES_A_PIN {",
        replacement: "        for _ in 0..usize::MAX - BATCHES_A_PIN {",
        why: "As long as a visit goes on, nothing that is removed meanwhile is freed. (This one was real.)",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Lib,
            filter: "b_tree::tests::what_is_removed",
        },
        hangs: false,
    },
];
