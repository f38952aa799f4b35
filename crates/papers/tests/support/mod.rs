//! What the tests share with those of `tremula-index`, and configurations of this crate's engines.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(unused_imports, reason = "likewise")]

#[path = "../../../index/tests/support/mod.rs"]
mod shared;

pub(crate) use shared::*;

use tremula_papers::bw_tree::{BwTreeConfig, BwTreeSwitches};

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

/// The same, with the deltas of merges only.
pub(crate) fn bw_with_merge_deltas() -> BwTreeConfig {
    BwTreeConfig {
        switches: BwTreeSwitches {
            held_merges: false,
            ..BwTreeSwitches::ON
        },
        ..restless_bw()
    }
}

/// The same, with leaves that are spread at each consolidation, contended or not.
pub(crate) fn bw_of_spread_leaves() -> BwTreeConfig {
    BwTreeConfig {
        leaf_contention: 0,
        ..restless_bw()
    }
}
