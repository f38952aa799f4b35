//! The strategy `threading`: shards behind readers-writer locks.

use super::StartError;
use super::backend::{Backend, Rare, Shape, Submitted};
use super::config::{Config, Form};
use super::request::{Access, Job, Operation, Outcome, Ran, Request, Wakes, message, perform};
use super::running::{
    Outermost, Running, Tag, defer, has_deferred, is_running, run_deferred_of, runs_beside, runs_on,
};
use super::tally::Tally;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};
use tokio::runtime::{Builder, Runtime};
use tremula_sync::atomic::{AtomicUsize, Ordering};
use tremula_sync::system::Arc;
use tremula_sync::{CachePadded, Mutex, RwLock};

pub(super) struct Shared<S> {
    states: Arc<States<S>>,
    /// In the article's form: where requests are tasks. Gone when closed.
    runtime: Mutex<Option<Runtime>>,
    form: Form,
    workers: usize,
}

/// The states and their locks.
pub(super) struct States<S> {
    identity: u32,
    locks: Box<[CachePadded<RwLock<S>>]>,
    requests: Tally,
    rare: Rare,
    /// Tasks that have not ended.
    tasks: AtomicUsize,
    /// Who waits for them to end.
    idle: Mutex<Option<Waker>>,
    /// The runtime of shards that were dropped by one of their own tasks: the last task ends it.
    left: Mutex<Option<Runtime>>,
}

impl<S: Send + Sync + 'static> Shared<S> {
    pub(super) fn start(
        config: &Config,
        identity: u32,
        make: impl Fn(usize) -> S,
    ) -> Result<Self, StartError> {
        let workers = config.worker_count();
        let (runtime, workers) = match config.form {
            Form::Direct => (None, 0),
            Form::Article => {
                let mut builder = Builder::new_multi_thread();
                let runtime = builder.worker_threads(workers).build();
                (Some(runtime.map_err(StartError::Thread)?), workers)
            }
        };
        let lock = |shard| CachePadded::new(RwLock::new(make(shard)));
        let locks = catch_unwind(AssertUnwindSafe(|| {
            (0..config.shard_count()).map(lock).collect()
        }));
        Ok(Self {
            states: Arc::new(States {
                identity,
                locks: locks.map_err(|panic| StartError::State(message(panic)))?,
                requests: Tally::default(),
                rare: Rare::default(),
                tasks: AtomicUsize::new(0),
                idle: Mutex::new(None),
                left: Mutex::new(None),
            }),
            runtime: Mutex::new(runtime),
            form: config.form,
            workers,
        })
    }
}

impl<S: Send + Sync + 'static> Shared<S> {
    pub(super) fn states(&self) -> Arc<States<S>> {
        Arc::clone(&self.states)
    }
}

impl<S: 'static> States<S> {
    /// Runs an operation under the shard's lock, on a thread that runs no function.
    #[inline]
    pub(super) fn run<O: Operation<S>>(&self, shard: usize, operation: O) -> Outcome<O::Output> {
        let _running = Outermost::on(self.tag(shard)); // outlives the lock
        let lock = &self.locks[shard];
        self.requests.add();
        let outcome = if O::SHARED {
            perform(operation, Access::Shared(&lock.read()))
        } else {
            perform(operation, Access::Exclusive(&mut lock.write()))
        };
        self.rare.note(Ran::of(&outcome));
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
        self.rare.note(ran);
    }

    /// The same, if the lock need not be waited for.
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
        self.rare.note(ran);
        true
    }

    /// Runs a job under the shard's lock.
    fn run_job(&self, shard: usize, job: &Job<S>) {
        let mut wakes = Wakes::default();
        let running = Running::on(self.tag(shard));
        let ran = job.run(&mut self.locks[shard].write(), &mut wakes);
        self.requests.add();
        self.rare.note(ran);
        drop(running);
        wakes.wake();
    }
}

impl<S: Send + Sync + 'static> Shared<S> {
    /// What a function asks for. It holds its own shard's lock, and a thread that runs a function of
    /// another shard may want this one's and hold the one wanted here: so no lock of the same shards
    /// is waited for. A call on shards of another kind may wait, as its caller is free to.
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

/// A task that has not ended, even if it is dropped.
struct Task<S>(Arc<States<S>>);

impl<S> Drop for Task<S> {
    fn drop(&mut self) {
        // SeqCst, as the look in `close`: of the two, one sees the other.
        if self.0.tasks.fetch_sub(1, Ordering::SeqCst) == 1 {
            let waiting = self.0.idle.lock().take();
            if let Some(waker) = waiting {
                waker.wake();
            }
            let left = self.0.left.lock().take();
            if let Some(runtime) = left {
                runtime.shutdown_background();
            }
        }
    }
}

impl<S: Send + Sync + 'static> Backend<S> for Shared<S> {
    #[inline]
    fn submit(&self, shard: usize, request: &mut dyn Request<S>, _: Option<&Waker>) -> Submitted {
        let states = &*self.states;
        if self.form == Form::Direct {
            if is_running() {
                return self.submit_from_function(shard, request);
            }
            states.run_request(shard, request);
            return Submitted::Ran;
        }
        let runtime = self.runtime.lock();
        let Some(handle) = runtime.as_ref().map(|runtime| runtime.handle().clone()) else {
            return Submitted::Closed;
        };
        states.tasks.fetch_add(1, Ordering::SeqCst);
        drop(runtime);
        let task = Task(Arc::clone(&self.states));
        let job = request.job(false);
        handle.spawn(async move {
            task.0.run_job(shard, &job);
        });
        Submitted::Queued
    }

    fn move_shard(&self, _: usize, _: usize) -> bool {
        false
    }

    fn shape(&self) -> Shape {
        let requests = self.states.requests.sum();
        let mut shape = Shape {
            requests,
            workers: self.workers,
            ..Shape::default()
        };
        if self.form == Form::Direct {
            shape.in_place = requests;
        }
        self.states.rare.add_to(&mut shape);
        shape
    }

    fn close(&self) {
        let Some(runtime) = self.runtime.lock().take() else {
            return;
        };
        let states = &*self.states;
        if runs_beside(states.tag(0)) {
            // A function drops the last handle: to wait for all tasks would be to wait for its own.
            // What is queued is finished after this, and its own task is not the last to end before
            // the runtime lies where that one looks.
            *states.left.lock() = Some(runtime);
            return;
        }
        let ended = poll_fn(|cx| {
            *states.idle.lock() = Some(cx.waker().clone());
            if states.tasks.load(Ordering::SeqCst) == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        super::call::block_on(ended);
        runtime.shutdown_background();
    }
}
