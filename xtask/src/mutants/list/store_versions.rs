//! Bugs to plant in the versions of values.

use super::store::store;
use super::{Checker, Mutant, Target};

/// Random operations, with and without a log, and what the log has of them.
const CHANGES: Checker = store(Target::Test("versions"), "a_version_changes_exactly");
const RECORDS: Checker = store(Target::Test("versions"), "the_number_of_its_record");

/// The log on top of a snapshot that has seen all of it.
const ON_TOP: Checker = store(Target::Lib, "on_top_of_a_later_snapshot");

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "store_puts_values_as_they_come",
        file: "crates/store/src/effects/mod.rs",
        original: "        value.stamp(version);\n    }\n\n    /// Notes that a key has the value that is in the cache",
        replacement: "        let _ = version;\n    }\n\n    /// Notes that a key has the value that is in the cache",
        why: "What SET has put cannot be told from what a later SET puts.",
        checker: RECORDS,
        hangs: false,
    },
    Mutant {
        name: "store_inserts_without_a_version_if_there_is_no_log",
        file: "crates/store/src/database.rs",
        original: "            effects.stamp_unlogged(&mut value);\n",
        replacement: "            let _ = &mut value;\n",
        why: "Without a log, nobody sees that a key was changed since he read it.",
        checker: CHANGES,
        hangs: false,
    },
    Mutant {
        name: "store_lets_a_key_expire_under_its_version",
        file: "crates/store/src/database.rs",
        original: "                    value.stamp(version);\n                    Update::Put(value)\n",
        replacement: "                    let _ = version;\n                    value.stamp(value.version());\n                    Update::Put(value)\n",
        why: "A new time of a key is no change of it.",
        checker: CHANGES,
        hangs: false,
    },
    Mutant {
        name: "store_appends_in_the_cache_under_the_old_version",
        file: "crates/store/src/values.rs",
        original: "                        now.stamp(version);\n",
        replacement: "                        now.stamp(current.map_or(version, Value::version));\n",
        why: "A value in the cache grows, and its version says that it does not.",
        checker: CHANGES,
        hangs: false,
    },
    Mutant {
        name: "store_gives_the_keys_of_a_step_each_others_versions",
        file: "crates/store/src/database.rs",
        original: "                value.stamp(versions.take());\n                step.insert(key, value);\n            }\n        });\n        effects.submit();\n        replaced\n",
        replacement: "                versions.take();\n                value.stamp(versions.take());\n                step.insert(key, value);\n            }\n        });\n        effects.submit();\n        replaced\n",
        why: "A key of an MSET has a version that the log has for another key.",
        checker: RECORDS,
        hangs: false,
    },
    Mutant {
        name: "store_makes_all_changes_of_a_key_in_a_step",
        file: "crates/store/src/database.rs",
        original: "        changes.dedup_by(|(earlier, _), (last, _)| earlier == last);\n",
        replacement: "        changes.dedup_by(|_, _| false);\n",
        why: "Of two changes of a key in a step the earlier one stays, and what is counted of them is not what is noted.",
        checker: RECORDS,
        hangs: false,
    },
    Mutant {
        name: "store_numbers_all_of_a_held_step_alike",
        file: "crates/store/src/effects/mod.rs",
        original: "            let number = *first + changes.len() as u64;\n",
        replacement: "            let number = *first;\n",
        why: "A key that a step changes twice has the version of the first change.",
        checker: RECORDS,
        hangs: false,
    },
    Mutant {
        name: "store_applies_the_log_without_versions",
        file: "crates/store/src/disk/replay.rs",
        original: "            let version = Version::wrapping(sequence);\n",
        replacement: "            let version = Version::wrapping(sequence & 0);\n",
        why: "After a restart every key has the same version.",
        checker: RECORDS,
        hangs: false,
    },
    Mutant {
        name: "store_applies_no_time_that_is_there_already",
        file: "crates/store/src/database.rs",
        original: "                Update::Put(expiry) if expiry == value.expiry() && !effects.are_again() => {\n",
        replacement: "                Update::Put(expiry) if expiry == value.expiry() => {\n",
        why: "If the snapshot has seen the new time, and the log an earlier change, the key gets the version of that one.",
        checker: ON_TOP,
        hangs: false,
    },
    Mutant {
        name: "store_snapshots_without_versions",
        file: "crates/store/src/disk/write.rs",
        original: "let (version, expiry) = (value.version(), value.expiry());",
        replacement: "let (version, expiry) = (crate::Version::NONE, value.expiry());",
        why: "After a restart from a snapshot no key has a version.",
        checker: RECORDS,
        hangs: false,
    },
    Mutant {
        name: "store_threads_share_a_block_of_versions",
        file: "crates/store/src/version.rs",
        original: "    TAKEN.fetch_add(BLOCK, Relaxed) + 1\n",
        replacement: "    let taken = TAKEN.load(Relaxed);\n    TAKEN.store(taken + BLOCK, Relaxed);\n    taken + 1 - taken % (2 * BLOCK)\n",
        why: "Two changes without a log have one version.",
        checker: store(Target::Lib, "no_two_changes_without_a_log"),
        hangs: false,
    },
];
