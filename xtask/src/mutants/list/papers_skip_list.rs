//! Bugs to plant in the engine of papers skip_list.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The models of the engine.
const LOOM: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-papers",
    target: Target::Test("loom"),
    filter: "skip_list",
};

/// Keys that do not keep their promises.
const fn dishonest(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-papers",
        target: Target::Test("skip_list"),
        filter,
    }
}

/// Lists that check their invariants after each change, and at rest.
const INVARIANTS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-papers",
    target: Target::Test("engines"),
    filter: "skip_list::random_operations",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "skip_list_builder_is_not_told_of_the_removal",
        file: "crates/papers/src/skip_list/node.rs",
        original: "seen = state.fetch_or(MARKED, Ordering::AcqRel);",
        replacement: "seen = state.load(Ordering::Acquire);",
        why: "A node that is removed while its builder links it on a higher level is searched for by neither, and stays linked.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "skip_list_marks_upwards",
        file: "crates/papers/src/skip_list/node.rs",
        original: "for level in (0..self.height()).rev() {\n            self.tower().mark(level);",
        replacement: "for level in 0..self.height() {\n            self.tower().mark(level);",
        why: "A link that is not marked no longer says that the node is on the levels below: a search goes down a removed tower.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "skip_list_links_on_a_marked_link",
        file: "crates/papers/src/skip_list/edit.rs",
        original: "if link.is_marked() || (link != after && !node.tower().exchange(level, link, after))",
        replacement: "if link != after && !node.tower().exchange(level, link, after)",
        why: "A mark is overwritten by a link: the removed node is linked for ever.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "skip_list_frees_a_node_that_a_level_has",
        file: "crates/papers/src/skip_list/node.rs",
        original: "seen < 2 * KEEPER",
        replacement: "true",
        why: "A node is freed when one level has let go of it; where keys have no order, others may be linked to it for good.",
        checker: dishonest("memory_stays_in_order_where_comparisons_lie_and_panic::skip_list"),
        hangs: false,
    },
    Mutant {
        name: "skip_list_forgets_a_stray",
        file: "crates/papers/src/skip_list/edit.rs",
        original: "self.strays.store(true, Relaxed);",
        replacement: "self.strays.store(false, Relaxed);",
        why: "A removed node that is linked above the lowest level only is never freed.",
        checker: dishonest("linked_above_the_lowest_level_only"),
        hangs: false,
    },
    Mutant {
        name: "skip_list_makes_keys_with_a_drop_from_heads",
        file: "crates/index/src/key/head.rs",
        original: "H::IS_KEY && !needs_drop::<K>()",
        replacement: "H::IS_KEY",
        why: "Keys that are made from heads in the middle of an operation run the user's `Drop` there.",
        checker: dishonest("no_key_is_dropped_where_none_was_written"),
        hangs: false,
    },
    Mutant {
        name: "background_skip_list_waits_for_its_own_end",
        file: "crates/papers/src/skip_list/background.rs",
        original: "!cfg!(any(loom, shuttle)) && BUILDER.get()",
        replacement: "false",
        why: "The list's own thread drops the last handle of the list and joins itself.",
        checker: dishonest("the_last_handle_may_be_dropped_by_the_thread_of_the_list"),
        hangs: false,
    },
    Mutant {
        name: "background_skip_list_ends_without_a_last_look",
        file: "crates/papers/src/skip_list/background.rs",
        original: "last_look = self.ended.load(Relaxed);",
        replacement: "last_look = self.ended.load(Relaxed);\n            if last_look {\n                return None;\n            }",
        why: "A task that comes while the list's own thread looks for the last time is lost, and with it a node.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "skip_list_keeps_a_copy_of_what_it_hands_out",
        file: "crates/papers/src/skip_list/edit.rs",
        original: "if !needs_drop::<S::Value>() {",
        replacement: "if needs_drop::<S::Value>() {",
        why: "What is handed out is a copy, and the removed value waits with its node.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-papers",
            target: Target::Test("reclamation"),
            filter: "a_quiet_map_hands_out_the_value_itself",
        },
        hangs: false,
    },
    Mutant {
        name: "skip_list_builder_searches_from_the_front",
        file: "crates/papers/src/skip_list/background.rs",
        original: "node.with_key(|key| self.path(&Gap::at(key), guard))",
        replacement: "self.path(&Gap::Start, guard)",
        why: "Invariant 1: the keys of an upper level do not ascend. Searches find all keys, but more and more slowly.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "skip_list_marks_two_levels_only",
        file: "crates/papers/src/skip_list/node.rs",
        original: "for level in (0..self.height()).rev() {\n            self.tower().mark(level);",
        replacement: "for level in (0..self.height().min(2)).rev() {\n            self.tower().mark(level);",
        why: "Invariant 2: a removed node stays linked on its upper levels, and searches go down its tower.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "skip_list_lock_does_not_lock",
        file: "crates/papers/src/skip_list/node.rs",
        original: ".compare_exchange(seen, seen | LOCKED, Ordering::Acquire, Ordering::Relaxed)",
        replacement: ".compare_exchange(seen, seen, Ordering::Acquire, Ordering::Relaxed)",
        why: "Invariant 4: two writers change one entry at once.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "skip_list_counts_a_keeper_too_many",
        file: "crates/papers/src/skip_list/node.rs",
        original: "let mut state = height as u32 * KEEPER;",
        replacement: "let mut state = (height as u32 + 1) * KEEPER;",
        why: "Invariant 5: the thread that takes away the last keeper does not see that, and the node is never freed.",
        checker: INVARIANTS,
        hangs: false,
    },
];
