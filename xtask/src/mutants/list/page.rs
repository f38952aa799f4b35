//! Bugs to plant in the modules of the page.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The modules' own tests, which need no browser.
const MODULES: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-cli",
    target: Target::Test("e2e_browser"),
    filter: "the_modules_pass_their_tests",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "page_axis_lets_bounds_leave_their_bucket",
        file: "crates/observe/page/src/axis.js",
        original: "(bucket + (index - first) / (end - first)) / buckets",
        replacement: "(bucket + (index - first)) / buckets",
        why: "A key of an older column is drawn at the height of other keys.",
        checker: MODULES,
        hangs: false,
    },
    Mutant {
        name: "page_keeps_columns_twice",
        file: "crates/observe/page/src/columns.js",
        original: "(column) => column.end > to",
        replacement: "(column) => column.end >= to",
        why: "A column that is read again counts twice.",
        checker: MODULES,
        hangs: false,
    },
    Mutant {
        name: "page_counts_buckets_rather_than_acquisitions",
        file: "crates/observe/page/src/paint.js",
        original: "weights[row] += column.acquisitions[bucket];",
        replacement: "weights[row] += 1;",
        why: "The map shows the number of waits as if it were their share.",
        checker: MODULES,
        hangs: false,
    },
    Mutant {
        name: "page_scale_runs_backwards",
        file: "crates/observe/page/src/colour.js",
        original: "const lightness = from + (to - from) * share;",
        replacement: "const lightness = to + (from - to) * share;",
        why: "The hottest keys have the colour of the background.",
        checker: MODULES,
        hangs: false,
    },
];
