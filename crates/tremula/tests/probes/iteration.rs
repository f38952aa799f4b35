//! Loops and iterator adaptors.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use tremula::{Direction, OrderedMap};

fn squares() -> OrderedMap<i32, i32> {
    (0..10).map(|number| (number, number * number)).collect()
}

#[test]
fn for_over_a_reference() {
    let map = squares();
    let mut sum = 0;
    for (number, square) in &map {
        sum += number + square;
    }
    assert_eq!(sum, 45 + 285);
}

#[test]
fn for_over_the_map_itself() {
    let mut last = None;
    for (number, _) in squares() {
        last = Some(number);
    }
    assert_eq!(last, Some(9));
}

#[test]
fn for_over_a_shared_pointer() {
    let map = std::sync::Arc::new(squares());
    let mut count = 0;
    for _ in map.iter() {
        count += 1;
    }
    assert_eq!(count, map.len());
}

#[test]
fn insertion_and_removal_inside_a_loop() {
    let map = squares();
    for (number, square) in &map {
        if number % 2 == 0 {
            map.remove(&number);
        } else {
            map.insert(number, -square);
        }
    }
    assert!(map.values().eq([-1, -9, -25, -49, -81]));
}

#[test]
fn values_in_place_by_a_loop_of_updates() {
    let map = squares();
    for key in map.keys() {
        map.update(key, |value| {
            value.map_or(tremula::Update::Keep, |v| tremula::Update::Put(v + 1))
        });
    }
    assert_eq!(map.values().sum::<i32>(), 285 + 10);
}

#[test]
fn rev_skip_step_take() {
    let map = squares();
    let keys: Vec<_> = map.keys().rev().skip(1).step_by(3).take(2).collect();
    assert_eq!(keys, [8, 5]);
}

#[test]
fn both_ends_in_turn() {
    let map = squares();
    let mut entries = map.iter();
    assert_eq!(entries.next(), Some((0, 0)));
    assert_eq!(entries.next_back(), Some((9, 81)));
    assert_eq!(entries.len_left(), 8);
}

/// A user's own extension of iterators.
trait LenLeft: Iterator + Sized {
    fn len_left(self) -> usize {
        self.count()
    }
}

impl<I: Iterator> LenLeft for I {}

#[test]
fn peekable() {
    let map = squares();
    let mut entries = map.iter().peekable();
    assert_eq!(entries.peek(), Some(&(0, 0)));
    assert_eq!(entries.next_if(|(number, _)| *number == 0), Some((0, 0)));
}

#[test]
fn zip_of_keys_and_values() {
    let map = squares();
    assert!(map.keys().zip(map.values()).eq(&map));
}

#[test]
fn enumerate_and_find() {
    let map = squares();
    let found = map.iter().enumerate().find(|(_, (_, square))| *square > 30);
    assert_eq!(found, Some((6, (6, 36))));
}

#[test]
fn any_all_position() {
    let map = squares();
    assert!(map.values().any(|square| square == 49));
    assert!(map.keys().all(|number| number < 10));
    assert_eq!(map.values().position(|square| square == 49), Some(7));
}

#[test]
fn min_and_max_by_value() {
    let map = OrderedMap::from([(1, 5), (2, 9), (3, 2)]);
    let best = map.iter().max_by_key(|(_, score)| *score);
    assert_eq!(best, Some((2, 9)));
    assert_eq!(map.values().min(), Some(2));
}

#[test]
fn partition_and_unzip() {
    let (even, odd): (Vec<_>, Vec<_>) = squares().into_iter().partition(|(key, _)| key % 2 == 0);
    let (keys, _): (Vec<i32>, Vec<i32>) = even.into_iter().unzip();
    assert_eq!((keys, odd.len()), (vec![0, 2, 4, 6, 8], 5));
}

#[test]
fn fold_and_try_fold() {
    let map = squares();
    let digits = map
        .keys()
        .fold(String::new(), |text, key| text + &key.to_string());
    assert_eq!(digits, "0123456789");
    let product = map
        .keys()
        .try_fold(1_i32, |product, key| product.checked_mul(key + 100_000));
    assert_eq!(product, None);
}

#[test]
fn collect_into_std_collections() {
    let map = squares();
    let vec: Vec<(i32, i32)> = map.iter().collect();
    let hash: HashMap<_, _> = map.iter().collect();
    let tree: BTreeMap<_, _> = map.iter().collect();
    assert_eq!((vec.len(), hash[&3], tree[&4]), (10, 9, 16));
}

#[test]
fn filter_map_into_another_map() {
    let map = squares();
    let inverse: OrderedMap<i32, i32> = map
        .iter()
        .filter_map(|(number, square)| (square > 50).then_some((square, number)))
        .collect();
    assert!(inverse.into_iter().eq([(64, 8), (81, 9)]));
}

#[test]
fn chain_of_two_maps() {
    let (left, right) = (squares(), squares());
    assert_eq!(left.iter().chain(&right).count(), 20);
}

#[test]
fn pairs_of_neighbours() {
    let map = squares();
    let gaps: Vec<_> = map
        .values()
        .zip(map.values().skip(1))
        .map(|(a, b)| b - a)
        .collect();
    assert_eq!(gaps[..3], [1, 3, 5]);
}

#[test]
fn keys_and_values_of_a_consumed_map() {
    let entries: Vec<_> = squares().into_iter().collect();
    let (keys, values) = (squares().into_keys(), squares().into_values());
    assert_eq!(keys.len(), 10);
    assert!(keys.zip(values).eq(entries));
}

#[test]
fn a_question_mark_inside_for_each() {
    let map = squares();
    let mut seen = 0;
    let stopped = map.for_each(.., Direction::Ascending, |key, _| {
        seen += 1;
        if *key == 3 {
            ControlFlow::Break("at three")
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!((stopped.break_value(), seen), (Some("at three"), 4));
}

#[test]
fn an_iterator_in_a_struct() {
    struct Cursor<'a> {
        entries: tremula::index::ordered_map::Range<i32, i32, &'a OrderedMap<i32, i32>>,
    }
    let map = squares();
    let mut cursor = Cursor {
        entries: map.iter(),
    };
    assert_eq!(cursor.entries.nth(2), Some((2, 4)));
}

#[test]
fn an_iterator_returned_from_a_function() {
    fn large(map: &OrderedMap<i32, i32>, limit: i32) -> impl Iterator<Item = i32> {
        map.values().filter(move |value| *value > limit)
    }
    assert_eq!(large(&squares(), 60).count(), 2);
}

#[test]
fn a_boxed_iterator() {
    let map = squares();
    let down = true;
    let keys: Box<dyn Iterator<Item = i32>> = if down {
        Box::new(map.keys().rev())
    } else {
        Box::new(map.keys())
    };
    assert_eq!(keys.take(2).collect::<Vec<_>>(), [9, 8]);
}
