//! From, into, equal, shown.

use std::collections::{BTreeMap, HashMap, HashSet};
use tremula::{Engine, OlcBTree, OrderedMap};

#[test]
fn from_an_array() {
    let map = OrderedMap::from([(2, 20), (1, 10)]);
    assert!(map.iter().eq([(1, 10), (2, 20)]));
}

#[test]
fn into_from_an_array() {
    let map: OrderedMap<_, _> = [(1, 10)].into();
    assert_eq!(map.get(&1), Some(10));
}

#[test]
fn from_iter_of_a_vector() {
    let map = OrderedMap::from_iter(vec![(1, 10), (1, 11)]);
    assert_eq!(map.get(&1), Some(11), "the later one stays");
}

#[test]
fn collect_with_half_a_type() {
    let map = (0..3).map(|n| (n, n)).collect::<OrderedMap<_, _>>();
    assert_eq!(map.len(), 3);
}

#[test]
fn collect_of_results_stops_at_the_first_error() {
    let parse = |words: &str| {
        words
            .split(' ')
            .map(|word| word.parse().map(|n: i32| (n, n)))
            .collect::<Result<OrderedMap<_, _>, _>>()
    };
    assert_eq!(parse("1 2").unwrap().len(), 2);
    assert!(parse("1 x").is_err());
}

#[test]
fn from_a_btree_map_and_back() {
    let before = BTreeMap::from([(1, 10), (2, 20)]);
    let map: OrderedMap<i32, i32> = before.clone().into_iter().collect();
    assert_eq!(map.into_iter().collect::<BTreeMap<_, _>>(), before);
}

#[test]
fn from_a_hash_map_by_extend() {
    let mut map = OrderedMap::new();
    map.extend(HashMap::from([(1, 10), (2, 20)]));
    assert_eq!(map.len(), 2);
}

#[test]
fn extend_by_another_map() {
    let mut map = OrderedMap::from([(1, 10)]);
    let other = OrderedMap::from([(2, 20)]);
    map.extend(&other);
    map.extend(other);
    assert_eq!(map.len(), 2);
}

#[test]
fn extend_by_borrowed_entries() {
    let other = BTreeMap::from([(1, 10), (2, 20)]);
    let mut map = OrderedMap::from([(3, 30)]);
    map.extend(&other);
    map.extend(other.iter().filter(|(key, _)| **key > 1));
    assert_eq!(map.len(), 3);
}

#[test]
fn extend_a_shared_map() {
    let map = std::sync::Arc::new(OrderedMap::new());
    (&*map).extend([(1, 10), (2, 20)]);
    assert_eq!(map.len(), 2);
}

#[test]
fn extend_an_engine_of_choice() {
    let mut map = OrderedMap::with_engine(Engine::BTree);
    map.extend([(1, 10), (2, 20)]);
    assert_eq!(map.len(), 2);
}

#[test]
fn from_a_sorted_iterator() {
    let map = OrderedMap::from_sorted((0..100).map(|n| (n, n))).unwrap();
    assert_eq!(map.last(), Some((99, 99)));
    assert!(OrderedMap::from_sorted([(2, 0), (1, 0)]).is_err());
}

#[test]
fn clone_is_deep() {
    let map = OrderedMap::from([(1, 10)]);
    let copy = map.clone();
    copy.insert(2, 20);
    assert_eq!((map.len(), copy.len()), (1, 2));
}

#[test]
fn equality_between_engines() {
    let map = OrderedMap::from([(1, 10)]);
    let tree = OrderedMap::on(OlcBTree::new());
    assert_ne!(map, tree);
    tree.insert(1, 10);
    assert_eq!(map, tree);
}

#[test]
fn a_map_in_an_assertion_against_an_array() {
    let map = OrderedMap::from([(1, 10), (2, 20)]);
    assert_eq!(map, [(1, 10), (2, 20)].into());
    assert_eq!(Vec::from_iter(&map), [(1, 10), (2, 20)]);
}

#[test]
fn debug_and_pretty_debug() {
    let map = OrderedMap::from([(1, 10), (2, 20)]);
    assert_eq!(format!("{map:?}"), "{1: 10, 2: 20}");
    assert_eq!(format!("{map:#?}").lines().count(), 4);
}

#[test]
fn values_without_duplicates() {
    let map = OrderedMap::from([(1, 5), (2, 5), (3, 6)]);
    assert_eq!(map.values().collect::<HashSet<_>>().len(), 2);
}
