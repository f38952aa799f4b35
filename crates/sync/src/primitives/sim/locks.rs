//! The locks of `parking_lot`, with their decisions: how long a thread spins before it sleeps,
//! which sleeping threads a thread wakes that releases the lock, and when it hands the lock over to
//! them instead. Without the last, a thread that takes the lock again and again starves one that
//! sleeps: it has taken the lock before the other has woken up.
//!
//! Source: the crates `parking_lot` 0.12 (`raw_mutex.rs`, `raw_rwlock.rs`) and `parking_lot_core`
//! 0.9 (`spinwait.rs`).

use super::current;
use super::directory::Kind;
use super::state::Woken;
use parking_lot::lock_api;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

/// How a thread waits before it sleeps: a few tries with longer and longer pauses between them, and
/// then a few between which it lets other threads have the core.
#[derive(Default)]
struct SpinWait(u32);

impl SpinWait {
    /// Waits a little. `false` if the thread has waited long enough, and should sleep.
    fn spin(&mut self) -> bool {
        if self.0 >= 10 {
            return false;
        }
        self.0 += 1;
        if self.0 <= 3 {
            (0..1 << self.0).for_each(|_| current::spin_loop());
        } else {
            current::yield_now();
        }
        true
    }

    /// What a reader waits when another reader came first at the word.
    fn spin_without_yielding(&mut self) {
        self.0 = (self.0 + 1).min(10);
        (0..1 << self.0).for_each(|_| current::spin_loop());
    }
}

/// The word of a lock. Each access is blamed on the place that takes the lock: an access by a
/// thread that unlocks it, on the place where the lock was taken last.
struct LockWord(AtomicU32);

impl LockWord {
    const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    #[track_caller]
    fn change(&self) {
        current::access(self.address(), Kind::ReadModifyWrite, Location::caller());
    }

    #[track_caller]
    fn load(&self) -> u32 {
        current::access(self.address(), Kind::Load, Location::caller());
        self.peek()
    }

    #[track_caller]
    fn swap_if(&self, expected: u32, next: u32) -> bool {
        self.change();
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        let swapped = self.0.compare_exchange(expected, next, success, failure);
        swapped.is_ok()
    }

    /// Sets `bit` in a word that is `expected`.
    #[track_caller]
    fn mark(&self, expected: u32, bit: u32) -> bool {
        expected & bit != 0 || self.swap_if(expected, expected | bit)
    }

    /// The price of the step that releases the lock. No other thread comes between this and what
    /// the caller does to the word: in it, others go first.
    fn release(&self) {
        current::access(self.address(), Kind::ReadModifyWrite, self.place());
    }

    /// After the lock has been released and threads have been woken: sets [`PARKED`] if others
    /// still sleep, and `inside` if the lock was handed over to those that woke.
    fn put_back(&self, woken: Woken, inside: u32) {
        let parked = if woken.more { PARKED } else { 0 };
        let inside = if woken.fair { inside } else { 0 };
        self.0.fetch_or(parked | inside, Ordering::Relaxed);
    }

    /// The value, without a price: for the simulator itself.
    fn peek(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// The lock has been taken from here.
    #[track_caller]
    fn taken(&self) {
        current::lock_taken(self.address(), Location::caller());
    }

    /// Where the lock was taken last.
    fn place(&self) -> &'static Location<'static> {
        current::lock_place(self.address()).unwrap_or_else(Location::caller)
    }
}

/// The mutex's word: free, or these bits.
const LOCKED: u32 = 1;
/// Threads may sleep.
const PARKED: u32 = 1 << 30;

/// The word of a mutex.
pub struct RawMutex(LockWord);

/// A mutex without poisoning.
///
/// ```
/// let mutex = tremula_sync::sim::Mutex::new(1);
/// *mutex.lock() += 1;
/// assert_eq!(*mutex.lock(), 2);
/// ```
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

impl RawMutex {
    #[track_caller]
    fn lock_slowly(&self) {
        let mut spin = SpinWait::default();
        loop {
            let word = self.0.load();
            if word & LOCKED == 0 {
                if self.0.swap_if(word, word | LOCKED) {
                    return;
                }
                continue;
            }
            if word & PARKED == 0 && spin.spin() {
                continue;
            }
            if !self.0.mark(word, PARKED) {
                continue;
            }
            let is_right = || self.0.peek() == LOCKED | PARKED;
            if current::sleep_at(self.0.address(), true, is_right) {
                return;
            }
            spin = SpinWait::default();
        }
    }
}

// SAFETY: a thread holds the lock after it has set `LOCKED` in the word, or after the holder has
// handed it over; no other thread sets the bit until the holder has cleared it.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = Self(LockWord::new());
    type GuardMarker = lock_api::GuardNoSend;

    #[track_caller]
    fn try_lock(&self) -> bool {
        let mut word = self.0.load();
        while word & LOCKED == 0 {
            if self.0.swap_if(word, word | LOCKED) {
                self.0.taken();
                return true;
            }
            word = self.0.peek();
        }
        false
    }

    #[track_caller]
    fn lock(&self) {
        if !self.0.swap_if(0, LOCKED) {
            self.lock_slowly();
        }
        self.0.taken();
    }

    unsafe fn unlock(&self) {
        self.0.release();
        let before = self.0.0.fetch_and(!(LOCKED | PARKED), Ordering::Release);
        if before & PARKED != 0 {
            let mut is_first = true;
            let woken = current::wake_at(self.0.address(), |_| std::mem::take(&mut is_first));
            self.0.put_back(woken, LOCKED);
        }
    }
}

/// The readers-writer lock's word: the readers inside, and bits.
const READERS: u32 = (1 << 29) - 1;
/// A writer is inside, or waits until the readers have left.
const WRITER: u32 = 1 << 31;
/// That writer sleeps, at the address after the lock's.
const WRITER_PARKED: u32 = 1 << 29;

/// The word of a readers-writer lock, as `parking_lot` has it.
struct ParkingRwLock(LockWord);

impl ParkingRwLock {
    const fn new() -> Self {
        Self(LockWord::new())
    }

    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        let mut word = self.0.load();
        let mut spin = SpinWait::default();
        while word & WRITER == 0 {
            if self.0.swap_if(word, word + 1) {
                self.0.taken();
                return true;
            }
            spin.spin_without_yielding();
            word = self.0.load();
        }
        false
    }

    #[track_caller]
    fn lock_shared(&self) {
        if !self.try_lock_shared() {
            self.wait(false);
        }
    }

    #[track_caller]
    fn try_lock_exclusive(&self) -> bool {
        let locked = self.0.swap_if(0, WRITER);
        if locked {
            self.0.taken();
        }
        locked
    }

    #[track_caller]
    fn lock_exclusive(&self) {
        if !self.try_lock_exclusive() {
            self.wait(true);
            self.wait_for_readers();
        }
    }

    /// Waits until the thread is a reader, or has set [`WRITER`].
    #[track_caller]
    fn wait(&self, writes: bool) {
        let mut spin = SpinWait::default();
        loop {
            let word = self.0.load();
            if word & WRITER == 0 {
                let next = if writes { word | WRITER } else { word + 1 };
                if self.0.swap_if(word, next) {
                    break;
                }
                continue;
            }
            if word & (PARKED | WRITER_PARKED) == 0 && spin.spin() {
                continue;
            }
            if !self.0.mark(word, PARKED) {
                continue;
            }
            let is_right = || {
                let word = self.0.peek();
                word & PARKED != 0 && word & WRITER != 0
            };
            if current::sleep_at(self.0.address(), writes, is_right) {
                break;
            }
            spin = SpinWait::default();
        }
        self.0.taken();
    }

    /// Waits until the readers have left. The thread has set [`WRITER`].
    #[track_caller]
    fn wait_for_readers(&self) {
        let mut spin = SpinWait::default();
        loop {
            let word = self.0.load();
            if word & READERS == 0 {
                return;
            }
            if spin.spin() || !self.0.mark(word, WRITER_PARKED) {
                continue;
            }
            current::sleep_at(self.0.address() + 1, true, || {
                let word = self.0.peek();
                word & READERS != 0 && word & WRITER_PARKED != 0
            });
        }
    }

    fn unlock_shared(&self) {
        self.0.release();
        let before = self.0.0.fetch_sub(1, Ordering::Release);
        if before & (READERS | WRITER_PARKED) == 1 | WRITER_PARKED {
            self.0.0.fetch_and(!WRITER_PARKED, Ordering::Relaxed);
            current::wake_at(self.0.address() + 1, |_| true);
        }
    }

    /// Releases the lock, and wakes the first threads that sleep: readers up to a writer, and that
    /// writer.
    fn unlock_exclusive(&self) {
        self.0.release();
        let before = self.0.0.fetch_and(!(WRITER | PARKED), Ordering::Release);
        if before & PARKED != 0 {
            let mut inside = 0;
            let woken = current::wake_at(self.0.address(), |writes| {
                let wakes = inside & WRITER == 0;
                if wakes {
                    inside += if writes { WRITER } else { 1 };
                }
                wakes
            });
            self.0.put_back(woken, inside);
        }
    }
}
/// A readers-writer lock without poisoning.
///
/// ```
/// let lock = tremula_sync::sim::RwLock::new(1);
/// let (one, other) = (lock.read(), lock.read());
/// assert_eq!(*one + *other, 2);
/// ```
pub type RwLock<T> = lock_api::RwLock<Word, T>;

/// The word of an [`RwLock`].
pub struct Word(ParkingRwLock);

// SAFETY: the raw lock admits either readers or one writer.
unsafe impl lock_api::RawRwLock for Word {
    const INIT: Self = Self(ParkingRwLock::new());
    type GuardMarker = lock_api::GuardNoSend;

    #[track_caller]
    fn lock_shared(&self) {
        self.0.lock_shared();
    }

    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        self.0.try_lock_shared()
    }

    unsafe fn unlock_shared(&self) {
        self.0.unlock_shared();
    }

    #[track_caller]
    fn lock_exclusive(&self) {
        self.0.lock_exclusive();
    }

    #[track_caller]
    fn try_lock_exclusive(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    unsafe fn unlock_exclusive(&self) {
        self.0.unlock_exclusive();
    }
}

/// A readers-writer lock of one word, without data: what `primitives/std.rs` makes of
/// `parking_lot`'s. A thread looks at the lock sooner than that one lets it.
pub(crate) struct RawRwLock(ParkingRwLock);

/// How often a thread tries to take a [`RawRwLock`] before it waits as `parking_lot` does, and how
/// often of these it only pauses before.
const TRIES: u32 = 10;
const PAUSING_TRIES: u32 = 3;

fn wait_a_little(step: u32) {
    if step < PAUSING_TRIES {
        (0..1 << step).for_each(|_| current::spin_loop());
    } else {
        current::yield_now();
    }
}

impl RawRwLock {
    pub(crate) const fn new() -> Self {
        Self(ParkingRwLock::new())
    }

    #[track_caller]
    pub(crate) fn try_lock_shared(&self) -> bool {
        self.0.try_lock_shared()
    }

    #[track_caller]
    pub(crate) fn lock_shared(&self) {
        for step in 0..TRIES {
            wait_a_little(step);
            if self.try_lock_shared() {
                return;
            }
        }
        self.0.lock_shared();
    }

    /// # Safety
    ///
    /// The calling thread holds the lock in shared mode.
    pub(crate) unsafe fn unlock_shared(&self) {
        self.0.unlock_shared();
    }

    #[track_caller]
    pub(crate) fn try_lock_exclusive(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    #[track_caller]
    pub(crate) fn lock_exclusive(&self) {
        for step in 0..TRIES {
            wait_a_little(step);
            if self.try_lock_exclusive() {
                return;
            }
        }
        self.0.lock_exclusive();
    }

    /// # Safety
    ///
    /// The calling thread holds the lock in exclusive mode.
    pub(crate) unsafe fn unlock_exclusive(&self) {
        self.0.unlock_exclusive();
    }
}
