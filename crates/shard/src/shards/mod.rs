//! Shards of state, and the threads that run the functions on them.

mod asynchronous;
mod backend;
mod balance;
mod call;
mod config;
pub(crate) mod other;
mod owned;
mod request;
mod running;
mod serving;
mod shared;
mod shared_state;
mod state_handle;
mod tally;
mod worker;

pub use asynchronous::AsyncCall;
use asynchronous::AsyncRequest;
use backend::{Backend, Submitted};
pub use backend::{Shape, StateLost};
pub use call::Call;
pub use config::{Balance, Config, Form, Strategy, UnknownStrategy};
use foldhash::fast::RandomState;
use other::Other;
pub use request::{Access, CallError, Change, Operation, Read};
use request::{Job, Pending};
use running::{Tag, is_running, next_identity};
use std::any::Any;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::io;
use tremula_sync::system::Arc;

/// Why shards could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The system refused a thread or a runtime.
    #[error("a worker could not be started: {0}")]
    Thread(io::Error),
    /// Making a state panicked, with this message.
    #[error("making the state of a shard panicked: {0}")]
    State(String),
    /// Strategy `threading` cannot run states that must stay on one thread.
    #[error(
        "strategy 'threading' shares states; states that stay on a thread need an owning strategy, such as 'affinity'"
    )]
    NotShared,
}

/// Why a request was not sent. Holds the function.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<F> {
    /// The shard's queue has no room at the moment.
    #[error("the shard's queue is full")]
    Full(F),
    /// The shards are shut down.
    #[error("the shards are shut down")]
    Closed(F),
    /// No thread can run the asynchronous function.
    #[error("no thread can run the asynchronous function")]
    NoExecutor(F),
}

impl<F> fmt::Debug for SendError<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
            Self::NoExecutor(_) => "NoExecutor(..)",
        })
    }
}

/// Why a shard was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// There is no such shard.
    #[error("there is no shard {shard}; there are {shards}")]
    NoShard {
        /// The number given.
        shard: usize,
        /// How many there are.
        shards: usize,
    },
    /// There is no such worker.
    #[error("there is no worker {worker}; there are {workers}")]
    NoWorker {
        /// The number given.
        worker: usize,
        /// How many there are.
        workers: usize,
    },
    /// The strategy, its form or the kind of states does not let shards move.
    #[error("these shards do not move")]
    Fixed,
}

/// States, each of which is one shard, and functions that run on them: on the caller's thread under
/// a lock, or on the thread that owns the shard. The [`Strategy`] decides.
///
/// Functions on one shard run one at a time (except [`read`](Self::read)), each caller's in its
/// order, so that operations on one shard are linearizable. A caller is a thread or a task: its
/// earlier requests are done before its later ones. There is no order between shards.
///
/// A function that panics fails its own call; the shard keeps the state that the function left.
/// Functions must be brief. They may [`send`](Self::send) to any shard, including their own: what
/// they send runs after them, never on top of them. They must not wait for calls on the same
/// shards: [`Call::wait`] and awaiting then give [`CallError::OnWorker`], unless the result is
/// already there. A function that waits for a call on its *own* shard panics in a build with debug
/// assertions, and always gets [`CallError::OnWorker`] without them.
///
/// A call that finds the shard's queue full is made only when it is awaited and there is room. What
/// the same caller asks of the shard in between is done before it. This does not affect callers
/// that await each call before the next one.
///
/// An asynchronous function ([`call_async`](Self::call_async)) may await calls on other shards, and
/// anything else.
///
/// Dropping the shards finishes what is queued, interrupts asynchronous functions, and ends the
/// workers. [`shutdown`](Self::shutdown) also gives the states back.
///
/// ```
/// use std::collections::HashMap;
/// use tremula_shard::{Config, Shards, Strategy};
///
/// for &strategy in Strategy::ALL {
///     let config = Config::new(strategy).workers(2);
///     let shards = Shards::start(config, |_| HashMap::<&str, u32>::new()).unwrap();
///     shards.send("apple", |counts| *counts.entry("apple").or_default() += 1).unwrap();
///     let apples = shards.call("apple", |counts| counts.get("apple").copied());
///     assert_eq!(apples.wait(), Ok(Some(1)));
///     // Or, in a task: `apples.await`.
///     assert_eq!(shards.shape().requests, 2);
/// }
/// ```
pub struct Shards<S: 'static> {
    backend: Arc<dyn Backend<S>>,
    in_place: InPlace,
    identity: u32,
    shards: usize,
    hasher: RandomState,
    strategy: Strategy,
}

/// How a request runs in place, on the calling thread. It is the part of the backend that this
/// needs, downcast where the type of the request is known, so that the path can be inlined. The
/// type is erased because shards can be sent whether or not their states can.
enum InPlace {
    /// Shards under the strategy `threading`.
    Shared(Arc<dyn Any + Send + Sync>),
    /// Shards that workers own.
    Owned(Arc<dyn Any + Send + Sync>),
    /// Requests never run in place.
    Never,
}

impl<S: Send + Sync + 'static> Shards<S> {
    /// Starts shards under any strategy. `make` is called with each shard's number; under the
    /// owning strategies, the shard's worker calls it.
    ///
    /// States that are `Send` but not `Sync` can be wrapped in a `Mutex`.
    ///
    /// # Errors
    ///
    /// The system refuses a thread, or making a state panics.
    pub fn start(
        config: Config,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let identity = next_identity();
        let (backend, in_place): (Arc<dyn Backend<S>>, _) = match (config.strategy, config.form) {
            (Strategy::Threading, Form::Direct) => {
                let shared = shared::Shared::start(&config, identity, make)?;
                let in_place = InPlace::Shared(shared.states());
                (Arc::new(shared), in_place)
            }
            (Strategy::Threading, Form::Other(form)) => {
                let other = Other::start_shared(form, &config, identity, make)?;
                (Arc::new(other), InPlace::Never)
            }
            (_, Form::Other(form)) => {
                let other = Other::start_owned(form, &config, identity, make)?;
                (Arc::new(other), InPlace::Never)
            }
            (_, Form::Direct) => {
                let owned =
                    owned::Owned::<S, state_handle::Movable<S>>::start(&config, identity, make)?;
                let in_place = InPlace::Owned(owned.core());
                (Arc::new(owned), in_place)
            }
        };
        Ok(Self::over(backend, in_place, identity, &config))
    }
}

impl<S: 'static> Shards<S> {
    /// Starts shards whose states never leave their worker, and so need not be `Send`. These shards
    /// do not move, and only their worker runs functions on them.
    ///
    /// # Errors
    ///
    /// The strategy is [`Strategy::Threading`], the system refuses a thread, or `make` panics.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc};
    /// use tremula_shard::{Config, Shards, Strategy};
    ///
    /// let config = Config::new(Strategy::Affinity).workers(1);
    /// let shards = Shards::start_local(config, |_| Rc::new(Cell::new(1))).unwrap();
    /// assert_eq!(shards.call(7, |cell| cell.replace(2)).wait(), Ok(1));
    /// ```
    pub fn start_local(
        config: Config,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let identity = next_identity();
        let backend: Arc<dyn Backend<S>> = match (config.strategy, config.form) {
            (Strategy::Threading, _) => return Err(StartError::NotShared),
            (_, Form::Other(form)) => Arc::new(Other::start_owned(form, &config, identity, make)?),
            (_, Form::Direct) => {
                let start = owned::Owned::<S, state_handle::Fixed>::start;
                Arc::new(start(&config, identity, make)?)
            }
        };
        Ok(Self::over(backend, InPlace::Never, identity, &config))
    }

    fn over(
        backend: Arc<dyn Backend<S>>,
        in_place: InPlace,
        identity: u32,
        config: &Config,
    ) -> Self {
        Self {
            backend,
            in_place,
            identity,
            shards: config.shard_count(),
            hasher: RandomState::default(),
            strategy: config.strategy,
        }
    }

    /// Runs the operation on this thread, if that is possible at once.
    #[inline]
    fn run_in_place<O: Operation<S>>(
        &self,
        shard: usize,
        operation: O,
    ) -> Result<Result<O::Output, CallError>, O> {
        if is_running() {
            return Err(operation); // functions submit to the backend
        }
        match &self.in_place {
            InPlace::Shared(states) => match states.downcast_ref::<shared::States<S>>() {
                Some(states) => states.run(shard, operation),
                None => Err(operation),
            },
            InPlace::Owned(core) => {
                match core.downcast_ref::<owned::Core<S, state_handle::Movable<S>>>() {
                    Some(core) => core.run_in_place(shard, operation),
                    None => Err(operation),
                }
            }
            InPlace::Never => Err(operation),
        }
    }

    #[inline]
    fn begin<O: Operation<S>>(&self, shard: usize, operation: O) -> Call<S, O> {
        let tag = Tag::new(self.identity, shard);
        match self.run_in_place(shard, operation) {
            Ok(outcome) => Call::ended(tag, outcome),
            Err(operation) => Call::begin(&self.backend, tag, operation),
        }
    }

    /// The number of the shard that has this key. O(key).
    #[inline]
    pub fn shard_of(&self, key: impl Hash) -> usize {
        // Scales the upper half of the hash: as even as the hash itself, without a division.
        let hash = self.hasher.hash_one(key) >> 32;
        ((hash * self.shards as u64) >> 32) as usize
    }

    /// How many shards there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards
    }

    /// Whether there is no shard; always `false`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards == 0
    }

    /// The strategy by which requests run.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Runs `function` on the shard of `key`.
    ///
    /// The request is made before `call` returns, and in the direct form it is often done by then.
    /// Only if the queue is full does the awaited result first wait for room. O(1), and the
    /// function.
    #[inline]
    pub fn call<R, F>(&self, key: impl Hash, function: F) -> Call<S, Change<F, R>>
    where
        R: Send + 'static,
        F: FnOnce(&mut S) -> R + Send + 'static,
    {
        self.begin(self.shard_of(key), Change::new(function))
    }

    /// Like [`call`](Self::call), with a function that only reads. Under a strategy with locks,
    /// such functions run side by side.
    #[inline]
    pub fn read<R, F>(&self, key: impl Hash, function: F) -> Call<S, Read<F, R>>
    where
        R: Send + 'static,
        F: FnOnce(&S) -> R + Send + 'static,
    {
        self.begin(self.shard_of(key), Read::new(function))
    }

    /// Runs `function` on the shard of `key`. Nobody waits for it, and its panic is only counted.
    ///
    /// Never waits for another thread, except that under a strategy with locks it may wait for the
    /// lock of the shard. Within a function it waits for no lock. Ordered with the caller's other
    /// calls and sends on the shard, unless it is refused. O(1).
    ///
    /// What a function sends runs after the function: on a worker, or, under a strategy with locks,
    /// on the same thread before the call or send that runs the function returns.
    ///
    /// # Errors
    ///
    /// The shard's queue is full or the shards are shut down. The function comes back.
    #[inline]
    pub fn send<F>(&self, key: impl Hash, function: F) -> Result<(), SendError<F>>
    where
        F: FnOnce(&mut S) + Send + 'static,
    {
        let shard = self.shard_of(key);
        let operation = match self.run_in_place(shard, Change::new(function)) {
            Ok(_) => return Ok(()),
            Err(operation) => operation,
        };
        let mut pending = Pending::new(operation, false);
        let submitted = self.backend.submit(shard, &mut pending, None);
        let error = match submitted {
            Submitted::Ran | Submitted::Queued => return Ok(()),
            Submitted::Full => SendError::Full,
            Submitted::Closed | Submitted::NoExecutor(_) => SendError::Closed,
        };
        let operation: Change<F, ()> = pending
            .operation
            .take()
            .expect("what is refused comes back");
        Err(error(operation.into_inner()))
    }

    /// Runs an asynchronous function on the shard of `key`. It has the state for itself until it
    /// ends, also while it awaits something: the shard's other functions wait in their order, and
    /// the worker serves other shards.
    ///
    /// A worker runs it from the first to the last turn, so its future need not be `Send`. Under
    /// [`Strategy::Threading`] that is one thread for all shards, which the first asynchronous
    /// function starts. Under `local_set` it runs within tokio's runtime and `LocalSet`. Under the
    /// others it may await what needs no runtime, such as channels, tasks that are running
    /// elsewhere, and calls.
    ///
    /// It may await calls on any other shard. It must not await one on its own: that gives
    /// [`CallError::OnWorker`], as for functions, and panics in a build with debug
    /// assertions. Two functions that await calls on each other's shards wait for ever. So does one
    /// that blocks its thread until something happens that needs the same worker.
    ///
    /// The function begins when the functions before it have ended. Dropping the call drops the
    /// function where it awaits something. If it panics, only its call fails. Either way the shard
    /// goes on with the state as the function left it. Shutting the shards down
    /// [interrupts](CallError::Interrupted) it. O(1), an allocation or two, a wake-up of the
    /// worker, and the function.
    ///
    /// ```
    /// use tremula_shard::{Config, Shards, Strategy};
    ///
    /// let shards = Shards::start(Config::new(Strategy::Affinity), |_| Vec::new()).unwrap();
    /// let (send, receive) = tokio::sync::oneshot::channel();
    /// let first = shards.call_async("key", async move |log| {
    ///     log.push("asks");
    ///     log.push(receive.await.unwrap());
    /// });
    /// let second = shards.call("key", |log| log.clone()); // waits for the first to end
    /// send.send("hears").unwrap();
    /// assert_eq!(first.wait(), Ok(()));
    /// assert_eq!(second.wait().unwrap(), ["asks", "hears"]);
    /// ```
    pub fn call_async<R, F>(&self, key: impl Hash, function: F) -> AsyncCall<S, R>
    where
        R: Send + 'static,
        F: AsyncFnOnce(&mut S) -> R + Send + 'static,
    {
        let tag = Tag::new(self.identity, self.shard_of(key));
        AsyncCall::begin(&self.backend, tag, function)
    }

    /// Runs an asynchronous function on the shard of `key`, as [`call_async`](Self::call_async)
    /// does. Nobody waits for it, so it runs to its end unless the shards are shut down. Its panic
    /// is only counted. O(1).
    ///
    /// # Errors
    ///
    /// The shard's queue is full, the shards are shut down, or no thread can run the function. It
    /// comes back.
    ///
    /// ```
    /// use tremula_shard::{Config, Shards, Strategy};
    ///
    /// let shards = Shards::start(Config::new(Strategy::Affinity), |_| 1_u64).unwrap();
    /// let (send, receive) = tokio::sync::oneshot::channel();
    /// shards.send_async("key", async |count| *count += receive.await.unwrap_or(0)).unwrap();
    /// send.send(5).unwrap();
    /// assert_eq!(shards.call("key", |count| *count).wait(), Ok(6));
    /// ```
    pub fn send_async<F>(&self, key: impl Hash, function: F) -> Result<(), SendError<F>>
    where
        F: AsyncFnOnce(&mut S) + Send + 'static,
    {
        let shard = self.shard_of(key);
        let request = AsyncRequest::<F, ()>::new(function, false);
        let job: Job<S> = Arc::clone(&request) as Job<S>;
        let error = match self.backend.submit_asynchronous(shard, &job, None) {
            Submitted::Ran | Submitted::Queued => return Ok(()),
            Submitted::Full => SendError::Full,
            Submitted::Closed => SendError::Closed,
            Submitted::NoExecutor(_) => SendError::NoExecutor,
        };
        let function = request.take_function();
        Err(error(function.expect("what is refused comes back")))
    }

    /// Runs `function` on every shard, and collects the results in the order of the shards. The
    /// shards are not visited at one moment. O(shards).
    ///
    /// ```
    /// use tremula_shard::{Config, Shards, Strategy};
    ///
    /// let config = Config::new(Strategy::Affinity).shards(3);
    /// let shards = Shards::start(config, |shard| shard).unwrap();
    /// let runtime = tokio::runtime::Runtime::new().unwrap();
    /// let all = runtime.block_on(shards.map_all(|shard| *shard * 2));
    /// assert_eq!(all, [Ok(0), Ok(2), Ok(4)]);
    /// ```
    pub fn map_all<R, F>(&self, function: F) -> impl Future<Output = Vec<Result<R, CallError>>>
    where
        R: Send + 'static,
        F: Fn(&mut S) -> R + Clone + Send + 'static,
    {
        let call = |shard| self.begin(shard, Change::new(function.clone()));
        let calls: Vec<_> = (0..self.shards).map(call).collect();
        async {
            let mut results = Vec::with_capacity(calls.len());
            for call in calls {
                results.push(call.await);
            }
            results
        }
    }

    /// Gives a shard to another worker while both serve requests. Queued functions run in their
    /// order. Balancing does this automatically.
    ///
    /// # Errors
    ///
    /// The shard or the worker does not exist, or these shards do not move.
    pub fn move_shard(&self, shard: usize, worker: usize) -> Result<(), MoveError> {
        let shape = self.backend.shape();
        if shape.shards.is_empty() {
            return Err(MoveError::Fixed);
        }
        let (shards, workers) = (self.shards, shape.workers);
        if shard >= shards {
            return Err(MoveError::NoShard { shard, shards });
        }
        if worker >= workers {
            return Err(MoveError::NoWorker { worker, workers });
        }
        if self.backend.move_shard(shard, worker) {
            Ok(())
        } else {
            Err(MoveError::Fixed)
        }
    }

    /// Shuts the shards down and gives their states back, in the order of the shards.
    ///
    /// Every caller is answered. Functions that are queued are run. An asynchronous function that
    /// has not begun does not begin, and its call gets [`CallError::Closed`]. One that awaits
    /// something gets one more turn, and if that does not end it, its call gets
    /// [`CallError::Interrupted`]. Whatever is called from now on gets [`CallError::Closed`], and
    /// sends give their functions back. The workers end.
    ///
    /// Blocks the thread until all of this is done: as long as the functions that are queued take.
    /// No panic loses a state, since a shard keeps what a function that panics leaves.
    ///
    /// # Errors
    ///
    /// A state that cannot be given back is a [`StateLost`], which names its shard and says why.
    ///
    /// ```
    /// use tremula_shard::{CallError, Config, Shards, Strategy};
    ///
    /// let config = Config::new(Strategy::Affinity).shards(4);
    /// let shards = Shards::start(config, |shard| shard * 10).unwrap();
    /// let never = shards.call_async(7, async |_| std::future::pending::<()>().await);
    /// let states: Result<Vec<usize>, _> = shards.shutdown().into_iter().collect();
    /// assert_eq!(states.unwrap(), [0, 10, 20, 30]);
    /// assert!(matches!(never.wait(), Err(CallError::Interrupted | CallError::Closed)));
    /// assert_eq!(shards.call(7, |state| *state).wait(), Err(CallError::Closed));
    /// ```
    pub fn shutdown(&self) -> Vec<Result<S, StateLost>> {
        self.backend.shutdown()
    }

    /// The counts so far. They are exact when no request is under way. O(shards).
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.backend.shape()
    }
}

impl<S: 'static> Drop for Shards<S> {
    fn drop(&mut self) {
        self.backend.close();
    }
}

impl<S: 'static> fmt::Debug for Shards<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shards")
            .field("strategy", &self.strategy)
            .field("shards", &self.shards)
            .finish_non_exhaustive()
    }
}
