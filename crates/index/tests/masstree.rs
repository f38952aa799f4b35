//! What only Masstree has to get right: layers that come and go, and nodes so small that they keep
//! splitting and merging. Its invariants hold after each operation.
#![cfg(not(any(loom, shuttle)))]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use tremula_index::{ByteKey, KeyRange, Masstree, OrderedIndex, kit};

/// Keys of which most have some slices in common with others.
fn tangled() -> impl Strategy<Value = String> {
    let part = prop_oneof![Just("a"), Just("b"), Just("populus"), Just("tremula ")];
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

/// Applies `steps` to a tree and a model, and compares them after each step, and at the end while
/// all keys are removed one by one.
fn agree<K: ByteKey + std::fmt::Debug>(steps: Vec<(u8, K, K)>) {
    let tree = Masstree::<K, u64, 3>::default();
    let mut model = BTreeMap::new();
    for (number, (what, key, other)) in steps.into_iter().enumerate() {
        let value = number as u64;
        match what {
            0..=11 => assert_eq!(tree.insert(key.clone(), value), model.insert(key, value)),
            12..=18 => assert_eq!(tree.remove(&key), model.remove(&key)),
            _ => {
                let (low, high) = (key.clone().min(other.clone()), key.max(other));
                let before = model.len();
                model.retain(|key, _| *key < low || *key >= high);
                let range = KeyRange::new(Bound::Included(&low), Bound::Excluded(&high));
                assert_eq!(tree.remove_range(range), before - model.len());
            }
        }
        kit::Implementation::check_invariants(&tree);
    }
    let all = tree.snapshot(KeyRange::all()).unwrap();
    assert_eq!(all, Vec::from_iter(model));
    for (key, value) in &all {
        assert_eq!(tree.remove(key), Some(*value));
        kit::Implementation::check_invariants(&tree);
    }
    assert!(tree.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layers_match_a_model(
        steps in prop::collection::vec((0_u8..20, tangled(), tangled()), 0..200),
    ) {
        agree(steps);
    }

    #[test]
    fn small_nodes_match_a_model(
        steps in prop::collection::vec((0_u8..20, 0_u64..80, 0_u64..80), 0..300),
    ) {
        // Few ranges, because otherwise nodes would not grow.
        agree(steps.into_iter().enumerate().map(|(number, (what, key, other))| {
            (if number % 50 == 49 { what } else { what.min(18) }, key, other)
        }).collect());
    }
}
