//! Maps in structs, statics and behind traits.

use std::sync::{Arc, LazyLock, OnceLock};
use tremula::index::RegisteredEngine;
use tremula::{CaTree, Engine, Locked, OlcBTree, OrderedIndex, OrderedMap, OrderedSet};

static SETTINGS: LazyLock<OrderedMap<String, i32>> =
    LazyLock::new(|| OrderedMap::from([("port".to_owned(), 80)]));

#[test]
fn a_static_map() {
    SETTINGS.insert("timeout".to_owned(), 30);
    assert_eq!(SETTINGS.get("port"), Some(80));
    assert!(SETTINGS.iter().any(|(name, _)| name == "timeout"));
}

#[test]
fn a_static_map_that_is_set_later() {
    static MAP: OnceLock<OrderedMap<i32, char>> = OnceLock::new();
    MAP.get_or_init(OrderedMap::new).insert(1, 'a');
    assert_eq!(MAP.get().map(OrderedMap::len), Some(1));
}

#[test]
fn a_map_of_one_thread() {
    thread_local! {
        static SEEN: OrderedSet<i32> = OrderedSet::new();
    }
    assert!(SEEN.with(|seen| seen.insert(1)));
    assert!(!SEEN.with(|seen| seen.insert(1)));
}

#[test]
fn a_struct_with_derived_traits() {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    struct Registry {
        names: OrderedMap<i32, char>,
        seen: OrderedSet<i32>,
    }
    let registry = Registry::default();
    registry.names.insert(1, 'a');
    assert_eq!(registry.clone(), registry);
    assert_eq!(
        format!("{registry:?}"),
        "Registry { names: {1: 'a'}, seen: {} }"
    );
}

#[test]
fn a_struct_generic_over_keys_and_values() {
    struct Cache<K, V> {
        entries: OrderedMap<K, V>,
    }
    impl<K, V> Cache<K, V>
    where
        K: Ord + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        fn get(&self, key: K, make: impl FnOnce(&K) -> V) -> V {
            self.entries.get_or_insert_with(key.clone(), || make(&key))
        }
    }
    let cache = Cache {
        entries: OrderedMap::new(),
    };
    assert_eq!(cache.get(2, |number| number * 2), 4);
}

#[test]
fn a_function_generic_over_engines() {
    fn total<E: OrderedIndex<i32, i32>>(map: &OrderedMap<i32, i32, E>) -> i32 {
        map.values().sum()
    }
    let map = OrderedMap::from([(1, 10), (2, 20)]);
    let tree: OrderedMap<i32, i32, OlcBTree<i32, i32>> = OrderedMap::on(OlcBTree::new());
    tree.insert(1, 7);
    assert_eq!((total(&map), total(&tree)), (30, 7));
}

#[test]
fn a_function_generic_over_registered_engines() {
    fn name(engine: impl RegisteredEngine) -> &'static str {
        OrderedMap::<i32, i32, _>::with_engine(engine)
            .shape()
            .engine
    }
    assert_eq!(name(Engine::BTree), "b_tree");
}

#[test]
fn a_shared_trait_object() {
    let index: Arc<dyn OrderedIndex<i32, i32>> = Arc::new(CaTree::new());
    index.insert(1, 10);
    let map = OrderedMap::on(Arc::clone(&index));
    map.insert(2, 20);
    assert_eq!((index.len(), map.get(&1)), (2, Some(10)));
}

#[test]
fn engines_in_a_vector() {
    let engines: Vec<Box<dyn OrderedIndex<i32, i32>>> = vec![
        Box::new(CaTree::new()),
        Box::new(OlcBTree::new()),
        Box::new(Locked::new()),
    ];
    for engine in &engines {
        assert_eq!(engine.insert(1, 1), None);
    }
    assert!(engines.iter().all(|engine| engine.contains_key(&1)));
}

#[test]
fn a_function_that_takes_a_trait_object() {
    fn largest(index: &dyn OrderedIndex<i32, i32>) -> Option<i32> {
        index.last().map(|(key, _)| key)
    }
    let map = OrderedMap::from([(1, 1), (5, 5)]);
    assert_eq!(largest(map.engine()), Some(5));
}

#[test]
fn a_map_over_a_borrowed_engine() {
    let tree = CaTree::new();
    let map = OrderedMap::on(&tree);
    map.insert(1, 10);
    assert_eq!(tree.get(&1), Some(10));
}

#[test]
fn a_named_type_of_a_map() {
    type Index = OrderedMap<i32, i32, OlcBTree<i32, i32>>;
    let index = Index::on(OlcBTree::new());
    index.insert(3, 9);
    assert_eq!(index.into_engine().get(&3), Some(9));
}

#[test]
fn a_map_in_an_option_that_is_taken() {
    let mut slot = Some(OrderedMap::from([(1, 1)]));
    let map = slot.take().unwrap_or_default();
    assert_eq!((map.len(), slot.is_none()), (1, true));
}
