//! A store with a log is, when it is opened again, what it was.

mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::{new_folder, new_log, open};
use tremula_log::{Batch, Config as LogConfig, FaultyDisk, FileLog, Log, MemoryLog, Sequence};
use tremula_store::{
    CacheSettings, DATABASES, Direction, Engine, EvictionSettings, Folder, Key, KeyRange,
    LEAST_CACHE, Lifetime, OpenError, Policy, RecoverError, Store, StoreConfig, Strategy as Shards,
    Update, Value, Version,
};

const ENGINES: [Engine; 3] = [Engine::Aspen, Engine::BTree, Engine::CaTree];

fn key(number: u8) -> Key {
    Key::from(format!("key{number:03}").as_bytes())
}

fn value(bytes: &[u8]) -> Value {
    Value::from(bytes)
}

/// Every key of every database, with the bytes of its value and its version.
fn contents(store: &Store) -> BTreeMap<(usize, Vec<u8>), (Vec<u8>, Version)> {
    let mut all = BTreeMap::new();
    for number in 0..DATABASES {
        let mut entries = Vec::new();
        let database = store.database(number);
        database.scan(
            KeyRange::all(),
            Direction::Ascending,
            usize::MAX,
            &mut entries,
        );
        for (key, value) in entries {
            let text = store.values(number).text(&key, &value);
            let text = text.map(|text| text.to_vec()).unwrap_or_default();
            let place = (number, key.as_bytes().to_vec());
            all.insert(place, (text, value.version()));
        }
    }
    all
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u8, Vec<u8>),
    InsertIfAbsent(u8, Vec<u8>),
    Remove(u8),
    Append(u8, Vec<u8>),
    Rewrite(u8, Vec<u8>),
    RemoveRange(Option<u8>, Option<u8>),
    InsertTogether(Vec<(u8, Vec<u8>)>),
    RemoveTogether(Vec<u8>),
    Evict,
    Save,
}

fn run(store: &Store, folder: &Folder, database: usize, operation: &Operation) {
    let (target, values) = (store.database(database), store.values(database));
    let done = store.commit(|effects| match operation {
        Operation::Insert(number, bytes) => {
            let old = target.insert(effects, key(*number), value(bytes));
            values.dropped(old);
        }
        Operation::InsertIfAbsent(number, bytes) => {
            let absent = |current: Option<&[u8]>| current.is_none().then(|| value(bytes));
            let put = |current: Option<&[u8]>| absent(current).map_or(Update::Keep, Update::Put);
            values.update(effects, key(*number), Lifetime::Kept, &mut { put });
        }
        Operation::Remove(number) => {
            let old = target.remove(effects, &key(*number));
            values.dropped(old);
        }
        Operation::Append(number, bytes) => {
            let appended = values.append(effects, key(*number), bytes, usize::MAX, usize::MAX);
            appended.expect("no limit");
        }
        Operation::Rewrite(number, bytes) => {
            let old = target.get(&key(*number));
            let replaced = values.replace(effects, key(*number), old.as_ref(), value(bytes));
            if replaced.is_ok() {
                values.dropped(old);
            }
        }
        Operation::RemoveRange(low, high) => {
            let (low, high) = (low.map(key), high.map(key));
            let low = low.as_ref().map_or(Bound::Unbounded, Bound::Included);
            let high = high.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
            target.remove_range(effects, low, high);
        }
        Operation::InsertTogether(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(number, bytes)| (key(*number), value(bytes)));
            for old in target.insert_together(effects, entries.collect()) {
                values.dropped(Some(old));
            }
        }
        Operation::RemoveTogether(numbers) => {
            let keys: Vec<Key> = numbers.iter().copied().map(key).collect();
            for old in target.remove_together(effects, &keys) {
                values.dropped(Some(old));
            }
        }
        Operation::Evict | Operation::Save => {}
    });
    done.expect("the log takes it");
    match operation {
        Operation::Evict => {
            store.evict_one();
        }
        Operation::Save => {
            store.save(folder).expect("a snapshot");
        }
        _ => {}
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..60)
}

fn operations() -> impl Strategy<Value = Vec<(usize, Operation)>> {
    let number = || 0..24_u8;
    let operation = prop_oneof![
        6 => (number(), bytes()).prop_map(|(number, bytes)| Operation::Insert(number, bytes)),
        2 => (number(), bytes()).prop_map(|(number, bytes)| Operation::InsertIfAbsent(number, bytes)),
        3 => number().prop_map(Operation::Remove),
        6 => (number(), bytes()).prop_map(|(number, bytes)| Operation::Append(number, bytes)),
        2 => (number(), bytes()).prop_map(|(number, bytes)| Operation::Rewrite(number, bytes)),
        1 => (prop::option::of(number()), prop::option::of(number()))
            .prop_map(|(low, high)| Operation::RemoveRange(low, high)),
        2 => prop::collection::vec((number(), bytes()), 0..5).prop_map(Operation::InsertTogether),
        2 => prop::collection::vec(number(), 0..5).prop_map(Operation::RemoveTogether),
        1 => Just(Operation::Evict),
        1 => Just(Operation::Save),
    ];
    prop::collection::vec((0..3_usize, operation), 1..60)
}

fn config(engine: Engine, is_cached: bool) -> StoreConfig {
    let cache = CacheSettings {
        strategy: Shards::default(),
        bytes: LEAST_CACHE,
        from: 100,
    };
    let eviction = EvictionSettings {
        policy: Policy::Random,
        samples: 3,
        places: 64,
    };
    StoreConfig::new(engine)
        .cache(is_cached.then_some(cache))
        .eviction(Some(eviction))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_was_written_is_there_again(
        operations in operations(),
        engine in prop::sample::select(&ENGINES[..]),
        is_cached: bool,
    ) {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let config = config(engine, is_cached);
        let (store, _) = open(&config, &log, &folder);
        for (database, operation) in &operations {
            run(&store, &folder, *database, operation);
        }
        let expected = contents(&store);
        drop(store);
        // The other way to keep large values reads the same records.
        let (store, _) = open(&config.clone().cache(None), &log, &folder);
        prop_assert_eq!(&contents(&store), &expected);
        drop(store);
        let (store, _) = open(&config, &log, &folder);
        prop_assert_eq!(&contents(&store), &expected);
        drop(store);
        let (_empty, folder) = new_folder();
        let (store, recovered) = open(&config, &log, &folder);
        prop_assert!(recovered.snapshot.is_none());
        prop_assert_eq!(&contents(&store), &expected);
    }
}

/// Several threads write the same few keys, one by one and together, while snapshots are made: if a
/// number were taken outside the lock, or a snapshot began elsewhere than it says, some key would
/// come back with an older value.
#[test]
fn what_threads_write_at_once_is_there_again() {
    const ROUNDS: usize = 6;
    const WRITES: u32 = 3_000;
    for (round, engine) in (0..ROUNDS).flat_map(|round| ENGINES.map(|engine| (round, engine))) {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let config = StoreConfig::new(engine);
        let (store, _) = open(&config, &log, &folder);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..3_u32)
                .map(|writer| {
                    let store = &store;
                    scope.spawn(move || write_at_random(store, writer + 3 * round as u32, WRITES))
                })
                .collect();
            let (store, folder, is_over) = (&store, &folder, &is_over);
            scope.spawn(move || {
                store.save(folder).expect("a snapshot");
                while !is_over.load(Ordering::Acquire) {
                    store.save(folder).expect("a snapshot");
                }
            });
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            is_over.store(true, Ordering::Release);
            ended.into_iter().for_each(|ended| ended.expect("a writer"));
        });
        let expected = contents(&store);
        drop(store);
        let (store, recovered) = open(&config, &log, &folder);
        assert!(recovered.snapshot.is_some());
        assert_eq!(contents(&store), expected, "{engine}, with a snapshot");
        let (_empty, folder) = new_folder();
        let (store, _) = open(&config, &log, &folder);
        assert_eq!(contents(&store), expected, "{engine}, from the log alone");
    }
}

fn write_at_random(store: &Store, writer: u32, writes: u32) {
    let mut state = u64::from(writer) * 0x9e37_79b9 + 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let database = store.database(0);
    for write in 0..writes {
        let number = (next() % 8) as u8;
        let new = value(format!("{writer}/{write}").as_bytes());
        let done = store.commit(|effects| match next() % 12 {
            0 => {
                let (low, high) = (key(number), key(number + 2));
                database.remove_range(effects, Bound::Included(&low), Bound::Excluded(&high));
            }
            1 | 2 => {
                let pairs =
                    [number, number + 1, number + 2].map(|number| (key(number), new.clone()));
                database.insert_together(effects, pairs.to_vec());
            }
            3 => {
                database.remove_together(effects, &[key(number), key(number + 1)]);
            }
            4 => {
                database.remove(effects, &key(number));
            }
            _ => {
                database.insert(effects, key(number), new.clone());
            }
        });
        done.expect("the log takes it");
        if next().is_multiple_of(16) {
            store.forward();
        }
    }
    store.forward();
}

/// Threads count with one key: what stands in the log are the numbers in their order.
#[test]
fn the_log_has_the_order_of_the_effects() {
    for engine in ENGINES {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let (store, _) = open(&StoreConfig::new(engine), &log, &folder);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let done = store.commit(|effects| {
                            store.database(0).update(effects, key(0), &mut |current| {
                                let count = current.map_or(0, count_of);
                                Update::Put(value(&(count + 1).to_be_bytes()))
                            });
                        });
                        done.expect("the log takes it");
                    }
                });
            }
        });
        store.forward();
        let mut last = 0;
        for entry in log.read(Sequence::FIRST).expect("the beginning") {
            for record in entry.expect("no damage").records() {
                let count = count_of(&value(&record[record.len() - 8..]));
                assert_eq!(count, last + 1, "{engine}");
                last = count;
            }
        }
        assert_eq!(last, 40_000);
    }
}

fn count_of(value: &Value) -> u64 {
    let bytes: [u8; 8] = value[..].try_into().expect("eight bytes");
    u64::from_be_bytes(bytes)
}

/// While a snapshot is made, keys are stored behind the place that it has come to, and values grow
/// before it: the first are only in the log, and what the log has of the second is there already.
#[test]
fn a_snapshot_and_the_log_behind_it_make_a_whole() {
    for is_cached in [false, true] {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let config = config(Engine::Aspen, is_cached).eviction(None);
        let (store, _) = open(&config, &log, &folder);
        let at = |number: u32| Key::from(format!("{number:08}").as_bytes());
        let append = |number: u32, bytes: &[u8]| {
            let values = store.values(0);
            let done = store.commit(|effects| {
                let appended = values.append(effects, at(number), bytes, usize::MAX, usize::MAX);
                appended.expect("no limit");
            });
            done.expect("the log takes it");
        };
        for number in 1_000_000..1_040_000 {
            append(number, b"there before");
        }
        append(2_000_000, &[b'.'; 2000]);
        store.forward();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                store.save(&folder).expect("a snapshot");
                is_over.store(true, Ordering::Release);
            });
            for number in (0..1_000_000_u32).rev() {
                let at = [number, 2_000_000][usize::from(number.is_multiple_of(64))];
                append(at, &number.to_be_bytes());
                if is_over.load(Ordering::Acquire) {
                    break;
                }
            }
        });
        store.forward();
        let expected = contents(&store);
        drop(store);
        let (store, recovered) = open(&config, &log, &folder);
        assert!(recovered.records > 0 && recovered.snapshot.is_some());
        assert!(contents(&store) == expected, "cached: {is_cached}");
    }
}

/// Both keys of a pair are always written and removed in one step, so whatever beginning of the log
/// a crash leaves, they are equal.
#[test]
fn no_beginning_of_the_log_has_half_of_a_step() {
    for engine in ENGINES {
        let (_directory, folder) = new_folder();
        let log = new_log();
        let config = StoreConfig::new(engine);
        let (store, _) = open(&config, &log, &folder);
        thread::scope(|scope| {
            for writer in 0..3_u8 {
                let store = &store;
                scope.spawn(move || {
                    for write in 0..40_u8 {
                        let pair = 2 * (write % 4);
                        let keys = [key(pair), key(pair + 1)];
                        let new = value(&[writer, write]);
                        let done = store.commit(|effects| {
                            let database = store.database(0);
                            if write % 5 == 4 {
                                database.remove_together(effects, &keys);
                            } else {
                                let entries = keys.map(|key| (key, new.clone()));
                                database.insert_together(effects, entries.to_vec());
                            }
                        });
                        done.expect("the log takes it");
                        store.forward();
                    }
                });
            }
        });
        drop(store);
        let mut prefix: Vec<Batch> = Vec::new();
        for entry in log.read(Sequence::FIRST).expect("the beginning") {
            let mut batch = Batch::new();
            entry
                .expect("no damage")
                .records()
                .for_each(|record| batch.push(record));
            prefix.push(batch);
            let shorter = MemoryLog::new();
            for batch in &prefix {
                shorter.append(batch, None).expect("room");
            }
            let shorter: Arc<dyn Log> = Arc::new(shorter);
            let (store, _) = open(&config, &shorter, &folder);
            for pair in 0..4 {
                let [one, other] = [0, 1].map(|half| store.database(0).get(&key(2 * pair + half)));
                assert_eq!(one.as_deref(), other.as_deref(), "{engine}");
            }
        }
        assert!(
            prefix.len() > 20,
            "{} batches are too few to tell",
            prefix.len()
        );
    }
}

#[test]
fn a_damaged_snapshot_is_never_taken_for_a_whole_one() {
    let (directory, folder) = new_folder();
    let log = new_log();
    let config = StoreConfig::new(Engine::Aspen);
    let (store, _) = open(&config, &log, &folder);
    for number in 0..12 {
        run(
            &store,
            &folder,
            usize::from(number % 2),
            &Operation::Insert(number, vec![number; 9]),
        );
    }
    let first = store.save(&folder).expect("a snapshot");
    run(
        &store,
        &folder,
        0,
        &Operation::Insert(99, b"behind the first".to_vec()),
    );
    let second = store.save(&folder).expect("a snapshot");
    assert_ne!(first.path, second.path);
    assert_eq!(second.needed, Folder::begins(&first.path).expect("a head"));
    run(
        &store,
        &folder,
        0,
        &Operation::Insert(98, b"behind both".to_vec()),
    );
    let expected = contents(&store);
    drop(store);
    let whole = std::fs::read(&second.path).expect("the snapshot");
    let check = |bytes: &[u8], what: &str| {
        std::fs::write(&second.path, bytes).expect("a damaged one");
        let (store, recovered) = open(&config, &log, &folder);
        assert_eq!(recovered.damaged.len(), 1, "{what}");
        let told = recovered.damaged[0].to_string();
        assert!(told.contains(&*second.path.to_string_lossy()), "{told}");
        let (path, entries) = recovered.snapshot.expect("the older one");
        assert_eq!((path, entries), (first.path.clone(), 12), "{what}");
        assert_eq!(contents(&store), expected, "{what}");
    };
    for at in 0..whole.len() {
        check(&whole[..at], &format!("cut at {at}"));
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        check(&flipped, &format!("flipped at {at}"));
    }
    let mut longer = whole.clone();
    longer.push(0);
    check(&longer, "one byte more");
    drop(directory);
}

#[test]
fn what_does_not_make_a_whole_is_refused_with_the_reason() {
    let (_directory, folder) = new_folder();
    let memory = Arc::new(MemoryLog::new());
    let log: Arc<dyn Log> = Arc::clone(&memory) as Arc<dyn Log>;
    let config = StoreConfig::new(Engine::Aspen);
    let (store, _) = open(&config, &log, &folder);
    for number in 0..10 {
        run(&store, &folder, 0, &Operation::Insert(number, vec![number]));
    }
    store.forward();
    let saved = store.save(&folder).expect("a snapshot");
    drop(store);
    let refused = |log: Arc<dyn Log>, folder: &Folder| {
        let opened = Store::recover(&config, log, folder, &mut |_| ());
        match opened {
            Err(OpenError::Recover(error)) => error,
            Err(other) => panic!("another error: {other}"),
            Ok(_) => panic!("it was opened"),
        }
    };
    let empty = refused(Arc::new(MemoryLog::new()), &folder);
    assert!(
        matches!(
            empty,
            RecoverError::Behind {
                snapshot: 10,
                last: 0
            }
        ),
        "{empty}"
    );
    log.truncate_below(saved.needed).expect("it is in memory");
    let (_nothing, other) = new_folder();
    let gap = refused(Arc::clone(&log), &other);
    assert!(
        matches!(
            gap,
            RecoverError::Gap {
                snapshot: 1,
                first: 11
            }
        ),
        "{gap}"
    );
    std::fs::write(&saved.path, b"TREMSNAP, but not one").expect("a damaged one");
    let none = refused(Arc::clone(&log), &folder);
    assert!(
        matches!(none, RecoverError::NoSnapshot { first: 11, .. }),
        "{none}"
    );
    assert!(
        none.to_string().contains(&*saved.path.to_string_lossy()),
        "{none}"
    );
    let bad = MemoryLog::new();
    bad.append(&Batch::of(b"\xff\x00"), None).expect("room");
    let bad = refused(Arc::new(bad), &other);
    assert!(
        bad.to_string().starts_with("record 1 of the log: "),
        "{bad}"
    );
}

#[test]
fn an_unfinished_snapshot_is_not_looked_at() {
    let (directory, folder) = new_folder();
    let unfinished = Path::new("snapshot.unfinished");
    std::fs::write(directory.path().join(unfinished), b"TREMSNAP").expect("a file");
    let log = new_log();
    let (store, recovered) = open(&StoreConfig::new(Engine::Aspen), &log, &folder);
    assert!(recovered.snapshot.is_none() && recovered.damaged.is_empty());
    store.save(&folder).expect("a snapshot in its place");
    assert_eq!(folder.snapshots().expect("a list").len(), 1);
}

/// A log in files on a disk that fails when it is asked to.
fn log_on(disk: &FaultyDisk) -> Arc<dyn Log> {
    let config = LogConfig::default()
        .segment_bytes(64 << 10)
        .sync_every(None)
        .retry_after(Duration::from_millis(1));
    Arc::new(FileLog::open_on(disk, &config).expect("the disk works"))
}

/// Nobody waits for the log but the snapshot; then the power goes.
#[test]
fn a_snapshot_has_seen_nothing_that_the_log_can_lose() {
    for seed in 0..20 {
        let (_directory, folder) = new_folder();
        let disk = FaultyDisk::new(seed);
        let config = StoreConfig::new(Engine::Aspen);
        let log = log_on(&disk);
        let (store, _) = open(&config, &log, &folder);
        for number in 0..20 {
            run(&store, &folder, 0, &Operation::Insert(number, vec![number]));
        }
        store.save(&folder).expect("a snapshot");
        let expected = contents(&store);
        disk.lose_power();
        drop((store, log));
        let log = log_on(&disk);
        let (store, recovered) = open(&config, &log, &folder);
        assert!(recovered.snapshot.is_some());
        assert_eq!(contents(&store), expected);
    }
}

/// Writing stops with an error, reading goes on, and so does writing once there is room.
#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    let (_directory, folder) = new_folder();
    let disk = FaultyDisk::new(1);
    let config = StoreConfig::new(Engine::Aspen);
    let log = log_on(&disk);
    let (store, _) = open(&config, &log, &folder);
    let write = |number: u32| {
        let key = Key::from(format!("{number:06}").as_bytes());
        let new = value(&[7; 1000]);
        let done = store.commit(|effects| {
            store.database(0).insert(effects, key, new);
        });
        store.forward();
        done
    };
    write(0).expect("there is room");
    disk.set_room(Some(1 << 20));
    let mut acknowledged = 0;
    let refused = (1..1_000_000).find_map(|number| {
        let error = write(number).err();
        acknowledged = number - u32::from(error.is_some());
        error
    });
    let text = refused.expect("the disk is full").to_string();
    assert!(
        text.starts_with("nothing was changed: ") && text.contains("no room"),
        "{text}"
    );
    let there = store.database(0).len();
    assert_eq!(
        there,
        acknowledged as usize + 1,
        "the refused write changed something"
    );
    assert!(write(999_999).is_err());
    assert!(store.database(0).contains_key(&Key::from(&b"000000"[..])));
    disk.set_room(None);
    let deadline = Instant::now() + Duration::from_secs(60);
    while let Err(error) = write(999_999) {
        assert!(Instant::now() < deadline, "{error}");
        thread::sleep(Duration::from_millis(1));
    }
    let expected = contents(&store);
    drop((store, log));
    let (store, _) = open(&config, &log_on(&disk), &folder);
    assert_eq!(contents(&store), expected);
}

/// A log that has stopped takes no write, and says why.
#[test]
fn a_disk_that_fails_ends_writing() {
    let (_directory, folder) = new_folder();
    let disk = FaultyDisk::new(1);
    let log = log_on(&disk);
    let (store, _) = open(&StoreConfig::new(Engine::Aspen), &log, &folder);
    run(&store, &folder, 0, &Operation::Insert(1, vec![1]));
    store.forward();
    log.wait(store.last_effect()).expect("it works");
    disk.fail_sync_after(0);
    run(&store, &folder, 0, &Operation::Insert(2, vec![2]));
    store.forward();
    let stopped = log.wait(store.last_effect()).expect_err("the sync fails");
    assert!(stopped.to_string().contains("sync"), "{stopped}");
    // The first write that finds out may come before the log has refused anything.
    let refused = (3..9).find_map(|number| {
        let done = store.commit(|effects| {
            store.database(0).insert(effects, key(number), value(b"x"));
        });
        store.forward();
        done.err()
    });
    let text = refused.expect("it has stopped").to_string();
    assert!(text.contains("the log has stopped"), "{text}");
    assert_eq!(store.database(0).get(&key(1)).as_deref(), Some(&[1][..]));
}

/// Values that are too many for the cache: those that it has given up stay away.
#[test]
fn what_the_cache_has_evicted_stays_evicted() {
    let (_directory, folder) = new_folder();
    let log = new_log();
    let config = config(Engine::Aspen, true).eviction(None);
    let (store, _) = open(&config, &log, &folder);
    for number in 0..60 {
        run(
            &store,
            &folder,
            0,
            &Operation::Append(number, vec![number; 50_000]),
        );
    }
    let expected = contents(&store);
    let there = store.database(0).len();
    assert!((1..60).contains(&there), "{there} values are left");
    drop(store);
    let (store, _) = open(&config.cache(None), &log, &folder);
    let again = contents(&store);
    assert_eq!(
        again.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    assert_eq!(again, expected);
}
