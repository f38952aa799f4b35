//! The engines of this crate under random schedules: the suite of `tremula-index`.
#![cfg(shuttle)]

#[path = "../../index/tests/shuttle/suite.rs"]
mod suite;

use suite::{engine, registered};
use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_papers::*;

tremula_papers::paper_engines!(each registered);

// Bw-trees with deltas of every kind.
engine!(
    bw_tree_with_deltas,
    BwTree::<_, _>::with_config(BwTreeConfig {
        switches: BwTreeSwitches {
            whole_inner_nodes: false,
            whole_splits: false,
            held_merges: false,
            ..BwTreeSwitches::ON
        },
        ..BwTreeConfig::default()
    }),
    [
        scans_see_every_stable_key_while_the_index_changes,
        every_entry_is_popped_once_from_either_end,
        ranges_are_removed_whole_while_neighbours_are_written,
        ranges_that_overlap_are_removed_once,
        what_is_put_before_a_range_goes_goes_with_it,
    ]
);
