//! A counter whose increments cost almost nothing.

use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{CachePadded, thread_index};

/// The number of threads that have a cell of their own. Further threads share one.
const CELLS: usize = if cfg!(shuttle) { 2 } else { 64 };

/// A counter with a cell for each thread that no other living thread writes. So an increment is a
/// plain load and store, which is much faster than an atomic addition.
#[derive(Debug)]
pub(super) struct Tally {
    own: Box<[CachePadded<AtomicU64>]>,
    shared: AtomicU64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            own: (0..CELLS).map(|_| CachePadded::default()).collect(),
            shared: AtomicU64::new(0),
        }
    }
}

impl Tally {
    /// Adds one. Relaxed, like all accesses here: counts order nothing. Threads that are being torn
    /// down share a cell number and may lose an increment.
    #[inline]
    pub(super) fn add(&self) {
        match self.own.get(thread_index()) {
            Some(cell) => cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
            None => {
                self.shared.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The sum. It is exact when no thread adds.
    pub(super) fn sum(&self) -> u64 {
        let cells = self.own.iter().map(|cell| cell.load(Ordering::Relaxed));
        cells.sum::<u64>() + self.shared.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn threads_with_and_without_a_cell_are_counted() {
        let (tally, there) = (Tally::default(), std::sync::Barrier::new(CELLS + 8));
        thread::scope(|scope| {
            for _ in 0..CELLS + 8 {
                scope.spawn(|| {
                    there.wait(); // so that all live at the same time
                    (0..1000).for_each(|_| tally.add());
                    there.wait();
                });
            }
        });
        assert_eq!(tally.sum(), (CELLS as u64 + 8) * 1000);
        assert!(tally.shared.load(Ordering::Relaxed) > 0);
    }
}
