//! A look at a measurement that runs, for a thread that shows it.

use std::{
    cell::RefCell,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

thread_local! {
    /// Who watches what this thread measures.
    static WATCHER: RefCell<Option<Arc<Live>>> = const { RefCell::new(None) };
}

/// How many operations each thread has done so far, for those who look on.
#[derive(Debug)]
pub(crate) struct Progress(Box<[ThreadProgress]>);

/// One thread's, on cache lines that no other thread writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadProgress(AtomicU64);

impl ThreadProgress {
    /// Shows that the thread has done `operations` so far. No other thread writes it.
    #[inline]
    pub(crate) fn show(&self, operations: u64) {
        self.0.store(operations, Ordering::Relaxed);
    }
}

impl Progress {
    pub(crate) fn of(threads: usize) -> Self {
        Self((0..threads).map(|_| ThreadProgress::default()).collect())
    }

    pub(crate) fn of_thread(&self, thread: usize) -> &ThreadProgress {
        &self.0[thread]
    }

    /// What all threads have done. It lags by what a thread does between two calls of
    /// [`Lap::done`](crate::measure::Lap::done).
    pub(crate) fn sum(&self) -> u64 {
        // Relaxed, as all accesses: it is a figure for display.
        let threads = self.0.iter();
        threads.map(|done| done.0.load(Ordering::Relaxed)).sum()
    }
}

/// What is measured at the moment by the thread that it [watches](Self::watch).
#[derive(Debug, Default)]
pub(crate) struct Live(Mutex<Now>);

#[derive(Debug, Default)]
struct Now {
    /// How many measurements have begun.
    number: u64,
    progress: Option<Arc<Progress>>,
    figures: Vec<(String, f64)>,
}

impl Live {
    /// Sees all that is measured by this thread, and by those that it starts for that, while it works.
    pub(crate) fn watch<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        let _watching = Watching(WATCHER.replace(Some(Arc::clone(self))));
        work()
    }

    /// The number of the measurement that is under way, and how many operations were done in it.
    pub(crate) fn done(&self) -> Option<(u64, u64)> {
        let now = self.now();
        let progress = now.progress.as_ref()?;
        Some((now.number, progress.sum()))
    }

    /// What was last told of the shape of what is measured.
    pub(crate) fn figures(&self) -> Vec<(String, f64)> {
        self.now().figures.clone()
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Until it is dropped this thread has another watcher than the one it keeps.
struct Watching(Option<Arc<Live>>);

impl Drop for Watching {
    fn drop(&mut self) {
        WATCHER.replace(self.0.take());
    }
}

fn watcher() -> Option<Arc<Live>> {
    WATCHER.with_borrow(Option::clone)
}

/// Shows the measurement that this thread begins to whoever watches, until it is dropped.
pub(crate) struct Shown(Option<Arc<Live>>);

impl Shown {
    pub(crate) fn of(progress: &Arc<Progress>) -> Self {
        let watcher = watcher();
        if let Some(live) = &watcher {
            let mut now = live.now();
            now.number += 1;
            now.progress = Some(Arc::clone(progress));
            now.figures.clear();
        }
        Self(watcher)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(live) = &self.0 {
            live.now().progress = None;
        }
    }
}

/// Tells whoever watches what what is measured looks like.
pub(crate) fn show_figures(figures: impl IntoIterator<Item = (String, f64)>) {
    if let Some(live) = watcher() {
        live.now().figures = figures.into_iter().collect();
    }
}
