//! What recording threads share: the clock, and the barriers at which rounds begin and end.

use std::hint;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

/// Times that order calls. The [module](super) explains why this is sound.
#[derive(Default)]
pub(super) struct Clock(AtomicU64);

impl Clock {
    /// A time later than all others so far.
    pub(super) fn stamp(&self) -> u64 {
        // Acquire: pairs with the Release of all earlier stamps, which end other calls. Release:
        // pairs with the Acquire of all later stamps, which begin other calls.
        self.0.fetch_add(1, Ordering::AcqRel)
    }
}

/// A barrier that threads use repeatedly.
pub(super) struct Meeting {
    threads: usize,
    /// The number of arrivals so far.
    arrivals: AtomicUsize,
    /// The number of meetings that are over.
    over: AtomicUsize,
}

/// The turns that a waiting thread spins before it yields the processor.
const SPINS: u32 = 200;

impl Meeting {
    pub(super) const fn of(threads: usize) -> Self {
        Self {
            threads,
            arrivals: AtomicUsize::new(0),
            over: AtomicUsize::new(0),
        }
    }

    /// Waits until every thread has arrived as often as this one. The last thread to arrive runs
    /// `alone` while the others wait. No thread sleeps, because threads that are woken one by one
    /// do not start together.
    pub(super) fn wait(&self, alone: impl FnOnce()) {
        // AcqRel: pairs with the arrivals of the other threads: what they did before the meeting
        // happens before `alone`.
        let arrived = self.arrivals.fetch_add(1, Ordering::AcqRel) + 1;
        let number = arrived.div_ceil(self.threads);
        if arrived == number * self.threads {
            alone();
            // Release: pairs with the Acquire load below: `alone` happens before what the other
            // threads do next.
            self.over.store(number, Ordering::Release);
            return;
        }
        let mut spins = 0;
        // Acquire: pairs with the Release store above.
        while self.over.load(Ordering::Acquire) < number {
            spins += 1;
            if spins < SPINS {
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}
