//! Bugs to plant in what operators use: the words to systemd, `tremula top`, the packages, the
//! alert rules.

use super::server_watch::over_socket;
use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const fn server(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package: "tremula-server",
        target: Target::Lib,
        filter,
    }
}

const fn programs(package: &'static str, filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Plain,
        package,
        target: Target::Bins,
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "service_lives_while_a_thread_stands",
        file: "crates/server/src/keeper.rs",
        original: "        !self.is_stuck.load(Relaxed)\n    }",
        replacement: "        self.is_open.load(Relaxed)\n    }",
        why: "systemd never restarts a server with a thread that hangs.",
        checker: server("keeper::"),
        hangs: false,
    },
    Mutant {
        name: "service_takes_the_watchdog_of_another_process",
        file: "crates/server/src/service.rs",
        original: "        && number(\"WATCHDOG_PID\", process)? != u64::from(own)",
        replacement: "        && number(\"WATCHDOG_PID\", process)? == 0",
        why: "A server that a supervised program has started keeps that program alive.",
        checker: over_socket("e2e_service", "for_another_process"),
        hangs: false,
    },
    Mutant {
        name: "service_stays_in_reloading",
        file: "crates/server/src/server.rs",
        original: "                read_again(&shared);\n                service.ready(&format!(\"serving on {}\", shared.listening));",
        replacement: "                read_again(&shared);",
        why: "systemd waits for the end of a reload, and then ends the server.",
        checker: over_socket("e2e_service", "settings_are_read_again"),
        hangs: false,
    },
    Mutant {
        name: "top_shows_totals_as_rates",
        file: "crates/cli/src/top/model.rs",
        original: "now.number(field).saturating_sub(before.number(field))",
        replacement: "now.number(field).saturating_sub(0 * before.number(field))",
        why: "What the server has done since its start looks like the work of a second.",
        checker: programs("tremula-cli", "top::"),
        hangs: false,
    },
    Mutant {
        name: "top_passes_control_characters_on",
        file: "crates/cli/src/top/sample.rs",
        original: "if letter.is_control() { '.' } else { letter }",
        replacement: "letter",
        why: "A client steers the operator's terminal by its name or its keys.",
        checker: programs("tremula-cli", "top::"),
        hangs: false,
    },
    Mutant {
        name: "packages_ask_for_an_old_libc",
        file: "xtask/src/dist/deb.rs",
        original: "minors.max()",
        replacement: "minors.min()",
        why: "The package installs on systems where the program does not start.",
        checker: programs("xtask", "dist::"),
        hangs: false,
    },
    Mutant {
        name: "packages_forget_their_owners",
        file: "xtask/src/dist/archive.rs",
        original: "    put(108, format!(\"{:07o}\", entry.owner).as_bytes());",
        replacement: "    put(108, format!(\"{:07o}\", 0).as_bytes());",
        why: "The image's server may not write into its own directory.",
        checker: programs("xtask", "dist::"),
        hangs: false,
    },
    Mutant {
        name: "an_alert_asks_for_a_metric_that_is_gone",
        file: "packaging/monitoring/tremula-alerts.yml",
        original: "expr: tremula_log_is_full == 1",
        replacement: "expr: tremula_log_full == 1",
        why: "The alert never fires, and nobody notices that it cannot.",
        checker: server("figures::monitoring"),
        hangs: false,
    },
    Mutant {
        name: "top_shows_what_leaves_have_counted_for_ever",
        file: "crates/cli/src/top/model.rs",
        original: "                let more = of(&leaf).checked_sub(was).unwrap_or_else(|| of(&leaf));",
        replacement: "                let more = of(&leaf).max(was);",
        why: "A leaf that was hot yesterday stays the hottest.",
        checker: programs("tremula-cli", "a_leaf_is_as_hot"),
        hangs: false,
    },
];
