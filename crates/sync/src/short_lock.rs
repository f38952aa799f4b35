//! The short lock: for critical sections of a few dozen instructions.
//!
//! Taking it is one exchange, and releasing it is one plain store. This is cheaper than a lock
//! whose owner must check on release whether a thread sleeps. The price is that no thread sleeps: a
//! waiting thread spins a little, yields its core, and repeats that until it has the lock. Waiters
//! get the lock in no particular order.
//!
//! Use it where the owner releases soon (no system call, no user code, no other lock that is held
//! for long), and where threads that collide often are sent elsewhere, as the mailboxes do.
//!
//! A checker cannot explore spinning. Under a checker the short lock is the checker's own mutex,
//! and what is checked is the code that uses it. ThreadSanitizer checks the orderings in this file.

/// How long a thread waited for a [`ShortLock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The lock was free.
    None,
    /// The thread had to wait.
    Brief,
    /// The thread waited so long that it yielded its core several times: the holder was preempted,
    /// or other threads took the lock again and again. Never reported under a checker.
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

    /// How often a waiting thread looks at the lock before it yields its core, and again each time
    /// it gets the core back: together about as long as scheduling takes. A thread that looked only
    /// once each time would always find the lock taken by a thread that never pauses.
    const LOOKS: u32 = 128;

    /// A wait with at least this many yields is long.
    const LONG: u32 = 4;

    /// A mutex for short critical sections. It reports whether the thread had to wait.
    ///
    /// Not fair and not reentrant: a thread that takes it twice deadlocks.
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

    // SAFETY: the lock admits one thread at a time, so the value moves from thread to thread.
    unsafe impl<T: Send> Sync for ShortLock<T> {}
    // SAFETY: moving the lock moves the value.
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
        #[cfg_attr(sim, track_caller)]
        pub fn try_lock(&self) -> Option<ShortLockGuard<'_, T>> {
            // Acquire: pairs with the Release store by which the last owner left.
            (!self.locked.swap(true, Ordering::Acquire)).then(|| self.guard())
        }

        /// Waits for the lock.
        #[inline]
        #[cfg_attr(sim, track_caller)]
        pub fn lock(&self) -> ShortLockGuard<'_, T> {
            self.lock_noting().0
        }

        /// Waits for the lock, and returns how long: callers measure contention by this.
        #[inline]
        #[cfg_attr(sim, track_caller)]
        pub fn lock_noting(&self) -> (ShortLockGuard<'_, T>, Wait) {
            match self.lock_noting_unless(|| false) {
                Some(locked) => locked,
                None => unreachable!("the thread waits until it has the lock"),
            }
        }

        /// As [`lock_noting`](Self::lock_noting), but the thread stops waiting, without the lock,
        /// when it finds that `leave` holds: then the value is elsewhere, and the threads that wait
        /// need not take the lock one after the other to see that.
        #[inline]
        #[cfg_attr(sim, track_caller)]
        pub fn lock_noting_unless(
            &self,
            leave: impl Fn() -> bool,
        ) -> Option<(ShortLockGuard<'_, T>, Wait)> {
            match self.try_lock() {
                Some(guard) => Some((guard, Wait::None)),
                None => self.wait(leave, thread::yield_now),
            }
        }

        /// Waits for the lock. `give_way` yields the core.
        #[cold]
        #[cfg_attr(sim, track_caller)]
        fn wait(
            &self,
            leave: impl Fn() -> bool,
            mut give_way: impl FnMut(),
        ) -> Option<(ShortLockGuard<'_, T>, Wait)> {
            let mut turns = 0_u32;
            loop {
                let mut looks = 0;
                let mut pauses = 1;
                while looks < LOOKS {
                    // The first looks of a wait have longer and longer pauses between them: a short
                    // wait is over soon, and each look takes the cache line from the holder.
                    for _ in 0..pauses {
                        crate::spin_loop();
                    }
                    looks += pauses;
                    if turns == 0 {
                        pauses *= 2;
                    }
                    if leave() {
                        return None;
                    }
                    // Relaxed: only a hint whether the exchange can succeed.
                    if !self.locked.load(Ordering::Relaxed)
                        && let Some(guard) = self.try_lock()
                    {
                        let wait = if turns < LONG {
                            Wait::Brief
                        } else {
                            Wait::Long
                        };
                        return Some((guard, wait));
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

    /// Holds a [`ShortLock`]; dropping it releases the lock.
    pub struct ShortLockGuard<'a, T> {
        locked: &'a AtomicBool,
        value: MutPtr<T>,
        /// Waiters spin, so the owner must not be a task that moves to another thread while it
        /// sleeps.
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

        /// Waits for a lock whose holder leaves when the waiter yields its core for the `turn`th
        /// time.
        fn waited(turn: u32) -> Wait {
            let lock = ShortLock::new(());
            let mut held = lock.try_lock();
            let mut turns = 0;
            let waited = lock.wait(
                || false,
                || {
                    turns += 1;
                    if turns == turn {
                        held = None;
                    }
                },
            );
            assert_eq!(turns, turn, "it gave its core away after it had the lock");
            waited.expect("nothing to leave for").1
        }

        #[test]
        fn a_wait_is_long_when_the_core_was_given_away_several_times() {
            assert_eq!(waited(1), Wait::Brief);
            assert_eq!(waited(LONG - 1), Wait::Brief);
            assert_eq!(waited(LONG), Wait::Long);
            assert_eq!(waited(10 * LONG), Wait::Long);
        }

        #[test]
        fn a_thread_that_waits_leaves_without_the_lock() {
            let lock = ShortLock::new(());
            let held = lock.lock();
            assert!(lock.lock_noting_unless(|| true).is_none());
            drop(held);
            let free = lock.lock_noting_unless(|| true);
            assert!(free.is_some_and(|(_, wait)| wait.is_none()));
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

    /// A mutex for short critical sections. It reports whether the thread had to wait.
    #[derive(Default)]
    pub struct ShortLock<T>(Mutex<T>);

    /// Holds a [`ShortLock`]; dropping it releases the lock.
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

        /// Waits for the lock, and returns whether the thread had to wait.
        pub fn lock_noting(&self) -> (ShortLockGuard<'_, T>, Wait) {
            match self.0.try_lock() {
                Some(guard) => (guard, Wait::None),
                None => (self.0.lock(), Wait::Brief),
            }
        }

        /// As [`lock_noting`](Self::lock_noting), but the thread does not wait if `leave` holds.
        pub fn lock_noting_unless(
            &self,
            leave: impl Fn() -> bool,
        ) -> Option<(ShortLockGuard<'_, T>, Wait)> {
            match self.0.try_lock() {
                Some(guard) => Some((guard, Wait::None)),
                None if leave() => None,
                None => Some((self.0.lock(), Wait::Brief)),
            }
        }
    }
}
