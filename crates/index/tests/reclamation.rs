//! Removed and replaced values are dropped soon: each engine in the suite `suites/reclamation.rs`.
#![cfg(not(any(loom, shuttle)))]

#[path = "suites/reclamation.rs"]
mod suite;

use std::sync::Arc;
use suite::{Made, PROMISE, Value, every_test};
use tremula_index::{Engine as Tested, KeyRange, LfcaTree, OrderedIndex};

fn further_maps() -> [Made; 0] {
    []
}

every_test!();

#[test]
fn snapshots_that_share_values_let_them_go() {
    let map = LfcaTree::<u64, Value>::new();
    let value = Arc::new(7);
    map.insert(1, Arc::clone(&value));
    let snapshot = map.capture(KeyRange::all());
    drop(map.remove(&1));
    (0..PROMISE).for_each(|turn| drop(map.get(&turn)));
    assert!(Arc::strong_count(&value) > 1, "the snapshot has it");
    drop(map);
    drop(snapshot);
    assert_eq!(Arc::strong_count(&value), 1);
}
