//! Locks that spin a little and then sleep, as the locks of `parking_lot` do.

use super::current;
use super::directory::Kind;
use parking_lot::lock_api;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

/// The mutex's word: free, locked, or locked while threads may sleep.
const FREE: u32 = 0;
const LOCKED: u32 = 1;
const SLEEPERS: u32 = 2;

/// How often a thread tries before it sleeps. After the first tries, which only pause, it lets
/// other threads have the core.
const TRIES: u32 = 10;
const PAUSING_TRIES: u32 = 3;

/// A thread that waits for a lock, before one of its tries.
fn wait_a_little(step: u32) {
    if step < PAUSING_TRIES {
        (0..2 << step).for_each(|_| current::spin_loop());
    } else {
        current::yield_now();
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

    #[track_caller]
    fn swap(&self, next: u32) -> u32 {
        self.change();
        self.0.swap(next, Ordering::AcqRel)
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

/// The word of a mutex.
///
/// Source: Drepper, "Futexes are tricky" (2011), section 6, for the three values.
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

// SAFETY: a thread holds the lock after it has changed the word from free; no other thread changes
// the word from free until the holder has set it so.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = Self(LockWord::new());
    type GuardMarker = lock_api::GuardNoSend;

    #[track_caller]
    fn try_lock(&self) -> bool {
        let locked = self.0.swap_if(FREE, LOCKED);
        if locked {
            self.0.taken();
        }
        locked
    }

    #[track_caller]
    fn lock(&self) {
        if self.try_lock() {
            return;
        }
        for step in 0..TRIES {
            wait_a_little(step);
            if self.0.load() == FREE && self.try_lock() {
                return;
            }
        }
        while self.0.swap(SLEEPERS) != FREE {
            current::sleep_at(self.0.address(), || self.0.peek() == SLEEPERS);
        }
        self.0.taken();
    }

    unsafe fn unlock(&self) {
        let address = self.0.address();
        current::access(address, Kind::ReadModifyWrite, self.0.place());
        if self.0.0.swap(FREE, Ordering::Release) == SLEEPERS {
            current::wake_at(address, 1);
        }
    }
}

/// The word of a readers-writer lock: the readers inside, and two bits.
pub(crate) struct RawRwLock(LockWord);

const WRITER: u32 = 1 << 31;
const ASLEEP: u32 = 1 << 30;

impl RawRwLock {
    pub(crate) const fn new() -> Self {
        Self(LockWord::new())
    }

    /// Changes the word by `enter`, if it gives one.
    #[track_caller]
    fn enter(&self, enter: impl Fn(u32) -> Option<u32>) -> bool {
        let mut word = self.0.load();
        while let Some(next) = enter(word) {
            if self.0.swap_if(word, next) {
                self.0.taken();
                return true;
            }
            word = self.0.peek();
        }
        false
    }

    #[track_caller]
    fn wait(&self, enter: impl Fn(u32) -> Option<u32> + Copy) {
        for step in 0..TRIES {
            wait_a_little(step);
            if self.enter(enter) {
                return;
            }
        }
        while !self.enter(enter) {
            self.0.change();
            self.0.0.fetch_or(ASLEEP, Ordering::Relaxed);
            current::sleep_at(self.0.address(), || {
                let word = self.0.peek();
                word & ASLEEP != 0 && enter(word).is_none()
            });
        }
    }

    /// Changes the word by one read-modify-write, and wakes all if none is inside any more.
    fn leave(&self, leave: impl Fn(u32) -> u32) {
        let address = self.0.address();
        current::access(address, Kind::ReadModifyWrite, self.0.place());
        // No other thread comes between: the access before is where others go first.
        let before = self.0.peek();
        let after = leave(before);
        let is_empty = after & !ASLEEP == 0;
        let after = if is_empty { 0 } else { after };
        self.0.0.store(after, Ordering::Release);
        if before & ASLEEP != 0 && is_empty {
            current::wake_at(address, usize::MAX);
        }
    }

    fn shared(word: u32) -> Option<u32> {
        (word & WRITER == 0).then_some(word + 1)
    }

    fn exclusive(word: u32) -> Option<u32> {
        (word & !ASLEEP == 0).then_some(word | WRITER)
    }

    #[track_caller]
    pub(crate) fn try_lock_shared(&self) -> bool {
        self.enter(Self::shared)
    }

    #[track_caller]
    pub(crate) fn lock_shared(&self) {
        if !self.try_lock_shared() {
            self.wait(Self::shared);
        }
    }

    /// # Safety
    ///
    /// The calling thread holds the lock in shared mode.
    pub(crate) unsafe fn unlock_shared(&self) {
        self.leave(|word| word - 1);
    }

    #[track_caller]
    pub(crate) fn try_lock_exclusive(&self) -> bool {
        self.enter(Self::exclusive)
    }

    #[track_caller]
    pub(crate) fn lock_exclusive(&self) {
        if !self.try_lock_exclusive() {
            self.wait(Self::exclusive);
        }
    }

    /// # Safety
    ///
    /// The calling thread holds the lock in exclusive mode.
    pub(crate) unsafe fn unlock_exclusive(&self) {
        self.leave(|word| word & !WRITER);
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
pub struct Word(RawRwLock);

// SAFETY: the raw lock admits either readers or one writer.
unsafe impl lock_api::RawRwLock for Word {
    const INIT: Self = Self(RawRwLock::new());
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
        // SAFETY: passed on to the caller.
        unsafe { self.0.unlock_shared() }
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
        // SAFETY: passed on to the caller.
        unsafe { self.0.unlock_exclusive() }
    }
}
