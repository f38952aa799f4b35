//! The strategies `local_set` and `affinity` in their direct form: workers that own shards.
//!
//! The caller runs a request in place if the shard's [`DelegationLock`] allows it, else queues it
//! there. Callers combine: a caller that has run its own request runs a few of those that came
//! meanwhile, and so does a caller that queues a request while no thread runs. The owner is
//! notified of the remaining ones through its mailbox, which wakes it if it sleeps. The worker
//! takes all queued requests at once, runs them, and then wakes the callers that wait.

use super::StartError;
use super::asynchronous::Suspended;
use super::backend::{Backend, Shape, StateLost, Submitted};
use super::config::{Config, Strategy};
use super::request::{Access, Job, Request};
use super::running::{
    Running, defer, has_deferred, is_running, run_deferred_of, runs_beside, runs_on,
};
pub(super) use super::serving::Core;
use super::serving::{BATCH, Notice, Runner};
use super::state_handle::{StateHandle, drop_locals};
use super::worker::{is_worker_of_any, join, pin};
use crate::delegation::{Offered, ShardCounts};
use crate::topology;
use std::collections::VecDeque;
use std::task::Waker;
use tremula_mailbox::{Mailbox, mailbox};
use tremula_sync::system::Arc;
use tremula_sync::thread::{Builder, JoinHandle};
use tremula_sync::{Backoff, Mutex};

/// Notices that a worker takes at once.
const NOTICES: usize = 64;

pub(super) struct Owned<S, P> {
    core: Arc<Core<S, P>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl<S: 'static, P: StateHandle<S> + Send + Sync> Owned<S, P> {
    /// Starts the workers. Each worker makes the states of its shards, so that the memory is first
    /// touched by the thread that will use it.
    pub(super) fn start(
        config: &Config,
        identity: u32,
        make: impl Fn(usize) -> S + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let (core, mailboxes) = Core::new(config, identity);
        let core = Arc::new(core);
        crate::keep_under_tsan(&core);
        let owned = Self {
            core: Arc::clone(&core),
            threads: Mutex::new(Vec::new()),
        };
        let cpus = match config.strategy {
            // Under a checker, and in a simulation, one thread of the system runs all threads.
            Strategy::Affinity if !cfg!(any(shuttle, sim)) => topology::places(mailboxes.len()),
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
                let ready = core.make_states(number, &*make);
                drop(make);
                let failed = ready.is_err();
                let _ = started.send(ready);
                drop(started);
                if !failed {
                    work(&core, number, mailbox, strategy);
                }
                // Drops the states that stayed with this worker.
                drop_locals();
            };
            let thread = Builder::new().name(name).spawn(main);
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

impl<S: 'static, P: StateHandle<S>> Owned<S, P> {
    /// Defers a function's request to a shared shard until the function has ended.
    fn defer(&self, shard: usize, request: &mut dyn Request<S>) -> Submitted {
        let (core, job) = (Arc::clone(&self.core), request.job(true));
        let tag = core.tag(shard);
        defer(tag, Box::new(move || core.run_late(shard, job)));
        Submitted::Queued
    }
}

fn work<S: 'static, P: StateHandle<S>>(
    core: &Core<S, P>,
    me: usize,
    mut mailbox: Mailbox<Notice>,
    strategy: Strategy,
) {
    let mut notices = Vec::with_capacity(NOTICES);
    let mut batch = VecDeque::new();
    let mut begun = Suspended::new();
    let mut turn = |notices: &mut Vec<Notice>| {
        let mut stop = false;
        for notice in notices.drain(..) {
            match notice {
                Notice::Queued(shard) => {
                    let by = Runner::Worker(me, &mut begun);
                    core.serve(me, shard, BATCH, &mut batch, by);
                }
                Notice::Woken(shard) => core.go_on_with(shard, &mut begun),
                Notice::Stop => stop = true,
            }
        }
        if stop {
            core.interrupt(&mut begun);
            core.finish(me);
        } else {
            core.compare(me);
        }
        !stop
    };
    #[cfg(feature = "tokio")]
    if strategy == Strategy::LocalSet
        && let Some((runtime, local)) = local_set()
    {
        local.block_on(&runtime, async {
            while mailbox.recv_many_async(&mut notices, NOTICES).await > 0 && turn(&mut notices) {
                // Lets the tasks run that jobs have spawned.
                tokio::task::yield_now().await;
            }
        });
        return;
    }
    let _ = strategy; // unused without the feature
    while mailbox.recv_many(&mut notices, NOTICES) > 0 && turn(&mut notices) {}
}

/// A runtime for one worker. `None` if the system has no descriptors left for a reactor: the worker
/// then runs its jobs without one.
#[cfg(feature = "tokio")]
fn local_set() -> Option<(tokio::runtime::Runtime, tokio::task::LocalSet)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    Some((runtime.ok()?, tokio::task::LocalSet::new()))
}

impl<S: 'static, P: StateHandle<S> + Send + Sync> Backend<S> for Owned<S, P> {
    fn submit(
        &self,
        shard: usize,
        request: &mut dyn Request<S>,
        waker: Option<&Waker>,
    ) -> Submitted {
        let core = &*self.core;
        let (lock, tag) = (&core.locks[shard], core.tag(shard));
        let in_function = is_running();
        // A function may wait for shards of another kind.
        let may_wait = !in_function || request.is_wanted() && !runs_beside(tag);
        if in_function && has_deferred(tag) {
            if !may_wait {
                return self.defer(shard, request);
            }
            run_deferred_of(tag);
        }
        // Of the requests of functions, only calls on other shards run on top of them.
        let in_place = !in_function || request.is_wanted() && !runs_on(tag);
        if in_place && let Some(mut handle) = core.try_begin(shard) {
            let running = Running::on(tag);
            handle.with(shard, &mut |state| {
                core.failures.note(request.run(Access::Exclusive(state)));
            });
            let ended = lock.end_in_place(handle, request.is_shared());
            drop(running);
            core.ended_in_place(shard, ended);
            return Submitted::Ran;
        }
        let backoff = Backoff::new();
        loop {
            match lock.offer(request.job(true), waker) {
                Offered::Queued => return Submitted::Queued,
                Offered::Noticed => {
                    core.combine(shard);
                    return Submitted::Queued;
                }
                Offered::Notify(worker) => {
                    core.combine_or_notify(worker, shard);
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
                Offered::Shared(job) => {
                    drop(job);
                    request.take_back();
                    let ran = if may_wait {
                        core.run_shared(shard, request)
                    } else if in_place && let Ok(ran) = core.try_run_shared(shard, request) {
                        ran
                    } else {
                        return self.defer(shard, request);
                    };
                    if let Some(ran) = ran {
                        core.failures.note(ran);
                        return Submitted::Ran;
                    }
                    backoff.wait(); // the state is on its way back to the lock
                }
            }
        }
    }

    fn submit_asynchronous(&self, shard: usize, job: &Job<S>, waker: Option<&Waker>) -> Submitted {
        let core = &*self.core;
        let (lock, tag) = (&core.locks[shard], core.tag(shard));
        // As in `submit`.
        let may_wait = !is_running() || !runs_beside(tag);
        let late = || {
            let (core, job) = (Arc::clone(&self.core), Arc::clone(job));
            defer(tag, Box::new(move || core.run_late(shard, job)));
            Submitted::Queued
        };
        if has_deferred(tag) {
            if !may_wait {
                return late();
            }
            run_deferred_of(tag);
        }
        let backoff = Backoff::new();
        loop {
            match lock.offer(Arc::clone(job), waker) {
                Offered::Queued | Offered::Noticed => return Submitted::Queued,
                Offered::Notify(worker) => {
                    core.notify(worker, shard);
                    return Submitted::Queued;
                }
                Offered::Full(_) => return Submitted::Full,
                Offered::Closed(_) => return Submitted::Closed,
                Offered::Shared(_) if !may_wait => return late(),
                Offered::Shared(_) => {
                    core.end_sharing(shard);
                    backoff.wait(); // another thread may be taking it back
                }
            }
        }
    }

    fn move_shard(&self, shard: usize, worker: usize) -> bool {
        if P::ANYWHERE {
            // `false` only means that the worker owns the shard already.
            self.core.locks[shard].assign(worker);
        }
        P::ANYWHERE
    }

    fn shape(&self) -> Shape {
        let core = &*self.core;
        let mut shards: Vec<ShardCounts> = core.locks.iter().map(|lock| lock.counts()).collect();
        for (counts, shared) in shards.iter_mut().zip(&core.shared) {
            counts.requests += shared.requests();
            counts.in_place += shared.requests();
        }
        let shared = core.shared.iter().filter(|shared| shared.is_on());
        let mut shape = Shape {
            shared: shared.count(),
            sharings: core.shared.iter().map(|shared| shared.times()).sum(),
            requests: shards.iter().map(|shard| shard.requests).sum(),
            in_place: shards.iter().map(|shard| shard.in_place).sum(),
            moves: shards.iter().map(|shard| shard.moves).sum(),
            workers: core.workers.len(),
            shards,
            ..Shape::default()
        };
        core.failures.add_to(&mut shape);
        shape
    }

    fn close(&self) {
        let core = &*self.core;
        core.locks.iter().for_each(|lock| lock.close());
        core.stop();
        let threads = std::mem::take(&mut *self.threads.lock());
        join(threads);
    }

    fn shutdown(&self) -> Vec<Result<S, StateLost>> {
        let core = &*self.core;
        let shards = 0..core.locks.len();
        // Such a thread would wait for itself.
        let must_not_wait = runs_beside(core.tag(0)) || is_worker_of_any(core.identity);
        self.close();
        if must_not_wait {
            return shards
                .map(|shard| Err(StateLost::OnWorker { shard }))
                .collect();
        }
        shards.map(|shard| core.retire(shard)).collect()
    }
}
