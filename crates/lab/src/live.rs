//! A running measurement as another thread sees it.

use std::{
    cell::RefCell,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

thread_local! {
    /// The watcher of what this thread measures.
    static WATCHER: RefCell<Option<Arc<Live>>> = const { RefCell::new(None) };
}

/// How many operations each thread has done so far, for display.
#[derive(Debug)]
pub(crate) struct Progress(Box<[ThreadProgress]>);

/// The count of one thread, on cache lines that no other thread writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadProgress(AtomicU64);

impl ThreadProgress {
    /// Publishes that the thread has done `operations` so far. Only this thread writes the count.
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

    /// The operations of all threads. It lags by what a thread does between two calls of
    /// [`Lap::done`](crate::measure::Lap::done).
    pub(crate) fn sum(&self) -> u64 {
        // Relaxed, like all accesses: the figure is only displayed.
        let threads = self.0.iter();
        threads.map(|done| done.0.load(Ordering::Relaxed)).sum()
    }
}

/// What the [watched](Self::watch) thread measures at the moment.
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
    /// Watches, while `work` runs, everything that this thread measures with the threads that it
    /// starts.
    pub(crate) fn watch<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        let _watching = Watching(WATCHER.replace(Some(Arc::clone(self))));
        work()
    }

    /// The number of the current measurement, and how many operations were done in it.
    pub(crate) fn done(&self) -> Option<(u64, u64)> {
        let now = self.now();
        let progress = now.progress.as_ref()?;
        Some((now.number, progress.sum()))
    }

    /// The last reported figures of the measured table.
    pub(crate) fn figures(&self) -> Vec<(String, f64)> {
        self.now().figures.clone()
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Restores the previous watcher of this thread when dropped.
struct Watching(Option<Arc<Live>>);

impl Drop for Watching {
    fn drop(&mut self) {
        WATCHER.replace(self.0.take());
    }
}

fn watcher() -> Option<Arc<Live>> {
    WATCHER.with_borrow(Option::clone)
}

/// Shows the measurement that this thread begins to its watcher, until it is dropped.
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

/// Shows these figures of what is measured to this thread's watcher.
pub(crate) fn show_figures(figures: impl IntoIterator<Item = (String, f64)>) {
    if let Some(live) = watcher() {
        live.now().figures = figures.into_iter().collect();
    }
}
