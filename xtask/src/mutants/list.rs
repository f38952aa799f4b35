//! The list of planted bugs.
//!
//! To add one, append a [`Mutant`]: the exact text of a place in the code, occurring once in
//! its file; what to put there; why that is a bug; and the checker that must catch it. Choose
//! bugs that someone could write, and a checker that is there for their kind.

use crate::flavour::Flavour;

/// One bug to plant.
pub(crate) struct Mutant {
    /// Unique, in words joined by `_`.
    pub(crate) name: &'static str,
    /// Relative to the workspace's root.
    pub(crate) file: &'static str,
    /// Text that occurs exactly once in the file.
    pub(crate) original: &'static str,
    /// What stands there instead.
    pub(crate) replacement: &'static str,
    /// What goes wrong, and when.
    pub(crate) why: &'static str,
    /// What must catch it.
    pub(crate) checker: Checker,
    /// Whether the bug shows in that the checker does not end.
    pub(crate) hangs: bool,
}

/// A test, or some tests, in one way of building.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checker {
    pub(crate) flavour: Flavour,
    pub(crate) package: &'static str,
    pub(crate) target: Target,
    /// Part of the names of the tests to run; empty for all.
    pub(crate) filter: &'static str,
}

/// Which of a crate's tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a kind that no planted bug needs at the moment")]
pub(crate) enum Target {
    /// The unit tests of the library.
    Lib,
    /// The unit tests of the programs.
    Bins,
    /// The integration test of this name.
    Test(&'static str),
}

/// Every planted bug.
pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "lock_reader_does_not_look_again",
        file: "crates/sync/src/statistics_lock.rs",
        original: "            if self.reader_biased.load(Ordering::SeqCst) {",
        replacement: "            if true {",
        why: "A reader that publishes its slot while a writer is taking the bias away reads during the write.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "biased",
        },
        hangs: false,
    },
    Mutant {
        name: "lock_writer_does_not_wait_for_slots",
        file: "crates/sync/src/statistics_lock.rs",
        original: "self.clear_bias() && self.domain.stripes.wait_for_readers(self.address())",
        replacement: "self.clear_bias()",
        why: "A writer writes while readers that came in by their slots are still reading.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "biased",
        },
        hangs: false,
    },
    Mutant {
        name: "lock_reader_leaves_too_early",
        file: "crates/sync/src/statistics_lock.rs",
        original: "Some(slot) => slot.store(ptr::null_mut(), Ordering::Release),",
        replacement: "Some(slot) => slot.store(ptr::null_mut(), Ordering::Relaxed),",
        why: "A reader's reads may come after it has left its slot, during the next write.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "biased",
        },
        hangs: false,
    },
    Mutant {
        name: "lock_try_write_ignores_slots",
        file: "crates/sync/src/statistics_lock.rs",
        original: "        if self.clear_bias() && self.domain.stripes.has_reader(self.address()) {",
        replacement: "        if self.clear_bias() && self.statistics() == i32::MAX {",
        why: "A join takes a base node over while a reader is inside by its slot.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "try_write",
        },
        hangs: false,
    },
    Mutant {
        name: "counter_forgets_a_collision",
        file: "crates/sync/src/striped_counter.rs",
        original: "        self.cell.fetch_add(difference, Ordering::Relaxed);\n        if",
        replacement: "        if",
        why: "An addition that collides with another is lost.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-sync",
            target: Target::Test("loom"),
            filter: "counter",
        },
        hangs: false,
    },
    Mutant {
        name: "split_leaves_the_old_node_valid",
        file: "crates/index/src/ca_tree/adapt.rs",
        original: "        base.valid = false;\n        self.adaptations.splits",
        replacement: "        self.adaptations.splits",
        why: "A writer that waited for the lock during a split writes to the node that was replaced.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "split",
        },
        hangs: false,
    },
    Mutant {
        name: "join_leaves_the_neighbour_valid",
        file: "crates/index/src/ca_tree/adapt.rs",
        original: "        other.valid = false;\n",
        replacement: "",
        why: "A writer that waited for the neighbour during a join writes to the node that was replaced.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "join",
        },
        hangs: false,
    },
    Mutant {
        name: "join_links_before_it_unlinks",
        file: "crates/index/src/ca_tree/adapt.rs",
        original: "                self.link_to(parent.node, above).raise(sibling.get(guard));\n                self.link_to(neighbour.node, Some(nearer))\n                    .set(NewNode::base(joined, &self.domain));\n",
        replacement: "                self.link_to(neighbour.node, Some(nearer))\n                    .set(NewNode::base(joined, &self.domain));\n                self.link_to(parent.node, above).raise(sibling.get(guard));\n",
        why: "A scan holds the joined node while the route node that no longer bounds it can still be passed: it visits entries twice. (This one was real.)",
        checker: Checker {
            flavour: Flavour::Shuttle,
            package: "tremula-index",
            target: Target::Test("shuttle"),
            filter: "scans",
        },
        hangs: false,
    },
    Mutant {
        name: "scan_trusts_an_old_boundary",
        file: "crates/index/src/ca_tree/ranges.rs",
        original: "self.beyond(position, range, direction, guard) else",
        replacement: "last.0.boundary(direction).and_then(|boundary| range.beyond(boundary, direction)) else",
        why: "The boundary that was passed on the way to a base node may be too narrow by the time it is locked: entries come twice. (This one was real.)",
        checker: Checker {
            flavour: Flavour::Shuttle,
            package: "tremula-index",
            target: Target::Test("shuttle"),
            filter: "scans",
        },
        hangs: false,
    },
    Mutant {
        name: "scan_lets_go_too_early",
        file: "crates/index/src/ca_tree/ranges.rs",
        original: "            held.push(std::mem::replace(&mut last, (next, base)));",
        replacement: "            last = (next, base);",
        why: "A scan over several base nodes shows parts of different moments.",
        checker: Checker {
            flavour: Flavour::Shuttle,
            package: "tremula-index",
            target: Target::Test("shuttle"),
            filter: "moment",
        },
        hangs: false,
    },
    Mutant {
        name: "pop_takes_an_empty_end_for_an_empty_tree",
        file: "crates/index/src/ca_tree/mod.rs",
        original: "            let parent = place.parent?;\n",
        replacement: "            let parent = place.parent.filter(|_| false)?;\n",
        why: "When the base node at one end has run empty, the tree looks empty.",
        checker: Checker {
            flavour: Flavour::Shuttle,
            package: "tremula-index",
            target: Target::Test("shuttle"),
            filter: "popped",
        },
        hangs: false,
    },
    Mutant {
        name: "retired_node_is_freed_at_once",
        file: "crates/index/src/ca_tree/node.rs",
        original: "        unsafe { guard.defer_unchecked(move || drop(Box::from_raw(node))) };",
        replacement: "        let _ = guard;\n        // SAFETY: none.\n        drop(unsafe { Box::from_raw(node) });",
        why: "A thread on its way through a node that was just unlinked reads freed memory.",
        checker: Checker {
            flavour: Flavour::Asan,
            package: "tremula-index",
            target: Target::Test("stress"),
            filter: "restless",
        },
        hangs: false,
    },
    Mutant {
        name: "link_is_read_relaxed",
        file: "crates/index/src/ca_tree/node.rs",
        original: "        let node = self.0.load(Ordering::Acquire);",
        replacement: "        let node = self.0.load(Ordering::Relaxed);",
        why: "A thread may follow a link to a node before it sees what is in the node.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "b_tree_leaf_splits_with_a_wrong_separator",
        file: "crates/index/src/container/b_tree/edit.rs",
        original: "leaf.keys()[N / 2].clone()",
        replacement: "leaf.keys()[N / 2 - 1].clone()",
        why: "The last key of a lower leaf is looked for in the upper one.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Test("containers"),
            filter: "b_tree",
        },
        hangs: false,
    },
    Mutant {
        name: "b_tree_range_is_lost_when_a_comparison_panics",
        file: "crates/index/src/container/b_tree/join.rs",
        original: "            None if upper.root.is_some() => *self.lower = upper,\n",
        replacement: "",
        why: "When a comparison panics while a range is taken out from the beginning, the entries are gone.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Test("container_panics"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "avl_tolerates_imbalance",
        file: "crates/index/src/container/avl/balance.rs",
        original: "if lower > upper + 1 {",
        replacement: "if lower > upper + 2 {",
        why: "Subtrees may differ by two levels; a search takes longer than promised.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Test("containers"),
            filter: "avl::",
        },
        hangs: false,
    },
    Mutant {
        name: "locked_update_uses_two_locks",
        file: "crates/index/src/locked/mod.rs",
        original: "        let (old, difference) = inner.container.update(key, decide);",
        replacement: "        drop(inner);\n        let mut decision = Some(decide(self.inner.read().container.get(&key)));\n        inner = self.inner.write();\n        let (old, difference) = inner.container.update(key, &mut |_| decision.take().unwrap_or(Update::Keep));",
        why: "Increments by two threads at once count once.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Test("engines"),
            filter: "increment",
        },
        hangs: false,
    },
    Mutant {
        name: "xtask_believes_tests_without_models",
        file: "xtask/src/output.rs",
        original: "    if (models.len() as u64) < binary.passed {",
        replacement: "    if (models.len() as u64) > binary.passed {",
        why: "A loom test that explores nothing, say because its model is compiled out, passes.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "xtask",
            target: Target::Bins,
            filter: "output::",
        },
        hangs: false,
    },
    Mutant {
        name: "xtask_waits_for_leftover_processes",
        file: "xtask/src/job.rs",
        original: "            && (closed || when.elapsed() > GRACE)",
        replacement: "            && closed",
        why: "A server that a test leaves running keeps the test run waiting for its output.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "xtask",
            target: Target::Bins,
            filter: "job::",
        },
        hangs: false,
    },
];
