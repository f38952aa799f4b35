//! Bugs to plant in what clients of a group rely on: ids, the search for the leader, writes at
//! followers, users.

use super::server_watch::over_socket;
use super::store::store;
use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// Answers and their steps in a log.
const STEPS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-store",
    target: Target::Test("answers"),
    filter: "an_answer_is_in_the_log_with_its_step",
};

/// Commands with ids that come twice, on one server.
const TWICE: Checker = over_socket("e2e_once", "a_command_that_comes_again");

/// Copies of a command that come at once.
const AT_ONCE: Checker = store(Target::Lib, "a_copy_of_a_command_that_runs");

/// Commands of several users with one id.
const USERS: Checker = over_socket("e2e_once", "users_have_their_own_ids");

/// Commands that come again after kills and snapshots.
const RESTARTS: Checker = over_socket("e2e_once", "answers_are_there_after");

/// Commands that come again at the next leader.
const NEXT: Checker = over_socket("e2e_group", "a_retry_at_the_next_leader");

/// What each node says of the others, and of a new leader.
const SENTINEL: Checker = over_socket("e2e_group", "every_node_names_the_leader");

/// Writes at a follower.
const FORWARDED: Checker = over_socket("e2e_group", "a_follower_sends_writes_on");

/// Writes of several users at a follower.
const FORWARDED_USERS: Checker = over_socket("e2e_group", "users_write_at_a_follower");

/// A write at a follower whose leader is stopped.
const LOST_ANSWER: Checker = over_socket("e2e_group", "a_write_whose_answer_is_lost");

/// Users and settings on all nodes.
const COMMON: Checker = over_socket("e2e_group", "users_and_settings_are_the_same");

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "once_applies_a_retry_twice",
        file: "crates/store/src/answers.rs",
        original: "        if let Some((_, answer)) = inner.answers.get(id) {\n            return Asked",
        replacement: "        if let Some((_, answer)) = inner.answers.get(id).filter(|_| false) {\n            return Asked",
        why: "A command that comes again is carried out again.",
        checker: TWICE,
        hangs: false,
    },
    Mutant {
        name: "once_runs_copies_at_once",
        file: "crates/store/src/answers.rs",
        original: "        if !inner.running.insert(id.into()) {",
        replacement: "        inner.running.insert(id.into());\n        if id.is_empty() {",
        why: "Two copies of a command that come at once are both carried out.",
        checker: AT_ONCE,
        hangs: false,
    },
    Mutant {
        name: "once_shares_ids_of_users",
        file: "crates/server/src/commands/once.rs",
        original: "server.store.ask(&[&user[..], b\"\\0\", id].concat())",
        replacement: "server.store.ask(&[&user[..0], b\"\\0\", id].concat())",
        why: "A user gets what another one was answered.",
        checker: USERS,
        hangs: false,
    },
    Mutant {
        name: "once_snapshot_has_no_answers",
        file: "crates/store/src/disk/write.rs",
        original: "        let kept = store.answers.all().into_iter().chain(store.notes.all());",
        replacement: "        let kept = store.notes.all();",
        why: "Behind a snapshot, a restart has forgotten what was carried out.",
        checker: RESTARTS,
        hangs: false,
    },
    Mutant {
        name: "once_answers_apart_from_the_step",
        file: "crates/store/src/effects/mod.rs",
        original: "            gathered.expected = changes.max(1) + gathered.own;",
        replacement: "            gathered.expected = changes.max(1);",
        why: "A crash may leave what a command has done, and not that it was done.",
        checker: STEPS,
        hangs: false,
    },
    Mutant {
        name: "once_forgets_ids_at_a_failover",
        file: "crates/store/src/disk/replay.rs",
        original: "        Record::Answer(id, answer) => store.answers.enter(id, Version::wrapping(sequence), answer),",
        replacement: "        Record::Answer(..) => (),",
        why: "The next leader carries a command out again.",
        checker: NEXT,
        hangs: false,
    },
    Mutant {
        name: "sentinel_never_tells_of_a_new_leader",
        file: "crates/server/src/group/nodes.rs",
        original: "        if let Some(old) = last.replace(leader.clone()) {",
        replacement: "        if let Some(old) = last.replace(leader.clone()).filter(|_| false) {",
        why: "Clients that listen to +switch-master never hear of another leader.",
        checker: SENTINEL,
        hangs: false,
    },
    Mutant {
        name: "sentinel_hears_no_nodes",
        file: "crates/server/src/group/engine.rs",
        original: "            group.nodes.heard(node);",
        replacement: "            let _ = (group, node);",
        why: "Clients find no replicas, and no other node to ask.",
        checker: SENTINEL,
        hangs: false,
    },
    Mutant {
        name: "forward_acknowledges_what_nobody_has_answered",
        file: "crates/server/src/connection/forward.rs",
        original: "            Err(Unanswered::Lost(text)) => text,",
        replacement: "            Err(Unanswered::Lost(_)) => {\n                self.output.ok();\n                self.output.finish();\n                return self.send(false).await;\n            }",
        why: "A write counts as done whose leader was never heard again.",
        checker: LOST_ANSWER,
        hangs: false,
    },
    Mutant {
        name: "forward_writes_into_another_database",
        file: "crates/server/src/group/forward.rs",
        original: "        if link.database != write.database {",
        replacement: "        if link.database > write.database {",
        why: "A write lands where the last client of the connection has written.",
        checker: FORWARDED,
        hangs: false,
    },
    Mutant {
        name: "forward_does_not_wait_until_it_shows",
        file: "crates/server/src/group/forward.rs",
        original: "                let _ = timeout(SHOWN, log.until(last)).await;",
        replacement: "                let _ = (SHOWN, log, last);",
        why: "A client does not see at its node what it has just written there.",
        checker: FORWARDED,
        hangs: false,
    },
    Mutant {
        name: "forward_is_for_nobody",
        file: "crates/server/src/group/forward.rs",
        original: "        if link.user != write.user || link.user.is_empty() {",
        replacement: "        if write.user.is_empty() {",
        why: "The ids of all users of a follower are one user's.",
        checker: FORWARDED_USERS,
        hangs: false,
    },
    Mutant {
        name: "common_users_stay_on_the_leader",
        file: "crates/server/src/group/engine.rs",
        original: "        common::take(&self.0);",
        replacement: "",
        why: "A follower does not know the users that the leader has made.",
        checker: COMMON,
        hangs: false,
    },
    Mutant {
        name: "common_removed_users_come_back",
        file: "crates/server/src/group/common.rs",
        original: "            None => REMOVED.to_vec(),",
        replacement: "            None => return Ok(true),",
        why: "A user who was removed may still do everything on the other nodes.",
        checker: COMMON,
        hangs: false,
    },
];
