//! Bugs to plant in what several clients see at once: histories over sockets catch them.

use super::server_watch::over_socket;
use super::store::store;
use super::{Checker, Mutant, Target};

const fn histories(filter: &'static str) -> Checker {
    over_socket("e2e_histories_of_keys", filter)
}

/// Of plain commands and `TXN`.
const TXN: Checker = histories("histories_of_txn");

/// Of keys that expire.
const EXPIRY: Checker = histories("histories_of_keys_that_expire");

/// Of `WATCH`, `MULTI` and `EXEC`.
const EXEC: Checker = histories("histories_of_watched_keys");

/// Of all these, and what a watcher of ranges is shown.
const RANGES: Checker = histories("histories_of_watched_ranges");

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "txn_asks_before_it_holds",
        file: "crates/server/src/commands/txn.rs",
        original: "    let decide = |databases: Databases<'_>| {\n        let mut conditions = request.conditions.iter();\n        let hold = conditions.all(|condition| condition.holds(databases, number));\n",
        replacement: "    let databases = context.databases;\n    let mut conditions = request.conditions.iter();\n    let hold = conditions.all(|condition| condition.holds(databases, number));\n    let decide = |_: Databases<'_>| {\n",
        why: "Two clients that each take a place if it is free both get it.",
        checker: TXN,
        hangs: false,
    },
    Mutant {
        name: "txn_holds_the_keys_of_one_branch",
        file: "crates/server/src/commands/txn.rs",
        original: "    let changes = [then, otherwise].map(|batch| batch.reach(number, &mut holds));\n",
        replacement: "    let changes = [then.reach(number, &mut holds), otherwise.reach(number, &mut Vec::new())];\n",
        why: "What ELSE names is not held: the branch is done in part, or not at all.",
        checker: TXN,
        hangs: false,
    },
    Mutant {
        name: "expiry_lasts_a_millisecond_more",
        file: "crates/store/src/database.rs",
        original: "        expiry <= self.index.now() && ",
        replacement: "        expiry < self.index.now() && ",
        why: "A key is seen when its time has come.",
        checker: EXPIRY,
        hangs: false,
    },
    Mutant {
        name: "store_removes_keys_before_their_time",
        file: "crates/store/src/store.rs",
        original: "database.deadlines().due(Expiry::now(), most);",
        replacement: "database.deadlines().due(Expiry::from_millis(Expiry::now().millis() + 3).unwrap_or(Expiry::LAST), most);",
        why: "Keys go up to three milliseconds early.",
        checker: EXPIRY,
        hangs: false,
    },
    Mutant {
        name: "persist_leaves_the_time",
        file: "crates/store/src/database.rs",
        original: "                    let mut value = value.clone().expiring(expiry);\n",
        replacement: "                    let mut value = value.clone().expiring(expiry.or(value.expiry()));\n",
        why: "PERSIST answers that the key stays, and it goes all the same.",
        checker: EXPIRY,
        hangs: false,
    },
    Mutant {
        name: "exec_looks_at_watched_keys_before_it_holds_them",
        file: "crates/server/src/commands/transaction.rs",
        original: "    let decide =\n        |databases: Databases<'_>| watched.are_unchanged(databases).then_some(&waiting.batch);\n",
        replacement: "    let is_unchanged = watched.are_unchanged(context.databases);\n    let decide = |_: Databases<'_>| is_unchanged.then_some(&waiting.batch);\n",
        why: "EXEC runs although a watched key has just been changed.",
        checker: EXEC,
        hangs: false,
    },
    Mutant {
        name: "watchers_are_not_shown_what_expires",
        file: "crates/store/src/database.rs",
        original: "            effects.delete(self.kept.number, &noted, current);\n            if let Some(current) = current {",
        replacement: "            if let Some(current) = current {",
        why: "A copy that is fed by a watch keeps what has expired for ever.",
        checker: RANGES,
        hangs: false,
    },
    Mutant {
        name: "watchers_are_not_shown_what_persists",
        file: "crates/store/src/follow/event.rs",
        original: "self.key().is_none_or(|key| span.contains(key));",
        replacement: "self.key().is_none_or(|key| span.contains(key)) && !matches!(self.what, Happened::Expire { expiry: None, .. });",
        why: "A watcher goes on to believe that a key expires.",
        checker: RANGES,
        hangs: false,
    },
    Mutant {
        name: "steps_are_of_several_moments",
        file: "crates/store/src/access.rs",
        original: "        *self.clock.get_or_init(Expiry::now)\n",
        replacement: "        Expiry::now().max(*self.clock.get_or_init(Expiry::now))\n",
        why: "A key goes in the middle of a step: for TXN it is there, and its range is empty.",
        checker: store(Target::Test("holding"), "a_step_is_one_moment"),
        hangs: false,
    },
];
