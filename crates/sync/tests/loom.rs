//! Every interleaving of two or three threads on the locks and counters.
//!
//! The values inside the locks are loom's cells: an access that is not ordered after the last
//! conflicting one fails the model, whatever it reads.
#![cfg(loom)]

use tremula_sync::model::check;
use tremula_sync::{Arc, LockDomain, StatisticsConfig, StatisticsLock, StripedCounter, thread};

fn lock(bias_after: u32) -> Arc<StatisticsLock<u32>> {
    let config = StatisticsConfig {
        bias_after,
        ..StatisticsConfig::default()
    };
    Arc::new(StatisticsLock::new(0, Arc::new(LockDomain::new(config))))
}

#[test]
fn writers_exclude_each_other() {
    check("writers_exclude_each_other", 5, || {
        let lock = lock(4);
        let other = Arc::clone(&lock);
        let writer = thread::spawn(move || *other.write() += 1);
        *lock.write() += 1;
        writer.join().unwrap();
        assert_eq!(*lock.read(), 2);
        let (contended, uncontended) = lock.acquisitions();
        assert_eq!(contended + uncontended, 2);
        assert_eq!(
            lock.statistics(),
            250 * contended as i32 - uncontended as i32
        );
    });
}

#[test]
fn readers_that_waited_are_counted_with_the_writers() {
    check(
        "readers_that_waited_are_counted_with_the_writers",
        3,
        || {
            let lock = lock(4);
            let other = Arc::clone(&lock);
            let reader = thread::spawn(move || drop(other.read()));
            *lock.write() += 1;
            reader.join().unwrap();
            let (contended, uncontended) = lock.acquisitions();
            assert_eq!(
                lock.statistics(),
                250 * contended as i32 - uncontended as i32
            );
        },
    );
}

#[test]
fn a_biased_reader_and_a_writer_exclude_each_other() {
    check("a_biased_reader_and_a_writer_exclude_each_other", 5, || {
        let lock = lock(1);
        drop(lock.read());
        assert!(lock.is_reader_biased());
        let other = Arc::clone(&lock);
        let reader = thread::spawn(move || {
            let first = *other.read();
            let second = *other.read();
            assert!(first <= second, "a reader went back in time");
        });
        *lock.write() += 1;
        *lock.write() += 1;
        reader.join().unwrap();
        assert_eq!(*lock.read(), 2);
    });
}

#[test]
fn two_biased_readers_and_a_writer_exclude_each_other() {
    check(
        "two_biased_readers_and_a_writer_exclude_each_other",
        2,
        || {
            let lock = lock(1);
            drop(lock.read());
            let readers = [Arc::clone(&lock), Arc::clone(&lock)].map(|lock| {
                thread::spawn(move || {
                    let guard = lock.read();
                    assert!(*guard <= 1);
                })
            });
            *lock.write() += 1;
            for reader in readers {
                reader.join().unwrap();
            }
        },
    );
}

#[test]
fn try_write_gives_way_to_a_biased_reader() {
    check("try_write_gives_way_to_a_biased_reader", 5, || {
        let lock = lock(1);
        drop(lock.read());
        let other = Arc::clone(&lock);
        let reader = thread::spawn(move || {
            let first = *other.read();
            assert!(first <= *other.read());
        });
        let mut written = 0;
        for _ in 0..2 {
            if let Some(mut value) = lock.try_write() {
                *value += 1;
                written += 1;
            }
        }
        // What a try left behind, an ordinary writer has to cope with.
        *lock.write() += 1;
        reader.join().unwrap();
        assert_eq!(*lock.read(), written + 1);
    });
}

#[test]
fn a_counter_that_stripes_itself_loses_nothing() {
    check("a_counter_that_stripes_itself_loses_nothing", 5, || {
        let counter = Arc::new(StripedCounter::new());
        let threads = [1, 10].map(|step| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                counter.add(step);
                counter.add(step);
            })
        });
        counter.add(100);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(counter.sum(), 122);
    });
}
