//! Bugs to plant in the server.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The tests of mailboxes over a socket.
const fn mailboxes(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula",
        target: Target::Test("e2e_mailboxes"),
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
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-server",
            target: Target::Lib,
            filter: "about_as_many_senders",
        },
        hangs: false,
    },
];
