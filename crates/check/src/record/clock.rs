//! What recording threads share: the time, and the meetings at which rounds begin and end.

use std::hint;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

/// Times that order calls. The [module](super) says why this is sound.
#[derive(Default)]
pub(super) struct Clock(AtomicU64);

impl Clock {
    /// A time later than all others so far.
    pub(super) fn stamp(&self) -> u64 {
        // Acquire pairs with the release of all earlier stamps, which end other calls; release
        // with the acquire of all later ones, which begin other calls.
        self.0.fetch_add(1, Ordering::AcqRel)
    }
}

/// Where threads wait for one another, again and again.
pub(super) struct Meeting {
    threads: usize,
    /// How often threads have come.
    arrivals: AtomicUsize,
    /// How many meetings are over.
    over: AtomicUsize,
}

/// The turns that a thread waits before it offers the processor to the others.
const SPINS: u32 = 200;

impl Meeting {
    pub(super) const fn of(threads: usize) -> Self {
        Self {
            threads,
            arrivals: AtomicUsize::new(0),
            over: AtomicUsize::new(0),
        }
    }

    /// Waits until every thread has come as often as this one. The last to come does what there
    /// is to be done `alone`, while the others wait. Nobody sleeps: threads that are woken one by
    /// one do not start together.
    pub(super) fn wait(&self, alone: impl FnOnce()) {
        // Acquire and release pair with the arrivals of the others: what they did before the
        // meeting happened before what is done alone.
        let arrived = self.arrivals.fetch_add(1, Ordering::AcqRel) + 1;
        let number = arrived.div_ceil(self.threads);
        if arrived == number * self.threads {
            alone();
            // Release pairs with the acquire below: what was done alone happened before what
            // the others do next.
            self.over.store(number, Ordering::Release);
            return;
        }
        let mut spins = 0;
        // Acquire pairs with the release above.
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
