//! Bugs to plant in the way of effects into the log.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// Writes of several threads under random schedules.
const SCHEDULES: Checker = Checker {
    flavour: Flavour::Shuttle,
    package: "tremula-store",
    target: Target::Test("shuttle"),
    filter: "the_log_has_the_order_of_effects_of_b_tree",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "journal_leaves_records_to_a_thread_that_leaves",
        file: "crates/store/src/effects/journal.rs",
        original: "if self.forwards.swap(AGAIN, SeqCst) != NOBODY {",
        replacement: "if self.forwards.swap(SOMEBODY, SeqCst) != NOBODY {",
        why: "Who comes while another thread hands over leaves its records to that thread, which has looked already.",
        checker: SCHEDULES,
        hangs: false,
    },
    Mutant {
        name: "journal_loses_what_waits_behind_a_gap",
        file: "crates/store/src/effects/journal.rs",
        original: "for (number, piece) in &self.order[done..] {",
        replacement: "for (number, piece) in self.order[done..].iter().skip(1) {",
        why: "A record that waits for a lower number, which another thread has taken and not written yet, is lost.",
        checker: SCHEDULES,
        hangs: false,
    },
    Mutant {
        name: "journal_appends_in_the_order_of_buffers",
        file: "crates/store/src/effects/journal.rs",
        original: "        self.order.sort_by_key(|(_, piece)| piece.first);\n",
        replacement: "",
        why: "What lies in two buffers is handed over only as far as the first one goes.",
        checker: SCHEDULES,
        hangs: false,
    },
];
