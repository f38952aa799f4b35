//! The statistics lock: a readers-writer lock that knows how contended it is.
//!
//! Sources: Sagonas and Winblad, "A contention adapting approach to concurrent ordered sets", JPDC
//! 2018, section 3 (the statistics); Dice and Kogan, "BRAVO: biased locking for reader-writer
//! locks", USENIX ATC 2019 (readers that do not write the lock's cache line).
//!
//! # How it works
//!
//! Every acquisition first tries. An acquisition that had to wait raises the statistics; a writer
//! that did not have to wait lowers them. The owner of the lock may read the statistics and change
//! the grain of what the lock protects.
//!
//! Reads by more than one thread with no write between them turn on the *reader bias*: from then on
//! a reader only writes the address of the lock to its own thread's slot ([`LockDomain`]), and
//! writes no shared cache line. A writer takes the lock, turns the bias off, and waits until no
//! slot contains the lock's address.
//!
//! ```text
//!  reader                              writer (owns the lock exclusively)
//!  slot <- lock        (SeqCst)        bias <- false            (SeqCst)
//!  bias == true?       (SeqCst)        every slot != lock?      (SeqCst)
//!  yes: read; no: slot <- null,        yes: write; no: wait
//!       take the lock itself
//! ```
//!
//! All four accesses are in one total order. So either the reader's write to its slot comes before
//! the writer checks that slot, and the writer waits; or the writer's `false` comes before the
//! reader reads the bias, and the reader withdraws.

use crate::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::cell::{ConstPtr, MutPtr, UnsafeCell};
use crate::primitives::RawRwLock;
use crate::reader_stripes::ReaderStripes;
use crate::{Arc, thread_index};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// How much an acquisition moves a lock's statistics, and the limits at which its owner adapts. The
/// defaults are those of the paper and of ETS.
///
/// ```
/// use tremula_sync::StatisticsConfig;
///
/// let config = StatisticsConfig::default().split_above(500);
/// assert_eq!((config.contended, config.split_above), (250, 500));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatisticsConfig {
    /// Added when the lock had to be waited for.
    pub contended: i32,
    /// Subtracted when a writer did not have to wait.
    pub uncontended: i32,
    /// Statistics above this ask for a finer grain.
    pub split_above: i32,
    /// Statistics below this ask for a coarser grain.
    pub join_below: i32,
    /// The reader bias is turned on by this number of reads, each by another thread than the one
    /// before, with no write between them.
    pub bias_after: u32,
}

impl Default for StatisticsConfig {
    fn default() -> Self {
        Self {
            contended: 250,
            uncontended: 1,
            split_above: 1000,
            join_below: -1000,
            bias_after: 4,
        }
    }
}

impl StatisticsConfig {
    /// Sets what is added when the lock had to be waited for.
    #[must_use]
    pub const fn contended(mut self, contended: i32) -> Self {
        self.contended = contended;
        self
    }

    /// Sets what is subtracted when a writer did not have to wait.
    #[must_use]
    pub const fn uncontended(mut self, uncontended: i32) -> Self {
        self.uncontended = uncontended;
        self
    }

    /// Sets the limit above which statistics ask for a finer grain.
    #[must_use]
    pub const fn split_above(mut self, split_above: i32) -> Self {
        self.split_above = split_above;
        self
    }

    /// Sets the limit below which statistics ask for a coarser grain.
    #[must_use]
    pub const fn join_below(mut self, join_below: i32) -> Self {
        self.join_below = join_below;
        self
    }

    /// Sets the number of reads that turns the reader bias on.
    #[must_use]
    pub const fn bias_after(mut self, bias_after: u32) -> Self {
        self.bias_after = bias_after;
        self
    }
}

/// What a family of locks shares: the configuration, and the slots of the readers. About 8 KiB;
/// make one for each tree, not one for each lock.
pub struct LockDomain {
    config: StatisticsConfig,
    stripes: ReaderStripes,
}

impl LockDomain {
    /// A domain with this configuration.
    #[must_use]
    pub fn new(config: StatisticsConfig) -> Self {
        Self {
            config,
            stripes: ReaderStripes::new(),
        }
    }

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &StatisticsConfig {
        &self.config
    }
}

/// The last reader, and how often the reader changed since the last write, in one word: the
/// thread's index + 1 in the upper 24 bits, the count in the lower 8.
struct ReaderHistory;

impl ReaderHistory {
    const COUNT: u32 = 0xff;

    /// The history after a read by `thread`, or `None` if nothing changes.
    fn after_read(history: u32, thread: usize) -> Option<u32> {
        let me = (thread as u32).wrapping_add(1) << 8;
        (history & !Self::COUNT != me).then(|| me | ((history & Self::COUNT) + 1).min(Self::COUNT))
    }
}

/// A readers-writer lock around `T` that keeps statistics of its contention.
///
/// An uncontended write costs the plain lock and one non-atomic store to a cache line that the
/// writer already owns. An uncontended read leaves the statistics alone. While several threads read
/// and no thread writes, reading writes no shared cache line. A waiting writer is not overtaken for
/// ever, but there is no strict order.
///
/// The lock is not reentrant: a thread that holds it in one mode and asks for the other deadlocks.
///
/// A guard must be dropped. If a program forgets a [`ReadGuard`]
/// ([`mem::forget`](std::mem::forget)), writers wait for ever. The reader's slot also keeps the
/// lock's address, so if another lock of this domain is later made at that address, its writers
/// wait for ever too. Memory stays safe.
///
/// ```
/// use tremula_sync::{Arc, LockDomain, StatisticsConfig, StatisticsLock};
///
/// let domain = Arc::new(LockDomain::new(StatisticsConfig::default()));
/// let lock = StatisticsLock::new(1, domain);
/// *lock.write() += 1;
/// assert_eq!(*lock.read(), 2);
/// assert_eq!(lock.statistics(), -1); // one write that did not have to wait
/// ```
pub struct StatisticsLock<T> {
    raw: RawRwLock,
    /// Readers may enter by their slots. Set by a holder of the lock in any mode, cleared by the
    /// exclusive holder.
    reader_biased: AtomicBool,
    /// See [`ReaderHistory`].
    reader_history: AtomicU32,
    /// The statistics (upper half, signed) and the number of uncontended writes (lower half, modulo
    /// 2^32) in one word, so that one addition changes both for an uncontended write. The exclusive
    /// holder writes it with plain loads and stores, shared holders that had to wait with atomic
    /// additions.
    tally: AtomicU64,
    /// Acquisitions that had to wait, modulo 2^32.
    contended: AtomicU32,
    domain: Arc<LockDomain>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock admits either readers, which share `&T`, or one writer, which has `&mut T`.
unsafe impl<T: Send + Sync> Sync for StatisticsLock<T> {}
// SAFETY: nothing in it is tied to a thread.
unsafe impl<T: Send> Send for StatisticsLock<T> {}

const ONE_STATISTIC: u64 = 1 << 32;

/// `delta` in the upper half of a tally, to be added with wrap-around.
const fn statistics_part(delta: i32) -> u64 {
    (delta as i64 as u64).wrapping_mul(ONE_STATISTIC)
}

impl<T> StatisticsLock<T> {
    /// A lock around `value`, with statistics of 0.
    pub fn new(value: T, domain: Arc<LockDomain>) -> Self {
        Self {
            raw: RawRwLock::new(),
            reader_biased: AtomicBool::new(false),
            reader_history: AtomicU32::new(0),
            tally: AtomicU64::new(0),
            contended: AtomicU32::new(0),
            domain,
            value: UnsafeCell::new(value),
        }
    }

    /// What the slots hold for this lock: the address of a field that no lock inside `value` can
    /// have. The lock's own address does not work: `value` may lie at the beginning of the lock,
    /// and then a lock inside it would have the same address.
    fn address(&self) -> *mut () {
        ptr::from_ref(&self.reader_biased).cast_mut().cast()
    }

    /// Waits for shared access.
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn read(&self) -> ReadGuard<'_, T> {
        if self.reader_biased.load(Ordering::Relaxed)
            && let Some(slot) = self.domain.stripes.publish(self.address())
        {
            // SeqCst: the reader's second step in the module's picture. The load also acquires what
            // the thread that set the bias had acquired: the last writer's changes.
            if self.reader_biased.load(Ordering::SeqCst) {
                return ReadGuard::new(self, Some(slot));
            }
            slot.store(ptr::null_mut(), Ordering::Release);
        }
        self.read_unbiased()
    }

    /// Waits for shared access to the lock itself, without a slot. For a thread that reads under
    /// several locks at once, because a thread has only one slot.
    #[cfg_attr(sim, track_caller)]
    pub fn read_unbiased(&self) -> ReadGuard<'_, T> {
        if !self.raw.try_lock_shared() {
            self.raw.lock_shared();
            self.count_contention();
        }
        self.consider_bias();
        ReadGuard::new(self, None)
    }

    /// Shared access to the lock itself, if no writer has it or waits for it.
    #[cfg_attr(sim, track_caller)]
    pub fn try_read_unbiased(&self) -> Option<ReadGuard<'_, T>> {
        self.raw
            .try_lock_shared()
            .then(|| ReadGuard::new(self, None))
    }

    /// Waits for exclusive access.
    #[inline]
    #[cfg_attr(sim, track_caller)]
    pub fn write(&self) -> WriteGuard<'_, T> {
        let waited = !self.raw.try_lock_exclusive();
        if waited {
            self.raw.lock_exclusive();
        }
        let waited = waited | self.end_bias();
        let tally = self.tally.load(Ordering::Relaxed);
        let tally = if waited {
            self.contended.store(
                self.contended.load(Ordering::Relaxed).wrapping_add(1),
                Ordering::Relaxed,
            );
            tally.wrapping_add(statistics_part(self.domain.config.contended))
        } else {
            tally
                .wrapping_sub(statistics_part(self.domain.config.uncontended))
                .wrapping_add(1)
        };
        // Relaxed, like all accesses of the tally: it orders nothing, and the exclusive lock keeps
        // other writers away.
        self.tally.store(tally, Ordering::Relaxed);
        WriteGuard {
            value: ManuallyDrop::new(self.value.get_mut()),
            lock: self,
        }
    }

    /// Exclusive access, if no thread holds the lock in any way. Never waits, and leaves the
    /// statistics alone.
    #[cfg_attr(sim, track_caller)]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T>> {
        if !self.raw.try_lock_exclusive() {
            return None;
        }
        if self.clear_bias() && self.domain.stripes.has_reader(self.address()) {
            // The next writer has to wait for these readers. Release: as in `consider_bias`.
            self.reader_biased.store(true, Ordering::Release);
            // SAFETY: it was just taken.
            unsafe { self.raw.unlock_exclusive() };
            return None;
        }
        Some(WriteGuard {
            value: ManuallyDrop::new(self.value.get_mut()),
            lock: self,
        })
    }

    /// Stops readers from entering by their slots, and waits for those inside. Returns whether it
    /// had to wait. The caller holds the lock exclusively.
    #[inline]
    fn end_bias(&self) -> bool {
        self.clear_bias() && self.domain.stripes.wait_for_readers(self.address())
    }

    /// Stops readers from entering by their slots. Returns whether there can be any inside: only if
    /// the bias was on, since a thread that clears it waits for them or sets it again. The caller
    /// holds the lock exclusively.
    #[inline]
    fn clear_bias(&self) -> bool {
        if self.reader_history.load(Ordering::Relaxed) != 0 {
            self.reader_history.store(0, Ordering::Relaxed);
        }
        // Relaxed: only holders of the lock set it, and those have all released it.
        if !self.reader_biased.load(Ordering::Relaxed) {
            return false;
        }
        // SeqCst: the writer's first step in the module's picture.
        self.reader_biased.store(false, Ordering::SeqCst);
        true
    }

    /// Records a read, and turns the bias on after enough reads. The caller holds the lock in
    /// shared mode.
    #[inline]
    fn consider_bias(&self) {
        let history = self.reader_history.load(Ordering::Relaxed);
        let Some(history) = ReaderHistory::after_read(history, thread_index()) else {
            return;
        };
        self.reader_history.store(history, Ordering::Relaxed);
        if history & ReaderHistory::COUNT >= self.domain.config.bias_after {
            // Release: pairs with the Acquire part of the load in `read`. This thread acquired the
            // last writer's changes with the lock, so the reader sees them too.
            self.reader_biased.store(true, Ordering::Release);
        }
    }

    /// Counts a read that had to wait. The caller holds the lock in shared mode, so no exclusive
    /// holder is storing to the tally.
    #[cold]
    fn count_contention(&self) {
        self.contended.fetch_add(1, Ordering::Relaxed);
        self.tally.fetch_add(
            statistics_part(self.domain.config.contended),
            Ordering::Relaxed,
        );
    }

    /// The statistics now: high when the lock was waited for, low when it was not.
    pub fn statistics(&self) -> i32 {
        (self.tally.load(Ordering::Relaxed) >> 32) as i32
    }

    /// How many acquisitions had to wait, and how many writes did not, modulo 2^32 each.
    pub fn acquisitions(&self) -> (u32, u32) {
        (
            self.contended.load(Ordering::Relaxed),
            self.tally.load(Ordering::Relaxed) as u32,
        )
    }

    /// Whether readers may enter by their slots.
    pub fn is_reader_biased(&self) -> bool {
        self.reader_biased.load(Ordering::Relaxed)
    }
}

/// Shared access to what a [`StatisticsLock`] protects.
pub struct ReadGuard<'a, T> {
    value: ManuallyDrop<ConstPtr<T>>,
    lock: &'a StatisticsLock<T>,
    /// The slot by which the reader entered, or `None` if it holds the lock itself.
    slot: Option<&'a AtomicPtr<()>>,
}

impl<'a, T> ReadGuard<'a, T> {
    #[inline]
    fn new(lock: &'a StatisticsLock<T>, slot: Option<&'a AtomicPtr<()>>) -> Self {
        Self {
            value: ManuallyDrop::new(lock.value.get()),
            lock,
            slot,
        }
    }

    /// Lowers the statistics by `amount`, after work that needed more than one lock.
    pub fn lower_statistics(&self, amount: i32) {
        // Atomic, because other shared holders may do the same.
        self.lock
            .tally
            .fetch_add(statistics_part(-amount), Ordering::Relaxed);
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: no writer is inside: this guard holds the lock in shared mode, or its slot names
        // the lock and writers wait for that.
        unsafe { (*self.value).deref() }
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the pointer is not used again.
        unsafe { ManuallyDrop::drop(&mut self.value) };
        match self.slot {
            // Release: pairs with the writer's load in `wait_for_readers`: this reader's reads
            // happen before the writer's writes.
            Some(slot) => slot.store(ptr::null_mut(), Ordering::Release),
            // SAFETY: without a slot, this guard holds the lock in shared mode.
            None => unsafe { self.lock.raw.unlock_shared() },
        }
    }
}

/// Exclusive access to what a [`StatisticsLock`] protects.
pub struct WriteGuard<'a, T> {
    value: ManuallyDrop<MutPtr<T>>,
    lock: &'a StatisticsLock<T>,
}

impl<T> WriteGuard<'_, T> {
    /// The statistics now.
    #[inline]
    pub fn statistics(&self) -> i32 {
        self.lock.statistics()
    }

    /// Sets the statistics.
    pub fn set_statistics(&mut self, statistics: i32) {
        let writes = self.lock.tally.load(Ordering::Relaxed) as u32;
        self.lock.tally.store(
            statistics_part(statistics) | u64::from(writes),
            Ordering::Relaxed,
        );
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock exclusively, and the writer has waited for the readers
        // with slots.
        unsafe { (*self.value).deref() }
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`: no other thread is inside.
        unsafe { (*self.value).deref() }
    }
}

impl<T> Drop for WriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the pointer is not used again, and this guard holds the lock exclusively.
        unsafe {
            ManuallyDrop::drop(&mut self.value);
            self.lock.raw.unlock_exclusive();
        }
    }
}
