//! Maps and sets in serde's formats: on each engine of this crate in the suite `suites/serde.rs`,
//! and here what reading makes of any input.
#![cfg(not(any(loom, shuttle)))]
#![cfg(feature = "serde")]

#[path = "suites/serde.rs"]
mod suite;
mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use suite::every_test;
use tremula_index::container::BTree;
use tremula_index::{Art, Engine as Tested, LfcaTree, Locked, Masstree, OlcBTree};
use tremula_index::{OrderedMap, OrderedSet};

every_test!();

/// A key that is equal to those of the same number, whatever its name is.
#[derive(Clone, Debug, Deserialize)]
struct Named(u32, char);

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Named {}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Named {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

proptest! {
    /// Of entries in any order, with keys that come several times, a `BTreeMap` and a `BTreeSet`
    /// keep the same ones.
    #[test]
    fn reading_keeps_the_entries_that_collections_of_std_keep(
        entries in vec((0..20_u32, any::<u16>()), 0..60),
    ) {
        let input = || MapDeserializer::<_, Error>::new(entries.iter().copied());
        let map = OrderedMap::<u32, u16>::deserialize(input()).unwrap();
        let model = BTreeMap::<u32, u16>::deserialize(input()).unwrap();
        prop_assert!(map.iter().eq(model));

        let keys = || SeqDeserializer::<_, Error>::new(entries.iter().map(|(key, _)| *key));
        let set = OrderedSet::<u32>::deserialize(keys()).unwrap();
        let model = BTreeSet::<u32>::deserialize(keys()).unwrap();
        prop_assert!(set.iter().eq(model));
    }
}

#[test]
fn of_equal_keys_the_first_is_kept_with_the_last_value() {
    let text = r#"[[7, "a"], [1, "x"], [7, "b"], [7, "c"]]"#;
    let set: OrderedSet<Named> = serde_json::from_str(text).unwrap();
    let model: BTreeSet<Named> = serde_json::from_str(text).unwrap();
    let names = |keys: &mut dyn Iterator<Item = Named>| keys.map(|key| key.1).collect::<String>();
    assert_eq!(names(&mut set.iter()), "xa");
    assert_eq!(names(&mut model.into_iter()), "xa");

    let map: OrderedMap<String, u8> = serde_json::from_str(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap();
    assert_eq!(
        map,
        OrderedMap::from([("a".to_owned(), 3), ("b".to_owned(), 2)])
    );
}

#[test]
fn a_map_is_read_into_the_engine_that_its_type_names() {
    fn read<E: tremula_index::OrderedIndex<u64, u32> + Default>(engine: &str) {
        let map: OrderedMap<u64, u32, E> = serde_json::from_str(r#"{"2": 4, "1": 1}"#).unwrap();
        assert_eq!(map.shape().engine, engine);
        assert!(map.iter().eq([(1, 1), (2, 4)]));
    }

    read::<tremula_index::CaTree<u64, u32>>("ca_tree");
    read::<LfcaTree<u64, u32>>("lfca_tree");
    read::<OlcBTree<u64, u32>>("b_tree");
    read::<Art<u64, u32>>("art");
    read::<Masstree<u64, u32>>("masstree");
    read::<Locked<u64, u32>>("locked");
    read::<Locked<u64, u32, tremula_index::key::ByteHead, BTree<u64, u32>>>("locked");
}

#[test]
fn maps_and_sets_are_fields_of_types_with_derived_traits() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Forest {
        heights: OrderedMap<String, u32>,
        #[serde(default)]
        felled: OrderedSet<(u32, u32)>,
    }

    let forest = Forest {
        heights: OrderedMap::from([("oak".to_owned(), 40)]),
        felled: OrderedSet::from([(9, 1), (2, 2)]),
    };
    let text = serde_json::to_string(&forest).unwrap();
    assert_eq!(text, r#"{"heights":{"oak":40},"felled":[[2,2],[9,1]]}"#);
    assert_eq!(serde_json::from_str::<Forest>(&text).unwrap(), forest);
    let bare: Forest = serde_json::from_str(r#"{"heights": {}}"#).unwrap();
    assert!(bare.heights.is_empty() && bare.felled.is_empty());
}

#[test]
fn what_is_no_such_map_or_set_is_an_error_that_says_so() {
    let map = |text| {
        serde_json::from_str::<OrderedMap<u32, bool>>(text)
            .unwrap_err()
            .to_string()
    };
    let set = |text| {
        serde_json::from_str::<OrderedSet<u32>>(text)
            .unwrap_err()
            .to_string()
    };
    for (error, wanted) in [
        (map("[]"), "invalid type: sequence, expected a map"),
        (map("7"), "invalid type: integer `7`, expected a map"),
        (
            map(r#"{"1": 1}"#),
            "invalid type: integer `1`, expected a boolean",
        ),
        (map(r#"{"1": true"#), "EOF while parsing"),
        (set("{}"), "invalid type: map, expected a sequence"),
        (set("[1, -1]"), "invalid value: integer `-1`, expected u32"),
    ] {
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_key_that_is_no_text_is_an_error_in_json() {
    let map = OrderedMap::from([((1, 2), 3)]);
    let error = serde_json::to_string(&map).unwrap_err();
    assert!(
        error.to_string().contains("key must be a string"),
        "{error}"
    );
}
