//! The shards that workers own: which thread runs what is queued, and with what.
//!
//! The thread that holds the state of a [`DelegationLock`] runs jobs there: the caller its own and
//! a few others, the worker all that are queued. Only workers begin asynchronous functions, because
//! they come back to poll them.

use super::asynchronous::{Over, Suspended};
use super::backend::{FailureCounts, StateLost};
use super::balance::plan;
use super::config::{Balance, Config};
use super::request::{Access, CallError, Job, Operation, Outcome, Ran, Request, Wakes, perform};
use super::running::{Outermost, Running, Tag, is_running};
use super::shared_state::{READS, SharedState, Use, run_in};
use super::state_handle::{Movable, StateHandle, keep_locals, no_locals};
use super::worker::{Role, note_worker, worker_of};
use crate::delegation::{Begun, DelegationLock, Ended, Offered, Retired, ShardCounts, Tried};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tremula_mailbox::{Mailbox, Sender, mailbox};
use tremula_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tremula_sync::{Backoff, CachePadded, contained, thread_index};

/// The most jobs that a worker runs before it wakes the threads and tasks that wait for them and
/// turns to another shard.
pub(super) const BATCH: usize = 128;

/// Jobs of others that a caller combines with its own before it notifies their worker. Enough that
/// callers that meet wake no worker, and few enough that no caller works for all the others.
const COMBINED: usize = 8;

/// How often a caller that finds a shard in use tries again before it queues its request. In
/// between it spins, longer each time, for a microsecond in all, which is what small requests take.
const RETRIES: u32 = 5;

/// How many requests a request counts for when loads are compared, if it found its shard in use.
const CONTENDED: u64 = 16;

/// Clones of a worker's sender, over which callers are spread. Mailboxes spread senders that meet,
/// and distinguish them by clone.
const LANES: usize = 8;

/// What a worker is notified of.
#[derive(Clone, Copy)]
pub(super) enum Notice {
    /// Jobs are queued at this shard.
    Queued(usize),
    /// The asynchronous function on this shard can go on.
    Woken(usize),
    /// The shards are closed.
    Stop,
}

/// The thread that runs a batch.
pub(super) enum Runner<'a, S> {
    /// A caller in place of the worker. It leaves asynchronous functions to the worker.
    Caller,
    /// The worker of this number, with the functions that it has begun.
    Worker(usize, &'a mut Suspended<S>),
    /// Any thread, after the shards have been closed. It begins no asynchronous function.
    Closing,
}

type Locks<S, P> = Box<[CachePadded<DelegationLock<P, Job<S>>>]>;

/// What workers and callers share.
pub(super) struct Core<S, P> {
    pub(super) identity: u32,
    pub(super) locks: Locks<S, P>,
    /// For each lock, where its state lies while it is shared.
    pub(super) shared: Box<[CachePadded<SharedState<P>>]>,
    pub(super) workers: Box<[CachePadded<Worker>]>,
    delegate: bool,
    balance: Option<Balance>,
    /// Set while a thread compares loads.
    balancing: AtomicBool,
    pub(super) failures: FailureCounts,
    state: PhantomData<fn(S)>,
}

pub(super) struct Worker {
    lanes: [Sender<Notice>; LANES],
    /// Jobs since this worker last compared loads, and [`CONTENDED`] for each contended request.
    since: AtomicU64,
}

impl<S: 'static, P: StateHandle<S>> Core<S, P> {
    /// Shards without states, and the mailboxes of their workers.
    pub(super) fn new(config: &Config, identity: u32) -> (Self, Vec<Mailbox<Notice>>) {
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
        let core = Self {
            identity,
            locks: (0..shards).map(lock).collect(),
            shared: (0..shards).map(|_| CachePadded::default()).collect(),
            workers,
            delegate: config.delegate && P::ANYWHERE,
            balance: config.balance.filter(|_| P::ANYWHERE && count > 1),
            balancing: AtomicBool::new(false),
            failures: FailureCounts::default(),
            state: PhantomData,
        };
        (core, mailboxes)
    }

    /// Notifies the workers that the shards are closed.
    pub(super) fn stop(&self) {
        for worker in &self.workers {
            let _ = worker.lanes[0].send(Notice::Stop); // refused if the worker has ended
        }
    }

    pub(super) fn make_states(&self, me: usize, make: &dyn Fn(usize) -> S) -> Result<(), String> {
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

    /// Notifies a worker that jobs are queued at a shard.
    pub(super) fn notify(&self, worker: usize, shard: usize) {
        let lane = &self.workers[worker].lanes[thread_index() % LANES];
        let _ = lane.send(Notice::Queued(shard)); // refused if the worker has ended
    }

    /// Runs jobs queued at a shard, on the worker that was notified or on a caller in its place.
    pub(super) fn serve(
        &self,
        me: usize,
        shard: usize,
        most: usize,
        batch: &mut VecDeque<Job<S>>,
        by: Runner<'_, S>,
    ) {
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
                let ended = self.run(shard, handle, batch, &mut wakes, by);
                wakes.wake();
                self.ended(shard, ended);
            }
        }
    }

    /// Runs a batch and gives the state back. If there is an asynchronous function in it, the
    /// worker runs what is before it and begins it; the function then has the state until it ends.
    fn run(
        &self,
        shard: usize,
        mut handle: P,
        batch: &mut VecDeque<Job<S>>,
        wakes: &mut Wakes,
        by: Runner<'_, S>,
    ) -> Ended {
        let (mut jobs, mut reads, mut begins) = (0, 0, None);
        let running = Running::on(self.tag(shard));
        handle.with(shard, &mut |state| {
            while let Some(job) = batch.pop_front() {
                if !job.is_asynchronous() {
                    reads += u64::from(job.reads());
                    self.failures.note(job.run(state, wakes));
                } else if matches!(by, Runner::Closing) {
                    job.fail(CallError::Closed, wakes);
                    self.failures.note(Ran::Cancelled);
                } else {
                    begins = Some(job);
                    return;
                }
                jobs += 1;
                contained(|| drop(job)); // user code if this is the last reference
            }
        });
        let lock = &self.locks[shard];
        let ended = match (begins, by) {
            (Some(job), Runner::Worker(me, begun)) => {
                lock.put_back(batch, jobs, reads);
                drop(running);
                return self.begin(me, shard, handle.take(shard), job, begun, wakes);
            }
            (Some(job), _) => {
                batch.push_front(job);
                lock.put_back(batch, jobs, reads);
                lock.end(handle, 0, 0)
            }
            (None, _) => lock.end(handle, jobs, reads),
        };
        drop(running);
        ended
    }

    /// Begins an asynchronous function, on the worker that will go on with it.
    fn begin(
        &self,
        me: usize,
        shard: usize,
        state: Box<S>,
        job: Job<S>,
        begun: &mut Suspended<S>,
        wakes: &mut Wakes,
    ) -> Ended {
        let lane = self.workers[me].lanes[me % LANES].clone();
        let notify = move || {
            let _ = lane.send(Notice::Woken(shard)); // refused if the worker has ended
        };
        let over = begun.begin(self.tag(shard), state, job, notify, wakes);
        over.map_or(Ended::Nothing, |over| self.over(shard, over))
    }

    /// Gives back the state of an asynchronous function that has ended.
    fn over(&self, shard: usize, over: Over<S>) -> Ended {
        self.failures.note(over.ran);
        self.locks[shard].end(P::back(over.state, shard), 1, 0)
    }

    /// Goes on with the asynchronous function on a shard, if this worker has begun one.
    pub(super) fn go_on_with(&self, shard: usize, begun: &mut Suspended<S>) {
        let mut wakes = Wakes::default();
        let over = begun.go_on(self.tag(shard), &mut wakes);
        let ended = over.map(|over| self.over(shard, over));
        wakes.wake();
        if let Some(ended) = ended {
            self.ended(shard, ended);
        }
    }

    /// After the shards have been closed: gives the functions that this worker has begun their last
    /// turn, and interrupts those that still await something.
    pub(super) fn interrupt(&self, begun: &mut Suspended<S>) {
        for shard in begun.shards() {
            self.go_on_with(shard, begun);
            let mut wakes = Wakes::default();
            let over = begun.interrupt(self.tag(shard), &mut wakes);
            let ended = over.map(|over| self.over(shard, over));
            wakes.wake();
            if let Some(ended) = ended {
                self.ended(shard, ended);
            }
        }
    }

    #[inline]
    pub(super) fn tag(&self, shard: usize) -> Tag {
        Tag::new(self.identity, shard)
    }

    /// Runs a deferred request to a shard that was shared when the function made it. The request
    /// has been accepted, so it is queued even if the queue is full or the shards are being closed.
    pub(super) fn run_late(&self, shard: usize, mut job: Job<S>) {
        let backoff = Backoff::new();
        loop {
            let mut wakes = Wakes::default();
            job = match self.locks[shard].offer_late(job) {
                Ok(ended) => return self.ended_in_place(shard, ended),
                Err(Offered::Shared(job)) => job,
                Err(Offered::Closed(job)) => {
                    job.fail(CallError::Closed, &mut wakes);
                    return wakes.wake();
                }
                Err(_) => unreachable!("a late job is refused for two reasons only"),
            };
            if job.is_asynchronous() {
                self.end_sharing(shard);
                backoff.wait();
                continue;
            }
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
    pub(super) fn ended_in_place(&self, shard: usize, ended: Ended) {
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
    pub(super) fn combine_or_notify(&self, worker: usize, shard: usize) {
        // Not in a function: the requests of other callers must not run on top of it.
        if self.delegate && !is_running() {
            let _role = Role::of_worker(self.identity, worker);
            self.serve(
                worker,
                shard,
                COMBINED,
                &mut VecDeque::new(),
                Runner::Caller,
            );
        } else {
            self.notify(worker, shard);
        }
    }

    /// Combines after a caller has queued its request behind others, of which the worker has been
    /// notified: runs some of them, unless another thread is already running them.
    pub(super) fn combine(&self, shard: usize) {
        if !self.delegate || is_running() {
            return;
        }
        let mut batch = VecDeque::new();
        if let Some(handle) = self.locks[shard].begin_anyway(COMBINED, &mut batch) {
            let _role = Role::of_worker(self.identity, self.locks[shard].counts().owner);
            let mut wakes = Wakes::default();
            let ended = self.run(shard, handle, &mut batch, &mut wakes, Runner::Caller);
            wakes.wake();
            self.ended(shard, ended);
        }
    }

    /// Takes the state for a caller that wants to run its own request.
    #[inline(always)]
    pub(super) fn try_begin(&self, shard: usize) -> Option<P> {
        // With delegation every caller may run its request in place, otherwise only the owner.
        let only = if self.delegate {
            None
        } else {
            Some(worker_of(self.identity)?)
        };
        match self.locks[shard].try_begin(only) {
            Tried::Taken(handle) => Some(handle),
            Tried::Refused => None,
            Tried::Running(owner) => self.retry(shard, only, owner),
        }
    }

    /// Tries again for a short time while another thread uses the shard.
    #[cold]
    fn retry(&self, shard: usize, only: Option<usize>, owner: usize) -> Option<P> {
        self.note_contention(owner);
        let backoff = Backoff::new();
        for retry in 1..=RETRIES {
            backoff.wait();
            match self.locks[shard].try_again(only, retry == RETRIES) {
                Tried::Taken(handle) => return Some(handle),
                Tried::Refused => return None,
                Tried::Running(_) => {}
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
                    ended = self.run(shard, handle, &mut batch, &mut wakes, Runner::Closing);
                    wakes.wake();
                }
            }
        }
    }

    /// After the shards have been closed: runs all jobs queued at this worker's shards.
    pub(super) fn finish(&self, me: usize) {
        for (shard, lock) in self.locks.iter().enumerate() {
            if lock.counts().owner == me {
                self.ended(shard, Ended::GoOn);
            }
        }
    }

    /// After the workers have ended: takes the state out. Waits for callers that still use it.
    pub(super) fn retire(&self, shard: usize) -> Result<S, StateLost> {
        let backoff = Backoff::new();
        loop {
            match self.locks[shard].retire() {
                Retired::State(handle) => {
                    return handle.into_state().ok_or(StateLost::Local { shard });
                }
                Retired::Shared => self.end_sharing(shard),
                Retired::InUse => backoff.wait(),
                Retired::Gone => return Err(StateLost::Gone { shard }),
            }
        }
    }

    /// Gives shards of a worker away if it has more to do than others. Does nothing within a
    /// function, because sharing a shard and taking it back wait for the threads that use it.
    pub(super) fn compare(&self, me: usize) {
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
        let Tried::Taken(handle) = lock.try_begin(None) else {
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
        if self.shared[shard].is_changed_too_often() {
            self.end_sharing(shard);
        }
    }

    /// Takes the state of a shared shard back. Waits for the threads that use it.
    pub(super) fn end_sharing(&self, shard: usize) {
        if let Some(handle) = self.shared[shard].take() {
            self.locks[shard].unshare(handle);
        }
    }

    /// Runs a request on a shared shard. Returns `None` if the shard is no longer shared.
    pub(super) fn run_shared(&self, shard: usize, request: &mut dyn Request<S>) -> Option<Ran> {
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
    pub(super) fn try_run_shared(
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
