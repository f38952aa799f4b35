//! The strategies `local_set` and `affinity` in their direct form: workers that own shards.
//!
//! A request is run by the caller if the shard's [`Seat`] lets it, else queued there. Callers do not
//! leave at once what is queued to the worker: who has run its own request does a few of those that
//! came meanwhile, and so does who queues one where nobody runs. Of the rest the owner is told by
//! its mailbox, which wakes it if it sleeps. The worker takes all that is queued at once, runs it,
//! and then wakes those who wait for the answers.

use super::StartError;
use super::backend::{Backend, Rare, Shape, Submitted};
use super::balance::plan;
use super::config::{Balance, Config, Strategy};
use super::lent::{Lent, READS, Use, run_in};
use super::place::{Movable, Place, drop_locals, keep_locals, no_locals};
use super::request::{Access, Job, Operation, Outcome, Ran, Request, Wakes, perform};
use super::running::{
    Outermost, Running, Tag, defer, has_deferred, is_running, run_deferred_of, runs_beside, runs_on,
};
use super::worker::{Role, is_worker_of, join, note_worker, pin};
use crate::seat::{Begun, Ended, Offered, Seat, SeatCounts, Tried};
use crate::topology;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::thread::{self, JoinHandle};
use tremula_mailbox::{Mailbox, Sender, mailbox};
use tremula_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tremula_sync::{Backoff, CachePadded, Mutex, contained, thread_index};

/// Jobs that are run before those who wait for them are woken and another shard has its turn.
const BATCH: usize = 128;

/// Jobs of others that a caller runs, after its own, before it tells their worker: enough that
/// callers that meet wake no worker, few enough that none works for all the others.
const FAVOURS: usize = 8;

/// How often a caller that finds a shard in use looks again before it queues its request. It spins in
/// between, longer each time, for a microsecond in all: what small requests take.
const LOOKS_AGAIN: u32 = 5;

/// For so many requests counts one that found its shard in use, when it comes to comparing loads.
const MEETING: u64 = 16;

/// Notices that a worker takes at once.
const NOTICES: usize = 64;

/// Clones of a worker's sender, among which callers are spread: mailboxes spread senders that
/// meet, and tell them apart by this.
const LANES: usize = 8;

/// The notice by which a worker ends.
const STOP: usize = usize::MAX;

pub(super) struct Owned<S, P> {
    core: Arc<Core<S, P>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

type Seats<S, P> = Box<[CachePadded<Seat<P, Job<S>>>]>;

/// What workers and callers share.
pub(super) struct Core<S, P> {
    identity: u32,
    seats: Seats<S, P>,
    /// For each seat.
    lent: Box<[CachePadded<Lent<P>>]>,
    workers: Box<[CachePadded<Worker>]>,
    delegate: bool,
    balance: Option<Balance>,
    /// Who compares loads does so alone.
    balancing: AtomicBool,
    rare: Rare,
    state: PhantomData<fn(S)>,
}

struct Worker {
    lanes: [Sender<usize>; LANES],
    /// Jobs since loads were last compared for it, and [`MEETING`] for each meeting of callers.
    since: AtomicU64,
}

impl<S: 'static, P: Place<S> + Send + Sync> Owned<S, P> {
    /// Starts the workers, each of which makes the states of its shards: their memory is first
    /// touched where it will be used.
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
        let seat = |shard| CachePadded::new(Seat::new(shard % count, capacity));
        let core = Arc::new(Core {
            identity,
            seats: (0..shards).map(seat).collect(),
            lent: (0..shards).map(|_| CachePadded::default()).collect(),
            workers,
            delegate: config.delegate && P::ANYWHERE,
            balance: config.balance.filter(|_| P::ANYWHERE && count > 1),
            balancing: AtomicBool::new(false),
            rare: Rare::default(),
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
                let ready = core.take_seats(number, &*make);
                drop(make);
                let failed = ready.is_err();
                let _ = started.send(ready);
                drop(started);
                if !failed {
                    work(&core, number, mailbox, strategy);
                }
                // The states that stayed here are dropped here.
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

impl<S: 'static, P: Place<S>> Owned<S, P> {
    /// Puts off what a function asks of a shard that is lent until the function has ended.
    fn defer(&self, shard: usize, request: &mut dyn Request<S>) -> Submitted {
        let (core, job) = (Arc::clone(&self.core), request.job(true));
        let tag = core.tag(shard);
        defer(tag, Box::new(move || core.make_up_for(shard, job)));
        Submitted::Queued
    }
}

fn work<S: 'static, P: Place<S>>(
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
                core.look(me, shard, BATCH, &mut batch);
            }
        }
        if stop {
            core.finish(me);
        } else {
            core.compare(me);
        }
        !stop
    };
    if strategy == Strategy::Affinity {
        while mailbox.recv_many(&mut notices, NOTICES) > 0 && turn(&mut notices) {}
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        // No descriptors for a reactor are left: jobs are run without one.
        while mailbox.recv_many(&mut notices, NOTICES) > 0 && turn(&mut notices) {}
        return;
    };
    tokio::task::LocalSet::new().block_on(&runtime, async {
        while mailbox.recv_many_async(&mut notices, NOTICES).await > 0 && turn(&mut notices) {
            // Tasks that jobs have spawned have their turn.
            tokio::task::yield_now().await;
        }
    });
}

impl<S: 'static, P: Place<S>> Core<S, P> {
    fn take_seats(&self, me: usize, make: &dyn Fn(usize) -> S) -> Result<(), String> {
        note_worker(self.identity, me);
        let locals = no_locals(self.seats.len());
        let mine = (me..self.seats.len()).step_by(self.workers.len());
        for shard in mine {
            let state = catch_unwind(AssertUnwindSafe(|| make(shard)));
            let state = state.map_err(super::request::message)?;
            self.seats[shard].fill(P::seat(state, shard, &locals));
        }
        keep_locals(locals);
        Ok(())
    }

    /// Tells a worker that something is queued at a shard. `false` if it has ended.
    fn tell(&self, worker: usize, shard: usize) -> bool {
        let lane = &self.workers[worker].lanes[thread_index() % LANES];
        lane.send(shard).is_ok()
    }

    /// A worker has had notice of a shard, or somebody in its place.
    fn look(&self, me: usize, shard: usize, most: usize, batch: &mut VecDeque<Job<S>>) {
        match self.seats[shard].begin(me, most, batch) {
            Begun::Nothing => {}
            Begun::Tell(worker) => {
                self.tell(worker, shard);
            }
            Begun::Run(place) => {
                let jobs = batch.len() as u64;
                // Relaxed: a count.
                self.workers[me].since.fetch_add(jobs, Ordering::Relaxed);
                let mut wakes = Wakes::default();
                let ended = self.run(shard, place, batch, &mut wakes);
                wakes.wake();
                self.ended(shard, ended);
            }
        }
    }

    /// Runs a batch and gives the state back.
    fn run(
        &self,
        shard: usize,
        mut place: P,
        batch: &mut VecDeque<Job<S>>,
        wakes: &mut Wakes,
    ) -> Ended {
        let (jobs, mut looks) = (batch.len() as u64, 0);
        let running = Running::on(self.tag(shard));
        place.with(shard, &mut |state| {
            for job in batch.drain(..) {
                looks += u64::from(job.looks());
                self.rare.note(job.run(state, wakes));
                contained(|| drop(job)); // the last to have it drops what its caller left in it
            }
        });
        let ended = self.seats[shard].end(place, jobs, looks);
        drop(running);
        ended
    }

    #[inline]
    fn tag(&self, shard: usize) -> Tag {
        Tag::new(self.identity, shard)
    }

    /// Does what a function has asked of a shard that was lent then. It was accepted: it is queued
    /// beyond the queue's room, and also when the shards are being closed.
    fn make_up_for(&self, shard: usize, mut job: Job<S>) {
        let backoff = Backoff::new();
        loop {
            job = match self.seats[shard].offer_late(job) {
                Ok(ended) => return self.ended_in_place(shard, ended),
                Err(job) => job,
            };
            let mut wakes = Wakes::default();
            let running = Running::on(self.tag(shard));
            let ran = self.lent[shard].with(false, |place| {
                let Use::Change(place) = place else {
                    unreachable!("who does not only look may change");
                };
                place.with(shard, &mut |state| {
                    self.rare.note(job.run(state, &mut wakes));
                });
            });
            drop(running);
            wakes.wake();
            if ran.is_some() {
                return self.changed(shard);
            }
            backoff.wait(); // it is on its way back to the seat
        }
    }

    /// Sees to what came while a caller ran its own request.
    #[inline]
    fn ended_in_place(&self, shard: usize, ended: Ended) {
        if ended != Ended::Nothing {
            self.favour(shard, ended);
        }
    }

    #[cold]
    fn favour(&self, shard: usize, ended: Ended) {
        match ended {
            Ended::Tell(worker) => self.help_or_tell(worker, shard),
            ended => self.go_on(shard, ended),
        }
    }

    /// Something is queued that this worker is to be told of: a caller may do some of it first.
    fn help_or_tell(&self, worker: usize, shard: usize) {
        // A function helps nobody: what others have asked for is not run on top of it.
        if self.delegate && !is_running() {
            let _role = Role::of_worker(self.identity, worker);
            self.look(worker, shard, FAVOURS, &mut VecDeque::new());
        } else {
            self.tell(worker, shard);
        }
    }

    /// A caller has queued its request behind others, of which the worker knows: does some of them,
    /// if nobody is at it yet.
    fn help(&self, shard: usize) {
        if !self.delegate || is_running() {
            return;
        }
        let mut batch = VecDeque::new();
        if let Some(place) = self.seats[shard].begin_anyway(FAVOURS, &mut batch) {
            let _role = Role::of_worker(self.identity, self.seats[shard].counts().owner);
            let mut wakes = Wakes::default();
            let ended = self.run(shard, place, &mut batch, &mut wakes);
            wakes.wake();
            self.ended(shard, ended);
        }
    }

    /// Takes the state for a caller that wants to run its own request.
    #[inline(always)]
    fn try_begin(&self, shard: usize) -> Option<P> {
        match self.seats[shard].try_begin(|owner| self.may_run(owner)) {
            Tried::Taken(place) => Some(place),
            Tried::Refused => None,
            Tried::Running => self.look_again(shard),
        }
    }

    /// Somebody uses the shard: waits a little.
    #[cold]
    fn look_again(&self, shard: usize) -> Option<P> {
        let seat = &self.seats[shard];
        self.met(seat.counts().owner);
        let backoff = Backoff::new();
        for _ in 0..LOOKS_AGAIN {
            backoff.wait();
            match seat.try_begin(|owner| self.may_run(owner)) {
                Tried::Taken(place) => return Some(place),
                Tried::Refused => return None,
                Tried::Running => {}
            }
        }
        None
    }

    /// Callers have met at a shard of this worker: if they do so often, loads are compared.
    fn met(&self, worker: usize) {
        // Relaxed: a count.
        self.workers[worker]
            .since
            .fetch_add(MEETING, Ordering::Relaxed);
        self.compare(worker);
    }

    /// Sees to what came while somebody ran.
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
                Ended::Tell(worker) => {
                    self.tell(worker, shard);
                    return;
                }
                Ended::GoOn => {
                    let begun = self.seats[shard].begin_anyway(BATCH, &mut batch);
                    let Some(place) = begun else { return };
                    let mut wakes = Wakes::default();
                    ended = self.run(shard, place, &mut batch, &mut wakes);
                    wakes.wake();
                }
            }
        }
    }

    /// The shards are closed: runs all that is queued at this worker's.
    fn finish(&self, me: usize) {
        for (shard, seat) in self.seats.iter().enumerate() {
            if seat.counts().owner == me {
                self.ended(shard, Ended::GoOn);
            }
        }
    }

    /// Gives shards of a worker away, if it has more to do than others. Not in a function: to lend a
    /// shard, and to take it back, waits for those who use it.
    fn compare(&self, me: usize) {
        let Some(balance) = self.balance.filter(|_| !is_running()) else {
            return;
        };
        let since = &self.workers[me].since;
        if since.load(Ordering::Relaxed) < balance.window.max(1) {
            return;
        }
        // Acquire and Release: who compares sees the loads as the last one has left them.
        if self.balancing.swap(true, Ordering::Acquire) {
            return;
        }
        since.store(0, Ordering::Relaxed);
        let counts: Vec<SeatCounts> = self.seats.iter().map(|seat| seat.counts()).collect();
        let loads: Vec<(usize, u64)> = counts.iter().map(|seat| (seat.owner, seat.load)).collect();
        for (shard, worker) in plan(&loads, self.workers.len(), me, balance.tolerance) {
            self.seats[shard].assign(worker);
        }
        let part = loads.iter().map(|(_, load)| load).sum::<u64>() / self.workers.len() as u64;
        for (shard, seat) in counts.iter().enumerate() {
            let is_read = seat.looks >= (seat.load - seat.looks).saturating_mul(READS);
            if self.delegate && seat.owner == me && seat.load > part && is_read {
                self.lend(shard);
            }
        }
        self.seats.iter().for_each(|seat| seat.age());
        self.balancing.store(false, Ordering::Release);
    }

    /// Lets callers share a shard, if nothing is queued there and nobody runs.
    fn lend(&self, shard: usize) {
        let (seat, lent) = (&self.seats[shard], &self.lent[shard]);
        let Tried::Taken(place) = seat.try_begin(|_| true) else {
            return;
        };
        lent.put(place);
        if seat.lend() {
            lent.announce();
        } else if let Some(place) = lent.take() {
            let ended = seat.end(place, 0, 0);
            self.ended(shard, ended);
        }
    }

    /// A lent shard has been changed: takes it back if it is read too little.
    fn changed(&self, shard: usize) {
        let lent = &self.lent[shard];
        if lent.is_changed_too_often()
            && let Some(place) = lent.take()
        {
            self.seats[shard].settle(place);
        }
    }

    /// Runs a request on a shard that is lent; `None` if it is so no more.
    fn run_lent(&self, shard: usize, request: &mut dyn Request<S>) -> Option<Ran> {
        let looks = request.is_shared();
        let running = Running::on(self.tag(shard));
        let ran = self.lent[shard].with(looks, |place| run_in(shard, place, request));
        if ran.is_some() && !looks {
            self.changed(shard);
        }
        drop(running);
        ran
    }

    /// The same, if nobody has to be waited for; `Err` if somebody has.
    fn try_run_lent(&self, shard: usize, request: &mut dyn Request<S>) -> Result<Option<Ran>, ()> {
        let looks = request.is_shared();
        let _running = Running::on(self.tag(shard));
        // It is not taken back here, however often it is changed: that waits.
        self.lent[shard]
            .try_with(looks, |place| run_in(shard, place, request))
            .map_err(drop)
    }

    /// Whether this thread may run what is asked of a shard with this owner.
    #[inline]
    fn may_run(&self, owner: usize) -> bool {
        self.delegate || is_worker_of(self.identity, owner)
    }
}

impl<S: 'static> Core<S, Movable<S>> {
    /// Runs an operation on this thread, which runs no function, if the seat lets it.
    #[inline]
    pub(super) fn run_here<O: Operation<S>>(
        &self,
        shard: usize,
        operation: O,
    ) -> Result<Outcome<O::Output>, O> {
        if self.lent[shard].is_on() {
            return self.run_here_lent(shard, operation);
        }
        let Some(mut place) = self.try_begin(shard) else {
            return Err(operation);
        };
        let running = Outermost::on(self.tag(shard));
        let outcome = perform(operation, Access::Exclusive(place.state()));
        self.rare.note(Ran::of(&outcome));
        let ended = self.seats[shard].end_in_place(place, O::SHARED);
        drop(running);
        self.ended_in_place(shard, ended);
        Ok(outcome)
    }

    fn run_here_lent<O: Operation<S>>(
        &self,
        shard: usize,
        operation: O,
    ) -> Result<Outcome<O::Output>, O> {
        let mut operation = Some(operation);
        let _running = Running::on(self.tag(shard)); // outlives the lock
        let outcome = self.lent[shard].with(O::SHARED, |place| {
            let operation = operation.take()?;
            Some(match place {
                Use::Look(place) => perform(operation, Access::Shared(place.look())),
                Use::Change(place) => perform(operation, Access::Exclusive(place.state())),
            })
        });
        match (outcome.flatten(), operation) {
            (Some(outcome), _) => {
                self.rare.note(Ran::of(&outcome));
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

impl<S: 'static, P: Place<S> + Send + Sync> Backend<S> for Owned<S, P> {
    fn submit(
        &self,
        shard: usize,
        request: &mut dyn Request<S>,
        waker: Option<&Waker>,
    ) -> Submitted {
        let core = &*self.core;
        let (seat, tag) = (&core.seats[shard], core.tag(shard));
        let in_function = is_running();
        // A function may wait for shards of another kind.
        let may_wait = !in_function || request.is_wanted() && !runs_beside(tag);
        if in_function && has_deferred(tag) {
            if !may_wait {
                return self.defer(shard, request);
            }
            run_deferred_of(tag);
        }
        // Of what functions ask for only calls are run on top of them, on other shards.
        let in_place = !in_function || request.is_wanted() && !runs_on(tag);
        if in_place && let Some(mut place) = core.try_begin(shard) {
            let running = Running::on(tag);
            place.with(shard, &mut |state| {
                core.rare.note(request.run(Access::Exclusive(state)));
            });
            let ended = seat.end_in_place(place, request.is_shared());
            drop(running);
            core.ended_in_place(shard, ended);
            return Submitted::Ran;
        }
        let backoff = Backoff::new();
        loop {
            match seat.offer(request.job(true), waker) {
                Offered::Queued => {
                    core.help(shard);
                    return Submitted::Queued;
                }
                Offered::Tell(worker) => {
                    core.help_or_tell(worker, shard);
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
                Offered::Lent(job) => {
                    drop(job);
                    request.take_back();
                    let ran = if may_wait {
                        core.run_lent(shard, request)
                    } else if in_place && let Ok(ran) = core.try_run_lent(shard, request) {
                        ran
                    } else {
                        return self.defer(shard, request);
                    };
                    if let Some(ran) = ran {
                        core.rare.note(ran);
                        return Submitted::Ran;
                    }
                    backoff.wait(); // it is on its way back to the seat
                }
            }
        }
    }

    fn move_shard(&self, shard: usize, worker: usize) -> bool {
        if P::ANYWHERE {
            // Nothing to do if the worker has the shard already.
            self.core.seats[shard].assign(worker);
        }
        P::ANYWHERE
    }

    fn shape(&self) -> Shape {
        let core = &*self.core;
        let mut shards: Vec<SeatCounts> = core.seats.iter().map(|seat| seat.counts()).collect();
        for (seat, lent) in shards.iter_mut().zip(&core.lent) {
            seat.requests += lent.requests();
            seat.in_place += lent.requests();
        }
        let lent = core.lent.iter().filter(|lent| lent.is_on());
        let mut shape = Shape {
            lent: lent.count(),
            lendings: core.lent.iter().map(|lent| lent.times()).sum(),
            requests: shards.iter().map(|seat| seat.requests).sum(),
            in_place: shards.iter().map(|seat| seat.in_place).sum(),
            moves: shards.iter().map(|seat| seat.moves).sum(),
            workers: core.workers.len(),
            shards,
            ..Shape::default()
        };
        core.rare.add_to(&mut shape);
        shape
    }

    fn close(&self) {
        let core = &*self.core;
        core.seats.iter().for_each(|seat| seat.close());
        for worker in 0..core.workers.len() {
            core.tell(worker, STOP);
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        join(threads);
    }
}
