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

const fn owners(filter: &'static str) -> Checker {
    checker(Target::Test("owners"), filter)
}

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
    Mutant {
        name: "table_renamed_behind_its_deletion",
        file: "crates/table/src/table/registry.rs",
        original: "if listed.there(shared.number).is_none() {\n            return Err(no_table(\"rename\"));",
        replacement: "if shared.number == 0 {\n            return Err(no_table(\"rename\"));",
        why: "A table that is renamed behind its deletion leaves a name that no table has.",
        checker: checker(Target::Lib, "table::registry"),
        hangs: false,
    },
    Mutant {
        name: "table_deleted_is_found",
        file: "crates/table/src/table/registry.rs",
        original: "(!shared.is_deleted()).then_some(shared)",
        replacement: "(shared.number > 0).then_some(shared)",
        why: "A deleted table holds its name, and is found, until it is unlisted.",
        checker: owners("a_"),
        hangs: false,
    },
    Mutant {
        name: "table_given_away_under_the_lock",
        file: "crates/table/src/table/registry.rs",
        original: "drop(listed);\n        delivery.into_iter().for_each(Delivery::send);",
        replacement: "delivery.into_iter().for_each(Delivery::send);",
        why: "A waker that looks at the tables waits for the lock that the thread which wakes it holds.",
        checker: owners("a_waker_may"),
        hangs: false,
    },
    Mutant {
        name: "table_inherited_under_the_lock",
        file: "crates/table/src/table/registry.rs",
        original: "drop(listed);\n        // All are",
        replacement: "// All are",
        why: "A waker of an heir waits for the lock that the owner which goes holds.",
        checker: owners("a_waker_may"),
        hangs: false,
    },
    Mutant {
        name: "table_fixed_by_an_owner_that_is_gone",
        file: "crates/table/src/table/registry.rs",
        original: "if *caller == NODE {",
        replacement: "if *caller == NODE || !listed.owners.contains_key(caller) {",
        why: "A handle of an owner that is gone fixes the table in the name of the node, for ever.",
        checker: owners("an_owner_that_is_gone"),
        hangs: false,
    },
    Mutant {
        name: "table_numbers_of_each_node",
        file: "crates/table/src/table/registry.rs",
        original: "let number = next(&LAST_TABLE);",
        replacement: "let number = self.all().len() as u64 + 1;",
        why: "A continuation of another node's table is taken for one of the table with the same number.",
        checker: owners("what_one_node"),
        hangs: false,
    },
    Mutant {
        name: "table_owner_goes_through_all_tables",
        file: "crates/table/src/table/registry.rs",
        original: "let owned = member.tables.iter();",
        replacement: "let owned = listed.tables.iter().filter(|(_, shared)| shared.owner() == number).map(|(table, _)| table);",
        why: "An owner that goes looks at every table of the node, while all others wait.",
        checker: owners("an_owner_that_goes"),
        hangs: false,
    },
];
