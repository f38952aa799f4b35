//! The simulator: runs repeat, time adds up, and curves that are known from real machines come out.
//!
//! A test fails when a price is charged twice or not at all, when a thread passes another in
//! virtual time, or when something of a run is left over for the next.

#![cfg(sim)]

mod led;
mod stores;

use std::cell::Cell;
use std::time::Duration;
use tremula_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tremula_sync::sim::{
    Allocator, ByDistance, Machine, Outcome, Prices, Simulation, scoped, work,
};
use tremula_sync::{
    Arc, CachePadded, LockDomain, Mutex, RwLock, StatisticsConfig, StatisticsLock, StripedCounter,
    epoch, reclaim, spin_loop, thread, thread_index,
};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const NANOSECOND: u64 = 1000;

fn prices() -> Prices {
    let by = |cluster, socket, other| ByDistance {
        cluster: cluster * NANOSECOND,
        socket: socket * NANOSECOND,
        other: other * NANOSECOND,
    };
    Prices {
        instructions: NANOSECOND,
        near_cache: NANOSECOND,
        far_cache: 4 * NANOSECOND,
        socket_cache: 20 * NANOSECOND,
        own_memory: 90 * NANOSECOND,
        other_memory: 140 * NANOSECOND,
        clean: by(35, 45, 115),
        changed: by(45, 60, 140),
        read_modify_write: 6 * NANOSECOND,
        fence: 6 * NANOSECOND,
        pause: 10 * NANOSECOND,
        yield_now: 500 * NANOSECOND,
        sleep: 1500 * NANOSECOND,
        // Short, so that threads that start one after the other work at the same time.
        wake: 20 * NANOSECOND,
        wake_delay: 100 * NANOSECOND,
        switch: 1500 * NANOSECOND,
        allocation: 20 * NANOSECOND,
        store_lag: 200 * NANOSECOND,
    }
}

fn two_sockets() -> Machine {
    Machine {
        sockets: 2,
        clusters: 2,
        cores: 8,
        prices: prices(),
        ..Machine::free_of_charge(1)
    }
}

/// Runs threads that each do `operations` operations; returns how many a microsecond all did.
fn rate<T: Send + Sync + 'static>(
    machine: Machine,
    threads: usize,
    make: impl FnOnce() -> T + Send + 'static,
    operation: impl Fn(&T, usize) + Send + Sync + 'static,
) -> (f64, Outcome<u64>) {
    const OPERATIONS: usize = 1000;
    let outcome = Simulation::on(machine).seed(3).blame(true).run(move || {
        let shared = make();
        let begun = tremula_sync::now();
        scoped(
            threads,
            |thread| (0..OPERATIONS).for_each(|_| operation(&shared, thread)),
            || {},
        );
        begun.elapsed_virtually()
    });
    let took = outcome.result as f64 / 1000.0;
    ((threads * OPERATIONS) as f64 / took, outcome)
}

trait Elapsed {
    fn elapsed_virtually(&self) -> u64;
}

impl Elapsed for std::time::Instant {
    fn elapsed_virtually(&self) -> u64 {
        (tremula_sync::now() - *self).as_nanos() as u64
    }
}

fn one_lock(threads: usize) -> f64 {
    rate(
        two_sockets(),
        threads,
        || Mutex::new(0_u64),
        |lock, _| {
            let mut guard = lock.lock();
            work(50);
            *guard += 1;
            drop(guard);
            work(50);
        },
    )
    .0
}

#[test]
fn one_lock_falls_after_two_cores() {
    let rates = [1, 2, 4, 16, 32].map(one_lock);
    assert!(rates[2] < rates[0], "{rates:?}");
    assert!(rates[4] <= rates[2] * 1.2, "{rates:?}");
}

#[test]
fn a_striped_counter_is_linear() {
    let counter = |threads| {
        let add = |counter: &StripedCounter, _| {
            counter.add(1);
            work(20);
        };
        rate(two_sockets(), threads, StripedCounter::new, add).0
    };
    let rates = [1, 16, 32].map(counter);
    assert!(rates[2] > rates[1] * 1.4, "{rates:?}");
    assert!(rates[2] > rates[0] * 10.0, "{rates:?}");
}

#[test]
fn one_word_gives_each_line_transfer_once() {
    let add = |word: &AtomicU64, _: usize| {
        word.fetch_add(1, Ordering::Relaxed);
    };
    let word = |threads| rate(two_sockets(), threads, || AtomicU64::new(0), add).0;
    let rates = [1, 2, 8, 32].map(word);
    assert!(rates[1] < rates[0], "{rates:?}");
    // Within a cluster a transfer takes 45 ns and the addition 7, and there is one at a time.
    assert!(
        rates[2] < 1000.0 / 45.0 * 1.1 && rates[2] > 1000.0 / 60.0,
        "{rates:?}"
    );
    assert!(rates[3] < rates[2], "{rates:?}");
}

#[test]
fn a_core_goes_on_with_a_line_until_the_request_for_it_has_come() {
    const STEPS: usize = 1000;
    // How many additions a thread does in a row before the other one comes, in the median, and how
    // long all take.
    let in_a_row = |machine| {
        let run = Simulation::on(machine).seed(3).run(|| {
            let (word, runs) = (
                Arc::new(AtomicU64::new(0)),
                Arc::new(Mutex::new(Vec::new())),
            );
            let kept = Arc::clone(&runs);
            let add = move |_| {
                let (mut lengths, mut next) = (vec![0], None);
                for _ in 0..STEPS {
                    let value = word.fetch_add(1, Ordering::Relaxed);
                    if next != Some(value) {
                        lengths.push(0);
                    }
                    *lengths.last_mut().expect("there is the first") += 1;
                    next = Some(value + 1);
                }
                // The last one may be cut off, and before the first there was no other thread.
                let whole = &lengths[2..lengths.len() - 1];
                kept.lock().extend_from_slice(whole);
            };
            scoped(2, add, || {});
            let mut runs = runs.lock();
            runs.sort_unstable();
            runs[runs.len() / 2]
        });
        (run.result, run.elapsed)
    };
    // A transfer takes 45 ns, of which the request is under way for 30, and an addition 8.
    let (usual, took) = in_a_row(two_sockets());
    assert!((3..=6).contains(&usual), "{usual}");
    let at_once = Machine {
        stays: 0,
        ..two_sockets()
    };
    assert_eq!(in_a_row(at_once).0, 1);
    // Both always wait for it, so all transfers take twice as long.
    let queued = Machine {
        queued: 200,
        ..two_sockets()
    };
    let (in_a_row, took_queued) = in_a_row(queued);
    assert!((3..=6).contains(&in_a_row), "{in_a_row}");
    let times = took_queued as f64 / took as f64;
    assert!((1.7..=2.1).contains(&times), "{times}");
}

/// What two yields take, each of which has a price of 500 ns.
fn two_yields(jitter: u64, seed: u64) -> [u64; 2] {
    let machine = Machine {
        jitter,
        ..two_sockets()
    };
    let run = Simulation::on(machine).seed(seed).run(|| {
        [(), ()].map(|()| {
            let begun = tremula_sync::now();
            thread::yield_now();
            begun.elapsed_virtually()
        })
    });
    run.result
}

#[test]
fn calls_of_the_system_vary_as_far_as_the_machine_says() {
    assert_eq!(two_yields(0, 1), [500, 500]);
    let all: Vec<[u64; 2]> = (0..50).map(|seed| two_yields(20, seed)).collect();
    let times = all.iter().flatten();
    assert!(
        times.clone().all(|time| (400..=600).contains(time)),
        "{all:?}"
    );
    assert!(times.clone().any(|time| *time < 450) && times.clone().any(|time| *time > 550));
    assert!(all.iter().any(|[first, second]| first != second));
    assert_eq!(two_yields(20, 7), two_yields(20, 7));
}

/// A lock on which every waiting thread writes the one word.
#[derive(Default)]
struct TestAndSet(AtomicBool);

impl TestAndSet {
    fn with(&self, f: impl FnOnce()) {
        while self.0.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        f();
        self.0.store(false, Ordering::Release);
    }
}

/// A lock in which each thread waits at a word of its own, in the order of their tickets.
///
/// Source: Anderson, "The performance of spin lock alternatives" (1990).
struct QueueLock {
    tail: CachePadded<AtomicUsize>,
    turns: Vec<CachePadded<AtomicBool>>,
}

impl QueueLock {
    const TURNS: usize = 64;

    fn new() -> Self {
        let turn = |number| CachePadded::new(AtomicBool::new(number == 0));
        Self {
            tail: CachePadded::new(AtomicUsize::new(0)),
            turns: (0..Self::TURNS).map(turn).collect(),
        }
    }

    fn with(&self, f: impl FnOnce()) {
        let ticket = self.tail.fetch_add(1, Ordering::Relaxed) % Self::TURNS;
        while !self.turns[ticket].load(Ordering::Acquire) {
            spin_loop();
        }
        f();
        self.turns[ticket].store(false, Ordering::Relaxed);
        self.turns[(ticket + 1) % Self::TURNS].store(true, Ordering::Release);
    }
}

#[test]
fn a_test_and_set_lock_falls_faster_than_a_queue_lock() {
    let section = || work(30);
    let by_word = |threads| {
        rate(
            two_sockets(),
            threads,
            TestAndSet::default,
            move |lock, _| {
                lock.with(section);
            },
        )
        .0
    };
    let by_queue = |threads| {
        rate(two_sockets(), threads, QueueLock::new, move |lock, _| {
            lock.with(section);
        })
        .0
    };
    let (word, queue) = ([2, 32].map(by_word), [2, 32].map(by_queue));
    assert!(
        word[1] / word[0] < queue[1] / queue[0],
        "{word:?} {queue:?}"
    );
    assert!(word[1] < queue[1] / 2.0, "{word:?} {queue:?}");
}

/// The longest time in microseconds that one of two threads has waited for a lock that both take
/// again and again. `hold` takes it, and calls the function while it has it.
fn longest_wait<L: Sync>(lock: &L, hold: impl Fn(&L, usize, &dyn Fn()) + Sync) -> u128 {
    let prices = Prices {
        sleep: 2500 * NANOSECOND,
        wake: 2500 * NANOSECOND,
        ..prices()
    };
    let machine = Machine {
        prices,
        ..two_sockets()
    };
    let times = Simulation::on(machine).seed(3).run(|| {
        let wait = |thread| {
            let longest = Cell::new(Duration::ZERO);
            for step in 0..20_000 {
                let begun = tremula_sync::now();
                hold(lock, thread, &|| {
                    longest.set(longest.get().max(tremula_sync::now() - begun));
                    // Sometimes so long that a thread that waits goes to sleep.
                    work(if step % 1000 == 999 { 100_000 } else { 200 });
                });
                work(20);
            }
            longest.get()
        };
        scoped(2, wait, || {})
    });
    let longest = times.result.into_iter().max();
    longest.expect("two threads have run").as_micros()
}

/// Fails if a thread that sleeps is only woken, and finds the lock taken each time: then it waits
/// until the other thread has done all that it does, some 50 ms.
#[test]
fn a_thread_that_sleeps_is_handed_the_lock_sooner_or_later() {
    const SOON: u128 = 3_000;
    let mutex = longest_wait(&Mutex::new(()), |lock, _, work| {
        let guard = lock.lock();
        work();
        drop(guard);
    });
    let writers = longest_wait(&RwLock::new(()), |lock, _, work| {
        let guard = lock.write();
        work();
        drop(guard);
    });
    let both = longest_wait(&RwLock::new(()), |lock, thread, work| {
        let guards = if thread == 0 {
            (Some(lock.read()), None)
        } else {
            (None, Some(lock.write()))
        };
        work();
        drop(guards);
    });
    let domain = Arc::new(LockDomain::new(StatisticsConfig::default()));
    let with_statistics = longest_wait(&StatisticsLock::new((), domain), |lock, _, work| {
        let guard = lock.write();
        work();
        drop(guard);
    });
    let longest = [mutex, writers, both, with_statistics];
    assert!(longest.iter().all(|wait| *wait < SOON), "{longest:?}");
}

#[test]
fn without_prices_everything_scales_ideally() {
    let free = Machine::free_of_charge(64);
    let step = |lock: &RwLock<u64>, _: usize| {
        assert_eq!(*lock.read(), 0);
        work(100);
    };
    let one = rate(free, 1, || RwLock::new(0), step).0;
    let all = rate(free, 64, || RwLock::new(0), step).0;
    assert_eq!(all, one * 64.0);
}

#[test]
fn time_adds_up() {
    let (_, outcome) = mixed(5);
    assert!(outcome.threads.len() > 40);
    for (lived, spent) in &outcome.threads {
        assert_eq!(*lived, spent.sum());
    }
    let all = |part: fn(&tremula_sync::sim::Spent) -> u64| {
        outcome
            .threads
            .iter()
            .map(|(_, spent)| part(spent))
            .sum::<u64>()
    };
    assert!(all(|spent| spent.waiting) > 0 && all(|spent| spent.transfers) > 0);
    assert!(all(|spent| spent.off) > 0);
}

/// A bit of everything: locks, sleeping, waking, allocating, reclamation, more threads than cores.
fn mixed(seed: u64) -> (u64, Outcome<u64>) {
    let machine = two_sockets();
    let outcome = Simulation::on(machine).seed(seed).blame(true).run(|| {
        let lock = Arc::new(Mutex::new(Vec::new()));
        let collector = reclaim::Collector::new();
        let sum = AtomicU64::new(0);
        let parked = thread::spawn(|| {
            thread::park();
            thread_index() as u64
        });
        scoped(
            40,
            |number| {
                for step in 0..100_u64 {
                    let guard = collector.pin();
                    let unlinked = Box::new(step);
                    // SAFETY: nobody else has the box.
                    unsafe { guard.defer_unchecked(move || drop(unlinked)) };
                    lock.lock().push(Box::new(number as u64 * step));
                    sum.fetch_add(1, Ordering::Relaxed);
                    drop(epoch::pin());
                    thread::yield_now();
                }
            },
            || parked.thread().unpark(),
        );
        let index = parked.join().unwrap_or(u64::MAX);
        assert_eq!(sum.load(Ordering::Relaxed), 4000);
        lock.lock().iter().fold(index, |hash, value| {
            hash.wrapping_mul(31).wrapping_add(**value)
        })
    });
    (outcome.elapsed, outcome)
}

#[test]
fn two_runs_of_a_seed_are_the_same_bytes() {
    let (one, other) = (mixed(1).1, mixed(1).1);
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
    assert_ne!(mixed(2).1.result, one.result, "another seed is another run");
}

#[test]
fn a_run_gives_all_its_memory_back() {
    assert_eq!(mixed(1).1.kept, 0);
    let returned = Simulation::on(two_sockets()).run(|| Box::new(7));
    assert_eq!((*returned.result, returned.kept), (7, 1));
    // A guard that outlives its run still has its record.
    let guard = Simulation::on(two_sockets()).run(epoch::pin).result;
    drop(guard);
}

/// As in std, a thread's own value that needs no drop is there while others are dropped. What these
/// add is dropped, too.
#[test]
fn what_a_thread_drops_at_its_end_finds_the_values_that_need_no_drop() {
    struct Counts(Arc<AtomicU64>);

    impl Drop for Counts {
        fn drop(&mut self) {
            let drops = DROPS.with(Cell::get) + 1;
            DROPS.with(|count| count.set(drops));
            self.0.fetch_add(drops, Ordering::Relaxed);
            if drops == 1 {
                SECOND.with(|second| second.set(Some(Counts(Arc::clone(&self.0)))));
            }
        }
    }

    tremula_sync::thread_local! {
        static DROPS: Cell<u64> = const { Cell::new(0) };
        static FIRST: Cell<Option<Counts>> = const { Cell::new(None) };
        static SECOND: Cell<Option<Counts>> = const { Cell::new(None) };
    }

    let run = Simulation::on(two_sockets()).run(|| {
        let sum = Arc::new(AtomicU64::new(0));
        let counts = Counts(Arc::clone(&sum));
        let thread = thread::spawn(move || {
            FIRST.with(|first| first.set(Some(counts)));
            DROPS.with(|count| count.set(0));
        });
        thread.join().expect("the thread ends well");
        sum.load(Ordering::Relaxed)
    });
    assert_eq!((run.result, run.kept), (1 + 2, 0));
}

#[test]
fn more_threads_than_cores_take_turns() {
    let machine = Machine {
        slice: 10_000 * NANOSECOND,
        ..Machine::free_of_charge(2)
    };
    let step = |_: &(), _: usize| work(1000);
    let rates = [1, 2, 8].map(|threads| rate(machine, threads, || (), step).0);
    assert_eq!(rates[1], rates[0] * 2.0);
    assert_eq!(rates[2], rates[1]);
}

#[test]
fn the_line_that_is_fought_over_is_named() {
    let (_, outcome) = rate(
        two_sockets(),
        16,
        || (CachePadded::new(AtomicU64::new(0)), AtomicU64::new(0)),
        |(hot, _), _| {
            hot.fetch_add(1, Ordering::Relaxed);
        },
    );
    let worst = outcome.blame.first().unwrap();
    assert!(worst.file.ends_with("sim/main.rs"), "{worst:?}");
    assert!(worst.waiting > 10 * worst.transferring, "{worst:?}");
    assert_eq!(worst.by_line.len(), 1);
}

#[test]
fn a_lock_is_blamed_where_it_is_taken() {
    let (_, outcome) = rate(
        two_sockets(),
        8,
        || (Mutex::new(0_u64), RwLock::new(0_u64)),
        |(mutex, lock), _| {
            *mutex.lock() += 1;
            drop(lock.read());
        },
    );
    assert!(outcome.blame.len() >= 2);
    for blame in &outcome.blame {
        assert!(blame.file.ends_with("tests/sim/main.rs"), "{blame:?}");
        assert_eq!(blame.over_time.values().sum::<u64>(), blame.time());
    }
}

#[test]
fn lines_side_by_side_come_together_and_a_lost_line_comes_anew() {
    const LINE: usize = 64;
    let machine = Machine {
        beside: 10,
        ..two_sockets()
    };
    // What the second thread, in another cluster, waits for: lines that the first one has written.
    let transfers = |apart: usize| {
        let bytes: Vec<AtomicU64> = (0..1 << 14).map(|_| AtomicU64::new(0)).collect();
        let word = move |line: usize| line * apart * LINE / 8;
        let outcome = Simulation::on(machine).run(move || {
            scoped(
                2,
                |thread| {
                    for line in 0..16 {
                        if thread == 0 {
                            bytes[word(line)].store(1, Ordering::Relaxed);
                        }
                    }
                    work(10_000);
                    if thread == 1 {
                        (0..16).for_each(|line| {
                            bytes[word(line)].load(Ordering::Relaxed);
                        });
                    }
                },
                || {},
            );
        });
        outcome.threads[2].1.transfers
    };
    let (near, far) = (transfers(1), transfers(64));
    // A core that is alone would take each from its socket's cache: 20 of 45.
    assert_eq!(far, 16 * 25 * NANOSECOND);
    assert_eq!(near, 25 * NANOSECOND + 15 * 25 * NANOSECOND / 10);
    // Two threads that change one word in turns lose it each time.
    let add = |word: &AtomicU64, _: usize| {
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        work(100);
    };
    let (_, outcome) = rate(machine, 2, || AtomicU64::new(0), add);
    let lost: u64 = outcome.blame.iter().map(|blame| blame.transferring).sum();
    assert!(lost > 1000 * 45 * NANOSECOND, "{lost}");
}

#[test]
fn what_the_larger_cache_has_no_place_for_comes_from_farther_away() {
    let machine = Machine {
        near_lines: 8,
        far_lines: 64,
        socket_lines: 1024,
        ..two_sockets()
    };
    // What a load takes on the average, in nanoseconds, if all of the lines have been read before.
    let again = |lines: usize| {
        let run = Simulation::on(machine).run(|| {
            let words: Vec<CachePadded<AtomicU64>> =
                (0..lines).map(|_| CachePadded::default()).collect();
            let read = || {
                words
                    .iter()
                    .for_each(|word| _ = word.load(Ordering::Relaxed))
            };
            read();
            let begun = tremula_sync::now();
            read();
            begun.elapsed_virtually()
        });
        // No other core is there that a line could come from.
        assert_eq!(run.threads[0].1.transfers, 0);
        run.result as f64 / lines as f64
    };
    // With the instructions, a line costs 2 ns in the nearest cache, 5 in the larger one, 21 in the
    // socket's, and 91 in memory.
    let took = [4, 32, 512, 16_384].map(again);
    let expected = [2.0..=2.0, 2.5..=8.0, 15.0..=30.0, 80.0..=91.0];
    for (took, expected) in took.iter().zip(&expected) {
        assert!(expected.contains(took), "{took} is not in {expected:?}");
    }
}

#[test]
fn a_line_that_the_core_has_not_had_is_fetched_although_transfers_are_free() {
    let free = ByDistance::default();
    let prices = Prices {
        clean: free,
        changed: free,
        ..prices()
    };
    let machine = Machine {
        prices,
        ..two_sockets()
    };
    let outcome = Simulation::on(machine).run(|| {
        let words: Vec<AtomicU64> = (0..16 * 64).map(|_| AtomicU64::new(0)).collect();
        let read = |thread| {
            work(1000 * thread as u64);
            (0..16).for_each(|line| {
                words[64 * line].load(Ordering::Relaxed);
            });
        };
        scoped(2, read, || {});
    });
    let (_, spent) = outcome.threads[2];
    assert_eq!(spent.transfers, 0);
    assert!(
        spent.work >= (1000 + 16 * (20 + 1)) * NANOSECOND,
        "{spent:?}"
    );
}

#[test]
fn a_panic_of_a_thread_reaches_the_thread_that_joins_it() {
    let outcome = Simulation::on(two_sockets()).run(|| {
        let thread = thread::spawn(|| {
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        thread.join().is_err()
    });
    assert!(outcome.result);
}

#[test]
fn a_machine_that_cannot_be_is_refused_with_the_value() {
    let machine = Machine {
        cores: 300,
        ..Machine::free_of_charge(1)
    };
    assert!(machine.check().unwrap_err().contains("300"));
    let machine = Machine {
        shared_speed: 101,
        ..Machine::free_of_charge(1)
    };
    assert!(machine.check().unwrap_err().contains("101"));
}
