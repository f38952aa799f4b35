//! Who waits, a thread or a task, and how it is woken.

use crate::thread;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::time::Instant;

/// Somebody who waits: a thread that is parked or about to be, or a task that has returned
/// `Pending`.
///
/// A waiter may be woken early or twice, and must look for itself whether what it waits for
/// has come.
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
pub enum Waiter {
    /// A thread that calls [`park`].
    Thread(thread::Thread),
    /// A task, on whatever runtime.
    Task(Waker),
}

impl Waiter {
    /// The calling thread.
    #[must_use]
    pub fn this_thread() -> Self {
        Self::Thread(thread::current())
    }

    /// Wakes the thread or the task. The user's code runs if it is a task; its panic is
    /// [contained], for the caller may have others to wake.
    pub fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => {
                contained(|| waker.wake());
            }
        }
    }
}

/// Runs the user's code and ends its panic here: for a caller that has more to do, on behalf of
/// others. The panic hook has reported the panic by then. `None` after a panic.
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

/// Drops what somebody panicked with. A payload is the user's value, and dropping it may panic
/// again; what that panic carries is forgotten, so that this function never unwinds.
pub fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

/// Sleeps until the calling thread is woken, or the deadline has passed, or for no reason.
///
/// A waiter of the thread that was woken before the call makes it return at once. Checkers
/// have no clock: under them a sleep with a deadline only gives the other threads a turn.
pub fn park(deadline: Option<Instant>) {
    #[cfg(not(any(loom, shuttle)))]
    match deadline {
        None => thread::park(),
        Some(deadline) => {
            thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
        }
    }
    #[cfg(any(loom, shuttle))]
    match deadline {
        None => thread::park(),
        Some(_) => thread::yield_now(),
    }
}
