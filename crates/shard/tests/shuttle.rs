//! Handing shards over between workers, asynchronous functions, and shutting down, under random
//! schedules.
//!
//! The tests would fail if a job ran twice or never (shuttle reports threads that wait for ever),
//! if jobs of one caller ran out of order, or if two threads held one state.
#![cfg(shuttle)]

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};
use tremula_mailbox::{Config, Mailbox, Sender, mailbox};
use tremula_shard::delegation::{Begun, DelegationLock, Ended, Offered, Tried};
use tremula_shard::{CallError, Shards, Strategy};
use tremula_sync::atomic::{AtomicUsize, Ordering};
use tremula_sync::model::check;
use tremula_sync::{Arc, Mutex, thread};

const CALLERS: usize = 2;
const JOBS: usize = 4;

type Job = (usize, usize);

/// The next job expected of each caller.
type State = [usize; CALLERS];

struct Run {
    lock: DelegationLock<State, Job>,
    /// Where the state lies while it is shared.
    shared: Mutex<Option<State>>,
    inside: AtomicUsize,
    done: AtomicUsize,
}

impl Run {
    fn new(capacity: usize) -> Arc<Self> {
        let lock = DelegationLock::new(0, capacity);
        lock.fill([0; CALLERS]);
        Arc::new(Self {
            lock,
            shared: Mutex::new(None),
            inside: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
        })
    }

    fn job(&self, state: &mut State, (caller, number): Job) {
        assert_eq!(
            self.inside.fetch_add(1, Ordering::SeqCst),
            0,
            "two hold the state"
        );
        assert_eq!(state[caller], number, "caller {caller} is out of order");
        state[caller] += 1;
        self.done.fetch_add(1, Ordering::SeqCst);
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn ended(&self, mut ended: Ended, workers: &[Sender<()>]) {
        loop {
            match ended {
                Ended::Nothing => return,
                Ended::Notify(worker) => return workers[worker].send(()).unwrap(),
                Ended::GoOn => {
                    let mut batch = VecDeque::new();
                    let Some(mut state) = self.lock.begin_anyway(2, &mut batch) else {
                        return;
                    };
                    let jobs = batch.len() as u64;
                    batch.drain(..).for_each(|job| self.job(&mut state, job));
                    ended = self.lock.end(state, jobs, 0);
                }
            }
        }
    }

    fn work(&self, me: usize, mut notices: Mailbox<()>, workers: &[Sender<()>]) {
        let mut batch = VecDeque::new();
        while self.done.load(Ordering::SeqCst) < CALLERS * JOBS {
            if notices.recv().is_err() {
                return;
            }
            match self.lock.begin(me, 2, &mut batch) {
                Begun::Nothing => {}
                Begun::Notify(worker) => workers[worker].send(()).unwrap(),
                Begun::Run(mut state) => {
                    let jobs = batch.len() as u64;
                    batch.drain(..).for_each(|job| self.job(&mut state, job));
                    self.ended(self.lock.end(state, jobs, 0), workers);
                }
            }
            if self.done.load(Ordering::SeqCst) == CALLERS * JOBS {
                // The other workers sleep until they are notified.
                workers.iter().for_each(|worker| {
                    let _ = worker.send(());
                });
            }
        }
    }

    /// What a caller does when it runs its own job and combines a job of another.
    fn combine(&self, worker: usize, workers: &[Sender<()>]) {
        let mut batch = VecDeque::new();
        match self.lock.begin(worker, 1, &mut batch) {
            Begun::Nothing => {}
            Begun::Notify(worker) => workers[worker].send(()).unwrap(),
            Begun::Run(mut state) => {
                batch.drain(..).for_each(|job| self.job(&mut state, job));
                self.ended(self.lock.end(state, 1, 0), workers);
            }
        }
    }

    fn call(&self, caller: usize, in_place: bool, workers: &[Sender<()>]) {
        for number in 0..JOBS {
            let job = (caller, number);
            if in_place && let Tried::Taken(mut state) = self.lock.try_begin(None) {
                self.job(&mut state, job);
                match self.lock.end_in_place(state, false) {
                    Ended::Notify(worker) => self.combine(worker, workers),
                    ended => self.ended(ended, workers),
                }
                continue;
            }
            loop {
                match self.lock.offer(job, None) {
                    Offered::Noticed if in_place => {
                        let mut batch = VecDeque::new();
                        if let Some(mut state) = self.lock.begin_anyway(1, &mut batch) {
                            batch.drain(..).for_each(|job| self.job(&mut state, job));
                            self.ended(self.lock.end(state, 1, 0), workers);
                        }
                    }
                    Offered::Queued | Offered::Noticed => {}
                    Offered::Notify(worker) if in_place => self.combine(worker, workers),
                    Offered::Notify(worker) => workers[worker].send(()).unwrap(),
                    Offered::Shared(job) => match &mut *self.shared.lock() {
                        Some(state) => self.job(state, job),
                        None => {
                            thread::yield_now();
                            continue; // it is on its way back
                        }
                    },
                    other => panic!("{other:?}"),
                }
                break;
            }
        }
        if self.done.load(Ordering::SeqCst) == CALLERS * JOBS {
            workers.iter().for_each(|worker| {
                let _ = worker.send(());
            });
        }
    }
}

/// What happens to the shard while it is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Moved,
    Shared,
}

fn handed_over(in_place: bool, meanwhile: Meanwhile) {
    let run = Run::new(100);
    let (senders, mailboxes): (Vec<_>, Vec<_>) =
        (0..2).map(|_| mailbox::<()>(Config::default())).unzip();
    let mut threads = Vec::new();
    for (me, notices) in mailboxes.into_iter().enumerate() {
        let (run, senders) = (Arc::clone(&run), senders.clone());
        threads.push(thread::spawn(move || run.work(me, notices, &senders)));
    }
    for caller in 0..CALLERS {
        let (run, senders) = (Arc::clone(&run), senders.clone());
        threads.push(thread::spawn(move || run.call(caller, in_place, &senders)));
    }
    for round in 0..4 {
        if meanwhile == Meanwhile::Moved {
            run.lock.assign(1 - round % 2);
        } else if let Tried::Taken(state) = run.lock.try_begin(None) {
            *run.shared.lock() = Some(state);
            let shared = run.lock.share();
            thread::yield_now();
            let state = run
                .shared
                .lock()
                .take()
                .expect("only this thread takes it back");
            if shared {
                run.lock.unshare(state);
            } else {
                run.ended(run.lock.end(state, 0, 0), &senders);
            }
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(run.done.load(Ordering::SeqCst), CALLERS * JOBS);
    if meanwhile == Meanwhile::Moved {
        assert_eq!(run.lock.counts().requests, (CALLERS * JOBS) as u64);
    }
    assert_eq!(run.lock.counts().queued, 0);
}

#[test]
fn a_shard_that_moves_loses_and_reorders_nothing() {
    check(
        "a_shard_that_moves_loses_and_reorders_nothing",
        3_000,
        || {
            handed_over(false, Meanwhile::Moved);
        },
    );
}

#[test]
fn a_shard_that_moves_and_is_run_by_callers_loses_and_reorders_nothing() {
    check(
        "a_shard_that_moves_and_is_run_by_callers_loses_and_reorders_nothing",
        3_000,
        || handed_over(true, Meanwhile::Moved),
    );
}

/// Would fail, too, if a job were queued while the state is shared, or the state were shared while
/// a job is queued.
#[test]
fn a_shard_that_is_shared_loses_and_reorders_nothing() {
    check(
        "a_shard_that_is_shared_loses_and_reorders_nothing",
        3_000,
        || {
            handed_over(false, Meanwhile::Shared);
        },
    );
}

#[test]
fn closing_leaves_nothing_behind() {
    check("closing_leaves_nothing_behind", 2_000, || {
        let run = Run::new(100);
        let (sender, _notices) = mailbox::<()>(Config::default());
        let workers = [sender];
        let (other, senders) = (Arc::clone(&run), workers.clone());
        let caller = thread::spawn(move || {
            let mut taken = 0;
            while taken < JOBS
                && let Tried::Taken(mut state) = other.lock.try_begin(None)
            {
                other.job(&mut state, (0, taken));
                other.ended(other.lock.end_in_place(state, false), &senders);
                taken += 1;
            }
            taken
        });
        // Does what a stopping worker does, with no other worker that reacts to notices: if it
        // cannot run a job because the caller holds the state, the caller must run it.
        let queued = run.lock.offer((1, 0), None);
        assert!(matches!(queued, Offered::Queued | Offered::Notify(0)));
        run.lock.close();
        assert_eq!(run.lock.offer((1, 1), None), Offered::Closed((1, 1)));
        run.ended(Ended::GoOn, &workers);
        let taken = caller.join().unwrap();
        assert_eq!(run.done.load(Ordering::SeqCst), taken + 1);
        assert_eq!(run.lock.counts().queued, 0);
    });
}

/// Would fail if a job that was accepted before the lock was closed, and is offered after that,
/// were left to a worker that has already looked.
#[test]
fn what_comes_late_is_run_although_the_lock_is_closed() {
    check(
        "what_comes_late_is_run_although_the_lock_is_closed",
        2_000,
        || {
            let run = Run::new(1);
            let (sender, _notices) = mailbox::<()>(Config::default());
            let workers = [sender];
            let (other, senders) = (Arc::clone(&run), workers.clone());
            let late = thread::spawn(move || {
                for number in 0..2 {
                    let ended = other.lock.offer_late((0, number));
                    other.ended(ended.expect("nothing is shared"), &senders);
                }
            });
            let (other, senders) = (Arc::clone(&run), workers.clone());
            let caller = thread::spawn(move || {
                let Tried::Taken(mut state) = other.lock.try_begin(None) else {
                    return 0;
                };
                other.job(&mut state, (1, 0));
                other.ended(other.lock.end_in_place(state, false), &senders);
                1
            });
            run.lock.close();
            run.ended(Ended::GoOn, &workers);
            late.join().unwrap();
            let taken = caller.join().unwrap();
            assert_eq!(run.done.load(Ordering::SeqCst), 2 + taken);
            assert_eq!(run.lock.counts().queued, 0);
        },
    );
}

/// Functions of two threads behind locks send to each other's shard and to their own. Would
/// deadlock if one waited for the other's lock, and break the order if a deferred request were
/// overtaken.
#[test]
fn functions_behind_locks_send_crosswise_in_order() {
    check(
        "functions_behind_locks_send_crosswise_in_order",
        2_000,
        || {
            let config = tremula_shard::Config::new(Strategy::Threading).shards(2);
            let shards = Arc::new(Shards::start(config, |_| Vec::new()).unwrap());
            let key = |shard| (0_u64..).find(|key| shards.shard_of(key) == shard).unwrap();
            let keys = [key(0), key(1)];
            let threads = [0, 1].map(|me| {
                let shards = Arc::clone(&shards);
                thread::spawn(move || {
                    let inner = Arc::clone(&shards);
                    let sent = shards.send(keys[me], move |log: &mut Vec<(usize, u32)>| {
                        log.push((me, 0));
                        for number in 1..3 {
                            inner
                                .send(keys[1 - me], move |log| log.push((me, number)))
                                .unwrap();
                            let seen = inner.call(keys[1 - me], move |log| log.push((me, 9)));
                            drop(seen); // overtakes nothing: given up before it starts
                            inner
                                .send(keys[me], move |log| log.push((me, number)))
                                .unwrap();
                        }
                    });
                    sent.unwrap();
                    // Later requests of this thread come behind all of these.
                    for key in keys {
                        shards.send(key, move |log| log.push((me, 3))).unwrap();
                    }
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
            for (shard, key) in keys.into_iter().enumerate() {
                let log = shards.call(key, |log| log.clone()).wait().unwrap();
                for me in [0, 1] {
                    let own = log
                        .iter()
                        .filter(|entry| entry.0 == me)
                        .map(|entry| entry.1);
                    let first = u32::from(shard != me);
                    assert!(own.eq(first..4), "{log:?}");
                }
            }
        },
    );
}

/// What an asynchronous function awaits until another thread opens it.
#[derive(Default)]
struct Gate(Mutex<(bool, Option<Waker>)>);

impl Gate {
    async fn passed(&self) {
        poll_fn(|cx| {
            let mut gate = self.0.lock();
            if gate.0 {
                return Poll::Ready(());
            }
            gate.1 = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn open(&self) {
        let waker = {
            let mut gate = self.0.lock();
            gate.0 = true;
            gate.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Whether a function is in the state, and the numbers that functions have left.
type Log = (bool, Vec<usize>);

fn enter(log: &mut Log) {
    assert!(!log.0, "two functions are in one state");
    log.0 = true;
}

fn leave(log: &mut Log, number: usize) {
    log.0 = false;
    log.1.push(number);
}

fn short(log: &mut Log, number: usize) {
    enter(log);
    leave(log, number);
}

/// One shard whose asynchronous functions run on one thread.
fn one_shard(strategy: Strategy, delegate: bool) -> Arc<Shards<Log>> {
    let config = tremula_shard::Config::new(strategy)
        .workers(1)
        .shards(1)
        .delegate(delegate);
    Arc::new(Shards::start(config, |_| Log::default()).unwrap())
}

/// The ways in which functions meet on a shard.
const WAYS: [(Strategy, bool); 3] = [
    (Strategy::Threading, true),
    (Strategy::Affinity, true),
    (Strategy::Affinity, false),
];

fn check_each(name: &str, schedules: usize, test: fn(Arc<Shards<Log>>)) {
    check(name, WAYS.len() * schedules, move || {
        for (strategy, delegate) in WAYS {
            test(one_shard(strategy, delegate));
        }
    });
}

/// Two threads call an asynchronous function and then other functions, and a third one wakes what
/// awaits. Would hang if a wake-up were lost, and fail if a function ran while another one had the
/// state, or overtook one of its own caller.
#[test]
fn functions_exclude_an_asynchronous_one_that_awaits() {
    check_each(
        "functions_exclude_an_asynchronous_one_that_awaits",
        300,
        |shards| {
            let gate = Arc::new(Gate::default());
            let opener = {
                let gate = Arc::clone(&gate);
                thread::spawn(move || gate.open())
            };
            let callers = [0, 10].map(|first| {
                let (shards, gate) = (Arc::clone(&shards), Arc::clone(&gate));
                thread::spawn(move || {
                    let awaits = shards.call_async(0, async move |log| {
                        enter(log);
                        gate.passed().await;
                        leave(log, first);
                    });
                    shards.send(0, move |log| short(log, first + 1)).unwrap();
                    let last = shards.call(0, move |log| short(log, first + 2));
                    assert_eq!(last.wait(), Ok(()));
                    assert_eq!(awaits.wait(), Ok(()));
                })
            });
            for caller in callers {
                caller.join().unwrap();
            }
            opener.join().unwrap();
            let log = shards.shutdown().remove(0).unwrap();
            for first in [0, 10] {
                let own = log
                    .1
                    .iter()
                    .filter(|number| (first..first + 10).contains(*number));
                assert!(own.copied().eq(first..first + 3), "{log:?}");
            }
        },
    );
}

/// A caller drops its call while the worker begins the function, polls it, or goes on. Would hang
/// if the worker did not see that, because nobody opens the gate.
#[test]
fn a_call_that_is_dropped_frees_its_shard() {
    check_each("a_call_that_is_dropped_frees_its_shard", 300, |shards| {
        let gives_up = {
            let shards = Arc::clone(&shards);
            thread::spawn(move || {
                let gate = Gate::default();
                drop(shards.call_async(0, async move |log| {
                    log.1.push(0);
                    gate.passed().await;
                    log.1.push(1);
                }));
            })
        };
        let call = shards.call(0, |log| log.1.push(2));
        assert_eq!(call.wait(), Ok(()));
        gives_up.join().unwrap();
        let log = shards.shutdown().remove(0).unwrap();
        assert!(!log.1.contains(&1) && log.1.contains(&2), "{log:?}");
    });
}

/// A function wakes itself once, and then its call is dropped. Would hang if the turn that follows
/// forgot a wake-up that came after it had looked whether the call was dropped.
#[test]
fn a_call_that_is_dropped_before_a_turn_frees_its_shard() {
    check_each(
        "a_call_that_is_dropped_before_a_turn_frees_its_shard",
        500,
        |shards| {
            let woken = Arc::new(AtomicUsize::new(0));
            let inside = Arc::clone(&woken);
            let call = shards.call_async(0, async move |_| {
                poll_fn(|cx| {
                    if inside.fetch_add(1, Ordering::SeqCst) == 0 {
                        cx.waker().wake_by_ref();
                    }
                    Poll::<()>::Pending
                })
                .await;
            });
            while woken.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            drop(call);
            assert_eq!(shards.call(0, |log| log.1.push(0)).wait(), Ok(()));
            drop(shards.shutdown());
        },
    );
}

/// Callers race with a shutdown. Would hang if one were not answered or a state did not come back,
/// and fail if the state lacked what was answered well, or had what was refused.
#[test]
fn a_shutdown_answers_all_and_gives_the_state_back() {
    check_each(
        "a_shutdown_answers_all_and_gives_the_state_back",
        300,
        |shards| {
            let callers = [0, 10].map(|first| {
                let shards = Arc::clone(&shards);
                thread::spawn(move || {
                    let gate = Arc::new(Gate::default());
                    let inside = Arc::clone(&gate);
                    let calls = [
                        shards.call_async(0, async move |log| {
                            enter(log);
                            inside.passed().await;
                            leave(log, first);
                        }),
                        shards.call_async(0, async move |log| short(log, first + 1)),
                    ];
                    let last = shards.call(0, move |log| log.1.push(first + 2));
                    gate.open();
                    let mut done = Vec::new();
                    for (number, call) in calls.into_iter().enumerate() {
                        match call.wait() {
                            Ok(()) => done.push(first + number),
                            Err(CallError::Closed) => {}
                            // The function was in the state when it was interrupted.
                            Err(CallError::Interrupted) => return None,
                            Err(other) => panic!("{other}"),
                        }
                    }
                    match last.wait() {
                        Ok(()) => done.push(first + 2),
                        Err(error) => assert_eq!(error, CallError::Closed),
                    }
                    Some(done)
                })
            });
            let states = shards.shutdown();
            let done = callers.map(|caller| caller.join().unwrap());
            let Ok((_, log)) = &states[0] else {
                panic!("{states:?}");
            };
            for (first, done) in [0, 10].into_iter().zip(done) {
                let own = log
                    .iter()
                    .filter(|number| (first..first + 10).contains(*number));
                if let Some(done) = done {
                    assert!(own.eq(&done), "{log:?} {done:?}");
                }
            }
        },
    );
}
