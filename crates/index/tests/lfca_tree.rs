//! What only the lock-free contention-adapting tree has to get right: snapshots that share its
//! memory, and base nodes that keep splitting and joining. Its invariants hold after each
//! operation.
#![cfg(not(any(loom, shuttle)))]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use tremula_index::key::{ByteHead, KeyHead, NoHead};
use tremula_index::lfca_tree::LfcaTreeConfig;
use tremula_index::{KeyRange, LfcaTree, OrderedIndex, Storable, Update, kit};

/// Applies `steps` to a tree and a model, and compares them and the snapshots that it took.
fn agree<K: Ord + Storable + Debug, H: KeyHead<K>>(
    config: LfcaTreeConfig,
    steps: impl IntoIterator<Item = (u8, K, K)>,
) {
    let tree = LfcaTree::<K, u64, H>::with_config(config);
    let mut model = BTreeMap::new();
    let mut snapshots = Vec::new();
    for (number, (what, key, other)) in steps.into_iter().enumerate() {
        let value = number as u64;
        match what {
            0..=19 => assert_eq!(tree.insert(key.clone(), value), model.insert(key, value)),
            20..=24 => assert_eq!(tree.remove(&key), model.remove(&key)),
            25 => {
                tree.update(key.clone(), &mut |_| Update::Put(value));
                model.insert(key, value);
            }
            26 => assert_eq!(tree.pop_first(), model.pop_first()),
            27 => assert_eq!(tree.pop_last(), model.pop_last()),
            28 => {
                let (low, high) = (key.clone().min(other.clone()), key.max(other));
                let before = model.len();
                model.retain(|key, _| *key < low || *key >= high);
                let range = KeyRange::new(Bound::Included(&low), Bound::Excluded(&high));
                assert_eq!(tree.remove_range(range), before - model.len());
            }
            _ => snapshots.push((tree.capture(KeyRange::all()), model.clone())),
        }
        kit::Implementation::check_invariants(&tree);
    }
    assert_eq!(
        tree.snapshot(KeyRange::all()).unwrap(),
        Vec::from_iter(model)
    );
    for (snapshot, model) in snapshots {
        assert_eq!(snapshot.to_vec(), Vec::from_iter(model));
    }
}

fn steps(keys: u64, most: usize) -> impl Strategy<Value = Vec<(u8, u64, u64)>> {
    prop::collection::vec((0_u8..30, 0..keys, 0..keys), 0..most)
}

/// A tree that splits a base node at every other update.
fn splitting() -> LfcaTreeConfig {
    LfcaTreeConfig::default()
        .contended(2)
        .uncontended(1)
        .split_above(1)
        .join_below(-6)
        .range_discount(5)
        .max_route_depth(8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_base_nodes_match_a_model(steps in steps(200, 200)) {
        agree::<u64, ByteHead>(splitting(), steps);
    }

    #[test]
    fn one_base_node_of_several_levels_matches_a_model(steps in steps(4_000, 400)) {
        // Few ranges, because otherwise the tree would not grow.
        let steps = steps.into_iter().enumerate().map(|(number, (what, key, other))| {
            let what = if what == 28 && number % 8 != 0 { 0 } else { what };
            (what, format!("key {key}"), format!("key {other}"))
        });
        agree::<String, NoHead>(LfcaTreeConfig::default(), steps);
    }
}
