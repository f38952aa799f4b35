//! Shards in the form of the article on thread-per-core that the strategies of `tremula-shard`
//! follow, so that its figures can be reproduced. Its inefficiencies are intended.
//!
//! - `threading`: shards behind locks, and a task of a runtime for each request.
//! - `local_set` and `affinity`: one dispatcher thread, a channel to it and one to each worker, and
//!   an answer of its own for each request.
//!
//! Queues have no limit, and shards do not move.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tremula_mailbox::mailbox;
use tremula_shard::kit::{
    Executor, MakeOwned, MakeShared, Members, OtherForm, Queued, block_on, join, message,
};
use tremula_shard::{Config, Form, StartError, Strategy, topology};
use tremula_sync::atomic::{AtomicUsize, Ordering};
use tremula_sync::system::Arc;
use tremula_sync::thread::{Builder as ThreadBuilder, JoinHandle};
use tremula_sync::{CachePadded, Mutex, RwLock, contained};

/// The form of the article, for [`Config::form`].
///
/// ```
/// use tremula_papers::article::ARTICLE;
/// use tremula_shard::{Config, Shards, Strategy};
///
/// for &strategy in Strategy::ALL {
///     let config = Config::new(strategy).workers(2).form(ARTICLE);
///     let shards = Shards::start(config, |_| 0_u64).unwrap();
///     assert_eq!(shards.call(7, |count| { *count += 1; *count }).wait(), Ok(1));
/// }
/// ```
pub const ARTICLE: Form = Form::Other(&Article);

#[derive(Debug)]
struct Article;

impl OtherForm for Article {
    fn name(&self) -> &'static str {
        "article"
    }

    fn start_shared(
        &self,
        config: &Config,
        members: Members,
        make: Arc<MakeShared>,
    ) -> Result<Arc<dyn Executor>, StartError> {
        Ok(Arc::new(Tasks::start(config, members, &*make)?))
    }

    fn start_owned(
        &self,
        config: &Config,
        members: Members,
        make: Arc<MakeOwned>,
    ) -> Result<Arc<dyn Executor>, StartError> {
        Ok(Arc::new(Dispatched::start(config, members, &make)?))
    }
}

/// Shards behind locks, and a task for each request.
struct Tasks {
    states: Arc<Locked>,
    /// `None` after `close`.
    runtime: Mutex<Option<Runtime>>,
    workers: usize,
    members: Members,
}

/// The state of a shard that threads share.
type State = Box<dyn Any + Send + Sync>;

/// The states and their locks.
struct Locked {
    locks: Box<[CachePadded<RwLock<State>>]>,
    /// Tasks that have not ended.
    tasks: AtomicUsize,
    /// The waker of the thread that waits for them to end.
    idle: Mutex<Option<Waker>>,
    /// The runtime, if one of its own tasks dropped the shards. The last task ends it.
    left: Mutex<Option<Runtime>>,
}

impl Tasks {
    fn start(config: &Config, members: Members, make: &MakeShared) -> Result<Self, StartError> {
        let workers = config.worker_count();
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(workers).build();
        let runtime = runtime.map_err(StartError::Thread)?;
        let lock = |shard| CachePadded::new(RwLock::new(make(shard)));
        let locks = catch_unwind(AssertUnwindSafe(|| {
            (0..config.shard_count()).map(lock).collect()
        }));
        Ok(Self {
            states: Arc::new(Locked {
                locks: locks.map_err(|panic| StartError::State(message(panic)))?,
                tasks: AtomicUsize::new(0),
                idle: Mutex::new(None),
                left: Mutex::new(None),
            }),
            runtime: Mutex::new(Some(runtime)),
            workers,
            members,
        })
    }
}

/// Counts a task until it has ended or is dropped.
struct Task(Arc<Locked>);

impl Drop for Task {
    fn drop(&mut self) {
        // SeqCst, like the load in `close`: one of the two threads sees the other's store.
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

impl Executor for Tasks {
    fn submit(&self, request: Queued) -> Result<(), Queued> {
        let runtime = self.runtime.lock();
        let Some(handle) = runtime.as_ref().map(|runtime| runtime.handle().clone()) else {
            return Err(request);
        };
        self.states.tasks.fetch_add(1, Ordering::SeqCst);
        drop(runtime);
        let task = Task(Arc::clone(&self.states));
        handle.spawn(async move {
            let lock = &task.0.locks[request.shard()];
            request.run(|job| job(&mut **lock.write()));
        });
        Ok(())
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn close(&self) {
        let Some(runtime) = self.runtime.lock().take() else {
            return;
        };
        let states = &*self.states;
        if self.members.is_running_here() {
            // A function drops the last handle, so waiting for all tasks would include its own. The
            // queued tasks end later. The function's own task is not the last to end before the
            // runtime is stored where the last task looks for it.
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
        block_on(ended);
        runtime.shutdown_background();
    }
}

/// Workers that own shards, and a dispatcher.
struct Dispatched {
    /// `None` after `close`.
    dispatcher: Mutex<Option<UnboundedSender<Queued>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    workers: usize,
}

/// The shards of one worker. The entries of other workers' shards are `None`.
type States = Rc<Vec<Option<RefCell<Box<dyn Any>>>>>;

impl Dispatched {
    fn start(config: &Config, members: Members, make: &Arc<MakeOwned>) -> Result<Self, StartError> {
        let (workers, shards) = (config.worker_count(), config.shard_count());
        let (to_dispatcher, mut requests) = unbounded_channel::<Queued>();
        let article = Self {
            dispatcher: Mutex::new(Some(to_dispatcher)),
            threads: Mutex::new(Vec::new()),
            workers,
        };
        let spawn = |name: String, main: Box<dyn FnOnce() + Send>| {
            let thread = ThreadBuilder::new().name(name).spawn(main);
            thread.map(|thread| article.threads.lock().push(thread))
        };
        let cpus = topology::places(workers);
        let (started, starts) = mailbox(tremula_mailbox::Config::default());
        let mut to_workers = Vec::new();
        let mut problem = None;
        for number in 0..workers {
            let (to_worker, requests) = unbounded_channel();
            to_workers.push(to_worker);
            let (make, started) = (Arc::clone(make), started.clone());
            let cpu = cpus.get(number).copied();
            let is_pinned = config.strategy == Strategy::Affinity;
            let main = move || {
                members.note_worker(number);
                if let (true, Some(cpu)) = (is_pinned, cpu) {
                    let _ = topology::pin(cpu);
                }
                let own = |shard: usize| (shard % workers == number).then(|| make(shard));
                let states = catch_unwind(AssertUnwindSafe(|| {
                    (0..shards)
                        .map(|shard| own(shard).map(RefCell::new))
                        .collect()
                }));
                match states {
                    Err(panic) => drop(started.send(Err(message(panic)))),
                    Ok(states) => {
                        let states: States = Rc::new(states);
                        let _ = started.send(Ok(()));
                        drop(started);
                        contained(|| {
                            if is_pinned {
                                run_queue(&states, requests);
                            } else {
                                local_set(&states, requests);
                            }
                            drop(states);
                        });
                    }
                }
            };
            if let Err(error) = spawn(format!("shard-{number}"), Box::new(main)) {
                problem = Some(StartError::Thread(error));
                break;
            }
        }
        drop(started);
        let dispatch = move || {
            while let Some(request) = requests.blocking_recv() {
                let _ = to_workers[request.shard() % to_workers.len()].send(request);
            }
        };
        if let Err(error) = spawn("shard-dispatcher".to_owned(), Box::new(dispatch)) {
            problem = problem.or(Some(StartError::Thread(error)));
        }
        let failed = starts.into_iter().find_map(Result::err);
        match problem.or(failed.map(StartError::State)) {
            None => Ok(article),
            Some(problem) => {
                article.close();
                Err(problem)
            }
        }
    }
}

fn run(states: &States, request: Queued) {
    let Some(state) = &states[request.shard()] else {
        unreachable!("the dispatcher sends each shard's requests to its worker");
    };
    request.run(|job| job(&mut **state.borrow_mut()));
}

/// A worker with a `LocalSet`: a task for each request.
fn local_set(states: &States, mut requests: UnboundedReceiver<Queued>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else {
        return run_queue(states, requests);
    };
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        while let Some(request) = requests.recv().await {
            let states = Rc::clone(states);
            tokio::task::spawn_local(async move { run(&states, request) });
        }
    });
    // Runs the tasks that were spawned last.
    runtime.block_on(local);
}

/// A worker with a cooperative first-in, first-out queue, with a future for each request.
fn run_queue(states: &States, mut requests: UnboundedReceiver<Queued>) {
    let mut queue: VecDeque<Pin<Box<dyn Future<Output = ()>>>> = VecDeque::new();
    let mut cx = Context::from_waker(Waker::noop());
    while let Some(first) = requests.blocking_recv() {
        let mut next = Some(first);
        while let Some(request) = next {
            let states = Rc::clone(states);
            queue.push_back(Box::pin(async move { run(&states, request) }));
            next = requests.try_recv().ok();
        }
        while let Some(mut task) = queue.pop_front() {
            if task.as_mut().poll(&mut cx).is_pending() {
                queue.push_back(task);
            }
        }
    }
}

impl Executor for Dispatched {
    fn submit(&self, request: Queued) -> Result<(), Queued> {
        let dispatcher = self.dispatcher.lock();
        let Some(dispatcher) = dispatcher.as_ref() else {
            return Err(request);
        };
        dispatcher.send(request).map_err(|refused| refused.0)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn close(&self) {
        drop(self.dispatcher.lock().take());
        let threads = std::mem::take(&mut *self.threads.lock());
        join(threads);
    }
}
