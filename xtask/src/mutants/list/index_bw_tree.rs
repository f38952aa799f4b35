//! Bugs to plant in the index engine bw_tree.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The models of the engine.
const LOOM: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-index",
    target: Target::Test("loom"),
    filter: "bw_tree",
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "bw_scan_does_not_look_again",
        file: "crates/index/src/bw_tree/ranges.rs",
        original: "seen.len() < 2 || seen.iter().all(is_unchanged)",
        replacement: "seen.len() < 2 || seen.iter().any(is_unchanged)",
        why: "A snapshot shows one leaf as it was before a write to it, and the next as it was after a later one.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_walk_shows_a_merged_leaf_twice",
        file: "crates/index/src/bw_tree/ranges.rs",
        original: "Direction::Ascending => places.start = places.start.max(at).min(places.end),",
        replacement: "Direction::Ascending => {}",
        why: "A walk comes to a leaf that has taken in the next one, and shows what it has seen already.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_merge_lets_the_left_node_go_early",
        file: "crates/index/src/bw_tree/merge.rs",
        original: "holds.set(left_id, merged.word());\n        holds.release(parent.id, shorter.word());",
        replacement: "holds.release(left_id, merged.word());\n        holds.release(parent.id, shorter.word());",
        why: "A write to the merged node is overwritten when it is let go a second time.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_range_is_removed_leaf_by_leaf",
        file: "crates/index/src/bw_tree/ranges.rs",
        original: "if plans.len() > 1 {",
        replacement: "if plans.len() > 2 {",
        why: "Somebody sees one of two leaves without the range, and the other with it.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_write_goes_into_a_held_leaf",
        file: "crates/index/src/bw_tree/write.rs",
        original: "if spot.word.is_held() || spot.word.kind() == Kind::Switch {",
        replacement: "if spot.word.kind() == Kind::Switch {",
        why: "A write slips in while another thread decides about the leaf, and is lost when that is done.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_moved_key_narrows_the_search_too_far",
        file: "crates/index/src/bw_tree/consolidate.rs",
        original: "Ordering::Less => high = high.min(delta.offset as usize),",
        replacement: "Ordering::Less => high = high.min((delta.offset as usize).saturating_sub(1)),",
        why: "The key just below that of a delta is not found in the base node.",
        checker: LOOM,
        hangs: false,
    },
];
