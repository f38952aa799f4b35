//! Bugs of the page, of its picture of a map, and of the metrics.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn unit(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-observe",
        target: Target::Lib,
        filter,
    }
}

const fn server(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-server",
        target: Target::Lib,
        filter,
    }
}

const fn page(filter: &'static str) -> Checker {
    super::server_watch::over_socket("e2e_page", filter)
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "page_takes_any_host",
        file: "crates/observe/src/http/guard.rs",
        original: "    if !is_own(host, own.ip()) {",
        replacement: "    if host.is_empty() {",
        why: "A page whose name leads to this machine by and by can read everything.",
        checker: unit("only_this_machine_is_a_host"),
        hangs: false,
    },
    Mutant {
        name: "page_takes_any_origin_of_this_machine",
        file: "crates/observe/src/http/guard.rs",
        original: "        && origin.strip_prefix(\"http://\") != Some(host)",
        replacement: "        && !origin.starts_with(\"http://localhost\")",
        why: "Another program's page on this machine can send commands.",
        checker: unit("only_the_page_itself_is_an_origin"),
        hangs: false,
    },
    Mutant {
        name: "page_lets_readers_write",
        file: "crates/server/src/http/program.rs",
        original: "if *visitor == Visitor::Reader && !console::only_reads(command) {",
        replacement: "if *visitor == Visitor::Reader && command.flags.contains(&\"admin\") {",
        why: "Commands that write run without the token.",
        checker: page("what_writes_needs_the_token"),
        hangs: false,
    },
    Mutant {
        name: "page_is_open_although_a_password_is_needed",
        file: "crates/server/src/http/program.rs",
        original: "self.user.is_some() || users.lets_anybody_in()",
        replacement: "self.user.is_some() || users.get(DEFAULT).is_some()",
        why: "The page shows keys to those that have not the password.",
        checker: page("with_a_password_everything"),
        hangs: false,
    },
    Mutant {
        name: "page_looks_at_every_guess",
        file: "crates/observe/src/http/access.rs",
        original: "        self.try_again()?;\n        self.failed();\n",
        replacement: "",
        why: "Tokens can be guessed as fast as the machine answers.",
        checker: unit("after_some_wrong_tokens"),
        hangs: false,
    },
    Mutant {
        name: "map_loses_what_is_merged",
        file: "crates/observe/src/map/column.rs",
        original: "                *sum = sum.saturating_add(*more);\n            }\n        }\n        let mut marks",
        replacement: "                *sum = *more;\n            }\n        }\n        let mut marks",
        why: "When bounds change within ten seconds, counts of the day are lost.",
        checker: unit("merging_columns_loses_no_count"),
        hangs: false,
    },
    Mutant {
        name: "map_encodes_counts_as_differences",
        file: "crates/observe/src/map/series.rs",
        original: "                false => now[layer],\n",
        replacement: "                false => now[layer].wrapping_sub(before[layer]),\n",
        why: "Counts come back wrong.",
        checker: unit("columns_come_back_as_they_were"),
        hangs: false,
    },
    Mutant {
        name: "map_counts_a_new_leaf_from_nothing",
        file: "crates/observe/src/map/recorder.rs",
        original: "            None if self.walks > 1 => (leaf.acquisitions, leaf.waits),\n",
        replacement: "",
        why: "What happens in a leaf in its first second is lost: just where it is hot.",
        checker: unit("no_count_is_lost"),
        hangs: false,
    },
    Mutant {
        name: "map_keeps_all_bytes",
        file: "crates/observe/src/map/series.rs",
        original: "            if without < self.most_columns && self.held() <= self.most_bytes {",
        replacement: "            if without < self.most_columns {",
        why: "A busy map takes any amount of memory.",
        checker: unit("a_series_keeps_within_its_limits"),
        hangs: false,
    },
    Mutant {
        name: "metrics_are_in_microseconds",
        file: "crates/server/src/figures/open_metrics.rs",
        original: "(\"_microseconds\", \"seconds\", 1e-6)",
        replacement: "(\"_microseconds\", \"seconds\", 1.0)",
        why: "Times are said to be seconds and are not.",
        checker: server("values_are_in_base_units"),
        hangs: false,
    },
    Mutant {
        name: "samples_stand_for_less_than_was_done",
        file: "crates/server/src/figures/sampler.rs",
        original: "            kept.iter_mut().for_each(|sample| sample.stands_for *= 2);\n",
        replacement: "",
        why: "The busier the server, the less of it is in the map.",
        checker: server("samples_stand_for_all_commands"),
        hangs: false,
    },
    Mutant {
        name: "map_of_tables_is_open_to_who_sees_keys",
        file: "crates/server/src/http/program.rs",
        original: "true => Section::Tables,",
        replacement: "true => Section::Keys,",
        why: "The keys of tables are shown to users who may not use them.",
        checker: page("only_tables_with_an_order"),
        hangs: false,
    },
    Mutant {
        name: "keys_of_a_table_begin_before_the_range",
        file: "crates/server/src/http/table.rs",
        original: "if key.cmp_byte_form(from).is_lt() && passed < MOST_PASSED {",
        replacement: "if key.cmp_byte_form(from).is_lt() && passed > MOST_PASSED {",
        why: "A click on a bound of a long key shows the keys before it.",
        checker: page("a_bound_that_was_cut"),
        hangs: false,
    },
    Mutant {
        name: "spans_of_slow_commands_are_sampled",
        file: "crates/server/src/spans/mod.rs",
        original: "if is_sampled || is_slow {",
        replacement: "if is_sampled {",
        why: "The one command that somebody looks for is not there.",
        checker: server("a_collector_sees"),
        hangs: false,
    },
    Mutant {
        name: "hottest_leaves_are_the_first_ones",
        file: "crates/server/src/commands/shape.rs",
        original: "if kept.len() > most {",
        replacement: "if kept.len() > 2 * most {",
        why: "More leaves are kept and sent than were asked for.",
        checker: super::server_watch::over_socket("e2e_top", "the_hottest_leaves"),
        hangs: false,
    },
    Mutant {
        name: "page_streams_on_without_a_right",
        file: "crates/observe/src/http/events.rs",
        original: "if may_see(&events.shared, token, map).is_err() {",
        replacement: "if false && may_see(&events.shared, token, map).is_err() {",
        why: "A user that was deleted sees the keys of the map as long as a page stays open.",
        checker: page("events_end_when"),
        hangs: false,
    },
    Mutant {
        name: "map_keeps_keys_of_any_length",
        file: "crates/observe/src/observer.rs",
        original: "&low[..low.len().min(LONGEST_KEY)]",
        replacement: "&low[..low.len().min(1 << 30)]",
        why: "Long keys take all memory, once a second.",
        checker: unit("of_long_keys"),
        hangs: false,
    },
];
