//! The watermark: up to which record a log is durable, and who waits for more.
//!
//! # Invariants
//!
//! 1. The watermark never falls, and never rises once the log has stopped.
//! 2. A waiter is registered under the lock, after a look at the watermark; the watermark rises
//!    under the same lock, and takes out the waiters that it has reached. So a waiter either sees
//!    the new watermark, or is in the map when it rises: no wake-up is lost.
//! 3. `wanted` is at least the sequence of every waiter, before the worker is signalled.
//! 4. No code of the user (a waker) runs under the lock.

use crate::error::Stopped;
use crate::sequence::Sequence;
use crate::signal::Signal;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use tremula_sync::atomic::{AtomicU64, Ordering};
use tremula_sync::{Mutex, Waiter, park};

/// Up to which record a log is durable, to be waited for by threads and by tasks of any runtime.
///
/// One number serves all writers, so an append costs no allocation and no callback: a writer
/// remembers the [last](crate::Ticket::last) sequence of its batch, and a thread that answers a
/// thousand clients needs one wait for all of them. A wait makes the log sync at once; a log
/// that nobody waits for syncs at its own pace.
///
/// A log makes one with [`new`](Self::new), [`advance`](Self::advance)s it, and looks at
/// [`wanted`](Self::wanted) to see for what somebody waits.
///
/// ```
/// use tremula_log::{Sequence, Watermark};
///
/// let watermark = std::sync::Arc::new(Watermark::new(Sequence::NONE));
/// let log = std::sync::Arc::clone(&watermark);
/// let thread = std::thread::spawn(move || log.advance(Sequence::new(3)));
/// watermark.wait(Sequence::new(2)).unwrap();
/// assert_eq!(watermark.get(), Sequence::new(3));
/// thread.join().unwrap();
/// ```
pub struct Watermark {
    durable: AtomicU64,
    /// The greatest sequence that somebody has ever waited for.
    wanted: AtomicU64,
    state: Mutex<State>,
    /// Raised when `wanted` rises beyond the watermark.
    demand: Signal,
}

struct State {
    /// By the sequence that each waits for, and a number of its own.
    waiters: BTreeMap<(u64, u64), Waiter>,
    next_number: u64,
    stopped: Option<Stopped>,
}

impl Watermark {
    /// A watermark at this sequence.
    #[must_use]
    pub fn new(durable: Sequence) -> Self {
        Self {
            durable: AtomicU64::new(durable.get()),
            wanted: AtomicU64::new(0),
            state: Mutex::new(State {
                waiters: BTreeMap::new(),
                next_number: 0,
                stopped: None,
            }),
            demand: Signal::new(),
        }
    }

    /// The last durable record. O(1), one load.
    #[must_use]
    pub fn get(&self) -> Sequence {
        // Acquire: pairs with the store in `advance`: what the log did before is visible.
        Sequence::new(self.durable.load(Ordering::Acquire))
    }

    /// Why the log takes no more batches, if it does not.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.state.lock().stopped.clone()
    }

    /// The greatest sequence that somebody has waited for: a log syncs at once if it is above the
    /// watermark.
    #[must_use]
    pub fn wanted(&self) -> Sequence {
        // Acquire: pairs with the `fetch_max` in `register`, though nothing but the number is read.
        Sequence::new(self.wanted.load(Ordering::Acquire))
    }

    /// Blocks the thread until the record is durable.
    ///
    /// Do not call it from a task: use [`until`](Self::until) there. O(log waiters), and one
    /// wake-up of the thread.
    ///
    /// # Errors
    ///
    /// The log has stopped before the record was durable.
    pub fn wait(&self, sequence: Sequence) -> Result<(), Stopped> {
        self.wait_until(sequence, None).map(|_| ())
    }

    /// Like [`wait`](Self::wait), but no longer than until the deadline. Returns whether the record
    /// is durable.
    ///
    /// # Errors
    ///
    /// The log has stopped before the record was durable.
    pub fn wait_until(
        &self,
        sequence: Sequence,
        deadline: Option<Instant>,
    ) -> Result<bool, Stopped> {
        let mut number = None;
        loop {
            if let Some(result) = self.register(sequence, &mut number, Waiter::this_thread) {
                return result.map(|()| true);
            }
            park(deadline);
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                self.forget(sequence, number);
                return Ok(self.get() >= sequence);
            }
        }
    }

    /// A future that ends when the record is durable. Dropping it before costs nothing.
    ///
    /// Its output is an error if the log has stopped before.
    ///
    /// ```
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// use std::pin::pin;
    /// use tremula_log::{Sequence, Watermark};
    ///
    /// let watermark = Watermark::new(Sequence::NONE);
    /// let mut until = pin!(watermark.until(Sequence::FIRST));
    /// assert!(until.as_mut().poll(&mut cx).is_pending());
    /// watermark.advance(Sequence::FIRST); // wakes the task
    /// assert!(until.as_mut().poll(&mut cx).is_ready());
    /// ```
    #[must_use = "a future does nothing unless it is polled"]
    pub fn until(&self, sequence: Sequence) -> Until<'_> {
        Until {
            watermark: self,
            sequence,
            number: None,
        }
    }

    /// Raises the watermark, and wakes all that it has reached. A lower one changes nothing, and
    /// neither does any once the log has stopped. For those who make logs.
    ///
    /// O(log waiters) for each waiter that is woken.
    pub fn advance(&self, durable: Sequence) {
        let mut state = self.state.lock();
        // Relaxed: only written under the lock.
        if state.stopped.is_some() || durable.get() <= self.durable.load(Ordering::Relaxed) {
            return;
        }
        // Release: pairs with the load in `get`.
        self.durable.store(durable.get(), Ordering::Release);
        let later = state.waiters.split_off(&(durable.get() + 1, 0));
        let reached = mem::replace(&mut state.waiters, later);
        drop(state);
        reached.into_values().for_each(Waiter::wake);
    }

    /// Ends all waits, now and later, for records that are not durable. For those who make logs.
    /// Only the first reason counts.
    pub fn stop(&self, why: Stopped) {
        let mut state = self.state.lock();
        if state.stopped.is_none() {
            state.stopped = Some(why);
        }
        let all = mem::take(&mut state.waiters);
        drop(state);
        all.into_values().for_each(Waiter::wake);
    }

    /// Waits until somebody waits for a record that is not durable, or until
    /// [`call`](Self::call), or until the deadline has passed. For the one thread of a log that
    /// makes records durable.
    pub fn wait_for_demand(&self, deadline: Option<Instant>) -> bool {
        self.demand.wait(deadline)
    }

    /// Ends the [wait for demand](Self::wait_for_demand), or keeps the next one from sleeping. For
    /// those who make logs.
    pub fn call(&self) {
        self.demand.raise();
    }

    /// The result of the wait, or `None` and the waiter is registered under `number`.
    fn register(
        &self,
        sequence: Sequence,
        number: &mut Option<u64>,
        waiter: impl FnOnce() -> Waiter,
    ) -> Option<Result<(), Stopped>> {
        if self.get() >= sequence {
            return Some(Ok(()));
        }
        // Before the waiter is registered: then nothing lies between that and its sleep.
        // AcqRel: pairs with the load in `wanted`.
        if self.wanted.fetch_max(sequence.get(), Ordering::AcqRel) < sequence.get() {
            self.demand.raise();
        }
        let waiter = waiter();
        let mut state = self.state.lock();
        if self.get() >= sequence {
            return Some(Ok(()));
        }
        if let Some(why) = &state.stopped {
            return Some(Err(why.clone()));
        }
        let own = *number.get_or_insert(state.next_number);
        state.next_number = state.next_number.max(own + 1);
        let before = state.waiters.insert((sequence.get(), own), waiter);
        drop(state);
        drop(before);
        None
    }

    /// Takes a waiter out that has given up.
    fn forget(&self, sequence: Sequence, number: Option<u64>) {
        if let Some(number) = number {
            let waiter = self.state.lock().waiters.remove(&(sequence.get(), number));
            drop(waiter);
        }
    }
}

impl fmt::Debug for Watermark {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Watermark at {}", self.get())
    }
}

/// A future that ends when a record is durable, made by [`Watermark::until`].
#[derive(Debug)]
pub struct Until<'a> {
    watermark: &'a Watermark,
    sequence: Sequence,
    number: Option<u64>,
}

impl Future for Until<'_> {
    type Output = Result<(), Stopped>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let waiter = || Waiter::Task(cx.waker().clone());
        let result = this
            .watermark
            .register(this.sequence, &mut this.number, waiter);
        let Some(result) = result else {
            return Poll::Pending;
        };
        // Whatever ended the wait takes the waiter out.
        this.number = None;
        Poll::Ready(result)
    }
}

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.watermark.forget(self.sequence, self.number);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Waker;
    use std::time::Duration;

    #[test]
    fn a_future_that_is_dropped_leaves_no_waiter() {
        let watermark = Watermark::new(Sequence::NONE);
        let mut cx = Context::from_waker(Waker::noop());
        {
            let mut one = pin!(watermark.until(Sequence::FIRST));
            let mut other = pin!(watermark.until(Sequence::FIRST));
            assert!(one.as_mut().poll(&mut cx).is_pending());
            assert!(one.as_mut().poll(&mut cx).is_pending());
            assert!(other.as_mut().poll(&mut cx).is_pending());
            assert_eq!(watermark.state.lock().waiters.len(), 2);
        }
        assert!(watermark.state.lock().waiters.is_empty());
    }

    #[test]
    fn what_is_durable_stays_so_after_the_log_has_stopped() {
        let watermark = Watermark::new(Sequence::NONE);
        watermark.advance(Sequence::new(2));
        watermark.stop(Stopped::Closed);
        watermark.advance(Sequence::new(3));
        assert_eq!(watermark.get(), Sequence::new(2));
        assert!(watermark.wait(Sequence::new(2)).is_ok());
        assert!(matches!(
            watermark.wait(Sequence::new(3)),
            Err(Stopped::Closed)
        ));
    }

    #[test]
    fn a_wait_with_a_deadline_says_that_nothing_has_come() {
        let watermark = Watermark::new(Sequence::NONE);
        let deadline = Instant::now() + Duration::from_millis(1);
        let waited = watermark.wait_until(Sequence::FIRST, Some(deadline));
        assert!(matches!(waited, Ok(false)));
        assert!(watermark.state.lock().waiters.is_empty());
        assert_eq!(watermark.wanted(), Sequence::FIRST);
    }
}
