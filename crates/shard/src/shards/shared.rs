//! The strategy `threading`: shards behind readers-writer locks.

use super::StartError;
use super::backend::{Backend, Rare, Shape, Submitted};
use super::config::{Config, Form};
use super::request::{Access, Operation, Outcome, Ran, Request, Wakes, message, perform};
use super::tally::Tally;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use tokio::runtime::{Builder, Runtime};
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
    locks: Box<[CachePadded<RwLock<S>>]>,
    requests: Tally,
    rare: Rare,
    /// Tasks that have not ended.
    tasks: AtomicUsize,
    /// Who waits for them to end.
    idle: Mutex<Option<Waker>>,
}

impl<S: Send + Sync + 'static> Shared<S> {
    pub(super) fn start(config: &Config, make: impl Fn(usize) -> S) -> Result<Self, StartError> {
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
                locks: locks.map_err(|panic| StartError::State(message(&*panic)))?,
                requests: Tally::default(),
                rare: Rare::default(),
                tasks: AtomicUsize::new(0),
                idle: Mutex::new(None),
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
    /// Runs an operation under the shard's lock.
    #[inline]
    pub(super) fn run<O: Operation<S>>(&self, shard: usize, operation: O) -> Outcome<O::Output> {
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
        }
    }
}

impl<S: Send + Sync + 'static> Backend<S> for Shared<S> {
    #[inline]
    fn submit(&self, shard: usize, request: &mut dyn Request<S>, _: Option<&Waker>) -> Submitted {
        let states = &*self.states;
        if self.form == Form::Direct {
            let lock = &states.locks[shard];
            states.requests.add();
            let ran = if request.is_shared() {
                request.run(Access::Shared(&lock.read()))
            } else {
                request.run(Access::Exclusive(&mut lock.write()))
            };
            states.rare.note(ran);
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
            let states = &*task.0;
            states.requests.add();
            let mut wakes = Wakes::default();
            let ran = job.run(&mut states.locks[shard].write(), &mut wakes);
            states.rare.note(ran);
            wakes.wake();
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
