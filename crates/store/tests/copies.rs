//! Copies of a store's directory: while it is written and saved, and of its past.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tremula_log::{Config as LogConfig, FileLog, Keep, Log, Sequence};
use tremula_store::{
    Direction, Engine, Folder, Key, KeyRange, LOG_FOLDER, Point, Store, StoreConfig, Value, backup,
    restore,
};

const SEGMENT: u64 = 4 << 10;

/// Ends the threads of a test, also when it fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(directory: &Path, keep: Keep) -> (Store, Folder, Arc<FileLog>) {
    let config = LogConfig::default().segment_bytes(SEGMENT).keep(keep);
    let log = FileLog::open(directory.join(LOG_FOLDER), &config).expect("a whole log");
    let log = Arc::new(log);
    let folder = Folder::new(directory);
    let config = StoreConfig::new(Engine::Aspen);
    let shared: Arc<dyn Log> = log.clone();
    let (store, _) = Store::recover(&config, shared, &folder, &mut |_| ()).expect("a whole store");
    (store, folder, log)
}

fn put(store: &Store, key: &str, value: &str) {
    let (key, value) = (Key::from(key.as_bytes()), Value::from(value.as_bytes()));
    let put = store.commit(|effects| store.database(0).insert(effects, key, value));
    put.expect("the log takes it");
}

fn put_both(store: &Store, keys: [&str; 2], value: &str) {
    let entries = keys.map(|key| (Key::from(key.as_bytes()), Value::from(value.as_bytes())));
    let put = store.commit(|effects| store.database(0).insert_together(effects, entries.into()));
    put.expect("the log takes it");
}

fn contents(store: &Store) -> Contents {
    let mut entries = Vec::new();
    let all = KeyRange::all();
    store
        .database(0)
        .scan(all, Direction::Ascending, usize::MAX, &mut entries);
    entries
        .into_iter()
        .map(|(key, value)| (key.as_bytes().to_vec(), value.to_vec()))
        .collect()
}

/// What a directory holds, opened as a store.
fn there(directory: &Path) -> Contents {
    contents(&open(directory, Keep::Nothing).0)
}

/// One thread writes two keys in one step, another saves and cuts the log behind the snapshots. A
/// copy that took the log before the snapshot would lack what the snapshot has seen, and one that
/// missed a cut would have a hole: neither opens.
#[test]
fn a_copy_of_a_store_that_is_written_and_saved_is_whole() {
    const COPIES: usize = 8;
    let place = tempfile::tempdir().expect("a directory");
    let live = place.path().join("live");
    let (store, folder, log) = open(&live, Keep::Nothing);
    let (ends, durable) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 1.. {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                put_both(&store, ["a", "z"], &number.to_string());
                put(&store, &format!("k{}", number % 400), "some of the rest");
                if number % 32 == 0 {
                    store.sync().expect("it is on the disk");
                    durable.store(number, Ordering::Relaxed);
                }
            }
        });
        let saver = scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                let saved = store.save(&folder).expect("a snapshot");
                log.truncate_below(saved.needed).expect("a shorter log");
                thread::sleep(Duration::from_millis(2));
            }
        });
        let ended = Ends(&ends);
        for number in 0..COPIES {
            let least = durable.load(Ordering::Relaxed);
            let target = place.path().join(number.to_string());
            let copied = backup(&live, &target, number % 2 == 1).expect("a copy");
            assert!(copied.earliest <= copied.last);
            let there = there(&target);
            let half = |key: &[u8]| -> u64 {
                let text = there.get(key).map(|text| String::from_utf8_lossy(text));
                text.map_or(0, |text| text.parse().expect("a number"))
            };
            assert_eq!(half(b"a"), half(b"z"), "half of a step");
            assert!(half(b"a") >= least, "{} of {least}", half(b"a"));
        }
        drop(ended);
        writer.join().expect("the writer ends");
        saver.join().expect("the saver ends");
    });
    assert!(durable.load(Ordering::Relaxed) > 100, "too few to tell");
}

/// The log is to keep eight segments. After each of many snapshots every state from there on is
/// restored, whatever snapshots and segments were removed; and what is not kept goes.
#[test]
fn every_state_that_the_log_keeps_is_restored() {
    const STEPS: u64 = 600;
    const KEPT: u64 = 8;
    let place = tempfile::tempdir().expect("a directory");
    let live = place.path().join("live");
    let (store, folder, log) = open(&live, Keep::Bytes(KEPT * SEGMENT));
    let mut states: Vec<(Sequence, Contents)> = vec![(Sequence::NONE, Contents::new())];
    let (mut restored, mut most) = (0, 0);
    for step in 0..STEPS {
        put_both(&store, ["a", "z"], &step.to_string());
        put(&store, &format!("k{}", step % 50), &"v".repeat(40));
        store.sync().expect("it is on the disk");
        states.push((store.last_effect(), contents(&store)));
        if step % 20 != 19 {
            continue;
        }
        let saved = store.save(&folder).expect("a snapshot");
        log.truncate_below(saved.needed).expect("a shorter log");
        most = most.max(folder.snapshots().expect("a list").len());
        if step % 60 != 59 {
            continue;
        }
        let kept = log.keeps_from();
        let first = states.partition_point(|(last, _)| *last < kept);
        let recent = states.len() - 1 - (step as usize) % 7;
        for at in [first, (first + recent) / 2, recent] {
            let (last, state) = &states[at];
            restored += 1;
            let target = place.path().join(restored.to_string());
            let copied = restore(&live, &target, Point::Sequence(*last));
            let copied = copied.unwrap_or_else(|error| panic!("{last} of {kept}: {error}"));
            assert_eq!(copied.last, *last);
            assert_eq!(&there(&target), state, "{last}");
        }
    }
    // The newest two, the one that leads to the oldest state, and one for each quarter.
    assert!((3..=8).contains(&most), "{most} snapshots");
    assert!(log.first() > Sequence::FIRST, "nothing was cut");
    let segments = log.stats().segments;
    assert!((KEPT..4 * KEPT).contains(&segments), "{segments} segments");
    // What a directory holds is for its user alone.
    let made = std::fs::metadata(place.path().join("1")).expect("it is there");
    assert_eq!(made.permissions().mode() & 0o777, 0o700);
    // What was cut is named.
    let target = place.path().join("cut");
    let told = restore(&live, &target, Point::Sequence(states[3].0)).expect_err("it was cut");
    let told = told.to_string();
    assert!(
        told.contains("the earliest state that can be restored"),
        "{told}"
    );
    assert!(!target.exists());
}
