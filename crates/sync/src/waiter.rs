//! A waiter, which is a thread or a task, and how it is woken.

use crate::thread;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::Instant;

/// A thread that is parked or is about to park, or a task that has returned `Pending`.
///
/// A waiter may be woken early or twice, so it must check itself whether what it waits for has
/// come.
///
/// ```
/// use tremula_sync::{Waiter, park, thread};
///
/// let me = Waiter::this_thread();
/// let other = thread::spawn(move || me.wake());
/// park(None); // returns because the other thread wakes this one
/// other.join().unwrap();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Waiter {
    /// A thread that calls [`park`].
    Thread(thread::Thread),
    /// A task, on any runtime.
    Task(Waker),
}

impl Waiter {
    /// The calling thread.
    #[must_use]
    pub fn this_thread() -> Self {
        Self::Thread(thread::current())
    }

    /// Wakes the thread or the task. Waking a task runs the user's code; its panic is [contained],
    /// because the caller may have other waiters to wake.
    pub fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => {
                contained(|| waker.wake());
            }
        }
    }
}

/// Runs the user's code and stops its panic here, for a caller that has more to do on behalf of
/// others. The panic hook has already reported the panic. Returns `None` after a panic.
///
/// ```
/// use tremula_sync::contained;
///
/// assert_eq!(contained(|| 1), Some(1));
/// assert_eq!(contained(|| -> u32 { panic!("reported, and no more") }), None);
/// ```
pub fn contained<R>(work: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Some(result),
        Err(payload) => {
            discard(payload);
            None
        }
    }
}

/// Drops the payload of a panic. The payload is a user's value, and dropping it may panic again;
/// the payload of that second panic is forgotten, so this function never unwinds.
pub fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

/// Sleeps until the calling thread is woken or the deadline has passed; it may also return for no
/// reason.
///
/// If the thread's [`Waiter`] was woken before the call, it returns at once. Checkers have no
/// clock: under them a sleep with a deadline only yields to the other threads.
pub fn park(deadline: Option<Instant>) {
    #[cfg(not(any(loom, shuttle)))]
    match deadline {
        None => thread::park(),
        Some(deadline) => {
            thread::park_timeout(deadline.saturating_duration_since(crate::now()));
        }
    }
    #[cfg(any(loom, shuttle))]
    match deadline {
        None => thread::park(),
        Some(_) => thread::yield_now(),
    }
}
