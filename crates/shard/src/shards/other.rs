//! Forms that other crates implement: what such a crate implements, and the backend over it.
//!
//! Such a crate knows neither the type of the states nor that of the requests: it keeps states as
//! `dyn Any`, and lends them to requests ([`Queued::run`]).

use super::StartError;
use super::backend::{Backend, FailureCounts, Shape, StateLost, Submitted};
use super::config::Config;
use super::request::{self, Job, Ran, Request, Wakes};
use super::running::{Running, Tag, runs_beside};
use super::tally::Tally;
use super::{call, worker};
use std::any::Any;
use std::fmt;
use std::task::Waker;
use tremula_sync::system::Arc;
use tremula_sync::thread::JoinHandle;

/// Makes the state of a shard that threads share.
pub type MakeShared = dyn Fn(usize) -> Box<dyn Any + Send + Sync> + Send + Sync;

/// Makes the state of a shard that belongs to one thread.
pub type MakeOwned = dyn Fn(usize) -> Box<dyn Any> + Send + Sync;

/// A form that another crate implements: see [`Form::Other`](super::Form::Other).
pub trait OtherForm: fmt::Debug + Sync {
    /// The name, which distinguishes it from other forms.
    fn name(&self) -> &'static str;

    /// Starts the executor of the strategy `threading`.
    ///
    /// # Errors
    ///
    /// The same as for [`Shards::start`](super::Shards::start).
    fn start_shared(
        &self,
        config: &Config,
        members: Members,
        make: Arc<MakeShared>,
    ) -> Result<Arc<dyn Executor>, StartError>;

    /// Starts the executor of an owning strategy.
    ///
    /// # Errors
    ///
    /// The same as for [`Shards::start_local`](super::Shards::start_local).
    fn start_owned(
        &self,
        config: &Config,
        members: Members,
        make: Arc<MakeOwned>,
    ) -> Result<Arc<dyn Executor>, StartError>;
}

/// Runs requests.
pub trait Executor: Send + Sync {
    /// Queues a request, which must be run once.
    ///
    /// # Errors
    ///
    /// The executor is closed. The request comes back.
    fn submit(&self, request: Queued) -> Result<(), Queued>;

    /// How many workers there are.
    fn workers(&self) -> usize;

    /// Refuses requests from now on, finishes the queued ones, and ends the workers.
    fn close(&self);
}

/// The threads of some shards.
#[derive(Clone, Copy, Debug)]
pub struct Members(u32);

impl Members {
    /// Marks this thread as the worker of this number.
    pub fn note_worker(self, number: usize) {
        worker::note_worker(self.0, number);
    }

    /// Whether this thread runs a function of these shards.
    #[must_use]
    pub fn is_running_here(self) -> bool {
        runs_beside(Tag::new(self.0, 0))
    }
}

/// A queued request.
pub struct Queued {
    shard: usize,
    job: Box<dyn Erased>,
    counts: Arc<Counts>,
}

impl fmt::Debug for Queued {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Queued for shard {}", self.shard)
    }
}

impl Queued {
    /// The shard of the request.
    #[must_use]
    pub const fn shard(&self) -> usize {
        self.shard
    }

    /// Runs the request. `lend` must lend the shard's state to its argument, and must have released
    /// the state when it returns.
    pub fn run(self, lend: impl FnOnce(&mut dyn FnMut(&mut dyn Any))) {
        let mut wakes = Wakes::default();
        self.counts.requests.add();
        let running = Running::on(Tag::new(self.counts.identity, self.shard));
        let mut ran = Ran::Cancelled;
        lend(&mut |state| ran = self.job.run(state, &mut wakes));
        self.counts.failures.note(ran);
        drop(running);
        wakes.wake();
    }
}

/// A job on a state whose type only the job knows.
trait Erased: Send + Sync {
    fn run(&self, state: &mut dyn Any, wakes: &mut Wakes) -> Ran;
}

struct Typed<S>(Job<S>);

impl<S: 'static> Erased for Typed<S> {
    fn run(&self, state: &mut dyn Any, wakes: &mut Wakes) -> Ran {
        match state.downcast_mut() {
            Some(state) => self.0.run(state, wakes),
            None => unreachable!("the states of these shards are of one type"),
        }
    }
}

struct Counts {
    identity: u32,
    requests: Tally,
    failures: FailureCounts,
}

/// Shards whose requests travel in a form of another crate.
pub(super) struct Other {
    executor: Arc<dyn Executor>,
    counts: Arc<Counts>,
    shards: usize,
}

impl Other {
    fn over(executor: Arc<dyn Executor>, identity: u32, config: &Config) -> Self {
        let counts = Counts {
            identity,
            requests: Tally::default(),
            failures: FailureCounts::default(),
        };
        Self {
            executor,
            counts: Arc::new(counts),
            shards: config.shard_count(),
        }
    }

    pub(super) fn start_shared<S: Send + Sync + 'static>(
        form: &dyn OtherForm,
        config: &Config,
        identity: u32,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let make = Arc::new(move |shard| -> Box<dyn Any + Send + Sync> { Box::new(make(shard)) });
        let executor = form.start_shared(config, Members(identity), make)?;
        Ok(Self::over(executor, identity, config))
    }

    pub(super) fn start_owned<S: 'static>(
        form: &dyn OtherForm,
        config: &Config,
        identity: u32,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let make = Arc::new(move |shard| -> Box<dyn Any> { Box::new(make(shard)) });
        let executor = form.start_owned(config, Members(identity), make)?;
        Ok(Self::over(executor, identity, config))
    }
}

impl<S: 'static> Backend<S> for Other {
    fn submit(&self, shard: usize, request: &mut dyn Request<S>, _: Option<&Waker>) -> Submitted {
        let queued = Queued {
            shard,
            job: Box::new(Typed(request.job(false))),
            counts: Arc::clone(&self.counts),
        };
        match self.executor.submit(queued) {
            Ok(()) => Submitted::Queued,
            Err(_) => {
                request.take_back();
                Submitted::Closed
            }
        }
    }

    fn submit_asynchronous(&self, _: usize, _: &Job<S>, _: Option<&Waker>) -> Submitted {
        Submitted::NoExecutor("the form of these shards runs none".to_owned())
    }

    fn move_shard(&self, _: usize, _: usize) -> bool {
        false
    }

    fn shape(&self) -> Shape {
        let mut shape = Shape {
            requests: self.counts.requests.sum(),
            workers: self.executor.workers(),
            ..Shape::default()
        };
        self.counts.failures.add_to(&mut shape);
        shape
    }

    fn close(&self) {
        self.executor.close();
    }

    fn shutdown(&self) -> Vec<Result<S, StateLost>> {
        self.executor.close();
        let lost = |shard| Err(StateLost::Local { shard });
        (0..self.shards).map(lost).collect()
    }
}

/// The text of a panic's payload.
#[must_use]
pub fn message(payload: Box<dyn Any + Send>) -> String {
    request::message(payload)
}

/// Waits for threads to end, except for the calling one.
pub fn join(threads: Vec<JoinHandle<()>>) {
    worker::join(threads);
}

/// Blocks the thread until a future is ready.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    call::block_on(future)
}
