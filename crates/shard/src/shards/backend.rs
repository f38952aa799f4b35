//! What every strategy offers, and what it has counted.

use super::request::{Ran, Request};
use crate::delegation::ShardCounts;
use std::task::Waker;
use tremula_sync::atomic::{AtomicU64, Ordering};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Submitted {
    /// It was run by the caller.
    Ran,
    Queued,
    /// There is no room; the waker, if there was one, is woken when there is.
    Full,
    Closed,
}

/// A strategy at work.
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
    /// Lets nothing more in, finishes what is queued, and ends the workers.
    fn close(&self);
}

/// What shards have counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Requests that were run, by any thread.
    pub requests: u64,
    /// Those of them that the caller ran itself.
    pub in_place: u64,
    /// Those that panicked.
    pub panics: u64,
    /// Calls that were given up before they started.
    pub cancelled: u64,
    /// How often a shard was given to another worker.
    pub moves: u64,
    /// Shards that callers share at the moment, because one that is read alone has more to do than
    /// a worker's part.
    pub shared: usize,
    /// How often a shard became shared.
    pub sharings: u64,
    /// Workers; none under [`Strategy::Threading`](super::Strategy::Threading) in its direct form.
    pub workers: usize,
    /// Each shard's counts, where they are kept: by the owning strategies in the direct form.
    pub shards: Vec<ShardCounts>,
}

/// Counts of requests that did not end well: few enough to be counted in one place.
#[derive(Debug, Default)]
pub(super) struct FailureCounts {
    panics: AtomicU64,
    cancelled: AtomicU64,
}

impl FailureCounts {
    #[inline]
    pub(super) fn note(&self, ran: Ran) {
        // Relaxed: counts, that order nothing.
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
