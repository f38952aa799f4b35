//! Stores that are on their way: who sees them when.

use super::{Elapsed, NANOSECOND, two_sockets};
use std::collections::HashMap;
use tremula_sync::atomic::{AtomicU64, Ordering, fence};
use tremula_sync::sim::{Machine, Simulation, scoped, work};
use tremula_sync::{CachePadded, Mutex, thread};

fn words<const COUNT: usize>() -> [CachePadded<AtomicU64>; COUNT] {
    std::array::from_fn(|_| CachePadded::default())
}

#[test]
fn others_see_a_store_when_its_line_has_come_and_its_own_thread_at_once() {
    // Two cores of one cluster: a line that the other has changed takes 45 ns.
    let run = Simulation::on(two_sockets()).run(|| {
        let begun = tremula_sync::now();
        let [word] = words();
        let times = scoped(
            2,
            |thread| {
                if thread == 0 {
                    word.store(1, Ordering::Relaxed);
                    work(5_000);
                    while word.load(Ordering::Relaxed) == 1 {}
                    return begun.elapsed_virtually();
                }
                work(2_000);
                word.store(2, Ordering::Release);
                assert_eq!(word.load(Ordering::Relaxed), 2);
                begun.elapsed_virtually()
            },
            || {},
        );
        times[0] - times[1]
    });
    // The other thread is at work meanwhile, and looks when the line is long there.
    assert!(run.result > 2_900, "{}", run.result);
    let run = Simulation::on(two_sockets()).run(|| {
        let begun = tremula_sync::now();
        let [word] = words();
        scoped(
            2,
            |thread| {
                if thread == 0 {
                    word.store(1, Ordering::Relaxed);
                    let mut latest = 0;
                    while word.load(Ordering::Relaxed) == 1 {
                        latest = begun.elapsed_virtually();
                        work(1);
                    }
                    return [latest, begun.elapsed_virtually()];
                }
                work(2_000);
                let stores = begun.elapsed_virtually();
                word.store(2, Ordering::Release);
                assert_eq!(word.load(Ordering::Relaxed), 2);
                assert!(
                    begun.elapsed_virtually() < stores + 10,
                    "it waits for its store"
                );
                [stores, stores]
            },
            || {},
        )
    });
    let [[latest, seen], [stored, _]] = run.result[..] else {
        panic!("two threads have run")
    };
    // The thread goes on with the line while the request is under way, for 30 of 45 ns.
    assert!(
        (stored + 25..=stored + 30).contains(&latest),
        "{stored} {latest}"
    );
    // The line goes there, and comes back.
    assert!(
        (stored + 45..=stored + 110).contains(&seen),
        "{stored} {seen}"
    );
}

/// Two threads that each store to a word and then look at the other's: how often, of many times,
/// both saw what was there before.
fn both_see_what_was(order: Ordering, fences: bool) -> usize {
    let both = |seed| {
        let run = Simulation::on(two_sockets()).seed(seed).run(move || {
            let words: [_; 2] = words();
            let step = |thread: usize| {
                words[1 - thread].store(1, Ordering::Relaxed);
                // One is later than the other by another time in each run.
                work(1_000 + 5 * seed * (1 - thread as u64));
                words[thread].store(2, order);
                if fences {
                    fence(Ordering::SeqCst);
                }
                words[1 - thread].load(Ordering::SeqCst)
            };
            scoped(2, step, || {})
        });
        run.result.iter().all(|seen| *seen < 2)
    };
    (0..60).filter(|seed| both(*seed)).count()
}

#[test]
fn a_thread_looks_past_its_stores_unless_it_waits_for_them() {
    assert!(both_see_what_was(Ordering::Release, false) > 0);
    assert_eq!(both_see_what_was(Ordering::SeqCst, false), 0);
    assert_eq!(both_see_what_was(Ordering::Release, true), 0);
}

/// The first store goes to a line that a core of the other socket has, too, and the second to one
/// that is here. A thread that sees the second one still has the line of the first for a while, and
/// must not see what was there before.
#[test]
fn stores_are_seen_in_the_order_in_which_they_were_made() {
    let reads_second = |offset: u64| {
        let run = Simulation::on(two_sockets()).run(move || {
            let [far, near] = words();
            let step = |thread: usize| match thread {
                0 => {
                    near.store(1, Ordering::Relaxed);
                    work(1_000);
                    far.store(2, Ordering::Relaxed);
                    near.store(2, Ordering::Release);
                    false
                }
                1 => {
                    work(500);
                    far.load(Ordering::Relaxed);
                    work(offset);
                    let is_second = near.load(Ordering::Acquire) == 2;
                    let first = far.load(Ordering::Relaxed);
                    assert!(!is_second || first == 2, "offset {offset}");
                    is_second
                }
                // In the other socket.
                17 => {
                    far.load(Ordering::Relaxed);
                    false
                }
                _ => false,
            };
            scoped(18, step, || {})
        });
        run.result[1]
    };
    let second = (0..200).filter(|step| reads_second(4 * step)).count();
    assert!((1..200).contains(&second), "{second}");
}

/// One thread's store waits for an earlier one to a line of the other socket; meanwhile another
/// thread stores to the same word, which others see first.
#[test]
fn a_thread_sees_its_own_store_although_another_will_come_after_it() {
    let overtaken = |offset: u64| {
        let run = Simulation::on(two_sockets()).run(move || {
            let begun = tremula_sync::now();
            let [far, near] = words();
            let step = |thread: usize| {
                match thread {
                    // In the other socket.
                    17 => far.store(1, Ordering::Relaxed),
                    0 => {
                        near.store(1, Ordering::Relaxed);
                        work(1_000);
                        far.store(2, Ordering::Relaxed);
                        near.store(10, Ordering::Relaxed);
                    }
                    1 => {
                        work(800 + offset);
                        near.store(20, Ordering::Relaxed);
                        assert_eq!(near.load(Ordering::Relaxed), 20, "offset {offset}");
                    }
                    _ => {}
                }
                begun.elapsed_virtually()
            };
            let times = scoped(18, step, || {});
            times[1] > times[0] && near.load(Ordering::Relaxed) == 10
        });
        run.result
    };
    let overtaken = (0..100).filter(|step| overtaken(4 * step)).count();
    assert!(overtaken > 0, "no store was seen before an earlier one");
}

#[test]
fn who_is_woken_or_waits_for_the_end_of_a_thread_sees_its_stores() {
    let machine = Machine {
        prices: tremula_sync::sim::Prices {
            // What joining gives back would take longer than the store.
            allocation: 0,
            wake: 0,
            wake_delay: 0,
            sleep: 0,
            ..super::prices()
        },
        ..two_sockets()
    };
    for wait in 0..200 {
        let run = Simulation::on(machine).run(move || {
            let [word, end] = words().map(tremula_sync::Arc::new);
            let (there, at_end) = (word.clone(), end.clone());
            // It has the core of this thread; the next one has another.
            thread::spawn(|| ()).join().expect("it ends well");
            let sleeper = thread::spawn(move || {
                there.store(1, Ordering::Relaxed);
                work(1_000 + wait);
                while there.load(Ordering::Acquire) < 2 {
                    thread::park();
                }
                at_end.store(2, Ordering::Relaxed);
            });
            work(1_090);
            // The line is here, so what the thread stores at its end is on its way for a while.
            end.store(1, Ordering::Relaxed);
            word.store(2, Ordering::Release);
            sleeper.thread().unpark();
            while wait % 2 == 0 && !sleeper.is_finished() {
                work(1);
            }
            sleeper.join().expect("it ends well");
            end.load(Ordering::Relaxed)
        });
        assert_eq!(run.result, 2);
    }
}

/// All threads agree on the order of the values of a word, whatever stores and exchanges meet.
#[test]
fn a_word_has_one_order_of_values() {
    for seed in 0..30 {
        let run = Simulation::on(two_sockets()).seed(seed).run(move || {
            let words: [_; 2] = words();
            let logs = Mutex::new(Vec::new());
            let step = |thread: usize| {
                let mut log = [Vec::new(), Vec::new()];
                for step in 0..40_u64 {
                    let value = thread as u64 * 1000 + step + 1;
                    let at = (step as usize * 7 + thread + seed as usize) % 2;
                    match (step + thread as u64) % 3 {
                        0 => {
                            words[at].store(value, Ordering::Release);
                            log[at].push(value);
                        }
                        1 => {
                            log[at].push(words[at].swap(value, Ordering::AcqRel));
                            log[at].push(value);
                        }
                        _ => log[at].push(words[at].load(Ordering::Acquire)),
                    }
                }
                logs.lock().push(log);
            };
            scoped(6, step, || {});
            let last = words.map(|word| word.load(Ordering::Relaxed));
            (logs.into_inner(), last)
        });
        let (logs, last) = run.result;
        for at in 0..2 {
            let logs: Vec<&[u64]> = logs.iter().map(|log| &*log[at]).collect();
            let order = one_order(&logs, last[at]);
            assert!(
                order,
                "seed {seed}: word {at} has {logs:?}, and {} at its end",
                last[at]
            );
        }
    }
}

/// Whether there is an order of all values in which each log is in order, and `last` the last one.
fn one_order(logs: &[&[u64]], last: u64) -> bool {
    let mut after: HashMap<u64, Vec<u64>> = HashMap::new();
    for log in logs {
        let mut log = log.to_vec();
        log.dedup();
        for pair in log.windows(2) {
            after.entry(pair[0]).or_default().push(pair[1]);
        }
        let end = log.last().filter(|end| **end != last);
        after.entry(*end.unwrap_or(&0)).or_default().push(last);
    }
    // Takes away, again and again, what nothing comes after.
    let mut left: Vec<u64> = after.keys().copied().collect();
    loop {
        let is_before_another = |value: &u64, left: &[u64]| {
            let next = after.get(value).into_iter().flatten();
            next.filter(|next| *next != value)
                .any(|next| left.contains(next))
        };
        let some: Vec<u64> = left
            .iter()
            .copied()
            .filter(|value| is_before_another(value, &left))
            .collect();
        if some.is_empty() {
            return !after.contains_key(&last) || after[&last].iter().all(|next| *next == last);
        }
        if some.len() == left.len() {
            return false;
        }
        left = some;
    }
}

#[test]
fn a_lock_is_taken_until_the_store_that_frees_it_has_come() {
    // Two threads take turns at a word that they set by an exchange and free by a store.
    let run = Simulation::on(two_sockets()).seed(1).run(|| {
        let [lock, failed] = words();
        let step = |_| {
            for _ in 0..200 {
                while lock
                    .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_err()
                {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
                work(20);
                lock.store(0, Ordering::Release);
            }
        };
        scoped(2, step, || {});
        failed.load(Ordering::Relaxed)
    });
    assert!(run.result > 0 && run.elapsed > 400 * 20 * NANOSECOND);
}
