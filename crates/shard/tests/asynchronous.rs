//! Asynchronous functions on a state, and shutting down, under every strategy.
//!
//! A function or a caller that waits for ever shows as a test that reaches its time limit. No test
//! asserts how long something takes.
#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tremula_papers::article::ARTICLE;
use tremula_shard::{Balance, CallError, Config, SendError, Shards, StateLost, Strategy};

/// How long a test waits for an event that must come.
const LIMIT: Duration = Duration::from_secs(60);

/// Every strategy, with and without delegation, with one worker so that shards share it.
fn configs() -> Vec<Config> {
    let mut all = Vec::new();
    for &strategy in Strategy::ALL {
        let config = Config::new(strategy).workers(1).shards(4);
        all.push(config);
        if strategy != Strategy::Threading {
            all.push(config.delegate(false));
        }
    }
    all
}

/// A key of each shard.
fn keys<S>(shards: &Shards<S>) -> Vec<u64> {
    let of = |shard| (0..).find(|key| shards.shard_of(key) == shard).unwrap();
    (0..shards.len()).map(of).collect()
}

/// Runs the test on a thread of its own under each configuration, and fails if it does not end.
fn under_each(test: fn(Config)) {
    for config in configs() {
        let (ended, end) = mpsc::channel();
        let thread = thread::spawn(move || {
            test(config);
            let _ = ended.send(());
        });
        if end.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            panic!("{config:?} does not end");
        }
        thread.join().unwrap();
    }
}

/// Waits until something holds.
fn until(holds: impl Fn() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < limit, "it never holds");
        thread::yield_now();
    }
}

/// Gives the thread to others this many times.
async fn turns(mut left: u32) {
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Would fail if a function ran while another one on the same state awaits something, if a request
/// overtook an earlier one, or if the worker waited with the function.
#[test]
fn a_function_that_awaits_keeps_its_state_and_nothing_else() {
    under_each(|config| {
        let shards = Shards::start(config, |_| Vec::new()).unwrap();
        let keys = keys(&shards);
        let (open, gate) = oneshot::channel();
        let first = shards.call_async(keys[0], async move |log: &mut Vec<u32>| {
            log.push(1);
            log.push(gate.await.unwrap());
            log.len()
        });
        shards.send(keys[0], |log| log.push(3)).unwrap();
        let second = shards.call_async(keys[0], async |log| {
            log.push(4);
            turns(3).await;
            log.push(5);
        });
        let read = shards.read(keys[0], |log| log.clone());
        let last = shards.call(keys[0], |log| log.push(6));
        for key in &keys[1..] {
            assert_eq!(shards.call(key, |log| log.len()).wait(), Ok(0));
            let other = shards.call_async(key, async |log| {
                turns(2).await;
                log.len()
            });
            assert_eq!(other.wait(), Ok(0));
        }
        open.send(2).unwrap();
        assert_eq!(first.wait(), Ok(2));
        assert_eq!(second.wait(), Ok(()));
        assert_eq!(read.wait().unwrap(), [1, 2, 3, 4, 5]);
        assert_eq!(last.wait(), Ok(()));
        let log = shards.call(keys[0], |log| log.clone()).wait().unwrap();
        assert_eq!(log, [1, 2, 3, 4, 5, 6], "{config:?}");
        until(|| shards.shape().requests == 12);
        let shape = shards.shape();
        assert_eq!((shape.panics, shape.cancelled), (0, 0));
    });
}

#[test]
fn a_future_that_is_not_send_runs_on_one_thread() {
    under_each(|config| {
        let shards = Shards::start(config, |_| 0_u64).unwrap();
        let on_one_thread = shards.call_async(0, async |count| {
            let (home, seen) = (thread::current().id(), Rc::new(Cell::new(0)));
            for _ in 0..10 {
                turns(1).await;
                assert_eq!(thread::current().id(), home);
                seen.set(seen.get() + 1);
            }
            *count = seen.get();
            *count
        });
        assert_eq!(on_one_thread.wait(), Ok(10), "{config:?}");
        if config.strategy != Strategy::Threading {
            let local = Shards::start_local(config, |shard| Rc::new(Cell::new(shard))).unwrap();
            let keys = keys(&local);
            let state = local.call_async(keys[2], async |cell| {
                turns(5).await;
                cell.replace(7)
            });
            assert_eq!(state.wait(), Ok(2));
            assert_eq!(local.call(keys[2], |cell| cell.get()).wait(), Ok(7));
        }
    });
}

/// Counts when it is dropped.
struct Witness(Arc<AtomicUsize>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn dropping_the_call_drops_the_function_where_it_awaits() {
    under_each(|config| {
        let shards = Shards::start(config, |_| 0_u64).unwrap();
        let dropped = Arc::new(AtomicUsize::new(0));
        let (begun, begins) = mpsc::channel();
        let witness = Witness(Arc::clone(&dropped));
        let waits = shards.call_async(0, async move |count| {
            let _witness = witness;
            *count += 1;
            begun.send(()).unwrap();
            pending::<()>().await;
            *count += 100;
        });
        begins.recv().unwrap();
        let witness = Witness(Arc::clone(&dropped));
        let behind = shards.call_async(0, async move |_| drop(witness));
        drop(behind);
        assert_eq!(dropped.load(Ordering::SeqCst), 1, "it has not begun");
        drop(waits);
        assert_eq!(shards.call(0, |count| *count).wait(), Ok(1), "{config:?}");
        assert_eq!(dropped.load(Ordering::SeqCst), 2);
        until(|| shards.shape().cancelled == 2);
        assert_eq!(shards.shape().panics, 0);
    });
}

#[test]
fn a_panic_fails_the_call_and_leaves_the_state() {
    under_each(|config| {
        let shards = Shards::start(config, |_| 1).unwrap();
        for waits in [0, 2] {
            let fails = shards.call_async(0, async move |count| -> u32 {
                *count += 1;
                turns(waits).await;
                panic!("after {waits} turns")
            });
            let said = format!("after {waits} turns");
            assert_eq!(fails.wait(), Err(CallError::Panicked(said)), "{config:?}");
        }
        shards
            .send_async(0, async |_| panic!("nobody hears"))
            .unwrap();
        assert_eq!(shards.call(0, |count| *count).wait(), Ok(3));
        until(|| shards.shape().panics == 3);
    });
}

/// Would hang if a function that awaits a call held its worker.
#[test]
fn a_function_may_await_other_shards() {
    under_each(|config| {
        let shards = Arc::new(Shards::start(config, |shard| shard).unwrap());
        let keys = keys(&shards);
        let (inner, others) = (Arc::clone(&shards), keys.clone());
        let sum = shards.call_async(keys[0], async move |own| {
            let mut sum = *own;
            for key in &others[1..] {
                inner.send(key, |state| *state += 10).unwrap();
                sum += inner.call(key, |state| *state).await.unwrap();
                sum += inner
                    .call_async(key, async |state| {
                        turns(1).await;
                        *state
                    })
                    .await
                    .unwrap();
            }
            sum
        });
        assert_eq!(sum.wait(), Ok(72), "{config:?}");
    });
}

#[test]
fn a_function_that_awaits_its_own_shard_is_stopped_with_a_sentence() {
    under_each(|config| {
        let shards = Arc::new(Shards::start(config, |_| 0).unwrap());
        for asynchronous in [false, true] {
            let inner = Arc::clone(&shards);
            let itself = shards.call_async(0, async move |_: &mut u64| {
                turns(1).await;
                if asynchronous {
                    inner.call_async(0, async |count| *count).await
                } else {
                    inner.call(0, |count| *count).await
                }
            });
            let stopped = match itself.wait() {
                Err(CallError::Panicked(said)) => {
                    cfg!(debug_assertions) && said.contains("waits for a call on shard")
                }
                other => !cfg!(debug_assertions) && other == Ok(Err(CallError::OnWorker)),
            };
            assert!(stopped, "{config:?}");
        }
        // What it asks for, and does not wait for, is done after it.
        let inner = Arc::clone(&shards);
        let sends = shards.call_async(0, async move |count| {
            inner.send(0, |count| *count += 1).unwrap();
            inner.send_async(0, async |count| *count += 1).unwrap();
            turns(1).await;
            *count
        });
        assert_eq!(sends.wait(), Ok(0));
        until(|| shards.call(0, |count| *count).wait() == Ok(2));
    });
}

/// A function that runs to its end must not wait for an asynchronous one on the same shards either.
#[test]
fn a_function_may_wait_for_other_shards_of_another_kind_only() {
    under_each(|config| {
        let shards = Arc::new(Shards::start(config, |_| 0).unwrap());
        let keys = keys(&shards);
        let inner = Arc::clone(&shards);
        // If the result were there already, the function would get it.
        let may_end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&may_end);
        let waits = shards.call(keys[0], move |_| {
            let other = inner.call_async(keys[1], async move |count| {
                while !ends.load(Ordering::SeqCst) {
                    turns(1).await;
                }
                *count
            });
            other.wait()
        });
        let outcome = waits.wait();
        may_end.store(true, Ordering::SeqCst);
        assert_eq!(outcome, Ok(Err(CallError::OnWorker)), "{config:?}");
        let another = Shards::start(Config::default(), |_| ()).unwrap();
        let waits = another.call(0, move |()| {
            shards
                .call_async(0, async |count| {
                    turns(3).await;
                    *count += 5;
                    *count
                })
                .wait()
        });
        assert_eq!(waits.wait(), Ok(Ok(5)));
    });
}

#[test]
fn what_is_sent_runs_to_its_end_and_a_full_queue_pushes_back() {
    under_each(|config| {
        let shards = Shards::start(config.capacity(2), |_| Vec::new()).unwrap();
        let (open, gate) = oneshot::channel();
        let (begun, begins) = mpsc::channel();
        shards
            .send_async(0, async move |log: &mut Vec<u32>| {
                begun.send(()).unwrap();
                log.push(gate.await.unwrap());
            })
            .unwrap();
        begins.recv().unwrap();
        shards.send(0, |log| log.push(2)).unwrap();
        shards.send_async(0, async |log| log.push(3)).unwrap();
        let refused = shards.send_async(0, async |log| log.push(4));
        let Err(SendError::Full(function)) = refused else {
            panic!("{refused:?}");
        };
        assert!(matches!(
            shards.send(0, |log| log.push(9)),
            Err(SendError::Full(_))
        ));
        // These wait for room, in the order in which they are awaited.
        let waits = shards.call_async(0, async |log| log.len());
        drop(shards.call_async(0, async |log| log.push(9)));
        thread::scope(|scope| {
            let waits = scope.spawn(|| waits.wait());
            open.send(1).unwrap();
            assert_eq!(waits.join().unwrap(), Ok(3), "{config:?}");
        });
        let mut function = Some(function);
        until(|| shards.call(0, |log| log.len()).wait() == Ok(3));
        shards.send_async(0, function.take().unwrap()).unwrap();
        let log = shards.call(0, |log| log.clone()).wait();
        assert_eq!(log.unwrap(), [1, 2, 3, 4]);
    });
}

#[test]
fn shutting_down_answers_all_and_gives_the_states_back() {
    under_each(|config| {
        let shards = Shards::start(config.capacity(2), |shard| vec![shard]).unwrap();
        let keys = keys(&shards);
        let (begun, begins) = mpsc::channel();
        let waits = shards.call_async(keys[1], async move |log| {
            log.push(10);
            begun.send(()).unwrap();
            pending::<()>().await;
        });
        begins.recv().unwrap();
        let queued = shards.call(keys[1], |log| log.push(11));
        let asynchronous = shards.call_async(keys[1], async |log| log.push(12));
        let refused = shards.call_async(keys[1], async |log| log.push(13));
        assert_eq!(shards.call(keys[2], |log| log.push(20)).wait(), Ok(()));
        let states: Vec<_> = shards.shutdown().into_iter().map(Result::unwrap).collect();
        let expected: [&[usize]; 4] = [&[0], &[1, 10, 11], &[2, 20], &[3]];
        assert_eq!(states, expected, "{config:?}");
        assert_eq!(waits.wait(), Err(CallError::Interrupted));
        assert_eq!(queued.wait(), Ok(()));
        assert_eq!(asynchronous.wait(), Err(CallError::Closed));
        assert_eq!(refused.wait(), Err(CallError::Closed));
        // From now on everything is refused.
        let key = keys[0];
        assert_eq!(
            shards.call(key, |log| log.len()).wait(),
            Err(CallError::Closed)
        );
        assert_eq!(
            shards.read(key, |log| log.len()).wait(),
            Err(CallError::Closed)
        );
        let late = shards.call_async(key, async |log| log.len());
        assert_eq!(late.wait(), Err(CallError::Closed));
        assert!(matches!(
            shards.send(key, |_| ()),
            Err(SendError::Closed(_))
        ));
        assert!(matches!(
            shards.send_async(key, async |_| ()),
            Err(SendError::Closed(_))
        ));
        for (shard, again) in shards.shutdown().into_iter().enumerate() {
            assert_eq!(again, Err(StateLost::Gone { shard }));
        }
    });
}

/// Would fail if a function that has been woken were interrupted.
#[test]
fn what_can_go_on_gets_a_last_turn() {
    under_each(|config| {
        let shards = Shards::start(config, |_| 0).unwrap();
        let (open, gate) = oneshot::channel();
        let (begun, begins) = mpsc::channel();
        let ends = shards.call_async(0, async move |count| {
            begun.send(()).unwrap();
            *count = gate.await.unwrap();
        });
        begins.recv().unwrap();
        open.send(5).unwrap();
        let states = shards.shutdown();
        let own = shards.shard_of(0);
        assert_eq!((states[own], ends.wait()), (Ok(5), Ok(())), "{config:?}");
    });
}

#[test]
fn states_that_stay_with_their_worker_are_named() {
    for form in [tremula_shard::Form::Direct, ARTICLE] {
        let config = Config::new(Strategy::Affinity).workers(2).shards(3);
        let shards = Shards::start_local(config.form(form), |_| Rc::new(0)).unwrap();
        let states = shards.shutdown();
        let lost: Vec<String> = states
            .into_iter()
            .map(|state| state.unwrap_err().to_string())
            .collect();
        assert!(lost[2].contains("shard 2"), "{lost:?}");
        assert_eq!(lost.len(), 3);
    }
    let other = Shards::start(Config::default().form(ARTICLE).workers(1), |_| 0).unwrap();
    let none = other.call_async(0, async |count| *count).wait();
    assert!(matches!(none, Err(CallError::NoExecutor(_))), "{none:?}");
}

/// Would hang if the thread waited for its own state.
#[test]
fn a_function_that_shuts_its_own_shards_down_is_not_given_their_states() {
    under_each(|config| {
        for asynchronous in [false, true] {
            let shards = Arc::new(Shards::start(config, |_| 0).unwrap());
            let inner = Arc::clone(&shards);
            let states = if asynchronous {
                let shuts = shards.call_async(0, async move |_| {
                    turns(1).await;
                    inner.shutdown()
                });
                shuts.wait()
            } else {
                shards.call(0, move |_| inner.shutdown()).wait()
            };
            let lost = |shard| Err(StateLost::OnWorker { shard });
            assert!(
                states.unwrap().into_iter().eq((0..4).map(lost)),
                "{config:?}"
            );
            drop(shards);
        }
    });
}

/// Callers call while another thread shuts down: each is answered, and the states have what was
/// answered well, and nothing that was refused.
#[test]
fn calls_that_race_with_a_shutdown_are_done_or_refused() {
    under_each(|config| {
        for round in 0..8 {
            let shards = Shards::start(config, |_| 0_usize).unwrap();
            let begin = Barrier::new(4);
            thread::scope(|scope| {
                let callers: Vec<_> = (0..3_u64)
                    .map(|caller| {
                        let (shards, begin) = (&shards, &begin);
                        scope.spawn(move || {
                            begin.wait();
                            let mut done = 0;
                            for step in 0.. {
                                let key = step + caller;
                                let answer = if step % 2 == 0 {
                                    shards.call(key, |count| *count += 1).wait()
                                } else {
                                    let call = shards.call_async(key, async move |count| {
                                        turns((step % 3) as u32).await;
                                        *count += 1;
                                    });
                                    call.wait()
                                };
                                match answer {
                                    Ok(()) => done += 1,
                                    Err(CallError::Interrupted) => {}
                                    Err(CallError::Closed) => break,
                                    Err(other) => panic!("{other}"),
                                }
                            }
                            done
                        })
                    })
                    .collect();
                begin.wait();
                thread::sleep(Duration::from_micros(250 * round));
                let states = shards.shutdown();
                let done: usize = callers
                    .into_iter()
                    .map(|caller| caller.join().unwrap())
                    .sum();
                let sum: usize = states.into_iter().map(Result::unwrap).sum();
                assert_eq!(sum, done, "{config:?}");
            });
        }
    });
}

#[test]
fn a_shard_that_moves_takes_its_function_along_or_waits_for_it() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        let config = Config::new(strategy).workers(2).shards(2);
        let shards = Shards::start(config, |_| Vec::new()).unwrap();
        let keys = keys(&shards);
        let (open, gate) = oneshot::channel();
        let (begun, begins) = mpsc::channel();
        let first = shards.call_async(keys[0], async move |log: &mut Vec<u32>| {
            begun.send(()).unwrap();
            log.push(gate.await.unwrap());
        });
        begins.recv().unwrap();
        let second = shards.call(keys[0], |log| log.push(2));
        shards.move_shard(0, 1).unwrap();
        shards.send_async(keys[0], async |log| log.push(3)).unwrap();
        open.send(1).unwrap();
        assert_eq!((first.wait(), second.wait()), (Ok(()), Ok(())));
        let log = shards.call(keys[0], |log| log.clone()).wait().unwrap();
        assert_eq!(log, [1, 2, 3], "{strategy}");
        assert_eq!(shards.shape().shards[0].owner, 1);
    }
}

/// Would hang, or lose the order, if the function waited where callers share the state.
#[test]
fn a_shared_shard_runs_asynchronous_functions_too() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        let balance = Balance::default().window(1).tolerance(0);
        let config = Config::new(strategy).workers(2).shards(2);
        let shards = Arc::new(Shards::start(config.balance(Some(balance)), |_| 0).unwrap());
        let limit = Instant::now() + LIMIT;
        while shards.shape().shared == 0 {
            assert!(Instant::now() < limit, "{:?}", shards.shape());
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..1_000 {
                            assert!(shards.read(0, |count: &u64| *count).wait().is_ok());
                        }
                    });
                }
            });
        }
        let inner = Arc::clone(&shards);
        let sent = shards.call(0, move |_| {
            inner.send_async(0, async |count| *count += 1).unwrap();
        });
        assert_eq!(sent.wait(), Ok(()));
        let call = shards.call_async(0, async |count| {
            turns(2).await;
            *count += 1;
            *count
        });
        assert_eq!(call.wait(), Ok(2), "{strategy}");
        let states: Vec<u64> = shards.shutdown().into_iter().map(Result::unwrap).collect();
        assert_eq!(states.iter().sum::<u64>(), 2);
    }
}

#[test]
fn under_local_set_a_function_has_tokio() {
    let shards = Shards::start(Config::new(Strategy::LocalSet), |_| 0).unwrap();
    let slept = shards.call_async(0, async |count| {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let spawned = tokio::task::spawn_local(async { 4 });
        *count += spawned.await.unwrap();
        *count
    });
    assert_eq!(slept.wait(), Ok(4));
}

/// Callers with a waker that is woken too often and too late.
#[test]
fn wakers_may_be_woken_at_any_time() {
    under_each(|config| {
        let shards = Shards::start(config, |_| 0).unwrap();
        let (send, wakers) = mpsc::channel::<Waker>();
        let turns = shards.call_async(0, async move |count| {
            poll_fn(|cx| {
                *count += 1;
                send.send(cx.waker().clone()).unwrap();
                if *count < 3 {
                    Poll::Pending
                } else {
                    Poll::Ready(())
                }
            })
            .await;
        });
        let mut all = Vec::new();
        for _ in 0..2 {
            let waker = wakers.recv().unwrap();
            waker.wake_by_ref();
            all.push(waker);
        }
        assert_eq!(turns.wait(), Ok(()));
        for waker in all {
            (0..5).for_each(|_| waker.wake_by_ref());
            waker.wake();
        }
        assert_eq!(shards.call(0, |count| *count).wait(), Ok(3), "{config:?}");
        let polled = Pin::new(&mut shards.call_async(0, async |count| *count))
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled == Poll::Pending || polled == Poll::Ready(Ok(3)));
    });
}

/// Many callers with functions that take turns. Would fail if two functions were in one state at
/// the same time, or if a caller's functions changed their order.
#[test]
fn functions_that_take_turns_exclude_each_other_and_keep_their_order() {
    under_each(|config| {
        const CALLERS: usize = 3;
        const STEPS: usize = 300;
        let shards = Shards::start(config.workers(2), |_| (false, [0; CALLERS])).unwrap();
        thread::scope(|scope| {
            for caller in 0..CALLERS {
                let shards = &shards;
                scope.spawn(move || {
                    let mut calls = Vec::new();
                    for step in 0..STEPS {
                        if step % 3 == 0 {
                            let changed = shards.send(0, move |state| {
                                assert!(!state.0);
                                assert_eq!(state.1[caller], step);
                                state.1[caller] += 1;
                            });
                            changed.unwrap();
                            continue;
                        }
                        calls.push(shards.call_async(0, async move |state| {
                            assert!(!state.0, "two functions are in one state");
                            state.0 = true;
                            turns((step % 4) as u32).await;
                            state.0 = false;
                            assert_eq!(state.1[caller], step, "out of order");
                            state.1[caller] += 1;
                        }));
                        if calls.len() == 20 {
                            calls.drain(..).for_each(|call| call.wait().unwrap());
                        }
                    }
                    calls.into_iter().for_each(|call| call.wait().unwrap());
                });
            }
        });
        let own = shards.shard_of(0);
        let states = shards.shutdown();
        assert_eq!(states[own], Ok((false, [STEPS; CALLERS])), "{config:?}");
        assert_eq!(shards.shape().panics, 0);
    });
}
