//! The short lock: for critical sections of a few dozen instructions.
//!
//! Taking it is one exchange, giving it back one plain store: half of what a lock costs whose
//! owner must look, when it leaves, whether somebody sleeps. The price is that nobody sleeps
//! for it: a thread that waits spins a little, gives its core away, and does so again until it has
//! the lock, in no order with others that wait. So it
//! fits where an owner leaves soon (no system call, no user code, no other lock that is held
//! for long) and where those who meet often are sent elsewhere, as the mailboxes do.
//!
//! A checker cannot explore spinning; there the short lock is the checker's own mutex, and
//! what is checked is the code that uses it. Its own orderings are for ThreadSanitizer.

/// How a thread came by a [`ShortLock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It was free.
    None,
    /// It was waited for.
    Brief,
    /// It was waited for so long that the thread gave its core away several times: its holder was
    /// preempted, or others took it again and again. A checker's lock does not say so.
    Long,
}

impl Wait {
    /// Whether the lock was free.
    #[must_use]
    #[inline]
    pub const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }
}

#[cfg(any(loom, shuttle))]
pub use model::{ShortLock, ShortLockGuard};
#[cfg(not(any(loom, shuttle)))]
pub use spinning::{ShortLock, ShortLockGuard};

#[cfg(not(any(loom, shuttle)))]
mod spinning {
    use super::Wait;
    use crate::atomic::{AtomicBool, Ordering};
    use crate::cell::{MutPtr, UnsafeCell};
    use crate::thread;
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};

    /// Looks, with a pause after each, before a waiting thread gives its core away, and after each
    /// time that it gets the core back: about as long as it takes to be scheduled. A thread that
    /// looked only once each time would find the lock taken by a thread that never rests.
    const LOOKS: u32 = 128;

    /// After so many turns given to other threads a wait was long.
    const LONG: u32 = 4;

    /// A mutex for short critical sections, which tells whether it had to be waited for.
    ///
    /// Not fair, not reentrant: a thread that takes it twice waits for itself for ever.
    ///
    /// ```
    /// use tremula_sync::ShortLock;
    ///
    /// let lock = ShortLock::new(1);
    /// *lock.lock() += 1;
    /// assert_eq!(*lock.lock(), 2);
    /// ```
    #[repr(C)]
    pub struct ShortLock<T> {
        locked: AtomicBool,
        value: UnsafeCell<T>,
    }

    // SAFETY: the lock admits one thread at a time to the value, which thereby moves from thread
    // to thread.
    unsafe impl<T: Send> Sync for ShortLock<T> {}
    // SAFETY: as for the value.
    unsafe impl<T: Send> Send for ShortLock<T> {}

    impl<T> ShortLock<T> {
        /// A free lock around `value`.
        #[must_use]
        pub const fn new(value: T) -> Self {
            Self {
                locked: AtomicBool::new(false),
                value: UnsafeCell::new(value),
            }
        }

        /// Takes the lock if it is free.
        #[inline]
        pub fn try_lock(&self) -> Option<ShortLockGuard<'_, T>> {
            // Acquire: pairs with the Release store by which the last owner left.
            (!self.locked.swap(true, Ordering::Acquire)).then(|| self.guard())
        }

        /// Waits for the lock.
        #[inline]
        pub fn lock(&self) -> ShortLockGuard<'_, T> {
            self.lock_noting().0
        }

        /// Waits for the lock, and says how long: what contention is measured by.
        #[inline]
        pub fn lock_noting(&self) -> (ShortLockGuard<'_, T>, Wait) {
            match self.try_lock() {
                Some(guard) => (guard, Wait::None),
                None => self.wait(thread::yield_now),
            }
        }

        /// Waits for the lock; `give_way` lets another thread run.
        #[cold]
        fn wait(&self, mut give_way: impl FnMut()) -> (ShortLockGuard<'_, T>, Wait) {
            let mut turns = 0_u32;
            loop {
                let mut looks = 0;
                let mut pauses = 1;
                while looks < LOOKS {
                    // Longer pauses between the first looks of a wait: a short one is over soon,
                    // and each look takes the line of memory from the holder.
                    for _ in 0..pauses {
                        std::hint::spin_loop();
                    }
                    looks += pauses;
                    if turns == 0 {
                        pauses *= 2;
                    }
                    // Relaxed: only a hint that trying is worth the exchange.
                    if !self.locked.load(Ordering::Relaxed)
                        && let Some(guard) = self.try_lock()
                    {
                        let wait = if turns < LONG {
                            Wait::Brief
                        } else {
                            Wait::Long
                        };
                        return (guard, wait);
                    }
                }
                give_way();
                turns = turns.saturating_add(1);
            }
        }

        fn guard(&self) -> ShortLockGuard<'_, T> {
            ShortLockGuard {
                locked: &self.locked,
                value: self.value.get_mut(),
                not_send: PhantomData,
            }
        }
    }

    /// Holds a [`ShortLock`]; gives it back when dropped.
    pub struct ShortLockGuard<'a, T> {
        locked: &'a AtomicBool,
        value: MutPtr<T>,
        /// What waits spins: its owner must not be a task that sleeps elsewhere.
        not_send: PhantomData<*mut ()>,
    }

    impl<T> Deref for ShortLockGuard<'_, T> {
        type Target = T;

        #[inline]
        fn deref(&self) -> &T {
            // SAFETY: this guard holds the lock.
            unsafe { self.value.deref() }
        }
    }

    impl<T> DerefMut for ShortLockGuard<'_, T> {
        #[inline]
        fn deref_mut(&mut self) -> &mut T {
            // SAFETY: this guard holds the lock.
            unsafe { self.value.deref() }
        }
    }

    impl<T> Drop for ShortLockGuard<'_, T> {
        #[inline]
        fn drop(&mut self) {
            // Release: pairs with the Acquire exchange of the next owner.
            self.locked.store(false, Ordering::Release);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// Waits for a lock whose holder leaves when the waiter gives its core away for the
        /// `turn`th time.
        fn waited(turn: u32) -> Wait {
            let lock = ShortLock::new(());
            let mut held = lock.try_lock();
            let mut turns = 0;
            let (_guard, wait) = lock.wait(|| {
                turns += 1;
                if turns == turn {
                    held = None;
                }
            });
            assert_eq!(turns, turn, "it gave its core away after it had the lock");
            wait
        }

        #[test]
        fn a_wait_is_long_when_the_core_was_given_away_several_times() {
            assert_eq!(waited(1), Wait::Brief);
            assert_eq!(waited(LONG - 1), Wait::Brief);
            assert_eq!(waited(LONG), Wait::Long);
            assert_eq!(waited(10 * LONG), Wait::Long);
        }

        #[test]
        fn a_free_lock_is_not_waited_for() {
            let lock = ShortLock::new(1);
            let (guard, wait) = lock.lock_noting();
            assert!(wait.is_none() && lock.try_lock().is_none());
            drop(guard);
            assert!(lock.lock_noting().1.is_none());
        }
    }
}

#[cfg(any(loom, shuttle))]
mod model {
    use super::Wait;
    use crate::{Mutex, MutexGuard};

    /// A mutex for short critical sections, which tells whether it had to be waited for.
    #[derive(Default)]
    pub struct ShortLock<T>(Mutex<T>);

    /// Holds a [`ShortLock`]; gives it back when dropped.
    pub type ShortLockGuard<'a, T> = MutexGuard<'a, T>;

    impl<T> ShortLock<T> {
        /// A free lock around `value`.
        #[must_use]
        pub fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        /// Takes the lock if it is free.
        pub fn try_lock(&self) -> Option<ShortLockGuard<'_, T>> {
            self.0.try_lock()
        }

        /// Waits for the lock.
        pub fn lock(&self) -> ShortLockGuard<'_, T> {
            self.0.lock()
        }

        /// Waits for the lock, and says whether it had to be waited for.
        pub fn lock_noting(&self) -> (ShortLockGuard<'_, T>, Wait) {
            match self.0.try_lock() {
                Some(guard) => (guard, Wait::None),
                None => (self.0.lock(), Wait::Brief),
            }
        }
    }
}
