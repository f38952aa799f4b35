//! What users of `BTreeSet` and `SkipSet` type.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::thread;
use tremula::{Direction, OrderedSet};

fn odd() -> OrderedSet<i32> {
    OrderedSet::from([1, 3, 5, 7, 9])
}

#[test]
fn insert_tells_whether_the_key_is_new() {
    let seen = OrderedSet::new();
    let fresh: Vec<_> = [3, 1, 3]
        .into_iter()
        .filter(|number| seen.insert(*number))
        .collect();
    assert_eq!(fresh, [3, 1]);
}

#[test]
fn contains_a_borrowed_string() {
    let set: OrderedSet<String> = ["ash", "elm"].into_iter().map(String::from).collect();
    assert!(set.contains("ash") && !set.contains("oak"));
    assert!(set.remove("ash"));
}

#[test]
fn for_over_a_set() {
    let (set, mut sum) = (odd(), 0);
    for number in &set {
        sum += number;
    }
    for number in set {
        sum -= number;
    }
    assert_eq!(sum, 0);
}

#[test]
fn ranges_of_a_set() {
    let set = odd();
    assert!(set.range(3..8).eq([3, 5, 7]));
    assert!(set.range(..).rev().eq([9, 7, 5, 3, 1]));
    assert_eq!(set.scan(4.., Direction::Ascending, 2), [5, 7]);
    assert_eq!(set.snapshot(..=3), Some(vec![1, 3]));
}

#[test]
fn two_sets_compared() {
    let (set, prime) = (odd(), OrderedSet::from([2, 3, 5, 7]));
    assert!(set.union(&prime).eq([1, 2, 3, 5, 7, 9]));
    assert!(set.intersection(&prime).eq([3, 5, 7]));
    assert!(set.difference(&prime).eq([1, 9]));
    assert!(set.symmetric_difference(&prime).eq([1, 2, 9]));
    let common: OrderedSet<_> = set.intersection(&prime).collect();
    assert!(common.is_subset(&set) && prime.is_superset(&common));
    assert!(!set.is_disjoint(&prime));
}

#[test]
fn neighbours_in_a_set() {
    let set = odd();
    assert_eq!((set.next(&5), set.prev(&5)), (Some(7), Some(3)));
    assert_eq!(
        (set.at_or_above(&4), set.at_or_below(&4)),
        (Some(5), Some(3))
    );
    assert_eq!((set.first(), set.last()), (Some(1), Some(9)));
}

#[test]
fn a_set_is_emptied_from_both_ends() {
    let set = odd();
    assert_eq!((set.pop_first(), set.pop_last()), (Some(1), Some(9)));
    assert_eq!((set.remove_range(..6), set.len()), (2, 1));
}

#[test]
fn drain_and_retain_of_a_set() {
    let set = odd();
    assert!(set.drain(..5).eq([1, 3]));
    assert_eq!(set.retain(.., |number| number % 3 == 0), 2);
    assert!(set.into_iter().eq([9]));
}

#[test]
fn intersection_is_a_filter() {
    let (left, right) = (odd(), OrderedSet::from([3, 4, 5]));
    let both: OrderedSet<i32> = left
        .iter()
        .filter(|number| right.contains(number))
        .collect();
    assert_eq!(both, OrderedSet::from([3, 5]));
}

#[test]
fn union_is_extend() {
    let (mut left, right) = (odd(), OrderedSet::from([2, 3]));
    left.extend(&right);
    assert!(left.iter().eq([1, 2, 3, 5, 7, 9]));
}

#[test]
fn is_subset_is_all() {
    let (part, whole) = (OrderedSet::from([3, 9]), odd());
    assert!(part.iter().all(|number| whole.contains(&number)));
}

#[test]
fn a_set_from_and_into_std_sets() {
    let set: OrderedSet<i32> = HashSet::from([2, 1]).into_iter().collect();
    assert_eq!(set.iter().collect::<BTreeSet<_>>(), BTreeSet::from([1, 2]));
    assert_eq!(Vec::from_iter(set), [1, 2]);
}

#[test]
fn debug_clone_and_equality_of_a_set() {
    let set = odd();
    let copy = set.clone();
    copy.remove(&9);
    assert_ne!(set, copy);
    assert_eq!(format!("{copy:?}"), "{1, 3, 5, 7}");
}

#[test]
fn the_keys_of_a_map_as_a_set() {
    let map = tremula::OrderedMap::from([(2, ()), (1, ())]);
    let set: OrderedSet<i32> = map.keys().collect();
    assert_eq!(OrderedSet::of(map), set);
}

#[test]
fn threads_fill_a_shared_set() {
    let set = Arc::new(OrderedSet::default());
    let threads = [0, 1].map(|thread| {
        let set = Arc::clone(&set);
        thread::spawn(move || {
            (0..50)
                .filter(|number| set.insert(number * (thread + 1)))
                .count()
        })
    });
    let new: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(new, set.len());
}
