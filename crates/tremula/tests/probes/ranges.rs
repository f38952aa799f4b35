//! Ranges of every kind, by keys and by borrowed forms.

use std::ops::{Bound, RangeBounds};
use tremula::{Direction, OrderedMap};

fn tens() -> OrderedMap<i32, i32> {
    (0..10).map(|number| (number * 10, number)).collect()
}

fn trees() -> OrderedMap<String, i32> {
    ["ash", "beech", "elm", "oak"]
        .into_iter()
        .map(|tree| (tree.to_owned(), 1))
        .collect()
}

#[test]
fn the_six_range_expressions() {
    let map = tens();
    assert_eq!(map.range(..).count(), 10);
    assert_eq!(map.range(20..).count(), 8);
    assert_eq!(map.range(..20).count(), 2);
    assert_eq!(map.range(..=20).count(), 3);
    assert_eq!(map.range(20..40).count(), 2);
    assert_eq!(map.range(20..=40).count(), 3);
}

#[test]
fn a_pair_of_bounds() {
    let map = tens();
    let range = map.range((Bound::Excluded(20), Bound::Included(40)));
    assert!(range.map(|(key, _)| key).eq([30, 40]));
}

#[test]
fn a_range_of_references() {
    let map = tens();
    let (low, high) = (20, 40);
    assert_eq!(map.range(&low..&high).count(), 2);
}

#[test]
fn a_range_kept_in_a_variable() {
    let map = tens();
    let range = 20..40;
    assert_eq!(
        map.range(range.clone()).count(),
        map.scan(range, Direction::Ascending, 99).len()
    );
}

#[test]
fn a_function_generic_over_ranges() {
    fn total(map: &OrderedMap<i32, i32>, range: impl RangeBounds<i32>) -> i32 {
        map.range(range).map(|(_, value)| value).sum()
    }
    assert_eq!(total(&tens(), 80..), 17);
}

#[test]
fn an_optional_limit_becomes_a_bound() {
    let map = tens();
    let after = |key: Option<i32>| {
        let low = key.map_or(Bound::Unbounded, Bound::Excluded);
        map.range((low, Bound::Unbounded))
            .next()
            .map(|(key, _)| key)
    };
    assert_eq!(
        (after(None), after(Some(0)), after(Some(90))),
        (Some(0), Some(10), None)
    );
}

#[test]
fn the_last_below_a_limit() {
    let map = tens();
    assert_eq!(map.range(..35).next_back(), Some((30, 3)));
    assert_eq!(map.range(..35).last(), Some((30, 3)));
}

#[test]
fn the_newest_entries_first() {
    let map = tens();
    let newest: Vec<_> = map.range(..).rev().take(3).map(|(key, _)| key).collect();
    assert_eq!(newest, [90, 80, 70]);
    assert_eq!(map.scan(.., Direction::Descending, 1), [(90, 9)]);
}

#[test]
fn a_reversed_range_is_empty() {
    let (map, low, high) = (tens(), 40, 20);
    assert_eq!(map.range(low..high).next(), None);
    assert_eq!(map.remove_range(low..high), 0);
}

#[test]
fn a_range_is_removed_at_once() {
    let map = tens();
    assert_eq!(map.remove_range(..50), 5);
    assert_eq!(map.first(), Some((50, 5)));
}

#[test]
fn a_range_is_drained_into_a_vector() {
    let map = tens();
    let removed: Vec<_> = map.drain(70..).collect();
    assert_eq!((removed.len(), map.len()), (3, 7));
}

#[test]
fn split_off_is_a_drain_into_a_map() {
    let low = tens();
    let high: OrderedMap<i32, i32> = low.drain(50..).collect();
    assert_eq!((low.len(), high.len()), (5, 5));
}

#[test]
fn append_is_extend_by_a_drain() {
    let (mut to, from) = (tens(), OrderedMap::from([(5, 5), (15, 15)]));
    to.extend(from.drain(..));
    assert_eq!((to.len(), from.len()), (12, 0));
}

#[test]
fn retain_in_a_range_by_a_captured_set() {
    let map = tens();
    let keep = [20, 40];
    assert_eq!(map.retain(..60, |key, _| keep.contains(key)), 4);
    assert!(map.keys().eq([20, 40, 60, 70, 80, 90]));
}

#[test]
fn a_snapshot_outlives_the_map() {
    let snapshot = {
        let map = tens();
        map.snapshot(30..50).unwrap()
    };
    assert_eq!(snapshot, [(30, 3), (40, 4)]);
}

#[test]
fn a_range_of_strings_between_literals() {
    let map = trees();
    assert!(
        map.range_by("b".."f")
            .map(|(tree, _)| tree)
            .eq(["beech", "elm"])
    );
    assert_eq!(map.range_by("b"..).count(), 3);
    assert_eq!(map.range_by(..="elm").count(), 3);
}

#[test]
fn a_range_of_strings_between_owned_strings() {
    let map = trees();
    assert_eq!(map.range("b".to_owned().."f".to_owned()).count(), 2);
    let (low, high) = ("b".to_owned(), "f".to_owned());
    assert_eq!(map.range_by(&low..&high).count(), 2);
}

#[test]
fn a_range_of_strings_between_parts_of_a_line() {
    let map = trees();
    let line = String::from("beech oak");
    let (low, high) = line.split_once(' ').unwrap();
    assert!(
        map.range_by(low..high)
            .rev()
            .map(|(tree, _)| tree)
            .eq(["elm", "beech"])
    );
}

#[test]
fn a_pair_of_bounds_of_strings() {
    let map = trees();
    let bounds = (Bound::Excluded("ash"), Bound::Unbounded);
    assert_eq!(map.range_by(bounds).count(), 3);
    assert_eq!(
        map.scan_by(bounds, Direction::Ascending, 1),
        [("beech".to_owned(), 1)]
    );
}

#[test]
fn all_with_a_prefix() {
    let map = OrderedMap::from(["a/1", "a/2", "b/1"].map(|path| (path.to_owned(), 0)));
    let prefix = "a/";
    let inside = map
        .range_by(prefix..)
        .take_while(|(path, _)| path.starts_with(prefix));
    assert_eq!(inside.count(), 2);
}

#[test]
fn the_second_part_of_a_pair_is_unbounded() {
    let map = OrderedMap::from([(("ann", 1), 'x'), (("ann", 7), 'y'), (("ben", 2), 'z')]);
    let of_ann = map.range(("ann", i32::MIN)..=("ann", i32::MAX));
    assert!(of_ann.map(|(_, letter)| letter).eq(['x', 'y']));
}
