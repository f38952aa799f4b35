//! Bugs to plant in the times of the keys of tables.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn checker(package: &'static str, target: Target, filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package,
        target,
        filter,
    }
}

const MODEL: Checker = checker("tremula-table", Target::Lib, "times_are_those_of_a_model");
const AGAIN: Checker = checker("tremula-table", Target::Test("effects"), "effects_make");
const KEPT: Checker = checker(
    "tremula-store",
    Target::Test("durable_tables"),
    "what_was_done_to_tables",
);
const BLOCKS: Checker = checker("tremula-store", Target::Lib, "lies_behind_its_rows");

const fn threads(filter: &'static str) -> Checker {
    checker("tremula-table", Target::Test("effects_threads"), filter)
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "table_time_outlives_the_rows",
        file: "crates/table/src/table/note.rs",
        original: "        if let Some(times) = self.times {\n            times.set(key, None);\n        }\n",
        replacement: "",
        why: "A key that was removed and comes anew goes by its old time.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "table_times_outlive_a_range",
        file: "crates/table/src/table/object.rs",
        original: "        self.times.forget_range(interval);\n",
        replacement: "",
        why: "Keys that select_delete removed as a range come anew with their old times.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "table_key_expires_early",
        file: "crates/table/src/table/times.rs",
        original: "noted.by_time.iter().take_while(|(time, _)| *time <= now);",
        replacement: "noted.by_time.iter().take_while(|(time, _)| *time <= now + 1);",
        why: "Rows go a millisecond before their time.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "table_agenda_keeps_the_latest_time",
        file: "crates/table/src/table/times.rs",
        original: "noted.listed.is_none_or(|listed| time < listed)",
        replacement: "noted.listed.is_none_or(|listed| time > listed)",
        why: "A table is looked at when its last key is due, not its first.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "table_removes_what_was_due",
        file: "crates/table/src/table/expiry.rs",
        original: "            is_removed = its == Some(time);\n",
        replacement: "            is_removed = its.is_some() || time > 0;\n",
        why: "A key that has come anew since it was found due goes by its old time.",
        checker: threads("a_key_that_comes_anew"),
        hangs: false,
    },
    Mutant {
        name: "table_expiry_is_not_logged",
        file: "crates/table/src/table/expiry.rs",
        original: "        due.shared.expire(notes, &due.key, due.time)\n",
        replacement: "        let _ = notes;\n        due.shared.expire(&mut Notes::known(), &due.key, due.time)\n",
        why: "Rows that have expired are there again after a restart.",
        checker: KEPT,
        hangs: false,
    },
    Mutant {
        name: "table_persist_is_not_logged",
        file: "crates/table/src/table/note.rs",
        original: "        self.report(Change::Expiry { key, time });\n",
        replacement: "        if time.is_some() {\n            self.report(Change::Expiry { key, time });\n        }\n",
        why: "Rows that were to stay expire after a restart.",
        checker: AGAIN,
        hangs: false,
    },
    Mutant {
        name: "table_replay_counts_times",
        file: "crates/table/src/table/expiry.rs",
        original: "&mut Notes::known(), key, &mut |_| Update::Put(time));",
        replacement: "&mut Notes::known(), key, &mut |_| match time {\n                Some(..1_000_000) => Update::Remove,\n                time => Update::Put(time),\n            });",
        why: "Rows whose time has come are removed while the log is read again, before a later record lets them stay; the log does not have it.",
        checker: KEPT,
        hangs: false,
    },
    Mutant {
        name: "table_snapshot_without_times",
        file: "crates/store/src/disk/write.rs",
        original: "        if !matches!(effect.change, Change::Expiry { .. }) {\n",
        replacement: "        if let Change::Expiry { .. } = effect.change {\n            return Ok(());\n        } else {\n",
        why: "After a restart from a snapshot no row of a table expires.",
        checker: KEPT,
        hangs: false,
    },
    Mutant {
        name: "table_snapshot_has_times_apart_from_rows",
        file: "crates/store/src/disk/write.rs",
        original: "        if !matches!(effect.change, Change::Expiry { .. }) {\n",
        replacement: "        if !rest.is_empty() || first.len() < usize::MAX {\n",
        why: "A time is loaded by another thread than the rows of its key, before them, and is lost.",
        checker: BLOCKS,
        hangs: false,
    },
];
