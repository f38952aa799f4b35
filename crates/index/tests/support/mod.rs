//! What the tests of containers and engines share: keys and values to test with, random
//! operations, values that count their drops, and user code that panics on demand.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod counted;
pub(crate) mod fuse;
pub(crate) mod moments;
pub(crate) mod operations;
pub(crate) mod self_validating;
pub(crate) mod suite;
pub(crate) mod values;

use tremula_index::bw_tree::{BwTreeConfig, BwTreeSwitches};
use tremula_index::ca_tree::CaTreeConfig;
use tremula_index::lfca_tree::LfcaTreeConfig;
use tremula_sync::StatisticsConfig;

/// Thresholds so low that writes keep splitting a tree, and scans over several base nodes keep
/// joining it; and readers use their slots from the second on.
pub(crate) fn restless() -> CaTreeConfig {
    let statistics = StatisticsConfig {
        contended: 2,
        uncontended: -1,
        split_above: 3,
        join_below: -3,
        bias_after: 1,
    };
    CaTreeConfig {
        statistics,
        range_discount: 9,
        max_route_depth: 8,
    }
}

/// The same for the lock-free tree.
pub(crate) fn restless_lfca() -> LfcaTreeConfig {
    LfcaTreeConfig {
        contended: 2,
        uncontended: -1,
        split_above: 1,
        join_below: -6,
        range_discount: 5,
        max_route_depth: 8,
    }
}

/// Nodes so small that writes keep consolidating, splitting and merging them.
pub(crate) fn restless_bw() -> BwTreeConfig {
    BwTreeConfig {
        leaf_chain: 3,
        leaf_split: 6,
        leaf_merge: 2,
        leaf_contention: 1,
        inner_chain: 2,
        inner_split: 4,
        inner_merge: 1,
        switches: BwTreeSwitches::ON,
    }
}

/// The same, with deltas of every kind.
pub(crate) fn bw_with_deltas() -> BwTreeConfig {
    BwTreeConfig {
        switches: BwTreeSwitches {
            whole_inner_nodes: false,
            whole_splits: false,
            held_merges: false,
            ..BwTreeSwitches::ON
        },
        ..restless_bw()
    }
}

/// The same with those of merges only.
pub(crate) fn bw_with_merge_deltas() -> BwTreeConfig {
    BwTreeConfig {
        switches: BwTreeSwitches {
            held_merges: false,
            ..BwTreeSwitches::ON
        },
        ..restless_bw()
    }
}

/// The same, with leaves that are spread when they are consolidated, fought over or not.
pub(crate) fn bw_of_spread_leaves() -> BwTreeConfig {
    BwTreeConfig {
        leaf_contention: 0,
        ..restless_bw()
    }
}
