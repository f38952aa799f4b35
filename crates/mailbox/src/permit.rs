//! Permits: capacity that a sender has before it has the message.

use crate::claim::{await_credit, wait_for_credit};
use crate::credits::Credit;
use crate::waiting::deadline;
use crate::{SendError, SendTimeoutError, Sender, TrySendError};
use std::fmt;
use std::mem::ManuallyDrop;
use std::time::Duration;

/// The right to send one message, see [`Sender::reserve`]. It holds capacity for the message: no
/// other sender gets it. Dropping the permit gives the capacity back, to the sender that has waited
/// longest.
#[must_use = "a permit that is dropped gives its capacity back"]
pub struct Permit<'a, T> {
    sender: &'a Sender<T>,
}

impl<T> Sender<T> {
    /// Waits, as a task on any runtime, until there is capacity for one message, and reserves it.
    /// So a message need not be made, or taken from elsewhere, before it can be sent. In an
    /// unbounded mailbox there is always capacity.
    ///
    /// Waiting senders get capacity in the order in which they began to wait, whether they wait
    /// here or in a send. A future that is dropped before it has ended holds no capacity. But a
    /// future that is neither polled nor dropped keeps its place in the queue and the capacity that
    /// it gets there, as with [`send_async`](Self::send_async). The message has its place in the
    /// mailbox from when it is sent, not from when the capacity was reserved.
    ///
    /// O(1) without waiting.
    ///
    /// # Errors
    ///
    /// The mailbox is closed.
    ///
    /// ```
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// use std::pin::pin;
    /// use std::task::Poll;
    /// use tremula_mailbox::{TrySendError, bounded};
    ///
    /// let (sender, mut mailbox) = bounded(1);
    /// let mut reserve = pin!(sender.reserve());
    /// let Poll::Ready(Ok(permit)) = reserve.as_mut().poll(&mut cx) else { panic!() };
    /// assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
    /// permit.send(1).unwrap();
    /// assert_eq!(mailbox.recv(), Ok(1));
    /// ```
    pub async fn reserve(&self) -> Result<Permit<'_, T>, SendError<()>> {
        let credit = match &self.shared.credits {
            Some(credits) => await_credit(credits).await,
            None => self.credit_of_unbounded(),
        };
        if credit.is_taken() {
            return Ok(Permit { sender: self });
        }
        Err(SendError(()))
    }

    /// Reserves capacity for one message, if there is any now. O(1).
    ///
    /// # Errors
    ///
    /// The mailbox is bounded and full, or closed.
    ///
    /// ```
    /// use tremula_mailbox::{TrySendError, bounded};
    ///
    /// let (sender, mut mailbox) = bounded(1);
    /// let permit = sender.try_reserve().unwrap();
    /// assert_eq!(sender.try_reserve().unwrap_err(), TrySendError::Full(()));
    /// drop(permit);
    /// sender.try_reserve().unwrap().send(1).unwrap();
    /// assert_eq!(mailbox.recv(), Ok(1));
    /// ```
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        let credit = match &self.shared.credits {
            Some(credits) => credits.try_take(),
            None => self.credit_of_unbounded(),
        };
        match credit {
            Credit::Taken => Ok(Permit { sender: self }),
            Credit::NoneFree => Err(TrySendError::Full(())),
            Credit::Closed => Err(TrySendError::Closed(())),
        }
    }

    /// Like [`reserve`](Self::reserve), as a thread, and waits no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// The mailbox was full until the timeout, or it is closed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tremula_mailbox::{SendTimeoutError, bounded};
    ///
    /// let (sender, mut mailbox) = bounded(1);
    /// let permit = sender.reserve_timeout(Duration::MAX).unwrap();
    /// let none = sender.reserve_timeout(Duration::from_millis(1));
    /// assert_eq!(none.unwrap_err(), SendTimeoutError::Timeout(()));
    /// permit.send(1).unwrap();
    /// assert_eq!(mailbox.recv(), Ok(1));
    /// ```
    pub fn reserve_timeout(
        &self,
        timeout: Duration,
    ) -> Result<Permit<'_, T>, SendTimeoutError<()>> {
        let credit = match &self.shared.credits {
            Some(credits) => wait_for_credit(credits, deadline(timeout)),
            None => self.credit_of_unbounded(),
        };
        match credit {
            Credit::Taken => Ok(Permit { sender: self }),
            Credit::NoneFree => Err(SendTimeoutError::Timeout(())),
            Credit::Closed => Err(SendTimeoutError::Closed(())),
        }
    }

    /// A mailbox without a limit has credit unless it is closed.
    fn credit_of_unbounded(&self) -> Credit {
        if self.is_closed() {
            Credit::Closed
        } else {
            Credit::Taken
        }
    }
}

impl<T> Permit<'_, T> {
    /// Sends the message. Never waits, and never fails for lack of capacity. Otherwise the same as
    /// [`Sender::send`]. O(1).
    ///
    /// # Errors
    ///
    /// The mailbox was closed in the meantime; the error holds the message.
    ///
    /// ```
    /// use tremula_mailbox::{SendError, bounded};
    ///
    /// let (sender, mut mailbox) = bounded(1);
    /// let permit = sender.try_reserve().unwrap();
    /// mailbox.close();
    /// assert_eq!(permit.send(1), Err(SendError(1)));
    /// ```
    pub fn send(self, message: T) -> Result<(), SendError<T>> {
        // The capacity goes with the message; the receiver gives it back.
        let permit = ManuallyDrop::new(self);
        permit.sender.deliver(message)
    }
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        if let Some(credits) = &self.sender.shared.credits {
            credits.give(1);
        }
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Permit").finish_non_exhaustive()
    }
}
