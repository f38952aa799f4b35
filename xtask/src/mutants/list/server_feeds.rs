//! Bugs to plant in what watchers of ranges are given.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn unit(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-server",
        target: Target::Lib,
        filter,
    }
}

/// A test over a socket.
const fn watching(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_watchrange"),
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "feeds_lose_the_batch_at_which_a_watcher_falls_behind",
        file: "crates/server/src/feeds/tail.rs",
        original: "fall_behind(feeds, &member.watcher, began.max(member.from));\n                false",
        replacement: "let last = sequences.last().map_or(began, |last| last.plus(1));\n                fall_behind(feeds, &member.watcher, last);\n                false",
        why: "A slow watcher misses what did not fit.",
        checker: watching("a_slow_watcher"),
        hangs: false,
    },
    Mutant {
        name: "feeds_give_to_watchers_that_have_not_come_so_far",
        file: "crates/server/src/feeds/tail.rs",
        original: "        if next < tail.next {\n",
        replacement: "        if next < tail.next && tail.next == Sequence::NONE {\n",
        why: "What lies between the end of the reading and the tail is lost.",
        checker: unit("no_change_is_missed_on_the_way"),
        hangs: false,
    },
    Mutant {
        name: "feeds_start_the_tail_behind_its_first_watcher",
        file: "crates/server/src/feeds/tail.rs",
        original: "        self.next = next.min(durable.plus(1));",
        replacement: "        self.next = next.max(durable.plus(1));",
        why: "A watcher that joins before the end of the log waits for ever, or misses a part.",
        checker: unit("no_change_is_missed_on_the_way"),
        hangs: false,
    },
    Mutant {
        name: "feeds_give_members_what_they_have_seen",
        file: "crates/server/src/feeds/tail.rs",
        original: "sequences.partition_point(|sequence| *sequence < member.from);",
        replacement: "sequences.partition_point(|sequence| *sequence < began);",
        why: "A watcher that joins ahead of the tail sees changes twice.",
        checker: unit("no_change_is_missed_on_the_way"),
        hangs: false,
    },
    Mutant {
        name: "feeds_keep_everything_for_a_watcher",
        file: "crates/server/src/outbox.rs",
        original: "        if waiting.bytes >= most {\n",
        replacement: "        if waiting.bytes >= most && most == 0 {\n",
        why: "A watcher that does not read fills the memory.",
        checker: watching("a_slow_watcher"),
        hangs: false,
    },
    Mutant {
        name: "feeds_go_on_for_users_who_may_no_longer",
        file: "crates/server/src/commands/acl.rs",
        original: "server.clients.end(&client, Ending::NoRange);",
        replacement: "let _ = Ending::NoRange;",
        why: "A user goes on to see keys that were taken from him.",
        checker: watching("a_user_watches"),
        hangs: false,
    },
    Mutant {
        name: "feeds_keep_the_places_of_ended_watches",
        file: "crates/server/src/feeds/watcher.rs",
        original: "            self.feeds.leave(watcher);\n            self.feeds.give_place_back(&watcher.name);",
        replacement: "            self.feeds.leave(watcher);",
        why: "After some time nobody can watch anything.",
        checker: watching("watches_are_limited"),
        hangs: false,
    },
    Mutant {
        name: "feeds_index_forgets_long_ranges",
        file: "crates/server/src/feeds/index.rs",
        original: "            if reaches(ends(last), ends(other)) {",
        replacement: "            if reaches(ends(other), ends(last)) {",
        why: "A range that begins early and ends late is not found.",
        checker: unit("an_event_finds_the_ranges"),
        hangs: false,
    },
    Mutant {
        name: "feeds_send_pushes_to_clients_of_version_two",
        file: "crates/server/src/outbox.rs",
        original: "            out[begin + start] = sign;\n",
        replacement: "            out[begin + start] = [b'>', sign][usize::from(*start == 0)];\n",
        why: "A client of RESP2 cannot read the second message.",
        checker: unit("what_is_offered"),
        hangs: false,
    },
];
