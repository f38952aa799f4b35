//! What only the OpenBw-Tree promises: its mapping table grows and shrinks with its nodes,
//! contended leaves are spread, and any thread that meets a merge by deltas helps.
#![cfg(not(any(loom, shuttle)))]

mod support;

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use support::counted::{Counted, Ledger};
use support::fuse::{Fragile, with_fuse};
use support::misled::text_of;
use support::suite::{Random, join_all, scaled};
use tremula_index::key::NoHead;
use tremula_index::{ByteKey, KeyRange, OrderedIndex, Update, kit};
use tremula_papers::BwTree;
use tremula_papers::bw_tree::BwTreeConfig;
use tremula_sync::epoch;

/// Ids of a page of the mapping table.
const PAGE: u64 = 256;

fn figure(tree: &BwTree<u64, u64>, name: &str) -> u64 {
    tree.shape().get(name).unwrap()
}

/// Waits until what was retired has been freed: until each id in use belongs to a node, and each
/// page has such an id. Threads of other tests may stay pinned for a while.
fn settle(tree: &BwTree<u64, u64>) {
    let begun = Instant::now();
    loop {
        epoch::pin().flush();
        let nodes = figure(tree, "leaves") + figure(tree, "inner_nodes");
        let (live, backed) = (figure(tree, "ids_live"), figure(tree, "ids_backed"));
        if live == nodes && backed <= live * PAGE {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{nodes} nodes, {live} ids in use, {backed} with memory"
        );
        thread::yield_now();
    }
}

/// It would fail if ids of nodes that were merged away were lost, or their pages kept.
#[test]
fn the_mapping_table_shrinks_when_all_is_removed() {
    let entries = u64::from(scaled(1_000_000));
    let tree = BwTree::<u64, u64>::new();
    let start = figure(&tree, "ids_backed");
    assert_eq!(start, PAGE);
    for turn in 0..2 {
        for key in 0..entries {
            tree.insert(key, key);
        }
        let full = figure(&tree, "ids_backed");
        assert!(full * 256 >= entries, "{full} ids for {entries} entries");
        if turn == 0 {
            assert_eq!(tree.remove_range(KeyRange::all()) as u64, entries);
        } else {
            for key in 0..entries {
                assert_eq!(tree.remove(&key), Some(key));
            }
        }
        settle(&tree);
        assert_eq!(figure(&tree, "leaves"), 1);
        assert_eq!(figure(&tree, "ids_backed"), start);
    }
}

/// Threads fill and empty their parts of the tree in turn: pages are given back while other threads
/// take ids. It would fail if an id were handed out twice, or from a page that has been given back:
/// then one part gets the entries of another.
#[test]
fn the_mapping_table_grows_and_shrinks_under_four_threads() {
    let tree = &BwTree::<u64, u64>::with_config(support::restless_bw());
    let entries = scaled(8_000);
    thread::scope(|scope| {
        let threads = (0..4).map(|number| {
            scope.spawn(move || {
                let mut random = Random::new(number);
                let base = u64::from(number) << 32;
                for turn in 0..6 {
                    let count = u64::from(random.below(entries) + 1);
                    for key in base..base + count {
                        assert_eq!(tree.insert(key, key + turn), None);
                    }
                    for key in base..base + count {
                        assert_eq!(tree.get(&key), Some(key + turn));
                    }
                    for key in (base..base + count).rev() {
                        assert_eq!(tree.remove(&key), Some(key + turn));
                    }
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        join_all(threads);
    });
    assert!(tree.is_empty());
    // A merge that gave up because other threads were at work there is made up for by the next one.
    for key in 0..64 {
        tree.insert(key, key);
    }
    tree.remove_range(KeyRange::all());
    settle(tree);
}

/// It would fail, naming the invariant, if a change or the tree at rest broke one.
#[test]
fn a_tree_keeps_its_invariants() {
    for config in [
        support::restless_bw(),
        support::bw_with_deltas(),
        support::bw_with_merge_deltas(),
        support::bw_of_spread_leaves(),
    ] {
        let tree = BwTree::<u64, u64>::with_config(config);
        let mut random = Random::new(5);
        for turn in 0..4 {
            for _ in 0..scaled(1_000) {
                let key = u64::from(random.below(300));
                if random.below(10) < if turn % 2 == 0 { 7 } else { 2 } {
                    tree.insert(key, key);
                } else {
                    tree.remove(&key);
                }
            }
            kit::Implementation::check_invariants(&tree);
        }
        tree.remove_range(KeyRange::new(Bound::Excluded(&50), Bound::Included(&250)));
        kit::Implementation::check_invariants(&tree);
    }
}

thread_local! {
    /// What a comparison or copy of [`Meddled`] keys does first.
    static MEDDLE: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
    /// The number of comparisons and copies before that one.
    static QUIET: Cell<u32> = const { Cell::new(0) };
}

/// A key whose comparisons and copies may run something else first: another write, as if by another
/// thread.
#[derive(PartialEq, Eq)]
struct Meddled(String);

impl Meddled {
    /// All keys begin with the same eight bytes, so the rest is compared.
    fn new(number: u64) -> Self {
        Self(format!("the key {number:06}"))
    }

    fn number(&self) -> u64 {
        self.0["the key ".len()..].parse().unwrap()
    }
}

/// Runs the other work, if it is due.
fn meddle() {
    match QUIET.get().checked_sub(1) {
        Some(quiet) => QUIET.set(quiet),
        None => MEDDLE.take().into_iter().for_each(|meddle| meddle()),
    }
}

impl Clone for Meddled {
    fn clone(&self) -> Self {
        meddle();
        Self(self.0.clone())
    }
}

impl Ord for Meddled {
    fn cmp(&self, other: &Self) -> Ordering {
        meddle();
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Meddled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ByteKey for Meddled {
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with_bytes(read)
    }
}

/// Each append finds that another thread was faster: the leaf is spread. It is made whole again
/// when the contention ends.
#[test]
fn a_leaf_is_spread_while_it_is_fought_over() {
    let tree = Arc::new(BwTree::<Meddled, u64>::with_config(BwTreeConfig {
        leaf_chain: 12,
        leaf_split: 128,
        leaf_merge: 32,
        leaf_contention: 4,
        ..BwTreeConfig::default()
    }));
    let figure = |name: &str| tree.shape().get(name).unwrap();
    let insert = |number: u64| assert_eq!(tree.insert(Meddled::new(number), number), None);
    let mut next = 0..;
    let mut number = move || next.next().unwrap();
    for _ in 0..100 {
        insert(number());
    }
    assert_eq!((figure("aborts"), figure("spreads")), (0, 0));
    for _ in 0..50 {
        let (first, second) = (number(), number());
        let other = Arc::clone(&tree);
        MEDDLE.set(Some(Box::new(move || {
            assert_eq!(other.insert(Meddled::new(first), first), None);
        })));
        insert(second);
    }
    assert!(figure("aborts") >= 4, "{:?}", tree.shape());
    assert!(figure("spreads") >= 1, "{:?}", tree.shape());
    for _ in 0..1_000 {
        insert(number());
    }
    let (spreads, aborts) = (figure("spreads"), figure("aborts"));
    assert_eq!(figure("spread_leaves"), 0, "{:?}", tree.shape());
    assert_eq!(figure("made_whole"), spreads);
    for _ in 0..1_000 {
        insert(number());
    }
    assert_eq!((figure("spreads"), figure("aborts")), (spreads, aborts));
    let found = tree.snapshot(KeyRange::all()).unwrap();
    assert!(found.into_iter().map(|(_, number)| number).eq(0..number()));
}

/// Deltas on one hot key cannot be spread: the leaf keeps its one chain.
#[test]
fn a_leaf_with_one_hot_key_is_not_spread() {
    let tree = BwTree::<u64, u64>::with_config(BwTreeConfig {
        leaf_chain: 12,
        leaf_merge: 32,
        leaf_contention: 0,
        ..BwTreeConfig::default()
    });
    for key in 0..24 {
        tree.insert(key, key);
    }
    let figure = |name: &str| tree.shape().get(name).unwrap();
    assert_eq!(figure("spread_leaves"), 0, "a small leaf was spread");
    let consolidations = figure("consolidations");
    for key in 24..60 {
        tree.insert(key, key);
    }
    assert_eq!(figure("spread_leaves"), 1);
    // A scan makes it whole.
    assert_eq!(tree.snapshot(KeyRange::all()).unwrap().len(), 60);
    assert_eq!(figure("spread_leaves"), 0);
    for value in 0..100 {
        tree.insert(7, value);
    }
    assert!(figure("consolidations") > consolidations + 4);
    assert_eq!(figure("spread_leaves"), 0, "one key was spread");
}

/// Deltas insert and delete separators, and split and merge leaves; every entry is found in each
/// turn. It would fail if a delta led to the wrong child, or one half of a split had an entry of
/// the other half.
#[test]
fn a_tree_with_deltas_of_every_kind_has_what_a_model_has() {
    let tree = BwTree::<String, u64>::with_config(support::bw_with_deltas());
    let (mut model, mut random) = (BTreeMap::new(), Random::new(7));
    for turn in 0..40 {
        for step in 0..scaled(1_000) {
            let key = format!("the key {:04}", random.below(1_000));
            if random.below(10) < if turn % 4 < 2 { 7 } else { 3 } {
                let value = u64::from(step);
                assert_eq!(tree.insert(key.clone(), value), model.insert(key, value));
            } else {
                assert_eq!(tree.remove(&key), model.remove(&key));
            }
        }
        assert!(
            model
                .iter()
                .all(|(key, value)| tree.get(key) == Some(*value))
        );
        let found = tree.snapshot(KeyRange::all()).unwrap();
        assert!(found.into_iter().eq(model.clone()));
    }
    let figure = |name: &str| tree.shape().get(name).unwrap();
    assert!(
        figure("splits") > 100 && figure("merges") > 100,
        "{:?}",
        tree.shape()
    );
}

/// Changes or looks up one of sixty keys, even or odd ones, in the tree and in a model.
fn random_operation(
    tree: &BwTree<Meddled, u64>,
    model: &mut BTreeMap<u64, u64>,
    random: &mut Random,
    is_odd: u64,
    removes: bool,
) {
    let number = u64::from(random.below(60)) * 2 + is_odd;
    let key = Meddled::new(number);
    if random.below(8) < if removes { 6 } else { 2 } {
        assert_eq!(tree.remove(&key), model.remove(&number));
    } else if random.below(4) > 0 {
        let value = u64::from(random.below(1_000));
        assert_eq!(tree.insert(key, value), model.insert(number, value));
    } else {
        assert_eq!(tree.get(&key), model.get(&number).copied());
    }
}

/// Even keys that stay.
const STEADY: Range<u64> = 200..260;

/// The odd keys of [`a_merge_is_finished_by_whoever_meets_it`], which it changes in the middle of
/// other operations.
struct Meddler {
    model: BTreeMap<u64, u64>,
    random: Random,
}

impl Meddler {
    /// Meddles every now and then.
    fn wait(meddler: Rc<RefCell<Self>>, tree: Arc<BwTree<Meddled, u64>>, removes: bool) {
        QUIET.set(meddler.borrow_mut().random.below(6));
        MEDDLE.set(Some(Box::new(move || {
            meddler.borrow_mut().meddle(&tree, removes);
            Self::wait(meddler, tree, removes);
        })));
    }

    fn meddle(&mut self, tree: &BwTree<Meddled, u64>, removes: bool) {
        match self.random.below(6) {
            0..2 => {
                for number in (1..120).step_by(2) {
                    let value = self.model.get(&number).copied();
                    assert_eq!(tree.get(&Meddled::new(number)), value);
                }
                for number in STEADY.step_by(2) {
                    assert_eq!(tree.get(&Meddled::new(number)), Some(number));
                }
                let found = tree.snapshot(KeyRange::all()).unwrap();
                let odd = (found.iter()).filter(|(key, _)| key.number() % 2 == 1);
                assert!(odd.map(|(_, value)| value).eq(self.model.values()));
            }
            2 => {
                let number = u64::from(self.random.below(60)) * 2 + 1;
                let (low, high) = (Meddled::new(number - 1), Meddled::new(number + 1));
                let range = KeyRange::new(Bound::Excluded(&low), Bound::Excluded(&high));
                let expected = usize::from(self.model.remove(&number).is_some());
                assert_eq!(tree.remove_range(range), expected);
            }
            _ => random_operation(tree, &mut self.model, &mut self.random, 1, removes),
        }
    }
}

/// In the middle of operations on even keys, at some comparisons and copies, another operation
/// reads odd keys, changes them, or removes a range of them. So it meets merges in many states, and
/// helps. It would fail if a step were taken twice, or undid a write made meanwhile.
#[test]
fn a_merge_is_finished_by_whoever_meets_it() {
    for config in [support::bw_with_merge_deltas(), support::bw_with_deltas()] {
        let tree = Arc::new(BwTree::<Meddled, u64>::with_config(config));
        // With these keys the root is never a leaf. An operation that lowers it to a leaf holds it
        // while it compares keys.
        for number in STEADY.step_by(2) {
            tree.insert(Meddled::new(number), number);
        }
        let (mut random, mut model) = (Random::new(11), BTreeMap::new());
        let meddler = Rc::new(RefCell::new(Meddler {
            model: BTreeMap::new(),
            random: Random::new(12),
        }));
        for step in 0..scaled(20_000) {
            let removes = step / 400 % 2 == 1;
            Meddler::wait(Rc::clone(&meddler), Arc::clone(&tree), removes);
            random_operation(&tree, &mut model, &mut random, 0, removes);
            drop(MEDDLE.take());
            QUIET.set(0);
        }
        let found = tree.snapshot(KeyRange::all()).unwrap();
        let is_even = |key: &Meddled| key.number() < STEADY.start && key.number().is_multiple_of(2);
        let even = (found.iter()).filter(|(key, _)| is_even(key));
        assert!(even.map(|(_, value)| value).eq(model.values()));
        assert!(tree.shape().get("merges").unwrap() > 20);
    }
}

/// Whichever comparison or copy of a key panics, the tree is dropped as it then is: no operation
/// finishes the merge that the panic has stopped. It would fail if what a node has under a delta of
/// a merge were not freed, or were freed twice.
#[test]
fn a_tree_that_is_dropped_in_the_middle_of_a_merge_frees_all() {
    type Part = Counted<Fragile<u64>>;
    for config in [support::bw_with_merge_deltas(), support::bw_with_deltas()] {
        for calls in 0.. {
            let ledger = Ledger::default();
            let part = |number| ledger.make(Fragile(number));
            let tree = BwTree::<Part, Part, NoHead>::with_config(config);
            for number in 0..40 {
                tree.insert(part(number * 7 % 40), part(number));
            }
            let remove_all = || {
                for number in 0..40 {
                    assert!(tree.remove(&part(number)).is_some());
                }
            };
            let panicked = with_fuse(calls, remove_all).is_none();
            drop(tree);
            ledger.assert_settled();
            if !panicked {
                break;
            }
        }
    }
}

thread_local! {
    /// The number of drops of [`Bomb`]s until one panics; 0 while none does.
    static FUSE: Cell<u32> = const { Cell::new(0) };
    /// The number of those that have panicked.
    static BLOWN: Cell<usize> = const { Cell::new(0) };
}

/// A value whose `Drop` panics now and then.
#[derive(Clone)]
struct Bomb(Counted<u64>);

/// The text of the panic of a bomb.
const A_BOMB: &str = "a bomb";

impl Drop for Bomb {
    fn drop(&mut self) {
        match FUSE.get() {
            0 => {}
            1 if thread::panicking() => {}
            1 => {
                FUSE.set(17);
                BLOWN.set(BLOWN.get() + 1);
                std::panic::resume_unwind(Box::new(A_BOMB));
            }
            left => FUSE.set(left - 1),
        }
    }
}

/// It would fail if a value were dropped in the middle of an operation, while a node is in two
/// places or held: then a panic leaves the tree broken, and loses all that comes after it in a
/// list. A panic may lose at most what the operation was about to return.
#[test]
fn a_drop_that_panics_leaves_the_tree_whole() {
    for local_epochs in [true, false] {
        for mut config in [support::restless_bw(), support::bw_with_deltas()] {
            config.switches.local_epochs = local_epochs;
            let ledger = Ledger::default();
            let tree = BwTree::<u64, Bomb>::with_config(config);
            let mut random = Random::new(3);
            let bomb = |key: u64| Bomb(ledger.make(key));
            BLOWN.set(0);
            let under_fire = |work: &mut dyn FnMut()| {
                FUSE.set(17);
                let outcome = catch_unwind(AssertUnwindSafe(work));
                FUSE.set(0);
                if let Err(panic) = outcome {
                    assert_eq!(text_of(&*panic), Some(A_BOMB), "not a bomb");
                }
            };
            for _ in 0..scaled(8_000) {
                let key = u64::from(random.below(400));
                let what = random.below(11);
                under_fire(&mut || match what {
                    0..4 => drop(tree.insert(key, bomb(key))),
                    4..7 => drop(tree.remove(&key)),
                    7 => drop(tree.insert_if_absent(key, bomb(key))),
                    8 => drop(tree.update(key, &mut |_| Update::Put(bomb(key)))),
                    9 => drop(tree.pop_first()),
                    _ if key < 50 => {
                        let (low, high) = (&(key * 8), &(key * 8 + 60));
                        let range = KeyRange::new(Bound::Included(low), Bound::Excluded(high));
                        tree.remove_range(range);
                    }
                    _ => drop(tree.get(&key)),
                });
            }
            let found = tree.snapshot(KeyRange::all()).unwrap();
            assert!(found.is_sorted_by(|one, next| one.0 < next.0));
            assert!(found.iter().all(|(key, bomb)| bomb.0.value == *key));
            assert_eq!(found.len(), tree.len());
            drop(found);
            let mut tree = Some(tree);
            under_fire(&mut || drop(tree.take()));
            let (lost, blown) = (ledger.alive(), BLOWN.get());
            assert!(blown > 20 && lost <= blown, "{blown} panics, {lost} lost");
        }
    }
}
