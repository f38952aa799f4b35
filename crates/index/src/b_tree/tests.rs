//! Tests of the inside: that the invariants hold, and how full nodes are.

use super::OlcBTree;
use super::layout::Plan;
use crate::key::{ByteHead, KeyHead, NoHead};
use crate::kit::Parameters;
use crate::{Direction, KeyRange, NotSorted, OrderedIndex};
use std::ops::Bound;

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
            assert!(tree.tree.pop(direction, |_, _| ()).is_some());
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
