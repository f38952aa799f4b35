//! Bugs to plant between the state machine of a group, NATS, and the server.

use super::server_watch::over_socket;
use super::{Checker, Mutant};

const fn group(filter: &'static str) -> Checker {
    over_socket("e2e_group", filter)
}

/// A follower, and reads and writes at both.
const FOLLOWER: Checker = group("followers_show_what_the_leader_writes");

/// A leader that is stopped for so long that another one leads, and a read that waits for it.
const STOPPED: Checker = group("a_leader_that_was_stopped_shows");

/// The same, and a write.
const STOPPED_WRITE: Checker = group("a_leader_that_was_stopped_confirms");

/// A log that has lost everything.
const LOST: Checker = group("nodes_refuse_a_log");

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "group_answers_before_it_is_confirmed",
        file: "crates/server/src/group/mod.rs",
        original: "            || (self.host.durable() >= store.last_effect() && self.may_answer())",
        replacement: "            || self.host.standing() == Standing::Leader",
        why: "A leader answers what the group does not have, and may never have.",
        checker: STOPPED_WRITE,
        hangs: false,
    },
    Mutant {
        name: "group_answers_without_a_lease",
        file: "crates/group/src/host/report.rs",
        original: "        boot_time().micros() < self.lease_until.load(SeqCst)",
        replacement: "        self.lease_until.load(SeqCst) > 0",
        why: "A leader that was stopped shows what another one has changed meanwhile.",
        checker: STOPPED,
        hangs: false,
    },
    Mutant {
        name: "group_appends_without_a_condition",
        file: "crates/group/src/jetstream/appends.rs",
        original: "            .expected_last_sequence(expected.get());",
        replacement: "            .expected_stream(self.stream.as_str());",
        why: "No fencing: NATS takes what a leader appends that another one has replaced.",
        checker: STOPPED_WRITE,
        hangs: false,
    },
    Mutant {
        name: "group_keeps_the_state_of_a_lost_term",
        file: "crates/server/src/group/engine.rs",
        original: "            self.0.stop.notify_one();",
        replacement: "",
        why: "A leader that has stepped down never gives up what is not confirmed.",
        checker: STOPPED,
        hangs: false,
    },
    Mutant {
        name: "group_follower_applies_nothing",
        file: "crates/group/src/host/mod.rs",
        original: "            state.apply(first, batch)?;\n",
        replacement: "",
        why: "A follower keeps batches in its own log, and does not show them.",
        checker: FOLLOWER,
        hangs: false,
    },
    Mutant {
        name: "group_follower_takes_writes",
        file: "crates/server/src/group/mod.rs",
        original: "            Standing::Follower => Err(self.read_only()),",
        replacement: "            Standing::Follower => Ok(()),",
        why: "A write on a follower is refused without the leader's address.",
        checker: FOLLOWER,
        hangs: false,
    },
    Mutant {
        name: "group_never_believes_a_lost_stream",
        file: "crates/group/src/jetstream/appends.rs",
        original: "const SURE: u32 = 6;",
        replacement: "const SURE: u32 = u32::MAX;",
        why: "A leader whose stream is gone waits for ever.",
        checker: LOST,
        hangs: false,
    },
];
