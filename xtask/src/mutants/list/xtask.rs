//! Bugs to plant in the chores, and in what runs the suites of others.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "xtask_believes_tests_without_models",
        file: "xtask/src/output.rs",
        original: "    if (models.len() as u64) < binary.passed {",
        replacement: "    if (models.len() as u64) > binary.passed {",
        why: "A loom test that explores nothing, say because its model is compiled out, passes.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "xtask",
            target: Target::Bins,
            filter: "output::",
        },
        hangs: false,
    },
    Mutant {
        name: "xtask_waits_for_leftover_processes",
        file: "xtask/src/job.rs",
        original: "            && (closed || when.elapsed() > GRACE)",
        replacement: "            && closed",
        why: "A server that a test leaves running keeps the test run waiting for its output.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "xtask",
            target: Target::Bins,
            filter: "job::",
        },
        hangs: false,
    },
    Mutant {
        name: "suite_of_redis_may_run_fewer_cases",
        file: "crates/cli/tests/e2e_redis_suite/main.rs",
        original: "if ran.passed.len() != unit.runs {",
        replacement: "if ran.passed.len() > unit.runs {",
        why: "Cases of Redis's suite that no longer run, say because a unit ends early, are not missed.",
        checker: Checker {
            flavour: Flavour::Plain,
            package: "tremula-cli",
            target: Target::Test("e2e_redis_suite"),
            filter: "each_way_to_run",
        },
        hangs: false,
    },
];
