//! Bugs to plant in tables.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn checker(target: Target, filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-table",
        target,
        filter,
    }
}

const LISTS: Checker = checker(Target::Test("concurrency"), "a_list_insert");
const ERLANG: Checker = checker(Target::Test("erlang_tables"), "every_call");

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "table_read_is_not_read_again",
        file: "crates/table/src/table/gate.rs",
        original: "if self.version.load(Ordering::Relaxed) == before {",
        replacement: "if self.version.load(Ordering::Relaxed) >= before {",
        why: "A lookup that began before a list insert gives what it saw in the middle of it.",
        checker: checker(Target::Lib, "table::gate"),
        hangs: false,
    },
    Mutant {
        name: "table_read_while_somebody_is_alone",
        file: "crates/table/src/table/gate.rs",
        original: "if before & ALONE != 0 {",
        replacement: "if before & ALONE != 0 && before & DELETED != 0 {",
        why: "A lookup that begins and ends within a list insert gives what it saw.",
        checker: LISTS,
        hangs: false,
    },
    Mutant {
        name: "table_hash_gap_is_left",
        file: "crates/table/src/table/store/hashed.rs",
        original: "self.places[place..end].rotate_left(1);",
        replacement: "",
        why: "A removal leaves a gap before entries that are not at home, which are not found then.",
        checker: checker(Target::Lib, "table::store::hashed"),
        hangs: false,
    },
    Mutant {
        name: "table_bare_row_of_a_float",
        file: "crates/table/src/table/store/kept.rs",
        original: "Term::Float(float) if self.by_value =>",
        replacement: "Term::Float(float) if self.by_value && self.compressed =>",
        why: "An ordered_set keeps 1.0 as the key of a row {1.0}, and gives that for a row {1} which takes its place.",
        checker: checker(Target::Test("tables"), "keys_apart_by_value"),
        hangs: false,
    },
    Mutant {
        name: "table_search_goes_on_at_its_last_key",
        file: "crates/table/src/table/search.rs",
        original: "Direction::Ascending if low == Ordering::Less => span.low = Edge::Beyond(key),",
        replacement: "Direction::Ascending if low == Ordering::Greater => span.low = Edge::Beyond(key),",
        why: "Every chunk of a search of an ordered_set begins where the first did.",
        checker: ERLANG,
        hangs: false,
    },
    Mutant {
        name: "table_threshold_counts_as_passed",
        file: "crates/table/src/table/counter.rs",
        original: "value > *threshold",
        replacement: "value >= *threshold",
        why: "A counter turns over when it reaches its threshold, not when it passes it.",
        checker: ERLANG,
        hangs: false,
    },
];
