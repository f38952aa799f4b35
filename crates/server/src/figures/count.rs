//! A number that one thread counts and any thread reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A count. Only one thread at a time may add to it, so adding needs no atomic operation that
/// others wait for: a thread that added at the same moment would be lost, but never waits.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0
            .store(self.0.load(Relaxed).wrapping_add(more), Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
