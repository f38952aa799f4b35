//! Bugs to plant in what is reported of keys: the store's notices, and the messages on channels.

use super::store::store;
use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const KEYS: Checker = store(Target::Test("notices"), "one_knows_all_keys");

/// A test over sockets, most of them beside a real Redis.
const fn reported(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_notifications"),
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "notices_report_what_swapdb_moves",
        file: "crates/server/src/notices.rs",
        original: "    if command == \"swapdb\" {\n",
        replacement: "    if command.is_empty() {\n",
        why: "SWAPDB is reported as if each key were written.",
        checker: reported("what_commands_change"),
        hangs: false,
    },
    Mutant {
        name: "store_forgets_notices_of_plain_inserts",
        file: "crates/store/src/database.rs",
        original: "        if !effects.are_noted() && self.kept.deadlines.are_unused() && value.expiry().is_none() {",
        replacement: "        if !effects.are_logged() && self.kept.deadlines.are_unused() && value.expiry().is_none() {",
        why: "Without a log the fast path of SET forgets the listener.",
        checker: reported("what_commands_change"),
        hangs: false,
    },
    Mutant {
        name: "store_reports_a_step_before_it_has_ended",
        file: "crates/store/src/databases.rs",
        original: "            written = write.take().map(|write| write(effects));\n",
        replacement: "            written = write.take().map(|write| write(effects));\n            effects.report();\n",
        why: "A transaction is reported while nobody can see it.",
        checker: KEYS,
        hangs: false,
    },
    Mutant {
        name: "store_calls_an_expired_key_known",
        file: "crates/store/src/reports.rs",
        original: "            is_new: is_over || before.is_none(),\n",
        replacement: "            is_new: before.is_none(),\n",
        why: "A key that is written when its time is over is not reported as new.",
        checker: KEYS,
        hangs: false,
    },
    Mutant {
        name: "store_reports_evictions_as_removals",
        file: "crates/store/src/eviction/mod.rs",
        original: "        let databases = databases.for_eviction();\n",
        replacement: "",
        why: "Nobody can distinguish what the server removed for want of room from what a client removed.",
        checker: store(Target::Test("notices"), "for_want_of_room"),
        hangs: false,
    },
    Mutant {
        name: "store_reports_a_carried_value_twice",
        file: "crates/store/src/moving.rs",
        original: "                source.report_removed(effects, from.key, &value);\n",
        replacement: "                source.report_removed(effects, from.key, &value);\n                target.report_put(effects, to.key, before.as_ref(), value.expiry());\n",
        why: "A RENAME is reported as two.",
        checker: KEYS,
        hangs: false,
    },
    Mutant {
        name: "notices_of_a_transaction_forget_the_commands",
        file: "crates/server/src/commands/atomic.rs",
        original: "        databases: databases.caused_by(command.full_name),\n",
        replacement: "        databases,\n",
        why: "An INCR in a transaction is reported as a SET.",
        checker: reported("what_commands_change"),
        hangs: false,
    },
    Mutant {
        name: "notices_report_kept_times",
        file: "crates/server/src/notices.rs",
        original: "expires && matches!(command, \"set\" | \"setex\" | \"psetex\")",
        replacement: "expires",
        why: "An INCR of a key that expires is reported as an EXPIRE, too.",
        checker: reported("what_commands_change"),
        hangs: false,
    },
    Mutant {
        name: "notices_take_hits_for_misses",
        file: "crates/server/src/commands/mod.rs",
        original: "        if !is_there && self.server.live.notices().has_misses() {\n",
        replacement: "        if is_there && self.server.live.notices().has_misses() {\n",
        why: "The keys that are there are reported as missing.",
        checker: reported("lookups_of_keys"),
        hangs: true,
    },
];
