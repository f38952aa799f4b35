//! Bugs to plant in the server.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The tests of mailboxes over a socket.
const fn mailboxes(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_mailboxes"),
        filter,
    }
}

/// Histories of several clients over sockets.
const fn histories(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_histories"),
        filter,
    }
}

/// The unit tests.
const fn unit(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-server",
        target: Target::Lib,
        filter,
    }
}

const fn store(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-store",
        target: Target::Lib,
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "server_gives_messages_to_clients_that_left",
        file: "crates/server/src/connection.rs",
        original: "        if had_to_wait && !lease.taken().is_empty() {",
        replacement: "        if !had_to_wait && !lease.taken().is_empty() {",
        why: "A message that is sent after the receiver's client has left is written to its dead socket, and lost.",
        checker: mailboxes("what_is_sent_after"),
        hangs: false,
    },
    Mutant {
        name: "server_does_not_look_for_clients_that_sent_far_ahead",
        file: "crates/server/src/connection.rs",
        original: "            while !client.has_ended_input().await {",
        replacement: "            while client.stream.peer_addr().is_ok() || !client.has_ended_input().await {",
        why: "A receiver that has sent more than is read ahead, and left, keeps the mailbox and its place among the clients.",
        checker: mailboxes("sent_much_ahead"),
        hangs: false,
    },
    Mutant {
        name: "server_keeps_senders_of_dropped_mailboxes",
        file: "crates/server/src/commands/mailbox.rs",
        original: ".retain(|_, outgoing| !outgoing.post.is_dropped());",
        replacement: ".retain(|_, outgoing| outgoing.post.len() < usize::MAX);",
        why: "A connection that answers to reply mailboxes grows by a kilobyte with each.",
        checker: unit("about_as_many_senders"),
        hangs: false,
    },
    Mutant {
        name: "server_takes_any_engine",
        file: "crates/store/src/engines.rs",
        original: "    if facts.scans == Scans::OneMoment {",
        replacement: "    if facts.scans == Scans::OneMoment || engine.len() > 1 {",
        why: "An engine is served whose scans are of several moments.",
        checker: store("is_refused_with_the_reason"),
        hangs: false,
    },
    Mutant {
        name: "server_reads_ranges_in_small_batches",
        file: "crates/store/src/keyspace.rs",
        original: "let wanted = self.left.min(BATCH);",
        replacement: "let wanted = self.left.min(BATCH / 4);",
        why: "A RANGE of some hundred keys shows one part of what a DELRANGE removed and not the other.",
        checker: store("walk_of_as_many_keys"),
        hangs: false,
    },
    Mutant {
        name: "server_first_batch_ends_where_the_promise_does",
        file: "crates/store/src/keyspace.rs",
        original: "const BATCH: usize = ONE_MOMENT + 1;",
        replacement: "const BATCH: usize = ONE_MOMENT;",
        why: "A range of as many keys as are of one moment goes on with a second moment.",
        checker: store("sees_nothing_later"),
        hangs: false,
    },
    Mutant {
        name: "server_reads_snapshots_in_batches",
        file: "crates/store/src/keyspace.rs",
        original: "    database.scan(range, direction, wanted, &mut entries);\n    if entries.len() > most {",
        replacement: "    while entries.len() < wanted {\n        let before = entries.len();\n        let last: Option<Key> = entries.last().map(|(key, _): &(Key, Value)| key.clone());\n        let rest = last.as_ref().map_or(range, |key| range.behind(key, direction));\n        database.scan(rest, direction, 10.min(wanted - before), &mut entries);\n        if entries.len() == before {\n            break;\n        }\n    }\n    if entries.len() > most {",
        why: "A RANGE with SNAPSHOT is of several moments when it is long.",
        checker: histories("longer_ranges"),
        hangs: false,
    },
];
