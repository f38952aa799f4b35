//! Bugs to plant in the index engine skip_list.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "skip_list_remover_does_not_wait_for_builder",
        file: "crates/index/src/skip_list/node.rs",
        original: "self.fixed().state.fetch_or(MARKED, Ordering::AcqRel) & BUILDING == 0",
        replacement: "self.fixed().state.fetch_or(MARKED, Ordering::AcqRel) & LOCKED == 0",
        why: "A node is retired while its inserter still links it on a higher level.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "skip_list",
        },
        hangs: false,
    },
    Mutant {
        name: "skip_list_marks_upwards",
        file: "crates/index/src/skip_list/node.rs",
        original: "for level in (0..self.height()).rev() {\n            self.tower().mark(level);",
        replacement: "for level in 0..self.height() {\n            self.tower().mark(level);",
        why: "A link that is not marked no longer says that the node is on the levels below: a search goes down a removed tower.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "skip_list",
        },
        hangs: false,
    },
    Mutant {
        name: "skip_list_links_on_a_marked_link",
        file: "crates/index/src/skip_list/edit.rs",
        original: "if link.is_marked() || (link != after && !node.tower().exchange(level, link, after))",
        replacement: "if link != after && !node.tower().exchange(level, link, after)",
        why: "A mark is overwritten by a link: the removed node is linked for ever.",
        checker: Checker {
            flavour: Flavour::Loom,
            package: "tremula-index",
            target: Target::Test("loom"),
            filter: "skip_list",
        },
        hangs: false,
    },
];
