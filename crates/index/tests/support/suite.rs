//! What every engine must pass, written against [`OrderedIndex`] alone. `engines.rs` runs it for
//! each engine. Each function takes a function that makes empty indexes.

use super::counted::{Counted, Ledger};
use super::fuse::{Fragile, burn, with_fuse};
use super::operations::{
    Mix, Operation, as_range, bounds, direction, expected, lies_within, range, row, sequences,
};
use super::values::{Dawdler, Key, Value};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;
use tremula_index::{Direction, KeyRange, OrderedIndex, Update, kit};

/// The number of threads in each concurrent test.
const THREADS: u32 = 4;

/// The scale of the tests: smaller under ThreadSanitizer.
pub(crate) const fn scaled(operations: u32) -> u32 {
    if cfg!(tremula_tsan) {
        operations / 10
    } else {
        operations
    }
}

/// The papers' engines, whose code seldom changes, get one random case of this many, except where
/// everything is asked for (`cargo xtask test --deep`).
fn share() -> u32 {
    let of_papers = env!("CARGO_PKG_NAME") == "tremula-papers";
    if of_papers && std::env::var_os("TREMULA_DEEP").is_none() {
        4
    } else {
        1
    }
}

/// The entries of an index, as of one moment.
pub(crate) fn contents<K: Ord + Clone, V: Clone>(
    index: &(impl OrderedIndex<K, V> + ?Sized),
) -> Vec<(K, V)> {
    let mut entries = Vec::new();
    index.scan(
        KeyRange::all(),
        Direction::Ascending,
        usize::MAX,
        &mut entries,
    );
    entries
}

/// Random sequences of all operations return the same results, and leave the same contents, as on a
/// `BTreeMap`; and the invariants of the engine hold.
pub(crate) fn model<K: Key, V: Value, I: kit::Implementation<K, V>>(make: impl Fn() -> I) {
    for (keys, mix, length, cases) in [
        (12, Mix::Even, 120, 300),
        (200, Mix::Shrinking, 120, 300),
        (20_000, Mix::Growing, 60, 60),
        (20_000, Mix::Shrinking, 60, 60),
    ] {
        let config = ProptestConfig {
            cases: (scaled(cases) / share()).max(5),
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let sequences = (sequences(keys, mix, length), range(keys), direction());
        let result = TestRunner::new(config).run(&sequences, |(operations, range, direction)| {
            let index = make();
            let mut model = BTreeMap::new();
            for operation in &operations {
                apply(&index, &mut model, operation, keys);
            }
            let entries: Vec<_> = model.clone().into_iter().collect();
            assert_eq!(contents(&index), entries);
            views_agree(&index, &model, &bounds(range, K::make), direction);
            index.check_invariants();
            Ok(())
        });
        result.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// The entry behind a key, as a step shows it.
fn step<K: Key, V: Value>(
    index: &dyn OrderedIndex<K, V>,
    key: &K,
    direction: Direction,
) -> Option<(K, V)> {
    let mut found = None;
    let read = &mut |key: &K, value: &V| found = Some((key.clone(), value.clone()));
    assert_eq!(index.step_with(key, direction, read), found.is_some());
    found
}

/// Applies `operation` to index and model, and compares the results.
fn apply<K: Key, V: Value>(
    index: &dyn OrderedIndex<K, V>,
    model: &mut BTreeMap<K, V>,
    operation: &Operation,
    keys: u32,
) {
    match operation {
        Operation::Get(key) => {
            let key = K::make(*key);
            let wanted = model.get(&key);
            assert_eq!(index.get(&key).as_ref(), wanted);
            assert_eq!(index.contains_key(&key), wanted.is_some());
            let mut seen = Vec::new();
            let called = index.get_with(&key, &mut |value| seen.push(value.clone()));
            assert_eq!(called, wanted.is_some());
            let mut batch = vec![Some(V::make(1))];
            let keys: Vec<K> = (0..keys.min(20)).map(K::make).collect();
            index.get_many(&keys, &mut batch);
            let singly = keys.iter().map(|key| model.get(key).cloned());
            assert_eq!(batch[1..], *Vec::from_iter(singly));
            assert_eq!(seen.iter().collect::<Vec<_>>(), Vec::from_iter(wanted));
        }
        Operation::Insert(key, value) => {
            let (key, value) = (K::make(*key), V::make(*value));
            let old = index.insert(key.clone(), value.clone());
            assert_eq!(old, model.insert(key, value));
        }
        Operation::InsertIfAbsent(key, value) => {
            let (key, value) = (K::make(*key), V::make(*value));
            let outcome = index.insert_if_absent(key.clone(), value.clone());
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
            assert_eq!(index.remove(&key), model.remove(&key));
        }
        Operation::Update(key, decision) => update(index, model, K::make(*key), *decision),
        Operation::First => {
            let wanted = model.first_key_value();
            assert_eq!(index.first(), wanted.map(|(k, v)| (k.clone(), v.clone())));
        }
        Operation::Last => {
            let wanted = model.last_key_value();
            assert_eq!(index.last(), wanted.map(|(k, v)| (k.clone(), v.clone())));
        }
        Operation::Next(key) => {
            let key = K::make(*key);
            let wanted = model
                .range((Bound::Excluded(&key), Bound::Unbounded))
                .next();
            let wanted = wanted.map(|(k, v)| (k.clone(), v.clone()));
            assert_eq!(index.next(&key), wanted);
            assert_eq!(step(index, &key, Direction::Ascending), wanted);
        }
        Operation::Prev(key) => {
            let key = K::make(*key);
            let wanted = model.range(..&key).next_back();
            let wanted = wanted.map(|(k, v)| (k.clone(), v.clone()));
            assert_eq!(index.prev(&key), wanted);
            assert_eq!(step(index, &key, Direction::Descending), wanted);
        }
        Operation::PopFirst => assert_eq!(index.pop_first(), model.pop_first()),
        Operation::PopLast => assert_eq!(index.pop_last(), model.pop_last()),
        Operation::Scan(range, direction, limit) => {
            let range = bounds(*range, K::make);
            // Entries that are already in the vector stay.
            let mut entries = contents_of_one::<K, V>();
            index.scan(as_range(&range), *direction, *limit, &mut entries);
            let mut wanted = contents_of_one();
            wanted.extend(expected(model, &range, *direction, *limit));
            assert_eq!(entries, wanted);
        }
        Operation::RemoveRange(range) => {
            let range = bounds(*range, K::make);
            let before = model.len();
            model.retain(|key, _| !lies_within(key, &range));
            assert_eq!(index.remove_range(as_range(&range)), before - model.len());
        }
        Operation::Count => {
            assert_eq!(index.len(), model.len());
            assert_eq!(index.is_empty(), model.is_empty());
        }
        Operation::Fill(from, length, way) => {
            for key in row(*from, *length, *way, keys) {
                let old = index.insert(K::make(key), V::make(key));
                assert_eq!(old, model.insert(K::make(key), V::make(key)));
            }
        }
        Operation::Drain(from, length, way) => {
            for key in row(*from, *length, *way, keys) {
                let key = K::make(key);
                assert_eq!(index.remove(&key), model.remove(&key));
            }
        }
    }
}

fn contents_of_one<K: Key, V: Value>() -> Vec<(K, V)> {
    vec![(K::make(1), V::make(1))]
}

fn update<K: Key, V: Value>(
    index: &dyn OrderedIndex<K, V>,
    model: &mut BTreeMap<K, V>,
    key: K,
    decision: Update<u32>,
) {
    let mut shown = Vec::new();
    let old = index.update(key.clone(), &mut |value| {
        shown.push(value.cloned());
        match decision {
            Update::Put(value) => Update::Put(V::make(value)),
            Update::Keep => Update::Keep,
            Update::Remove => Update::Remove,
        }
    });
    assert_eq!(shown, [model.get(&key).cloned()], "shown once");
    let wanted = match decision {
        Update::Put(value) => model.insert(key, V::make(value)),
        Update::Keep => None,
        Update::Remove => model.remove(&key),
    };
    assert_eq!(old, wanted);
}

/// All ways to look at an index, or at a range of it, show what the model holds.
fn views_agree<K: Key, V: Value>(
    index: &dyn OrderedIndex<K, V>,
    model: &BTreeMap<K, V>,
    range: &(Bound<K>, Bound<K>),
    direction: Direction,
) {
    assert_eq!(index.len(), model.len());
    assert_eq!(index.is_empty(), model.is_empty());

    let inside = expected(model, range, Direction::Ascending, usize::MAX);
    if let Some(snapshot) = index.snapshot(as_range(range)) {
        assert_eq!(snapshot, inside);
    }
    // The whole range, exactly one batch, one entry and none.
    for limit in [usize::MAX, tremula_index::FIRST_BATCH, 1, 0] {
        let mut visited = Vec::new();
        index.range(as_range(range), direction, &mut |key, value| {
            visited.push((key.clone(), value.clone()));
            if visited.len() >= limit {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        // A visitor cannot refuse the first entry.
        assert_eq!(visited, expected(model, range, direction, limit.max(1)));
    }

    let shape = index.shape();
    assert_eq!(shape.engine, index.engine());
    assert_eq!(shape.get("entries"), Some(model.len() as u64));
    let bytes = shape.get("bytes").unwrap_or(0);
    assert!(bytes >= model.len() as u64, "{shape:?}");
}

/// Operations of several threads on disjoint keys do not disturb one another: every result is that
/// of the thread's own model, and the models together are the contents.
pub(crate) fn disjoint_writers<I: OrderedIndex<u64, u64>>(make: impl Fn() -> I) {
    let index = make();
    let start = Barrier::new(THREADS as usize);
    let models = in_threads(|thread| {
        start.wait();
        let mut model = BTreeMap::new();
        let mut random = Random::new(thread);
        for _ in 0..scaled(30_000) {
            // Each thread's keys lie between those of the others.
            let key = u64::from(random.below(2_000) * THREADS + thread);
            let value = random.next();
            match random.below(8) {
                0..=2 => assert_eq!(index.insert(key, value), model.insert(key, value)),
                3 => {
                    let outcome = index.insert_if_absent(key, value);
                    assert_eq!(outcome.is_ok(), !model.contains_key(&key));
                    model.entry(key).or_insert(value);
                }
                4 | 5 => assert_eq!(index.remove(&key), model.remove(&key)),
                6 => update(&index, &mut model, key, Update::Put(value as u32)),
                _ => assert_eq!(index.get(&key), model.get(&key).copied()),
            }
        }
        model
    });
    let all: BTreeMap<_, _> = models.into_iter().flatten().collect();
    assert_eq!(index.len(), all.len());
    assert_eq!(contents(&index), Vec::from_iter(all));
}

/// No increment through `update` is lost.
pub(crate) fn counters<I: OrderedIndex<u64, u64>>(make: impl Fn() -> I) {
    const COUNTERS: u32 = 64;
    let rounds = scaled(40_000);
    let index = make();
    let start = Barrier::new(THREADS as usize);
    in_threads(|thread| {
        start.wait();
        let mut random = Random::new(thread);
        for _ in 0..rounds {
            let key = u64::from(random.below(COUNTERS));
            index.update(key, &mut |count| Update::Put(count.unwrap_or(&0) + 1));
        }
    });
    let total: u64 = contents(&index).into_iter().map(|(_, count)| count).sum();
    assert_eq!(total, u64::from(rounds * THREADS));
}

/// If several threads insert the same key if absent, exactly one succeeds, and its value is stored.
pub(crate) fn one_winner<I: OrderedIndex<u64, u64>>(make: impl Fn() -> I) {
    let keys = scaled(20_000);
    let index = make();
    let start = Barrier::new(THREADS as usize);
    let wins = in_threads(|thread| {
        start.wait();
        (0..u64::from(keys))
            .filter(|key| index.insert_if_absent(*key, thread.into()).is_ok())
            .map(|key| (key, u64::from(thread)))
            .collect::<Vec<_>>()
    });
    let mut wins = wins.concat();
    wins.sort_unstable();
    assert_eq!(wins, contents(&index));
    assert_eq!(wins.len(), keys as usize);
}

/// Keys serve as locks: `insert_if_absent` takes a lock, and no two threads ever hold one at the
/// same time; removal releases it and returns the holder's own value.
pub(crate) fn keys_as_locks<I: OrderedIndex<Dawdler, u64>>(make: impl Fn() -> I) {
    const LOCKS: u32 = 3;
    /// Keys on both sides of each lock, so that a search makes comparisons, which dawdle.
    const BETWEEN: u64 = 40;
    let index = make();
    for key in (0..=BETWEEN * u64::from(LOCKS)).filter(|key| key % BETWEEN != BETWEEN / 2) {
        index.insert(Dawdler(key), 0);
    }
    let others = index.len();
    let holders = [const { AtomicUsize::new(0) }; LOCKS as usize];
    let start = Barrier::new(THREADS as usize);
    in_threads(|thread| {
        start.wait();
        let mut random = Random::new(thread);
        for _ in 0..scaled(60_000) {
            let lock = random.below(LOCKS);
            let key = Dawdler(u64::from(lock) * BETWEEN + BETWEEN / 2);
            let holders = &holders[lock as usize];
            if index.insert_if_absent(key, thread.into()).is_ok() {
                assert_eq!(holders.fetch_add(1, Relaxed), 0, "two threads hold {key:?}");
                assert_eq!(holders.fetch_sub(1, Relaxed), 1, "two threads hold {key:?}");
                assert_eq!(index.remove(&key), Some(thread.into()));
            }
        }
    });
    assert_eq!(index.len(), others);
}

/// Every entry is popped once, by any thread and from either end, and each thread sees the keys of
/// each end in order.
pub(crate) fn pops<I: OrderedIndex<u64, u64>>(make: impl Fn() -> I) {
    let keys = u64::from(scaled(40_000));
    let index = make();
    for key in 0..keys {
        index.insert(key, !key);
    }
    let start = Barrier::new(THREADS as usize);
    let popped = in_threads(|thread| {
        start.wait();
        let from_below = thread % 2 == 0;
        let pop = || {
            if from_below {
                index.pop_first()
            } else {
                index.pop_last()
            }
        };
        let popped: Vec<_> = std::iter::from_fn(pop).collect();
        assert!(
            popped
                .windows(2)
                .all(|pair| (pair[0].0 < pair[1].0) == from_below),
            "out of order"
        );
        popped
    });
    let popped = popped.concat();
    assert!(popped.iter().all(|(key, value)| *value == !key));
    assert_eq!(popped.len() as u64, keys);
    assert_eq!(popped.iter().collect::<BTreeSet<_>>().len() as u64, keys);
    assert!(index.is_empty());
    assert_eq!(index.pop_first(), None);
}

/// Every key and value, made by any thread, is dropped once, in time.
pub(crate) fn drops<I: OrderedIndex<Counted<u64>, Counted<u64>>>(make: impl Fn() -> I) {
    let ledger = Ledger::default();
    {
        let index = make();
        let start = Barrier::new(THREADS as usize);
        in_threads(|thread| {
            start.wait();
            let mut random = Random::new(thread);
            for _ in 0..scaled(20_000) {
                let key = ledger.make(random.below(3_000).into());
                let value = ledger.make(random.next());
                match random.below(40) {
                    0..=14 => drop(index.insert(key, value)),
                    15..=17 => drop(index.insert_if_absent(key, value)),
                    18..=28 => drop(index.remove(&key)),
                    29 => drop(index.pop_first()),
                    30 => drop(index.pop_last()),
                    31 => drop(index.next(&key)),
                    32 => {
                        let mut entries = Vec::new();
                        let range = KeyRange::new(Bound::Included(&key), Bound::Unbounded);
                        index.scan(range, Direction::Ascending, 50, &mut entries);
                    }
                    33 => {
                        let high = ledger.make(key.value + 20);
                        let range = KeyRange::new(Bound::Included(&key), Bound::Excluded(&high));
                        index.remove_range(range);
                    }
                    _ => drop(index.update(key, &mut |old| match old {
                        Some(old) if old.value % 2 == 0 => Update::Remove,
                        Some(_) => Update::Keep,
                        None => Update::Put(value.clone()),
                    })),
                }
            }
        });
        assert!(ledger.alive() >= 2 * index.len());
    }
    settle(&ledger);
    ledger.assert_settled();
}

/// Advances the epoch until everything that engines have retired is freed. What a thread retired
/// itself may wait for that thread's end.
fn settle(ledger: &Ledger) {
    for _ in 0..100_000 {
        if ledger.alive() == 0 {
            return;
        }
        tremula_sync::epoch::pin().flush();
        thread::yield_now();
    }
}

/// Key of the tests of panics: comparing and cloning it burns the fuse.
type FragileKey = Counted<Fragile<u32>>;
/// Value of the tests of panics: cloning it burns the fuse.
type FragileValue = Counted<Fragile<u32>>;

/// Whichever call of user code (`Ord`, `Clone`, a closure) panics in an operation, the operation
/// either happened or did not, and another thread can read and write the index: no lock stays held.
/// Nothing is lost or freed twice.
pub(crate) fn panics<I>(make: impl Fn() -> I + Sync)
where
    I: OrderedIndex<FragileKey, FragileValue> + 'static,
{
    let ledger = Ledger::default();
    let all_cases = || {
        let referee = Referee::start();
        for entries in [0, 1, 2, 8, 60] {
            for number in 0..OPERATIONS {
                for key in [0, entries, 2 * entries + 1] {
                    // From the first call of user code until the operation makes no more.
                    for calls in 0.. {
                        if !panics_at(&make, &referee, &ledger, (entries, number, key, calls)) {
                            break;
                        }
                    }
                }
            }
        }
    };
    // In a thread of its own, so that what it retired can be freed when it has ended.
    thread::scope(|scope| scope.spawn(all_cases).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    settle(&ledger);
    ledger.assert_settled();
}

/// The operations that [`fragile_operation`] knows.
const OPERATIONS: u32 = 19;

/// Runs one operation with a fuse on a fresh index; returns whether the fuse blew.
fn panics_at<I>(
    make: &impl Fn() -> I,
    referee: &Referee,
    ledger: &Ledger,
    (entries, number, key, calls): (u32, u32, u32, u32),
) -> bool
where
    I: OrderedIndex<FragileKey, FragileValue> + 'static,
{
    let index = make();
    let mut before = BTreeMap::new();
    for n in 0..entries {
        let key = (n * 7 % entries) * 2;
        index.insert(ledger.make(Fragile(key)), ledger.make(Fragile(key)));
        before.insert(key, key);
    }
    let mut after = before.clone();
    model_operation(&mut after, number, key);

    let blown = with_fuse(calls, || fragile_operation(&index, ledger, number, key)).is_none();

    let case = format!("operation {number} on {key} of {entries}, panic at call {calls}");
    let found = referee.judge(index, ledger.clone(), &case);
    let before: Vec<_> = before.into_iter().collect();
    let after: Vec<_> = after.into_iter().collect();
    if blown {
        assert!(found == before || found == after, "{case}: {found:?}");
    } else {
        assert_eq!(found, after, "{case}");
    }
    blown
}

fn fragile_operation(
    index: &dyn OrderedIndex<FragileKey, FragileValue>,
    ledger: &Ledger,
    number: u32,
    key: u32,
) {
    let key = ledger.make(Fragile(key));
    let value = ledger.make(Fragile(1000));
    let other = ledger.make(Fragile(key.value.0 + 9));
    let range = KeyRange::new(Bound::Included(&key), Bound::Excluded(&other));
    let decide = |decision: fn(FragileValue) -> Update<FragileValue>| {
        let mut value = Some(value.clone());
        move |_: Option<&FragileValue>| {
            burn();
            value.take().map_or(Update::Keep, decision)
        }
    };
    match number {
        0 => drop(index.get(&key)),
        1 => drop(index.get_with(&key, &mut |_| burn())),
        2 => drop(index.contains_key(&key)),
        3 => drop(index.insert(key, value)),
        4 => drop(index.insert_if_absent(key, value)),
        5 => drop(index.remove(&key)),
        6 => drop(index.update(key, &mut decide(Update::Put))),
        7 => drop(index.update(key, &mut decide(|_| Update::Keep))),
        8 => drop(index.update(key, &mut decide(|_| Update::Remove))),
        9 => drop(index.first()),
        10 => drop(index.last()),
        11 => drop(index.next(&key)),
        12 => drop(index.prev(&key)),
        13 => drop(index.pop_first()),
        14 => drop(index.pop_last()),
        15 => drop(index.snapshot(range)),
        16 => index.scan(range, Direction::Descending, 3, &mut Vec::new()),
        17 => index.range(range, Direction::Ascending, &mut |_, _| {
            burn();
            ControlFlow::Continue(())
        }),
        _ => drop(index.remove_range(range)),
    }
}

/// Applies to the model what [`fragile_operation`] should do.
fn model_operation(model: &mut BTreeMap<u32, u32>, number: u32, key: u32) {
    match number {
        3 | 6 => drop(model.insert(key, 1000)),
        4 => drop(model.entry(key).or_insert(1000)),
        5 | 8 => drop(model.remove(&key)),
        13 => drop(model.pop_first()),
        14 => drop(model.pop_last()),
        18 => model.retain(|candidate, _| !(key..key + 9).contains(candidate)),
        _ => {}
    }
}

/// A second thread that checks an index after a panic in the first.
struct Referee {
    questions: mpsc::Sender<Question>,
}

type Question = Box<dyn FnOnce() + Send>;

impl Referee {
    /// How long a referee may take. After that the index counts as locked for good.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn start() -> Self {
        let (questions, asked) = mpsc::channel::<Question>();
        thread::spawn(move || asked.into_iter().for_each(|question| question()));
        Self { questions }
    }

    /// The contents of an index as seen by another thread, which also writes to the index and drops
    /// it.
    fn judge<I>(&self, index: I, ledger: Ledger, case: &str) -> Vec<(u32, u32)>
    where
        I: OrderedIndex<FragileKey, FragileValue> + 'static,
    {
        let (answer, answered) = mpsc::channel();
        let question = Box::new(move || {
            let entries = contents(&index);
            let exact = index.len() == entries.len();
            let key = ledger.make(Fragile(u32::MAX));
            let absent = index
                .insert_if_absent(key.clone(), ledger.make(Fragile(0)))
                .is_ok();
            let present = index.remove(&key).is_some();
            let found = entries.iter().map(|(k, v)| (k.value.0, v.value.0));
            let found: Vec<_> = found.collect();
            drop((index, entries, key, ledger));
            // The receiver may have stopped waiting.
            let _ = answer.send((found, exact && absent && present));
        });
        // The thread ends only when this end of the channel closes, or with a panic that is
        // reported below.
        let _ = self.questions.send(question);
        let (found, works) = answered
            .recv_timeout(Self::PATIENCE)
            .unwrap_or_else(|_| panic!("{case}: the index is locked, or panicked when used"));
        assert!(works, "{case}: wrong size, or cannot be written");
        found
    }
}

/// The closure of `range` runs without a lock, so it may write to the index that it scans.
pub(crate) fn range_may_write<I: OrderedIndex<u64, u64>>(make: impl Fn() -> I) {
    let index = make();
    for key in 0..500 {
        index.insert(key * 2, key);
    }
    let visited = AtomicUsize::new(0);
    index.range(KeyRange::all(), Direction::Ascending, &mut |key, _| {
        visited.fetch_add(1, Relaxed);
        index.remove(key);
        ControlFlow::Continue(())
    });
    assert_eq!(visited.into_inner(), 500);
    assert!(index.is_empty());
}

/// Runs `work` in [`THREADS`] threads, with the number of each.
fn in_threads<R: Send>(work: impl Fn(u32) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        join_all(threads)
    })
}

/// The results of threads, or the first panic among them.
///
/// The end of a scope also waits for its threads, but through code of std that ThreadSanitizer does
/// not see. It does see a join.
pub(crate) fn join_all<R>(threads: Vec<ScopedJoinHandle<'_, R>>) -> Vec<R> {
    let results: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect()
}

/// Numbers that look random and are the same in every run (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u32) -> Self {
        Self(seed.into())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u32
    }
}
