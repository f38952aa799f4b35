//! Tests of windows: trees of strings that share long prefixes, against a model.

use super::OlcBTree;
use super::node::{Kind, NodeRef};
use super::tree::Tree;
use crate::key::{BuiltInHead, ByteHead, ByteKey, ByteString, KeyHead, TextHead};
use crate::kit::{Parameters, Spec};
use crate::{Direction, KeyRange, OrderedIndex, Update};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A byte string.
trait Key: ByteKey + Debug + for<'a> From<&'a [u8]> {}

impl<K: ByteKey + Debug + for<'a> From<&'a [u8]>> Key for K {}

/// Nodes of sixteen entries, if no other size is given.
type Low<K, H = ByteHead, const BYTES: usize = 0> = OlcBTree<K, u32, H, BYTES>;

/// What keys begin with: longer than the longest prefix of a node, with zeros in it.
const LONG: &[u8] = b"user:000\0\x00123:\0\0\0\0\0\0\0\0\xff\xff\xff\xffan:address@of.mail";

/// Bytes that collide, the least and the greatest among them.
fn end() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(vec![0, b'a', b'b', b':', 255]);
    prop::collection::vec(byte, 0..7)
}

/// A key that begins like many others: with 0 to 47 common bytes.
fn key<K: Key>() -> impl Strategy<Value = K> {
    let common = prop_oneof![
        6 => Just(20),
        3 => prop::sample::select(vec![7_usize, 8, 9, 15, 16, 24, 31, 32, 33, 40]),
        1 => 0..=LONG.len(),
    ];
    (common, end()).prop_map(|(common, end)| K::from(&[&LONG[..common], &end].concat()))
}

#[derive(Clone, Debug)]
enum Step<K> {
    Insert(K),
    InsertIfAbsent(K),
    Remove(K),
    Update(K),
    Get(K),
    GetMany(Vec<K>),
    Neighbours(K),
    Scan(Bound<K>, Bound<K>, bool, usize),
    RemoveRange(Bound<K>, Bound<K>),
    Pop(bool),
    /// Puts and removes these, and panics if it is said.
    Atomically(Vec<(K, bool)>, bool),
    /// Begins anew with the same entries, nodes filled so much.
    Load(usize),
}

fn bound<K: Key>() -> impl Strategy<Value = Bound<K>> {
    prop_oneof![
        4 => key().prop_map(Bound::Included),
        4 => key().prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
}

fn steps<K: Key>() -> impl Strategy<Value = Vec<Step<K>>> {
    let many = || prop::collection::vec(key(), 0..40);
    let step = prop_oneof![
        60 => key().prop_map(Step::Insert),
        5 => key().prop_map(Step::InsertIfAbsent),
        20 => key().prop_map(Step::Remove),
        5 => key().prop_map(Step::Update),
        10 => key().prop_map(Step::Get),
        2 => many().prop_map(Step::GetMany),
        5 => key().prop_map(Step::Neighbours),
        8 => (bound(), bound(), any::<bool>(), 0..60_usize)
            .prop_map(|(low, high, up, limit)| Step::Scan(low, high, up, limit)),
        2 => (bound(), bound()).prop_map(|(low, high)| Step::RemoveRange(low, high)),
        2 => any::<bool>().prop_map(Step::Pop),
        4 => (prop::collection::vec((key(), any::<bool>()), 0..60), any::<bool>())
            .prop_map(|(changes, panics)| Step::Atomically(changes, panics)),
        1 => (50..=100_usize).prop_map(Step::Load),
    ];
    prop::collection::vec(step, 1..700)
}

/// A direction, upwards or not.
fn direction(up: bool) -> Direction {
    if up {
        Direction::Ascending
    } else {
        Direction::Descending
    }
}

fn range<'k, K>(low: &'k Bound<K>, high: &'k Bound<K>) -> KeyRange<'k, K> {
    KeyRange::new(low.as_ref(), high.as_ref())
}

/// The entries of a range, in a direction.
fn of_model<K: Key>(
    model: &BTreeMap<K, u32>,
    (low, high): (&Bound<K>, &Bound<K>),
    up: bool,
) -> Vec<(K, u32)> {
    // Unlike `BTreeMap::range` this takes bounds that have crossed.
    let inside = |key: &K| {
        (match low {
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
            Bound::Unbounded => true,
        }) && (match high {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        })
    };
    let inside = model.iter().filter(|(key, _)| inside(key));
    let mut entries: Vec<_> = inside.map(|(key, value)| (key.clone(), *value)).collect();
    if !up {
        entries.reverse();
    }
    entries
}

fn atomically<K: Key, H: KeyHead<K>, const BYTES: usize>(
    tree: &Low<K, H, BYTES>,
    model: &mut BTreeMap<K, u32>,
    changes: &[(K, bool)],
    panics: bool,
) {
    let mut after = model.clone();
    let steps = tree.transactional().unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        steps.atomically(&[KeyRange::all()], &mut |step| {
            for (number, (key, puts)) in changes.iter().enumerate() {
                if *puts {
                    let was_present = step.insert(key.clone(), number as u32);
                    assert_eq!(
                        was_present,
                        after.insert(key.clone(), number as u32).is_some()
                    );
                } else {
                    assert_eq!(step.remove(key), after.remove(key).is_some());
                }
            }
            let mut seen = Vec::new();
            step.range(KeyRange::all(), &mut |key, value| {
                seen.push((key.clone(), *value));
                ControlFlow::Continue(())
            });
            assert!(seen.iter().map(|(key, value)| (key, value)).eq(&after));
            if panics {
                std::panic::resume_unwind(Box::new("undone"));
            }
        });
    }));
    match outcome {
        Ok(()) => *model = after,
        Err(panic) => assert!(panics && panic.is::<&str>(), "a wrong step"),
    }
}

fn follows_the_model<K: Key, H: KeyHead<K>, const BYTES: usize>(steps: &[Step<K>]) {
    let (mut tree, mut model) = (Low::<K, H, BYTES>::default(), BTreeMap::new());
    for (number, step) in steps.iter().enumerate() {
        let value = number as u32;
        match step {
            Step::Insert(key) => {
                assert_eq!(
                    tree.insert(key.clone(), value),
                    model.insert(key.clone(), value)
                );
            }
            Step::InsertIfAbsent(key) => {
                let absent = !model.contains_key(key);
                assert_eq!(tree.insert_if_absent(key.clone(), value).is_ok(), absent);
                model.entry(key.clone()).or_insert(value);
            }
            Step::Remove(key) => assert_eq!(tree.remove(key), model.remove(key)),
            Step::Update(key) => {
                let old = model.get(key).copied();
                tree.update(key.clone(), &mut |seen| {
                    assert_eq!(seen.copied(), old);
                    Update::Put(value)
                });
                model.insert(key.clone(), value);
            }
            Step::Get(key) => assert_eq!(tree.get(key), model.get(key).copied()),
            Step::GetMany(keys) => {
                let mut found = Vec::new();
                tree.get_many(keys, &mut found);
                let expected = keys.iter().map(|key| model.get(key).copied());
                assert_eq!(found, Vec::from_iter(expected));
            }
            Step::Neighbours(key) => {
                let low = (&Bound::Excluded(key.clone()), &Bound::Unbounded);
                let next = of_model(&model, low, true).into_iter().next();
                assert_eq!(tree.next(key), next);
                let high = (&Bound::Unbounded, &Bound::Excluded(key.clone()));
                let prev = of_model(&model, high, false).into_iter().next();
                assert_eq!(tree.prev(key), prev);
            }
            Step::Scan(low, high, up, limit) => {
                let mut expected = of_model(&model, (low, high), *up);
                let mut seen = Vec::new();
                tree.range(range(low, high), direction(*up), &mut |key, value| {
                    seen.push((key.clone(), *value));
                    ControlFlow::Continue(())
                });
                assert_eq!(seen, expected);
                expected.truncate(*limit);
                let mut scanned = Vec::new();
                tree.scan(range(low, high), direction(*up), *limit, &mut scanned);
                assert_eq!(scanned, expected);
            }
            Step::RemoveRange(low, high) => {
                let gone = of_model(&model, (low, high), true);
                assert_eq!(tree.remove_range(range(low, high)), gone.len());
                for (key, _) in gone {
                    model.remove(&key);
                }
            }
            Step::Pop(first) => {
                if *first {
                    assert_eq!(tree.pop_first(), model.pop_first());
                } else {
                    assert_eq!(tree.pop_last(), model.pop_last());
                }
            }
            Step::Atomically(changes, panics) => atomically(&tree, &mut model, changes, *panics),
            Step::Load(percent) => {
                tree = Low::from_sorted_filled(model.clone(), *percent).unwrap();
            }
        }
        if number % 64 == 0 {
            tree.tree.check_at_rest();
        }
    }
    tree.tree.check_at_rest();
    assert!(
        tree.snapshot(KeyRange::all())
            .unwrap()
            .into_iter()
            .eq(model)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_of_keys_with_common_prefixes_follows_the_model(steps in steps()) {
        follows_the_model::<Vec<u8>, ByteHead, 0>(&steps);
    }

    /// Nodes of 32 entries, which have hints.
    #[test]
    fn a_tree_of_keys_with_common_prefixes_follows_the_model_with_hints(steps in steps()) {
        follows_the_model::<Vec<u8>, ByteHead, 1024>(&steps);
    }

    #[test]
    fn so_does_one_whose_keys_are_known_at_run_time(steps in steps()) {
        follows_the_model::<Vec<u8>, BuiltInHead, 0>(&steps);
    }

    #[test]
    fn so_does_one_of_keys_with_heads_of_their_own(steps in steps()) {
        follows_the_model::<ByteString, ByteHead, 0>(&steps);
    }

    #[test]
    fn so_does_one_of_keys_with_heads_of_their_own_and_hints(steps in steps()) {
        follows_the_model::<ByteString, ByteHead, 1024>(&steps);
    }

    #[test]
    fn so_does_one_with_leaves_of_text(steps in steps()) {
        follows_the_model::<Vec<u8>, TextHead<ByteHead>, 0>(&steps);
    }

    #[test]
    fn so_does_one_with_leaves_of_text_and_hints(steps in steps()) {
        follows_the_model::<Vec<u8>, TextHead<BuiltInHead>, 1024>(&steps);
    }

    #[test]
    fn so_does_one_with_leaves_of_text_of_keys_with_heads_of_their_own(steps in steps()) {
        follows_the_model::<ByteString, TextHead<ByteHead>, 0>(&steps);
    }
}

/// What would make it fail: a thread that takes the windows of one prefix for those of another. Two
/// threads keep making prefixes shorter (by a key without it) and longer (by splits), two read.
fn readers_find_every_key<K: Key, H: KeyHead<K>>() {
    const ROUNDS: u32 = if cfg!(miri) { 2 } else { 300 };
    let tree = &Low::<K, H>::default();
    let text = |number: u32| format!("user:000123:{:03}@example.org", number);
    let stable = |number: u32| K::from(text(number).as_bytes());
    for number in 0..60 {
        tree.insert(stable(number * 10), number);
    }
    let done = &std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..2_u32 {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // Prefixes of others, and keys that end where theirs goes on.
                    let cut = (round as usize * 7 + writer as usize) % 16;
                    let breaks = [
                        format!("{}!{writer}", &text(0)[..cut]),
                        format!("{}~{writer}", &text(0)[..cut]),
                    ]
                    .map(|key| K::from(key.as_bytes()));
                    let between = |n: u32| {
                        let key = format!("{}{writer}", text(n * 10 + 5));
                        K::from(key.as_bytes())
                    };
                    for key in &breaks {
                        tree.insert(key.clone(), u32::MAX);
                    }
                    for number in 0..60 {
                        tree.insert(between(number), u32::MAX);
                    }
                    for key in &breaks {
                        assert_eq!(tree.remove(key), Some(u32::MAX));
                    }
                    for number in 0..60 {
                        assert_eq!(tree.remove(&between(number)), Some(u32::MAX));
                    }
                }
                done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        for reader in 0..2_u32 {
            scope.spawn(move || {
                let mut turn = reader;
                while done.load(std::sync::atomic::Ordering::SeqCst) < 2 {
                    turn = turn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let number = (turn >> 16) % 60;
                    assert_eq!(tree.get(&stable(number * 10)), Some(number));
                    let (low, high) = (stable(number * 10), stable(590));
                    let whole = KeyRange::new(Bound::Included(&low), Bound::Included(&high));
                    let mut seen = Vec::new();
                    tree.scan(whole, Direction::Descending, usize::MAX, &mut seen);
                    assert!(seen.is_sorted_by(|one, next| one.0 > next.0));
                    let stables = seen.iter().filter(|(_, value)| *value < 60);
                    assert_eq!(stables.count() as u32, 60 - number);
                }
            });
        }
    });
    tree.tree.check_at_rest();
    assert_eq!(tree.len(), 60);
}

#[test]
fn readers_find_every_key_while_prefixes_change() {
    readers_find_every_key::<Vec<u8>, ByteHead>();
}

#[test]
fn readers_find_every_key_while_prefixes_of_own_heads_change() {
    readers_find_every_key::<ByteString, ByteHead>();
}

#[test]
fn readers_find_every_key_while_prefixes_of_leaves_of_text_change() {
    assert!(Parameters::<Vec<u8>, u32, TextHead<ByteHead>>::is_text());
    assert!(Parameters::<ByteString, u32, TextHead<ByteHead>>::is_text());
    assert!(!Parameters::<Vec<u8>, u32, ByteHead>::is_text());
    readers_find_every_key::<Vec<u8>, TextHead<ByteHead>>();
    readers_find_every_key::<ByteString, TextHead<ByteHead>>();
}

/// How many neighbouring heads of leaves are equal.
fn equal_heads<S: Spec>(tree: &Tree<S>) -> usize {
    let guard = &tree.collector.pin();
    let mut leaf = Some(tree.first(guard));
    let mut equal = 0;
    while let Some(here) = leaf {
        let heads = here.heads();
        equal += (1..here.count())
            .filter(|at| heads.load(at - 1) == heads.load(*at))
            .count();
        // SAFETY: no other thread uses the tree.
        let next = here.next().map(|next| unsafe { NodeRef::from_raw(next) });
        leaf = next.and_then(|next| match next.kind() {
            Kind::Leaf(leaf) => Some(leaf),
            Kind::Inner(_) => None,
        });
    }
    equal
}

fn windows_differ<K: Key>() {
    // The first 8 bytes of all are equal, and so would be all heads.
    let tree = OlcBTree::<K, u32>::default();
    let key = |number: u32| K::from(format!("user:{:016}:{:06}", 123_456_789, number).as_bytes());
    for number in 0..20_000_u32 {
        tree.insert(key(number.wrapping_mul(7919) % 20_000), number);
    }
    tree.tree.check_at_rest();
    assert_eq!(equal_heads(&tree.tree), 0);
    // A key without the prefix makes them all equal in its leaf, until that is split.
    tree.insert(K::from(b"user"), 0);
    tree.tree.check_at_rest();
    assert_eq!(tree.get(&K::from(b"user")), Some(0));
}

#[test]
fn keys_that_begin_alike_have_different_windows() {
    windows_differ::<Vec<u8>>();
    windows_differ::<ByteString>();
}
