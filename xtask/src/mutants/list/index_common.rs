//! Bugs to plant in what the index engines share.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "heads_keep_an_old_hint",
        file: "crates/index/src/search/heads.rs",
        original: "        self.heads[count - 1].store(UNUSED, Ordering::Relaxed);\n        self.mend_hints(at, count);",
        replacement: "        self.heads[count - 1].store(UNUSED, Ordering::Relaxed);\n        self.mend_hints(at, count - 1);",
        why: "When the first head of a segment was the last of all, its hint sends a search for something greater past the end.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Lib,
            filter: "heads",
        },
        hangs: false,
    },
    Mutant {
        name: "container_keys_of_one_head_are_not_compared",
        file: "crates/index/src/container/b_tree/keys.rs",
        original: "from + rank(&self.keys[from..from + same], key.key, or_equal)",
        replacement: "from + if or_equal { same } else { 0 }",
        why: "Keys that only differ behind their heads are taken for one another.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Test("containers"),
            filter: "headed_b_tree",
        },
        hangs: false,
    },
    Mutant {
        name: "b_tree_leaf_splits_with_a_wrong_separator",
        file: "crates/index/src/container/b_tree/edit.rs",
        original: "leaf.keys().copy(N / 2)",
        replacement: "leaf.keys().copy(N / 2 - 1)",
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
        name: "locked_pop_uses_two_locks",
        file: "crates/index/src/locked/mod.rs",
        original: "        let entry = inner.container.pop_first();",
        replacement: "        drop(inner);\n        let entry = self.first();\n        inner = self.inner.write();\n        if let Some((key, _)) = &entry {\n            inner.container.remove(key);\n        }",
        why: "Two threads pop the same entry.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-check",
            target: Target::Test("histories"),
            filter: "locked_with",
        },
        hangs: false,
    },
    Mutant {
        name: "range_scans_again_after_its_ends_have_met",
        file: "crates/index/src/ordered_map.rs",
        original: "        self.met = entries.len() < size;\n",
        replacement: "",
        why: "An end that takes entries from the other end's batch goes back to keys that were inserted behind them; and an iterator that has ended goes on. (This one was real.)",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Test("both_ends"),
            filter: "",
        },
        hangs: false,
    },
];
