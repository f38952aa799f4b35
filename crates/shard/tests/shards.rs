//! What shards promise, under every strategy and in every form.
#![cfg(not(any(loom, shuttle)))]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tremula_papers::article::ARTICLE;
use tremula_shard::cache::{Cache, CacheConfig};
use tremula_shard::topology::{allowed, pin};
use tremula_shard::{
    Balance, CallError, Config, Form, MoveError, SendError, Shards, StartError, Strategy,
};

/// How long a test waits for an event that must come.
const LIMIT: Duration = Duration::from_secs(60);

/// Every strategy in every form, with and without delegation.
fn configs() -> Vec<Config> {
    let mut all = Vec::new();
    for &strategy in Strategy::ALL {
        let config = Config::new(strategy).workers(2).shards(8);
        all.push(config.form(ARTICLE));
        all.push(config);
        if strategy != Strategy::Threading {
            all.push(config.delegate(false));
        }
    }
    all
}

/// The configurations under which a worker runs everything, so that nothing runs before it.
fn queueing() -> Vec<Config> {
    let strategies = [Strategy::LocalSet, Strategy::Affinity];
    strategies
        .map(|strategy| Config::new(strategy).workers(1).shards(2).delegate(false))
        .to_vec()
}

/// Keeps a worker busy until the gate is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<(bool, bool)>, Condvar)>);

impl Gate {
    fn pass(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.0 = true;
        self.0.1.notify_all();
        let limit = Instant::now() + LIMIT;
        while !state.1 {
            assert!(Instant::now() < limit, "nobody opened the gate");
            state = self.0.1.wait_timeout(state, LIMIT).unwrap().0;
        }
    }

    /// Waits until a function has reached the gate.
    fn reached(&self) {
        let mut state = self.0.0.lock().unwrap();
        let limit = Instant::now() + LIMIT;
        while !state.0 {
            assert!(Instant::now() < limit, "nobody came to the gate");
            state = self.0.1.wait_timeout(state, LIMIT).unwrap().0;
        }
    }

    fn open(&self) {
        self.0.0.lock().unwrap().1 = true;
        self.0.1.notify_all();
    }
}

/// Whether a function that waits for a call on its own shard is stopped: by a panic that says so in
/// a build with debug assertions, by an error without them.
fn waits_for_itself<R>(wait: impl FnOnce() -> Result<R, CallError>) -> bool {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait)) {
        Ok(result) => !cfg!(debug_assertions) && result.err() == Some(CallError::OnWorker),
        Err(payload) => {
            let said = payload.downcast_ref::<String>();
            cfg!(debug_assertions) && said.is_some_and(|text| text.contains("waits for a call"))
        }
    }
}

#[test]
fn every_call_is_answered_once_and_every_state_is_what_its_functions_made_it() {
    for config in configs() {
        let shards = Shards::start(config, |_| BTreeMap::<u64, u64>::new()).unwrap();
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let shards = &shards;
                scope.spawn(move || {
                    for step in 1..=500_u64 {
                        let key = thread * 10 + step % 10;
                        let add = move |map: &mut BTreeMap<u64, u64>| {
                            *map.entry(key).or_default() += step;
                            map[&key]
                        };
                        let sum: u64 = (1..=step).filter(|other| other % 10 == step % 10).sum();
                        assert_eq!(shards.call(key, add).wait(), Ok(sum), "{config:?}");
                        let seen = shards.read(key, move |map| map.get(&key).copied());
                        assert_eq!(seen.wait(), Ok(Some(sum)), "{config:?}");
                    }
                });
            }
        });
        let shape = shards.shape();
        assert_eq!(
            (shape.requests, shape.panics, shape.cancelled),
            (4000, 0, 0),
            "{config:?}"
        );
    }
}

#[test]
fn tasks_are_answered_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    for config in configs() {
        let shards = Arc::new(Shards::start(config, |_| 0_u64).unwrap());
        let tasks: Vec<_> = (0..128_u64)
            .map(|task| {
                let shards = Arc::clone(&shards);
                runtime.spawn(async move {
                    let mut sum = 0;
                    for step in 0..100 {
                        sum += shards
                            .call(task, move |state| {
                                *state += 1;
                                step
                            })
                            .await
                            .unwrap();
                    }
                    sum
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(runtime.block_on(task).unwrap(), 4950);
        }
        let all = runtime.block_on(shards.map_all(|state| *state));
        assert_eq!(
            all.into_iter().map(Result::unwrap).sum::<u64>(),
            12_800,
            "{config:?}"
        );
        let numbers = Shards::start(config, |shard| shard).unwrap();
        let numbers = runtime.block_on(numbers.map_all(|shard| *shard));
        assert!(numbers.into_iter().map(Result::unwrap).eq(0..8));
    }
}

#[test]
fn sends_and_calls_of_one_caller_keep_their_order() {
    // The article's tasks under `threading` keep no order.
    let ordered =
        |config: &Config| config.strategy != Strategy::Threading || config.form == Form::Direct;
    for config in configs().into_iter().filter(ordered) {
        let shards = Shards::start(config, |_| Vec::<(u64, u64)>::new()).unwrap();
        thread::scope(|scope| {
            for thread in 0..3_u64 {
                let shards = &shards;
                scope.spawn(move || {
                    for step in 0..2_000 {
                        if step % 50 == 0 {
                            let call = shards.call(0, move |log| log.push((thread, step)));
                            call.wait().unwrap();
                        } else {
                            shards.send(0, move |log| log.push((thread, step))).unwrap();
                        }
                    }
                });
            }
        });
        let log = shards.call(0, |log| log.clone()).wait().unwrap();
        for thread in 0..3 {
            let own = log
                .iter()
                .filter(|entry| entry.0 == thread)
                .map(|entry| entry.1);
            assert!(own.eq(0..2_000), "{config:?}");
        }
    }
}

#[test]
fn a_call_that_panics_fails_alone() {
    for config in configs() {
        let shards = Shards::start(config, |_| 1).unwrap();
        let failed = shards
            .call(0, |_| -> u32 { panic!("what is {}", 6 * 9) })
            .wait();
        assert_eq!(
            failed,
            Err(CallError::Panicked("what is 54".to_owned())),
            "{config:?}"
        );
        shards.send(0, |_| panic!("nobody hears")).unwrap();
        assert_eq!(
            shards.call(0, |state| *state + 1).wait(),
            Ok(2),
            "{config:?}"
        );
        let deadline = Instant::now() + LIMIT;
        while shards.shape().panics < 2 {
            assert!(Instant::now() < deadline, "{config:?}");
            thread::yield_now();
        }
    }
}

#[test]
fn dropping_the_shards_finishes_what_was_sent() {
    for config in configs() {
        let done = Arc::new(AtomicU64::new(0));
        let shards = Shards::start(config.capacity(10_000), |_| ()).unwrap();
        for key in 0..3_000 {
            let done = Arc::clone(&done);
            let add = move |_: &mut ()| {
                done.fetch_add(1, Ordering::Relaxed);
            };
            shards.send(key, add).unwrap();
        }
        drop(shards);
        assert_eq!(done.load(Ordering::Relaxed), 3_000, "{config:?}");
        assert_eq!(Arc::strong_count(&done), 1, "{config:?}");
    }
}

#[test]
fn a_call_that_is_dropped_before_it_starts_never_starts() {
    for config in queueing() {
        let shards = Shards::start(config, |_| ()).unwrap();
        let gate = Gate::default();
        let held = gate.clone();
        shards.send(0, move |()| held.pass()).unwrap();
        gate.reached();
        let witness = Arc::new(());
        let mine = Arc::clone(&witness);
        let call = shards.call(0, move |()| drop(mine));
        assert_eq!(Arc::strong_count(&witness), 2);
        drop(call);
        assert_eq!(
            Arc::strong_count(&witness),
            1,
            "the function is dropped at once"
        );
        gate.open();
        assert_eq!(shards.call(0, |()| 5).wait(), Ok(5));
        let shape = shards.shape();
        assert_eq!((shape.cancelled, shape.panics), (1, 0), "{config:?}");
    }
}

#[test]
fn a_full_queue_pushes_back() {
    for config in queueing() {
        let shards = Shards::start(config.capacity(2), |_| 0).unwrap();
        let gate = Gate::default();
        let held = gate.clone();
        shards.send(0, move |_| held.pass()).unwrap();
        gate.reached();
        shards.send(0, |count| *count += 1).unwrap();
        shards.send(0, |count| *count += 1).unwrap();
        let refused = shards.send(0, |count| *count += 1);
        let Err(SendError::Full(function)) = refused else {
            panic!("{refused:?}");
        };
        // These calls wait for room. The one that is given up takes no room.
        let call = shards.call(0, |count| *count);
        drop(shards.call(0, |count| *count += 100));
        thread::scope(|scope| {
            let call = scope.spawn(|| call.wait());
            gate.open();
            assert_eq!(call.join().unwrap(), Ok(2), "{config:?}");
        });
        shards.send(0, function).unwrap();
        assert_eq!(shards.call(0, |count| *count).wait(), Ok(3), "{config:?}");
    }
}

#[test]
fn a_call_that_waits_for_room_when_the_shards_go_is_told() {
    for config in queueing() {
        let shards = Shards::start(config.capacity(1), |_| 0).unwrap();
        let gate = Gate::default();
        let held = gate.clone();
        shards.send(0, move |_| held.pass()).unwrap();
        gate.reached();
        let queued = shards.call(0, |_| 1);
        let waits = shards.call(0, |_| 2);
        thread::scope(|scope| {
            let gone = scope.spawn(|| drop(shards));
            gate.open();
            gone.join().unwrap();
        });
        assert_eq!(
            (queued.wait(), waits.wait()),
            (Ok(1), Err(CallError::Closed))
        );
    }
}

/// Counts where values of it are made and dropped.
struct Local {
    home: thread::ThreadId,
    alive: Arc<AtomicUsize>,
    count: Rc<Cell<u64>>,
}

impl Drop for Local {
    fn drop(&mut self) {
        assert_eq!(self.home, thread::current().id());
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn states_that_are_not_send_stay_on_one_thread_from_first_to_last() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        for form in [Form::Direct, ARTICLE] {
            let alive = Arc::new(AtomicUsize::new(0));
            let made = Arc::clone(&alive);
            let config = Config::new(strategy).form(form).workers(2).shards(6);
            let shards = Shards::start_local(config, move |_| {
                made.fetch_add(1, Ordering::Relaxed);
                Local {
                    home: thread::current().id(),
                    alive: Arc::clone(&made),
                    count: Rc::default(),
                }
            })
            .unwrap();
            assert_eq!(alive.load(Ordering::Relaxed), 6);
            for key in 0..200 {
                let home = move |local: &mut Local| {
                    assert_eq!(local.home, thread::current().id());
                    local.count.set(local.count.get() + 1);
                };
                shards.call(key, home).wait().unwrap();
            }
            drop(shards);
            assert_eq!(alive.load(Ordering::Relaxed), 0, "{config:?}");
        }
    }
    let error = Shards::start_local(Config::new(Strategy::Threading), |_| Rc::new(0)).unwrap_err();
    assert!(matches!(error, StartError::NotShared));
}

#[test]
fn a_caller_on_the_owning_worker_runs_in_place_and_must_not_wait_for_itself() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        let config = Config::new(strategy).workers(1).shards(2);
        let shards = Shards::start_local(config, |shard| Rc::new(Cell::new(shard))).unwrap();
        let shards = Arc::new(shards);
        let (zero, one) = {
            let of = |shard| (0..).find(|key| shards.shard_of(key) == shard).unwrap();
            (of(0), of(1))
        };
        let inner = Arc::clone(&shards);
        let answer = shards.call(zero, move |state| {
            let other = inner.call(one, |state| state.get()).wait();
            let itself = waits_for_itself(|| inner.call(zero, |state| state.get()).wait());
            (state.get(), other, itself)
        });
        assert_eq!(answer.wait(), Ok((0, Ok(1), true)), "{config:?}");
        // The worker has released its handle when it answers the next call.
        assert_eq!(shards.call(zero, |state| state.get()).wait(), Ok(0));
        let shape = shards.shape();
        assert_eq!((shape.in_place, shape.cancelled), (1, 1));
    }
}

#[test]
fn who_runs_a_shard_does_what_came_meanwhile_as_a_worker_would() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        let shards = Shards::start(Config::new(strategy).workers(1).shards(1), |_| 0).unwrap();
        let (shards, gate) = (Arc::new(shards), Gate::default());
        let (inner, inner_gate) = (Arc::clone(&shards), gate.clone());
        let caller = thread::spawn(move || {
            let passed = inner.call(0, move |_| inner_gate.pass());
            assert_eq!(passed.wait(), Ok(()));
            thread::current().id()
        });
        gate.reached();
        let inner = Arc::clone(&shards);
        let answer = shards.call(0, move |_| {
            let itself = waits_for_itself(|| inner.call(0, |state| *state).wait());
            (thread::current().id(), itself)
        });
        gate.open();
        let (ran_on, itself) = answer.wait().unwrap();
        assert!(itself, "{strategy}");
        assert_eq!(ran_on, caller.join().unwrap(), "{strategy}");
    }
}

#[test]
fn a_state_that_cannot_be_made_is_an_error() {
    for config in configs() {
        let started = Shards::start(config, |shard| assert_ne!(shard, 5, "five is out"));
        let error = started.unwrap_err().to_string();
        assert!(error.contains("five is out"), "{config:?}: {error}");
    }
}

#[test]
fn wrong_moves_are_errors() {
    let config = Config::new(Strategy::Affinity).workers(2).shards(4);
    let shards = Shards::start(config, |_| ()).unwrap();
    assert_eq!(
        shards.move_shard(4, 0),
        Err(MoveError::NoShard {
            shard: 4,
            shards: 4
        })
    );
    assert_eq!(
        shards.move_shard(0, 2),
        Err(MoveError::NoWorker {
            worker: 2,
            workers: 2
        })
    );
    assert_eq!(shards.move_shard(0, 1), Ok(()));
    assert_eq!(
        (shards.shape().shards[0].owner, shards.shape().moves),
        (1, 1)
    );
    let local = Shards::start_local(config, |_| ()).unwrap();
    assert_eq!(local.move_shard(0, 1), Err(MoveError::Fixed));
    let threading = Shards::start(Config::new(Strategy::Threading), |_| ()).unwrap();
    assert_eq!(threading.move_shard(0, 1), Err(MoveError::Fixed));
}

#[test]
fn a_hot_worker_gives_shards_away() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        let balance = Balance::default().window(64).tolerance(20);
        let config = Config::new(strategy)
            .workers(2)
            .shards(8)
            .delegate(false)
            .balance(Some(balance));
        let shards = Shards::start(config, |_| 0_u64).unwrap();
        // Keys of four shards, all owned by worker 0.
        let hot: Vec<u64> = (0..4)
            .map(|index| (0..).find(|key| shards.shard_of(key) == index * 2).unwrap())
            .collect();
        let deadline = Instant::now() + LIMIT;
        let mut sent = 0_u64;
        while shards.shape().moves == 0 {
            assert!(
                Instant::now() < deadline,
                "nothing moved: {:?}",
                shards.shape()
            );
            for key in &hot {
                shards.call(key, |count| *count += 1).wait().unwrap();
                sent += 1;
            }
        }
        for key in &hot {
            let count = shards.call(key, |count| *count).wait().unwrap();
            assert_eq!(count, sent / 4);
        }
        let shape = shards.shape();
        let at_home = shape
            .shards
            .iter()
            .step_by(2)
            .filter(|shard| shard.owner == 0)
            .count();
        assert!(at_home < 4, "{shape:?}");
    }
}

/// One key that all threads read, so that moving its shard cannot help.
#[test]
fn a_single_hot_key_that_is_read_is_shared_until_it_is_changed_often() {
    for strategy in [Strategy::LocalSet, Strategy::Affinity] {
        let balance = Balance::default().window(32).tolerance(20);
        let config = Config::new(strategy).workers(2).shards(8);
        let shards = Shards::start(config.balance(Some(balance)), |_| 0_u64).unwrap();
        let hot = 7;
        let deadline = Instant::now() + LIMIT;
        while shards.shape().shared == 0 {
            assert!(Instant::now() < deadline, "{:?}", shards.shape());
            // While one caller holds the state, the requests of the others are queued. The worker
            // runs these, and finds that it can give away nothing else.
            let gate = Gate::default();
            thread::scope(|scope| {
                let first = scope.spawn(|| {
                    let gate = gate.clone();
                    shards.read(hot, move |_| gate.pass()).wait()
                });
                gate.reached();
                let reads: Vec<_> = (0..64).map(|_| shards.read(hot, |state| *state)).collect();
                gate.open();
                for read in reads {
                    assert_eq!(read.wait(), Ok(0));
                }
                assert_eq!(first.join().unwrap(), Ok(()));
            });
        }
        let shape = shards.shape();
        assert!(shape.sharings >= 1 && shape.shared == 1, "{shape:?}");
        // Readers share it: two of them are in it at the same time.
        let both = Arc::new(std::sync::Barrier::new(2));
        thread::scope(|scope| {
            for _ in 0..2 {
                let both = Arc::clone(&both);
                scope.spawn(|| {
                    shards
                        .read(hot, move |_| both.wait().is_leader())
                        .wait()
                        .unwrap()
                });
            }
        });
        for change in 1..=1000 {
            let changed = shards.call(hot, |state| {
                *state += 1;
                *state
            });
            assert_eq!(changed.wait(), Ok(change));
        }
        assert_eq!(shards.shape().shared, 0, "it is with its worker again");
        assert_eq!(shards.read(hot, |state| *state).wait(), Ok(1000));
    }
}

#[test]
fn the_cache_is_what_a_map_of_byte_strings_is_under_every_strategy() {
    for config in configs() {
        let limits = CacheConfig::default().budget(1 << 24);
        let shards = Shards::start(config, move |_| Cache::<u64>::new(limits)).unwrap();
        let mut model: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let mut random = 1_u64;
        for step in 0..3_000_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let id = (random >> 33) % 50;
            let size = (random >> 40) as usize % 3_000;
            if step % 3 == 0 {
                let bytes = vec![step as u8; size];
                model.entry(id).or_default().extend(&bytes);
                let length = shards
                    .call(id, move |cache| cache.append(&id, &bytes))
                    .wait();
                assert_eq!(length, Ok(Ok(model[&id].len())));
            } else {
                let expected = model
                    .get(&id)
                    .map(|all| &all[all.len().saturating_sub(size)..]);
                let bytes = shards
                    .read(id, move |cache| cache.get(&id, size))
                    .wait()
                    .unwrap();
                assert_eq!(bytes.as_deref(), expected, "{config:?}");
            }
        }
    }
}

#[test]
fn a_process_that_may_use_one_processor_only_works() {
    let one = allowed().unwrap()[0];
    let pinned = thread::spawn(move || {
        pin(one).unwrap();
        for config in configs() {
            let shards = Shards::start(config.workers(3), |_| 0_u64).unwrap();
            for key in 0..300 {
                shards.call(key, |count| *count += 1).wait().unwrap();
            }
            assert_eq!(shards.shape().requests, 300, "{config:?}");
        }
    });
    pinned.join().unwrap();
}
