//! Locking where a panic of another thread does not matter.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks. The data behind such a lock is consistent after every statement, so it does not matter if
/// another thread has panicked while it held the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
