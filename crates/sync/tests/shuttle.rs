//! Many threads on one lock, under random schedules.
#![cfg(shuttle)]

use tremula_sync::model::check;
use tremula_sync::{Arc, LockDomain, StatisticsConfig, StatisticsLock, StripedCounter, thread};

#[test]
fn two_fields_under_one_lock_never_differ() {
    check("two_fields_under_one_lock_never_differ", 20_000, || {
        let config = StatisticsConfig::default().bias_after(2);
        let lock = Arc::new(StatisticsLock::new(
            (0, 0),
            Arc::new(LockDomain::new(config)),
        ));
        let threads: Vec<_> = (0..6)
            .map(|number| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || {
                    for _ in 0..3 {
                        if number < 2 {
                            let mut fields = lock.write();
                            fields.0 += 1;
                            thread::yield_now();
                            fields.1 += 1;
                        } else if number == 2 {
                            if let Some(mut fields) = lock.try_write() {
                                let before = fields.0;
                                thread::yield_now();
                                assert_eq!((before, before), *fields);
                                fields.0 += 0;
                            }
                        } else {
                            let fields = lock.read();
                            let first = fields.0;
                            thread::yield_now();
                            assert_eq!((first, first), *fields);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*lock.read(), (6, 6));
    });
}

#[test]
fn a_counter_adds_up() {
    check("a_counter_adds_up", 10_000, || {
        let counter = Arc::new(StripedCounter::new());
        let threads: Vec<_> = (0..5)
            .map(|number| {
                let counter = Arc::clone(&counter);
                thread::spawn(move || (0..4).for_each(|_| counter.add(number - 1)))
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(
            counter.sum(),
            4 * (0..5).map(|number| number - 1).sum::<isize>()
        );
    });
}
