//! The interface of a strategy's backend, and its counts.

use super::request::{Job, Ran, Request};
use crate::delegation::ShardCounts;
use std::task::Waker;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Submitted {
    /// The caller ran it.
    Ran,
    Queued,
    /// There is no room. The backend wakes the waker, if the caller gave one, when there is.
    Full,
    Closed,
    /// No thread can run it.
    NoExecutor(String),
}

/// A running strategy.
pub(super) trait Backend<S>: Send + Sync {
    /// Runs the request in place or queues it.
    fn submit(
        &self,
        shard: usize,
        request: &mut dyn Request<S>,
        waker: Option<&Waker>,
    ) -> Submitted;
    /// Queues an asynchronous function.
    fn submit_asynchronous(&self, shard: usize, job: &Job<S>, waker: Option<&Waker>) -> Submitted;
    /// Gives a shard to another worker; `false` where shards do not move.
    fn move_shard(&self, shard: usize, worker: usize) -> bool;
    fn shape(&self) -> Shape;
    /// Refuses requests from now on, finishes the queued ones, interrupts asynchronous functions,
    /// and ends the workers.
    fn close(&self);
    /// Closes, and gives back the states.
    fn shutdown(&self) -> Vec<Result<S, StateLost>>;
}

/// Why [`Shards::shutdown`](super::Shards::shutdown) does not give a state back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateLost {
    /// The state never leaves the thread that made it, which has dropped it: the shards were
    /// started by [`Shards::start_local`](super::Shards::start_local), or have a form of another
    /// crate.
    #[error("the state of shard {shard} stayed with its worker, which has dropped it")]
    Local {
        /// The shard.
        shard: usize,
    },
    /// The shards were shut down before, and then the state was given back.
    #[error("the state of shard {shard} was given back by an earlier shutdown")]
    Gone {
        /// The shard.
        shard: usize,
    },
    /// A function on the shards, or a task on one of their workers, shut them down. It cannot wait
    /// until its own shard is free. The shards are closed, and their states are dropped with them.
    #[error("the state of shard {shard} is not given to a function or a worker of the shards")]
    OnWorker {
        /// The shard.
        shard: usize,
    },
}

/// The counts of some shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Requests that have been run, by any thread.
    pub requests: u64,
    /// The requests among them that their caller ran itself.
    pub in_place: u64,
    /// Requests that panicked.
    pub panics: u64,
    /// Calls that were given up before they started. Of asynchronous functions, also those that
    /// were given up or interrupted before they ended.
    pub cancelled: u64,
    /// How often a shard was given to another worker.
    pub moves: u64,
    /// Shards that callers share at the moment, because they are mostly read and each alone has
    /// more load than a worker's part.
    pub shared: usize,
    /// How often a shard became shared.
    pub sharings: u64,
    /// Workers; 0 under [`Strategy::Threading`](super::Strategy::Threading) in its direct form.
    pub workers: usize,
    /// The counts of each shard; only the owning strategies in the direct form keep them.
    pub shards: Vec<ShardCounts>,
}

/// Counts of requests that did not end well. They are rare, so one cell each suffices.
#[derive(Debug, Default)]
pub(super) struct FailureCounts {
    panics: AtomicU64,
    cancelled: AtomicU64,
}

impl FailureCounts {
    #[inline]
    pub(super) fn note(&self, ran: Ran) {
        // Relaxed: counts that order nothing.
        match ran {
            Ran::Well => {}
            Ran::Panicked => {
                self.panics.fetch_add(1, Ordering::Relaxed);
            }
            Ran::Cancelled => {
                self.cancelled.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn add_to(&self, shape: &mut Shape) {
        shape.panics = self.panics.load(Ordering::Relaxed);
        shape.cancelled = self.cancelled.load(Ordering::Relaxed);
    }
}
