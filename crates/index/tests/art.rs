//! What only the radix tree has to get right: keys that are prefixes of others or share long
//! prefixes, nodes of every kind at every depth, values that look like an empty slot.
#![cfg(not(any(loom, shuttle)))]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use tremula_index::{Art, Direction, KeyRange, OrderedIndex, kit};

type Bytes = Box<[u8]>;

/// Keys made of runs of few bytes: most are prefixes of others, and common prefixes are often
/// longer than what a node stores.
fn tangled() -> impl Strategy<Value = Bytes> {
    let run = (0_u8..3, prop_oneof![3 => 1_usize..3, 1 => 10_usize..16]);
    prop::collection::vec(run, 0..6).prop_map(|runs| {
        let bytes = runs
            .into_iter()
            .flat_map(|(byte, length)| std::iter::repeat_n(byte * 120, length));
        bytes.collect()
    })
}

/// Keys that fan out at one of three depths, so that nodes of all kinds occur.
fn fanning() -> impl Strategy<Value = Bytes> {
    (0_usize..3, any::<u8>(), any::<bool>()).prop_map(|(depth, byte, longer)| {
        let mut bytes = vec![7; depth * 13];
        bytes.push(byte);
        if longer {
            bytes.push(1);
        }
        bytes.into()
    })
}

fn entries<K: tremula_index::ByteKey>(tree: &Art<K, u64>) -> Vec<(K, u64)> {
    tree.snapshot(KeyRange::all()).unwrap()
}

/// Applies `steps` to a tree and a model, and compares them after each step.
fn agree(steps: Vec<(u8, Bytes, Bytes)>) {
    let tree = Art::<Bytes, u64>::new();
    let mut model = BTreeMap::new();
    for (number, (what, key, other)) in steps.into_iter().enumerate() {
        let value = number as u64;
        match what {
            0..=5 => assert_eq!(tree.insert(key.clone(), value), model.insert(key, value)),
            6..=8 => assert_eq!(tree.remove(&key), model.remove(&key)),
            _ => {
                let (low, high) = (key.clone().min(other.clone()), key.max(other));
                let before = model.len();
                model.retain(|key, _| *key < low || *key >= high);
                let range = KeyRange::new(Bound::Included(&low), Bound::Excluded(&high));
                assert_eq!(tree.remove_range(range), before - model.len());
            }
        }
        assert_eq!(tree.len(), model.len());
    }
    kit::Implementation::check_invariants(&tree);
    let all = Vec::from_iter(model.clone());
    assert_eq!(entries(&tree), all);
    let mut down = Vec::new();
    tree.scan(
        KeyRange::all(),
        Direction::Descending,
        usize::MAX,
        &mut down,
    );
    down.reverse();
    assert_eq!(down, all);
    for (key, value) in &model {
        assert_eq!(tree.get(key), Some(*value));
        let above = model.range::<Bytes, _>((Bound::Excluded(key), Bound::Unbounded));
        let next = above.map(|(key, value)| (key.clone(), *value)).next();
        assert_eq!(tree.next(key), next);
    }
    // A bulk load of the same entries makes the same tree, in nodes no larger.
    let loaded = Art::from_sorted(all.clone()).unwrap();
    kit::Implementation::check_invariants(&loaded);
    assert_eq!(entries(&loaded), all);
    assert!(loaded.shape().get("bytes") <= tree.shape().get("bytes"));
    let keys: Vec<Bytes> = model.keys().cloned().collect();
    let mut found = Vec::new();
    loaded.get_many(&keys, &mut found);
    assert!(found.into_iter().eq(model.values().copied().map(Some)));
    // A loaded tree can be changed and emptied.
    for (key, value) in &all {
        assert_eq!(loaded.pop_first(), Some((key.clone(), *value)));
    }
    assert!(loaded.is_empty());
    let shape = loaded.shape();
    let nodes = ["nodes_4", "nodes_16", "nodes_48", "nodes_256"];
    let left: u64 = nodes.iter().map(|kind| shape.get(kind).unwrap()).sum();
    assert_eq!(left, 1, "{shape:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_that_are_prefixes_of_others_match_a_model(
        steps in prop::collection::vec((0_u8..10, tangled(), tangled()), 0..120),
    ) {
        agree(steps);
    }

    #[test]
    fn nodes_of_every_kind_match_a_model(
        steps in prop::collection::vec((0_u8..10, fanning(), fanning()), 0..900),
    ) {
        // Few ranges, because otherwise nodes would not grow.
        agree(steps.into_iter().enumerate().map(|(number, (what, key, other))| {
            (if number % 100 == 99 { what } else { what.min(8) }, key, other)
        }).collect());
    }
}

#[test]
fn each_kind_of_node_grows_into_the_next_and_shrinks_back() {
    let tree = Art::<u64, u64>::new();
    let kinds = |tree: &Art<u64, u64>| {
        let shape = tree.shape();
        ["nodes_4", "nodes_16", "nodes_48", "nodes_256"].map(|kind| shape.get(kind).unwrap())
    };
    let mut seen = Vec::new();
    for key in 0..256 {
        tree.insert(key, key);
        seen.push(kinds(&tree));
    }
    for key in (0..256).rev() {
        seen.push(kinds(&tree));
        assert_eq!(tree.remove(&key), Some(key));
    }
    // The root is full from start to end.
    assert_eq!(seen[0], [0, 0, 0, 1]);
    assert_eq!([seen[3], seen[4]], [[1, 0, 0, 1], [0, 1, 0, 1]]);
    assert_eq!([seen[15], seen[16]], [[0, 1, 0, 1], [0, 0, 1, 1]]);
    assert_eq!([seen[47], seen[48]], [[0, 0, 1, 1], [0, 0, 0, 2]]);
    let down = |entries: usize| seen[512 - entries];
    assert_eq!([down(38), down(37)], [[0, 0, 0, 2], [0, 0, 1, 1]]);
    assert_eq!([down(13), down(12)], [[0, 0, 1, 1], [0, 1, 0, 1]]);
    assert_eq!([down(4), down(3)], [[0, 1, 0, 1], [1, 0, 0, 1]]);
    assert_eq!([down(2), down(1)], [[1, 0, 0, 1], [0, 0, 0, 1]]);
    assert_eq!(kinds(&tree), [0, 0, 0, 1]);
}

#[test]
fn a_full_node_that_gets_a_prefix_is_not_passed_unseen() {
    let tree = Art::<Bytes, u64>::new();
    let key = |byte: u8| Bytes::from([1, 2, byte]);
    for byte in 0..=255 {
        tree.insert(key(byte), byte.into());
    }
    // A neighbour of the full node; the node between it and the root goes with it.
    let neighbour = Bytes::from([1, 3]);
    tree.insert(neighbour.clone(), 256);
    assert_eq!(tree.remove(&neighbour), Some(256));
    kit::Implementation::check_invariants(&tree);
    for byte in 0..=255 {
        assert_eq!(tree.get(&key(byte)), Some(byte.into()));
    }
}

#[test]
fn every_value_is_a_value() {
    // The test finds the content of vacant slots in full nodes by storing exactly that.
    let vacant = 0x7e5a_0b5e_d001_1d0d;
    let tree = Art::<u8, u64>::new();
    assert_eq!(tree.get(&3), None);
    for value in [vacant, 0, 1, u64::MAX] {
        tree.insert(3, value);
        assert_eq!(tree.get(&3), Some(value));
        assert_eq!(entries(&tree), [(3, value)]);
        let mut found = Vec::new();
        tree.get_many(&[3, 4], &mut found);
        assert_eq!(found, [Some(value), None]);
    }
    assert_eq!(tree.insert_if_absent(3, vacant), Err(vacant));
    assert_eq!(tree.remove(&3), Some(u64::MAX));
    assert_eq!(tree.get(&3), None);
}

#[test]
fn dense_integers_take_little_more_than_their_values() {
    let tree = Art::<u64, u64>::new();
    for key in 0..100_000 {
        tree.insert(key, key);
    }
    let shape = tree.shape();
    assert!(shape.get("bytes").unwrap() < 100_000 * 10, "{shape:?}");
}

#[test]
fn unsorted_input_is_refused_by_name_and_freed() {
    let unsorted = [("a", "1"), ("ab", "2"), ("aa", "3")].map(|(k, v)| (k, v.to_owned()));
    let refused = Art::from_sorted(unsorted).err();
    assert_eq!(refused.map(|error| error.position), Some(2));
    assert!(Art::<u64, u64>::from_sorted([]).unwrap().is_empty());
}

#[test]
fn a_chain_of_prefixes_of_any_length_is_walked_without_recursion() {
    // Each key is a prefix of the next, so one path has a node for every key.
    let tree = Art::<Bytes, u64>::new();
    let length = 3_000;
    for number in 0..length {
        tree.insert(vec![1; number].into(), number as u64);
    }
    assert_eq!(tree.shape().get("depth"), Some(length as u64 - 1));
    assert!(
        entries(&tree)
            .iter()
            .map(|(_, value)| *value)
            .eq(0..length as u64)
    );
    let low: Bytes = vec![1; 10].into();
    let above = KeyRange::new(Bound::Excluded(&low), Bound::Unbounded);
    assert_eq!(tree.remove_range(above), length - 11);
}
