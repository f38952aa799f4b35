//! Bugs to plant in the map in the order of hashes, and in what it shares with the B+tree.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// Runs unit tests of the index.
const fn unit(flavour: Flavour, filter: &'static str) -> Checker {
    Checker {
        flavour,
        package: "tremula-index",
        target: Target::Lib,
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "hash_reader_does_not_validate",
        file: "crates/index/src/hash_index/mod.rs",
        original: "            still()?;\n            Ok(value)\n",
        replacement: "            Ok(value)\n",
        why: "A reader misses an entry that moves to the next place while it looks.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "a_hash_reader_finds_an_entry_while_it_moves",
        },
        hangs: false,
    },
    Mutant {
        name: "hash_table_is_freed_at_once",
        file: "crates/index/src/hash_index/mod.rs",
        original: "            unsafe { guard.defer_unchecked(move || drop(Box::from_raw(old))) };",
        replacement: "            let _ = guard;\n            // SAFETY: none.\n            drop(unsafe { Box::from_raw(old) });",
        why: "A reader looks at the places of a table that has just been replaced, and freed.",
        checker: unit(Flavour::Asan, "a_key_that_stays_is_found"),
        hangs: false,
    },
    Mutant {
        name: "hash_gap_is_left",
        file: "crates/index/src/hash_index/table.rs",
        original: "            && self.home(next.hash()) <= at\n",
        replacement: "            && self.home(next.hash()) < at.min(1)\n",
        why: "A removal leaves a gap before entries that are not at home, which are not found then. (Invariant 2.)",
        checker: unit(Flavour::Plain, "hash_index::tests::random_operations"),
        hangs: false,
    },
    Mutant {
        name: "finger_outlives_its_leaf",
        file: "crates/index/src/b_tree/merge.rs",
        original: "            self.era.end();\n",
        replacement: "",
        why: "A step begins in the leaf of the last one, which was merged and freed since.",
        checker: unit(Flavour::Asan, "a_step_does_not_look_at_a_leaf_that_is_gone"),
        hangs: false,
    },
    Mutant {
        name: "finger_is_at_another_key",
        file: "crates/index/src/b_tree/finger.rs",
        original: "if index >= self.count() || self.heads().load(index) != head {",
        replacement: "if index >= self.count() {",
        why: "A step from any key of a leaf goes on from the key of the last step.",
        checker: unit(Flavour::Plain, "steps_and_values_in_place_follow_the_model"),
        hangs: false,
    },
    Mutant {
        name: "value_in_place_is_freed_at_once",
        file: "crates/index/src/kit/in_place.rs",
        original: "            unsafe { guard.defer_unchecked(move || drop(self.take())) };",
        replacement: "            drop(unsafe { self.take() });",
        why: "A reader looks at a value that is kept in place, and was replaced and dropped meanwhile.",
        checker: unit(Flavour::Asan, "readers_and_steps_beside_writers"),
        hangs: false,
    },
    Mutant {
        name: "key_in_its_head_has_a_box",
        file: "crates/index/src/kit/stored_key.rs",
        original: "S::HEAD_IS_KEY || some_are_in_heads::<S>() && self.word.is_null()",
        replacement: "S::HEAD_IS_KEY || self.word.is_null() && self.head == u64::MAX",
        why: "A key that its head determines, and that has no box, is looked for in one.",
        checker: unit(Flavour::Asan, "steps_and_values_in_place_follow_the_model"),
        hangs: false,
    },
];
