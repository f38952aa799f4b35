//! Waiting, as a sender, until the mailbox accepts no more messages.

use crate::Sender;
use crate::extras::Registry;
use crate::waiting::deadline;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};
use tremula_sync::{Waiter, park};

impl<T> Sender<T> {
    /// Waits, as a task on any runtime, until the mailbox is closed or dropped: a sender that works
    /// for messages can stop then.
    ///
    /// Any number of tasks and threads may wait; all are woken. A send costs nothing more for it:
    /// those that wait are registered beside the queue, and only closing looks for them. The first
    /// wait of a mailbox allocates up to 256 bytes, which the mailbox keeps, as urgent messages and
    /// monitors do. O(1) to register,
    /// O(those that wait) to close.
    ///
    /// Cancel-safe: a future that is dropped leaves nothing behind.
    ///
    /// ```
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// use std::pin::pin;
    /// use tremula_mailbox::unbounded;
    ///
    /// let (sender, mailbox) = unbounded::<u64>();
    /// let mut closed = pin!(sender.closed());
    /// assert!(closed.as_mut().poll(&mut cx).is_pending());
    /// drop(mailbox); // wakes the task
    /// assert!(closed.as_mut().poll(&mut cx).is_ready());
    /// ```
    pub async fn closed(&self) {
        let Some(mut wait) = self.wait_until_closed() else {
            return;
        };
        poll_fn(|cx| {
            if wait.register(Waiter::Task(cx.waker().clone())) {
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Waits, as a thread, until the mailbox is closed or dropped, but no longer than `timeout`.
    /// Returns whether it is. Costs the same as [`closed`](Self::closed).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tremula_mailbox::unbounded;
    ///
    /// let (sender, mut mailbox) = unbounded::<u64>();
    /// assert!(!sender.closed_timeout(Duration::from_millis(1)));
    /// mailbox.close();
    /// assert!(sender.closed_timeout(Duration::MAX));
    /// ```
    pub fn closed_timeout(&self, timeout: Duration) -> bool {
        let deadline = deadline(timeout);
        let Some(mut wait) = self.wait_until_closed() else {
            return true;
        };
        while wait.register(Waiter::this_thread()) {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            park(deadline);
        }
        true
    }

    /// A wait for the mailbox's end; `None` if it is closed.
    fn wait_until_closed(&self) -> Option<Closing<'_>> {
        if self.is_closed() {
            return None; // before extras are made for nothing
        }
        let extras = self.shared.make_extras()?;
        Some(Closing {
            waiters: extras.closing(),
            number: None,
        })
    }
}

/// A place among those that wait until the mailbox is closed. Dropping it leaves.
struct Closing<'a> {
    waiters: &'a Registry<Waiter>,
    number: Option<u64>,
}

impl Closing<'_> {
    /// Registers the waiter to wake, instead of an earlier one. `false` if the mailbox is closed.
    fn register(&mut self, waiter: Waiter) -> bool {
        let registered = match self.number {
            None => self.waiters.add(waiter).map(|number| {
                self.number = Some(number);
                None
            }),
            Some(number) => self.waiters.replace(number, waiter).map(Some),
        };
        // An earlier waiter, or this one, is dropped here: the user's code, under no lock.
        registered.is_ok()
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            drop(self.waiters.remove(number)); // the user's code, under no lock
        }
    }
}
