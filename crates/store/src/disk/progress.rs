//! How far a snapshot is that is being written.

use tremula_sync::atomic::{AtomicU64, Ordering};

/// How far the snapshot is that is being written. Only the thread that writes it counts; others
/// read, and nothing depends on what they see.
#[derive(Default)]
pub(crate) struct Progress {
    /// Entries that were written.
    done: AtomicU64,
    /// Entries that there were when it began; 0 while none is written.
    all: AtomicU64,
}

impl Progress {
    /// A snapshot of about this number of entries begins.
    pub(crate) fn begin(&self, entries: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(entries.max(1), Ordering::Relaxed);
    }

    /// This number of entries were written, from the beginning on.
    pub(crate) fn reach(&self, entries: u64) {
        self.done.store(entries, Ordering::Relaxed);
    }

    fn end(&self) {
        self.all.store(0, Ordering::Relaxed);
    }

    /// Entries that were written, and all; `None` while none is written.
    pub(crate) fn get(&self) -> Option<(u64, u64)> {
        let all = self.all.load(Ordering::Relaxed);
        (all > 0).then(|| (self.done.load(Ordering::Relaxed).min(all), all))
    }
}

/// Ends the progress of a snapshot, however its writing ends.
pub(super) struct Ending<'a>(pub(super) &'a Progress);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_stays_within_what_there_is_and_ends() {
        let progress = Progress::default();
        assert_eq!(progress.get(), None);
        progress.begin(10);
        assert_eq!(progress.get(), Some((0, 10)));
        progress.reach(4);
        assert_eq!(progress.get(), Some((4, 10)));
        // What came meanwhile was written, too.
        progress.reach(12);
        assert_eq!(progress.get(), Some((10, 10)));
        drop(Ending(&progress));
        assert_eq!(progress.get(), None);
        progress.begin(0);
        assert_eq!(progress.get(), Some((0, 1)));
    }
}
