//! Bugs to plant in what is shown of the past.

use super::store::store;
use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn past(filter: &'static str) -> Checker {
    store(Target::Test("past"), filter)
}

/// A test over a socket.
const fn served(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_past"),
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "past_uses_a_snapshot_that_has_seen_more",
        file: "crates/store/src/past/base.rs",
        original: "Point::Sequence(last) => ends <= last,",
        replacement: "Point::Sequence(last) => begins <= last,",
        why: "A change is shown that came later, while the snapshot was made.",
        checker: past("the_past_is_of_one_record"),
        hangs: false,
    },
    Mutant {
        name: "past_stops_a_record_early",
        file: "crates/store/src/past/reader.rs",
        original: "            if sequence > self.last {",
        replacement: "            if sequence >= self.last {",
        why: "The change that was asked for is missing.",
        checker: past("each_state_of_the_past"),
        hangs: false,
    },
    Mutant {
        name: "past_reads_one_batch_too_many",
        file: "crates/store/src/past/reader.rs",
        original: "                if written > time {",
        replacement: "                if written > time && self.seen < self.last.before() {",
        why: "A state is later than the time that was asked for.",
        checker: past("a_key_is_there_until"),
        hangs: false,
    },
    Mutant {
        name: "past_expires_keys_as_of_now",
        file: "crates/store/src/past/rows.rs",
        original: "            (Some(expiry), Some(at)) => expiry > at,",
        replacement: "            (Some(expiry), Some(_)) => !expiry.is_over(),",
        why: "A key that was there is not shown, because it has expired since.",
        checker: past("a_key_is_there_until"),
        hangs: false,
    },
    Mutant {
        name: "past_shows_what_had_expired",
        file: "crates/store/src/past/rows.rs",
        original: "            (Some(expiry), Some(at)) => expiry > at,\n            _ => true,",
        replacement: "            (Some(expiry), Some(at)) => expiry > at || expiry <= at,\n            _ => true,",
        why: "A key is shown that nobody could read then.",
        checker: past("a_key_is_there_until"),
        hangs: false,
    },
    Mutant {
        name: "past_skips_the_block_in_which_a_range_begins",
        file: "crates/store/src/disk/range.rs",
        original: "                self.before = Some(at);\n",
        replacement: "",
        why: "The first keys of a range are missing.",
        checker: past("the_past_is_of_one_record"),
        hangs: false,
    },
    Mutant {
        name: "past_counts_keys_that_are_hidden",
        file: "crates/store/src/past/rows.rs",
        original: "self.span.contains(key) && self.filter.as_ref().is_none_or(|filter| filter(key))",
        replacement: "self.span.contains(key)",
        why: "A user sees keys that he may not, or at least that they are there.",
        checker: served("what_is_shown_of_the_past"),
        hangs: false,
    },
    Mutant {
        name: "past_is_read_without_a_pause",
        file: "crates/server/src/commands/past.rs",
        original: "        while begun.elapsed() < SLICE {",
        replacement: "        while begun.elapsed() < 10_000 * SLICE {",
        why: "Others wait for the thread apart as long as one reads the past.",
        checker: served("nobody_waits_for_the_past"),
        hangs: false,
    },
    Mutant {
        name: "past_holds_memory_after_the_reply",
        file: "crates/server/src/commands/listing.rs",
        original: "        self.all.0.fetch_sub(self.bytes, Relaxed);\n        self.client.set_gathers(0);",
        replacement: "        self.client.set_gathers(0);",
        why: "After some ranges all long replies are refused.",
        checker: served("a_range_is_shown_as_it_was"),
        hangs: false,
    },
];
