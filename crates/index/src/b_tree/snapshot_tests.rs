//! Snapshots beside writers.

use super::OlcBTree;
use crate::contract::Storable;
use crate::key::{ByteHead, ByteString};
use crate::snapshot_tests::{self, Key, Subject};
use crate::{KeyRange, OrderedIndex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Nodes of sixteen entries.
type Low<K, V> = OlcBTree<K, V, ByteHead, 0>;

impl<K: crate::key::ByteKey + Storable, V: Storable> Subject<K, V> for Low<K, V> {
    fn taken(&self, range: KeyRange<'_, K>, limit: usize) -> Vec<(K, V)> {
        self.tree.snapshot_beside_writers(range, limit)
    }

    fn check_at_rest(&self) {
        self.tree.check_at_rest();
    }
}

impl Key for ByteString {
    fn of(writer: u32, number: u32) -> Self {
        Self::from(format!("entry:{number:05}:{writer}").as_str())
    }
}

#[test]
fn a_snapshot_shows_all_that_came_before_what_it_shows() {
    snapshot_tests::shows_all_that_came_before_what_it_shows::<_, Low<ByteString, u32>>();
}

#[test]
fn a_snapshot_shows_a_step_whole_or_not_at_all() {
    snapshot_tests::shows_a_step_whole_or_not_at_all::<Low<_, _>>();
}

#[test]
fn a_snapshot_shows_the_removal_of_a_range_whole_or_not_at_all() {
    snapshot_tests::shows_the_removal_of_a_range_whole_or_not_at_all::<Low<_, _>>();
}

/// A value whose clones panic on demand.
struct Fragile(u32);

static PANICS: AtomicBool = AtomicBool::new(false);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!PANICS.load(Ordering::SeqCst), "a clone that panics");
        Self(self.0)
    }
}

#[test]
fn a_snapshot_that_panics_ends() {
    let tree = Low::<u32, Fragile>::default();
    for key in 0..100 {
        tree.insert(key, Fragile(key));
    }
    PANICS.store(true, Ordering::SeqCst);
    let taken = || {
        tree.tree
            .snapshot_beside_writers(KeyRange::all(), usize::MAX)
    };
    assert!(catch_unwind(AssertUnwindSafe(taken)).is_err());
    // No snapshot is under way any more, so a write copies nothing.
    tree.insert_if_absent(200, Fragile(200)).ok().unwrap();
    PANICS.store(false, Ordering::SeqCst);
    tree.tree.check_at_rest();
    let values = taken().into_iter().map(|(_, value)| value.0);
    assert!(values.eq((0..100).chain([200])));
}
