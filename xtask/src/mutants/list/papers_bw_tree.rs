//! Bugs to plant in the engine of papers bw_tree.

use super::{Checker, Mutant, Target};
use crate::flavour::Flavour;

/// The models of the engine.
const LOOM: Checker = Checker {
    flavour: Flavour::Loom,
    package: "tremula-papers",
    target: Target::Test("loom"),
    filter: "bw_tree",
};

/// The models of the ids of its mapping table.
const LOOM_IDS: Checker = Checker {
    filter: "bw_tree_ids",
    ..LOOM
};

/// The unit tests of these.
const LIB_IDS: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-papers",
    target: Target::Lib,
    filter: "bw_tree::ids",
};

/// The tests of many values under one key.
const MULTI_MAP: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-papers",
    target: Target::Test("bw_multi_map"),
    filter: "",
};

/// The models of spread leaves, and of deltas where there are none by default.
const LOOM_DELTAS: Checker = Checker {
    filter: "bw_tree_deltas",
    ..LOOM
};

/// The models of merges by deltas.
const LOOM_MERGES: Checker = Checker {
    filter: "bw_tree_merges",
    ..LOOM
};

/// The test of merges that other threads help to finish.
const MERGES: Checker = Checker {
    filter: "a_merge_is_finished",
    ..SPREAD
};

/// The test of panics in the middle of merges that nobody finishes.
const PANICS: Checker = Checker {
    filter: "in_the_middle_of_a_merge",
    ..SPREAD
};

/// The tests of spread leaves.
const SPREAD: Checker = Checker {
    flavour: Flavour::Plain,
    package: "tremula-papers",
    target: Target::Test("bw_tree"),
    filter: "spread",
};

/// The test of deltas where there are none by default.
const DELTAS: Checker = Checker {
    filter: "deltas",
    ..SPREAD
};

/// The tests of keys that lie.
const LIES: Checker = Checker {
    target: Target::Test("bw_tree_lies"),
    filter: "dropped_once",
    ..SPREAD
};

/// The test of deleted keys.
const DELETED_KEYS: Checker = Checker {
    target: Target::Test("reclamation"),
    filter: "a_key_that_left",
    ..SPREAD
};

/// Trees that check their invariants after each change, and at rest.
const INVARIANTS: Checker = Checker {
    filter: "a_tree_keeps_its_invariants",
    ..SPREAD
};

/// The unit test of claims.
const CLAIMS: Checker = Checker {
    target: Target::Lib,
    filter: "bw_tree::spread",
    ..SPREAD
};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "bw_sub_chain_follows_from_the_hash_alone",
        file: "crates/papers/src/bw_tree/spread.rs",
        original: "Ok(at) => at as u64,",
        replacement: "Ok(_) => probe.hash(),",
        why: "Equal keys with different bytes delete one entry twice.",
        checker: LIES,
        hangs: false,
    },
    Mutant {
        name: "bw_delta_that_was_superseded_is_changed",
        file: "crates/papers/src/bw_tree/consolidate.rs",
        original: ".find(|delta| delta.key.is(found.key))",
        replacement: ".find(|delta| std::ptr::eq(*delta, found))",
        why: "A comparison that passes by the newest delta on a key has its value replaced, or the key deleted, twice.",
        checker: LIES,
        hangs: false,
    },
    Mutant {
        name: "bw_overwritten_entry_is_found",
        file: "crates/papers/src/bw_tree/consolidate.rs",
        original: "within(self.base.search(probe, all), places)",
        replacement: "self.base.search(probe, all)",
        why: "A comparison that passes by a delta finds the entry that it has deleted, and it is deleted again.",
        checker: LIES,
        hangs: false,
    },
    Mutant {
        name: "bw_child_is_posted_twice",
        file: "crates/papers/src/bw_tree/post.rs",
        original: "Some(Some(next)) => next == right,",
        replacement: "Some(Some(next)) => next == NO_NODE,",
        why: "A node has two separators, and is merged away under one of them.",
        checker: LIES,
        hangs: true,
    },
    Mutant {
        name: "bw_deleted_keys_are_forgotten",
        file: "crates/papers/src/bw_tree/pending.rs",
        original: "                self.pending.note(id);\n            }\n        }",
        replacement: "                let _ = id;\n            }\n        }",
        why: "A key that was deleted lives as long as nobody writes to its leaf.",
        checker: DELETED_KEYS,
        hangs: false,
    },
    Mutant {
        name: "bw_refused_claims_are_counted",
        file: "crates/papers/src/bw_tree/spread.rs",
        original: "if sub_chain.claimed.load(Ordering::Relaxed) as usize >= SUB_CHAIN {",
        replacement: "if sub_chain.claimed.load(Ordering::Relaxed) == u32::MAX {",
        why: "After four thousand million claims that were refused a place is given out twice.",
        checker: CLAIMS,
        hangs: false,
    },
    Mutant {
        name: "bw_scan_does_not_look_again",
        file: "crates/papers/src/bw_tree/ranges.rs",
        original: "seen.len() < 2 || seen.iter().all(is_unchanged)",
        replacement: "seen.len() < 2 || seen.iter().any(is_unchanged)",
        why: "A snapshot shows one leaf as it was before a write to it, and the next as it was after a later one.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_walk_shows_a_merged_leaf_twice",
        file: "crates/papers/src/bw_tree/ranges.rs",
        original: "Direction::Ascending => places.start = places.start.max(at).min(places.end),",
        replacement: "Direction::Ascending => {}",
        why: "A walk comes to a leaf that has taken in the next one, and shows what it has seen already.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_merge_lets_the_left_node_go_early",
        file: "crates/papers/src/bw_tree/merge.rs",
        original: "holds.set(left.id, merged.word());",
        replacement: "holds.release(left.id, merged.word());",
        why: "A write to the merged node is overwritten when it is let go a second time.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_range_is_removed_leaf_by_leaf",
        file: "crates/papers/src/bw_tree/ranges.rs",
        original: "if plans.len() > 1 {",
        replacement: "if plans.len() > 2 {",
        why: "A reader sees one of two leaves without the range, and the other with it.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_write_goes_into_a_held_leaf",
        file: "crates/papers/src/bw_tree/write.rs",
        original: "            if !place.word.is_open() {\n                self.help_merge(place.word, guard);",
        replacement: "            if !place.word.released().is_open() {\n                self.help_merge(place.word, guard);",
        why: "A write slips in while another thread decides about the leaf, and is lost when that is done.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_moved_key_narrows_the_search_too_far",
        file: "crates/papers/src/bw_tree/consolidate.rs",
        original: "Ordering::Less => high = high.min(delta.offset as usize),",
        replacement: "Ordering::Less => high = high.min((delta.offset as usize).saturating_sub(1)),",
        why: "The key just below that of a delta is not found in the base node.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_ids_of_a_page_are_counted_before_it_is_closed",
        file: "crates/papers/src/bw_tree/ids.rs",
        original: ".compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Relaxed)\n                .is_ok()",
        replacement: ".load(Ordering::Acquire)\n                .eq(&0)\n                && page.used.swap(CLOSED, Ordering::AcqRel) != CLOSED",
        why: "An id that is handed out between the two steps is of a page that is given back.",
        checker: LOOM_IDS,
        hangs: false,
    },
    Mutant {
        name: "bw_ids_are_handed_out_of_a_closed_page",
        file: "crates/papers/src/bw_tree/ids.rs",
        original: "(used != PAGE && used != CLOSED).then(|| used + 1)",
        replacement: "(used != PAGE).then(|| usize::wrapping_add(used, 1))",
        why: "A thread that comes to a page that is being given back gets an id whose word is gone.",
        checker: LOOM_IDS,
        hangs: false,
    },
    Mutant {
        name: "bw_ids_full_page_is_not_looked_at_again",
        file: "crates/papers/src/bw_tree/ids.rs",
        original: "if page.used.load(Ordering::SeqCst) != PAGE {",
        replacement: "if page.used.load(Ordering::SeqCst) == CLOSED {",
        why: "An id that is freed while its page is noted as full is not found, nor is any other of the page until it fills again.",
        checker: LOOM_IDS,
        hangs: false,
    },
    Mutant {
        name: "bw_ids_room_in_a_full_page_is_not_noted",
        file: "crates/papers/src/bw_tree/ids.rs",
        original: "if before == PAGE {",
        replacement: "if before == 1 {",
        why: "Ids of a page that was full are handed out only when all of them are free: the table grows for ever.",
        checker: LIB_IDS,
        hangs: false,
    },
    Mutant {
        name: "bw_ids_are_free_while_somebody_has_them",
        file: "crates/papers/src/bw_tree/mapping_table.rs",
        original: "unsafe { guard.defer_unchecked(move || free(&ids, id)) };",
        replacement: "unsafe { free(&ids, id) };\n        let _ = guard;",
        why: "A reader comes to another leaf than it was on its way to, and misses what is there all the time.",
        checker: LOOM,
        hangs: false,
    },
    Mutant {
        name: "bw_multi_map_misses_the_values_of_the_last_key",
        file: "crates/papers/src/bw_tree/multi_map.rs",
        original: "Bound::Included(key) => Bound::Excluded(Pair::above(key.key())),",
        replacement: "Bound::Included(key) => Bound::Excluded(Pair::below(key.key())),",
        why: "A range ends in front of the values of its last key.",
        checker: MULTI_MAP,
        hangs: false,
    },
    Mutant {
        name: "bw_multi_map_takes_a_box_for_a_value",
        file: "crates/papers/src/bw_tree/multi_map.rs",
        original: "head_is_key::<K, H>() && Packed::<V>::is_word()",
        replacement: "head_is_key::<K, H>() || Packed::<V>::is_word()",
        why: "Of a pair that does not fit in words the key or the value is lost.",
        checker: MULTI_MAP,
        hangs: false,
    },
    Mutant {
        name: "bw_spread_leaf_is_copied_before_it_is_frozen",
        file: "crates/papers/src/bw_tree/spread.rs",
        original: "        if view.base.is_spread() {\n            view.base.freeze();",
        replacement: "        if view.count() > 99 {\n            view.base.freeze();",
        why: "A write to a sub-chain that has been copied already is lost.",
        checker: LOOM_DELTAS,
        hangs: false,
    },
    Mutant {
        name: "bw_spread_leaf_stays_spread",
        file: "crates/papers/src/bw_tree/spread.rs",
        original: "limit.div_ceil(4)",
        replacement: "0",
        why: "A leaf that is no longer contended keeps its sub-chains.",
        checker: SPREAD,
        hangs: false,
    },
    Mutant {
        name: "bw_leaf_of_one_hot_key_is_spread",
        file: "crates/papers/src/bw_tree/spread.rs",
        original: "numbers.any(|number| Some(number) != first)",
        replacement: "numbers.any(|number| Some(number) == first)",
        why: "Deltas that all come to one sub-chain get others beside it.",
        checker: SPREAD,
        hangs: false,
    },
    Mutant {
        name: "bw_scan_passes_sub_chains_by",
        file: "crates/papers/src/bw_tree/ranges.rs",
        original: "            if place.view.base.is_spread() {",
        replacement: "            if place.view.base.is_spread() && limit == 0 {",
        why: "A scan shows a spread leaf without its deltas.",
        checker: SPREAD,
        hangs: false,
    },
    Mutant {
        name: "bw_split_delta_leaves_its_own_key_on_the_left",
        file: "crates/papers/src/bw_tree/node.rs",
        original: "(other.offset, other.overwrites) < (self.offset, true)",
        replacement: "(other.offset, other.overwrites) <= (self.offset, true)",
        why: "A delta on the key at which a node is split belongs to both halves.",
        checker: DELTAS,
        hangs: false,
    },
    Mutant {
        name: "bw_deleted_separator_is_counted",
        file: "crates/papers/src/bw_tree/inner.rs",
        original: "            count: self.count() as u32 - 1,",
        replacement: "            count: self.count() as u32,",
        why: "An inner node is taken to have a separator that a delta has deleted (invariant 5): it is split early, and a root without separators stays.",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "bw_write_goes_onto_a_merge_delta",
        file: "crates/papers/src/bw_tree/word.rs",
        original: "rotate_right(1) < SWITCH / STEP",
        replacement: "rotate_right(1) < REMOVED / STEP",
        why: "A delta on the left node of a merge, or a separator under an abort delta, hides that there is a merge.",
        checker: LOOM_MERGES,
        hangs: true,
    },
    Mutant {
        name: "bw_removed_node_is_read",
        file: "crates/papers/src/bw_tree/steps.rs",
        original: "self.phase != Phase::Remove",
        replacement: "self.phase != Phase::Remove || self.next.is_open()",
        why: "A reader finds in the right node what was there before it was merged away, and misses what was written since.",
        checker: LOOM_MERGES,
        hangs: false,
    },
    Mutant {
        name: "bw_merge_goes_on_in_a_held_node",
        file: "crates/papers/src/bw_tree/steps.rs",
        original: "        if !place.word.is_open() {\n            return false;",
        replacement: "        if !place.word.released().is_open() {\n            return false;",
        why: "The thread that holds the node overwrites the delta that is put on it, or brings back what has been merged away.",
        checker: LOOM_MERGES,
        hangs: true,
    },
    Mutant {
        name: "bw_slow_helper_unites_again",
        file: "crates/papers/src/bw_tree/steps.rs",
        original: "if !(self.table).exchange(left.below.id, left.word, merged.word()) {",
        replacement: "if !(self.table).exchange(left.below.id, self.table.load(left.below.id), merged.word()) {",
        why: "A helper that comes late overwrites what was written to the node since the merge.",
        checker: MERGES,
        hangs: false,
    },
    Mutant {
        name: "bw_slow_helper_deletes_the_separator_again",
        file: "crates/papers/src/bw_tree/steps.rs",
        original: "if !(self.table).exchange(abort.below.id, abort.word, shorter.word()) {",
        replacement: "if !(self.table).exchange(abort.below.id, self.table.load(abort.below.id), shorter.word()) {",
        why: "A helper that comes late takes separators away that the parent was given since, and retires nodes twice.",
        checker: LOOM_MERGES,
        hangs: false,
    },
    Mutant {
        name: "bw_separator_is_posted_over_an_abort_delta",
        file: "crates/papers/src/bw_tree/post.rs",
        original: "        if !parent.word.is_open() {",
        replacement: "        if parent.word.is_held() {",
        why: "The parent is replaced, and the abort delta lost: the merge is taken to be over, and its right node stays where it is.",
        checker: LOOM_MERGES,
        hangs: true,
    },
    Mutant {
        name: "bw_left_node_of_a_merge_is_the_one_it_was",
        file: "crates/papers/src/bw_tree/steps.rs",
        original: "            if id == merge.right {\n                return Left::Open(place);",
        replacement: "            if id == merge.right || place.id == merge.left {\n                return Left::Open(place);",
        why: "The left half of a node that has been split takes in what belongs behind the right half.",
        checker: LOOM_MERGES,
        hangs: false,
    },
    Mutant {
        name: "bw_node_under_a_remove_delta_is_not_freed",
        file: "crates/papers/src/bw_tree/free.rs",
        original: "            word = step.next;\n",
        replacement: "            if step.can_be_read() {\n                word = step.next;\n            }\n",
        why: "A tree that is dropped in the middle of a merge, which a panic has stopped, leaks what its right node has.",
        checker: PANICS,
        hangs: false,
    },
    Mutant {
        name: "bw_leaf_of_a_removed_range_stays_held",
        file: "crates/papers/src/bw_tree/ranges.rs",
        original: ".map_or(word, |plan| plan.rest.word())",
        replacement: ".map_or(word, |plan| plan.rest.word().held())",
        why: "A range removal has ended, and its leaves are held by no thread (invariant 1).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "bw_replaced_node_loses_its_low_fence",
        file: "crates/papers/src/bw_tree/node.rs",
        original: "            low: self.base.low(),",
        replacement: "            low: None,",
        why: "A new base node has another low fence than the one that it replaces (invariant 3).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "bw_right_half_keeps_the_low_fence",
        file: "crates/papers/src/bw_tree/post.rs",
        original: "                low: Some(low.stored()),",
        replacement: "                low: fences.low,",
        why: "The right half of a split does not begin where the left one ends (invariant 4).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "bw_deleted_key_is_found",
        file: "crates/papers/src/bw_tree/consolidate.rs",
        original: "(delta.change != Change::Delete).then_some(entry)",
        replacement: "Some(entry)",
        why: "A delta deletes a key that has been deleted (invariant 5).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "bw_delta_is_not_in_the_filter",
        file: "crates/papers/src/bw_tree/node.rs",
        original: "        base.announce_delta(delta.key.head);\n",
        replacement: "",
        why: "A delta is published whose bit is not in the filter (invariant 7).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "bw_offset_is_not_the_number_of_keys_below",
        file: "crates/papers/src/bw_tree/consolidate.rs",
        original: "offset: found.unwrap_or_else(|at| at),",
        replacement: "offset: found.unwrap_or_else(|at| at / 2),",
        why: "The offset of a delta is too low (invariant 8).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "bw_split_delta_is_not_announced",
        file: "crates/papers/src/bw_tree/post.rs",
        original: "            base.announce_split();\n",
        replacement: "",
        why: "A node has a split delta that its base node does not know of (invariant 9).",
        checker: INVARIANTS,
        hangs: false,
    },
    Mutant {
        name: "bw_sub_chain_is_not_frozen",
        file: "crates/papers/src/bw_tree/spread.rs",
        original: "self.sub_chains().iter().for_each(SubChain::freeze);",
        replacement: "self.sub_chains().iter().skip(1).for_each(SubChain::freeze);",
        why: "A spread leaf is replaced while a sub-chain can still be changed (invariant 10).",
        checker: INVARIANTS,
        hangs: false,
    },
];
