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
        name: "table_float_in_a_key_is_not_noticed",
        file: "crates/table/src/table/store/kept.rs",
        original: "Term::Tuple(elements) => elements.iter().all(tells_itself),",
        replacement: "Term::Tuple(_) => true,",
        why: "A step to a row gives the key that the store has, {1}, and not the row's, {1.0}.",
        checker: checker(Target::Test("tables"), "steps_give_the_key"),
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
        name: "table_range_of_rows_of_several_sizes",
        file: "crates/table/src/table/row_sizes.rs",
        original: "self.0.store(SEVERAL, Relaxed);",
        replacement: "self.0.store(size, Relaxed);",
        why: "A select_delete of a range takes rows with it whose size its head does not have.",
        checker: checker(Target::Test("traversals"), "ranges_are_deleted"),
        hangs: false,
    },
    Mutant {
        name: "table_range_behind_a_number",
        file: "crates/table/src/match_spec/range/whole.rs",
        original: "other => other.is_nil(),",
        replacement: "other => other.is_nil() || other.is_number(),",
        why: "A select_delete of the keys {1, _} takes the key {1.0, _} with it, which does not match.",
        checker: checker(Target::Test("traversals"), "what_deletes_a_whole_range"),
        hangs: false,
    },
    Mutant {
        name: "table_replacement_by_another_key",
        file: "crates/table/src/match_spec/replace.rs",
        original: "(Some(one), Some(two)) => pairs.push((one, two, is_constant)),",
        replacement: "(Some(_), Some(_)) => {}",
        why: "A select_replace may make another list of a list that is the key.",
        checker: ERLANG,
        hangs: false,
    },
    Mutant {
        name: "table_slice_forgets_its_last_key",
        file: "crates/table/src/table/search.rs",
        original: "if visit(key, kept, is_last).is_continue() && left > 0 {",
        replacement: "if left > 0 && visit(key, kept, is_last).is_continue() {",
        why: "The last key of each slice of a search is never looked at.",
        checker: checker(Target::Test("traversals"), "slices_"),
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
