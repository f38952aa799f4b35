//! Single entries, as users of `BTreeMap`, `SkipMap`, scc and `DashMap` reach for them.

use tremula::{Engine, OlcBTree, OrderedMap, Update};

fn letters() -> OrderedMap<i32, char> {
    OrderedMap::from([(1, 'a'), (2, 'b'), (3, 'c')])
}

#[test]
fn an_unannotated_map_learns_its_types_from_the_first_insert() {
    let map = OrderedMap::new();
    map.insert(7, 'x');
    assert_eq!(map.get(&7), Some('x'));
}

#[test]
fn insert_returns_the_replaced_value() {
    let map = letters();
    assert_eq!(map.insert(2, 'z'), Some('b'));
    assert_eq!(map.insert(4, 'd'), None);
}

#[test]
fn if_let_on_a_lookup() {
    let map = letters();
    if let Some(letter) = map.get(&3) {
        assert_eq!(letter, 'c');
    } else {
        unreachable!("it is there");
    }
}

#[test]
fn get_with_a_fallback() {
    let map = letters();
    assert_eq!(map.get(&9).unwrap_or('?'), '?');
    assert_eq!(map.get(&9).unwrap_or_default(), char::default());
}

#[test]
fn a_match_on_insert_if_absent() {
    let map = letters();
    match map.insert_if_absent(1, 'x') {
        Ok(()) => unreachable!("1 is taken"),
        Err(refused) => assert_eq!(refused, 'x'),
    }
}

#[test]
fn entry_or_insert_is_get_or_insert_with() {
    let map = letters();
    assert_eq!(map.get_or_insert_with(1, || 'x'), 'a');
    assert_eq!(map.get_or_insert_with(5, || 'e'), 'e');
}

#[test]
fn and_modify_or_insert_is_update() {
    let map = OrderedMap::new();
    for word in ["to", "be", "or", "not", "to", "be"] {
        map.update(word, |count| Update::Put(count.map_or(1, |n| n + 1)));
    }
    assert_eq!(map.get("be"), Some(2));
}

#[test]
fn a_closure_of_update_may_move_a_local() {
    let map: OrderedMap<i32, String> = OrderedMap::new();
    let text = String::from("moved");
    map.update(1, |_| Update::Put(text));
    assert_eq!(map.get(&1).as_deref(), Some("moved"));
}

#[test]
fn a_closure_of_update_may_write_to_a_local() {
    let map = letters();
    let mut seen = None;
    map.update(2, |letter| {
        seen = letter.copied();
        Update::Keep
    });
    assert_eq!(seen, Some('b'));
}

#[test]
fn a_closure_of_get_with_may_push_to_a_local() {
    let map = letters();
    let mut text = String::new();
    map.get_with(&1, |letter| text.push(*letter));
    assert_eq!(text, "a");
}

#[test]
fn update_decides_by_match() {
    let map = letters();
    let old = map.update(1, |letter| match letter {
        Some('a') => Update::Put('A'),
        Some(_) => Update::Keep,
        None => Update::Put('?'),
    });
    assert_eq!((old, map.get(&1)), (Some('a'), Some('A')));
}

#[test]
fn update_removes() {
    let map = letters();
    assert_eq!(map.update(1, |_| Update::Remove), Some('a'));
    assert!(!map.contains_key(&1));
}

#[test]
fn a_retry_loop_over_compare_exchange() {
    let map = OrderedMap::from([("hits", 0)]);
    let mut current = 0;
    while let Err(found) = map.compare_exchange("hits", &current, current + 5) {
        current = found.expect("nobody removes it");
    }
    assert_eq!(map.get("hits"), Some(5));
}

#[test]
fn remove_returns_the_owned_value() {
    let map: OrderedMap<i32, String> = [(1, "one".to_owned())].into();
    let one: String = map.remove(&1).unwrap();
    assert_eq!((one.as_str(), map.remove(&1)), ("one", None));
}

#[test]
fn remove_if_with_a_captured_limit() {
    let map = OrderedMap::from([("old", 3), ("new", 9)]);
    let limit = 5;
    assert_eq!(map.remove_if("old", |age| *age < limit), Some(3));
    assert_eq!(map.remove_if("new", |age| *age < limit), None);
}

#[test]
fn first_and_last_are_destructured() {
    let map = letters();
    let (Some((low, _)), Some((high, _))) = (map.first_key_value(), map.last_key_value()) else {
        unreachable!("it is not empty");
    };
    assert_eq!((low, high), (1, 3));
}

#[test]
fn a_queue_is_emptied_by_pop_first() {
    let map = letters();
    let mut text = String::new();
    while let Some((_, letter)) = map.pop_first() {
        text.push(letter);
    }
    assert_eq!((text.as_str(), map.is_empty()), ("abc", true));
}

#[test]
fn a_stack_is_emptied_by_pop_last() {
    let map = letters();
    let keys: Vec<i32> = std::iter::from_fn(|| map.pop_last())
        .map(|(key, _)| key)
        .collect();
    assert_eq!(keys, [3, 2, 1]);
}

#[test]
fn floor_and_ceiling() {
    let map = OrderedMap::from([(10, 'x'), (20, 'y')]);
    let floor = |key| map.at_or_below(&key).map(|(key, _)| key);
    let ceiling = |key| map.at_or_above(&key).map(|(key, _)| key);
    assert_eq!((floor(15), ceiling(15)), (Some(10), Some(20)));
    assert_eq!((floor(9), ceiling(21)), (None, None));
}

#[test]
fn a_walk_by_next() {
    let map = letters();
    let mut visited = Vec::new();
    let mut at = map.first();
    while let Some((key, letter)) = at {
        visited.push(letter);
        at = map.next(&key);
    }
    assert_eq!(visited, ['a', 'b', 'c']);
}

#[test]
fn get_many_of_a_slice() {
    let map = letters();
    let keys = vec![1, 9, 3];
    assert_eq!(map.get_many(&keys), [Some('a'), None, Some('c')]);
}

#[test]
fn clear_and_use_again() {
    let map = letters();
    map.clear();
    map.insert(1, 'n');
    assert_eq!(map.len(), 1);
}

#[test]
fn a_map_on_an_engine_by_its_type() {
    let map = OrderedMap::on(OlcBTree::new());
    map.insert(1, 'a');
    assert_eq!((map.get(&1), map.shape().engine), (Some('a'), "b_tree"));
}

#[test]
fn every_engine_from_its_name() {
    for engine in Engine::ALL {
        let name = engine.to_string();
        assert_eq!(name.parse::<Engine>(), Ok(engine));
        let map = OrderedMap::with_engine(engine);
        map.insert(1, 'a');
        assert_eq!(map.shape().engine, name);
    }
}
