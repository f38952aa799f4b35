//! Bugs to plant in the chores.

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
];
