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

/// The tests of the engine's invariants.
const INVARIANTS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("lfca_tree"),
    filter: "",
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
        original: "        if let Some(above) = grandparent {\n            above.unmark(join);\n        }\n",
        replacement: "",
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
        original: "            && storage.range().has(probe.key)\n        {\n            return None;",
        replacement: "            && !storage.range().has(probe.key)\n        {\n            return None;",
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
    Mutant {
        name: "lfca_split_divides_at_a_wrong_key",
        file: "crates/index/src/lfca_tree/contents/join.rs",
        original: "let key = root.with_key(middle, S::Key::clone);",
        replacement: "let key = root.with_key(middle - 1, S::Key::clone);",
        why: "The last key of the lower base node is looked for in the upper one (invariant 1).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "lfca_join_forgets_the_route_node_above",
        file: "crates/index/src/lfca_tree/adapt.rs",
        original: "parent: if next_to_it {",
        replacement: "parent: if next_to_it || grandparent.is_none() {",
        why: "A base node that was joined deep in the tree takes itself for the root, and can never be replaced (invariant 3).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "lfca_removal_leaves_a_base_node_frozen",
        file: "crates/index/src/lfca_tree/ranges.rs",
        original: "for base in self.frozen(&storage, guard) {",
        replacement: "for base in self.frozen(&storage, guard).into_iter().skip(1) {",
        why: "After a removal of a range is over, each operation on its first base node has to help it first (invariant 4).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "lfca_join_unmarks_the_parent",
        file: "crates/index/src/lfca_tree/adapt.rs",
        original: "        if let Some(above) = grandparent {\n            above.unmark(join);",
        replacement: "        if grandparent.is_some() {\n            // SAFETY: the parent was linked during this pin.\n            unsafe { route(parent) }.unmark(join);",
        why: "The link to a route node that was unlinked can change again, and no base node below the grandparent is joined (invariant 5).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "lfca_low_key_leaves_the_keys_above_it",
        file: "crates/index/src/lfca_tree/contents/edit.rs",
        original: "Change::Put(key, _) if is_lowest =>",
        replacement: "Change::Put(key, _) if is_lowest && path.found =>",
        why: "The key of an inner node lies above the first key of its child (invariant 1 of contents).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "lfca_nodes_grow_too_large",
        file: "crates/index/src/lfca_tree/contents/edit.rs",
        original: "_ if total <= most(level) => total,",
        replacement: "_ if total <= most(level) + 1 => total,",
        why: "A node has an entry more than the most (invariant 2 of contents).",
        checker: LIB,
        hangs: false,
    },
    Mutant {
        name: "lfca_copy_shares_what_it_does_not_count",
        file: "crates/index/src/lfca_tree/contents/edit.rs",
        original: "share_runs(&[Part::Run(node, 0..start), Part::Run(node, rest..node.len())]);",
        replacement: "share_runs(&[Part::Run(node, 0..start)]);",
        why: "The children behind the one that is replaced have two parents and one count, and are freed with the first (invariant 3 of contents).",
        checker: LIB,
        hangs: false,
    },
    Mutant {
        name: "lfca_edit_moves_what_a_snapshot_has",
        file: "crates/index/src/lfca_tree/contents/edit.rs",
        original: ".take_while(|level| self.path_node(*level).node.is_exclusive())",
        replacement: ".take_while(|level| *level == 0 || self.path_node(*level).node.is_exclusive())",
        why: "A root that a snapshot shares is freed under it (invariant 4 of contents).",
        checker: LIB,
        hangs: false,
    },
];
