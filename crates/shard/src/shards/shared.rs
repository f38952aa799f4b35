//! The strategy `threading`: shards behind readers-writer locks.
//!
//! An asynchronous function takes the state away from its lock, to a thread that begins such
//! functions and polls them; the first one starts that thread. While the state is away, requests
//! are queued at the lock, and the thread runs them when the function has ended. So no caller waits
//! for an asynchronous function that it does not call.
//!
//! Invariants:
//!
//! 1. A state that is away is with the executor, or on its way there in a notice.
//! 2. While the state is away, all requests are queued. The executor runs them in their order
//!    before it gives the state back, so each caller's requests keep their order.

use super::StartError;
use super::asynchronous::Suspended;
use super::backend::{Backend, FailureCounts, Shape, StateLost, Submitted};
use super::config::Config;
use super::request::{
    Access, CallError, Job, Operation, Outcome, Ran, Request, Wakes, message, perform,
};
use super::running::{
    Outermost, Running, Tag, defer, has_deferred, is_running, run_deferred_of, runs_beside, runs_on,
};
use super::tally::Tally;
use super::worker::{is_worker_of_any, join, note_worker};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use tremula_mailbox::{Mailbox, Sender, mailbox};
use tremula_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tremula_sync::system::Arc;
use tremula_sync::thread::{Builder, JoinHandle};
use tremula_sync::{Backoff, CachePadded, Mutex, RwLock, contained};

pub(super) struct Shared<S> {
    states: Arc<States<S>>,
}

/// The states and their locks.
pub(super) struct States<S> {
    identity: u32,
    locks: Box<[CachePadded<RwLock<Place<S>>>]>,
    /// Requests that may be queued at a lock while its state is away.
    capacity: usize,
    requests: Tally,
    failures: FailureCounts,
    /// The requests among them that the executor ran.
    by_executor: AtomicU64,
    executor: Mutex<Executor<S>>,
    /// Set before the executor is notified that it must end.
    closed: AtomicBool,
    /// States that are away, and threads that are about to give states away.
    away: AtomicUsize,
}

/// Where the state of a shard is.
enum Place<S> {
    /// Behind the lock.
    Here(S),
    /// With an asynchronous function.
    Away(Queue<S>),
    /// Given back by a shutdown, to the caller of it.
    Gone,
}

/// What waits for a state that is away.
struct Queue<S> {
    jobs: VecDeque<Job<S>>,
    /// The wakers of the tasks that wait for room.
    waiting: Vec<Waker>,
}

/// The thread that runs asynchronous functions.
enum Executor<S> {
    NotStarted,
    Started(Sender<Notice<S>>, JoinHandle<()>),
    Closed,
}

/// What the executor is notified of.
enum Notice<S> {
    /// A function begins on this shard, with this state.
    Begin(usize, Box<S>, Job<S>),
    /// The function on this shard can go on.
    Woken(usize),
    /// The shards are closed.
    Stop,
}

impl<S> Queue<S> {
    /// Queues a job, or registers the waker if there is no room.
    fn offer(
        &mut self,
        job: impl FnOnce() -> Job<S>,
        capacity: usize,
        waker: Option<&Waker>,
    ) -> Submitted {
        if self.jobs.len() >= capacity {
            let is_known = |waker: &&Waker| self.waiting.iter().any(|known| known.will_wake(waker));
            let unknown = waker.filter(|waker| !is_known(waker)).cloned();
            self.waiting.extend(unknown);
            return Submitted::Full;
        }
        self.jobs.push_back(job());
        Submitted::Queued
    }
}

impl<S: Send + Sync + 'static> Shared<S> {
    pub(super) fn start(
        config: &Config,
        identity: u32,
        make: impl Fn(usize) -> S,
    ) -> Result<Self, StartError> {
        let lock = |shard| CachePadded::new(RwLock::new(Place::Here(make(shard))));
        let locks = catch_unwind(AssertUnwindSafe(|| {
            (0..config.shard_count()).map(lock).collect()
        }));
        let states = Arc::new(States {
            identity,
            locks: locks.map_err(|panic| StartError::State(message(panic)))?,
            capacity: config.capacity.get(),
            requests: Tally::default(),
            failures: FailureCounts::default(),
            by_executor: AtomicU64::new(0),
            executor: Mutex::new(Executor::NotStarted),
            closed: AtomicBool::new(false),
            away: AtomicUsize::new(0),
        });
        crate::keep_under_tsan(&states);
        Ok(Self { states })
    }
}

impl<S: Send + Sync + 'static> Shared<S> {
    pub(super) fn states(&self) -> Arc<States<S>> {
        Arc::clone(&self.states)
    }
}

impl<S: 'static> States<S> {
    /// Runs an operation under the shard's lock, if the state is there. The thread must not be
    /// running a function.
    #[inline]
    pub(super) fn run<O: Operation<S>>(
        &self,
        shard: usize,
        operation: O,
    ) -> Result<Outcome<O::Output>, O> {
        let _running = Outermost::on(self.tag(shard)); // dropped after the lock
        let lock = &self.locks[shard];
        let outcome = if O::SHARED {
            let Place::Here(state) = &*lock.read() else {
                return Err(operation);
            };
            self.requests.add();
            perform(operation, Access::Shared(state))
        } else {
            let Place::Here(state) = &mut *lock.write() else {
                return Err(operation);
            };
            self.requests.add();
            perform(operation, Access::Exclusive(state))
        };
        self.failures.note(Ran::of(&outcome));
        Ok(outcome)
    }

    #[inline]
    fn tag(&self, shard: usize) -> Tag {
        Tag::new(self.identity, shard)
    }

    /// Runs a request under the shard's lock, or queues it if the state is away.
    fn run_request(
        &self,
        shard: usize,
        request: &mut dyn Request<S>,
        waker: Option<&Waker>,
    ) -> Submitted {
        let _running = Running::on(self.tag(shard));
        let lock = &self.locks[shard];
        if request.is_shared()
            && let Place::Here(state) = &*lock.read()
        {
            let ran = request.run(Access::Shared(state));
            return self.ran(ran);
        }
        self.run_in(&mut lock.write(), request, waker)
    }

    /// Like [`run_request`](Self::run_request), but returns `None` instead of waiting.
    fn try_run_request(
        &self,
        shard: usize,
        request: &mut dyn Request<S>,
        waker: Option<&Waker>,
    ) -> Option<Submitted> {
        let _running = Running::on(self.tag(shard));
        let lock = &self.locks[shard];
        if request.is_shared()
            && let Place::Here(state) = &*lock.try_read()?
        {
            let ran = request.run(Access::Shared(state));
            return Some(self.ran(ran));
        }
        let mut place = lock.try_write()?;
        Some(self.run_in(&mut place, request, waker))
    }

    fn run_in(
        &self,
        place: &mut Place<S>,
        request: &mut dyn Request<S>,
        waker: Option<&Waker>,
    ) -> Submitted {
        match place {
            Place::Here(state) => {
                let ran = request.run(Access::Exclusive(state));
                self.ran(ran)
            }
            Place::Away(queue) => queue.offer(|| request.job(true), self.capacity, waker),
            Place::Gone => Submitted::Closed,
        }
    }

    fn ran(&self, ran: Ran) -> Submitted {
        self.requests.add();
        self.failures.note(ran);
        Submitted::Ran
    }

    /// Runs a job under the shard's lock, or queues it if the state is away. The job has been
    /// accepted, so it is queued even if there is no room.
    fn run_job(&self, shard: usize, job: Job<S>) {
        let mut wakes = Wakes::default();
        let running = Running::on(self.tag(shard));
        match &mut *self.locks[shard].write() {
            Place::Here(state) => {
                let ran = job.run(state, &mut wakes);
                self.ran(ran);
            }
            Place::Away(queue) => queue.jobs.push_back(job),
            Place::Gone => job.fail(CallError::Closed, &mut wakes),
        }
        drop(running);
        wakes.wake();
    }
}

impl<S: Send + Sync + 'static> States<S> {
    /// Gives the state to the executor for an asynchronous function, or queues the function if the
    /// state is away.
    fn begin(
        self: &Arc<Self>,
        shard: usize,
        job: &Job<S>,
        capacity: usize,
        waker: Option<&Waker>,
    ) -> Submitted {
        let executor = match self.executor() {
            Ok(executor) => executor,
            Err(refused) => return refused,
        };
        // SeqCst, like the accesses in `close` and `execute`: either this thread sees that the
        // shards are closed, or the executor sees that a state may be on its way, and waits for it.
        self.away.fetch_add(1, Ordering::SeqCst);
        let submitted = if self.closed.load(Ordering::SeqCst) {
            Submitted::Closed
        } else {
            match self.give_away(shard, job, capacity, waker, &executor) {
                None => return Submitted::Queued, // counted until the state comes back
                Some(submitted) => submitted,
            }
        };
        self.away.fetch_sub(1, Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) {
            let _ = executor.send(Notice::Stop); // it may have waited for this thread
        }
        submitted
    }

    /// Returns `None` if it has given the state to the executor.
    fn give_away(
        &self,
        shard: usize,
        job: &Job<S>,
        capacity: usize,
        waker: Option<&Waker>,
        executor: &Sender<Notice<S>>,
    ) -> Option<Submitted> {
        let mut place = self.locks[shard].write();
        match &mut *place {
            Place::Away(queue) => Some(queue.offer(|| Arc::clone(job), capacity, waker)),
            Place::Gone => Some(Submitted::Closed),
            Place::Here(_) => {
                let queue = Queue {
                    jobs: VecDeque::new(),
                    waiting: Vec::new(),
                };
                let Place::Here(state) = std::mem::replace(&mut *place, Place::Away(queue)) else {
                    unreachable!("the lock is held");
                };
                let sent = executor.send(Notice::Begin(shard, Box::new(state), Arc::clone(job)));
                assert!(
                    sent.is_ok(),
                    "the executor ends when no state can be on its way"
                );
                None
            }
        }
    }

    /// Begins an asynchronous function of a function that has ended. It has been accepted, so it is
    /// queued even if there is no room.
    fn begin_late(self: &Arc<Self>, shard: usize, job: &Job<S>) {
        let error = match self.begin(shard, job, usize::MAX, None) {
            Submitted::Closed => CallError::Closed,
            Submitted::NoExecutor(why) => CallError::NoExecutor(why),
            Submitted::Ran | Submitted::Queued | Submitted::Full => return,
        };
        let mut wakes = Wakes::default();
        job.fail(error, &mut wakes);
        wakes.wake();
    }

    /// The executor, which is started if it is not running.
    fn executor(self: &Arc<Self>) -> Result<Sender<Notice<S>>, Submitted> {
        let mut executor = self.executor.lock();
        match &*executor {
            Executor::Started(sender, _) => Ok(sender.clone()),
            Executor::Closed => Err(Submitted::Closed),
            Executor::NotStarted => {
                let (sender, mailbox) = mailbox(tremula_mailbox::Config::default());
                let (states, own) = (Arc::clone(self), sender.clone());
                let thread = Builder::new()
                    .name("shard-async".to_owned())
                    .spawn(move || states.execute(mailbox, own))
                    .map_err(|error| Submitted::NoExecutor(error.to_string()))?;
                *executor = Executor::Started(sender.clone(), thread);
                Ok(sender)
            }
        }
    }

    /// The executor's thread.
    fn execute(&self, mut mailbox: Mailbox<Notice<S>>, own: Sender<Notice<S>>) {
        note_worker(self.identity, 0);
        let (mut begun, mut stops) = (Suspended::new(), false);
        // SeqCst: see `begin`.
        while !stops || self.away.load(Ordering::SeqCst) > 0 {
            let Ok(notice) = mailbox.recv() else { return };
            match notice {
                Notice::Begin(shard, state, job) if stops => {
                    let mut wakes = Wakes::default();
                    job.fail(CallError::Closed, &mut wakes);
                    self.failures.note(Ran::Cancelled);
                    let next = self.give_back(shard, state, true, &mut wakes);
                    debug_assert!(next.is_none(), "no function begins any more");
                    wakes.wake();
                }
                Notice::Begin(shard, state, job) => {
                    self.go_on(shard, Some((state, job)), &mut begun, &own, false);
                }
                Notice::Woken(shard) => self.go_on(shard, None, &mut begun, &own, stops),
                Notice::Stop => {
                    stops = true;
                    for shard in begun.shards() {
                        self.go_on(shard, None, &mut begun, &own, true);
                    }
                }
            }
        }
    }

    /// Begins a function, or goes on with the one on this shard. If it ends, runs what was queued,
    /// up to the next asynchronous function, which begins; and so on. If the shards are closed,
    /// none begins, and one that awaits something is interrupted.
    fn go_on(
        &self,
        shard: usize,
        begins: Option<(Box<S>, Job<S>)>,
        begun: &mut Suspended<S>,
        own: &Sender<Notice<S>>,
        stops: bool,
    ) {
        let tag = self.tag(shard);
        let mut wakes = Wakes::default();
        let mut next = begins;
        loop {
            let over = match next.take() {
                None => begun.go_on(tag, &mut wakes),
                Some((state, job)) => {
                    let own = own.clone();
                    let notify = move || {
                        let _ = own.send(Notice::Woken(shard)); // refused if the executor has ended
                    };
                    begun.begin(tag, state, job, notify, &mut wakes)
                }
            };
            let over = match over {
                None if stops => begun.interrupt(tag, &mut wakes),
                over => over,
            };
            let Some(over) = over else { break };
            self.ran_here(over.ran);
            next = self.give_back(shard, over.state, stops, &mut wakes);
            if next.is_none() {
                break;
            }
        }
        wakes.wake();
    }

    /// Gives a state back after it has run what was queued. Returns the state and the next
    /// asynchronous function if one is queued: then the state stays away.
    fn give_back(
        &self,
        shard: usize,
        mut state: Box<S>,
        stops: bool,
        wakes: &mut Wakes,
    ) -> Option<(Box<S>, Job<S>)> {
        let _running = Running::on(self.tag(shard)); // dropped after the lock
        let mut place = self.locks[shard].write();
        let Place::Away(queue) = &mut *place else {
            unreachable!("only the executor gives states back");
        };
        queue.waiting.drain(..).for_each(|waker| wakes.add(waker));
        while let Some(job) = queue.jobs.pop_front() {
            if !job.is_asynchronous() {
                self.ran_here(job.run(&mut state, wakes));
            } else if stops {
                job.fail(CallError::Closed, wakes);
                self.failures.note(Ran::Cancelled);
            } else {
                return Some((state, job));
            }
            contained(|| drop(job)); // user code if this is the last reference
        }
        *place = Place::Here(*state);
        self.away.fetch_sub(1, Ordering::SeqCst);
        None
    }

    /// After the executor has ended: takes the state out.
    fn retire(&self, shard: usize) -> Result<S, StateLost> {
        let backoff = Backoff::new();
        loop {
            let mut place = self.locks[shard].write();
            if !matches!(&*place, Place::Away(_)) {
                return match std::mem::replace(&mut *place, Place::Gone) {
                    Place::Here(state) => Ok(state),
                    _ => Err(StateLost::Gone { shard }),
                };
            }
            drop(place);
            backoff.wait(); // another thread shuts the shards down and waits for the executor
        }
    }

    fn ran_here(&self, ran: Ran) {
        self.by_executor.fetch_add(1, Ordering::Relaxed); // a count
        self.ran(ran);
    }
}

impl<S: Send + Sync + 'static> Shared<S> {
    /// Submits a request of a function. The function's thread holds the lock of its own shard, and
    /// the thread that holds the lock wanted here may be waiting for that one. So this waits for no
    /// lock of the same shards. A call on other shards may wait, since its caller may.
    fn submit_from_function(
        &self,
        shard: usize,
        request: &mut dyn Request<S>,
        waker: Option<&Waker>,
    ) -> Submitted {
        let (states, tag) = (&*self.states, self.states.tag(shard));
        if request.is_wanted() && !runs_on(tag) {
            if !runs_beside(tag) {
                run_deferred_of(tag);
                return states.run_request(shard, request, waker);
            }
            if !has_deferred(tag)
                && let Some(submitted) = states.try_run_request(shard, request, waker)
            {
                return submitted;
            }
        }
        let (states, job) = (Arc::clone(&self.states), request.job(true));
        defer(tag, Box::new(move || states.run_job(shard, job)));
        Submitted::Queued
    }

    /// Refuses asynchronous functions from now on and ends the executor. States that are away come
    /// back.
    fn close(&self) {
        let states = &*self.states;
        states.closed.store(true, Ordering::SeqCst);
        let executor = std::mem::replace(&mut *states.executor.lock(), Executor::Closed);
        if let Executor::Started(sender, thread) = executor {
            let _ = sender.send(Notice::Stop);
            join(vec![thread]);
        }
    }
}

impl<S: Send + Sync + 'static> Backend<S> for Shared<S> {
    #[inline]
    fn submit(
        &self,
        shard: usize,
        request: &mut dyn Request<S>,
        waker: Option<&Waker>,
    ) -> Submitted {
        if is_running() {
            return self.submit_from_function(shard, request, waker);
        }
        self.states.run_request(shard, request, waker)
    }

    fn submit_asynchronous(&self, shard: usize, job: &Job<S>, waker: Option<&Waker>) -> Submitted {
        let (states, tag) = (&self.states, self.states.tag(shard));
        if !is_running() || !runs_beside(tag) {
            run_deferred_of(tag);
            return states.begin(shard, job, states.capacity, waker);
        }
        // As in `submit_from_function`.
        let (states, job) = (Arc::clone(states), Arc::clone(job));
        defer(tag, Box::new(move || states.begin_late(shard, &job)));
        Submitted::Queued
    }

    fn move_shard(&self, _: usize, _: usize) -> bool {
        false
    }

    fn shape(&self) -> Shape {
        let requests = self.states.requests.sum();
        let mut shape = Shape {
            requests,
            in_place: requests - self.states.by_executor.load(Ordering::Relaxed),
            ..Shape::default()
        };
        self.states.failures.add_to(&mut shape);
        shape
    }

    fn close(&self) {
        // There are no other workers to end: callers run everything else themselves.
        Self::close(self);
    }

    fn shutdown(&self) -> Vec<Result<S, StateLost>> {
        let states = &*self.states;
        let shards = 0..states.locks.len();
        // Such a thread would wait for itself.
        let must_not_wait = runs_beside(states.tag(0)) || is_worker_of_any(states.identity);
        Self::close(self);
        if must_not_wait {
            return shards
                .map(|shard| Err(StateLost::OnWorker { shard }))
                .collect();
        }
        shards.map(|shard| states.retire(shard)).collect()
    }
}
