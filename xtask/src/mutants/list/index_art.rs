//! Bugs to plant in the index engine art.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

const LOOM: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-index",
    target: Target::Test("loom"),
    filter: "art::",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "art_lookup_does_not_validate",
        file: "crates/index/src/art/lookup.rs",
        original: "        header.lock.validate(version)?;\n        Ok(found",
        replacement: "        Ok(found",
        why: "A lookup takes what it read while a node was being changed for what was there.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "art_lookup_skips_a_cut_prefix",
        file: "crates/index/src/art/lookup.rs",
        original: "if !snapshot.begins_at(start) {",
        replacement: "if !snapshot.begins_at(start) && bytes.is_empty() {",
        why: "A lookup that comes to a node whose prefix was cut meanwhile compares the wrong bytes.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "art_scan_does_not_validate_in_the_end",
        file: "crates/index/src/art/walk.rs",
        original: "        if !self.locks && loaded {",
        replacement: "        if !self.locks && loaded && self.items.is_empty() {",
        why: "A scan shows values of leaves of different moments.",
        checker: LOOM,
        hangs: false,
    },
];
