//! A seat: one shard's state and the queue of what is to be done with it.
//!
//! Whoever holds the state runs; nobody else can. The seat says who that may be: the worker that
//! owns the shard, told by a notice when there is something to do, or a caller that finds the state
//! there and nothing queued. Changing the owner moves nothing but a number, because the state is
//! where both find it. For states that may not change threads the seat keeps a token in their place.
//!
//! Who holds the state may lend it to all callers, if nothing is queued; then the seat queues nothing
//! until it has the state back.
//!
//! Invariants:
//!
//! 1. Jobs leave the queue in the order in which they came, and are run by who holds the state; a
//!    job that is not queued is run only where the queue is empty and the state in the seat. So
//!    jobs are run one at a time, and those of one caller in its order, whoever the owner is.
//! 2. When jobs are queued, then the state is held (whose holder will look, see [`Seat::end`]), or
//!    `noticed` is set.
//! 3. When `noticed` is set a notice is on its way to a worker. One that is no longer the owner
//!    passes it on.

use std::collections::{HashSet, VecDeque};
use std::ptr;
use std::task::Waker;
use tremula_sync::{ShortLock, contained};

/// A shard's state, or a token in its place, and the jobs to be done with it. See the [module's
/// documentation](self).
pub struct Seat<T, J>(ShortLock<Inner<T, J>>);

struct Inner<T, J> {
    /// `None` while somebody runs jobs, and until [`Seat::fill`].
    state: Option<T>,
    jobs: VecDeque<J>,
    capacity: usize,
    owner: usize,
    noticed: bool,
    closed: bool,
    lent: bool,
    /// Who waits for room, each once.
    waiting: Vec<Waker>,
    /// What tells their wakers apart: a task that polls again and again is found at once.
    known: HashSet<(usize, usize)>,
    /// Jobs run since the last [`Seat::age`], less those forgotten by it.
    load: u64,
    /// Those of them that only look.
    looks: u64,
    total: u64,
    in_place: u64,
    moves: u64,
}

/// What became of a job that was offered to a seat.
#[derive(Debug, PartialEq, Eq)]
pub enum Offered<J> {
    /// It is queued, and somebody will look.
    Queued,
    /// It is queued; this worker is to be told.
    Tell(usize),
    /// There is no room. The job comes back.
    Full(J),
    /// The seat is closed. The job comes back.
    Closed(J),
    /// The state is lent: the job is to be done where it is.
    Lent(J),
}

/// What a caller finds that wants to run its own job.
#[derive(Debug, PartialEq, Eq)]
pub enum Tried<T> {
    /// It holds the state.
    Taken(T),
    /// Somebody is running, and nothing is queued: it may be over soon.
    Running,
    /// The job is to be queued.
    Refused,
}

/// What a worker finds that looks at a seat.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun<T> {
    /// It holds the state, and has a batch of jobs.
    Run(T),
    /// Nothing is to be done, or somebody is doing it.
    Nothing,
    /// The shard has another owner, who is to be told.
    Tell(usize),
}

/// What is to be done by who has given the state back.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing.
    Nothing,
    /// More jobs came; this worker is to be told.
    Tell(usize),
    /// More jobs came, and the seat is closed: the owner may have gone, so who was the last to run
    /// goes on, with [`Seat::begin_anyway`].
    GoOn,
}

/// What a seat has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeatCounts {
    /// The worker that owns the shard.
    pub owner: usize,
    /// Jobs that are queued.
    pub queued: usize,
    /// Jobs that were run.
    pub requests: u64,
    /// Those of them that their caller ran.
    pub in_place: u64,
    /// How often the owner changed.
    pub moves: u64,
    /// The recent ones among the jobs that were run.
    pub load: u64,
    /// Those of them that only looked.
    pub looks: u64,
}

impl<T, J> Seat<T, J> {
    /// An empty seat of this owner, whose queue has this much room.
    #[must_use]
    pub fn new(owner: usize, capacity: usize) -> Self {
        Self(ShortLock::new(Inner {
            state: None,
            jobs: VecDeque::new(),
            capacity,
            owner,
            noticed: false,
            closed: false,
            lent: false,
            waiting: Vec::new(),
            known: HashSet::new(),
            load: 0,
            looks: 0,
            total: 0,
            in_place: 0,
            moves: 0,
        }))
    }

    /// Puts the state into an empty seat for the first time, before anything is offered.
    pub fn fill(&self, state: T) {
        self.0.lock().state = Some(state);
    }

    /// Takes the state if it is there, nothing is queued before, and `may` says so of the owner.
    /// Who takes it gives it back with
    /// [`end_in_place`](Self::end_in_place).
    #[inline]
    pub fn try_begin(&self, may: impl FnOnce(usize) -> bool) -> Tried<T> {
        let mut inner = self.0.lock();
        if !inner.jobs.is_empty() || inner.closed || inner.lent || !may(inner.owner) {
            return Tried::Refused;
        }
        inner.state.take().map_or(Tried::Running, Tried::Taken)
    }

    /// Queues a job; registers `waker` if there is no room for it and it is not registered.
    pub fn offer(&self, job: J, waker: Option<&Waker>) -> Offered<J> {
        let mut waker = waker.cloned(); // the user's code, as its drop: not under the lock
        let mut inner = self.0.lock();
        if inner.closed {
            return Offered::Closed(job);
        }
        if inner.lent {
            return Offered::Lent(job);
        }
        if inner.jobs.len() >= inner.capacity {
            inner.wait_for_room(&mut waker);
            drop(inner);
            return Offered::Full(job);
        }
        inner.jobs.push_back(job);
        inner.tell().map_or(Offered::Queued, Offered::Tell)
    }

    /// Queues a job that was accepted before it could be offered, whether or not there is room, and
    /// also if the seat has been closed since. What is to be done is what would be after
    /// [`end`](Self::end). If the state is lent the job comes back, to be done where the state is.
    pub fn offer_late(&self, job: J) -> Result<Ended, J> {
        let mut inner = self.0.lock();
        if inner.lent {
            return Err(job);
        }
        inner.jobs.push_back(job);
        Ok(match (inner.closed, &inner.state) {
            (true, Some(_)) => Ended::GoOn,
            (true, None) => Ended::Nothing, // who holds the state goes on
            (false, _) => inner.tell().map_or(Ended::Nothing, Ended::Tell),
        })
    }

    /// A worker has had a notice: gives it the state and up to `most` jobs, if it owns the shard
    /// and nobody is running.
    pub fn begin(&self, worker: usize, most: usize, batch: &mut VecDeque<J>) -> Begun<T> {
        let mut inner = self.0.lock();
        inner.noticed = false;
        if inner.owner != worker {
            return inner.tell().map_or(Begun::Nothing, Begun::Tell);
        }
        let begun = inner.take(most, batch);
        let waiting = inner.waiting_for_room();
        drop(inner);
        wake_all(waiting);
        begun.map_or(Begun::Nothing, Begun::Run)
    }

    /// Gives the state and up to `most` jobs to whoever asks, if there are some and nobody is
    /// running.
    pub fn begin_anyway(&self, most: usize, batch: &mut VecDeque<J>) -> Option<T> {
        let mut inner = self.0.lock();
        let begun = inner.take(most, batch);
        let waiting = inner.waiting_for_room();
        drop(inner);
        wake_all(waiting);
        begun
    }

    /// Gives the state back, after so many jobs, of which so many only looked.
    pub fn end(&self, state: T, jobs: u64, looks: u64) -> Ended {
        self.0.lock().end(state, jobs, looks)
    }

    /// Says that the state is lent, by who holds it and has put it where callers find it; `false` if
    /// jobs are queued, or the seat is closed: then it is to be given back.
    #[must_use]
    pub fn lend(&self) -> bool {
        let mut inner = self.0.lock();
        inner.lent = inner.jobs.is_empty() && !inner.closed;
        inner.lent
    }

    /// Gives back what was lent, by who took it from where callers found it.
    pub fn settle(&self, state: T) {
        let mut inner = self.0.lock();
        inner.lent = false;
        inner.state = Some(state);
    }

    /// Gives back what [`try_begin`](Self::try_begin) gave, after the caller's own job.
    #[inline]
    pub fn end_in_place(&self, state: T, looks: bool) -> Ended {
        let mut inner = self.0.lock();
        inner.in_place += 1;
        inner.end(state, 1, looks.into())
    }

    /// Gives the shard to another worker. What is queued is run there, in its order. `false` if
    /// the seat is closed, or the worker has the shard already.
    pub fn assign(&self, worker: usize) -> bool {
        let mut inner = self.0.lock();
        let moves = !inner.closed && inner.owner != worker;
        if moves {
            inner.owner = worker;
            inner.moves += 1;
        }
        moves
    }

    /// Lets nothing more in. What is queued is still to be run.
    pub fn close(&self) {
        let mut inner = self.0.lock();
        inner.closed = true;
        let waiting = inner.all_waiting();
        drop(inner);
        wake_all(waiting);
    }

    /// Forgets half of the load, so that what was long ago counts little.
    pub fn age(&self) {
        let mut inner = self.0.lock();
        inner.load /= 2;
        inner.looks /= 2;
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> SeatCounts {
        let inner = self.0.lock();
        SeatCounts {
            owner: inner.owner,
            queued: inner.jobs.len(),
            requests: inner.total,
            in_place: inner.in_place,
            moves: inner.moves,
            load: inner.load,
            looks: inner.looks,
        }
    }
}

impl<T, J> Inner<T, J> {
    #[inline]
    fn end(&mut self, state: T, jobs: u64, looks: u64) -> Ended {
        self.state = Some(state);
        self.load += jobs;
        self.looks += looks;
        self.total += jobs;
        if self.jobs.is_empty() {
            return Ended::Nothing;
        }
        if self.closed {
            return Ended::GoOn;
        }
        self.tell().map_or(Ended::Nothing, Ended::Tell)
    }

    /// Who is to be told that jobs are queued, if somebody is: invariants 2 and 3.
    fn tell(&mut self) -> Option<usize> {
        let needed = !self.noticed && self.state.is_some() && !self.jobs.is_empty();
        self.noticed |= needed;
        needed.then_some(self.owner)
    }

    /// Who is to be woken because there is room now. All of them: who does not get some waits
    /// again.
    fn waiting_for_room(&mut self) -> Vec<Waker> {
        if self.jobs.len() < self.capacity {
            self.all_waiting()
        } else {
            Vec::new()
        }
    }

    fn all_waiting(&mut self) -> Vec<Waker> {
        if !self.waiting.is_empty() {
            self.known = HashSet::new();
        }
        std::mem::take(&mut self.waiting)
    }

    /// Registers a waker, if it is not registered.
    fn wait_for_room(&mut self, waker: &mut Option<Waker>) {
        // What `Waker::will_wake` compares. Registered wakers live, so no other has their data.
        let of = |waker: &Waker| (waker.data().addr(), ptr::from_ref(waker.vtable()).addr());
        if waker
            .as_ref()
            .is_some_and(|waker| self.known.insert(of(waker)))
        {
            self.waiting.extend(waker.take());
        }
    }

    fn take(&mut self, most: usize, batch: &mut VecDeque<J>) -> Option<T> {
        if self.jobs.is_empty() {
            return None;
        }
        let state = self.state.take()?;
        if self.jobs.len() <= most && batch.is_empty() {
            std::mem::swap(&mut self.jobs, batch);
        } else {
            batch.extend(self.jobs.drain(..most.min(self.jobs.len())));
        }
        Some(state)
    }
}

/// Wakes all; a waker's panic is its own, and keeps no other from being woken.
fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        contained(|| waker.wake());
    }
}

impl<T, J> std::fmt::Debug for Seat<T, J> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.counts().fmt(out)
    }
}
