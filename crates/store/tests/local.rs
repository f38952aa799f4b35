//! Maps that are kept in a directory: as a `BTreeMap` is, over restarts and kills too.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tremula_store::local::{
    DurableMap, Json, LocalError, LocalOptions, LocalStore, MapError, WriteBatch,
};
use tremula_store::{Engine, Key, Update, Value};

type Map = DurableMap<(String, u8), Vec<u8>>;

fn options() -> LocalOptions {
    LocalOptions::default().segment_bytes(16 << 10)
}

fn open(directory: &Path, engine: Engine) -> Map {
    let options = options().engine(engine).snapshot_every(8 << 10);
    Map::open_with(directory, &options).expect("what was written is whole")
}

/// Ends the threads of a test, also when it fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u8, Vec<u8>),
    Remove(u8),
    Append(u8, Vec<u8>),
    RemoveRange(u8, u8),
    Batch(Vec<(u8, Option<Vec<u8>>)>),
    Snapshot,
    Again,
}

fn key(number: u8) -> (String, u8) {
    // The order of the numbers is not that of the keys, and texts have zero bytes.
    let text = ["", "a", "a\0b"][usize::from(number % 3)];
    (text.to_owned(), number)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = || 0..30_u8;
    let bytes = || prop::collection::vec(any::<u8>(), 0..80);
    let change = move || (number(), prop::option::of(bytes()));
    let step = prop_oneof![
        8 => (number(), bytes()).prop_map(|(number, bytes)| Step::Insert(number, bytes)),
        4 => number().prop_map(Step::Remove),
        4 => (number(), bytes()).prop_map(|(number, bytes)| Step::Append(number, bytes)),
        2 => (number(), number()).prop_map(|(low, high)| Step::RemoveRange(low, high)),
        4 => prop::collection::vec(change(), 0..6).prop_map(Step::Batch),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Again),
    ];
    prop::collection::vec(step, 1..50)
}

fn all(map: &Map) -> BTreeMap<(String, u8), Vec<u8>> {
    map.iter().collect::<Result<_, _>>().expect("their types")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_map_is_what_a_btree_map_is_and_is_there_again(
        steps in steps(),
        engine in prop::sample::select(&[Engine::Aspen, Engine::BTree, Engine::CaTree][..]),
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let mut map = open(directory.path(), engine);
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Insert(number, bytes) => {
                    let old = map.insert(&key(number), &bytes).expect("inserted");
                    prop_assert_eq!(old, model.insert(key(number), bytes));
                }
                Step::Remove(number) => {
                    let old = map.remove(&key(number)).expect("removed");
                    prop_assert_eq!(old, model.remove(&key(number)));
                }
                Step::Append(number, more) => {
                    // Removes what has become long.
                    let decide = |current: Option<Vec<u8>>| match current {
                        Some(current) if current.len() > 100 => Update::Remove,
                        Some(current) => Update::Put([current, more.clone()].concat()),
                        None if more.is_empty() => Update::Keep,
                        None => Update::Put(more.clone()),
                    };
                    let old = map.update(&key(number), decide).expect("updated");
                    let current = model.get(&key(number)).cloned();
                    match decide(current.clone()) {
                        Update::Put(value) => {
                            prop_assert_eq!(old, model.insert(key(number), value));
                        }
                        Update::Remove => prop_assert_eq!(old, model.remove(&key(number))),
                        Update::Keep => prop_assert_eq!(old, None),
                    }
                }
                Step::RemoveRange(low, high) => {
                    let bounds = key(low)..key(high);
                    let removed = map.remove_range(bounds.clone()).expect("removed");
                    let before = model.len();
                    model.retain(|key, _| !(*key >= bounds.start && *key < bounds.end));
                    prop_assert_eq!(removed, before - model.len());
                }
                Step::Batch(changes) => {
                    let mut batch = WriteBatch::new();
                    for (number, value) in changes {
                        match value {
                            Some(value) => {
                                batch.insert(&key(number), &value);
                                model.insert(key(number), value);
                            }
                            None => {
                                batch.remove(&key(number));
                                model.remove(&key(number));
                            }
                        }
                    }
                    map.write(batch).expect("written");
                }
                Step::Snapshot => {
                    map.snapshot().expect("a snapshot");
                }
                Step::Again => {
                    map.close().expect("all is durable");
                    map = open(directory.path(), engine);
                }
            }
            prop_assert_eq!(map.len(), model.len());
            prop_assert_eq!(map.is_empty(), model.is_empty());
            let first = model.first_key_value();
            let first = first.map(|(key, value)| (key.clone(), value.clone()));
            prop_assert_eq!(map.first().expect("an entry"), first);
        }
        drop(map);
        let map = open(directory.path(), engine);
        prop_assert_eq!(&all(&map), &model);
        for number in 0..30 {
            let there = map.get(&key(number)).expect("its type");
            prop_assert_eq!(map.contains_key(&key(number)), there.is_some());
            prop_assert_eq!(there.as_ref(), model.get(&key(number)));
            let above = map.range(key(number)..).map(|entry| entry.expect("an entry").0);
            prop_assert!(above.eq(model.range(key(number)..).map(|(key, _)| key.clone())));
            let below = map.range_descending(..key(number));
            let below = below.map(|entry| entry.expect("an entry").0);
            let expected = model.range(..key(number)).rev();
            prop_assert!(below.eq(expected.map(|(key, _)| key.clone())));
        }
        let last = model.last_key_value();
        let last = last.map(|(key, value)| (key.clone(), value.clone()));
        prop_assert_eq!(map.last().expect("an entry"), last);
    }
}

/// A reader that saw a part of a batch without the others would see different numbers.
#[test]
fn threads_write_at_once_and_see_whole_batches() {
    const THREADS: u64 = 4;
    const TIMES: u64 = 100;
    const BATCH: usize = 60;
    let directory = tempfile::tempdir().expect("a directory");
    let map = DurableMap::<String, u64>::open_with(directory.path(), &options()).expect("a map");
    let names: Vec<String> = (0..BATCH).map(|number| format!("{number:03}")).collect();
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut looks = 0;
            while !ends.load(Ordering::Relaxed) || looks == 0 {
                let seen = map.range(names[0].clone()..=names[BATCH - 1].clone());
                let seen: Vec<u64> = seen.map(|entry| entry.expect("an entry").1).collect();
                assert!([0, BATCH].contains(&seen.len()), "{} keys", seen.len());
                assert!(seen.iter().all(|number| *number == seen[0]), "{seen:?}");
                looks += 1;
            }
        });
        let ended = Ends(&ends);
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (map, names) = (&map, &names);
                scope.spawn(move || {
                    for time in 0..TIMES {
                        let mut batch = WriteBatch::new();
                        for name in names {
                            batch.insert(name, &(thread * TIMES + time));
                        }
                        map.write(batch).expect("written");
                        let count = |count: Option<u64>| Update::Put(count.unwrap_or(0) + 1);
                        map.update(&"zcount".to_owned(), count).expect("counted");
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("it ends");
        }
        drop(ended);
        reader.join().expect("it ends");
    });
    drop(map);
    let map = DurableMap::<String, u64>::open(directory.path()).expect("a map");
    let count = map.get(&"zcount".to_owned()).expect("a number");
    assert_eq!(count, Some(THREADS * TIMES));
}

#[test]
fn the_log_is_cut_behind_snapshots_in_the_background() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = options().snapshot_every(32 << 10);
    let map = DurableMap::<u64, Vec<u8>>::open_with(directory.path(), &options).expect("a map");
    let log = map.store().keyspace().log().expect("a log");
    let begun = Instant::now();
    let mut number = 0;
    while log.first().get() == 1 {
        map.insert(&(number % 100), &vec![7; 500])
            .expect("inserted");
        number += 1;
        assert!(begun.elapsed() < Duration::from_secs(60), "it never cuts");
        if number % 64 == 0 {
            thread::sleep(Duration::from_millis(5));
        }
    }
    assert_eq!(map.store().snapshot_failure(), None);
}

#[test]
fn what_is_wrong_is_an_error_with_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = LocalStore::open_with(directory.path(), &options()).expect("a store");
    let second = LocalStore::open(directory.path()).expect_err("it is open");
    assert!(matches!(second, LocalError::Log(_)));
    assert!(
        second.to_string().contains("is in use by process"),
        "{second}"
    );
    let unfit = options().engine(Engine::Art);
    let other = tempfile::tempdir().expect("a directory");
    let unfit = LocalStore::open_with(other.path(), &unfit).expect_err("it has no steps");
    assert!(unfit.to_string().contains("art"), "{unfit}");

    // What another type has written.
    let (texts, numbers) = (store.map::<String, String>(3), store.map::<u16, u32>(3));
    texts
        .insert(&"abc".to_owned(), &"text".to_owned())
        .expect("inserted");
    numbers.insert(&7, &9).expect("inserted");
    let told: Vec<String> = numbers
        .iter()
        .map(|entry| entry.map_or_else(|error| error.to_string(), |entry| format!("{entry:?}")))
        .collect();
    assert_eq!(
        told,
        ["(7, 9)", "a key is kept that is none of this map: \"abc\""]
    );
    let short = store.map::<u16, u64>(3).get(&7).expect_err("four bytes");
    assert!(
        short.to_string().contains("4 bytes instead of 8"),
        "{short}"
    );
    let kept = store.map::<u16, u64>(3);
    assert!(kept.update(&7, |_| Update::Put(1)).is_err());
    assert_eq!(
        numbers.get(&7).expect("its type"),
        Some(9),
        "it was changed"
    );

    // What is kept as JSON is what every client reads.
    let trees = store.map::<String, Json<Vec<(String, u32)>>>(4);
    let aspen = Json(vec![("aspen".to_owned(), 25)]);
    trees.insert(&"trees".to_owned(), &aspen).expect("inserted");
    assert_eq!(trees.get(&"trees".to_owned()).expect("JSON"), Some(aspen));
    let raw = store.keyspace().database(4).get(&Key::from(&b"trees"[..]));
    assert_eq!(raw.as_deref(), Some(&br#"[["aspen",25]]"#[..]));
    let value = Value::from(&b"{"[..]);
    let bad = store.keyspace().commit(|effects| {
        let key = Key::from(&b"trees"[..]);
        store.keyspace().database(4).insert(effects, key, value)
    });
    assert!(bad.is_ok());
    assert!(matches!(
        trees.get(&"trees".to_owned()),
        Err(MapError::BadValue(_))
    ));

    // What is closed refuses writes, and is still read.
    let left = store.map::<u16, u32>(3);
    drop((texts, trees, numbers, kept));
    store.close().expect("all is durable");
    let refused = left.insert(&8, &1).expect_err("it is closed");
    assert!(matches!(refused, MapError::Unlogged(_)), "{refused:?}");
    assert!(
        refused.to_string().contains("the log is closed"),
        "{refused}"
    );
    assert_eq!(left.get(&7).expect("its type"), Some(9));
}

#[test]
#[should_panic(expected = "there is no database 16")]
fn a_database_that_is_not_there_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = LocalStore::open_with(directory.path(), &options()).expect("a store");
    let _ = store.map::<u8, u8>(16);
}
