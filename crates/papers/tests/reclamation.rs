//! Removed and replaced values are dropped soon: the suite of `tremula-index` on the engines of
//! this crate.
#![cfg(not(any(loom, shuttle)))]

#[path = "../../index/tests/suites/reclamation.rs"]
mod suite;
mod support;

use suite::{Key, Made, Map, Value, every_test};
use support::{bw_of_spread_leaves, bw_with_deltas, bw_with_merge_deltas};
use tremula_papers::bw_tree::BwTreeConfig;
use tremula_papers::{BwTree, PaperEngine as Tested};

/// `bw_tree` in the configurations that differ in what they keep.
fn further_maps() -> [Made; 3] {
    let with = |name: &str, config: fn() -> BwTreeConfig| -> Made {
        let make = move || -> Map { Box::new(BwTree::<Key, Value>::with_config(config())) };
        (name.to_owned(), Box::new(make))
    };
    [
        with("bw_tree with deltas", bw_with_deltas),
        with("bw_tree with merge deltas", bw_with_merge_deltas),
        with("bw_tree of spread leaves", bw_of_spread_leaves),
    ]
}

every_test!();
