//! When memory that has been unlinked is freed: by the epochs of threads, or by those of the tree.

use tremula_sync::atomic::{AtomicUsize, Ordering};
use tremula_sync::{Mutex, epoch};

/// While it lives, nothing is freed that could be reached when it was made.
pub(super) struct Guard<'t>(Pin<'t>);

enum Pin<'t> {
    /// Each thread has an epoch and a list of its own.
    Local(epoch::Guard),
    /// All threads of the tree count themselves in and out.
    Global { epochs: &'t Epochs, entered: usize },
}

impl Guard<'_> {
    /// Runs `work` once every guard of now is gone.
    ///
    /// # Safety
    ///
    /// `work` is sound to run then, in any thread.
    pub(super) unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        match &self.0 {
            // SAFETY: passed on to the caller.
            Pin::Local(guard) => unsafe { guard.defer_unchecked(work) },
            Pin::Global { epochs, .. } => {
                let work: Box<dyn FnOnce() + '_> = Box::new(move || {
                    work();
                });
                // SAFETY: the caller promises that the work may run later; this only forgets the
                // lifetime that would say so.
                let work = unsafe {
                    std::mem::transmute::<Box<dyn FnOnce() + '_>, Box<dyn FnOnce()>>(work)
                };
                epochs.retire(Retired(work));
            }
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Pin::Global { epochs, entered } = self.0 {
            epochs.leave(entered);
        }
    }
}

/// How a tree keeps what has been unlinked until nobody can be looking at it.
pub(super) struct Reclamation(Option<Box<Epochs>>);

impl Reclamation {
    /// By the epochs of threads if they are `local`, else by those of the tree.
    pub(super) fn new(local: bool) -> Self {
        Self((!local).then(|| Box::new(Epochs::new())))
    }

    /// Pins the current thread.
    #[inline]
    pub(super) fn pin(&self) -> Guard<'_> {
        Guard(match &self.0 {
            None => Pin::Local(epoch::pin()),
            Some(epochs) => Pin::Global {
                entered: epochs.enter(),
                epochs,
            },
        })
    }
}

/// The epochs of a tree, as the original Bw-tree has them: each counts the threads that are in it,
/// and has a list of what was unlinked in it. Every operation writes to a counter that all share.
///
/// At most two epochs have threads in them, the one of now and the one before. When nobody is left
/// in the one before, what was unlinked in it is freed: whoever came later cannot have found it.
/// Then the next epoch begins.
struct Epochs {
    now: AtomicUsize,
    /// The epochs of now, before, and to come, by their numbers modulo three.
    each: [Epoch; 3],
    /// Held by who begins an epoch.
    beginning: Mutex<()>,
}

struct Epoch {
    threads: AtomicUsize,
    retired: Mutex<Vec<Retired>>,
}

/// What frees something that was unlinked.
struct Retired(Box<dyn FnOnce()>);

// SAFETY: who retires promises that any thread may run it.
unsafe impl Send for Retired {}

/// When so much has been retired in an epoch, the next one is to begin. The paper's value is 1,024
/// for a thread.
const ENOUGH: usize = if cfg!(any(loom, shuttle)) { 2 } else { 1024 };

impl Epochs {
    fn new() -> Self {
        Self {
            now: AtomicUsize::new(0),
            each: std::array::from_fn(|_| Epoch {
                threads: AtomicUsize::new(0),
                retired: Mutex::new(Vec::new()),
            }),
            beginning: Mutex::new(()),
        }
    }

    fn at(&self, epoch: usize) -> &Epoch {
        &self.each[epoch % self.each.len()]
    }

    /// Counts the thread in; returns the epoch.
    fn enter(&self) -> usize {
        loop {
            // SeqCst, here and below: the thread is counted before it finds that this is still
            // the epoch of now. So who ends the next one finds it counted.
            let now = self.now.load(Ordering::SeqCst);
            self.at(now).threads.fetch_add(1, Ordering::SeqCst);
            if self.now.load(Ordering::SeqCst) == now {
                return now;
            }
            self.leave(now);
        }
    }

    fn leave(&self, epoch: usize) {
        self.at(epoch).threads.fetch_sub(1, Ordering::SeqCst);
    }

    /// Called by a thread that is counted in: so this epoch, or the one after it, is the thread's.
    fn retire(&self, work: Retired) {
        let now = self.now.load(Ordering::SeqCst);
        let mut retired = self.at(now).retired.lock();
        retired.push(work);
        let is_enough = retired.len() >= ENOUGH;
        drop(retired);
        if is_enough {
            self.begin_next();
        }
    }

    /// Begins the next epoch, if nobody is left in the one before this; frees what was retired in
    /// that.
    fn begin_next(&self) {
        let Some(beginning) = self.beginning.try_lock() else {
            return;
        };
        let now = self.now.load(Ordering::SeqCst);
        // The one before: its number, plus three.
        let before = self.at(now + 2);
        if before.threads.load(Ordering::SeqCst) > 0 {
            return;
        }
        let retired = std::mem::take(&mut *before.retired.lock());
        self.now.store(now + 1, Ordering::SeqCst);
        drop(beginning);
        retired.into_iter().for_each(|retired| (retired.0)());
    }
}

impl Drop for Epochs {
    fn drop(&mut self) {
        for epoch in &self.each {
            let retired = std::mem::take(&mut *epoch.retired.lock());
            retired.into_iter().for_each(|retired| (retired.0)());
        }
    }
}
