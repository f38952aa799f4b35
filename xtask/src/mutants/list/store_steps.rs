//! Bugs to plant in steps in which any operations run.

use super::store::store;
use super::{Checker, Mutant, Target};

const fn holding(filter: &'static str) -> Checker {
    store(Target::Test("holding"), filter)
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "store_logs_a_step_that_was_undone",
        file: "crates/store/src/effects/mod.rs",
        original: "            if !is_done {\n",
        replacement: "            if !is_done && changes.is_empty() {\n",
        why: "What a step has changed before it panicked is there after a restart.",
        checker: holding("a_panic_undoes_the_step"),
        hangs: false,
    },
    Mutant {
        name: "store_leaves_gaps_behind_a_step",
        file: "crates/store/src/effects/mod.rs",
        original: "            let rest = std::iter::repeat_n(Change::Nothing, left);\n",
        replacement: "            let rest = std::iter::repeat_n(Change::Nothing, left.min(0));\n",
        why: "The log waits for numbers that nobody writes, and nothing later is kept.",
        checker: holding("a_step_of_any_operations"),
        hangs: true,
    },
    Mutant {
        name: "store_logs_a_step_of_operations_in_pieces",
        file: "crates/store/src/effects/mod.rs",
        original: "            journal.write(first, changes.into_iter().chain(rest));\n",
        replacement: "            for (number, change) in (first..).zip(changes.into_iter().chain(rest)) {\n                journal.write(number, std::iter::once(change));\n                journal.forward();\n            }\n",
        why: "A crash can leave half of a transaction.",
        checker: holding("steps_are_seen_as_a_whole"),
        hangs: false,
    },
    Mutant {
        name: "store_holds_databases_in_any_order",
        file: "crates/store/src/held.rs",
        original: "        sorted.sort_by_key(|hold| hold.database);\n",
        replacement: "",
        why: "Two transactions wait for each other, and for ever.",
        checker: holding("steps_are_seen_as_a_whole"),
        hangs: true,
    },
    Mutant {
        name: "store_scans_down_from_the_wrong_end_in_a_step",
        file: "crates/store/src/access.rs",
        original: "            out[begin..].reverse();\n",
        replacement: "",
        why: "RANGE with REV is ascending in a transaction.",
        checker: holding("a_step_of_any_operations"),
        hangs: false,
    },
    Mutant {
        name: "store_counts_the_first_of_a_step_only",
        file: "crates/store/src/access.rs",
        original: "                    count += 1;\n",
        replacement: "                    count = 1;\n",
        why: "DBSIZE in a transaction is wrong.",
        checker: holding("a_step_of_any_operations"),
        hangs: false,
    },
];
