//! Values of many types, also such as have no `Clone` of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use tremula::{OrderedMap, Update};

#[test]
fn a_mutex_in_a_counted_pointer() {
    let map = OrderedMap::new();
    map.insert(1, Arc::new(Mutex::new(0)));
    let counter = map.get(&1).unwrap();
    *counter.lock().unwrap() += 5;
    assert_eq!(
        map.get_with(&1, |counter| *counter.lock().unwrap()),
        Some(5)
    );
}

#[test]
fn a_lock_that_is_made_on_demand() {
    let map: OrderedMap<i32, Arc<RwLock<Vec<i32>>>> = OrderedMap::new();
    for number in [1, 2, 3] {
        map.get_or_insert_with(number % 2, Arc::default)
            .write()
            .unwrap()
            .push(number);
    }
    assert_eq!(*map.get(&1).unwrap().read().unwrap(), [1, 3]);
}

#[test]
fn an_atomic_in_a_counted_pointer() {
    let hits = OrderedMap::from([("home", Arc::new(AtomicU64::new(0)))]);
    hits.get_with("home", |count| count.fetch_add(1, Ordering::Relaxed));
    assert_eq!(hits.get("home").unwrap().load(Ordering::Relaxed), 1);
}

#[test]
fn a_function_pointer() {
    let commands: OrderedMap<&str, fn(i32) -> i32> = OrderedMap::new();
    commands.insert("double", |number| number * 2);
    assert_eq!(commands.get("double").map(|command| command(21)), Some(42));
}

#[test]
fn a_closure_in_a_counted_pointer() {
    type Command = Arc<dyn Fn(i32) -> i32 + Send + Sync>;
    let commands: OrderedMap<&str, Command> = OrderedMap::new();
    let base = 40;
    commands.insert("add", Arc::new(move |number| base + number));
    assert_eq!(commands.get("add").unwrap()(2), 42);
}

#[test]
fn a_trait_object_in_a_counted_pointer() {
    trait Shape: Send + Sync {
        fn area(&self) -> u32;
    }
    struct Square(u32);
    impl Shape for Square {
        fn area(&self) -> u32 {
            self.0 * self.0
        }
    }
    let map: OrderedMap<i32, Arc<dyn Shape>> = OrderedMap::new();
    map.insert(1, Arc::new(Square(3)));
    assert_eq!(map.values().map(|shape| shape.area()).sum::<u32>(), 9);
}

#[test]
fn vectors_that_grow() {
    let groups: OrderedMap<usize, Vec<&str>> = OrderedMap::new();
    for word in ["ash", "beech", "elm"] {
        groups.update(word.len(), |group| {
            let mut group = group.cloned().unwrap_or_default();
            group.push(word);
            Update::Put(group)
        });
    }
    assert_eq!(groups.get(&3).unwrap(), ["ash", "elm"]);
}

#[test]
fn a_vector_is_read_without_a_copy() {
    let map = OrderedMap::from([(1_usize, vec!["x"; 1000])]);
    assert_eq!(map.get_with(&1, Vec::len), Some(1000));
    assert_eq!(map.get_with(&1, |letters| letters[7]), Some("x"));
}

#[test]
fn a_map_of_maps() {
    let outer: OrderedMap<i32, Arc<OrderedMap<i32, char>>> = OrderedMap::new();
    outer.get_or_insert_with(1, Arc::default).insert(2, 'x');
    assert_eq!(outer.get(&1).and_then(|inner| inner.get(&2)), Some('x'));
}

#[test]
fn an_optional_value() {
    let map = OrderedMap::from([(1, Some('x')), (2, None)]);
    assert_eq!(map.get(&1).flatten(), Some('x'));
    assert_eq!((map.get(&2), map.get(&3)), (Some(None), None));
}

#[test]
fn the_last_owner_gets_the_value_out() {
    let map = OrderedMap::from([(1, Arc::new(Mutex::new(7)))]);
    let removed = map.remove(&1).unwrap();
    assert_eq!(Arc::into_inner(removed).unwrap().into_inner().unwrap(), 7);
}
