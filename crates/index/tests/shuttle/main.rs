//! Several threads on indexes that keep changing, under random schedules.
#![cfg(shuttle)]

mod art;
mod aspen_hot;
mod byte_keyed;
mod ca_tree;
mod forms;
mod masstree;
mod steps;
mod suite;

use suite::{engine, registered};
use tremula_index::ca_tree::{CaTree, CaTreeConfig};
use tremula_index::key::ByteHead;
use tremula_index::lfca_tree::{LfcaTree, LfcaTreeConfig};
use tremula_index::*;
use tremula_sync::StatisticsConfig;

mod every_engine {
    use super::*;

    tremula_index::index_engines!(each registered);
}

/// Thresholds so low that every second write splits, and every scan over several base nodes may
/// join.
fn restless() -> CaTreeConfig {
    let statistics = StatisticsConfig::default()
        .contended(2)
        .uncontended(-1)
        .split_above(1)
        .join_below(-1)
        .bias_after(1);
    CaTreeConfig::default()
        .statistics(statistics)
        .range_discount(4)
        .max_route_depth(4)
}

engine!(
    restless_ca_tree,
    CaTree::<_, _>::with_config(restless()),
    [
        scans_see_every_stable_key_while_the_index_changes,
        a_snapshot_is_of_one_moment,
        every_entry_is_popped_once_from_either_end,
        ranges_are_removed_whole_while_neighbours_are_written,
        increments_are_not_lost,
        ranges_that_overlap_are_removed_once,
        what_is_put_before_a_range_goes_goes_with_it,
    ]
);

/// Every other update splits, and every other query over several base nodes joins.
fn restless_lfca() -> LfcaTreeConfig {
    LfcaTreeConfig::default()
        .contended(2)
        .uncontended(1)
        .split_above(1)
        .join_below(-3)
        .range_discount(4)
        .max_route_depth(4)
}

engine!(
    restless_lfca_tree,
    LfcaTree::<_, _>::with_config(restless_lfca()),
    [
        scans_see_every_stable_key_while_the_index_changes,
        a_snapshot_is_of_one_moment,
        every_entry_is_popped_once_from_either_end,
        ranges_are_removed_whole_while_neighbours_are_written,
        increments_are_not_lost,
        ranges_that_overlap_are_removed_once,
        what_is_put_before_a_range_goes_goes_with_it,
    ]
);

// Leaves of a few entries, which split and merge at every other write.
engine!(
    aspen_of_small_leaves,
    Aspen::<_, _, ByteHead, 1>::default(),
    [
        scans_see_every_stable_key_while_the_index_changes,
        a_snapshot_is_of_one_moment,
        every_entry_is_popped_once_from_either_end,
        ranges_are_removed_whole_while_neighbours_are_written,
        increments_are_not_lost,
        ranges_that_overlap_are_removed_once,
        what_is_put_before_a_range_goes_goes_with_it,
    ]
);
