//! A wake-up for one thread that works in the background.

use std::time::Instant;
use tremula_sync::atomic::{AtomicBool, Ordering};
use tremula_sync::{Mutex, Waiter, park};

/// Raised by any thread, waited for by one. Raised twice before the wait, it wakes once.
pub(crate) struct Signal {
    raised: AtomicBool,
    sleeper: Mutex<Option<Waiter>>,
}

impl Signal {
    pub(crate) fn new() -> Self {
        Self {
            raised: AtomicBool::new(false),
            sleeper: Mutex::new(None),
        }
    }

    /// Wakes the thread that waits, or keeps the next wait from sleeping.
    ///
    /// AcqRel: pairs with the swaps in `wait`. Either the last of these comes after ours, and sees
    /// that the signal is raised; or ours comes after it, and the waiter, which was registered
    /// before that swap, is found here.
    pub(crate) fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            let sleeper = self.sleeper.lock().take();
            if let Some(sleeper) = sleeper {
                sleeper.wake();
            }
        }
    }

    /// Waits until the signal is raised, and lowers it, or until the deadline has passed. Returns
    /// whether it was raised.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> bool {
        loop {
            if self.raised.swap(false, Ordering::AcqRel) {
                return true;
            }
            *self.sleeper.lock() = Some(Waiter::this_thread());
            if self.raised.swap(false, Ordering::AcqRel) {
                return true;
            }
            park(deadline);
            // Checkers have no clock: under them the deadline has passed after one look.
            let passed = |deadline| cfg!(any(loom, shuttle)) || deadline <= Instant::now();
            if deadline.is_some_and(passed) {
                return self.raised.swap(false, Ordering::AcqRel);
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_signal_raised_before_the_wait_ends_it_once() {
        let signal = Signal::new();
        signal.raise();
        signal.raise();
        assert!(signal.wait(None));
        assert!(!signal.wait(Some(Instant::now() + Duration::from_millis(1))));
    }
}
