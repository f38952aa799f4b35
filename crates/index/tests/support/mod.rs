//! The common parts of the tests of containers and engines: keys and values to test with, random
//! operations, values that count their drops, and user code that panics on demand.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod counted;
pub(crate) mod fuse;
pub(crate) mod misled;
pub(crate) mod moments;
pub(crate) mod operations;
pub(crate) mod self_validating;
pub(crate) mod suite;
pub(crate) mod text;
pub(crate) mod values;

use tremula_index::ca_tree::CaTreeConfig;
use tremula_index::lfca_tree::LfcaTreeConfig;
use tremula_sync::StatisticsConfig;

/// Thresholds so low that writes keep splitting a tree, scans over several base nodes keep joining
/// it, and readers use their slots from the second reader on.
pub(crate) fn restless() -> CaTreeConfig {
    let statistics = StatisticsConfig::default()
        .contended(2)
        .uncontended(-1)
        .split_above(3)
        .join_below(-3)
        .bias_after(1);
    CaTreeConfig::default()
        .statistics(statistics)
        .range_discount(9)
        .max_route_depth(8)
}

/// The same for the lock-free tree.
pub(crate) fn restless_lfca() -> LfcaTreeConfig {
    LfcaTreeConfig::default()
        .contended(2)
        .uncontended(-1)
        .split_above(1)
        .join_below(-6)
        .range_discount(5)
        .max_route_depth(8)
}
