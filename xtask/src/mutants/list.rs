//! The list of planted bugs.
//!
//! To add one, append a [`Mutant`]: the exact text of a place in the code, occurring once in
//! its file; what to put there; why that is a bug; and the checker that must catch it. Choose
//! bugs that someone could write, and a checker that is there for their kind.

use crate::flavour::Flavour;

/// One bug to plant.
pub(crate) struct Mutant {
    /// Unique, in words joined by `_`.
    pub(crate) name: &'static str,
    /// Relative to the workspace's root.
    pub(crate) file: &'static str,
    /// Text that occurs exactly once in the file.
    pub(crate) original: &'static str,
    /// What stands there instead.
    pub(crate) replacement: &'static str,
    /// What goes wrong, and when.
    pub(crate) why: &'static str,
    /// What must catch it.
    pub(crate) checker: Checker,
    /// Whether the bug shows in that the checker does not end.
    pub(crate) hangs: bool,
}

/// A test, or some tests, in one way of building.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checker {
    pub(crate) flavour: Flavour,
    pub(crate) package: &'static str,
    pub(crate) target: Target,
    /// Part of the names of the tests to run; empty for all.
    pub(crate) filter: &'static str,
}

/// Which of a crate's tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a kind that no planted bug needs at the moment")]
pub(crate) enum Target {
    /// The unit tests of the library.
    Lib,
    /// The unit tests of the programs.
    Bins,
    /// The integration test of this name.
    Test(&'static str),
}

/// Every planted bug.
pub(crate) const MUTANTS: &[Mutant] = &[
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
