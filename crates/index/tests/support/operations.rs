//! Random operations, and the model with which they are compared.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use tremula_index::{Direction, KeyRange, Update};

/// An operation on an ordered map. Keys and values are given by the numbers they are made from.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Get(u32),
    Insert(u32, u32),
    InsertIfAbsent(u32, u32),
    Remove(u32),
    Update(u32, Update<u32>),
    First,
    Last,
    Next(u32),
    Prev(u32),
    PopFirst,
    PopLast,
    /// The entries of a range, up to this number.
    Scan(Range, Direction, usize),
    RemoveRange(Range),
    Count,
    /// Inserts a row of keys, upwards or downwards: the first key, the number of keys, the
    /// direction.
    Fill(u32, u32, Direction),
    /// Removes a row of keys, upwards or downwards: the first key, the number of keys, the
    /// direction.
    Drain(u32, u32, Direction),
}

/// A range of keys by their numbers.
pub(crate) type Range = (Bound<u32>, Bound<u32>);

/// The frequencies of operations in a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mix {
    /// As many insertions as removals.
    Even,
    /// More insertions, in rows.
    Growing,
    /// More removals, ranges among them.
    Shrinking,
}

/// Sequences of up to `length` operations on the keys below `keys`.
pub(crate) fn sequences(
    keys: u32,
    mix: Mix,
    length: usize,
) -> impl Strategy<Value = Vec<Operation>> {
    prop::collection::vec(operation(keys, mix), 1..=length)
}

/// One operation on the keys below `keys`.
pub(crate) fn operation(keys: u32, mix: Mix) -> impl Strategy<Value = Operation> {
    use Operation::*;
    let key = move || 0..keys;
    let value = || 0..1000_u32;
    let row = move || 1..=(keys / 4).max(1);
    let (insert, remove, pop, fill, drain, remove_range) = match mix {
        Mix::Even => (12, 12, 3, 1, 1, 1),
        Mix::Growing => (12, 3, 1, 8, 1, 1),
        Mix::Shrinking => (3, 12, 3, 2, 3, 3),
    };
    prop_oneof![
        4 => key().prop_map(Get),
        insert => (key(), value()).prop_map(|(key, value)| Insert(key, value)),
        insert => (key(), value()).prop_map(|(key, value)| InsertIfAbsent(key, value)),
        remove => key().prop_map(Remove),
        6 => (key(), decision(value())).prop_map(|(key, decision)| Update(key, decision)),
        1 => Just(First),
        1 => Just(Last),
        3 => key().prop_map(Next),
        3 => key().prop_map(Prev),
        pop => Just(PopFirst),
        pop => Just(PopLast),
        4 => (range(keys), direction(), limit(keys))
            .prop_map(|(range, direction, limit)| Scan(range, direction, limit)),
        remove_range => range(keys).prop_map(RemoveRange),
        1 => Just(Count),
        fill => (key(), row(), direction()).prop_map(|(from, n, way)| Fill(from, n, way)),
        drain => (key(), row(), direction()).prop_map(|(from, n, way)| Drain(from, n, way)),
    ]
}

/// Every kind of range, including inverted and empty ones.
pub(crate) fn range(keys: u32) -> impl Strategy<Value = Range> {
    let bound = move || {
        prop_oneof![
            2 => (0..keys).prop_map(Bound::Included),
            2 => (0..keys).prop_map(Bound::Excluded),
            1 => Just(Bound::Unbounded),
        ]
    };
    (bound(), bound())
}

/// Either direction.
pub(crate) fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)]
}

fn decision(value: impl Strategy<Value = u32>) -> impl Strategy<Value = Update<u32>> {
    prop_oneof![
        value.prop_map(Update::Put),
        Just(Update::Keep),
        Just(Update::Remove)
    ]
}

fn limit(keys: u32) -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), Just(1), 2..keys.max(3) as usize, Just(usize::MAX)]
}

/// The numbers of the keys of a row.
pub(crate) fn row(from: u32, length: u32, way: Direction, keys: u32) -> Vec<u32> {
    match way {
        Direction::Ascending => (from..(from + length).min(keys)).collect(),
        Direction::Descending => (from.saturating_sub(length)..from).rev().collect(),
    }
}

/// Makes the bounds of a range from their numbers.
pub(crate) fn bounds<K>((low, high): Range, make: impl Fn(u32) -> K) -> (Bound<K>, Bound<K>) {
    (low.map(&make), high.map(&make))
}

/// The range that refers to a pair of bounds.
pub(crate) fn as_range<K>((low, high): &(Bound<K>, Bound<K>)) -> KeyRange<'_, K> {
    KeyRange::new(low.as_ref(), high.as_ref())
}

/// At most `limit` entries of a range of the model. Does not use [`KeyRange`].
pub(crate) fn expected<K: Ord + Clone, V: Clone>(
    model: &BTreeMap<K, V>,
    range: &(Bound<K>, Bound<K>),
    direction: Direction,
    limit: usize,
) -> Vec<(K, V)> {
    let inside = model
        .iter()
        .filter(|&(key, _)| lies_within(key, range))
        .map(|(key, value)| (key.clone(), value.clone()));
    match direction {
        Direction::Ascending => inside.take(limit).collect(),
        Direction::Descending => inside.rev().take(limit).collect(),
    }
}

/// Whether a key lies inside a range.
pub(crate) fn lies_within<K: Ord>(key: &K, (low, high): &(Bound<K>, Bound<K>)) -> bool {
    let above = match low {
        Bound::Included(low) => key >= low,
        Bound::Excluded(low) => key > low,
        Bound::Unbounded => true,
    };
    let below = match high {
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
        Bound::Unbounded => true,
    };
    above && below
}
