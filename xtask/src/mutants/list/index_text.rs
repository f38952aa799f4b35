//! Bugs to plant in the leaves of text of the index engine b_tree.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// Compares a leaf with a model.
const MODEL: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Lib,
    filter: "b_tree::text::tests",
};

/// Visits that validate themselves beside writers. Loom does not notice that freed words are read.
const STRESS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-index",
    target: Target::Test("stress"),
    filter: "keys_of_any_length_in_leaves_of_text",
};

/// All interleavings of a reader and a writer.
const fn loom(filter: &'static str) -> Checker {
    Checker {
        flavour: Flavour::Loom,
        package: "tremula-index",
        target: Target::Test("loom"),
        filter,
    }
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "text_block_is_shown_before_it_is_filled",
        file: "crates/index/src/b_tree/text/mod.rs",
        original: "self.block.store(block.word(), Ordering::Release);",
        replacement: "self.block.store(block.word(), Ordering::Relaxed);",
        why: "A reader comes to a block whose words it does not see yet.",
        checker: loom("while_its_leaf_of_text_gets_another_block"),
        hangs: false,
    },
    Mutant {
        name: "text_block_is_freed_at_once",
        file: "crates/index/src/b_tree/text/assemble.rs",
        original: "        unsafe { old.retire(leaf.heap, guard) };",
        replacement: "        let _ = guard;\n        // SAFETY: none.\n        unsafe { old.free(leaf.heap) };",
        why: "A reader that has come to the block before it was replaced reads freed memory.",
        checker: STRESS,
        hangs: false,
    },
    Mutant {
        name: "text_key_aside_is_freed_at_once",
        file: "crates/index/src/b_tree/text/aside.rs",
        original: "            unsafe { guard.defer_unchecked(move || self.free()) };",
        replacement: "            let _ = guard;\n            // SAFETY: none.\n            unsafe { self.free() };",
        why: "A reader that has come to a long key before it was removed reads freed memory.",
        checker: Checker {
            flavour: Flavour::Asan,
            package: "tremula-index",
            target: Target::Test("stress"),
            filter: "keys_of_any_length_in_leaves_of_text",
        },
        hangs: false,
    },
    Mutant {
        name: "text_prefix_is_not_that_of_the_new_key",
        file: "crates/index/src/b_tree/text/assemble.rs",
        original: "        common = common.min(common_of(lowest, more));\n",
        replacement: "        let _ = more;\n",
        why: "A key without the prefix of its leaf is kept as one that has it.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "text_of_equal_heads_only_the_first_is_looked_at",
        file: "crates/index/src/b_tree/text/find.rs",
        original: "            high = above_head(head).map_or(count, |above| self.heads().below(above).min(count));\n",
        replacement: "",
        why: "Of keys that are alike in five bytes behind the prefix only one is found.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "text_keys_that_end_with_zeros_are_equal",
        file: "crates/index/src/b_tree/text/find.rs",
        original: "        Ok(key.len().wrapping_sub(skip).cmp(&length))",
        replacement: "        let _ = length;\n        Ok(KeyOrdering::Equal)",
        why: "A key and the same key with a zero at its end are one.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "text_removed_entries_count_as_live",
        file: "crates/index/src/b_tree/text/edit.rs",
        original: "            figures.live -= self.slot(at).entry_words();\n",
        replacement: "",
        why: "A block never becomes smaller, and a leaf with a few entries counts as full.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "text_prefix_of_another_block_is_shown",
        file: "crates/index/src/b_tree/text/key_bytes.rs",
        original: "        let is_begun = scratch.block == self.block && bytes.len() >= scratch.skip;",
        replacement: "        let is_begun = scratch.block != Block::NONE && bytes.len() >= scratch.skip;",
        why: "A visit that goes from leaf to leaf shows keys that begin as those of the first leaf.",
        checker: MODEL,
        hangs: false,
    },
    Mutant {
        name: "text_suffixes_that_become_long_are_lost",
        file: "crates/index/src/b_tree/text/assemble.rs",
        original: "            self.asides.push(new);\n            aside = Some(new);\n",
        replacement: "            self.asides.push(new);\n",
        why: "When a prefix becomes shorter, a suffix that becomes too long for a slot is cut.",
        checker: MODEL,
        hangs: false,
    },
];
