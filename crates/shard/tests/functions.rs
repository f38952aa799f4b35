//! What functions on shards may do: send to other shards and to their own, call, panic with any
//! payload, and drop the last handle. Each test runs under every strategy and in every form.
//!
//! A deadlock shows as a test that reaches its time limit. No test asserts how long something
//! takes.
#![cfg(not(any(loom, shuttle)))]

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};
use tremula_papers::article::ARTICLE;
use tremula_shard::{Balance, CallError, Config, Form, Shards, Strategy};

/// How long a test waits for an event that must come.
const LIMIT: Duration = Duration::from_secs(60);

/// Every strategy in every form, with and without delegation.
fn configs(shards: usize) -> Vec<Config> {
    let mut all = Vec::new();
    for &strategy in Strategy::ALL {
        let config = Config::new(strategy).workers(2).shards(shards);
        all.push(config.form(ARTICLE));
        all.push(config);
        if strategy != Strategy::Threading {
            all.push(config.delegate(false));
        }
    }
    all
}

/// A key of each shard.
fn keys<S>(shards: &Shards<S>) -> Vec<u64> {
    let mut keys = vec![None; shards.len()];
    let mut missing = keys.len();
    for key in 0.. {
        let known = &mut keys[shards.shard_of(key)];
        missing -= usize::from(known.is_none());
        *known = known.or(Some(key));
        if missing == 0 {
            break;
        }
    }
    keys.into_iter().flatten().collect()
}

/// Runs the test on a thread of its own, and fails if it does not end.
fn ends(name: &str, test: impl FnOnce() + Send + 'static) {
    let (ended, end) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        let _ = ended.send(());
    });
    if end.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("{name} does not end");
    }
    thread.join().unwrap();
}

type Handle = Arc<Shards<u64>>;

/// A function on the shard of the first key that sends a function to the shard of the next, and so
/// on.
fn hop(shards: &Handle, keys: &Arc<Vec<u64>>, at: usize, left: usize, done: mpsc::Sender<()>) {
    let (inner, inner_keys) = (Arc::clone(shards), Arc::clone(keys));
    let sent = shards.send(keys[at % keys.len()], move |count| {
        *count += 1;
        if left == 0 {
            let _ = done.send(());
        } else {
            hop(&inner, &inner_keys, at + 1, left - 1, done);
        }
    });
    assert!(sent.is_ok());
}

/// Would hang if a thread that runs a function on one shard waited for the lock of another shard,
/// or again for that of the same shard.
#[test]
fn functions_may_send_in_a_circle() {
    for config in configs(3) {
        ends(&format!("{config:?}"), move || {
            let shards = Arc::new(Shards::start(config, |_| 0).unwrap());
            let keys = Arc::new(keys(&shards));
            let (done, end) = mpsc::channel();
            hop(&shards, &keys, 0, 30, done);
            end.recv().unwrap();
            let sum: u64 = keys
                .iter()
                .map(|key| shards.call(key, |count| *count).wait().unwrap())
                .sum();
            assert_eq!(sum, 31);
        });
    }
}

/// Would overflow the stack if what a function sends ran on top of it. The stack is small, and
/// there are enough shards that each hop finds the next one free.
#[test]
fn a_long_chain_of_sends_takes_no_stack() {
    for config in configs(2_000) {
        let run = move || {
            let shards = Arc::new(Shards::start(config, |_| 0).unwrap());
            let keys = Arc::new(keys(&shards));
            let (done, end) = mpsc::channel();
            hop(&shards, &keys, 0, 1_999, done);
            end.recv().unwrap();
        };
        let small = thread::Builder::new().stack_size(128 * 1024);
        small.spawn(run).unwrap().join().unwrap();
    }
}

/// Two threads run functions at the same time, and each function sends to the other one's shard.
fn crosswise(shards: &Handle, one: u64, other: u64) {
    let both = Arc::new(Barrier::new(2));
    let threads = [(one, other), (other, one)].map(|(from, to)| {
        let (shards, both) = (Arc::clone(shards), Arc::clone(&both));
        thread::spawn(move || {
            let inner = Arc::clone(&shards);
            let sent = shards.send(from, move |count| {
                both.wait();
                *count += 1;
                assert!(inner.send(to, |count| *count += 1).is_ok());
            });
            assert!(sent.is_ok());
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn functions_of_two_threads_may_send_to_each_others_shards() {
    // With one worker and no delegation the two functions cannot run at the same time.
    for config in configs(4) {
        ends(&format!("{config:?}"), move || {
            let shards = Arc::new(Shards::start(config.workers(4), |_| 0).unwrap());
            let keys = keys(&shards);
            crosswise(&shards, keys[0], keys[1]);
            let limit = Instant::now() + LIMIT;
            for key in &keys[..2] {
                while shards.call(key, |count| *count).wait() != Ok(2) {
                    assert!(Instant::now() < limit, "{config:?}");
                    thread::yield_now();
                }
            }
        });
    }
}

/// Two shards in the shared state: callers share their states under locks.
fn shared(strategy: Strategy) -> Handle {
    let balance = Balance::default().window(1).tolerance(0);
    let config = Config::new(strategy).workers(2).shards(2);
    let shards: Handle = Arc::new(Shards::start(config.balance(Some(balance)), |_| 0).unwrap());
    let keys = keys(&shards);
    let limit = Instant::now() + LIMIT;
    // Each shard is only read until it is shared.
    while shards.shape().shared < 2 {
        assert!(Instant::now() < limit, "{:?}", shards.shape());
        thread::scope(|scope| {
            for key in [keys[0], keys[0], keys[1], keys[1]] {
                let shards = &shards;
                scope.spawn(move || {
                    for _ in 0..1_000 {
                        assert!(shards.read(key, |count| *count).wait().is_ok());
                    }
                });
            }
        });
    }
    shards
}

/// Would hang if a call that such a function makes were deferred until the function has ended
/// because another thread uses the shard at the moment. The function may wait for the answer, and
/// does.
#[test]
fn a_function_may_wait_for_shared_shards_of_another_kind() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        ends(strategy.name(), move || {
            let (one, two) = (
                Shards::start(Config::new(Strategy::Threading), |_| ()).unwrap(),
                shared(strategy),
            );
            let (inside, calls) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
            let reader = {
                let (two, inside, calls) =
                    (Arc::clone(&two), Arc::clone(&inside), Arc::clone(&calls));
                thread::spawn(move || {
                    let read = two.read(0, move |_| {
                        inside.wait();
                        calls.wait();
                        // Long enough that the call most likely finds the state in use. The test
                        // holds either way.
                        thread::sleep(Duration::from_millis(20));
                    });
                    read.wait()
                })
            };
            inside.wait();
            let found = one.call(0, move |()| {
                two.send(0, |count| *count += 1).unwrap();
                calls.wait();
                two.call(0, |count| *count).wait()
            });
            assert_eq!(found.wait(), Ok(Ok(1)));
            assert_eq!(reader.join().unwrap(), Ok(()));
        });
    }
}

/// The same for shards whose states callers share under locks. Would hang if the functions waited
/// for these locks, too.
#[test]
fn functions_on_shared_shards_may_send_to_each_others_shards() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        ends(strategy.name(), move || {
            let shards = shared(strategy);
            let keys = keys(&shards);
            crosswise(&shards, keys[0], keys[1]);
            for key in &keys {
                assert_eq!(shards.call(key, |count| *count).wait(), Ok(2));
            }
        });
    }
}

/// A function and its thread find what the function sent and called in the order of the requests.
#[test]
fn what_a_function_asks_for_keeps_its_order() {
    // The article's tasks under `threading` keep no order.
    let ordered =
        |config: &Config| config.strategy != Strategy::Threading || config.form == Form::Direct;
    for config in configs(2).into_iter().filter(ordered) {
        ends(&format!("{config:?}"), move || {
            let shards = Arc::new(Shards::start(config, |_| Vec::new()).unwrap());
            let keys = keys(&shards);
            let (own, other) = (keys[0], keys[1]);
            let inner = Arc::clone(&shards);
            let first = shards.call(own, move |log: &mut Vec<u32>| {
                for key in [own, other] {
                    inner.send(key, |log| log.push(2)).unwrap();
                    // Given up. On the function's own shard that happens before it can run. On the
                    // other shard a worker may be faster, but does not run it before what was sent
                    // earlier.
                    drop(inner.call(key, |log| log.push(9)));
                    inner.send(key, |log| log.push(3)).unwrap();
                }
                log.push(1);
            });
            assert_eq!(first.wait(), Ok(()));
            shards.send(other, |log| log.push(4)).unwrap();
            let log_of = |key| shards.call(key, |log| log.clone()).wait().unwrap();
            assert_eq!(log_of(own), [1, 2, 3], "{config:?}");
            let on_other = log_of(other);
            assert!(
                on_other == [2, 3, 4] || on_other == [2, 9, 3, 4],
                "{config:?}: {on_other:?}"
            );
        });
    }
}

/// A function may wait for shards of another kind, and finds what it has sent there before.
#[test]
fn a_function_that_waits_for_other_shards_finds_what_it_sent() {
    ends("threading", || {
        let start = || Shards::start(Config::new(Strategy::Threading).shards(2), |_| 0_u64);
        let (one, two) = (start().unwrap(), Arc::new(start().unwrap()));
        let found = one.call(0, move |_| {
            for _ in 0..3 {
                two.send(7, |count| *count += 1).unwrap();
            }
            two.call(7, |count| *count).wait()
        });
        assert_eq!(found.wait(), Ok(Ok(3)));
    });
}

/// Would hang without the check: under locks the function waits for its own lock, in a task for
/// itself.
#[test]
fn a_function_that_waits_for_its_own_shard_is_stopped_with_a_sentence() {
    for config in configs(2) {
        for awaits in [false, true] {
            ends(&format!("{config:?}, awaits: {awaits}"), move || {
                let shards = Arc::new(Shards::start(config, |_| 0).unwrap());
                let inner = Arc::clone(&shards);
                let outer = shards.call(1, move |_: &mut u64| {
                    let mut call = inner.call(1, |count| *count);
                    if awaits {
                        let mut cx = Context::from_waker(Waker::noop());
                        let polled = Pin::new(&mut call).poll(&mut cx);
                        assert!(polled.is_ready(), "it would never be");
                        Err(CallError::OnWorker)
                    } else {
                        call.wait()
                    }
                });
                let stopped = match outer.wait() {
                    Err(CallError::Panicked(said)) => {
                        cfg!(debug_assertions) && said.contains("waits for a call on shard")
                    }
                    other => !cfg!(debug_assertions) && other == Ok(Err(CallError::OnWorker)),
                };
                assert!(stopped, "{config:?}");
                assert_eq!(shards.call(1, |count| *count).wait(), Ok(0), "{config:?}");
            });
        }
    }
}

/// Panics when it is dropped.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        panic!("a payload's drop");
    }
}

/// Would fail if the second panic left the batch: it would drop the state, the worker would be
/// gone, and every later call would wait for ever.
#[test]
fn a_panic_whose_payload_panics_when_dropped_fails_its_own_call_only() {
    for config in configs(2) {
        ends(&format!("{config:?}"), move || {
            let shards = Arc::new(Shards::start(config, |_| 5).unwrap());
            let evil = |_: &mut u64| std::panic::panic_any(Payload);
            shards.send(1, evil).unwrap();
            let failed = shards.call(1, evil).wait();
            assert!(matches!(failed, Err(CallError::Panicked(_))), "{config:?}");
            assert_eq!(shards.call(1, |state| *state).wait(), Ok(5), "{config:?}");
        });
    }
}

/// Would fail if the panic of a waker, or of the drop of an unwanted result, were not contained.
#[test]
fn a_waker_that_panics_wakes_nobody_less() {
    struct Evil;
    impl Wake for Evil {
        fn wake(self: Arc<Self>) {
            std::panic::panic_any(Payload);
        }
    }
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        ends(strategy.name(), move || {
            let config = Config::new(strategy).workers(1).shards(1).delegate(false);
            let shards = Shards::start(config, |_| 0_u64).unwrap();
            let gate = Arc::new(Barrier::new(2));
            let held = Arc::clone(&gate);
            let wait = move |_: &mut u64| {
                held.wait();
            };
            shards.send(0, wait).unwrap();
            let mut evil = shards.call(0, |_| ());
            let waker = Waker::from(Arc::new(Evil));
            let polled = Pin::new(&mut evil).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            let next = shards.call(0, |state| *state);
            gate.wait();
            assert_eq!(next.wait(), Ok(0));
            assert_eq!(evil.wait(), Ok(()));
        });
    }
}

/// Would fail if the task that drops the last handle waited for all tasks, which include itself.
#[test]
fn a_function_may_drop_the_last_handle() {
    for config in configs(2) {
        ends(&format!("{config:?}"), move || {
            let shards = Arc::new(Shards::start(config, |_| 0).unwrap());
            let done = Arc::new(AtomicU64::new(0));
            let gate = Arc::new(Barrier::new(2));
            let caller = {
                let (shards, gate, done) =
                    (Arc::clone(&shards), Arc::clone(&gate), Arc::clone(&done));
                thread::spawn(move || {
                    let last = Arc::clone(&shards);
                    let call = shards.call(0, move |_: &mut u64| {
                        gate.wait();
                        gate.wait();
                        drop(last);
                        done.fetch_add(1, Ordering::Relaxed);
                    });
                    drop(shards);
                    assert_eq!(call.wait(), Ok(()));
                })
            };
            gate.wait();
            // In the forms with tasks and queues the request is queued, and must be finished after
            // the drop.
            let queued =
                (config.form == ARTICLE || !config.delegate).then(|| shards.call(1, |_| 7));
            drop(shards);
            gate.wait();
            caller.join().unwrap();
            assert_eq!(done.load(Ordering::Relaxed), 1, "{config:?}");
            if let Some(queued) = queued {
                assert_eq!(queued.wait(), Ok(7), "{config:?}");
            }
        });
    }
}

/// A waker whose clones are counted by its strong references.
struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

/// Would fail if each poll of a call that waits for room left another clone of its waker behind.
#[test]
fn a_call_that_waits_for_room_is_registered_once_however_often_it_is_polled() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        let config = Config::new(strategy).workers(1).shards(1).capacity(1);
        let shards = Shards::start(config.delegate(false), |_| 0_u64).unwrap();
        let gate = Arc::new(Barrier::new(2));
        let held = Arc::clone(&gate);
        let first = shards.call(0, move |_| {
            held.wait();
            held.wait();
        });
        gate.wait();
        let second = shards.call(0, |_| ());
        let tasks = [Arc::new(Nothing), Arc::new(Nothing)];
        let wakers = tasks.clone().map(Waker::from);
        let mut calls = [(); 2].map(|()| shards.call(0, |_| ()));
        for _ in 0..1_000 {
            for (call, waker) in calls.iter_mut().zip(&wakers) {
                let polled = Pin::new(call).poll(&mut Context::from_waker(waker));
                assert!(polled.is_pending());
            }
        }
        let held = tasks.each_ref().map(Arc::strong_count);
        gate.wait();
        first.wait().unwrap();
        second.wait().unwrap();
        for call in calls {
            call.wait().unwrap();
        }
        // The test's own reference, its waker, and the waker that is registered while there is no
        // room.
        assert_eq!(held, [3, 3]);
        assert_eq!(tasks.each_ref().map(Arc::strong_count), [2, 2]);
    }
}

/// What the documentation says of full queues: a caller that awaits each call before it makes the
/// next keeps its order. A caller that does not finds the call that waited for room behind others.
#[test]
fn a_call_that_waits_for_room_is_made_when_there_is_some() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        let config = Config::new(strategy).workers(1).shards(1).capacity(1);
        let shards = Shards::start(config.delegate(false), |_| Vec::new()).unwrap();
        let gate = Arc::new(Barrier::new(2));
        let held = Arc::clone(&gate);
        let first = shards.call(0, move |log: &mut Vec<u32>| {
            held.wait();
            held.wait();
            log.push(1);
        });
        gate.wait();
        let second = shards.call(0, |log| log.push(2));
        let refused = shards.call(0, |log| log.push(3)); // finds no room, and is not awaited yet
        gate.wait();
        first.wait().unwrap();
        second.wait().unwrap();
        shards.call(0, |log| log.push(4)).wait().unwrap();
        refused.wait().unwrap();
        for number in 5..100 {
            shards.call(0, move |log| log.push(number)).wait().unwrap();
        }
        let log = shards.call(0, |log| log.clone()).wait().unwrap();
        let expected: Vec<_> = [1, 2, 4, 3].into_iter().chain(5..100).collect();
        assert_eq!(log, expected);
    }
}

/// Would fail if a tolerance that overflows ended the worker that compares loads.
#[test]
fn a_tolerance_without_bounds_lets_shards_stay() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        let balance = Balance::default().window(16).tolerance(u64::MAX);
        let config = Config::new(strategy).workers(2).shards(4);
        let shards = Shards::start(config.balance(Some(balance)).delegate(false), |_| {
            HashMap::<u64, u64>::new()
        })
        .unwrap();
        for key in 0..2_000_u64 {
            let own = key % 3;
            let call = shards.call(own, move |map| *map.entry(own).or_default() += 1);
            assert_eq!(call.wait(), Ok(()));
        }
        assert_eq!(shards.shape().moves, 0);
    }
}
