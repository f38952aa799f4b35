//! Every container against the trait [`Container`]: a model, split and join at every size and
//! shape, drop counts, and panics in user code. The invariants of the structure are checked
//! after every step.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::support::counted::{Counted, Ledger};
use crate::support::operations::{
    Mix, Operation, as_range, bounds, expected, lies_within, operation, row,
};
use crate::support::suite::Random;
use crate::support::values::{Key, Value};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::{Bound, ControlFlow};
use tremula_index::container::Container;
use tremula_index::{Direction, KeyRange, Update};

/// Runs the suite for a container.
macro_rules! container {
    ($name:ident, $container:ident) => {
        mod $name {
            use super::*;

            #[test]
            fn random_operations_match_a_model() {
                suite::model::<u64, u64, $container<_, _>>();
            }

            #[test]
            fn random_operations_on_strings_match_a_model() {
                suite::model::<String, String, $container<_, _>>();
            }

            #[test]
            fn random_operations_on_pairs_match_a_model() {
                suite::model::<(u8, String), u64, $container<_, _>>();
            }

            #[test]
            fn random_operations_on_byte_strings_without_values_match_a_model() {
                suite::model::<Box<[u8]>, (), $container<_, _>>();
            }

            #[test]
            fn every_range_of_every_small_tree_is_split_off_and_joined_again() {
                suite::splits_at_every_position::<$container<_, _>>();
            }

            #[test]
            fn large_trees_are_split_and_joined_again() {
                suite::splits_of_large_trees::<$container<_, _>>();
            }

            #[test]
            fn trees_of_every_pair_of_sizes_join() {
                suite::joins_of_every_pair::<$container<_, _>>();
            }

            #[test]
            fn a_tree_split_down_to_single_entries_joins_in_any_order() {
                suite::splits_to_the_end::<$container<_, _>>();
            }

            #[test]
            fn splits_are_near_the_middle_and_depth_is_logarithmic() {
                suite::shapes::<$container<_, _>>();
            }

            #[test]
            fn removals_merge_small_nodes() {
                suite::sparse::<$container<_, _>>();
            }

            #[test]
            fn everything_made_is_dropped_once() {
                suite::drops::<$container<_, _>>();
            }
        }
    };
}

pub(crate) use container;

/// The orders in which a container is filled.
const ORDERS: [Order; 3] = [Order::Ascending, Order::Descending, Order::Mixed];

#[derive(Clone, Copy, Debug)]
enum Order {
    Ascending,
    Descending,
    Mixed,
}

/// The container of the keys `from..to`, each with its own number as value, inserted in `order`.
fn build<C: Container<u32, u32>>(from: u32, to: u32, order: Order) -> C {
    let mut keys: Vec<u32> = (from..to).collect();
    match order {
        Order::Ascending => {}
        Order::Descending => keys.reverse(),
        Order::Mixed => {
            let mut random = Random::new(to);
            for place in (1..keys.len()).rev() {
                keys.swap(place, random.below(place as u32 + 1) as usize);
            }
        }
    }
    let mut container = C::default();
    for key in keys {
        assert_eq!(container.insert(key, key), None);
    }
    container
}

/// Panics unless the container is valid and holds exactly the keys `from..to` with their own
/// numbers.
fn assert_holds<C: Container<u32, u32>>(container: &C, from: u32, to: u32) {
    container.check();
    let mut wanted = from..to;
    let _ = container.visit(KeyRange::all(), Direction::Ascending, &mut |key, value| {
        assert_eq!(Some(*key), wanted.next());
        assert_eq!(key, value);
        ControlFlow::Continue(())
    });
    assert_eq!(wanted.next(), None, "entries are missing");
    assert_eq!(container.is_empty(), from >= to);
    assert_eq!(container.count() as u32, to.saturating_sub(from));
}

/// The entries of a container, visited in one direction.
fn entries<K: Ord + Clone, V: Clone, C: Container<K, V>>(
    container: &C,
    range: KeyRange<'_, K>,
    direction: Direction,
    limit: usize,
) -> Vec<(K, V)> {
    let mut entries = Vec::new();
    if limit == 0 {
        return entries;
    }
    let outcome = container.visit(range, direction, &mut |key, value| {
        entries.push((key.clone(), value.clone()));
        if entries.len() == limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(outcome.is_break(), entries.len() == limit, "broke");
    entries
}

/// Joins, with the first key of the upper part as the separator.
fn append<C: Container<u32, u32>>(lower: &mut C, upper: C) {
    if let Some((first, _)) = upper.first() {
        let first = *first;
        lower.join(first, upper);
    }
}

/// A step of the model test: an operation that engines also have, or a split.
#[derive(Clone, Debug)]
enum Step {
    Do(Operation),
    /// Splits near the middle, and then keeps parts as this says.
    Split(Keep),
}

#[derive(Clone, Copy, Debug)]
enum Keep {
    Lower,
    Upper,
    Both,
}

/// Random sequences of all operations return the same results, and leave the same contents, as on a
/// `BTreeMap`.
pub(crate) fn model<K: Key, V: Value, C: Container<K, V>>() {
    for (keys, mix, length, cases) in [
        (12, Mix::Even, 120, 300),
        (200, Mix::Shrinking, 120, 300),
        (20_000, Mix::Growing, 60, 60),
        (20_000, Mix::Shrinking, 60, 60),
    ] {
        let config = ProptestConfig {
            cases: if cfg!(tremula_tsan) { 5 } else { cases },
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let keep = prop_oneof![
            1 => Just(Keep::Lower),
            1 => Just(Keep::Upper),
            8 => Just(Keep::Both)
        ];
        let step = prop_oneof![
            12 => operation(keys, mix).prop_map(Step::Do),
            1 => keep.prop_map(Step::Split),
        ];
        let steps = prop::collection::vec(step, 1..=length);
        let result = TestRunner::new(config).run(&steps, |steps| {
            let mut container = C::default();
            let mut model = BTreeMap::new();
            for step in &steps {
                match step {
                    Step::Do(operation) => apply(&mut container, &mut model, operation, keys),
                    Step::Split(keep) => split(&mut container, &mut model, *keep),
                }
                container.check();
            }
            let all = entries(
                &container,
                KeyRange::all(),
                Direction::Ascending,
                usize::MAX,
            );
            assert_eq!(all, Vec::from_iter(model));
            Ok(())
        });
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Applies `operation` to container and model, and compares the results.
fn apply<K: Key, V: Value, C: Container<K, V>>(
    container: &mut C,
    model: &mut BTreeMap<K, V>,
    operation: &Operation,
    keys: u32,
) {
    match operation {
        Operation::Get(key) => {
            let key = K::make(*key);
            assert_eq!(container.get(&key), model.get(&key));
        }
        Operation::Insert(key, value) => {
            let (key, value) = (K::make(*key), V::make(*value));
            let old = container.insert(key.clone(), value.clone());
            assert_eq!(old, model.insert(key, value));
        }
        Operation::InsertIfAbsent(key, value) => {
            let (key, value) = (K::make(*key), V::make(*value));
            let outcome = container.insert_if_absent(key.clone(), value.clone());
            let wanted = match model.entry(key) {
                Entry::Occupied(_) => Err(value),
                Entry::Vacant(place) => {
                    place.insert(value);
                    Ok(())
                }
            };
            assert_eq!(outcome, wanted);
        }
        Operation::Remove(key) => {
            let key = K::make(*key);
            assert_eq!(container.remove(&key), model.remove(&key));
        }
        Operation::Update(key, decision) => update(container, model, K::make(*key), *decision),
        Operation::First => assert_eq!(container.first(), model.first_key_value()),
        Operation::Last => assert_eq!(container.last(), model.last_key_value()),
        Operation::Next(key) => {
            let key = K::make(*key);
            let above = (Bound::Excluded(&key), Bound::Unbounded);
            assert_eq!(container.next(&key), model.range(above).next());
        }
        Operation::Prev(key) => {
            let key = K::make(*key);
            assert_eq!(container.prev(&key), model.range(..&key).next_back());
        }
        Operation::PopFirst => assert_eq!(container.pop_first(), model.pop_first()),
        Operation::PopLast => assert_eq!(container.pop_last(), model.pop_last()),
        Operation::Scan(range, direction, limit) => {
            let range = bounds(*range, K::make);
            let seen = entries(container, as_range(&range), *direction, *limit);
            assert_eq!(seen, expected(model, &range, *direction, *limit));
        }
        Operation::RemoveRange(range) => {
            let range = bounds(*range, K::make);
            let inside = container.split_range(as_range(&range));
            inside.check();
            let seen = entries(&inside, KeyRange::all(), Direction::Ascending, usize::MAX);
            let wanted = expected(model, &range, Direction::Ascending, usize::MAX);
            assert_eq!(seen, wanted);
            model.retain(|key, _| !lies_within(key, &range));
        }
        Operation::Count => {
            assert_eq!(container.count(), model.len());
            assert_eq!(container.is_empty(), model.is_empty());
            assert_eq!(container.depth() == 0, model.is_empty());
            assert!(container.bytes() >= model.len() * size_of::<(K, V)>());
        }
        Operation::Fill(from, length, way) => {
            for key in row(*from, *length, *way, keys) {
                let old = container.insert(K::make(key), V::make(key));
                assert_eq!(old, model.insert(K::make(key), V::make(key)));
            }
        }
        Operation::Drain(from, length, way) => {
            for key in row(*from, *length, *way, keys) {
                let key = K::make(key);
                assert_eq!(container.remove(&key), model.remove(&key));
            }
        }
    }
}

fn update<K: Key, V: Value, C: Container<K, V>>(
    container: &mut C,
    model: &mut BTreeMap<K, V>,
    key: K,
    decision: Update<u32>,
) {
    let mut shown = Vec::new();
    let (old, difference) = container.update(key.clone(), &mut |value| {
        shown.push(value.cloned());
        match decision {
            Update::Put(value) => Update::Put(V::make(value)),
            Update::Keep => Update::Keep,
            Update::Remove => Update::Remove,
        }
    });
    assert_eq!(shown, [model.get(&key).cloned()], "shown once");
    let before = model.len();
    let wanted = match decision {
        Update::Put(value) => model.insert(key, V::make(value)),
        Update::Keep => None,
        Update::Remove => model.remove(&key),
    };
    assert_eq!(old, wanted);
    assert_eq!(before.wrapping_add_signed(difference.into()), model.len());
}

/// Splits near the middle, and the model at the same key.
fn split<K: Key, V: Value, C: Container<K, V>>(
    container: &mut C,
    model: &mut BTreeMap<K, V>,
    keep: Keep,
) {
    let Some((key, upper)) = container.split() else {
        assert!(model.len() < 2, "a tree of two or more entries splits");
        return;
    };
    container.check();
    upper.check();
    assert!(!container.is_empty() && !upper.is_empty());
    assert_eq!(upper.first().map(|(first, _)| first), Some(&key));
    let above = model.split_off(&key);
    assert_eq!(container.last(), model.last_key_value());
    assert_eq!(container.count(), model.len());
    match keep {
        Keep::Lower => {}
        Keep::Upper => {
            *container = upper;
            *model = above;
        }
        Keep::Both => {
            container.join(key, upper);
            model.extend(above);
        }
    }
}

/// Every range of every tree of up to 40 entries, and every two-part split of every tree of up
/// to 300, made in every order: the parts hold what they should, and join again.
pub(crate) fn splits_at_every_position<C: Container<u32, u32>>() {
    for order in ORDERS {
        for n in 0..=40 {
            for low in 0..=n {
                for high in low..=n {
                    split_and_rejoin(build::<C>(0, n, order), n, low, high);
                }
            }
        }
        for n in 41..=300 {
            let mut tree: C = build(0, n, order);
            // The same tree is used again and again, so its shape depends on its history.
            for position in 0..=n {
                let upper =
                    tree.split_range(KeyRange::new(Bound::Included(&position), Bound::Unbounded));
                assert_holds(&tree, 0, position);
                assert_holds(&upper, position, n);
                tree.join(position, upper);
                tree.check();
            }
            assert_holds(&tree, 0, n);
        }
    }
}

/// Splits `low..high` off the tree of `0..n`, and puts it back.
fn split_and_rejoin<C: Container<u32, u32>>(mut tree: C, n: u32, low: u32, high: u32) {
    let inside = tree.split_range(KeyRange::new(Bound::Included(&low), Bound::Excluded(&high)));
    assert_holds(&inside, low, high);
    tree.check();
    assert_eq!(tree.count() as u32, n - (high - low));
    let above = tree.split_range(KeyRange::new(Bound::Included(&low), Bound::Unbounded));
    assert_holds(&tree, 0, low);
    assert_holds(&above, high, n);
    tree.join(low, inside);
    tree.join(high, above);
    assert_holds(&tree, 0, n);
}

/// Ranges of trees of several levels, filled in every order.
pub(crate) fn splits_of_large_trees<C: Container<u32, u32>>() {
    let sizes = if cfg!(tremula_tsan) {
        [500, 1_000, 2_000]
    } else {
        [1_000, 4_096, 30_000]
    };
    for order in ORDERS {
        for n in sizes {
            let mut random = Random::new(n);
            let mut tree: C = build(0, n, order);
            for _ in 0..60 {
                let (a, b) = (random.below(n + 1), random.below(n + 1));
                let (low, high) = (a.min(b), a.max(b));
                split_and_rejoin(std::mem::take(&mut tree), n, low, high);
                // The split has dropped the tree; continue with one of joined parts.
                tree = build(0, low, order);
                tree.join(low, build(low, high, Order::Mixed));
                tree.join(high, build(high, n, order));
            }
            assert_holds(&tree, 0, n);
        }
    }
}

/// Trees of all pairs of sizes up to 100, and of very unequal ones, join.
pub(crate) fn joins_of_every_pair<C: Container<u32, u32>>() {
    let join = |lower: u32, upper: u32, order| {
        let mut tree: C = build(0, lower, order);
        tree.join(lower, build(lower, lower + upper, order));
        assert_holds(&tree, 0, lower + upper);

        // The separator is no key; the joined tree then grows above and below it.
        let mut tree: C = build(0, lower, order);
        tree.join(lower + 1, build(lower + 2, lower + upper + 2, order));
        tree.check();
        assert_eq!(tree.insert(lower + 1, lower + 1), None);
        assert_eq!(tree.insert(lower, lower), None);
        assert_holds(&tree, 0, lower + upper + 2);
    };
    for lower in 0..=100 {
        for upper in 0..=100 {
            join(lower, upper, Order::Ascending);
        }
    }
    let uneven = [0, 1, 2, 3, 5, 9, 17, 50, 128, 129, 700, 5_000, 20_000];
    for order in ORDERS {
        for lower in uneven {
            for upper in uneven {
                join(lower, upper, order);
            }
        }
    }
}

/// A tree is split near its middle again and again, until only single entries are left; these
/// are joined from below, from above, and in pairs.
pub(crate) fn splits_to_the_end<C: Container<u32, u32>>() {
    for order in ORDERS {
        for n in (0..=64).chain([65, 100, 127, 128, 129, 500, 2_000]) {
            let split_up = || {
                let mut whole = vec![build::<C>(0, n, order)];
                let mut single = Vec::new();
                while let Some(mut lower) = whole.pop() {
                    match lower.split() {
                        Some((key, upper)) => {
                            lower.check();
                            upper.check();
                            assert_eq!(upper.first(), Some((&key, &key)));
                            whole.push(lower);
                            whole.push(upper);
                        }
                        None => single.push(lower),
                    }
                }
                // The upper parts were split off first.
                single.reverse();
                if n > 0 {
                    assert_eq!(single.len() as u32, n);
                }
                single
            };

            let mut tree = C::default();
            for part in split_up() {
                append(&mut tree, part);
                tree.check();
            }
            assert_holds(&tree, 0, n);

            let mut tree = C::default();
            for mut part in split_up().into_iter().rev() {
                append(&mut part, tree);
                part.check();
                tree = part;
            }
            assert_holds(&tree, 0, n);

            let mut parts = split_up();
            while parts.len() > 1 {
                let mut pairs = parts.into_iter();
                parts = Vec::new();
                while let Some(mut lower) = pairs.next() {
                    append(&mut lower, pairs.next().unwrap_or_default());
                    lower.check();
                    parts.push(lower);
                }
            }
            assert_holds(&parts.pop().unwrap_or_default(), 0, n);
        }
    }
}

/// A split leaves neither part with almost all entries, and the number of levels stays within that
/// of an AVL tree, the deepest of the containers.
pub(crate) fn shapes<C: Container<u32, u32>>() {
    for order in ORDERS {
        for n in [2_u32, 3, 10, 100, 1_000, 10_000] {
            let mut lower: C = build(0, n, order);
            let levels = 1.45 * f64::from(n + 2).log2();
            assert!(lower.depth() as f64 <= levels, "{} levels", lower.depth());
            let (_, upper) = lower.split().expect("two or more entries can be split");
            let smaller = lower.count().min(upper.count());
            assert!(
                smaller >= (n as usize / 20).max(1),
                "{smaller} of {n} entries"
            );
        }
    }
}

/// When most entries have been removed, most nodes are gone, too.
pub(crate) fn sparse<C: Container<u32, u32>>() {
    let mut tree: C = build(0, 10_000, Order::Ascending);
    let full = tree.bytes();
    for key in (0..10_000).filter(|key| key % 8 != 0) {
        assert_eq!(tree.remove(&key), Some(key));
    }
    tree.check();
    let left = tree.bytes();
    assert!(left <= full * 2 / 3, "{left} of {full} bytes");
}

/// Everything that is made is dropped once: in replaced values, splits, joins, discarded ranges,
/// and whole trees.
pub(crate) fn drops<C: Container<Counted<u64>, Counted<u64>>>() {
    let ledger = Ledger::default();
    for keys in [5, 60, 4_000] {
        let mut tree = C::default();
        let mut random = Random::new(keys);
        for _ in 0..if cfg!(tremula_tsan) { 2_000 } else { 40_000 } {
            let key = ledger.make(random.below(keys).into());
            let value = ledger.make(random.next());
            match random.below(60) {
                0..=24 => drop(tree.insert(key, value)),
                25..=29 => drop(tree.insert_if_absent(key, value)),
                30..=43 => drop(tree.remove(&key)),
                44..=49 => drop(tree.update(key, &mut |old| match old {
                    Some(old) if old.value % 2 == 0 => Update::Remove,
                    Some(old) if old.value % 3 == 0 => Update::Keep,
                    _ => Update::Put(value.clone()),
                })),
                50 => drop(tree.pop_first()),
                51 => drop(tree.pop_last()),
                52..=55 => {
                    let upper =
                        tree.split_range(KeyRange::new(Bound::Included(&key), Bound::Unbounded));
                    tree.join(key, upper);
                }
                56 => {
                    let high = ledger.make(key.value + u64::from(keys / 20));
                    let range = KeyRange::new(Bound::Included(&key), Bound::Included(&high));
                    drop(tree.split_range(range));
                }
                57 if random.below(50) == 0 => drop(tree.split()),
                _ => {
                    if let Some((key, upper)) = tree.split() {
                        tree.join(key, upper);
                    }
                }
            }
        }
        tree.check();
        // Copies of keys may serve as separators in the tree.
        assert!(ledger.alive() >= 2 * tree.count());
        drop(tree);
        assert_eq!(ledger.alive(), 0);
    }
    ledger.assert_settled();
}
