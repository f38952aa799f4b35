//! A delegation lock: the state of one shard and the queue of the jobs that wait for it.
//!
//! A thread that finds the state held does not wait for it: it delegates its job, that is, it
//! queues the job for another thread to run. This is queue delegation locking (D. Klaftenegger, K.
//! Sagonas, K. Winblad, "Queue Delegation Locking", IEEE TPDS 29(3), 2018) with two differences:
//! the lock has an owner, a worker that is notified of queued jobs, and a thread that has run its
//! own job runs only a few jobs of others, as a combiner does (D. Hendler, I. Incze, N. Shavit, M.
//! Tzafrir, "Flat Combining and the Synchronization-Parallelism Tradeoff", SPAA 2010).
//!
//! The queue and the place of the state are behind a [`CombiningLock`]: however many threads meet
//! at a shard, each of their steps costs the same. At a lock of one word that they fight for, a
//! step costs the more the more threads wait, so a queue that has formed by chance stays.
//!
//! Only the thread that holds the state runs jobs. That is the worker that owns the shard, or a
//! caller that finds the state in the lock and no job queued. Changing the owner changes a number
//! and moves no state. If a state may not change threads, the lock keeps a token in its place.
//!
//! The thread that holds the state may share it with all callers, if no job is queued. The lock
//! then queues nothing until the state is back.
//!
//! The thread that holds the state may keep it as long as it likes, for example until an
//! asynchronous function has ended. Meanwhile jobs are queued.
//!
//! Invariants:
//!
//! 1. Jobs leave the queue in the order in which they came, and the thread that holds the state
//!    runs them. A job that is not queued is run only if the queue is empty and the state is in the
//!    lock. So jobs run one at a time, and each caller's in its order, even if the owner changes.
//! 2. If jobs are queued, then a thread holds the state (and sees them in [`DelegationLock::end`]),
//!    or `noticed` is set.
//! 3. If `noticed` is set, a notice is on its way to a worker. A worker that has lost the shard
//!    passes it on.

use std::collections::{HashSet, VecDeque};
use std::ptr;
use std::task::Waker;
use tremula_sync::{CombiningLock, contained};

/// A shard's state, or a token in its place, and the queued jobs. See the [module](self).
pub struct DelegationLock<T, J>(CombiningLock<Inner<T, J>, Option<T>>);

struct Inner<T, J> {
    /// `None` while a thread runs jobs, and until [`DelegationLock::fill`].
    state: Option<T>,
    jobs: VecDeque<J>,
    capacity: usize,
    owner: usize,
    noticed: bool,
    closed: bool,
    /// Whether the state has been given away for good by [`DelegationLock::retire`].
    retired: bool,
    shared: bool,
    /// The wakers of the tasks that wait for room, each once.
    waiting: Vec<Waker>,
    /// The threads that have found the state away and are about to try again.
    retrying: usize,
    /// Identifies the wakers in `waiting`, so that a task that polls repeatedly is found in O(1).
    known: HashSet<(usize, usize)>,
    /// The jobs run since the last [`DelegationLock::age`], plus what it kept of the earlier ones.
    load: u64,
    /// The jobs among `load` that only read.
    reads: u64,
    total: u64,
    in_place: u64,
    moves: u64,
}

/// The most threads that try again while another runs a job. The others queue theirs at once: each
/// thread that tries takes the lock from the thread that wants to give the state back.
const RETRYING: usize = 2;

/// What became of a job that was offered to a lock.
#[derive(Debug, PartialEq, Eq)]
pub enum Offered<J> {
    /// It is queued, and the thread that holds the state will see it.
    Queued,
    /// It is queued, and its worker has been notified. Until the worker comes, the caller may run
    /// it by [`DelegationLock::begin_anyway`].
    Noticed,
    /// It is queued; the caller must notify this worker.
    Notify(usize),
    /// There is no room. The job comes back.
    Full(J),
    /// The lock is closed. The job comes back.
    Closed(J),
    /// The state is shared: the caller must run the job where the state is.
    Shared(J),
}

/// What a caller finds when it tries to run its own job.
#[derive(Debug, PartialEq, Eq)]
pub enum Tried<T> {
    /// It holds the state.
    Taken(T),
    /// Another thread runs a job, which may soon end, and nothing is queued. The owner is this
    /// worker.
    Running(usize),
    /// The caller must queue the job.
    Refused,
}

/// What a worker finds when it serves a lock.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun<T> {
    /// It holds the state, and has a batch of jobs.
    Run(T),
    /// No job is queued, or another thread runs the jobs.
    Nothing,
    /// The shard has another owner, which must be notified.
    Notify(usize),
}

/// What a thread must do after it has given the state back.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing.
    Nothing,
    /// More jobs came: it must notify this worker.
    Notify(usize),
    /// More jobs came, and the lock is closed. The owner may be gone, so the thread must go on with
    /// [`DelegationLock::begin_anyway`].
    GoOn,
}

/// What a thread finds that takes the state out of a closed lock for good.
#[derive(Debug, PartialEq, Eq)]
pub enum Retired<T> {
    /// The state. From now on the lock has none.
    State(T),
    /// Another thread holds the state, or jobs are queued.
    InUse,
    /// The state is shared: the thread must take it back first.
    Shared,
    /// The state has been taken out before.
    Gone,
}

/// What the delegation lock of a shard has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardCounts {
    /// The worker that owns the shard.
    pub owner: usize,
    /// Jobs that are queued.
    pub queued: usize,
    /// Jobs that have been run.
    pub requests: u64,
    /// The jobs among them that their caller ran.
    pub in_place: u64,
    /// How often the owner changed.
    pub moves: u64,
    /// The recent jobs among those that have been run.
    pub load: u64,
    /// The recent jobs that only read.
    pub reads: u64,
}

impl<T, J: Send> DelegationLock<T, J> {
    /// A lock without a state, owned by worker `owner`, whose queue holds `capacity` jobs.
    #[must_use]
    pub fn new(owner: usize, capacity: usize) -> Self {
        Self(CombiningLock::new(Inner {
            state: None,
            jobs: VecDeque::new(),
            capacity,
            owner,
            noticed: false,
            closed: false,
            retired: false,
            shared: false,
            waiting: Vec::new(),
            retrying: 0,
            known: HashSet::new(),
            load: 0,
            reads: 0,
            total: 0,
            in_place: 0,
            moves: 0,
        }))
    }

    /// Puts the state into the lock for the first time, before any job is offered.
    pub fn fill(&self, state: T) {
        self.0
            .run_with(Some(state), |inner, state| inner.state = state.take());
    }

    /// Takes the state if it is in the lock, no job is queued, and the owner is the worker `only`,
    /// if one is given. The thread gives it back with [`end_in_place`](Self::end_in_place). If it
    /// finds [`Tried::Running`], it tries again soon, with [`try_again`](Self::try_again).
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn try_begin(&self, only: Option<usize>) -> Tried<T> {
        match self.0.try_lock() {
            Some(mut inner) => inner.try_begin(only),
            None => self.try_begin_later(only, false),
        }
    }

    /// As [`try_begin`](Self::try_begin), of a thread that has found [`Tried::Running`]. If it does
    /// so again and `is_last`, it does not come back.
    #[cfg_attr(sim, track_caller)]
    pub fn try_again(&self, only: Option<usize>, is_last: bool) -> Tried<T> {
        let tried = self.try_begin_later(only, true);
        match tried {
            Tried::Running(_) if is_last => {
                self.0.run(|inner| inner.retrying -= 1);
                Tried::Refused
            }
            tried => tried,
        }
    }

    #[cfg_attr(sim, track_caller)]
    fn try_begin_later(&self, only: Option<usize>, again: bool) -> Tried<T> {
        let (state, running) = self.0.run_with(None, |inner, taken| {
            inner.retrying -= usize::from(again);
            match inner.try_begin(only) {
                Tried::Taken(state) => {
                    *taken = Some(state);
                    None
                }
                Tried::Running(owner) => Some(owner),
                Tried::Refused => None,
            }
        });
        match (state, running) {
            (Some(state), _) => Tried::Taken(state),
            (None, Some(owner)) => Tried::Running(owner),
            (None, None) => Tried::Refused,
        }
    }

    /// Queues a job. If there is no room, registers `waker`, unless it is registered already.
    #[cfg_attr(sim, track_caller)]
    pub fn offer(&self, job: J, waker: Option<&Waker>) -> Offered<J> {
        let mut waker = waker.cloned(); // user code, like its drop: must not run under the lock
        self.0.run(|inner| {
            if inner.closed {
                return Offered::Closed(job);
            }
            if inner.shared {
                return Offered::Shared(job);
            }
            if inner.jobs.len() >= inner.capacity {
                inner.wait_for_room(&mut waker);
                return Offered::Full(job);
            }
            inner.jobs.push_back(job);
            match inner.notice() {
                Some(worker) => Offered::Notify(worker),
                None if inner.state.is_some() => Offered::Noticed,
                None => Offered::Queued,
            }
        })
    }

    /// Queues a job that was accepted before it could be offered, even if there is no room or the
    /// lock has been closed since. Returns what the thread must do, like [`end`](Self::end).
    ///
    /// # Errors
    ///
    /// The job comes back as [`Offered::Shared`] if the state is shared: the caller must run it
    /// where the state is. It comes back as [`Offered::Closed`] if the state has been given away.
    pub fn offer_late(&self, job: J) -> Result<Ended, Offered<J>> {
        self.0.run(|inner| {
            if inner.shared {
                return Err(Offered::Shared(job));
            }
            if inner.retired {
                return Err(Offered::Closed(job));
            }
            inner.jobs.push_back(job);
            Ok(match (inner.closed, &inner.state) {
                (true, Some(_)) => Ended::GoOn,
                (true, None) => Ended::Nothing, // the thread that holds the state runs the job
                (false, _) => inner.notice().map_or(Ended::Nothing, Ended::Notify),
            })
        })
    }

    /// Gives the notified worker the state and up to `most` jobs, if it owns the shard and no
    /// thread holds the state.
    #[cfg_attr(sim, track_caller)]
    pub fn begin(&self, worker: usize, most: usize, batch: &mut VecDeque<J>) -> Begun<T> {
        let (state, (another, waiting)) = self.0.run_with(None, |inner, taken| {
            inner.noticed = false;
            if inner.owner != worker {
                return (inner.notice(), Vec::new());
            }
            *taken = inner.take(most, batch);
            (None, inner.waiting_for_room())
        });
        wake_all(waiting);
        match (state, another) {
            (Some(state), _) => Begun::Run(state),
            (None, Some(another)) => Begun::Notify(another),
            (None, None) => Begun::Nothing,
        }
    }

    /// Gives any thread the state and up to `most` jobs, if jobs are queued and the state is free.
    #[cfg_attr(sim, track_caller)]
    pub fn begin_anyway(&self, most: usize, batch: &mut VecDeque<J>) -> Option<T> {
        let (state, waiting) = self.0.run_with(None, |inner, taken| {
            *taken = inner.take(most, batch);
            inner.waiting_for_room()
        });
        wake_all(waiting);
        state
    }

    /// Gives back jobs of a batch that were not run, and records that `jobs` others were, of which
    /// `reads` only read. The calling thread holds the state, and so no job is taken meanwhile: the
    /// jobs come first again, in their order, even if there is no room.
    pub fn put_back(&self, batch: &mut VecDeque<J>, jobs: u64, reads: u64) {
        self.0.run(|inner| {
            while let Some(job) = batch.pop_back() {
                inner.jobs.push_front(job);
            }
            inner.count(jobs, reads);
        });
    }

    /// Gives the state back after `jobs` jobs, of which `reads` only read.
    #[cfg_attr(sim, track_caller)]
    pub fn end(&self, state: T, jobs: u64, reads: u64) -> Ended {
        let operation =
            |inner: &mut Inner<T, J>, state: &mut Option<T>| inner.end(state.take(), jobs, reads);
        self.0.run_with(Some(state), operation).1
    }

    /// Records that the state is shared. The calling thread holds the state and has put it where
    /// callers find it. Returns `false` if jobs are queued or the lock is closed: then the thread
    /// must give the state back.
    #[must_use]
    pub fn share(&self) -> bool {
        self.0.run(|inner| {
            inner.shared = inner.jobs.is_empty() && !inner.closed;
            inner.shared
        })
    }

    /// Gives back a shared state. The calling thread has taken it from where callers found it.
    pub fn unshare(&self, state: T) {
        self.0.run_with(Some(state), |inner, state| {
            inner.shared = false;
            inner.state = state.take();
        });
    }

    /// Gives back the state from [`try_begin`](Self::try_begin), after the caller's own job.
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn end_in_place(&self, state: T, reads: bool) -> Ended {
        let end = |inner: &mut Inner<T, J>, state: &mut Option<T>| {
            inner.in_place += 1;
            inner.end(state.take(), 1, reads.into())
        };
        let mut state = Some(state);
        match self.0.try_lock() {
            Some(mut inner) => end(&mut inner, &mut state),
            None => self.0.run_with(state, end).1,
        }
    }

    /// Gives the shard to another worker, which runs the queued jobs in their order. Returns
    /// `false` if the lock is closed or the worker owns the shard already.
    pub fn assign(&self, worker: usize) -> bool {
        self.0.run(|inner| {
            let moves = !inner.closed && inner.owner != worker;
            if moves {
                inner.owner = worker;
                inner.moves += 1;
            }
            moves
        })
    }

    /// Refuses jobs from now on. The queued jobs must still be run.
    pub fn close(&self) {
        let waiting = self.0.run(|inner| {
            inner.closed = true;
            inner.all_waiting()
        });
        wake_all(waiting);
    }

    /// Takes the state out of a closed lock for good, if no job is queued. Late jobs are refused
    /// from then on.
    pub fn retire(&self) -> Retired<T> {
        let (state, (is_gone, is_shared)) = self.0.run_with(None, |inner, taken| {
            let found = (inner.retired, inner.shared);
            if found == (false, false) && inner.closed && inner.jobs.is_empty() {
                *taken = inner.state.take();
                inner.retired = taken.is_some();
            }
            found
        });
        match state {
            Some(state) => Retired::State(state),
            None if is_gone => Retired::Gone,
            None if is_shared => Retired::Shared,
            None => Retired::InUse,
        }
    }

    /// Halves the load, so that old jobs count little.
    pub fn age(&self) {
        self.0.run(|inner| {
            inner.load /= 2;
            inner.reads /= 2;
        });
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> ShardCounts {
        self.0.run(|inner| ShardCounts {
            owner: inner.owner,
            queued: inner.jobs.len(),
            requests: inner.total,
            in_place: inner.in_place,
            moves: inner.moves,
            load: inner.load,
            reads: inner.reads,
        })
    }
}

impl<T, J> Inner<T, J> {
    #[inline]
    fn try_begin(&mut self, only: Option<usize>) -> Tried<T> {
        let is_mine = only.is_none_or(|worker| worker == self.owner);
        if !self.jobs.is_empty() || self.closed || self.shared || !is_mine {
            return Tried::Refused;
        }
        match self.state.take() {
            Some(state) => Tried::Taken(state),
            None if self.retrying < RETRYING => {
                self.retrying += 1;
                Tried::Running(self.owner)
            }
            None => Tried::Refused,
        }
    }

    #[inline]
    fn end(&mut self, state: Option<T>, jobs: u64, reads: u64) -> Ended {
        self.state = state;
        self.count(jobs, reads);
        if self.jobs.is_empty() {
            return Ended::Nothing;
        }
        if self.closed {
            return Ended::GoOn;
        }
        self.notice().map_or(Ended::Nothing, Ended::Notify)
    }

    #[inline]
    fn count(&mut self, jobs: u64, reads: u64) {
        self.load += jobs;
        self.reads += reads;
        self.total += jobs;
    }

    /// The worker to notify of the queued jobs, if invariants 2 and 3 require it.
    fn notice(&mut self) -> Option<usize> {
        let needed = !self.noticed && self.state.is_some() && !self.jobs.is_empty();
        self.noticed |= needed;
        needed.then_some(self.owner)
    }

    /// Takes all wakers if there is room now. A task that gets no room registers again.
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
        // These are what `Waker::will_wake` compares. Registered wakers are alive, so no other
        // waker has the same data.
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

/// Wakes all tasks. If one waker panics, the others are still woken.
fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        contained(|| waker.wake());
    }
}

impl<T, J: Send> std::fmt::Debug for DelegationLock<T, J> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.counts().fmt(out)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_keeps_its_state_until_the_last_queued_job_has_run() {
        let lock = DelegationLock::new(0, 2);
        lock.fill("state");
        assert_eq!(lock.retire(), Retired::InUse, "it is not closed");
        assert_eq!(lock.offer(1, None), Offered::Notify(0));
        lock.close();
        assert_eq!(lock.offer(2, None), Offered::Closed(2));
        assert_eq!(lock.retire(), Retired::InUse, "a job is queued");
        let mut batch = VecDeque::new();
        assert_eq!(lock.begin_anyway(2, &mut batch), Some("state"));
        assert_eq!(batch, [1]);
        assert_eq!(lock.retire(), Retired::InUse, "the job runs");
        assert_eq!(lock.end("state", 1, 0), Ended::Nothing);
        assert_eq!(lock.retire(), Retired::State("state"));
        assert_eq!(lock.retire(), Retired::Gone);
    }
}
