//! Versions, and times of the keys of tables, in snapshots: of this format and of older ones, with
//! the log on top.

use super::format::{END, ENTRIES, EXPIRING, block_head, head};
use super::replay::SHARED_FROM;
use super::{Progress, apply_batch, load, replay, write};
use crate::effects::fields::{write_number, write_text};
use crate::{
    CacheSettings, Engine, Expiry, Folder, Key, LEAST_CACHE, RecoverError, Store, StoreConfig,
    Strategy as Shards, Update, Value, Version,
};
use proptest::prelude::*;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use tremula_log::{Batch, Log, MemoryLog, Sequence};
use tremula_sync::system::Arc;
use tremula_table::{BadArgument, Kind, Options};

const THREADS: usize = 2;

fn key(number: u8) -> Key {
    Key::from(&[b'k', number][..])
}

/// What a store has: for each key its value, its version, and when it expires.
type Contents = Vec<(Vec<u8>, Vec<u8>, Version, Option<Expiry>)>;

fn contents(store: &Store) -> Contents {
    let keys = (0..=u8::MAX).map(key);
    let found = keys.filter_map(|key| {
        let (text, version) = store.values(0).versioned(&key)?;
        let expiry = store.database(0).get(&key)?.expiry();
        Some((key.as_bytes().to_vec(), text.to_vec(), version, expiry))
    });
    found.collect()
}

fn config() -> StoreConfig {
    StoreConfig::new(Engine::Aspen).cache(Some(CacheSettings {
        strategy: Shards::default(),
        bytes: LEAST_CACHE,
        from: 30,
    }))
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u8, u8),
    Append(u8, u8),
    SetTime(u8, Option<bool>),
    Remove(u8),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = || 0..3_u8;
    let operation = prop_oneof![
        2 => (key(), 0..40_u8).prop_map(|(key, length)| Operation::Insert(key, length)),
        3 => (key(), 0..40_u8).prop_map(|(key, length)| Operation::Append(key, length)),
        3 => (key(), any::<Option<bool>>()).prop_map(|(key, time)| Operation::SetTime(key, time)),
        1 => key().prop_map(Operation::Remove),
    ];
    prop::collection::vec(operation, 1..30)
}

fn run(store: &Store, operation: &Operation) {
    let database = store.database(0);
    let done = store.commit(|effects| match *operation {
        Operation::Insert(number, length) => {
            let value = Value::from(vec![length; length.into()]);
            let old = database.insert(effects, key(number), value);
            store.values(0).dropped(old);
        }
        Operation::Append(number, length) => {
            let bytes = vec![length; length.into()];
            let values = store.values(0);
            let appended = values.append(effects, key(number), &bytes, usize::MAX, usize::MAX);
            appended.expect("no limit");
        }
        Operation::SetTime(number, time) => {
            let time = time.map(|is_far| Expiry::LAST_MILLIS - u64::from(is_far));
            let time = time.and_then(Expiry::from_millis);
            database.update_expiry(effects, key(number), &mut |_| Update::Put(time));
        }
        Operation::Remove(number) => {
            let old = database.remove(effects, &key(number));
            store.values(0).dropped(old);
        }
    });
    done.expect("the log takes it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 150 } else { 400 }))]

    /// As if the snapshot had seen each key later than all that is in the log behind its
    /// beginning, whatever that is: what comes between is made again on top of what it became.
    #[test]
    fn the_log_on_top_of_a_later_snapshot_gives_each_value_its_version(
        operations in operations(),
        begins in 1..20_u64,
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
        let folder = Folder::new(directory.path());
        let opened = Store::recover(&config(), Arc::clone(&log), &folder, &mut |_| ());
        let (store, _) = opened.expect("nothing is there");
        for operation in &operations {
            run(&store, operation);
        }
        store.forward();
        let begins = Sequence::new(begins.min(log.tail().next.get()));
        let path = directory.path().join("snapshot");
        let progress = Progress::default();
        let written = write(&store, begins, &path, &progress).expect("a snapshot");
        let (done, all) = progress.get().expect("nobody has ended it");
        prop_assert!(done <= written.entries && done <= all);
        let expected = contents(&store);
        let again = Store::made(&config(), true).expect("a store");
        load(&again, &path, THREADS, &mut |_| ()).expect("it is whole");
        prop_assert_eq!(&contents(&again), &expected);
        replay(&again, &*log, begins, THREADS, &mut |_| ()).expect("the log is whole");
        prop_assert_eq!(&contents(&again), &expected);
    }
}

/// All records of a log as batches of these lengths, repeatedly, each with its first sequence.
fn batches(log: &dyn Log, lengths: &[usize]) -> Vec<(Sequence, Batch)> {
    let mut batches: Vec<(Sequence, Batch)> = Vec::new();
    let mut lengths = lengths.iter().cycle();
    let mut left = 0;
    for entry in log.read(Sequence::FIRST).expect("the log is whole") {
        let entry = entry.expect("the log is whole");
        for (sequence, record) in (entry.first().get()..).zip(entry.records()) {
            if left == 0 {
                left = *lengths.next().expect("there are some");
                batches.push((Sequence::new(sequence), Batch::new()));
            }
            let batch = &mut batches.last_mut().expect("there is one").1;
            batch.push(record);
            left -= 1;
        }
    }
    batches
}

/// Each key has several records in each batch, and records of ranges lie between.
#[test]
fn a_follower_that_applies_on_several_threads_comes_to_what_the_leader_has() {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let leader = Store::logging(&config(), Arc::clone(&log)).expect("a store");
    for number in 0..4000_u32 {
        let (key, length) = ((number * 7 % 11) as u8, (number % 37) as u8);
        run(
            &leader,
            &match number % 13 {
                0 => Operation::Remove(key),
                1 | 2 => Operation::SetTime(key, Some(number.is_multiple_of(2))),
                3..7 => Operation::Append(key, length),
                _ => Operation::Insert(key, length),
            },
        );
        if number % 97 == 96 {
            let (low, high) = (Bound::Included(self::key(2)), Bound::Excluded(self::key(5)));
            let removed = leader.commit(|effects| {
                (leader.database(0)).remove_range(effects, low.as_ref(), high.as_ref())
            });
            removed.expect("the log takes it");
        }
    }
    leader.forward();
    let batches = batches(&*log, &[SHARED_FROM * 3, 1, SHARED_FROM, SHARED_FROM - 1]);
    assert!(
        batches
            .iter()
            .filter(|(_, batch)| batch.len() >= SHARED_FROM)
            .count()
            > 3
    );
    for threads in [1, 2, 5] {
        let follower = Store::made(&config(), true).expect("a store");
        for (first, batch) in &batches {
            apply_batch(&follower, *first, batch, threads).expect("it means something");
        }
        assert_eq!(contents(&follower), contents(&leader), "{threads} threads");
    }
}

#[test]
fn a_record_without_a_meaning_is_named_and_the_others_are_applied() {
    let log: Arc<dyn Log> = Arc::new(MemoryLog::new());
    let leader = Store::logging(&config(), Arc::clone(&log)).expect("a store");
    for number in 0..SHARED_FROM {
        run(&leader, &Operation::Insert((number % 200) as u8, 3));
    }
    leader.forward();
    let mut batch = Batch::new();
    for (at, record) in batches(&*log, &[SHARED_FROM])[0].1.records().enumerate() {
        batch.push(if at == 7 { b"\xffnothing" } else { record });
    }
    for threads in [1, 3] {
        let follower = Store::made(&config(), true).expect("a store");
        let error = apply_batch(&follower, Sequence::FIRST, &batch, threads).unwrap_err();
        assert!(
            matches!(error, RecoverError::Record { sequence: 8, .. }),
            "{error}"
        );
        let shown = contents(&follower).len();
        assert_eq!(
            shown + usize::from(SHARED_FROM <= 200),
            contents(&leader).len()
        );
    }
}

/// A snapshot as an earlier format had it, with two keys, of which one expires.
fn old_snapshot(format: u32, begins: u64, path: &Path) {
    let mut head = head(begins);
    head[8..12].copy_from_slice(&format.to_le_bytes());
    let sum = crc32c::crc32c(&head[..20]);
    head[20..].copy_from_slice(&sum.to_le_bytes());
    let mut bytes = head.to_vec();
    let mut entries = 0_u64;
    for (kind, name) in [(ENTRIES, b"k\x01"), (EXPIRING, b"k\x02")] {
        if kind == EXPIRING && format < 3 {
            continue;
        }
        let mut body = vec![0];
        write_number(0, &mut body);
        write_text(name, &mut body);
        write_text(b"value", &mut body);
        if kind == EXPIRING {
            write_number(Expiry::LAST_MILLIS, &mut body);
        }
        bytes.extend(block_head(kind, &body));
        bytes.extend(body);
        entries += 1;
    }
    let end = [entries.to_le_bytes(), begins.to_le_bytes()].concat();
    bytes.extend(block_head(END, &end));
    bytes.extend(end);
    std::fs::write(path, bytes).expect("a file");
}

#[test]
fn older_formats_are_read_and_have_the_last_version_before_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("snapshot");
    for format in 1..=3 {
        for begins in [1, 2, 1 << 40] {
            old_snapshot(format, begins, &path);
            let store = Store::made(&config(), true).expect("a store");
            let loaded = load(&store, &path, THREADS, &mut |_| ()).expect("it is whole");
            assert_eq!(loaded.begins, Sequence::new(begins));
            let version = Version::new(begins - 1).expect("48 bits");
            let entry = |name: &[u8], expiry| (name.to_vec(), b"value".to_vec(), version, expiry);
            let mut expected = vec![entry(b"k\x01", None)];
            expected.extend((format == 3).then(|| entry(b"k\x02", Some(Expiry::LAST))));
            assert_eq!(contents(&store), expected, "format {format}");
        }
    }
}

/// What the tables of a store are, as effects that make them.
fn tables(store: &Store) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for table in store.tables().made_after(None, usize::MAX) {
        let before = all.len();
        table.describe(&mut |effect| {
            let mut bytes = Vec::new();
            effect.encode(&mut bytes).expect("short terms");
            all.push(bytes);
            ControlFlow::Continue(())
        });
        all[before..].sort();
    }
    all
}

/// Fails if a time is loaded before the rows of its key, on another thread: in a block of another
/// kind, or in the next one. Rows of a key that take several records, and those of many blocks.
#[test]
fn the_time_of_a_key_lies_behind_its_rows() {
    const KEYS: i64 = 6_000;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("snapshot");
    let store = Store::made(&config(), false).expect("a store");
    let made = store.commit(|effects| {
        let bags = Options::new().kind(Kind::DuplicateBag);
        let table = store.tables().create(effects, "t", bags)?;
        for key in 0..KEYS {
            let rows = if key % 50 == 0 { 30 } else { 1 };
            let rows = (0..rows).map(|number| (key, number, "some text to fill the blocks"));
            table.noting(effects).insert_rows(rows)?;
            let expiry = Expiry::from_millis(1 + key as u64);
            if key % 7 != 0 {
                let put = &mut |_| Update::Put(expiry);
                assert!(table.update_expiry(effects, &key.into(), put)?);
            }
        }
        Ok::<_, BadArgument>(table)
    });
    let table = made.expect("there is no log").expect("rows");
    write(&store, Sequence::FIRST, &path, &Progress::default()).expect("a snapshot");
    let expected = tables(&store);
    let expiring = table.expiring_keys();
    assert_eq!(expiring as i64, KEYS - 1 - (KEYS - 1) / 7);
    for round in 0..5 {
        let again = Store::made(&config(), true).expect("a store");
        load(&again, &path, 4, &mut |_| ()).expect("it is whole");
        assert_eq!(again.tables().expiring_keys(), expiring, "round {round}");
        assert!(tables(&again) == expected, "round {round}");
    }
    // Without times it is what format 4 was.
    for key in 0..KEYS {
        let put = &mut |_| Update::Put(None);
        let set = store.commit(|effects| table.update_expiry(effects, &key.into(), put));
        set.expect("there is no log").expect("a table");
    }
    write(&store, Sequence::FIRST, &path, &Progress::default()).expect("a snapshot");
    let mut bytes = std::fs::read(&path).expect("a file");
    bytes[8..12].copy_from_slice(&4_u32.to_le_bytes());
    let sum = crc32c::crc32c(&bytes[..20]);
    bytes[20..24].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, bytes).expect("a file");
    let again = Store::made(&config(), true).expect("a store");
    load(&again, &path, 4, &mut |_| ()).expect("it is whole");
    assert!(tables(&again) == tables(&store));
}
