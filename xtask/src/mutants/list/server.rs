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

/// Attacks on a server.
const fn attacks(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_attacks"),
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
        name: "buffers_of_a_log_at_rest_stay",
        file: "crates/log/src/files/flusher.rs",
        original: "            self.shared.queue.free_if_empty(pending);\n",
        replacement: "            let _ = pending;\n",
        why: "The log keeps some megabytes though nothing is written.",
        checker: attacks("buffers_of_the_log"),
        hangs: false,
    },
    Mutant {
        name: "buffers_on_the_way_to_the_log_stay",
        file: "crates/store/src/store.rs",
        original: "            journal.tidy();\n",
        replacement: "            let _ = journal;\n",
        why: "The buffers of the journal keep their memory though nothing is written.",
        checker: attacks("buffers_of_the_log"),
        hangs: false,
    },
    Mutant {
        name: "server_moves_clients_without_their_input",
        file: "crates/server/src/connection.rs",
        original: "        connection.client.set_socket(Arc::clone(&socket));",
        replacement: "        connection.client.set_socket(Arc::clone(&socket));\n        connection.input.clear();\n        connection.consumed = 0;",
        why: "The part of a command that has arrived before a move is lost.",
        checker: GATHER,
        hangs: false,
    },
    Mutant {
        name: "server_moves_clients_without_their_session",
        file: "crates/server/src/connection.rs",
        original: "        connection.client.set_socket(Arc::clone(&socket));",
        replacement: "        connection.client.set_socket(Arc::clone(&socket));\n        connection.session = Session::new(&connection.server.users);",
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
        hangs: false,
    },
    Mutant {
        name: "server_spreads_no_clients",
        file: "crates/server/src/gather.rs",
        original: "                    pulse.let_leave(clients, Some(to));",
        replacement: "                    pulse.let_leave(0, Some(to));",
        why: "A thread is opened, but no client goes there.",
        checker: GATHER,
        hangs: false,
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
        name: "server_opens_threads_without_a_spare_processor",
        file: "crates/server/src/gather.rs",
        original: "        let may_open = self.spare >= ENOUGH || self.scarce >= LONGEST;",
        replacement: "        let may_open = true;",
        why: "Threads and clients on one machine wait for each other.",
        checker: unit("gather"),
        hangs: false,
    },
    Mutant {
        name: "server_replies_wait_for_slow_clients",
        file: "crates/server/src/connection/round.rs",
        original: " && SLOW.get() == 0",
        replacement: "",
        why: "A reply waits for the turns of clients that run what takes long.",
        checker: unit("connection::round"),
        hangs: false,
    },
    Mutant {
        name: "server_keeps_the_place_at_a_long_value",
        file: "crates/server/src/commands/copying.rs",
        original: "        self.patches.places().remove(&self.place);\n",
        replacement: "        let _ = &self.place;\n",
        why: "After the first, no command that writes into a long value ends.",
        checker: unit("commands::copying"),
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
        file: "crates/server/src/connection/receive.rs",
        original: "        if had_to_wait && !lease.taken().is_empty() {",
        replacement: "        if !had_to_wait && !lease.taken().is_empty() {",
        why: "A message that is sent after the receiver's client has left is written to its dead socket, and lost.",
        checker: mailboxes("what_is_sent_after"),
        hangs: false,
    },
    Mutant {
        name: "server_does_not_look_for_clients_that_sent_far_ahead",
        file: "crates/server/src/connection/receive.rs",
        original: "            while !has_ended_input(&stream.socket).await {",
        replacement: "            while stream.unsent() == 0 || !has_ended_input(&stream.socket).await {",
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
    Mutant {
        name: "server_says_no_to_patterns_that_explode",
        file: "crates/server/src/glob.rs",
        original: "                return Err(TooManySteps);",
        replacement: "                return Ok(Some(false));",
        why: "A pattern that takes too long matches nothing, and the client does not learn why.",
        checker: attacks("a_pattern_that_explodes"),
        hangs: false,
    },
    Mutant {
        name: "server_turns_do_not_end",
        file: "crates/server/src/turn.rs",
        original: "self.is_over = self.is_over || self.begun.elapsed() >= self.time;",
        replacement: "self.is_over = self.is_over || self.time.is_zero();",
        why: "A packet of slow commands holds its thread, whatever the time of a turn.",
        checker: attacks("packets_of_slow_commands"),
        hangs: false,
    },
    Mutant {
        name: "server_does_not_read_the_clock_for_slow_commands",
        file: "crates/server/src/commands/mod.rs",
        original: "        lent.turn.look();",
        replacement: "        lent.turn.spend(2);",
        why: "Sixteen commands that each take a turn run before the others of the thread come.",
        checker: unit("each_command_that_may_be_slow"),
        hangs: false,
    },
    Mutant {
        name: "server_bounds_each_list_instead_of_all",
        file: "crates/server/src/commands/listing.rs",
        original: "        if before.saturating_add(bytes) <= most {",
        replacement: "        if self.counted <= most {",
        why: "Clients that do not read hold as many long lists as there are clients.",
        checker: attacks("lists_that_nobody_reads"),
        hangs: false,
    },
    Mutant {
        name: "server_forgets_what_lists_have_freed",
        file: "crates/server/src/commands/listing.rs",
        original: "        self.all.0.fetch_sub(self.counted, Relaxed);",
        replacement: "        self.all.0.fetch_sub(0, Relaxed);",
        why: "After some long lists that were refused, every long list is.",
        checker: attacks("lists_that_nobody_reads"),
        hangs: false,
    },
    Mutant {
        name: "server_copies_long_values_into_replies",
        file: "crates/server/src/resp/reply.rs",
        original: "const SHARED_FROM: usize = REPLY_BATCH;",
        replacement: "const SHARED_FROM: usize = usize::MAX;",
        why: "Ten clients that do not read hold a long value ten times.",
        checker: attacks("a_long_value_that_nobody_reads"),
        hangs: false,
    },
    Mutant {
        name: "server_closes_clients_that_wait_for_messages",
        file: "crates/server/src/clients/client.rs",
        original: "        (self.is(State::Waiting) && self.on_thread() == 0)",
        replacement: "        (!self.is(State::Working) && self.on_thread() == 0)",
        why: "A client that waits for a message counts as silent, and is closed after --timeout.",
        checker: attacks("silent_clients_and_half_requests"),
        hangs: false,
    },
    Mutant {
        name: "server_reserves_no_place",
        file: "crates/server/src/server/accept.rs",
        original: "    let admission = shared.clients.admit(max_clients.saturating_add(reserved));",
        replacement: "    let admission = shared.clients.admit(max_clients.max(reserved));",
        why: "Silent clients that take all places lock an operator out.",
        checker: attacks("lock_out_an_operator"),
        hangs: false,
    },
    Mutant {
        name: "server_kills_the_client_that_asks",
        file: "crates/server/src/commands/client.rs",
        original: "            && !(self.skip_me && client.id == me)",
        replacement: "            && !(self.skip_me && client.id < me)",
        why: "CLIENT KILL with a filter closes the connection that it came on.",
        checker: attacks("closed_by_every_filter"),
        hangs: false,
    },
    Mutant {
        name: "server_closes_the_smallest_clients",
        file: "crates/server/src/clients/mod.rs",
        original: "largest.sort_unstable_by_key(|(held, client)| (Reverse(*held), client.id));",
        replacement: "largest.sort_unstable_by_key(|(held, client)| (*held, Reverse(client.id)));",
        why: "When all buffers are too large, clients are closed that hold little.",
        checker: attacks("unfinished_arguments_of_several"),
        hangs: false,
    },
    Mutant {
        name: "server_ends_a_pause_by_a_shorter_one",
        file: "crates/server/src/clients/pause.rs",
        original: "end: before.map_or(end, |before| before.end.max(end)),",
        replacement: "end: before.map_or(end, |before| before.end.min(end)),",
        why: "Another CLIENT PAUSE lets the commands go that a longer one holds.",
        checker: attacks("a_pause_holds_commands"),
        hangs: false,
    },
    Mutant {
        name: "server_holds_nothing_while_a_pause_lasts",
        file: "crates/server/src/clients/pause.rs",
        original: "is_held && Instant::now() < until.end",
        replacement: "is_held && Instant::now() > until.end",
        why: "A pause holds nothing while it lasts, and everything afterwards.",
        checker: attacks("a_pause_holds_commands"),
        hangs: false,
    },
    Mutant {
        name: "server_skips_every_reply",
        file: "crates/server/src/resp/reply.rs",
        original: "            Mute::Skip => Mute::Off,",
        replacement: "            Mute::Skip => Mute::Skip,",
        why: "After CLIENT REPLY SKIP no command of the connection is answered.",
        checker: attacks("replies_can_be_switched_off"),
        hangs: false,
    },
];
