//! Ranges as they were: each state of the past is what the store was then, over snapshots, cuts of
//! the log and restarts, while threads write.

mod support;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime};
use support::copying::{Copy, Entries, key, stored, write};
use support::{new_folder, new_log, open};
use tremula_log::{Config, FileLog, Keep, Log, MemoryLog, Sequence};
use tremula_store::{
    CacheSettings, Engine, Expiry, Folder, Key, LEAST_CACHE, Past, PastError, PastRange, Point,
    Span, Store, StoreConfig, Strategy, Value, Version,
};

/// The databases that are written to.
const USED: usize = 3;

fn config(engine: Engine) -> StoreConfig {
    StoreConfig::new(engine).cache(Some(CacheSettings {
        strategy: Strategy::Affinity,
        bytes: LEAST_CACHE,
        from: 100,
    }))
}

/// A log in files, of which segments go that no snapshot needs, but for some kilobytes.
fn log_in(directory: &Path) -> Arc<dyn Log> {
    let config = Config::default()
        .segment_bytes(4096)
        .sync_every(None)
        .keep(Keep::Bytes(20_000));
    Arc::new(FileLog::open(directory.join("log"), &config).expect("a log"))
}

fn entries_of(range: &PastRange) -> Entries {
    let entries = range.entries.iter().map(|(key, value)| {
        let row = (value.to_vec(), value.expiry());
        (key.as_bytes().to_vec(), row)
    });
    entries.collect()
}

fn within(entries: &Entries, span: &Span) -> Entries {
    let mut entries = entries.clone();
    entries.retain(|key, _| span.contains(key));
    entries
}

fn random_span(random: &mut SmallRng, keys: u16) -> Span {
    let [one, other] = [(); 2].map(|()| random.random_range(0..=keys).to_be_bytes());
    match random.random_range(0..4) {
        0 => Span::all(),
        1 => Span::new(Bound::Excluded(&one), Bound::Unbounded),
        _ => Span::new(
            Bound::Included(&one.min(other)),
            Bound::Excluded(&one.max(other)),
        ),
    }
}

/// The oldest state that there is; of a log that leads to none the first record.
fn gone(error: PastError) -> Sequence {
    match error {
        PastError::Gone { oldest, first, .. } => oldest.unwrap_or(first),
        other => panic!("{other}"),
    }
}

fn oldest(store: &Store, folder: &Folder) -> Sequence {
    let past = Past::new(0, Span::all(), Point::Sequence(Sequence::NONE));
    match store.read_past(past.snapshots(folder)) {
        Ok(_) => Sequence::NONE,
        Err(error) => gone(error),
    }
}

/// The states of the past that a test remembers.
type History = BTreeMap<Sequence, Vec<Entries>>;

/// Compares states of the past with what is remembered, by sequence and by time, and what is too
/// old with the oldest that there is. Returns how many were there and how many were not.
fn check(store: &Store, folder: &Folder, history: &History, random: &mut SmallRng) -> [usize; 2] {
    let oldest = oldest(store, folder);
    let mut counts = [0; 2];
    let all: Vec<_> = history.iter().collect();
    for _ in 0..24 {
        let (sequence, states) = all[random.random_range(0..all.len())];
        let (database, span) = (random.random_range(0..USED), random_span(random, 60));
        let past = |point| Past::new(database, span.clone(), point).snapshots(folder);
        let read = store.read_past(past(Point::Sequence(*sequence)));
        if *sequence < oldest {
            assert_eq!(gone(read.expect_err("it is too old")), oldest);
            counts[1] += 1;
            continue;
        }
        counts[0] += 1;
        let range = read.expect("it is not too old");
        assert_eq!(range.sequence, *sequence);
        let expected = within(&states[database], &span);
        assert!(entries_of(&range) == expected, "{database} at {sequence}");
        for (_, value) in &range.entries {
            let version = Version::new(sequence.get()).expect("a small number");
            assert!(value.version() <= version && value.version() > Version::NONE);
        }
        // The last state that the log had written when it wrote this one.
        let log = store.log().expect("a log");
        let Some(Ok(entry)) = log
            .read(*sequence)
            .ok()
            .and_then(|mut reader| reader.next())
        else {
            continue;
        };
        let time = entry.written().expect("a time");
        let range = store.read_past(past(Point::Time(time)));
        let range = range.expect("a later state of the same snapshot");
        assert!(range.sequence >= *sequence, "{time:?}");
        let mut behind = log.read(range.sequence.plus(1)).expect("no cut");
        if let Some(behind) = behind.next() {
            let written = behind.expect("no damage").written().expect("a time");
            assert!(written > time, "it ends too early");
        }
        if let Some(states) = history.get(&range.sequence) {
            let expected = within(&states[database], &span);
            assert!(entries_of(&range) == expected, "{database} at {time:?}");
        }
    }
    counts
}

/// Random writes to several databases, each state remembered; snapshots, which cut the log; and
/// restarts. It fails if any state of the past that is kept differs from what was remembered, or if
/// one that is not kept is shown.
#[test]
fn each_state_of_the_past_is_what_the_store_was() {
    let mut counts = [0; 2];
    for (seed, engine) in [(1, Engine::Aspen), (2, Engine::BTree), (3, Engine::CaTree)] {
        let mut random = SmallRng::seed_from_u64(seed);
        let (directory, folder) = new_folder();
        let mut history = History::new();
        for _ in 0..8 {
            let log = log_in(directory.path());
            let (store, _) = open(&config(engine), &log, &folder);
            for _ in 0..150 {
                write(
                    &store,
                    &mut random,
                    random_database(seed, history.len()),
                    60,
                );
                store.forward();
                let states = (0..USED).map(|number| stored(&store, number, &Span::all()));
                history.insert(store.last_effect(), states.collect());
                if random.random_range(0..60) == 0 {
                    let saved = store.save(&folder).expect("a snapshot");
                    log.truncate_below(saved.needed).expect("a disk");
                }
            }
            for (sum, count) in counts
                .iter_mut()
                .zip(check(&store, &folder, &history, &mut random))
            {
                *sum += count;
            }
            log.close().expect("a disk");
        }
    }
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
}

fn random_database(seed: u64, at: usize) -> usize {
    let mut random = SmallRng::seed_from_u64(seed * 1_000_003 + at as u64);
    random.random_range(0..USED)
}

/// Writers on several threads, snapshots at any moment between, and readers of the past: it fails
/// if a state has a change that came later, misses one that came before, or if a snapshot leads to
/// a state that it has overtaken.
#[test]
fn the_past_is_of_one_record_while_threads_write_and_snapshots_are_made() {
    const KEYS: u16 = 3000;
    let (_directory, folder) = new_folder();
    let log = new_log();
    let (store, _) = open(&config(Engine::Aspen), &log, &folder);
    let is_over = AtomicBool::new(false);
    let mut ranges = Vec::new();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|seed| {
                let store = &store;
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed);
                    for _ in 0..6000 {
                        write(store, &mut random, 0, KEYS);
                        store.forward();
                    }
                })
            })
            .collect();
        let saver = scope.spawn(|| {
            while !is_over.load(Relaxed) {
                store.save(&folder).expect("a snapshot");
            }
        });
        let mut random = SmallRng::seed_from_u64(9);
        while !writers.iter().all(|writer| writer.is_finished()) {
            let last = store.last_effect().get();
            let sequence = Sequence::new(random.random_range(last / 2..=last));
            let span = random_span(&mut random, KEYS);
            let past = Past::new(0, span.clone(), Point::Sequence(sequence)).snapshots(&folder);
            match store.read_past(past) {
                Ok(range) => ranges.push((span, range)),
                Err(error) => assert!(gone(error) > sequence),
            }
        }
        is_over.store(true, Relaxed);
        saver.join().expect("no panic");
    });
    assert!(ranges.len() >= 5, "{} were read", ranges.len());
    ranges.sort_by_key(|(_, range)| range.sequence);
    let mut events = store.events(Sequence::FIRST).expect("a whole log");
    let mut copy = Copy::default();
    store.sync().expect("a log");
    for (span, range) in ranges {
        while events.next_sequence() <= range.sequence {
            let read = events.read(&store, 1 << 20, range.sequence, &mut |number, event| {
                if number == 0 {
                    copy.apply(&event);
                }
            });
            assert!(read.expect("a whole log") > 0);
        }
        let expected = within(&copy.alive(Expiry::now()), &span);
        let there = entries_of(&range);
        assert!(there == expected, "at {}", range.sequence);
    }
}

fn put(store: &Store, number: u16, value: Value) -> Sequence {
    store
        .commit(|effects| store.database(0).insert(effects, key(number), value))
        .expect("a log that takes all");
    store.forward();
    store.last_effect()
}

fn at(sequence: Sequence) -> Past {
    Past::new(0, Span::all(), Point::Sequence(sequence))
}

fn keys_of(range: &PastRange) -> Vec<Key> {
    range.entries.iter().map(|(key, _)| key.clone()).collect()
}

/// A key that has expired by now is there at a sequence before, and at a time before; and not at
/// those behind, though nothing has removed it.
#[test]
fn a_key_is_there_until_its_time_had_come() {
    let store = Store::logging(&config(Engine::Aspen), new_log()).expect("a store");
    // Until the log has written the record before the time comes.
    let (first, expiry, written) = loop {
        let expiry = Expiry::from_millis(Expiry::now().millis() + 30).expect("a time");
        let value = Value::from(&b"short"[..]).expiring(Some(expiry));
        let sequence = put(&store, 1, value);
        let log = store.log().expect("a log");
        let entry = log.read(sequence).expect("it is kept").next();
        let entry = entry.expect("it is durable").expect("no damage");
        let written = entry.written().expect("a time");
        let millis = written.duration_since(SystemTime::UNIX_EPOCH);
        if millis.expect("later than 1970").as_millis() < u128::from(expiry.millis()) {
            break (sequence, expiry, written);
        }
    };
    while !expiry.is_over() {
        thread::sleep(Duration::from_millis(1));
    }
    let second = put(&store, 2, Value::from(&b"long"[..]));
    let read = |past: Past| keys_of(&store.read_past(past).expect("all is kept"));
    assert_eq!(read(at(first)), [key(1)]);
    assert_eq!(read(at(second)), [key(2)]);
    let at_time = |time| Past::new(0, Span::all(), Point::Time(time));
    assert_eq!(read(at_time(written)), [key(1)]);
    let over = SystemTime::UNIX_EPOCH + Duration::from_millis(expiry.millis());
    assert_eq!(read(at_time(over)), []);
    assert_eq!(read(at_time(SystemTime::now())), [key(2)]);
    let far = SystemTime::now() + Duration::from_secs(1_000_000);
    assert_eq!(read(at_time(far)), [key(2)]);
    assert_eq!(read(at_time(SystemTime::UNIX_EPOCH)), []);
    assert_eq!(read(Past::new(0, Span::all(), Point::End)), [key(2)]);
}

/// A damaged snapshot is passed over, as when a store is opened; if nothing else leads to the
/// state, the error says what is wrong with it.
#[test]
fn a_damaged_snapshot_is_not_used() {
    let (_directory, folder) = new_folder();
    let log = new_log();
    let (store, _) = open(&config(Engine::BTree), &log, &folder);
    let mut saved = Vec::new();
    for round in 0..2 {
        for number in 0..200 {
            put(&store, number, Value::from(&[round; 20][..]));
        }
        saved.push(store.save(&folder).expect("a snapshot"));
    }
    let last = store.last_effect();
    let flip = |path: &Path| {
        let mut bytes = std::fs::read(path).expect("a snapshot");
        bytes[100] ^= 1;
        std::fs::write(path, bytes).expect("a disk");
    };
    flip(&saved[1].path);
    let read = |sequence| store.read_past(at(sequence).snapshots(&folder));
    let range = read(last).expect("the older one is whole");
    assert_eq!(range.entries.len(), 200);
    assert!(range.entries.iter().all(|(_, value)| **value == [1; 20]));
    flip(&saved[0].path);
    assert!(read(last).is_ok(), "the log is whole");
    log.truncate_below(saved[0].needed.max(Sequence::new(100)))
        .expect("a log");
    let error = read(last).expect_err("nothing leads there").to_string();
    assert!(error.contains("is damaged at offset"), "{error}");
}

/// What a range may take, and what there is not.
#[test]
fn the_past_has_limits_and_errors() {
    let store = Store::new(&StoreConfig::new(Engine::Aspen)).expect("a store");
    let read = store.read_past(at(Sequence::FIRST));
    assert!(matches!(read, Err(PastError::NoLog)));

    let log = Arc::new(MemoryLog::bounded(100_000));
    let earlier = put(
        &Store::logging(&config(Engine::Aspen), Arc::clone(&log) as Arc<dyn Log>).expect("a store"),
        0,
        Value::from(&b"of another store"[..]),
    );
    let store = Store::logging(&config(Engine::Aspen), Arc::clone(&log) as Arc<dyn Log>);
    let store = store.expect("a store");
    let value = || Value::from(&[7; 100][..]);
    (0..100).for_each(|number| {
        put(&store, number, value());
    });
    let last = store.last_effect();
    assert_eq!(store.read_past(at(last)).expect("kept").entries.len(), 100);
    assert!(
        store
            .read_past(at(earlier))
            .expect("kept")
            .entries
            .is_empty()
    );
    let before = store.read_past(at(earlier.before()));
    assert_eq!(gone(before.expect_err("of another store")), earlier);
    assert!(matches!(
        store.read_past(at(last.plus(1))),
        Err(PastError::Beyond { .. })
    ));
    for limit in [1, 1000, 10_000] {
        let far = store.read_past(at(last).limits(limit, usize::MAX));
        assert!(matches!(far, Err(PastError::TooFar { most }) if most == limit));
        let large = store.read_past(at(last).limits(u64::MAX, limit as usize));
        assert!(matches!(large, Err(PastError::TooLarge { most }) if most == limit as usize));
    }
    // What is filtered does not count.
    let one = key(5).as_bytes().to_vec();
    let only = at(last).filter(move |key| *key == *one);
    let range = store
        .read_past(only.limits(100_000, 1000))
        .expect("one row");
    assert_eq!(keys_of(&range), [key(5)]);
    // The ring gives up the beginning.
    (0..2000).for_each(|number| {
        put(&store, number % 100, value());
    });
    let late = store.read_past(at(store.last_effect())).expect_err("cut");
    assert_eq!(gone(late), log.first());
}
