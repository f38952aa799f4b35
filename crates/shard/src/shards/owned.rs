//! The strategies `local_set` and `affinity` in their direct form: workers that own shards.
//!
//! The caller runs a request in place if the shard's [`DelegationLock`] allows it, else queues it
//! there. Callers combine: a caller that has run its own request runs a few of those that came
//! meanwhile, and so does a caller that queues a request while no thread runs. The owner is
//! notified of the remaining ones through its mailbox, which wakes it if it sleeps. The worker
//! takes all queued requests at once, runs them, and then wakes the callers that wait.

use super::StartError;
use super::backend::{Backend, FailureCounts, Shape, Submitted};
use super::balance::plan;
use super::config::{Balance, Config, Strategy};
use super::request::{Access, Job, Operation, Outcome, Ran, Request, Wakes, perform};
use super::running::{
    Outermost, Running, Tag, defer, has_deferred, is_running, run_deferred_of, runs_beside, runs_on,
};
use super::shared_state::{READS, SharedState, Use, run_in};
use super::state_handle::{Movable, StateHandle, drop_locals, keep_locals, no_locals};
use super::worker::{Role, is_worker_of, join, note_worker, pin};
use crate::delegation::{Begun, DelegationLock, Ended, Offered, ShardCounts, Tried};
use crate::topology;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use tremula_mailbox::{Mailbox, Sender, mailbox};
use tremula_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tremula_sync::system::Arc;
use tremula_sync::system::thread::{self, JoinHandle};
use tremula_sync::{Backoff, CachePadded, Mutex, contained, thread_index};

/// The most jobs that a worker runs before it wakes the threads and tasks that wait for them and
/// turns to another shard.
const BATCH: usize = 128;

/// Jobs of others that a caller combines with its own before it notifies their worker. Enough that
/// callers that meet wake no worker, and few enough that no caller works for all the others.
const COMBINED: usize = 8;

/// How often a caller that finds a shard in use tries again before it queues its request. In
/// between it spins, longer each time, for a microsecond in all, which is what small requests take.
const RETRIES: u32 = 5;

/// How many requests a request counts for when loads are compared, if it found its shard in use.
const CONTENDED: u64 = 16;

/// Notices that a worker takes at once.
const NOTICES: usize = 64;

/// Clones of a worker's sender, over which callers are spread. Mailboxes spread senders that meet,
/// and distinguish them by clone.
const LANES: usize = 8;

/// The notice that ends a worker.
const STOP: usize = usize::MAX;

pub(super) struct Owned<S, P> {
    core: Arc<Core<S, P>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

type Locks<S, P> = Box<[CachePadded<DelegationLock<P, Job<S>>>]>;

/// What workers and callers share.
pub(super) struct Core<S, P> {
    identity: u32,
    locks: Locks<S, P>,
    /// For each lock, where its state lies while it is shared.
    shared: Box<[CachePadded<SharedState<P>>]>,
    workers: Box<[CachePadded<Worker>]>,
    delegate: bool,
    balance: Option<Balance>,
    /// Set while a thread compares loads.
    balancing: AtomicBool,
    failures: FailureCounts,
    state: PhantomData<fn(S)>,
}

struct Worker {
    lanes: [Sender<usize>; LANES],
    /// Jobs since this worker last compared loads, and [`CONTENDED`] for each contended request.
    since: AtomicU64,
}

impl<S: 'static, P: StateHandle<S> + Send + Sync> Owned<S, P> {
    /// Starts the workers. Each worker makes the states of its shards, so that the memory is first
    /// touched by the thread that will use it.
    pub(super) fn start(
        config: &Config,
        identity: u32,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let (count, shards) = (config.worker_count(), config.shard_count());
        let mut mailboxes = Vec::new();
        let workers = (0..count).map(|_| {
            let (sender, mailbox) = mailbox(tremula_mailbox::Config::default());
            mailboxes.push(mailbox);
            CachePadded::new(Worker {
                lanes: std::array::from_fn(|_| sender.clone()),
                since: AtomicU64::new(0),
            })
        });
        let workers = workers.collect();
        let capacity = config.capacity.get();
        let lock = |shard| CachePadded::new(DelegationLock::new(shard % count, capacity));
        let core = Arc::new(Core {
            identity,
            locks: (0..shards).map(lock).collect(),
            shared: (0..shards).map(|_| CachePadded::default()).collect(),
            workers,
            delegate: config.delegate && P::ANYWHERE,
            balance: config.balance.filter(|_| P::ANYWHERE && count > 1),
            balancing: AtomicBool::new(false),
            failures: FailureCounts::default(),
            state: PhantomData,
        });
        crate::keep_under_tsan(&core);
        let owned = Self {
            core: Arc::clone(&core),
            threads: Mutex::new(Vec::new()),
        };
        let cpus = match config.strategy {
            Strategy::Affinity => topology::places(count),
            _ => Vec::new(),
        };
        let make = Arc::new(make);
        crate::keep_under_tsan(&make);
        let (started, starts) = mailbox(tremula_mailbox::Config::default());
        for (number, mailbox) in mailboxes.into_iter().enumerate() {
            let (core, make, started) = (Arc::clone(&core), Arc::clone(&make), started.clone());
            let cpu = cpus.get(number).copied();
            let strategy = config.strategy;
            let name = format!("shard-{number}");
            let main = move || {
                if let Some(cpu) = cpu {
                    pin(cpu);
                }
                let ready = core.make_states(number, &*make);
                drop(make);
                let failed = ready.is_err();
                let _ = started.send(ready);
                drop(started);
                if !failed {
                    work(&core, number, mailbox, strategy);
                }
                // Drops the states that stayed with this worker.
                drop_locals();
            };
            let thread = thread::Builder::new().name(name).spawn(main);
            match thread {
                Ok(thread) => owned.threads.lock().push(thread),
                Err(error) => {
                    owned.close();
                    return Err(StartError::Thread(error));
                }
            }
        }
        drop(started);
        for ready in starts {
            if let Err(message) = ready {
                owned.close();
                return Err(StartError::State(message));
            }
        }
        Ok(owned)
    }
}

impl<S, P> Owned<S, P> {
    pub(super) fn core(&self) -> Arc<Core<S, P>> {
        Arc::clone(&self.core)
    }
}

impl<S: 'static, P: StateHandle<S>> Owned<S, P> {
    /// Defers a function's request to a shared shard until the function has ended.
    fn defer(&self, shard: usize, request: &mut dyn Request<S>) -> Submitted {
        let (core, job) = (Arc::clone(&self.core), request.job(true));
        let tag = core.tag(shard);
        defer(tag, Box::new(move || core.run_late(shard, job)));
        Submitted::Queued
    }
}

fn work<S: 'static, P: StateHandle<S>>(
    core: &Core<S, P>,
    me: usize,
    mut mailbox: Mailbox<usize>,
    strategy: Strategy,
) {
    let mut notices = Vec::with_capacity(NOTICES);
    let mut batch = VecDeque::new();
    let mut turn = |notices: &mut Vec<usize>| {
        let mut stop = false;
        for shard in notices.drain(..) {
            if shard == STOP {
                stop = true;
            } else {
                core.serve(me, shard, BATCH, &mut batch);
            }
        }
        if stop {
            core.finish(me);
        } else {
            core.compare(me);
        }
        !stop
    };
    #[cfg(feature = "tokio")]
    if strategy == Strategy::LocalSet
        && let Some((runtime, local)) = local_set()
    {
        local.block_on(&runtime, async {
            while mailbox.recv_many_async(&mut notices, NOTICES).await > 0 && turn(&mut notices) {
                // Lets the tasks run that jobs have spawned.
                tokio::task::yield_now().await;
            }
        });
        return;
    }
    let _ = strategy; // unused without the feature
    while mailbox.recv_many(&mut notices, NOTICES) > 0 && turn(&mut notices) {}
}

/// A runtime for one worker. `None` if the system has no descriptors left for a reactor: the worker
/// then runs its jobs without one.
#[cfg(feature = "tokio")]
fn local_set() -> Option<(tokio::runtime::Runtime, tokio::task::LocalSet)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    Some((runtime.ok()?, tokio::task::LocalSet::new()))
}

impl<S: 'static, P: StateHandle<S>> Core<S, P> {
    fn make_states(&self, me: usize, make: &dyn Fn(usize) -> S) -> Result<(), String> {
        note_worker(self.identity, me);
        let locals = no_locals(self.locks.len());
        let mine = (me..self.locks.len()).step_by(self.workers.len());
        for shard in mine {
            let state = catch_unwind(AssertUnwindSafe(|| make(shard)));
            let state = state.map_err(super::request::message)?;
            self.locks[shard].fill(P::new(state, shard, &locals));
        }
        keep_locals(locals);
        Ok(())
    }

    /// Notifies a worker that jobs are queued at a shard. `false` if it has ended.
    fn notify(&self, worker: usize, shard: usize) -> bool {
        let lane = &self.workers[worker].lanes[thread_index() % LANES];
        lane.send(shard).is_ok()
    }

    /// Runs jobs queued at a shard, on the worker that was notified or on a caller in its place.
    fn serve(&self, me: usize, shard: usize, most: usize, batch: &mut VecDeque<Job<S>>) {
        match self.locks[shard].begin(me, most, batch) {
            Begun::Nothing => {}
            Begun::Notify(worker) => {
                self.notify(worker, shard);
            }
            Begun::Run(handle) => {
                let jobs = batch.len() as u64;
                // Relaxed: a count.
                self.workers[me].since.fetch_add(jobs, Ordering::Relaxed);
                let mut wakes = Wakes::default();
                let ended = self.run(shard, handle, batch, &mut wakes);
                wakes.wake();
                self.ended(shard, ended);
            }
        }
    }

    /// Runs a batch and gives the state back.
    fn run(
        &self,
        shard: usize,
        mut handle: P,
        batch: &mut VecDeque<Job<S>>,
        wakes: &mut Wakes,
    ) -> Ended {
        let (jobs, mut reads) = (batch.len() as u64, 0);
        let running = Running::on(self.tag(shard));
        handle.with(shard, &mut |state| {
            for job in batch.drain(..) {
                reads += u64::from(job.reads());
                self.failures.note(job.run(state, wakes));
                contained(|| drop(job)); // user code if this is the last reference
            }
        });
        let ended = self.locks[shard].end(handle, jobs, reads);
        drop(running);
        ended
    }

    #[inline]
    fn tag(&self, shard: usize) -> Tag {
        Tag::new(self.identity, shard)
    }

    /// Runs a deferred request to a shard that was shared when the function made it. The request
    /// has been accepted, so it is queued even if the queue is full or the shards are being closed.
    fn run_late(&self, shard: usize, mut job: Job<S>) {
        let backoff = Backoff::new();
        loop {
            job = match self.locks[shard].offer_late(job) {
                Ok(ended) => return self.ended_in_place(shard, ended),
                Err(job) => job,
            };
            let mut wakes = Wakes::default();
            let running = Running::on(self.tag(shard));
            let ran = self.shared[shard].with(false, |handle| {
                let Use::Change(handle) = handle else {
                    unreachable!("a request that does not only read may change");
                };
                handle.with(shard, &mut |state| {
                    self.failures.note(job.run(state, &mut wakes));
                });
            });
            drop(running);
            wakes.wake();
            if ran.is_some() {
                return self.changed(shard);
            }
            backoff.wait(); // the state is on its way back to the lock
        }
    }

    /// Handles the jobs that came while a caller ran its own request.
    #[inline]
    fn ended_in_place(&self, shard: usize, ended: Ended) {
        if ended != Ended::Nothing {
            self.ended_with_more(shard, ended);
        }
    }

    #[cold]
    fn ended_with_more(&self, shard: usize, ended: Ended) {
        match ended {
            Ended::Notify(worker) => self.combine_or_notify(worker, shard),
            ended => self.go_on(shard, ended),
        }
    }

    /// Combines: runs some of the queued jobs, or notifies their worker.
    fn combine_or_notify(&self, worker: usize, shard: usize) {
        // Not in a function: the requests of other callers must not run on top of it.
        if self.delegate && !is_running() {
            let _role = Role::of_worker(self.identity, worker);
            self.serve(worker, shard, COMBINED, &mut VecDeque::new());
        } else {
            self.notify(worker, shard);
        }
    }

    /// Combines after a caller has queued its request behind others, of which the worker has been
    /// notified: runs some of them, unless another thread is already running them.
    fn combine(&self, shard: usize) {
        if !self.delegate || is_running() {
            return;
        }
        let mut batch = VecDeque::new();
        if let Some(handle) = self.locks[shard].begin_anyway(COMBINED, &mut batch) {
            let _role = Role::of_worker(self.identity, self.locks[shard].counts().owner);
            let mut wakes = Wakes::default();
            let ended = self.run(shard, handle, &mut batch, &mut wakes);
            wakes.wake();
            self.ended(shard, ended);
        }
    }

    /// Takes the state for a caller that wants to run its own request.
    #[inline(always)]
    fn try_begin(&self, shard: usize) -> Option<P> {
        match self.locks[shard].try_begin(|owner| self.can_run_in_place(owner)) {
            Tried::Taken(handle) => Some(handle),
            Tried::Refused => None,
            Tried::Running => self.retry(shard),
        }
    }

    /// Tries again for a short time while another thread uses the shard.
    #[cold]
    fn retry(&self, shard: usize) -> Option<P> {
        let lock = &self.locks[shard];
        self.note_contention(lock.counts().owner);
        let backoff = Backoff::new();
        for _ in 0..RETRIES {
            backoff.wait();
            match lock.try_begin(|owner| self.can_run_in_place(owner)) {
                Tried::Taken(handle) => return Some(handle),
                Tried::Refused => return None,
                Tried::Running => {}
            }
        }
        None
    }

    /// Records that callers met at a shard of this worker. If that is frequent, compares the loads.
    fn note_contention(&self, worker: usize) {
        // Relaxed: a count.
        self.workers[worker]
            .since
            .fetch_add(CONTENDED, Ordering::Relaxed);
        self.compare(worker);
    }

    /// Handles the jobs that came while a thread ran others.
    #[inline]
    fn ended(&self, shard: usize, ended: Ended) {
        if ended != Ended::Nothing {
            self.go_on(shard, ended);
        }
    }

    #[cold]
    fn go_on(&self, shard: usize, mut ended: Ended) {
        let mut batch = VecDeque::new();
        loop {
            match ended {
                Ended::Nothing => return,
                Ended::Notify(worker) => {
                    self.notify(worker, shard);
                    return;
                }
                Ended::GoOn => {
                    let begun = self.locks[shard].begin_anyway(BATCH, &mut batch);
                    let Some(handle) = begun else { return };
                    let mut wakes = Wakes::default();
                    ended = self.run(shard, handle, &mut batch, &mut wakes);
                    wakes.wake();
                }
            }
        }
    }

    /// After the shards have been closed: runs all jobs queued at this worker's shards.
    fn finish(&self, me: usize) {
        for (shard, lock) in self.locks.iter().enumerate() {
            if lock.counts().owner == me {
                self.ended(shard, Ended::GoOn);
            }
        }
    }

    /// Gives shards of a worker away if it has more to do than others. Does nothing within a
    /// function, because sharing a shard and taking it back wait for the threads that use it.
    fn compare(&self, me: usize) {
        let Some(balance) = self.balance.filter(|_| !is_running()) else {
            return;
        };
        let since = &self.workers[me].since;
        if since.load(Ordering::Relaxed) < balance.window.max(1) {
            return;
        }
        // Acquire pairs with the Release below: a thread that compares sees the loads as the
        // previous one left them.
        if self.balancing.swap(true, Ordering::Acquire) {
            return;
        }
        since.store(0, Ordering::Relaxed);
        let counts: Vec<ShardCounts> = self.locks.iter().map(|lock| lock.counts()).collect();
        let loads: Vec<(usize, u64)> = counts
            .iter()
            .map(|shard| (shard.owner, shard.load))
            .collect();
        for (shard, worker) in plan(&loads, self.workers.len(), me, balance.tolerance) {
            self.locks[shard].assign(worker);
        }
        let part = loads.iter().map(|(_, load)| load).sum::<u64>() / self.workers.len() as u64;
        for (shard, counts) in counts.iter().enumerate() {
            let is_read = counts.reads >= (counts.load - counts.reads).saturating_mul(READS);
            if self.delegate && counts.owner == me && counts.load > part && is_read {
                self.share(shard);
            }
        }
        self.locks.iter().for_each(|lock| lock.age());
        self.balancing.store(false, Ordering::Release);
    }

    /// Lets callers share a shard, if no job is queued there and no thread runs one.
    fn share(&self, shard: usize) {
        let (lock, shared) = (&self.locks[shard], &self.shared[shard]);
        let Tried::Taken(handle) = lock.try_begin(|_| true) else {
            return;
        };
        shared.put(handle);
        if lock.share() {
            shared.announce();
        } else if let Some(handle) = shared.take() {
            let ended = lock.end(handle, 0, 0);
            self.ended(shard, ended);
        }
    }

    /// After a change of a shared shard: takes its state back if it is read too rarely.
    fn changed(&self, shard: usize) {
        let shared = &self.shared[shard];
        if shared.is_changed_too_often()
            && let Some(handle) = shared.take()
        {
            self.locks[shard].unshare(handle);
        }
    }

    /// Runs a request on a shared shard. Returns `None` if the shard is no longer shared.
    fn run_shared(&self, shard: usize, request: &mut dyn Request<S>) -> Option<Ran> {
        let reads = request.is_shared();
        let running = Running::on(self.tag(shard));
        let ran = self.shared[shard].with(reads, |handle| run_in(shard, handle, request));
        if ran.is_some() && !reads {
            self.changed(shard);
        }
        drop(running);
        ran
    }

    /// Like [`run_shared`](Self::run_shared), but returns `Err` instead of waiting.
    fn try_run_shared(
        &self,
        shard: usize,
        request: &mut dyn Request<S>,
    ) -> Result<Option<Ran>, ()> {
        let reads = request.is_shared();
        let _running = Running::on(self.tag(shard));
        // Does not take the state back, however often it is changed, because that waits.
        self.shared[shard]
            .try_with(reads, |handle| run_in(shard, handle, request))
            .map_err(drop)
    }

    /// Whether this thread may run requests to a shard of this owner in place.
    #[inline]
    fn can_run_in_place(&self, owner: usize) -> bool {
        self.delegate || is_worker_of(self.identity, owner)
    }
}

impl<S: 'static> Core<S, Movable<S>> {
    /// Runs an operation in place if the lock allows it. The thread must not be running a function.
    #[inline]
    pub(super) fn run_in_place<O: Operation<S>>(
        &self,
        shard: usize,
        operation: O,
    ) -> Result<Outcome<O::Output>, O> {
        if self.shared[shard].is_on() {
            return self.run_shared_in_place(shard, operation);
        }
        let Some(mut handle) = self.try_begin(shard) else {
            return Err(operation);
        };
        let running = Outermost::on(self.tag(shard));
        let outcome = perform(operation, Access::Exclusive(handle.get_mut()));
        self.failures.note(Ran::of(&outcome));
        let ended = self.locks[shard].end_in_place(handle, O::SHARED);
        drop(running);
        self.ended_in_place(shard, ended);
        Ok(outcome)
    }

    fn run_shared_in_place<O: Operation<S>>(
        &self,
        shard: usize,
        operation: O,
    ) -> Result<Outcome<O::Output>, O> {
        let mut operation = Some(operation);
        let _running = Running::on(self.tag(shard)); // dropped after the lock
        let outcome = self.shared[shard].with(O::SHARED, |handle| {
            let operation = operation.take()?;
            Some(match handle {
                Use::Read(handle) => perform(operation, Access::Shared(handle.get())),
                Use::Change(handle) => perform(operation, Access::Exclusive(handle.get_mut())),
            })
        });
        match (outcome.flatten(), operation) {
            (Some(outcome), _) => {
                self.failures.note(Ran::of(&outcome));
                if !O::SHARED {
                    self.changed(shard);
                }
                Ok(outcome)
            }
            (None, Some(operation)) => Err(operation),
            (None, None) => unreachable!("an operation that is taken has an outcome"),
        }
    }
}

impl<S: 'static, P: StateHandle<S> + Send + Sync> Backend<S> for Owned<S, P> {
    fn submit(
        &self,
        shard: usize,
        request: &mut dyn Request<S>,
        waker: Option<&Waker>,
    ) -> Submitted {
        let core = &*self.core;
        let (lock, tag) = (&core.locks[shard], core.tag(shard));
        let in_function = is_running();
        // A function may wait for shards of another kind.
        let may_wait = !in_function || request.is_wanted() && !runs_beside(tag);
        if in_function && has_deferred(tag) {
            if !may_wait {
                return self.defer(shard, request);
            }
            run_deferred_of(tag);
        }
        // Of the requests of functions, only calls on other shards run on top of them.
        let in_place = !in_function || request.is_wanted() && !runs_on(tag);
        if in_place && let Some(mut handle) = core.try_begin(shard) {
            let running = Running::on(tag);
            handle.with(shard, &mut |state| {
                core.failures.note(request.run(Access::Exclusive(state)));
            });
            let ended = lock.end_in_place(handle, request.is_shared());
            drop(running);
            core.ended_in_place(shard, ended);
            return Submitted::Ran;
        }
        let backoff = Backoff::new();
        loop {
            match lock.offer(request.job(true), waker) {
                Offered::Queued => {
                    core.combine(shard);
                    return Submitted::Queued;
                }
                Offered::Notify(worker) => {
                    core.combine_or_notify(worker, shard);
                    return Submitted::Queued;
                }
                Offered::Full(job) => {
                    drop(job);
                    request.take_back();
                    return Submitted::Full;
                }
                Offered::Closed(job) => {
                    drop(job);
                    request.take_back();
                    return Submitted::Closed;
                }
                Offered::Shared(job) => {
                    drop(job);
                    request.take_back();
                    let ran = if may_wait {
                        core.run_shared(shard, request)
                    } else if in_place && let Ok(ran) = core.try_run_shared(shard, request) {
                        ran
                    } else {
                        return self.defer(shard, request);
                    };
                    if let Some(ran) = ran {
                        core.failures.note(ran);
                        return Submitted::Ran;
                    }
                    backoff.wait(); // the state is on its way back to the lock
                }
            }
        }
    }

    fn move_shard(&self, shard: usize, worker: usize) -> bool {
        if P::ANYWHERE {
            // `false` only means that the worker owns the shard already.
            self.core.locks[shard].assign(worker);
        }
        P::ANYWHERE
    }

    fn shape(&self) -> Shape {
        let core = &*self.core;
        let mut shards: Vec<ShardCounts> = core.locks.iter().map(|lock| lock.counts()).collect();
        for (counts, shared) in shards.iter_mut().zip(&core.shared) {
            counts.requests += shared.requests();
            counts.in_place += shared.requests();
        }
        let shared = core.shared.iter().filter(|shared| shared.is_on());
        let mut shape = Shape {
            shared: shared.count(),
            sharings: core.shared.iter().map(|shared| shared.times()).sum(),
            requests: shards.iter().map(|shard| shard.requests).sum(),
            in_place: shards.iter().map(|shard| shard.in_place).sum(),
            moves: shards.iter().map(|shard| shard.moves).sum(),
            workers: core.workers.len(),
            shards,
            ..Shape::default()
        };
        core.failures.add_to(&mut shape);
        shape
    }

    fn close(&self) {
        let core = &*self.core;
        core.locks.iter().for_each(|lock| lock.close());
        for worker in 0..core.workers.len() {
            core.notify(worker, STOP);
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        join(threads);
    }
}
