//! Bugs to plant in the effects of tables.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn checker(test: &'static str, filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-table",
        target: Target::Test(test),
        filter,
    }
}

const AGAIN: Checker = checker("effects", "effects_make");
const LATER: Checker = checker("effects", "later_state");
const OWNERS: Checker = checker("effects", "owners_that_do_not");
const ORDER: Checker = checker("effects_threads", "numbers_drawn");

/// Histories of rows and keys of a server that is killed again and again.
const KILLS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-cli",
    target: Target::Test("e2e_histories_over_kills"),
    filter: "",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "effect_before_the_lock",
        file: "crates/table/src/table/store/hashed.rs",
        original: "        self.change(key, |key, _| {\n            note.put(key, &kept);\n",
        replacement: "        note.put(&key, &kept);\n        self.change(key, |_, _| {\n",
        why: "A row's effect gets its number before the lock is held, and another thread's row comes in between.",
        checker: ORDER,
        hangs: false,
    },
    Mutant {
        name: "effect_behind_the_gate",
        file: "crates/table/src/table/note.rs",
        original: "        if let Some(sink) = &mut self.notes.sink {\n            sink.end();",
        replacement: "        self.exclusive = None;\n        if let Some(sink) = &mut self.notes.sink {\n            sink.end();",
        why: "A step gets its numbers when the gate is open again.",
        checker: ORDER,
        hangs: false,
    },
    Mutant {
        name: "effect_of_no_removal",
        file: "crates/table/src/table/store/mod.rs",
        original: "Decision::Remove if is_there => observer.removed(key),",
        replacement: "Decision::Remove if is_there => {}",
        why: "A key whose last row is removed, or any key of an ordered_set, is there again after a restart.",
        checker: AGAIN,
        hangs: false,
    },
    Mutant {
        name: "effect_of_an_insertion_that_was_refused",
        file: "crates/table/src/table/store/ordered.rs",
        original: "let kept = kept.take().filter(|_| absent);",
        replacement: "let kept = kept.take();",
        why: "An insert_new of a key that is there reports its row, and replaces the other.",
        checker: checker("effects", "writes_that_report"),
        hangs: false,
    },
    Mutant {
        name: "effect_of_the_row_before",
        file: "crates/table/src/table/store/hashed.rs",
        original: "note.decided(key, kept.is_some(), &decision);",
        replacement: "match kept {\n                Some(kept) => note.decided(key, true, &Decision::Put(kept.clone())),\n                None => note.decided(key, false, &decision),\n            }",
        why: "A counter's effect is the row as it was before it was counted up.",
        checker: AGAIN,
        hangs: false,
    },
    Mutant {
        name: "effects_of_a_list_one_by_one",
        file: "crates/table/src/table/note.rs",
        original: "            sink.begin();\n        }\n        Ok(Step {",
        replacement: "            let _ = sink;\n        }\n        Ok(Step {",
        why: "A crash in between leaves a part of a list that is inserted in one step.",
        checker: AGAIN,
        hangs: false,
    },
    Mutant {
        name: "effect_with_the_newest_row_first",
        file: "crates/table/src/table/store/kept.rs",
        original: "let mut rows: Vec<_> = newest.map(|kept| self.row(key, &kept)).collect();\n        rows.reverse();",
        replacement: "let rows: Vec<_> = newest.map(|kept| self.row(key, &kept)).collect();",
        why: "Rows that a list adds to a key of a bag are in another order after a restart.",
        checker: checker("effects", "a_bag_reports"),
        hangs: false,
    },
    Mutant {
        name: "effect_of_no_deletion_at_an_owners_end",
        file: "crates/table/src/table/registry.rs",
        original: "Some((shared.mark_deleted(notes)?, shared))",
        replacement: "Some((shared.mark_deleted(&mut Notes::nobody())?, shared))",
        why: "The tables of an owner that has ended are there again after a restart.",
        checker: AGAIN,
        hangs: false,
    },
    Mutant {
        name: "effects_of_a_file_that_is_damaged",
        file: "crates/table/src/table/note.rs",
        original: "            sink.abandon();",
        replacement: "            sink.end();",
        why: "After a restart there is a table of half a file, which had been refused.",
        checker: checker("effects", "a_file_is"),
        hangs: false,
    },
    Mutant {
        name: "effect_added_to_what_is_there",
        file: "crates/table/src/table/effect/apply.rs",
        original: "let kept = if before == after {",
        replacement: "let kept = if before >= after {",
        why: "Rows of a bag that a snapshot has already are there twice after a restart.",
        checker: LATER,
        hangs: false,
    },
    Mutant {
        name: "effect_with_a_count_of_before",
        file: "crates/table/src/table/store/kept.rs",
        original: "let count = older.map_or(0, |older| self.count_rows(older)) + 1;",
        replacement: "let count = older.map_or(1, |older| self.count_rows(older).max(2));",
        why: "The effect of a row that is added says that it comes behind fewer rows than it does.",
        checker: AGAIN,
        hangs: false,
    },
    Mutant {
        name: "effect_of_a_table_whose_number_is_given_again",
        file: "crates/table/src/table/restore.rs",
        original: "LAST_TABLE.fetch_max(number, Ordering::Relaxed);",
        replacement: "LAST_TABLE.load(Ordering::Relaxed);",
        why: "After a restart a new table gets the number of an old one, and takes over its effects.",
        checker: OWNERS,
        hangs: false,
    },
    Mutant {
        name: "histories_over_kills_know_counters_of_before",
        file: "crates/table/src/table/store/hashed.rs",
        original: "note.decided(key, kept.is_some(), &decision);",
        replacement: "match kept {\n                Some(kept) => note.decided(key, true, &Decision::Put(kept.clone())),\n                None => note.decided(key, false, &decision),\n            }",
        why: "After a kill a counter of a set is where it was before it was counted up.",
        checker: KILLS,
        hangs: false,
    },
    Mutant {
        name: "histories_over_kills_know_rows_that_were_taken",
        file: "crates/table/src/table/store/mod.rs",
        original: "Decision::Remove if is_there => observer.removed(key),",
        replacement: "Decision::Remove if is_there => {}",
        why: "After a kill a row that a client has taken is there again.",
        checker: KILLS,
        hangs: false,
    },
];
