//! Locks that spin a little and then sleep, as the locks of `parking_lot` do.

use super::atomic::{AtomicU32, Ordering};
use super::current;
use parking_lot::lock_api;

/// The mutex's word: free, locked, or locked while threads may sleep.
const FREE: u32 = 0;
const LOCKED: u32 = 1;
const SLEEPERS: u32 = 2;

/// How often a thread tries before it sleeps. After the first tries, which only pause, it lets
/// other threads have the core.
const TRIES: u32 = 10;
const PAUSING_TRIES: u32 = 3;

fn comes_soon(mut try_lock: impl FnMut() -> bool) -> bool {
    (0..TRIES).any(|step| {
        if step < PAUSING_TRIES {
            (0..2 << step).for_each(|_| current::spin_loop());
        } else {
            current::yield_now();
        }
        try_lock()
    })
}

/// The word of a mutex.
///
/// Source: Drepper, "Futexes are tricky" (2011), section 6, for the three values.
pub struct RawMutex(AtomicU32);

/// A mutex without poisoning.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// The guard of a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;

impl RawMutex {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn swap_if(&self, expected: u32, next: u32) -> bool {
        let swapped = self
            .0
            .compare_exchange(expected, next, Ordering::Acquire, Ordering::Relaxed);
        swapped.is_ok()
    }
}

// SAFETY: a thread holds the lock after it has changed the word from free; no other thread changes
// the word from free until the holder has set it so.
unsafe impl lock_api::RawMutex for RawMutex {
    const INIT: Self = Self(AtomicU32::new(FREE));
    type GuardMarker = lock_api::GuardNoSend;

    fn try_lock(&self) -> bool {
        self.swap_if(FREE, LOCKED)
    }

    fn lock(&self) {
        if self.try_lock() {
            return;
        }
        if comes_soon(|| self.0.load(Ordering::Relaxed) == FREE && self.try_lock()) {
            return;
        }
        while self.0.swap(SLEEPERS, Ordering::Acquire) != FREE {
            current::sleep_at(self.address(), || self.0.peek() == SLEEPERS);
        }
    }

    unsafe fn unlock(&self) {
        if self.0.swap(FREE, Ordering::Release) == SLEEPERS {
            current::wake_at(self.address(), 1);
        }
    }
}

/// The word of a readers-writer lock: the readers inside, and two bits.
pub(crate) struct RawRwLock(AtomicU32);

const WRITER: u32 = 1 << 31;
const ASLEEP: u32 = 1 << 30;

impl RawRwLock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Changes the word by `enter`, if it gives one.
    fn enter(&self, enter: impl Fn(u32) -> Option<u32>) -> bool {
        let entered = self
            .0
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, enter);
        entered.is_ok()
    }

    fn wait(&self, enter: impl Fn(u32) -> Option<u32> + Copy) {
        if comes_soon(|| self.enter(enter)) {
            return;
        }
        while !self.enter(enter) {
            self.0.fetch_or(ASLEEP, Ordering::Relaxed);
            current::sleep_at(self.address(), || {
                let word = self.0.peek();
                word & ASLEEP != 0 && enter(word).is_none()
            });
        }
    }

    fn leave(&self, leave: impl Fn(u32) -> u32) {
        let left = |word| {
            let word = leave(word);
            Some(if word & !ASLEEP == 0 { 0 } else { word })
        };
        let before = self
            .0
            .fetch_update(Ordering::Release, Ordering::Relaxed, left);
        let before = before.unwrap_or_default();
        if before & ASLEEP != 0 && leave(before) & !ASLEEP == 0 {
            current::wake_at(self.address(), usize::MAX);
        }
    }

    fn shared(word: u32) -> Option<u32> {
        (word & WRITER == 0).then_some(word + 1)
    }

    fn exclusive(word: u32) -> Option<u32> {
        (word & !ASLEEP == 0).then_some(word | WRITER)
    }

    pub(crate) fn try_lock_shared(&self) -> bool {
        self.enter(Self::shared)
    }

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

    pub(crate) fn try_lock_exclusive(&self) -> bool {
        self.enter(Self::exclusive)
    }

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
pub type RwLock<T> = lock_api::RwLock<Word, T>;

/// The word of an [`RwLock`].
pub struct Word(RawRwLock);

// SAFETY: the raw lock admits either readers or one writer.
unsafe impl lock_api::RawRwLock for Word {
    const INIT: Self = Self(RawRwLock::new());
    type GuardMarker = lock_api::GuardNoSend;

    fn lock_shared(&self) {
        self.0.lock_shared();
    }

    fn try_lock_shared(&self) -> bool {
        self.0.try_lock_shared()
    }

    unsafe fn unlock_shared(&self) {
        // SAFETY: passed on to the caller.
        unsafe { self.0.unlock_shared() }
    }

    fn lock_exclusive(&self) {
        self.0.lock_exclusive();
    }

    fn try_lock_exclusive(&self) -> bool {
        self.0.try_lock_exclusive()
    }

    unsafe fn unlock_exclusive(&self) {
        // SAFETY: passed on to the caller.
        unsafe { self.0.unlock_exclusive() }
    }
}
