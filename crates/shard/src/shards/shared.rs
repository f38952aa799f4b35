//! The strategy `threading`: shards behind readers-writer locks.

use super::StartError;
use super::backend::{Backend, FailureCounts, Shape, Submitted};
use super::config::Config;
use super::request::{Access, Job, Operation, Outcome, Ran, Request, Wakes, message, perform};
use super::running::{
    Outermost, Running, Tag, defer, has_deferred, is_running, run_deferred_of, runs_beside, runs_on,
};
use super::tally::Tally;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use tremula_sync::system::Arc;
use tremula_sync::{CachePadded, RwLock};

pub(super) struct Shared<S> {
    states: Arc<States<S>>,
}

/// The states and their locks.
pub(super) struct States<S> {
    identity: u32,
    locks: Box<[CachePadded<RwLock<S>>]>,
    requests: Tally,
    failures: FailureCounts,
}

impl<S: Send + Sync + 'static> Shared<S> {
    pub(super) fn start(
        config: &Config,
        identity: u32,
        make: impl Fn(usize) -> S,
    ) -> Result<Self, StartError> {
        let lock = |shard| CachePadded::new(RwLock::new(make(shard)));
        let locks = catch_unwind(AssertUnwindSafe(|| {
            (0..config.shard_count()).map(lock).collect()
        }));
        Ok(Self {
            states: Arc::new(States {
                identity,
                locks: locks.map_err(|panic| StartError::State(message(panic)))?,
                requests: Tally::default(),
                failures: FailureCounts::default(),
            }),
        })
    }
}

impl<S: Send + Sync + 'static> Shared<S> {
    pub(super) fn states(&self) -> Arc<States<S>> {
        Arc::clone(&self.states)
    }
}

impl<S: 'static> States<S> {
    /// Runs an operation under the shard's lock. The thread must not be running a function.
    #[inline]
    pub(super) fn run<O: Operation<S>>(&self, shard: usize, operation: O) -> Outcome<O::Output> {
        let _running = Outermost::on(self.tag(shard)); // dropped after the lock
        let lock = &self.locks[shard];
        self.requests.add();
        let outcome = if O::SHARED {
            perform(operation, Access::Shared(&lock.read()))
        } else {
            perform(operation, Access::Exclusive(&mut lock.write()))
        };
        self.failures.note(Ran::of(&outcome));
        outcome
    }

    #[inline]
    fn tag(&self, shard: usize) -> Tag {
        Tag::new(self.identity, shard)
    }

    /// Runs a request under the shard's lock.
    fn run_request(&self, shard: usize, request: &mut dyn Request<S>) {
        let _running = Running::on(self.tag(shard));
        let lock = &self.locks[shard];
        let ran = if request.is_shared() {
            request.run(Access::Shared(&lock.read()))
        } else {
            request.run(Access::Exclusive(&mut lock.write()))
        };
        self.requests.add();
        self.failures.note(ran);
    }

    /// Like [`run_request`](Self::run_request), but returns `false` instead of waiting.
    fn try_run_request(&self, shard: usize, request: &mut dyn Request<S>) -> bool {
        let _running = Running::on(self.tag(shard));
        let lock = &self.locks[shard];
        let ran = if request.is_shared() {
            lock.try_read()
                .map(|state| request.run(Access::Shared(&state)))
        } else {
            lock.try_write()
                .map(|mut state| request.run(Access::Exclusive(&mut state)))
        };
        let Some(ran) = ran else {
            return false;
        };
        self.requests.add();
        self.failures.note(ran);
        true
    }

    /// Runs a job under the shard's lock.
    fn run_job(&self, shard: usize, job: &Job<S>) {
        let mut wakes = Wakes::default();
        let running = Running::on(self.tag(shard));
        let ran = job.run(&mut self.locks[shard].write(), &mut wakes);
        self.requests.add();
        self.failures.note(ran);
        drop(running);
        wakes.wake();
    }
}

impl<S: Send + Sync + 'static> Shared<S> {
    /// Submits a request of a function. The function's thread holds the lock of its own shard, and
    /// the thread that holds the lock wanted here may be waiting for that one. So this waits for no
    /// lock of the same shards. A call on other shards may wait, since its caller may.
    fn submit_from_function(&self, shard: usize, request: &mut dyn Request<S>) -> Submitted {
        let (states, tag) = (&*self.states, self.states.tag(shard));
        if request.is_wanted() && !runs_on(tag) {
            if !runs_beside(tag) {
                run_deferred_of(tag);
                states.run_request(shard, request);
                return Submitted::Ran;
            }
            if !has_deferred(tag) && states.try_run_request(shard, request) {
                return Submitted::Ran;
            }
        }
        let (states, job) = (Arc::clone(&self.states), request.job(true));
        defer(tag, Box::new(move || states.run_job(shard, &job)));
        Submitted::Queued
    }
}

impl<S: Send + Sync + 'static> Backend<S> for Shared<S> {
    #[inline]
    fn submit(&self, shard: usize, request: &mut dyn Request<S>, _: Option<&Waker>) -> Submitted {
        if is_running() {
            return self.submit_from_function(shard, request);
        }
        self.states.run_request(shard, request);
        Submitted::Ran
    }

    fn move_shard(&self, _: usize, _: usize) -> bool {
        false
    }

    fn shape(&self) -> Shape {
        let requests = self.states.requests.sum();
        let mut shape = Shape {
            requests,
            in_place: requests,
            ..Shape::default()
        };
        self.states.failures.add_to(&mut shape);
        shape
    }

    fn close(&self) {
        // There are no workers to end: callers run everything themselves.
    }
}
