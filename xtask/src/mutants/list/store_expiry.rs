//! Bugs to plant in the expiry of keys.

use super::store::store;
use super::{Checker, Mutant, Target};

const fn expiry(filter: &'static str) -> Checker {
    store(Target::Test("expiry"), filter)
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "store_counts_no_keys_that_are_written_anew_when_they_have_expired",
        file: "crates/store/src/database.rs",
        original: "let is_over = before.is_some_and(|expiry| self.is_over(expiry));\n        self.kept",
        replacement: "let is_over = before.is_some_and(|expiry| self.is_over(expiry)) && after.is_some();\n        self.kept",
        why: "A key that has expired and comes anew, without a time, is not counted as expired.",
        checker: expiry("each_key_that_expires"),
        hangs: false,
    },
    Mutant {
        name: "store_applies_the_log_as_if_times_counted",
        file: "crates/store/src/recover.rs",
        original: "let mut store = Self::made(config, true)?;\n        store.let_expire(false);",
        replacement: "let mut store = Self::made(config, true)?;\n        store.let_expire(true);",
        why: "A key whose time was prolonged is lost at a start after its first time.",
        checker: expiry("a_time_that_was_prolonged"),
        hangs: false,
    },
    Mutant {
        name: "store_notes_no_time_of_a_replaced_value",
        file: "crates/store/src/database.rs",
        original: "                    self.note_expiry(&noted, current, value.expiry());",
        replacement: "                    self.note_expiry(&noted, None, value.expiry());",
        why: "The index by time grows with every SET of the same key.",
        checker: expiry("what_has_had_its_time"),
        hangs: false,
    },
    Mutant {
        name: "store_forgets_times_of_a_range",
        file: "crates/store/src/database.rs",
        original: "self.kept.deadlines.change(key, Some(expiry), None);",
        replacement: "let _ = key;",
        why: "The index by time keeps what a range removal has removed.",
        checker: expiry("what_has_had_its_time"),
        hangs: false,
    },
    Mutant {
        name: "store_counts_expired_keys_of_a_range",
        file: "crates/store/src/database.rs",
        original: "        removed - expired\n",
        replacement: "        removed - expired.min(0)\n",
        why: "DELRANGE counts keys that nobody could see.",
        checker: expiry("what_has_had_its_time"),
        hangs: false,
    },
    Mutant {
        name: "store_decides_by_an_expired_value",
        file: "crates/store/src/database.rs",
        original: "let mut decided = decide(effects, current.filter(|value| self.is_alive(value)));",
        replacement: "let mut decided = decide(effects, current);",
        why: "INCR goes on from a value that has expired.",
        checker: expiry("what_has_had_its_time"),
        hangs: false,
    },
    Mutant {
        name: "store_scans_less_than_there_is",
        file: "crates/store/src/database.rs",
        original: "if !is_unsure && (!is_short || copied < wanted) {",
        replacement: "if !is_unsure && (!is_short || copied <= wanted) {",
        why: "A page ends early where keys have expired.",
        checker: expiry("what_has_had_its_time"),
        hangs: false,
    },
    Mutant {
        name: "store_appends_for_ever",
        file: "crates/store/src/values.rs",
        original: "            Update::Put(appended.expiring(expiry))",
        replacement: "            Update::Put(appended.expiring(expiry.filter(|_| false)))",
        why: "APPEND lets a key live for ever.",
        checker: expiry("what_has_had_its_time"),
        hangs: false,
    },
    Mutant {
        name: "store_snapshots_without_times",
        file: "crates/store/src/disk/write.rs",
        original: "let (version, expiry) = (value.version(), value.expiry());",
        replacement: "let (version, expiry) = (value.version(), value.expiry().filter(|_| false));",
        why: "After a restart from a snapshot no key expires.",
        checker: expiry("a_time_that_was_prolonged"),
        hangs: false,
    },
    Mutant {
        name: "store_logs_no_time",
        file: "crates/store/src/effects/record.rs",
        original: "write_number(expiry.map_or(0, Expiry::millis), out);\n                out.extend_from_slice(key.as_bytes());",
        replacement: "write_number(expiry.map_or(0, |_| 0), out);\n                out.extend_from_slice(key.as_bytes());",
        why: "What EXPIRE has done is undone by a restart.",
        checker: expiry("a_time_that_was_prolonged"),
        hangs: false,
    },
    Mutant {
        name: "store_evicts_keys_that_persist",
        file: "crates/store/src/eviction/mod.rs",
        original: "let goes = |value: &&Value| !policy.is_volatile() || value.expiry().is_some();",
        replacement: "let goes = |_: &&Value| true;",
        why: "A volatile policy takes a key that has been told to stay since it was found.",
        checker: expiry("volatile_policies"),
        hangs: false,
    },
];
