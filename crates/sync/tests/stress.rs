//! Real threads on the locks and counters; run under the sanitizers too.
//!
//! Two words under one lock are always changed together. So if a reader sees them differ, or a
//! writer finds an unexpected value, the lock let it in when it should not have. The words are
//! plain memory: ThreadSanitizer reports an access that the lock does not order even if the values
//! happen to be right.
#![cfg(not(any(loom, shuttle)))]

use std::time::{Duration, Instant};
use tremula_sync::atomic::{AtomicUsize, Ordering};
use tremula_sync::{Arc, LockDomain, StatisticsConfig, StatisticsLock, StripedCounter, thread};

/// Operations of each thread; fewer where a sanitizer slows each down.
const OPERATIONS: usize = if cfg!(tremula_tsan) { 20_000 } else { 200_000 };
const THREADS: usize = 4;

fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("a thread found a fault");
    }
}

/// Every thread writes once in `writes_in` operations and reads otherwise; `bias_after` is that of
/// the configuration.
fn readers_and_writers(writes_in: usize, bias_after: u32) {
    let config = StatisticsConfig::default().bias_after(bias_after);
    let lock = Arc::new(StatisticsLock::new(
        (0_usize, 0_usize),
        Arc::new(LockDomain::new(config)),
    ));
    let written = Arc::new(AtomicUsize::new(0));
    let threads = (0..THREADS).map(|number| {
        let (lock, written) = (Arc::clone(&lock), Arc::clone(&written));
        thread::spawn(move || {
            let mut seen = 0;
            for i in 0..OPERATIONS {
                if (i + number) % writes_in == 0 {
                    // Every eighth write only tries.
                    let guard = if i % 8 == 0 {
                        lock.try_write()
                    } else {
                        Some(lock.write())
                    };
                    if let Some(mut words) = guard {
                        words.0 += 1;
                        words.1 += 1;
                        written.fetch_add(1, Ordering::Relaxed);
                    }
                } else {
                    let words = lock.read();
                    assert_eq!(words.0, words.1, "a reader was let in during a write");
                    assert!(words.0 >= seen, "a reader went back in time");
                    seen = words.0;
                }
            }
        })
    });
    join(threads.collect());
    let written = written.load(Ordering::Relaxed);
    assert_eq!(*lock.read(), (written, written));
}

#[test]
fn mostly_readers_see_whole_writes() {
    readers_and_writers(100, 4);
}

#[test]
fn a_bias_that_comes_and_goes_lets_nobody_in_too_early() {
    readers_and_writers(7, 1);
}

#[test]
fn mostly_writers_exclude_each_other() {
    readers_and_writers(2, 2);
}

#[test]
fn a_counter_adds_up_whether_or_not_it_stripes() {
    let counter = Arc::new(StripedCounter::new());
    let threads = (0..THREADS).map(|_| {
        let counter = Arc::clone(&counter);
        thread::spawn(move || {
            for i in 0..OPERATIONS {
                counter.add(if i % 3 == 0 { -1 } else { 2 });
            }
        })
    });
    join(threads.collect());
    let minus = OPERATIONS.div_ceil(3);
    let expected = THREADS * (2 * (OPERATIONS - minus)) - THREADS * minus;
    assert_eq!(counter.sum(), expected as isize);
}

#[test]
fn indices_of_living_threads_differ() {
    let taken = Arc::new(AtomicUsize::new(0));
    let threads = (0..THREADS).map(|_| {
        let taken = Arc::clone(&taken);
        thread::spawn(move || {
            let bit = 1 << tremula_sync::thread_index();
            assert_eq!(
                taken.fetch_or(bit, Ordering::Relaxed) & bit,
                0,
                "two threads have one index"
            );
            // All threads stay alive until the last has its index.
            while taken.load(Ordering::Relaxed).count_ones() < THREADS as u32 {
                thread::yield_now();
            }
        })
    });
    join(threads.collect());
}

/// A thread that has not ended by then never will.
const LONG: Duration = Duration::from_secs(60);

/// Fails if the reader's slot for the outer lock also names the inner lock: then the reader, which
/// becomes a writer of the inner lock, waits for itself.
#[test]
fn a_statistics_lock_inside_of_another_has_a_name_of_its_own() {
    let thread = thread::spawn(move || {
        let config = StatisticsConfig::default().bias_after(1);
        let domain = Arc::new(LockDomain::new(config));
        let inner = StatisticsLock::new(0_u8, Arc::clone(&domain));
        let outer = Arc::new(StatisticsLock::new(inner, domain));
        // Readers in two threads turn on the bias of both locks.
        for _ in 0..2 {
            let other = Arc::clone(&outer);
            let reader = thread::spawn(move || assert!(*other.read().read() == 0));
            reader.join().unwrap();
            assert_eq!(*outer.read_unbiased().read_unbiased(), 0);
        }
        assert!(outer.is_reader_biased() && outer.read_unbiased().is_reader_biased());
        let inner = outer.read();
        *inner.write() += 1;
        *inner.read_unbiased()
    });
    let begun = Instant::now();
    while !thread.is_finished() {
        assert!(begun.elapsed() < LONG, "the reader waits for itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(thread.join().unwrap(), 1);
}
