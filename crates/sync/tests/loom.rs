//! Every interleaving of two or three threads on the locks and counters.
//!
//! The values inside the locks are loom's cells: an access that is not ordered after the last
//! conflicting one fails the model, whatever it reads.
#![cfg(loom)]

use tremula_sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use tremula_sync::cell::UnsafeCell;
use tremula_sync::model::check;
use tremula_sync::reclaim::epochs::{Epochs, Look, Record, Registry};
use tremula_sync::{
    Arc, CombiningLock, LockDomain, Restart, ShortLock, StatisticsConfig, StatisticsLock,
    StripedCounter, VersionLock, retry, thread,
};

fn lock(bias_after: u32) -> Arc<StatisticsLock<u32>> {
    let config = StatisticsConfig::default().bias_after(bias_after);
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
        // An ordinary writer must cope with what a try left behind.
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

/// Two words that a version lock guards: a writer makes both the same again.
#[derive(Default)]
struct Pair {
    lock: VersionLock,
    words: [AtomicU64; 2],
}

impl Pair {
    fn read(&self) -> Result<u64, Restart> {
        let version = self.lock.read()?;
        let words = self.words.each_ref().map(|word| word.load(Relaxed));
        self.lock.validate(version)?;
        assert_eq!(words[0], words[1], "of two versions, and validated");
        Ok(words[0])
    }

    fn write(&self) -> Result<(), Restart> {
        let version = self.lock.read()?;
        let [word, _] = self.words.each_ref().map(|word| word.load(Relaxed));
        let _guard = self.lock.upgrade(version)?;
        for place in &self.words {
            place.store(word + 1, Relaxed);
        }
        Ok(())
    }
}

// In models of a reader and a writer the reader is the spawned thread. loom remembers only the last
// access to an object, so a writer that itself reads before it writes would hide the reader that
// ran before, and loom would explore only one interleaving.
#[test]
fn what_a_version_lock_validates_is_of_one_version() {
    check("what_a_version_lock_validates_is_of_one_version", 4, || {
        let pair = Arc::new(Pair::default());
        let other = Arc::clone(&pair);
        let reader = thread::spawn(move || other.read());
        retry(|| pair.write(), || ());
        retry(|| pair.write(), || ());
        let seen = reader.join().unwrap();
        assert!(matches!(seen, Ok(0..=2) | Err(Restart)));
        assert_eq!(pair.read(), Ok(2));
    });
}

#[test]
fn writers_that_upgrade_a_version_lose_no_update() {
    check("writers_that_upgrade_a_version_lose_no_update", 3, || {
        let pair = Arc::new(Pair::default());
        let other = Arc::clone(&pair);
        let writer = thread::spawn(move || retry(|| other.write(), || ()));
        retry(|| pair.write(), || ());
        writer.join().unwrap();
        assert_eq!(pair.read(), Ok(2));
    });
}

#[test]
fn who_waits_for_a_lock_made_obsolete_restarts_and_sees_why() {
    check(
        "who_waits_for_a_lock_made_obsolete_restarts_and_sees_why",
        4,
        || {
            let pair = Arc::new(Pair::default());
            let other = Arc::clone(&pair);
            let writer = thread::spawn(move || {
                let guard = other.lock.lock().unwrap();
                other.words[0].store(7, Relaxed);
                guard.obsolete();
            });
            let seen = pair.lock.lock().map(|guard| {
                assert_eq!(pair.words[0].load(Relaxed), 0);
                guard.unchanged();
            });
            writer.join().unwrap();
            assert!(pair.lock.is_obsolete());
            assert!(pair.read().is_err(), "{seen:?}");
        },
    );
}
#[test]
fn a_short_lock_admits_one_at_a_time() {
    check("a_short_lock_admits_one_at_a_time", 3, || {
        let lock = Arc::new(ShortLock::new(0));
        let threads = [1, 10].map(|step| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                *lock.lock() += step;
                if let Some(mut value) = lock.try_lock() {
                    *value += step;
                    return 2 * step;
                }
                step
            })
        });
        let added: u32 = threads.map(|thread| thread.join().unwrap()).iter().sum();
        assert_eq!(*lock.lock(), added);
    });
}

/// Three threads, so that a request can be published behind another, and so that the holder takes
/// one and misses the other. Fails if a request is lost, done twice, or beside another; if a thread
/// returns before its request is done; or if a request is accessed after that.
#[test]
fn a_combining_lock_does_each_request_once() {
    check("a_combining_lock_does_each_request_once", 3, || {
        let lock = Arc::new(CombiningLock::<_>::new(Vec::new()));
        let threads = [1, 2].map(|number| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                let place = lock.run(move |numbers| {
                    numbers.push(number);
                    numbers.len()
                });
                (place, number)
            })
        });
        let place = lock.run(|numbers| {
            numbers.push(3);
            numbers.len()
        });
        let mut places = threads.map(|thread| thread.join().unwrap()).to_vec();
        places.push((place, 3));
        places.sort_unstable();
        let numbers = lock.run(std::mem::take);
        let expected: Vec<_> = (1..).zip(numbers).collect();
        assert_eq!(places, expected);
    });
}

/// Fails if a thread's second request is done before its first, or finds what the first left gone.
#[test]
fn a_combining_lock_keeps_the_order_of_each_thread() {
    check("a_combining_lock_keeps_the_order_of_each_thread", 4, || {
        let lock = Arc::new(CombiningLock::<_>::new(0_u32));
        let other = Arc::clone(&lock);
        let thread = thread::spawn(move || {
            let first = other.run(|sum| std::mem::replace(sum, *sum + 1));
            let second = other.run(|sum| std::mem::replace(sum, *sum + 1));
            assert!(first < second);
        });
        let before = lock.run(|sum| std::mem::replace(sum, *sum + 10));
        assert!(before <= 2);
        thread.join().unwrap();
        assert_eq!(lock.run(|sum| *sum), 12);
    });
}

/// A thing that a link leads to, and that is freed. The thing is loom's cell, so an access that is
/// not ordered against another fails the model.
struct Linked {
    link: AtomicBool,
    thing: UnsafeCell<()>,
}

/// A structure of one link, its epochs, and the threads in it.
struct Structure {
    epochs: Epochs,
    registry: Registry<()>,
    linked: Arc<Linked>,
}

// SAFETY: the model checks the accesses to the cell.
unsafe impl Sync for Linked {}
// SAFETY: as for `Sync`.
unsafe impl Send for Linked {}

impl Structure {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            epochs: Epochs::new(1),
            registry: Registry::new(),
            linked: Arc::new(Linked {
                link: AtomicBool::new(true),
                thing: UnsafeCell::new(()),
            }),
        })
    }

    /// Reads the thing if it is linked.
    fn read(&self, pin: usize) {
        let record = self.registry.take();
        record.pin(pin, &self.epochs);
        // Relaxed: the pin keeps the thing alive.
        if self.linked.link.load(Relaxed) {
            self.linked.thing.with(|_| ());
        }
        record.unpin(pin);
        record.give_back();
    }

    fn unlink(&self) {
        self.linked.link.store(false, Relaxed);
    }

    fn free(linked: &Linked) {
        linked.thing.with_mut(|_| ());
    }

    /// Unlinks the thing and retires it.
    fn retire(&self) {
        let record = self.registry.take();
        record.pin(0, &self.epochs);
        self.unlink();
        let linked = Arc::clone(&self.linked);
        // SAFETY: the thing has been unlinked.
        unsafe { self.epochs.retire(record, move || Self::free(&linked)) };
        record.unpin(0);
        record.give_back();
    }

    /// A turn: advances as far as it can.
    fn turn(&self, advances: usize) -> usize {
        let mut freed = 0;
        for _ in 0..advances {
            if self.epochs.advance(&self.registry) {
                freed += self.epochs.free_ripe(Look::default(), usize::MAX);
            }
        }
        freed
    }
}

impl Drop for Structure {
    fn drop(&mut self) {
        // SAFETY: the threads have ended.
        unsafe { self.registry.free() };
    }
}

#[test]
fn nothing_is_freed_under_a_pin() {
    check("nothing_is_freed_under_a_pin", 4, || {
        let structure = Structure::new();
        let reader = thread::spawn({
            let structure = Arc::clone(&structure);
            move || structure.read(0)
        });
        structure.retire();
        structure.turn(2);
        reader.join().unwrap();
        structure.turn(2);
        assert_eq!(
            structure.epochs.garbage(Look::default()),
            0,
            "it is freed when nobody is inside"
        );
    });
}

#[test]
fn nothing_is_freed_under_the_pin_that_holds_back_all() {
    check(
        "nothing_is_freed_under_the_pin_that_holds_back_all",
        3,
        || {
            let structure = Structure::new();
            let reader = thread::spawn({
                let structure = Arc::clone(&structure);
                move || structure.read(Record::<()>::PINS - 1)
            });
            structure.retire();
            structure.turn(2);
            reader.join().unwrap();
        },
    );
}

#[test]
fn nothing_is_freed_while_two_threads_advance() {
    check("nothing_is_freed_while_two_threads_advance", 2, || {
        let structure = Structure::new();
        let others = [false, true].map(|advances| {
            let structure = Arc::clone(&structure);
            thread::spawn(move || {
                if advances {
                    structure.turn(2);
                } else {
                    structure.read(0);
                }
            })
        });
        structure.retire();
        structure.turn(2);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[test]
fn nothing_is_freed_under_a_pin_while_a_thread_comes() {
    check(
        "nothing_is_freed_under_a_pin_while_a_thread_comes",
        3,
        || {
            let structure = Structure::new();
            let record = structure.registry.take();
            record.pin(0, &structure.epochs);
            let coming = thread::spawn({
                let structure = Arc::clone(&structure);
                move || structure.registry.take().give_back()
            });
            structure.retire();
            assert_eq!(structure.turn(3), 0, "it is freed under a pin");
            record.unpin(0);
            record.give_back();
            coming.join().unwrap();
        },
    );
}

#[test]
fn a_thread_that_is_alone_may_take_what_it_has_unlinked() {
    check(
        "a_thread_that_is_alone_may_take_what_it_has_unlinked",
        4,
        || {
            let structure = Structure::new();
            let reader = thread::spawn({
                let structure = Arc::clone(&structure);
                move || structure.read(0)
            });
            let record = structure.registry.take();
            record.pin(0, &structure.epochs);
            structure.unlink();
            if structure.epochs.is_alone(&structure.registry, record, 0) {
                Structure::free(&structure.linked);
            }
            record.unpin(0);
            reader.join().unwrap();
        },
    );
}
