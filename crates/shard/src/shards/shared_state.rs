//! Shared access to a shard that alone has more load than a worker's part, so that no move can help
//! it, and most of whose requests only read.
//!
//! The state is taken out of the delegation lock and put behind a readers-writer lock. Callers then
//! run their own requests, as under the strategy `threading`. The lock sends callers here.
//!
//! Invariants:
//!
//! 1. A state is in its delegation lock, held by the thread that runs jobs on it, or here.
//! 2. A state comes here only while no job is queued, and the delegation lock queues nothing while
//!    it is here. So each caller's requests keep their order.

use super::request::{Access, Ran, Request};
use super::state_handle::StateHandle;
use tremula_sync::RwLock;
use tremula_sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A shard is shared if its reads are at least this many times its changes.
pub(super) const READS: u64 = 8;

/// A shared state is taken back if its reads are fewer than this many times its changes. Less than
/// [`READS`], so that the state does not move back and forth.
const STAYS: u64 = 4;

/// The number of changes between two checks against [`STAYS`].
const CHANGES: u64 = 256;

/// Where the state of a shared shard lies.
pub(super) struct SharedState<P> {
    /// A hint, which every request reads, that the state is here.
    on: AtomicBool,
    handle: RwLock<Option<P>>,
    reads: AtomicU64,
    changes: AtomicU64,
    /// The reads at the last check.
    checked: AtomicU64,
    /// How often the state has come here.
    times: AtomicU64,
}

impl<P> Default for SharedState<P> {
    fn default() -> Self {
        Self {
            on: AtomicBool::new(false),
            handle: RwLock::new(None),
            reads: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            checked: AtomicU64::new(0),
            times: AtomicU64::new(0),
        }
    }
}

/// How a state is used.
pub(super) enum Use<'a, P> {
    Read(&'a P),
    Change(&'a mut P),
}

/// Runs a request on a shared state.
pub(super) fn run_in<S: 'static, P: StateHandle<S>>(
    shard: usize,
    handle: Use<'_, P>,
    request: &mut dyn Request<S>,
) -> Ran {
    match handle {
        Use::Read(handle) => {
            let state = handle
                .share()
                .expect("only what may change threads is shared");
            request.run(Access::Shared(state))
        }
        Use::Change(handle) => {
            let mut ran = Ran::Cancelled;
            handle.with(shard, &mut |state| {
                ran = request.run(Access::Exclusive(state));
            });
            ran
        }
    }
}

impl<P> SharedState<P> {
    /// Whether the state is probably here. Relaxed: a thread that reads a stale hint finds the
    /// truth under one of the two locks.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Puts the state here. The calling thread has taken it from the delegation lock.
    pub(super) fn put(&self, handle: P) {
        self.checked
            .store(self.reads.load(Ordering::Relaxed), Ordering::Relaxed);
        *self.handle.write() = Some(handle);
    }

    /// Sets the hint, after the delegation lock has recorded that the state is shared. If another
    /// thread has taken the state back by now, the hint stays off.
    pub(super) fn announce(&self) {
        self.times.fetch_add(1, Ordering::Relaxed);
        let handle = self.handle.read();
        if handle.is_some() {
            self.on.store(true, Ordering::Relaxed);
        }
    }

    /// Takes the state back for the delegation lock. Waits for the threads that use it.
    pub(super) fn take(&self) -> Option<P> {
        let mut handle = self.handle.write();
        // Under the lock, so that a later announcement finds the state gone.
        self.on.store(false, Ordering::Relaxed);
        handle.take()
    }

    /// Uses the state if it is here: exclusively, or side by side with other readers.
    pub(super) fn with<R>(&self, reads: bool, run: impl FnOnce(Use<'_, P>) -> R) -> Option<R> {
        // Relaxed: counts that order nothing.
        if reads {
            let handle = self.handle.read();
            let ran = run(Use::Read(handle.as_ref()?));
            self.reads.fetch_add(1, Ordering::Relaxed);
            Some(ran)
        } else {
            let mut handle = self.handle.write();
            let ran = run(Use::Change(handle.as_mut()?));
            self.changes.fetch_add(1, Ordering::Relaxed);
            Some(ran)
        }
    }

    /// Like [`with`](Self::with), but does not wait for the lock: if it is held, `run` comes back.
    pub(super) fn try_with<R, F>(&self, reads: bool, run: F) -> Result<Option<R>, F>
    where
        F: FnOnce(Use<'_, P>) -> R,
    {
        if reads {
            let Some(handle) = self.handle.try_read() else {
                return Err(run);
            };
            let Some(handle) = handle.as_ref() else {
                return Ok(None);
            };
            self.reads.fetch_add(1, Ordering::Relaxed);
            Ok(Some(run(Use::Read(handle))))
        } else {
            let Some(mut handle) = self.handle.try_write() else {
                return Err(run);
            };
            let Some(handle) = handle.as_mut() else {
                return Ok(None);
            };
            self.changes.fetch_add(1, Ordering::Relaxed);
            Ok(Some(run(Use::Change(handle))))
        }
    }

    /// Whether the state should be taken back. Called after each change.
    pub(super) fn is_changed_too_often(&self) -> bool {
        if !self.changes.load(Ordering::Relaxed).is_multiple_of(CHANGES) {
            return false;
        }
        let reads = self.reads.load(Ordering::Relaxed);
        let before = self.checked.swap(reads, Ordering::Relaxed);
        reads.saturating_sub(before) < STAYS * CHANGES
    }

    /// How often the shard was shared.
    pub(super) fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// Requests that have been run here.
    pub(super) fn requests(&self) -> u64 {
        self.reads.load(Ordering::Relaxed) + self.changes.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// Would fail if the hint stayed on after the state was taken back: every request would take
    /// the slow way through the lock, and the shard would count as shared for ever.
    #[test]
    fn what_has_been_taken_back_is_not_announced() {
        let shared = SharedState::default();
        shared.put(7);
        assert_eq!(shared.take(), Some(7));
        shared.announce();
        assert!(!shared.is_on());
        shared.put(8);
        shared.announce();
        assert!(shared.is_on());
        assert_eq!(shared.take(), Some(8));
        assert!(!shared.is_on());
    }
}
