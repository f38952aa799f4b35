//! Locks with the interface of `parking_lot`, over a checker's mutex and condition variable.

use super::{
    Condvar, RawMutex,
    cell::{ConstPtr, MutPtr, UnsafeCell},
};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

/// A mutex without poisoning.
#[derive(Default)]
pub struct Mutex<T>(RawMutex<T>);

/// The guard of a [`Mutex`].
#[cfg(loom)]
pub type MutexGuard<'a, T> = loom::sync::MutexGuard<'a, T>;
/// The guard of a [`Mutex`].
#[cfg(shuttle)]
pub type MutexGuard<'a, T> = shuttle::sync::MutexGuard<'a, T>;

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub fn new(value: T) -> Self {
        Self(RawMutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// A readers-writer lock without data.
pub(crate) struct RawRwLock {
    /// Readers inside, or −1 for a writer.
    state: RawMutex<isize>,
    changed: Condvar,
}

impl RawRwLock {
    pub(crate) fn new() -> Self {
        Self {
            state: RawMutex::new(0),
            changed: Condvar::new(),
        }
    }

    fn take(&self, wait: bool, enter: impl Fn(isize) -> Option<isize>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(next) = enter(*state) {
                *state = next;
                return true;
            }
            if !wait {
                return false;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn leave(&self, leave: impl Fn(isize) -> isize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = leave(*state);
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn try_lock_shared(&self) -> bool {
        self.take(false, |state| (state >= 0).then_some(state + 1))
    }

    pub(crate) fn lock_shared(&self) {
        self.take(true, |state| (state >= 0).then_some(state + 1));
    }

    /// # Safety
    ///
    /// The calling thread holds the lock in shared mode.
    pub(crate) unsafe fn unlock_shared(&self) {
        self.leave(|state| state - 1);
    }

    pub(crate) fn try_lock_exclusive(&self) -> bool {
        self.take(false, |state| (state == 0).then_some(-1))
    }

    pub(crate) fn lock_exclusive(&self) {
        self.take(true, |state| (state == 0).then_some(-1));
    }

    /// # Safety
    ///
    /// The calling thread holds the lock in exclusive mode.
    pub(crate) unsafe fn unlock_exclusive(&self) {
        self.leave(|_| 0);
    }
}

/// A readers-writer lock without poisoning.
pub struct RwLock<T> {
    raw: RawRwLock,
    value: UnsafeCell<T>,
}

// SAFETY: the raw lock admits either readers, which share `&T`, or one writer.
unsafe impl<T: Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// A lock around `value`.
    pub fn new(value: T) -> Self {
        Self {
            raw: RawRwLock::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for shared access.
    pub fn read(&self) -> impl Deref<Target = T> + '_ {
        self.raw.lock_shared();
        Shared {
            lock: self,
            value: ManuallyDrop::new(self.value.get()),
        }
    }

    /// Shared access, if no writer holds the lock.
    pub fn try_read(&self) -> Option<impl Deref<Target = T> + '_> {
        self.raw.try_lock_shared().then(|| Shared {
            lock: self,
            value: ManuallyDrop::new(self.value.get()),
        })
    }

    /// Exclusive access, if no thread holds the lock.
    pub fn try_write(&self) -> Option<impl DerefMut<Target = T> + '_> {
        self.raw.try_lock_exclusive().then(|| Exclusive {
            lock: self,
            value: ManuallyDrop::new(self.value.get_mut()),
        })
    }

    /// Waits for exclusive access.
    pub fn write(&self) -> impl DerefMut<Target = T> + '_ {
        self.raw.lock_exclusive();
        Exclusive {
            lock: self,
            value: ManuallyDrop::new(self.value.get_mut()),
        }
    }
}

struct Shared<'a, T> {
    lock: &'a RwLock<T>,
    value: ManuallyDrop<ConstPtr<T>>,
}

impl<T> Deref for Shared<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held in shared mode.
        unsafe { (*self.value).deref() }
    }
}

impl<T> Drop for Shared<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is not used again, and this guard holds the lock.
        unsafe {
            ManuallyDrop::drop(&mut self.value);
            self.lock.raw.unlock_shared();
        }
    }
}

struct Exclusive<'a, T> {
    lock: &'a RwLock<T>,
    value: ManuallyDrop<MutPtr<T>>,
}

impl<T> Deref for Exclusive<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the lock is held in exclusive mode.
        unsafe { (*self.value).deref() }
    }
}

impl<T> DerefMut for Exclusive<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held in exclusive mode.
        unsafe { (*self.value).deref() }
    }
}

impl<T> Drop for Exclusive<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the pointer is not used again, and this guard holds the lock.
        unsafe {
            ManuallyDrop::drop(&mut self.value);
            self.lock.raw.unlock_exclusive();
        }
    }
}
