//! Shared access to a shard that no move can help: one that alone has more to do than a worker's
//! part, and most of whose requests only look.
//!
//! Its state is taken out of the seat and put behind a readers-writer lock, where callers run on it
//! themselves, as under the strategy `threading`. The seat says so to who comes there.
//!
//! Invariants:
//!
//! 1. A state is in its seat, with who runs it, or here.
//! 2. It comes here only while nothing is queued, and the seat queues nothing while it is here: so
//!    a caller's requests keep their order.

use super::place::Place;
use super::request::{Access, Ran, Request};
use tremula_sync::RwLock;
use tremula_sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Of the requests of a shard that is lent, reads must be so many times the changes.
pub(super) const READS: u64 = 8;

/// Reads must be fewer times the changes before it is taken back, so that it does not go to and fro.
const STAYS: u64 = 4;

/// Changes after which it is looked at again.
const CHANGES: u64 = 256;

/// Where the state of a shard lies that is lent.
pub(super) struct Lent<P> {
    /// Whether it does: a hint, read where every request passes.
    on: AtomicBool,
    place: RwLock<Option<P>>,
    reads: AtomicU64,
    changes: AtomicU64,
    /// The reads at the last look.
    looked: AtomicU64,
    /// How often it was lent.
    times: AtomicU64,
}

impl<P> Default for Lent<P> {
    fn default() -> Self {
        Self {
            on: AtomicBool::new(false),
            place: RwLock::new(None),
            reads: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            times: AtomicU64::new(0),
        }
    }
}

/// How a state is used.
pub(super) enum Use<'a, P> {
    Look(&'a P),
    Change(&'a mut P),
}

/// Runs a request on a state that is lent.
pub(super) fn run_in<S: 'static, P: Place<S>>(
    shard: usize,
    place: Use<'_, P>,
    request: &mut dyn Request<S>,
) -> Ran {
    match place {
        Use::Look(place) => {
            let state = place.share().expect("only what may change threads is lent");
            request.run(Access::Shared(state))
        }
        Use::Change(place) => {
            let mut ran = Ran::Cancelled;
            place.with(shard, &mut |state| {
                ran = request.run(Access::Exclusive(state));
            });
            ran
        }
    }
}

impl<P> Lent<P> {
    /// Whether it is worth trying. Relaxed: who is wrong finds out from the lock, or from the seat.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Puts the state here. Who does so has taken it from the seat.
    pub(super) fn put(&self, place: P) {
        self.looked
            .store(self.reads.load(Ordering::Relaxed), Ordering::Relaxed);
        *self.place.write() = Some(place);
    }

    /// The seat has been told. If somebody has taken the state back by now, there is nothing to
    /// announce.
    pub(super) fn announce(&self) {
        self.times.fetch_add(1, Ordering::Relaxed);
        let place = self.place.read();
        if place.is_some() {
            self.on.store(true, Ordering::Relaxed);
        }
    }

    /// Takes the state back, to put it into the seat; waits for the threads that use it.
    pub(super) fn take(&self) -> Option<P> {
        let mut place = self.place.write();
        // Under the lock: an announcement that comes later finds the state gone.
        self.on.store(false, Ordering::Relaxed);
        place.take()
    }

    /// Uses the state, if it is here: alone, or beside others who look.
    pub(super) fn with<R>(&self, looks: bool, run: impl FnOnce(Use<'_, P>) -> R) -> Option<R> {
        // Relaxed: counts, that order nothing.
        if looks {
            let place = self.place.read();
            let ran = run(Use::Look(place.as_ref()?));
            self.reads.fetch_add(1, Ordering::Relaxed);
            Some(ran)
        } else {
            let mut place = self.place.write();
            let ran = run(Use::Change(place.as_mut()?));
            self.changes.fetch_add(1, Ordering::Relaxed);
            Some(ran)
        }
    }

    /// As [`with`](Self::with), if the lock need not be waited for: else `run` comes back.
    pub(super) fn try_with<R, F>(&self, looks: bool, run: F) -> Result<Option<R>, F>
    where
        F: FnOnce(Use<'_, P>) -> R,
    {
        if looks {
            let Some(place) = self.place.try_read() else {
                return Err(run);
            };
            let Some(place) = place.as_ref() else {
                return Ok(None);
            };
            self.reads.fetch_add(1, Ordering::Relaxed);
            Ok(Some(run(Use::Look(place))))
        } else {
            let Some(mut place) = self.place.try_write() else {
                return Err(run);
            };
            let Some(place) = place.as_mut() else {
                return Ok(None);
            };
            self.changes.fetch_add(1, Ordering::Relaxed);
            Ok(Some(run(Use::Change(place))))
        }
    }

    /// Whether it should be taken back: to be asked after each change.
    pub(super) fn is_changed_too_often(&self) -> bool {
        if !self.changes.load(Ordering::Relaxed).is_multiple_of(CHANGES) {
            return false;
        }
        let reads = self.reads.load(Ordering::Relaxed);
        let before = self.looked.swap(reads, Ordering::Relaxed);
        reads.saturating_sub(before) < STAYS * CHANGES
    }

    /// How often the shard was lent.
    pub(super) fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// Requests that were run here.
    pub(super) fn requests(&self) -> u64 {
        self.reads.load(Ordering::Relaxed) + self.changes.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// Would fail if the announcement stood after the state has been taken back: every request would
    /// take the slow way by the lock, and the shard be counted as lent for ever.
    #[test]
    fn what_has_been_taken_back_is_not_announced() {
        let lent = Lent::default();
        lent.put(7);
        assert_eq!(lent.take(), Some(7));
        lent.announce();
        assert!(!lent.is_on());
        lent.put(8);
        lent.announce();
        assert!(lent.is_on());
        assert_eq!(lent.take(), Some(8));
        assert!(!lent.is_on());
    }
}
