//! Bugs to plant in the checker of histories.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "check_many_at_once_is_not_tied",
        file: "crates/check/src/map/groups.rs",
        original: "            ties.tie(entries.iter().map(place));",
        replacement: "            ties.tie(entries.iter().map(place).take(1));",
        why: "An insertion of many entries is explained with one of its keys only, and is missed at the others: right histories fail.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-check",
            target: Target::Test("anomalies"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "check_search_forgets_states",
        file: "crates/check/src/search.rs",
        original: "let configuration = (self.placed.clone().into_boxed_slice(), state.clone());",
        replacement: "let configuration = (self.placed.clone().into_boxed_slice(), self.specification.initial());",
        why: "An order is not looked for where another order of the same calls led to another state: right histories fail.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-check",
            target: Target::Test("definition"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "check_search_ignores_time",
        file: "crates/check/src/search.rs",
        original: "if event.called > events[blocked].end() {",
        replacement: "if event.called == u64::MAX {",
        why: "A call may be placed before one that ended before it began: stale reads pass.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-check",
            target: Target::Test("anomalies"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "check_search_takes_writes_for_reads",
        file: "crates/check/src/search.rs",
        original: "if observed.is_some() && self.specification.only_reads(&event.operation, observed) {",
        replacement: "if observed.is_some() && after == state {",
        why: "A write without a telling answer is placed where it changes nothing, though it has to come later: right histories fail.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-check",
            target: Target::Test("definition"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "check_leaves_writes_out",
        file: "crates/check/src/explain.rs",
        original: "                    && searches\n                        .specification\n                        .only_reads(&event.operation, event.response())",
        replacement: "                    && event.response().is_some()",
        why: "A counterexample is made so small that its answers only look wrong.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-check",
            target: Target::Test("definition"),
            filter: "",
        },
        hangs: false,
    },
    Mutant {
        name: "check_ranges_are_of_one_moment_too_late",
        file: "crates/check/src/map/history.rs",
        original: "entries.len() <= up_to",
        replacement: "entries.len() < up_to",
        why: "A range of as many entries as are promised to be of one moment passes with two moments.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-check",
            target: Target::Test("definition"),
            filter: "ranges_are_of_one_moment",
        },
        hangs: false,
    },
    Mutant {
        name: "check_clock_stops_before_the_call",
        file: "crates/check/src/record/session.rs",
        original: "            let outcome = catch_unwind(AssertUnwindSafe(|| subject.call(&operation)));\n            let at = clock.stamp();",
        replacement: "            let at = clock.stamp();\n            let outcome = catch_unwind(AssertUnwindSafe(|| subject.call(&operation)));",
        why: "A call ends before it has happened: right maps fail.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-check",
            target: Target::Test("histories"),
            filter: "locked_with",
        },
        hangs: false,
    },
    Mutant {
        name: "check_counts_what_is_under_way_in_full",
        file: "crates/check/src/map/count.rs",
        original: "            partial: whole.perhaps(),",
        replacement: "            partial: whole,",
        why: "A length may not be late for what is under way: right maps fail.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-check",
            target: Target::Test("anomalies"),
            filter: "counts",
        },
        hangs: false,
    },
];
