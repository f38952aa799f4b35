//! Bugs to plant in the index engine lfca_tree.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The models of the engine.
const LOOM: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-index",
    target: Target::Test("loom"),
    filter: "lfca_tree",
};

/// The unit tests of the engine.
const LIB: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Lib,
    filter: "lfca_tree",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "lfca_query_does_not_look_again",
        file: "crates/index/src/lfca_tree/ranges.rs",
        original: "if passed.into_iter().chain(last).all(is_unchanged) {",
        replacement: "if passed.into_iter().chain(last).count() > 0 || last.is_some_and(is_unchanged) {",
        why: "A scan over two base nodes shows the first as it was before a change of the second, and the second as it is after it.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "lfca_join_is_read_before_it_is_done",
        file: "crates/index/src/lfca_tree/node.rs",
        original: "Role::Main(join) => !join.is_committed() && !join.is_done(),",
        replacement: "Role::Main(_) => true,",
        why: "A scan reads the main node of a join, and then its neighbour with the contents of both: entries come twice.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "lfca_join_leaves_the_neighbour_replaceable",
        file: "crates/index/src/lfca_tree/node.rs",
        original: "Role::Neighbour(join) => join.is_aborted() || join.is_done(),",
        replacement: "Role::Neighbour(_) => true,",
        why: "A write to the neighbour after its contents were taken is lost when the join completes, or breaks the join.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "lfca_join_keeps_the_mark_of_the_grandparent",
        file: "crates/index/src/lfca_tree/adapt.rs",
        original: "                    above.right.swing(parent, sibling);\n                }\n                above.unmark(join);",
        replacement: "                    above.right.swing(parent, sibling);\n                }",
        why: "No base node below the grandparent is ever joined again.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "lfca_shared_leaf_gets_a_count_too_many",
        file: "crates/index/src/lfca_tree/contents/edit.rs",
        original: "            && !is_shared\n        {\n            value.give();",
        replacement: "        {\n            value.give();",
        why: "A value that is put beside those that a snapshot shares is never dropped.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "lfca_removed_range_shows_through",
        file: "crates/index/src/lfca_tree/update.rs",
        original: "            && storage.range().contains(key)\n        {\n            return None;",
        replacement: "            && !storage.range().contains(key)\n        {\n            return None;",
        why: "A lookup misses what lies beside a range that was removed, and finds what lies in it.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "lfca_merge_above_a_rich_leaf_is_not_foreseen",
        file: "crates/index/src/lfca_tree/contents/edit.rs",
        original: "None => usize::from(left > 0),",
        replacement: "None if left > 0 => return movable,\n                    None => 0,",
        why: "A removal merges a node that was poor before with its sibling, whose entries are moved as if nobody else had it: the sibling is never freed.",
        checker: LIB,
        hangs: false,
    },
    Mutant {
        name: "lfca_counts_begin_again",
        file: "crates/index/src/lfca_tree/contents/node.rs",
        original: "if counts > MOST_COUNTS {",
        replacement: "if counts == 0 {",
        why: "A node that has more counts than there are numbers is freed while others have it.",
        checker: LIB,
        hangs: false,
    },
    Mutant {
        name: "lfca_frees_what_others_look_at",
        file: "crates/index/src/lfca_tree/update.rs",
        original: "if guard.is_alone() {",
        replacement: "if !guard.is_alone() {",
        why: "What is unlinked is freed at once while other threads are inside; and where none is, a copy of the removed value is handed out.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-index",
            target: Target::Test("reclamation"),
            filter: "a_quiet_map_hands_out_the_value_itself",
        },
        hangs: false,
    },
];
