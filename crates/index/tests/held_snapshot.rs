//! A snapshot that is held for a long time while others write: `TREMULA_DEEP` holds it for half a
//! minute. It shows what there was, however often that is replaced, and it keeps nothing else: not
//! the values that writers replace in another map of the program, and no more copies than entries.
#![cfg(not(any(loom, shuttle, tremula_tsan)))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tremula_index::{Aspen, KeyRange, OlcBTree, OrderedIndex};

const KEYS: u64 = 20_000;

/// How many of these there are at the moment.
static ALIVE: AtomicU64 = AtomicU64::new(0);

/// A value of the other map, in a box.
#[derive(Debug)]
struct Counted;

impl Counted {
    fn new() -> Arc<Self> {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

fn hold() -> Duration {
    let is_deep = std::env::var_os("TREMULA_DEEP").is_some();
    Duration::from_millis(if is_deep { 30_000 } else { 300 })
}

/// Updates until `is_over`; returns how many.
fn update<K: Clone + Ord>(
    map: &dyn OrderedIndex<K, u64>,
    keys: &[K],
    other: &Aspen<u64, Arc<Counted>>,
    is_over: &AtomicBool,
) -> u64 {
    let mut done = 0;
    while !is_over.load(Ordering::Relaxed) {
        for key in keys {
            done += 1;
            map.insert(key.clone(), KEYS + done);
            if done.is_multiple_of(8) {
                other.insert(done % 64, Counted::new());
            }
        }
    }
    done
}

fn is_held<K: Clone + Ord + Send + Sync + 'static>(
    name: &str,
    map: &dyn OrderedIndex<K, u64>,
    keys: &[K],
) {
    for (key, value) in keys.iter().zip(0..) {
        map.insert(key.clone(), value);
    }
    let other = Aspen::<u64, Arc<Counted>>::new();
    let is_over = AtomicBool::new(false);
    let mut before = 0;
    for with_snapshot in [false, true] {
        is_over.store(false, Ordering::Relaxed);
        if with_snapshot {
            for (key, value) in keys.iter().zip(0..) {
                map.insert(key.clone(), value);
            }
        }
        let mut cursor = with_snapshot.then(|| map.begin_snapshot(KeyRange::all()).unwrap());
        let writes: u64 = thread::scope(|scope| {
            let writer = || update(map, keys, &other, &is_over);
            let writers: Vec<_> = (0..2).map(|_| scope.spawn(writer)).collect();
            let begun = Instant::now();
            let mut most = 0;
            while begun.elapsed() < hold() {
                thread::sleep(Duration::from_millis(20));
                most = most.max(ALIVE.load(Ordering::Relaxed));
            }
            is_over.store(true, Ordering::Relaxed);
            println!("{name}: at most {most} values of another map");
            let writes = writers.into_iter().map(|writer| writer.join().unwrap());
            let writes = writes.sum();
            // 64 are in the map; the rest waits to be freed, for as long as a thread waits for a
            // core in the middle of an operation.
            let made = writes / 8;
            assert!(
                most < 50_000 + made / 2,
                "{most} of {made} values are not freed"
            );
            writes
        });
        println!("{name}: {writes} writes, {before} before");
        assert!(writes > 0);
        before = writes;
        if let Some(cursor) = &mut cursor {
            assert!(cursor.held() <= keys.len());
            let mut shown = Vec::new();
            while map.read_snapshot(cursor, 1000, &mut shown) {}
            assert!(shown.into_iter().eq(keys.iter().cloned().zip(0..)));
        }
    }
}

#[test]
fn a_snapshot_of_numbers_is_held() {
    let keys: Vec<u64> = (0..KEYS).map(|number| number * 1_000_003).collect();
    is_held("numbers", &Aspen::<u64, u64>::new(), &keys);
}

#[test]
fn a_snapshot_of_text_is_held() {
    let keys: Vec<_> = (0..KEYS).map(|number| format!("key {number:08}")).collect();
    is_held("text", &Aspen::<String, u64>::new(), &keys);
    is_held("text in a b_tree", &OlcBTree::<String, u64>::new(), &keys);
}
