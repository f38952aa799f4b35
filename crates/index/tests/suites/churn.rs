//! Memory stays flat while entries come and go for ever, and is returned when they are gone.
//!
//! Every engine is kept at about the same size by four threads for a while (ten minutes with
//! `cargo xtask test --deep`): two insert and remove at random, two push a window of keys
//! upwards, so that whole nodes empty at one end while new ones are made at the other. The
//! allocator counts what is allocated, and an engine says what it has of the system's pages
//! (`mapped_block_bytes`). The test fails on:
//!
//! - nodes, keys or values that are unlinked and never freed: the count grows with time;
//! - nodes that stay though they are empty or nearly so: the count grows as the window moves;
//! - an index that keeps its memory when everything has been removed. What an engine keeps for its
//!   next entries, and says so in its shape (`free_block_bytes`), counts as returned; such an
//!   engine also keeps what leads to its entries, so more may remain.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::support::suite::{Random, join_all};
use crate::support::values::{Key, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tremula_index::{KeyRange, OrderedIndex};

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Relaxed);
        // SAFETY: passed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Threads that insert and remove.
const THREADS: u32 = 4;

/// The most keys that each thread keeps in the index.
const KEYS: u32 = 4_000;

/// What the least count of a period may grow by, beside a quarter. Garbage waits for the epoch
/// while a pinned thread gets no core, and engines that copy nodes make some kilobytes per turn. If
/// every tenth turn leaks a node, the count passes this in a second; a leak of one byte per turn
/// passes it in ten minutes.
const SLACK: usize = 16 << 20;

/// The least number of turns of each thread, even on a slow machine: its window then has moved by
/// its own length.
const LEAST_TURNS: u64 = 2 * KEYS as u64;

/// The most looks, a millisecond apart, while there is too much garbage at the end and the engine
/// is kept busy. A leak does not go away by that; and if this process is stopped meanwhile, the
/// number of looks left stays the same.
const PATIENCE: u32 = 60_000;

/// The limit at which looking stops, so that a leak does not take all memory. Normal garbage of
/// this size takes longer than some seconds to make.
const TOO_MUCH: usize = 1 << 30;

/// How long each engine is kept busy with each type of keys.
fn duration() -> Duration {
    match std::env::var("TREMULA_DEEP") {
        Ok(_) => Duration::from_secs(600),
        Err(_) => Duration::from_millis(1500),
    }
}

/// The most that the least count at the end may be, compared with the earlier one.
fn most(early: usize) -> usize {
    early.saturating_add(early / 4).saturating_add(SLACK)
}

/// Frees, as far as this thread can, what waits for the epoch or for operations on its index.
fn settle<K: Key, V: Value>(index: &impl OrderedIndex<K, V>, key_of: fn(u64) -> K) {
    for turn in 0..4_096 {
        tremula_sync::epoch::pin().flush();
        index.contains_key(&key_of(turn));
    }
}

/// The bytes that an index keeps for entries to come, if it is of an engine that does so: free
/// blocks, and route tables, if it has any, of which a slot is a word and may have a pointer beside
/// it.
fn kept<K: Key, V: Value>(index: &impl OrderedIndex<K, V>) -> Option<usize> {
    let shape = index.shape();
    let routes = shape.get("route_slots").unwrap_or(0);
    let bytes = shape.get("free_block_bytes")? + 16 * routes;
    Some(bytes as usize)
}

/// The bytes of an index that the allocator does not count: pages of the system.
fn mapped<K: Key, V: Value>(index: &impl OrderedIndex<K, V>) -> Option<usize> {
    let bytes = index.shape().get("mapped_block_bytes")?;
    Some(bytes as usize)
}

/// What the harness may allocate meanwhile, for a test that begins to wait for its turn.
const OF_THE_HARNESS: usize = 16 << 10;

/// The most that may remain of what a full index needed, when it is empty.
fn most_when_empty<K: Key, V: Value>(index: &impl OrderedIndex<K, V>, full: usize) -> usize {
    match kept(index) {
        Some(_) => full / 4 * 3,
        None => full / 4 + OF_THE_HARNESS,
    }
}

pub(crate) fn churn<K: Key, V: Value, I: OrderedIndex<K, V>>(
    make: impl FnOnce() -> I,
    key_of: fn(u64) -> K,
) {
    // One engine at a time, because the count is global: the index is made and dropped within.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let index = &make();
    settle(index, key_of);
    let before = ALLOCATED.load(Relaxed);
    let maps = mapped(index).is_some();
    let used = || {
        let mapped = if maps { mapped(index) } else { None };
        let allocated = ALLOCATED.load(Relaxed).saturating_sub(before);
        allocated + mapped.unwrap_or(0)
    };

    let running = AtomicBool::new(true);
    let turns = AtomicU64::new(0);
    let (early, late) = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (running, turns) = (&running, &turns);
                scope.spawn(move || {
                    // Each thread's keys lie apart from those of the others.
                    let base = u64::from(number) << 40;
                    let mut random = Random::new(number);
                    let mut turn = 0;
                    while running.load(Relaxed) || turn < LEAST_TURNS {
                        if number % 2 == 0 {
                            let key = key_of(base + u64::from(random.below(KEYS)));
                            index.remove(&key);
                            let key = key_of(base + u64::from(random.below(KEYS)));
                            index.insert(key, V::make(random.below(1000)));
                        } else {
                            index.insert(key_of(base + turn), V::make(1));
                            if let Some(old) = turn.checked_sub(KEYS.into()) {
                                index.remove(&key_of(base + old));
                            }
                        }
                        turn += 1;
                    }
                    turns.fetch_add(turn, Relaxed);
                })
            })
            .collect();
        // The least count in the second quarter of the time, and in the last. If this thread sleeps
        // through the beginning of a quarter, the quarter begins when it wakes.
        let (mut early, mut late) = (usize::MAX, usize::MAX);
        let begun = Instant::now();
        let mut looks_left = PATIENCE;
        while begun.elapsed() < duration()
            || late == usize::MAX
            || late > most(early) && looks_left > 0 && used() < TOO_MUCH
        {
            if begun.elapsed() > duration() {
                looks_left = looks_left.saturating_sub(1);
            }
            thread::sleep(Duration::from_millis(1));
            let done = begun.elapsed().as_secs_f64() / duration().as_secs_f64();
            if done > 0.75 && early < usize::MAX {
                late = late.min(used());
            } else if (0.25..0.5).contains(&done) || done >= 0.5 && early == usize::MAX {
                early = early.min(used());
            }
        }
        running.store(false, Relaxed);
        join_all(threads);
        (early, late)
    });
    let engine = index.engine();
    let turns = turns.into_inner();
    println!("{engine}: {turns} turns, {early} bytes at least, later {late}");
    assert!(early > 0, "nothing was counted");
    assert!(
        late <= most(early),
        "{engine}: {early} bytes at least in the second quarter of the time, {late} in the last"
    );

    let full = {
        settle(index, key_of);
        used().saturating_sub(kept(index).unwrap_or(0))
    };
    assert!(full > 0, "nothing was counted");
    assert!(index.remove_range(KeyRange::all()) > 0);
    // A thread of the engine's own may still be working, and pinned.
    let begun = Instant::now();
    loop {
        settle(index, key_of);
        let empty = used().saturating_sub(kept(index).unwrap_or(0));
        if empty <= most_when_empty(index, full) {
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{engine}: {full} bytes when full, {empty} when empty"
        );
        thread::yield_now();
    }
}

/// Runs the churn on the engine that an expression makes, with keys and values that fit into slots
/// and with allocated ones.
macro_rules! engine {
    ($name:ident, $make:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn memory_stays_flat_with_numbers() {
                suite::churn::<u64, u64, _>(|| $make, |number| number);
            }

            #[test]
            fn memory_stays_flat_with_strings() {
                suite::churn::<String, String, _>(|| $make, |number| format!("key {number:020}"));
            }
        }
    };
}

/// Runs the churn on a registered engine, in the configuration that users get.
macro_rules! registered {
    ($name:ident, $Index:ident, $($facts:ident),*) => {
        engine!($name, $Index::<_, _>::new());
    };
}

pub(crate) use {engine, registered};
