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

/// Clients that move from thread to thread.
const GATHER: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-cli",
    target: Target::Test("e2e_attacks"),
    filter: "clients_spread_and_gather",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "server_moves_clients_without_their_input",
        file: "crates/server/src/connection.rs",
        original: "        connection.client.set_stream(Arc::clone(&stream));",
        replacement: "        connection.client.set_stream(Arc::clone(&stream));\n        connection.input.clear();\n        connection.consumed = 0;",
        why: "The part of a command that has arrived before a move is lost.",
        checker: GATHER,
        hangs: false,
    },
    Mutant {
        name: "server_moves_clients_without_their_session",
        file: "crates/server/src/connection.rs",
        original: "        connection.client.set_stream(Arc::clone(&stream));",
        replacement: "        connection.client.set_stream(Arc::clone(&stream));\n        connection.session = Session::default();",
        why: "A client loses its database and its tables by a move.",
        checker: GATHER,
        hangs: false,
    },
    Mutant {
        name: "server_does_not_gather_clients",
        file: "crates/server/src/gather.rs",
        original: "                _ => pulse.let_leave(usize::MAX, None),",
        replacement: "                _ => pulse.let_leave(0, None),",
        why: "The clients of a closed thread stay on it.",
        checker: GATHER,
        hangs: true,
    },
    Mutant {
        name: "server_spreads_no_clients",
        file: "crates/server/src/gather.rs",
        original: "                    pulse.let_leave(clients, Some(to));",
        replacement: "                    pulse.let_leave(0, Some(to));",
        why: "A thread is opened, but no client goes there.",
        checker: GATHER,
        hangs: true,
    },
    Mutant {
        name: "server_lets_clients_go_to_and_fro",
        file: "crates/server/src/gather.rs",
        original: "        (2 * time).min(LONGEST)",
        replacement: "        first",
        why: "A change that has to be taken back each time is tried again each time.",
        checker: unit("gather"),
        hangs: false,
    },
    Mutant {
        name: "server_counts_a_stuck_thread_as_open",
        file: "crates/server/src/gather.rs",
        original: "        let open = || turning().filter(|(_, one)| one.is_open);",
        replacement: "        let open = || threads.iter().enumerate().filter(|(_, one)| one.is_open);",
        why: "New clients wait for a thread that does not turn.",
        checker: unit("gather"),
        hangs: false,
    },
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
        original: "            while !has_ended_input(stream).await {",
        replacement: "            while stream.peer_addr().is_ok() || !has_ended_input(stream).await {",
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
