//! Bugs of what operators watch and change.

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

const fn operate(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test("e2e_operate"),
        filter,
    }
}

/// A test over a socket.
const fn over_socket(test: &'static str, filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-cli",
        target: Target::Test(test),
        filter,
    }
}

/// Redis's own suite.
const SUITE: Checker = over_socket("e2e_redis_suite", "the_suite_of_redis");

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "server_keeps_the_buffers_of_clients_at_rest",
        file: "crates/server/src/memory.rs",
        original: "        shelf::look(&server.clients);\n",
        replacement: "",
        why: "Clients that have sent one command hold 16 KiB each for as long as they stay.",
        checker: SUITE,
        hangs: false,
    },
    Mutant {
        name: "server_keeps_a_buffer_as_large_as_it_was_once",
        file: "crates/server/src/connection.rs",
        original: "            if input.capacity() / needed >= LEAST_FULL {",
        replacement: "            if needed / input.capacity() >= LEAST_FULL {",
        why: "A client that has sent one long command keeps its buffer while it sends short ones.",
        checker: SUITE,
        hangs: false,
    },
    Mutant {
        name: "server_mixes_up_buffers_of_clients_at_rest",
        file: "crates/server/src/shelf.rs",
        original: "        if place.uses != ticket.uses {",
        replacement: "        if place.uses == u64::MAX {",
        why: "A client takes the buffer that another has left.",
        checker: unit("its_own_buffer_back"),
        hangs: false,
    },
    Mutant {
        name: "touch_is_no_use_of_a_key",
        file: "crates/server/src/commands/keys.rs",
        original: "count_present, Look::AndUse)",
        replacement: "count_present, Look::Only)",
        why: "Keys that are kept alive by TOUCH are evicted.",
        checker: operate("looks_at_keys"),
        hangs: false,
    },
    Mutant {
        name: "looks_that_find_nothing_are_no_misses",
        file: "crates/server/src/commands/mod.rs",
        original: "            &stripe.misses\n",
        replacement: "            &stripe.hits\n",
        why: "An operator sees that every key is found.",
        checker: operate("lookups_count"),
        hangs: false,
    },
    Mutant {
        name: "copy_takes_the_place_of_a_value_unasked",
        file: "crates/server/src/commands/copy.rs",
        original: "                match value.take_if(|_| stored) {",
        replacement: "                match value.take() {",
        why: "COPY without REPLACE destroys a value.",
        checker: over_socket("e2e_conformance", "replies_equal"),
        hangs: false,
    },
    Mutant {
        name: "a_dry_run_overlooks_heirs",
        file: "crates/server/src/commands/ets/dry_run.rs",
        original: "            heirs.find_map(|heir| mailbox(&heir))",
        replacement: "            heirs.next().and(None)",
        why: "ACL DRYRUN says that a user may do what the server refuses.",
        checker: over_socket("e2e_users", "a_dry_run"),
        hangs: false,
    },
    Mutant {
        name: "a_monitor_that_has_ended_holds_memory",
        file: "crates/server/src/watch/monitor.rs",
        original: "        self.feed.close();\n",
        replacement: "        self.feed.client.set_feed(0);\n",
        why: "A client counts lines that were shown just after its MONITOR ended, and is closed for them.",
        checker: unit("a_feed_that_has_ended"),
        hangs: false,
    },
    Mutant {
        name: "watch_shows_a_password",
        file: "crates/server/src/watch/secret.rs",
        original: "\"auth\" => at >= 1,",
        replacement: "\"auth\" => at >= 2,",
        why: "A monitor, and SLOWLOG, show the password of AUTH with one word.",
        checker: unit("passwords_are_secret"),
        hangs: false,
    },
    Mutant {
        name: "watch_shows_the_password_of_a_setting",
        file: "crates/server/src/watch/secret.rs",
        original: "known && !matches!",
        replacement: "known || !matches!",
        why: "SLOWLOG shows the password of CONFIG SET requirepass.",
        checker: unit("passwords_are_secret"),
        hangs: false,
    },
    Mutant {
        name: "config_set_changes_half",
        file: "crates/server/src/settings/parameter.rs",
        original: "for (parameter, before) in undo.into_iter().rev() {",
        replacement: "for (parameter, before) in undo.into_iter().skip(1) {",
        why: "CONFIG SET of two settings, of which the second cannot be set, has changed the first.",
        checker: unit("all_change_or_none"),
        hangs: false,
    },
    Mutant {
        name: "config_set_takes_a_parameter_twice",
        file: "crates/server/src/settings/parameter.rs",
        original: "std::ptr::eq(*other, parameter))",
        replacement: "std::ptr::eq(*other, &ALIVE[0]))",
        why: "CONFIG SET with two values for one setting takes one of them without a word.",
        checker: unit("all_change_or_none"),
        hangs: false,
    },
    Mutant {
        name: "slowlog_counts_one_argument_less",
        file: "crates/server/src/watch/slowlog.rs",
        original: "let more = arguments.len() - count + 1;",
        replacement: "let more = arguments.len() - count;",
        why: "The note in the place of the last argument forgets the argument that it replaces.",
        checker: unit("thirty_two_arguments"),
        hangs: false,
    },
    Mutant {
        name: "slowlog_cuts_one_byte_early",
        file: "crates/server/src/watch/slowlog.rs",
        original: "if argument.len() <= MOST_BYTES {",
        replacement: "if argument.len() < MOST_BYTES {",
        why: "An argument of just 128 bytes is shown with \"0 more bytes\".",
        checker: unit("thirty_two_arguments"),
        hangs: false,
    },
    Mutant {
        name: "figures_count_a_failed_call_as_a_call_only",
        file: "crates/server/src/commands/mod.rs",
        original: "outcome => stopwatch.after(stripe, command, is_small, outcome.is_err()),",
        replacement: "_ => stopwatch.after(stripe, command, is_small, false),",
        why: "INFO commandstats shows no failed calls.",
        checker: operate("calls_rejections_and_failures"),
        hangs: false,
    },
    Mutant {
        name: "figures_count_a_call_for_the_command_before",
        file: "crates/server/src/figures/stopwatch.rs",
        original: "&& !(is_small && std::ptr::eq(run.command, command))",
        replacement: "&& !(is_small && run.count < LONGEST_RUN)",
        why: "Short commands in a pipeline count as calls of the first one of them.",
        checker: unit("each_command_counts_once"),
        hangs: false,
    },
    Mutant {
        name: "figures_time_the_turns_of_others",
        file: "crates/server/src/figures/stopwatch.rs",
        original: "    pub(crate) fn go_on(&mut self) {\n        self.since = Instant::now();",
        replacement: "    pub(crate) fn go_on(&mut self) {",
        why: "A command that gives way counts with the time in which others ran.",
        checker: unit("the_time_of_a_command"),
        hangs: false,
    },
    Mutant {
        name: "figures_do_not_forget_times",
        file: "crates/server/src/figures/stripes.rs",
        original: "        self.times.subtract(&before.times);\n",
        replacement: "",
        why: "After CONFIG RESETSTAT, LATENCY HISTOGRAM still shows what was before.",
        checker: unit("sums_are_those_of_all_threads"),
        hangs: false,
    },
    Mutant {
        name: "monitors_have_no_limit",
        file: "crates/server/src/watch/monitor.rs",
        original: "if length > hard || is_slow {",
        replacement: "if is_slow {",
        why: "What waits for a monitor that does not read grows without a limit.",
        checker: operate("a_slow_monitor"),
        hangs: false,
    },
    Mutant {
        name: "config_rewrite_writes_what_no_start_takes",
        file: "crates/server/src/settings/rewrite.rs",
        original: "    check(&command(), new.path()).map_err(io::Error::other)?;\n",
        replacement: "    let _ = check(&command(), new.path());\n",
        why: "CONFIG REWRITE writes a limit below the least one, and the server does not start again.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-cli",
            target: Target::Test("e2e_config"),
            filter: "changed_settings_are_written",
        },
        hangs: false,
    },
];
