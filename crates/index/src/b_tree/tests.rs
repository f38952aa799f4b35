//! Tests of the inside: that the invariants hold, and how full nodes are.

use super::OlcBTree;
use super::layout::Plan;
use crate::key::{ByteHead, KeyHead, NoHead};
use crate::kit::Parameters;
use crate::{Direction, KeyRange, NotSorted, OrderedIndex, Transaction};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Nodes of sixteen entries.
type Low<K, H = ByteHead> = OlcBTree<K, u32, H, 0>;

fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Grows and shrinks a tree in several orders, and checks it in between.
fn lives<K, H>(key: impl Fn(u64) -> K)
where
    K: Ord + Clone + Send + Sync + 'static,
    H: KeyHead<K>,
{
    const KEYS: u64 = 4_000;
    let orders: [fn(u64) -> u64; 3] = [|n| n, |n| KEYS - 1 - n, |n| mix(n) % KEYS];
    for insertion in orders {
        for removal in orders {
            let tree = Low::<K, H>::default();
            for number in 0..KEYS {
                tree.insert(key(insertion(number)), 0);
            }
            tree.tree.check_at_rest();
            for number in 0..KEYS {
                tree.remove(&key(removal(number)));
                if number % 1_000 == 999 {
                    tree.tree.check_at_rest();
                }
            }
            let (low, high) = (key(KEYS / 4), key(KEYS / 2));
            tree.remove_range(KeyRange::new(Bound::Included(&low), Bound::Excluded(&high)));
            tree.tree.check_at_rest();
            tree.remove_range(KeyRange::all());
            tree.tree.check_at_rest();
            assert_eq!(tree.shape().get("leaves"), Some(1));
            assert_eq!(tree.shape().get("depth"), Some(1));
        }
    }
}

#[test]
fn nodes_are_sound_while_a_tree_of_numbers_grows_and_shrinks() {
    lives::<u64, ByteHead>(|number| number);
}

#[test]
fn nodes_are_sound_while_a_tree_of_strings_grows_and_shrinks() {
    // Four heads only.
    lives::<String, ByteHead>(|number| format!("{:08}{number:05}", number % 4));
}

#[test]
fn nodes_are_sound_while_a_tree_without_heads_grows_and_shrinks() {
    lives::<u64, NoHead>(|number| number);
}

#[test]
fn popping_from_either_end_leaves_nothing_behind() {
    for direction in [Direction::Ascending, Direction::Descending] {
        let tree = Low::<u64>::default();
        for key in 0..3_000 {
            tree.insert(key, 0);
        }
        for left in (0..3_000).rev() {
            assert!(tree.tree.pop(direction, |_| ()).is_some());
            if left % 500 == 0 {
                tree.tree.check_at_rest();
            }
        }
        assert_eq!(tree.shape().get("leaves"), Some(1));
    }
}

fn entries_a_leaf(tree: &impl OrderedIndex<u64, u64>) -> u64 {
    let shape = tree.shape();
    shape.get("entries").unwrap() / shape.get("leaves").unwrap()
}

#[test]
fn runs_of_insertions_leave_full_leaves() {
    let full = Plan::of::<Parameters<u64, u64, ByteHead, 4096>>().capacity as u64;
    let orders: [fn(u64) -> u64; 4] = [
        // Upwards, downwards.
        |n| n,
        |n| u64::MAX - n,
        // Upwards in four places, in turns.
        |n| (n % 4) << 40 | n,
        // Upwards, with neighbours changed over, as several threads append.
        |n| n ^ 1,
    ];
    for (number, order) in orders.into_iter().enumerate() {
        let tree = OlcBTree::<u64, u64>::new();
        for n in 0..100_000 {
            tree.insert(order(n), n);
        }
        let entries = entries_a_leaf(&tree);
        assert!(
            entries >= full * 9 / 10,
            "order {number}: {entries} a leaf of {full}"
        );
    }
}

#[test]
fn an_entry_of_two_words_takes_little_more_however_it_comes() {
    for (order, most) in [((|n| n) as fn(u64) -> u64, 18), (mix, 26)] {
        let tree = OlcBTree::<u64, u64>::new();
        for n in 0..1_000_000 {
            tree.insert(order(n), n);
        }
        let shape = tree.shape();
        let bytes = shape.get("bytes").unwrap() / shape.get("entries").unwrap();
        assert!(bytes <= most, "{bytes} bytes an entry, not {most}");
    }
}

#[test]
fn a_loaded_tree_is_sound_and_as_full_as_was_asked_for() {
    for length in [0, 1, 2, 15, 16, 17, 250, 5_000] {
        for percent in [0, 50, 90, 100, 1_000] {
            let entries = (0..length).map(|n| (n * 2, n as u32));
            let tree = Low::<u64>::from_sorted_filled(entries.clone(), percent).unwrap();
            tree.tree.check_at_rest();
            assert_eq!(
                tree.snapshot(KeyRange::all()).unwrap(),
                Vec::from_iter(entries)
            );
            // It takes insertions like any other tree.
            for n in 0..length {
                tree.insert(n * 2 + 1, 0);
            }
            tree.tree.check_at_rest();
            assert_eq!(tree.len() as u64, length * 2);
        }
    }
    let packed = OlcBTree::<u64, u64>::from_sorted_filled((0..24_000).map(|n| (n, n)), 100);
    assert_eq!(entries_a_leaf(&packed.unwrap()), 240);
}

#[test]
fn a_load_that_is_not_sorted_names_the_place_and_drops_what_it_took() {
    let keys = (0..100).chain([99]).map(|n| (format!("{n:04}"), n));
    let loaded = Low::<String>::from_sorted(keys);
    assert_eq!(loaded.err(), Some(NotSorted { position: 100 }));
}

#[test]
fn a_batch_of_lookups_finds_what_single_ones_find() {
    for length in [0, 1, 15, 16, 17, 40] {
        let tree = Low::<String>::default();
        for n in 0..2_000 {
            tree.insert(format!("{n:012}"), n);
        }
        let keys: Vec<_> = (0..length)
            .map(|n| format!("{:012}", mix(n) % 4_000))
            .collect();
        let mut found = vec![Some(7)];
        tree.get_many(&keys, &mut found);
        let singly = keys.iter().map(|key| tree.get(key));
        assert_eq!(found[1..], *Vec::from_iter(singly));
    }
}

/// What would make it fail: a visit that stays pinned until its end, so that nothing is freed that
/// its closure, or any other thread, removes meanwhile.
#[test]
fn what_is_removed_during_a_long_visit_is_dropped_during_it() {
    const ENTRIES: usize = 40_000;
    for direction in [Direction::Ascending, Direction::Descending] {
        let alive = std::sync::Arc::new(());
        let tree = OlcBTree::<u64, std::sync::Arc<()>>::new();
        for key in 0..ENTRIES as u64 {
            tree.insert(key, alive.clone());
        }
        let mut seen = Vec::new();
        tree.range(KeyRange::all(), direction, &mut |key, _| {
            drop(tree.remove(key));
            seen.push(*key);
            if seen.len() == ENTRIES {
                let waiting = std::sync::Arc::strong_count(&alive) - 1;
                assert!(waiting < ENTRIES / 4, "{waiting} values wait to be dropped");
            }
            std::ops::ControlFlow::Continue(())
        });
        if direction == Direction::Descending {
            seen.reverse();
        }
        assert_eq!(seen, Vec::from_iter(0..ENTRIES as u64));
    }
}

/// Runs a step over everything on a tree and on a model.
fn step<K, H>(
    tree: &Low<K, H>,
    model: &mut BTreeMap<K, u32>,
    panics: bool,
    changes: impl Iterator<Item = (K, Option<u32>)>,
) where
    K: Ord + Clone + Debug + Send + Sync + 'static,
    H: KeyHead<K>,
{
    let before = model.clone();
    let mut work = |step: &mut dyn Transaction<K, u32>,
                    changes: &mut dyn Iterator<Item = (K, Option<u32>)>| {
        for (key, value) in changes {
            let was_present = match value {
                Some(value) => (step.insert(key.clone(), value), model.insert(key, value)),
                None => (step.remove(&key), model.remove(&key)),
            };
            assert_eq!(was_present.0, was_present.1.is_some());
        }
        let mut seen = Vec::new();
        step.range(KeyRange::all(), &mut |key, value| {
            seen.push((key.clone(), *value));
            ControlFlow::Continue(())
        });
        assert!(seen.iter().map(|(key, value)| (key, value)).eq(&*model));
        assert!(seen.iter().all(|(key, value)| {
            let mut found = false;
            step.get_with(key, &mut |got| found = got == value) && found
        }));
        assert!(!panics, "the step panics");
    };
    let mut changes = Some(changes);
    let steps = tree.transactional().unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        steps.atomically(&[KeyRange::all()], &mut |step| {
            work(step, &mut changes.take().expect("a step runs once"));
        });
    }));
    assert_eq!(outcome.is_err(), panics);
    if panics {
        *model = before;
    }
    tree.tree.check_at_rest();
    assert!(
        tree.snapshot(KeyRange::all())
            .unwrap()
            .into_iter()
            .eq(model.clone())
    );
    assert_eq!(tree.len(), model.len());
}

/// Steps under which leaves and inner nodes split while they are held, which are then undone, or
/// remove everything again.
fn steps_split_and_are_undone<K, H>(key: impl Fn(u64) -> K)
where
    K: Ord + Clone + Debug + Send + Sync + 'static,
    H: KeyHead<K>,
{
    const KEYS: u64 = 3_000;
    let orders: [fn(u64) -> u64; 3] = [|n| n, |n| KEYS - 1 - n, |n| mix(n) % KEYS];
    for order in orders {
        let (tree, mut model) = (Low::<K, H>::default(), BTreeMap::new());
        let all = || (0..KEYS).map(|n| (key(order(n)), Some(n as u32)));
        let none = || (0..KEYS).map(|n| (key(order(n)), None));
        let mixed = |from: u64| {
            (from..from + KEYS).map(|n| (key(mix(n) % KEYS), (n % 3 > 0).then_some(n as u32)))
        };
        step(&tree, &mut model, true, all());
        // What has been split is merged again.
        assert_eq!(tree.shape().get("leaves"), Some(1));
        assert_eq!(tree.shape().get("depth"), Some(1));
        step(&tree, &mut model, false, all().take(20));
        step(&tree, &mut model, true, all());
        step(&tree, &mut model, false, all());
        assert!(tree.shape().get("depth").unwrap() > 2);
        step(&tree, &mut model, true, none());
        step(&tree, &mut model, true, mixed(1));
        step(&tree, &mut model, false, mixed(2));
        step(&tree, &mut model, true, none().chain(all()).chain(none()));
        step(&tree, &mut model, false, none());
        assert_eq!(tree.shape().get("leaves"), Some(1));
    }
}

#[test]
fn steps_over_numbers_split_what_they_hold_and_are_undone() {
    steps_split_and_are_undone::<u64, ByteHead>(|number| number);
}

#[test]
fn steps_over_strings_split_what_they_hold_and_are_undone() {
    steps_split_and_are_undone::<String, ByteHead>(|n| format!("{:08}{n:05}", n % 4));
}

#[test]
fn steps_over_keys_without_heads_split_what_they_hold_and_are_undone() {
    steps_split_and_are_undone::<u64, NoHead>(|number| number);
}

/// What would make it fail: a new leaf that another thread can lock, or read, before the step that
/// has split it ends; or a thread that waits for a leaf that it holds itself.
#[test]
fn no_thread_sees_a_part_of_a_step_that_splits() {
    const KEYS: u64 = 200;
    const ROUNDS: u32 = 60;
    let tree = &Low::<u64>::default();
    let starts = |writer: u64| [writer * KEYS, (10 + writer) * KEYS];
    let keys_of = move |writer: u64| {
        starts(writer)
            .into_iter()
            .flat_map(|start| start..start + KEYS)
    };
    let write = move |writer: u64, round: u32| {
        let steps = tree.transactional().unwrap();
        let ends = starts(writer).map(|start| (start, start + KEYS - 1));
        let ranges = ends
            .each_ref()
            .map(|(low, high)| KeyRange::new(Bound::Included(low), Bound::Included(high)));
        steps.atomically(&ranges, &mut |step| {
            for key in keys_of(writer) {
                if round.is_multiple_of(2) {
                    step.insert(key, round);
                } else {
                    step.remove(&key);
                }
            }
            assert!(round % 5 < 4, "this step is undone");
        });
    };
    let read = move || {
        let mut entries = Vec::new();
        tree.scan(
            KeyRange::all(),
            Direction::Ascending,
            usize::MAX,
            &mut entries,
        );
        for writer in 0..2 {
            let mut values = keys_of(writer).map(|key| {
                let at = entries.binary_search_by_key(&key, |(key, _)| *key);
                at.ok().map(|at| entries[at].1)
            });
            let first = values.next();
            assert!(values.all(|value| Some(value) == first), "a part of a step");
        }
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let outcome = catch_unwind(|| write(writer, round));
                        assert_eq!(outcome.is_err(), round % 5 == 4);
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            while !writers.iter().all(|writer| writer.is_finished()) {
                read();
            }
        });
    });
    tree.tree.check_at_rest();
}

#[test]
fn a_walk_shows_each_leaf_once_from_the_smallest_keys_to_the_largest() {
    for length in [0, 10, 17, 100, 5_000] {
        let tree = Low::<String>::default();
        for n in 0..length {
            tree.insert(format!("{:05}", mix(n) % 100_000), 0);
        }
        let mut parts = Vec::new();
        let steps = tree.transactional().unwrap();
        let adapted = steps.walk(&mut |part| {
            // The closure may do anything.
            tree.insert("00000".to_owned(), 1);
            parts.push(part.clone());
            ControlFlow::Continue(())
        });
        let shape = tree.shape();
        assert_eq!(Some(parts.len() as u64), shape.get("leaves"));
        assert_eq!(Some(adapted.splits), shape.get("splits"));
        assert!(parts.is_sorted_by(|one, next| one.low < next.low) && parts[0].low.is_none());
        for (number, part) in parts.iter().enumerate().skip(1) {
            let low = part.low.as_ref().map_or(Bound::Unbounded, Bound::Included);
            let next = parts.get(number + 1).and_then(|next| next.low.as_ref());
            let range = KeyRange::new(low, next.map_or(Bound::Unbounded, Bound::Excluded));
            let entries = tree.snapshot(range).unwrap().len();
            assert_eq!(part.entries, Some(entries));
            assert_eq!(part.waits, 0);
        }
        let mut shown = 0;
        steps.walk(&mut |_| {
            shown += 1;
            ControlFlow::Break(())
        });
        assert_eq!(shown, 1);
    }
}
