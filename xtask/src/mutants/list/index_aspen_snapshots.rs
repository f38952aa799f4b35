//! Bugs to plant in the snapshots of the index engine aspen.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// Snapshots beside writers.
const SNAPSHOTS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Lib,
    filter: "aspen::snapshot_tests",
};

/// Snapshots whose map one thread changes between their leaves.
const BETWEEN: Checker = Checker {
    filter: "words::snapshot_tests",
    ..SNAPSHOTS
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "aspen_snapshot_is_not_told_of_replaced_values",
        file: "crates/index/src/aspen/words/write.rs",
        original: "                        self.preserve(id, leaf);\n                        view.set_value",
        replacement: "                        view.set_value",
        why: "A value that is replaced beside a snapshot may be shown with what was written before it missing.",
        checker: SNAPSHOTS,
        hangs: false,
    },
    Mutant {
        name: "aspen_snapshot_lacks_what_is_removed",
        file: "crates/index/src/aspen/words/write.rs",
        original: "        self.preserve(held.id, held.leaf);\n",
        replacement: "",
        why: "An entry that is removed beside a snapshot is missing though a later one is shown.",
        checker: SNAPSHOTS,
        hangs: false,
    },
    Mutant {
        name: "aspen_merge_preserves_only_one_leaf",
        file: "crates/index/src/aspen/words/structure.rs",
        original: "        self.preserve_up_to(next.id, next.leaf, now);\n",
        replacement: "",
        why: "Entries that come into a leaf that the snapshot has passed are missing.",
        checker: BETWEEN,
        hangs: false,
    },
    Mutant {
        name: "aspen_step_preserves_up_to_later_moments",
        file: "crates/index/src/aspen/words/step.rs",
        original: "        self.words.preserve_up_to(id, leaf, self.now);\n        let view",
        replacement: "        self.words.preserve(id, leaf);\n        let view",
        why: "A snapshot that begins in the middle of a step shows a part of it.",
        checker: SNAPSHOTS,
        hangs: false,
    },
    Mutant {
        name: "aspen_snapshot_lacks_ranges_that_are_removed",
        file: "crates/index/src/aspen/words/step.rs",
        original: "            self.words.preserve_up_to(held.id, held.leaf, self.now);\n        }\n",
        replacement: "            let _ = held;\n        }\n",
        why: "A range that is removed beside a snapshot is shown in part.",
        checker: SNAPSHOTS,
        hangs: false,
    },
    Mutant {
        name: "aspen_half_of_a_split_is_preserved_again",
        file: "crates/index/src/aspen/words/structure.rs",
        original: "        self.leaves.set_preserved(half.id, preserved);\n",
        replacement: "        self.leaves.set_preserved(half.id, preserved.min(0));\n",
        why: "Entries that a split moves are in the snapshot twice.",
        checker: SNAPSHOTS,
        hangs: false,
    },
    Mutant {
        name: "aspen_snapshot_is_not_told_of_appended_keys",
        file: "crates/index/src/aspen/words/write.rs",
        original: "            Change::Put(value) => {\n                self.preserve_bucket(&bucket);\n",
        replacement: "            Change::Put(value) => {\n",
        why: "A snapshot that comes to a hot leaf shows keys from after its moment.",
        checker: SNAPSHOTS,
        hangs: false,
    },
    Mutant {
        name: "aspen_drain_preserves_no_bucket",
        file: "crates/index/src/aspen/words/heat.rs",
        original: "        self.preserve_whole(&whole, now);\n        let mut entries",
        replacement: "        let mut entries",
        why: "What is drained beside a snapshot is taken for older than it is, and is missing.",
        checker: BETWEEN,
        hangs: false,
    },
    Mutant {
        name: "aspen_leaf_counts_as_preserved_without_a_copy",
        file: "crates/index/src/aspen/words/snapshots.rs",
        original: "one.number > preserved && one.number <= now",
        replacement: "one.number > preserved + 1 && one.number <= now",
        why: "The leaf that a writer changed first is missing in the snapshot.",
        checker: SNAPSHOTS,
        hangs: false,
    },
    Mutant {
        name: "aspen_part_of_a_snapshot_shows_what_lies_ahead",
        file: "crates/index/src/aspen/words/snapshots.rs",
        original: "self.loose.extract_if(.., |entry| entry.0 <= up_to);",
        replacement: "self.loose.extract_if(.., |_| true);",
        why: "Keys that writers gave from buckets ahead of the reader come before what lies between.",
        checker: BETWEEN,
        hangs: false,
    },
    Mutant {
        name: "aspen_part_of_a_snapshot_takes_what_lies_ahead",
        file: "crates/index/src/aspen/words/snapshots.rs",
        original: "            self.parts = parts.split_off(&behind);",
        replacement: "            drop(parts.split_off(&behind));",
        why: "What writers gave from leaves ahead of the reader is lost.",
        checker: BETWEEN,
        hangs: false,
    },
    Mutant {
        name: "aspen_snapshot_that_was_dropped_goes_on",
        file: "crates/index/src/aspen/words/snapshots.rs",
        original: "            drop(self.snapshots.end(self.number));",
        replacement: "            let _ = &self.snapshots;",
        why: "Writers copy leaves for ever for a snapshot that nobody reads.",
        checker: BETWEEN,
        hangs: false,
    },
];
