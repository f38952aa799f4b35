//! When unlinked memory is freed: by a collector, in which each thread has an epoch of its own, or
//! by epochs that all threads of a tree share.

use super::free::FirstPanic;
use std::cell::Cell;
use std::mem::needs_drop;
use tremula_index::Storable;
use tremula_index::kit::{Packed, Retire};
use tremula_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tremula_sync::reclaim::{self, Collector};
use tremula_sync::{CachePadded, Mutex};

/// A pin: while it lives, nothing is freed that could be reached when it was made.
///
/// Users' `Drop` runs when a guard is dropped, after the pin has ended: no operation is under way
/// then.
pub(super) struct Guard<'t>(Pin<'t>);

enum Pin<'t> {
    /// Each thread has an epoch and a list of its own.
    Local(reclaim::Guard<'t>),
    /// All threads of the tree count themselves in and out.
    Global {
        epochs: &'t Epochs,
        entered: usize,
        /// Whether the next epoch is to begin when this ends.
        is_due: Cell<bool>,
    },
}

impl Guard<'_> {
    /// Runs `work` once every guard that exists now is gone.
    ///
    /// # Safety
    ///
    /// `work` is sound to run then, in any thread.
    pub(super) unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        match &self.0 {
            // SAFETY: passed on to the caller.
            Pin::Local(guard) => unsafe { guard.defer_unchecked(work) },
            Pin::Global { epochs, is_due, .. } => {
                let work: Box<dyn FnOnce() + '_> = Box::new(move || {
                    work();
                });
                // SAFETY: the caller promises that the work may run later; this only erases the
                // lifetime.
                let work = unsafe {
                    std::mem::transmute::<Box<dyn FnOnce() + '_>, Box<dyn FnOnce()>>(work)
                };
                if epochs.retire(Retired(work)) {
                    is_due.set(true);
                }
            }
        }
    }

    /// Whether no other thread is in the tree. Then only this thread has what it has unlinked.
    fn is_alone(&self) -> bool {
        match &self.0 {
            Pin::Local(guard) => guard.is_alone(),
            Pin::Global { epochs, .. } => epochs.threads() == 1,
        }
    }
}

impl Retire for Guard<'_> {
    #[inline]
    unsafe fn defer_unchecked<F: FnOnce() -> R, R>(&self, work: F) {
        // SAFETY: passed on to the caller.
        unsafe { self.defer_unchecked(work) };
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Pin::Global {
            epochs,
            entered,
            is_due,
        } = &self.0
        {
            epochs.leave(*entered);
            // Users' `Drop` may panic.
            if is_due.get() && !tremula_sync::thread::panicking() {
                epochs.begin_next();
            }
        }
    }
}

/// A value that its only owner has unlinked. Dropping it frees the value once no thread can be
/// looking at it.
pub(super) struct Unlinked<'g, V: Storable> {
    value: Packed<V>,
    guard: &'g Guard<'g>,
}

impl<'g, V: Storable> Unlinked<'g, V> {
    /// # Safety
    ///
    /// The word is that of a value that was in the tree during the pin; a thread that comes to the
    /// tree from now on does not find it, and no other thread frees it.
    #[inline]
    pub(super) unsafe fn of_word(word: *mut (), guard: &'g Guard<'g>) -> Self {
        Self {
            value: Packed::of_word(word),
            guard,
        }
    }

    /// The value itself, if no other thread can be looking at it; else a copy.
    #[inline]
    pub(super) fn hand_out(self) -> V {
        if !Packed::<V>::is_word() && needs_drop::<V>() && self.guard.is_alone() {
            let value = self.value;
            std::mem::forget(self);
            // SAFETY: it was unlinked before `is_alone` found no other thread that could have found
            // it; and this thread uses it through the tree no more.
            return unsafe { value.take() };
        }
        // SAFETY: it is not freed before the pin ends.
        unsafe { self.value.with(V::clone) }
    }
}

impl<V: Storable> Drop for Unlinked<'_, V> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as `of_word` demands.
        unsafe { self.value.retire(self.guard) };
    }
}

/// How a tree keeps unlinked memory until no thread can be looking at it.
#[cfg_attr(
    any(loom, shuttle),
    expect(clippy::large_enum_variant, reason = "a checker's atomics are large")
)]
pub(super) enum Reclamation {
    Local(Collector),
    Global(Epochs),
}

impl Reclamation {
    /// By the epochs of threads if they are `local`, else by those of the tree.
    pub(super) fn new(local: bool) -> Self {
        if local {
            Self::Local(Collector::new())
        } else {
            Self::Global(Epochs::new())
        }
    }

    #[inline]
    pub(super) fn pin(&self) -> Guard<'_> {
        Guard(match self {
            Self::Local(collector) => Pin::Local(collector.pin()),
            Self::Global(epochs) => {
                let (entered, is_due) = epochs.enter();
                Pin::Global {
                    epochs,
                    entered,
                    is_due: Cell::new(is_due),
                }
            }
        })
    }
}

/// The epochs of a tree, as in the original Bw-tree: each counts the threads in it, and has a list
/// of what was unlinked in it. Every operation writes to a counter that all threads share.
///
/// At most two epochs have threads in them, the current and the previous one. When the previous one
/// has none left, its list is freed: threads that came later cannot have found what is in it. Then
/// the next epoch begins. A thread does this after it has left, when it uses nothing of the tree,
/// since freeing may run user code.
pub(super) struct Epochs {
    now: AtomicUsize,
    /// The current, the previous and the next epoch, by their numbers modulo three.
    each: [CachePadded<Epoch>; 3],
    /// Held by the thread that begins an epoch.
    beginning: Mutex<()>,
}

struct Epoch {
    /// The number of threads in it, and above that, in units of [`ENTERED`], how many entered.
    threads: AtomicU64,
    retired: Mutex<Vec<Retired>>,
}

impl Epoch {
    fn threads(&self) -> u64 {
        // SeqCst: see `Epochs::enter`.
        self.threads.load(Ordering::SeqCst) & (ENTERED - 1)
    }
}

/// One more thread that entered.
const ENTERED: u64 = 1 << 32;

/// Work that frees something unlinked.
struct Retired(Box<dyn FnOnce()>);

// SAFETY: the caller of `defer_unchecked` promises that any thread may run it.
unsafe impl Send for Retired {}

/// When this much has been retired in an epoch, the next one is due. The paper's value is 1,024 for
/// each thread.
const ENOUGH: usize = if cfg!(any(loom, shuttle)) { 2 } else { 1024 };

/// After this many operations it is due, too, however little was retired.
const OPERATIONS: u64 = 256;

impl Epochs {
    fn new() -> Self {
        Self {
            now: AtomicUsize::new(0),
            each: std::array::from_fn(|_| {
                CachePadded::new(Epoch {
                    threads: AtomicU64::new(0),
                    retired: Mutex::new(Vec::new()),
                })
            }),
            beginning: Mutex::new(()),
        }
    }

    fn at(&self, epoch: usize) -> &Epoch {
        &self.each[epoch % 3]
    }

    /// Counts the thread in; returns its epoch, and whether the next one is due when it leaves.
    fn enter(&self) -> (usize, bool) {
        loop {
            // SeqCst, here and below: the thread is counted before it finds that this is still the
            // current epoch. So a thread that ends the next epoch sees it counted.
            let now = self.now.load(Ordering::SeqCst);
            let before = self
                .at(now)
                .threads
                .fetch_add(ENTERED + 1, Ordering::SeqCst);
            if self.now.load(Ordering::SeqCst) == now {
                let is_due = before / ENTERED % OPERATIONS == OPERATIONS - 1;
                return (now, is_due);
            }
            self.leave(now);
        }
    }

    fn leave(&self, epoch: usize) {
        self.at(epoch).threads.fetch_sub(1, Ordering::SeqCst);
    }

    /// The number of threads that are counted in; may miss a thread that enters meanwhile.
    fn threads(&self) -> u64 {
        self.each.iter().map(|epoch| epoch.threads()).sum()
    }

    /// Called by a thread that is counted in, in this epoch or the previous one. Returns whether
    /// the next epoch is due.
    fn retire(&self, work: Retired) -> bool {
        let now = self.now.load(Ordering::SeqCst);
        let mut retired = self.at(now).retired.lock();
        retired.push(work);
        retired.len() >= ENOUGH
    }

    /// Begins the next epoch, if the previous one has no threads left, and frees the previous one's
    /// list. The calling thread is not counted in, or only by an operation that encloses the one
    /// that ends.
    fn begin_next(&self) {
        let Some(beginning) = self.beginning.try_lock() else {
            return;
        };
        let now = self.now.load(Ordering::SeqCst);
        // The previous epoch: its number, plus three.
        let before = self.at(now + 2);
        if before.threads() > 0 {
            return;
        }
        let retired = std::mem::take(&mut *before.retired.lock());
        self.now.store(now + 1, Ordering::SeqCst);
        drop(beginning);
        run(retired);
    }
}

/// Runs all work, whatever panics, and then resumes the first panic.
fn run(retired: Vec<Retired>) {
    let mut panic = FirstPanic::default();
    for work in retired {
        panic.catch(|| (work.0)());
    }
    panic.resume();
}

impl Drop for Epochs {
    fn drop(&mut self) {
        let lists = self.each.each_ref();
        let lists = lists.map(|epoch| std::mem::take(&mut *epoch.retired.lock()));
        run(lists.into_iter().flatten().collect());
    }
}
