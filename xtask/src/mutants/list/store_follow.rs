//! Bugs to plant in the following of ranges.

use super::store::store;
use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn follow(filter: &'static str) -> Checker {
    store(Target::Test("follow"), filter)
}

/// A test over a socket.
const fn previous(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_watchrange_prev"),
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "previous_of_a_key_that_expires_otherwise_is_lost",
        file: "crates/store/src/effects/mod.rs",
        original: "let before = self.before(Some(before));\n        self.note(database, before, || What::Expire",
        replacement: "let before = self.before(Some(before).filter(|_| expiry.is_some()));\n        self.note(database, before, || What::Expire",
        why: "A key that persists is shown as if it had not been there.",
        checker: previous("each_change_comes"),
        hangs: false,
    },
    Mutant {
        name: "previous_of_a_step_is_what_was_before_the_step",
        file: "crates/store/src/effects/before.rs",
        original: ".filter(|(earlier, _)| earlier == key)",
        replacement: ".filter(|(earlier, _)| earlier != earlier && earlier == key)",
        why: "Of two values that one step gives a key, the second one is shown without the first one.",
        checker: previous("each_change_comes"),
        hangs: false,
    },
    Mutant {
        name: "previous_of_a_range_is_lost",
        file: "crates/store/src/effects/before.rs",
        original: "        let what = What::Delete(key.clone());\n        let before = effects.before(Some(value));\n",
        replacement: "        let what = What::Delete(key.clone());\n        let before = effects.before(Some(value).filter(|value| value.expiry().is_some()));\n",
        why: "The keys of a removed range are shown as if they had not been there.",
        checker: follow("a_copy_that_is_fed"),
        hangs: false,
    },
    Mutant {
        name: "previous_is_made_up_where_the_log_has_none",
        file: "crates/server/src/feeds/watcher.rs",
        original: "    is_change && event.previous == Previous::Unknown\n",
        replacement: "    !is_change && event.previous == Previous::Unknown\n",
        why: "What was logged without what was before is shown as if the key had not been there.",
        checker: previous("a_watch_is_shown"),
        hangs: false,
    },
    Mutant {
        name: "follow_forgets_the_task_that_waits",
        file: "crates/store/src/follow/stream.rs",
        original: "        self.until = Some(until);\n",
        replacement: "        self.until = None;\n        drop(until);\n",
        why: "A stream is never polled again.",
        checker: follow("streams_are_woken"),
        hangs: true,
    },
    Mutant {
        name: "follow_copies_rows_of_no_sequence",
        file: "crates/store/src/follow/follower.rs",
        original: "            part.ends = store.last_effect();\n            step.range(",
        replacement: "            step.range(",
        why: "The rows have seen changes that come again as events: a copy goes back in time.",
        checker: follow("a_copy_that_is_fed"),
        hangs: false,
    },
    Mutant {
        name: "follow_shows_rows_before_what_came_before_them",
        file: "crates/store/src/follow/follower.rs",
        original: "        if self.next_sequence() <= ends {\n",
        replacement: "        if self.next_sequence() <= ends && part.rows.is_empty() {\n",
        why: "Rows of one sequence stand beside others of an earlier one.",
        checker: follow("a_copy_that_is_fed"),
        hangs: false,
    },
    Mutant {
        name: "follow_shows_events_of_rows_that_were_not_shown",
        file: "crates/store/src/follow/follower.rs",
        original: "            let of = (self.database, &part.before);",
        replacement: "            let of = (self.database, &self.span);",
        why: "A key that was set during the snapshot comes as an event and again as a row.",
        checker: follow("a_copy_that_is_fed"),
        hangs: false,
    },
    Mutant {
        name: "follow_shows_rows_that_can_be_lost",
        file: "crates/store/src/follow/follower.rs",
        original: "log.durable() < ends) {",
        replacement: "log.durable() < ends && ends < log.durable()) {",
        why: "After a crash the copy has what the store has lost.",
        checker: follow("nothing_is_shown_before"),
        hangs: false,
    },
    Mutant {
        name: "follow_skips_the_rest_of_a_batch",
        file: "crates/store/src/follow/events.rs",
        original: "                    self.entry = Some(entry.clone());\n                    break;",
        replacement: "                    self.next = entry.last().plus(1);\n                    break;",
        why: "Changes behind the last one that a part of the snapshot has seen are lost.",
        checker: follow("a_copy_that_is_fed"),
        hangs: false,
    },
    Mutant {
        name: "follow_cuts_removed_ranges_at_the_wrong_end",
        file: "crates/store/src/follow/event.rs",
        original: "(Some(one), Some(other)) => Some(one.min(other)),",
        replacement: "(Some(one), Some(other)) => Some(one.max(other)),",
        why: "A watcher of a part is shown the removal of keys beyond it.",
        checker: store(Target::Lib, "a_removed_range_is_cut"),
        hangs: false,
    },
    Mutant {
        name: "follow_shows_values_of_expired_keys",
        file: "crates/store/src/follow/events.rs",
        original: "&& Expiry::is_over(expiry)\n",
        replacement: "&& Expiry::is_over(expiry)\n        && key.is_empty()\n",
        why: "A watcher that is late sees values whose time has come.",
        checker: follow("an_expired_key"),
        hangs: false,
    },
    Mutant {
        name: "follow_begins_before_what_is_kept",
        file: "crates/store/src/follow/follower.rs",
        original: "if from < oldest {",
        replacement: "if from < oldest && oldest.get() == 0 {",
        why: "A client that resumes too late learns so only from a watch that has begun.",
        checker: follow("what_is_not_kept"),
        hangs: false,
    },
];
