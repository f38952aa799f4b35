//! The short lock: for critical sections of a few dozen instructions.
//!
//! Taking it is one exchange, giving it back one plain store: half of what a lock costs whose
//! owner must look, when it leaves, whether somebody sleeps. The price is that nobody sleeps
//! for it: who waits spins a little and then gives the core away until the lock is free. So it
//! fits where an owner leaves soon (no system call, no user code, no other lock that is held
//! for long) and where those who meet often are sent elsewhere, as the mailboxes do.
//!
//! A checker cannot explore spinning; there the short lock is the checker's own mutex, and
//! what is checked is the code that uses it. Its own orderings are for ThreadSanitizer.

#[cfg(any(loom, shuttle))]
pub use model::{ShortLock, ShortLockGuard};
#[cfg(not(any(loom, shuttle)))]
pub use spinning::{ShortLock, ShortLockGuard};

#[cfg(not(any(loom, shuttle)))]
mod spinning {
    use crate::Backoff;
    use crate::atomic::{AtomicBool, Ordering};
    use crate::cell::{MutPtr, UnsafeCell};
    use std::marker::PhantomData;
    use std::ops::{Deref, DerefMut};

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

        /// Waits for the lock, and says whether it was taken when first tried for: what contention
        /// is measured by.
        #[inline]
        pub fn lock_noting(&self) -> (ShortLockGuard<'_, T>, bool) {
            match self.try_lock() {
                Some(guard) => (guard, false),
                None => (self.wait(), true),
            }
        }

        #[cold]
        fn wait(&self) -> ShortLockGuard<'_, T> {
            let backoff = Backoff::new();
            loop {
                backoff.wait();
                // Relaxed: only a hint that trying is worth the exchange.
                while self.locked.load(Ordering::Relaxed) {
                    backoff.wait();
                }
                if let Some(guard) = self.try_lock() {
                    return guard;
                }
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
}

#[cfg(any(loom, shuttle))]
mod model {
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
        pub fn lock_noting(&self) -> (ShortLockGuard<'_, T>, bool) {
            match self.0.try_lock() {
                Some(guard) => (guard, false),
                None => (self.0.lock(), true),
            }
        }
    }
}
