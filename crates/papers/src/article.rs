//! The owning strategies as in the article that they are after: one dispatcher thread, a channel
//! to it and one to each worker, an answer of its own for each request. Kept so that its figures
//! can be reproduced; everything in it that costs is meant.

use super::StartError;
use super::backend::{Backend, Rare, Shape, Submitted};
use super::config::{Config, Strategy};
use super::request::{Job, Request, Wakes, message};
use super::running::{Running, Tag};
use super::tally::Tally;
use super::worker::{join, note_worker};
use crate::topology;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tremula_mailbox::mailbox;
use tremula_sync::system::Arc;
use tremula_sync::system::thread::{self, JoinHandle};
use tremula_sync::{Mutex, contained};

type Message<S> = (usize, Job<S>);

pub(super) struct Article<S> {
    /// Gone when closed.
    dispatcher: Mutex<Option<UnboundedSender<Message<S>>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    counts: Arc<Counts>,
    workers: usize,
}

struct Counts {
    identity: u32,
    requests: Tally,
    rare: Rare,
}

/// The shards of one worker; those of others are `None`.
type States<S> = Rc<Vec<Option<RefCell<S>>>>;

impl<S: 'static> Article<S> {
    pub(super) fn start(
        config: &Config,
        identity: u32,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let (workers, shards) = (config.worker_count(), config.shard_count());
        let (to_dispatcher, mut requests) = unbounded_channel::<Message<S>>();
        let article = Self {
            dispatcher: Mutex::new(Some(to_dispatcher)),
            threads: Mutex::new(Vec::new()),
            counts: Arc::new(Counts {
                identity,
                requests: Tally::default(),
                rare: Rare::default(),
            }),
            workers,
        };
        let spawn = |name: String, main: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(name).spawn(main);
            thread.map(|thread| article.threads.lock().push(thread))
        };
        let make = Arc::new(make);
        let cpus = topology::places(workers);
        let (started, starts) = mailbox(tremula_mailbox::Config::default());
        let mut to_workers = Vec::new();
        let mut problem = None;
        for number in 0..workers {
            let (to_worker, requests) = unbounded_channel();
            to_workers.push(to_worker);
            let (make, started) = (Arc::clone(&make), started.clone());
            let counts = Arc::clone(&article.counts);
            let cpu = cpus.get(number).copied();
            let is_pinned = config.strategy == Strategy::Affinity;
            let main = move || {
                note_worker(identity, number);
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
                        let states: States<S> = Rc::new(states);
                        let _ = started.send(Ok(()));
                        drop(started);
                        contained(|| {
                            if is_pinned {
                                run_queue(&states, requests, &counts);
                            } else {
                                local_set(&states, requests, &counts);
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
            while let Some((shard, job)) = requests.blocking_recv() {
                let _ = to_workers[shard % to_workers.len()].send((shard, job));
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

fn run<S>(states: &States<S>, (shard, job): Message<S>, counts: &Counts) {
    let Some(state) = &states[shard] else {
        unreachable!("the dispatcher sends each shard's requests to its worker");
    };
    let mut wakes = Wakes::default();
    counts.requests.add();
    let running = Running::on(Tag::new(counts.identity, shard));
    let ran = job.run(&mut state.borrow_mut(), &mut wakes);
    drop(running);
    counts.rare.note(ran);
    wakes.wake();
}

/// A worker with a `LocalSet`: a task for each request.
fn local_set<S: 'static>(
    states: &States<S>,
    mut requests: UnboundedReceiver<Message<S>>,
    counts: &Arc<Counts>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else {
        return run_queue(states, requests, counts);
    };
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        while let Some(request) = requests.recv().await {
            let (states, counts) = (Rc::clone(states), Arc::clone(counts));
            tokio::task::spawn_local(async move { run(&states, request, &counts) });
        }
    });
    // What was spawned last.
    runtime.block_on(local);
}

/// A worker with a cooperative queue, first in, first out: a future for each request.
fn run_queue<S: 'static>(
    states: &States<S>,
    mut requests: UnboundedReceiver<Message<S>>,
    counts: &Arc<Counts>,
) {
    let mut queue: VecDeque<Pin<Box<dyn Future<Output = ()>>>> = VecDeque::new();
    let mut cx = Context::from_waker(Waker::noop());
    while let Some(first) = requests.blocking_recv() {
        let mut next = Some(first);
        while let Some(request) = next {
            let (states, counts) = (Rc::clone(states), Arc::clone(counts));
            queue.push_back(Box::pin(async move { run(&states, request, &counts) }));
            next = requests.try_recv().ok();
        }
        while let Some(mut task) = queue.pop_front() {
            if task.as_mut().poll(&mut cx).is_pending() {
                queue.push_back(task);
            }
        }
    }
}

impl<S: 'static> Backend<S> for Article<S> {
    fn submit(&self, shard: usize, request: &mut dyn Request<S>, _: Option<&Waker>) -> Submitted {
        let dispatcher = self.dispatcher.lock();
        let Some(dispatcher) = dispatcher.as_ref() else {
            return Submitted::Closed;
        };
        match dispatcher.send((shard, request.job(false))) {
            Ok(()) => Submitted::Queued,
            Err(_) => {
                request.take_back();
                Submitted::Closed
            }
        }
    }

    fn move_shard(&self, _: usize, _: usize) -> bool {
        false
    }

    fn shape(&self) -> Shape {
        let mut shape = Shape {
            requests: self.counts.requests.sum(),
            workers: self.workers,
            ..Shape::default()
        };
        self.counts.rare.add_to(&mut shape);
        shape
    }

    fn close(&self) {
        drop(self.dispatcher.lock().take());
        let threads = std::mem::take(&mut *self.threads.lock());
        join(threads);
    }
}
