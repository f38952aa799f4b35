//! The interface of a strategy's backend, and its counts.

use super::request::{Ran, Request};
use crate::delegation::ShardCounts;
use std::task::Waker;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Submitted {
    /// The caller ran it.
    Ran,
    Queued,
    /// There is no room. The backend wakes the waker, if the caller gave one, when there is.
    Full,
    Closed,
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
    /// Gives a shard to another worker; `false` where shards do not move.
    fn move_shard(&self, shard: usize, worker: usize) -> bool;
    fn shape(&self) -> Shape;
    /// Refuses requests from now on, finishes the queued ones, and ends the workers.
    fn close(&self);
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
    /// Calls that were given up before they started.
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
