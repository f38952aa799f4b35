//! The senders' handle.

use crate::claim::{Claim, await_credit, wait_for_credit};
use crate::credits::Credit;
use crate::queue::{SenderLane, URGENT};
use crate::shared::Link;
use crate::waiting::deadline;
use crate::{SendError, SendTimeoutError, TrySendError};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// Sends messages to one [`Mailbox`](crate::Mailbox).
///
/// Each clone is a sender with an order of its own: the messages of one sender arrive in the order
/// in which they were sent; between different senders no order is promised. Threads may share a
/// sender; their messages arrive in the order of their sends. Give each thread that sends much its
/// own clone: a clone is cheap, and contending senders are spread by their identity.
///
/// When the last sender is dropped the mailbox is disconnected.
pub struct Sender<T> {
    pub(crate) shared: Link<T>,
    lane: SenderLane,
    /// What the [sink](futures_sink::Sink) has of the capacity. Made when a sink of a bounded
    /// mailbox is first used, so that a sender stays small.
    pub(crate) claim: Option<Box<Claim>>,
}

impl<T> Sender<T> {
    pub(crate) fn new(shared: Link<T>, number: u32) -> Self {
        Self {
            shared,
            lane: SenderLane::of(number),
            claim: None,
        }
    }

    /// Sends a message. If the mailbox is bounded and full, this **blocks the thread** until there
    /// is capacity. A task must not do that: it uses [`send_async`](Self::send_async), which waits
    /// without a thread, or [`try_send`](Self::try_send). If the mailbox is unbounded, `send` does
    /// not wait for capacity, and tasks may use it too.
    ///
    /// O(1). A message sent after another by the same sender arrives after it. When `send` has
    /// returned, the receiver finds the message. A sleeping receiver is woken; while it is awake,
    /// no system call is made.
    ///
    /// # Errors
    ///
    /// The mailbox is closed; the error holds the message.
    ///
    /// ```
    /// use tremula_mailbox::{Config, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// sender.send("hello").unwrap();
    /// assert_eq!(mailbox.recv(), Ok("hello"));
    /// drop(mailbox);
    /// assert_eq!(sender.send("anyone?").unwrap_err().into_inner(), "anyone?");
    /// ```
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        if let Some(credits) = &self.shared.credits
            && !wait_for_credit(credits, None).is_taken()
        {
            return Err(SendError(message));
        }
        self.deliver(message)
    }

    /// Sends a message if there is capacity for it now. O(1).
    ///
    /// # Errors
    ///
    /// The mailbox is bounded and full, or closed; the error holds the message.
    ///
    /// ```
    /// use tremula_mailbox::{Config, TrySendError, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default().bounded(1));
    /// sender.try_send(1).unwrap();
    /// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    /// assert_eq!(mailbox.recv(), Ok(1));
    /// sender.try_send(3).unwrap();
    /// ```
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        if let Some(credits) = &self.shared.credits {
            match credits.try_take() {
                Credit::Taken => {}
                Credit::NoneFree => return Err(TrySendError::Full(message)),
                Credit::Closed => return Err(TrySendError::Closed(message)),
            }
        }
        self.deliver(message).map_err(TrySendError::from)
    }

    /// Like [`send`](Self::send), but waits for capacity no longer than `timeout`.
    ///
    /// # Errors
    ///
    /// The mailbox was full until the timeout, or it is closed; the error holds the message.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tremula_mailbox::{Config, SendTimeoutError, mailbox};
    ///
    /// let (sender, mailbox) = mailbox(Config::default().bounded(1));
    /// sender.send(1).unwrap();
    /// let sent = sender.send_timeout(2, Duration::from_millis(1));
    /// assert_eq!(sent, Err(SendTimeoutError::Timeout(2)));
    /// ```
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, deadline(timeout))
    }

    /// Like [`send_timeout`](Self::send_timeout), with a deadline.
    ///
    /// # Errors
    ///
    /// The mailbox was full until the deadline, or it is closed; the error holds the message.
    ///
    /// ```
    /// use std::time::Instant;
    /// use tremula_mailbox::{SendTimeoutError, bounded};
    ///
    /// let (sender, mailbox) = bounded(1);
    /// sender.send_deadline(1, Instant::now()).unwrap();
    /// let sent = sender.send_deadline(2, Instant::now());
    /// assert_eq!(sent, Err(SendTimeoutError::Timeout(2)));
    /// # drop(mailbox);
    /// ```
    pub fn send_deadline(&self, message: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, Some(deadline))
    }

    /// Sends, and waits for capacity until the deadline, if there is one.
    fn send_until(&self, message: T, deadline: Option<Instant>) -> Result<(), SendTimeoutError<T>> {
        if let Some(credits) = &self.shared.credits {
            match wait_for_credit(credits, deadline) {
                Credit::Taken => {}
                Credit::NoneFree => return Err(SendTimeoutError::Timeout(message)),
                Credit::Closed => return Err(SendTimeoutError::Closed(message)),
            }
        }
        self.deliver(message).map_err(SendTimeoutError::from)
    }

    /// Like [`send`](Self::send), but waits for capacity as a task, on any runtime.
    ///
    /// Waiting senders get capacity in the order in which they began to wait. A future that is
    /// dropped before it has ended has sent nothing and holds no capacity. But a future that is
    /// neither polled nor dropped (kept somewhere, or forgotten) keeps its place in the queue and
    /// the capacity that it gets there; no other sender gets that capacity.
    ///
    /// # Errors
    ///
    /// The mailbox is closed; the error holds the message.
    ///
    /// ```
    /// # let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    /// use std::pin::pin;
    /// use tremula_mailbox::{Config, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default().bounded(1));
    /// let two = async {
    ///     sender.send_async(1).await?;
    ///     sender.send_async(2).await
    /// };
    /// let mut two = pin!(two);
    /// assert!(two.as_mut().poll(&mut cx).is_pending());
    /// assert_eq!(mailbox.recv(), Ok(1));
    /// assert!(two.as_mut().poll(&mut cx).is_ready());
    /// assert_eq!(mailbox.recv(), Ok(2));
    /// ```
    pub async fn send_async(&self, message: T) -> Result<(), SendError<T>> {
        if let Some(credits) = &self.shared.credits
            && !await_credit(credits).await.is_taken()
        {
            return Err(SendError(message));
        }
        self.deliver(message)
    }

    /// Sends an urgent message. It overtakes ordinary messages, but no urgent ones that were sent
    /// before it by any sender. If the mailbox is bounded and full, this blocks the thread until
    /// there is capacity, like [`send`](Self::send).
    ///
    /// For rare messages: urgent messages share one lock and allocate.
    ///
    /// # Errors
    ///
    /// The mailbox is closed; the error holds the message.
    ///
    /// ```
    /// use tremula_mailbox::{Config, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// sender.send("work").unwrap();
    /// sender.send_urgent("stop").unwrap();
    /// assert_eq!(mailbox.recv(), Ok("stop"));
    /// assert_eq!(mailbox.recv(), Ok("work"));
    /// ```
    pub fn send_urgent(&self, message: T) -> Result<(), SendError<T>> {
        if let Some(credits) = &self.shared.credits
            && !wait_for_credit(credits, None).is_taken()
        {
            return Err(SendError(message));
        }
        if self.shared.extras().is_none() && self.is_closed() {
            return Err(SendError(message)); // before extras are made for nothing
        }
        let Some(extras) = self.shared.make_extras() else {
            return Err(SendError(message));
        };
        let signals = self.shared.signals();
        let must_wake = extras
            .send_urgent(message, || signals.raise(URGENT))
            .map_err(SendError)?;
        if must_wake {
            signals.wake();
        }
        Ok(())
    }

    /// Sends a message behind every message whose sending has ended, by any sender. This is the
    /// only order promised between senders. The message takes no capacity of a bounded mailbox and
    /// never waits for it.
    ///
    /// Costs a flush, like a receive.
    ///
    /// # Errors
    ///
    /// The mailbox is closed; the error holds the message.
    ///
    /// ```
    /// use tremula_mailbox::{Config, mailbox};
    ///
    /// let (sender, mut mailbox) = mailbox(Config::default());
    /// let other = sender.clone();
    /// other.send(1).unwrap();
    /// sender.send_behind_all(2).unwrap();
    /// assert_eq!(mailbox.recv(), Ok(1)); // and not 2, although the senders are different
    /// ```
    pub fn send_behind_all(&self, message: T) -> Result<(), SendError<T>> {
        let signals = self.shared.signals();
        if let Some(credits) = &self.shared.credits {
            credits.overdraw();
        }
        let must_wake = self.shared.queue.send_behind_all(signals, message);
        if must_wake.map_err(SendError)? {
            signals.wake();
        }
        Ok(())
    }

    /// Sends a message for which there is capacity.
    #[inline]
    pub(crate) fn deliver(&self, message: T) -> Result<(), SendError<T>> {
        let message = ManuallyDrop::new(message);
        let (queue, signals) = (&self.shared.queue, self.shared.signals());
        // SAFETY: unless the mailbox is closed, the message is not used here any more.
        let sent = unsafe { queue.send(signals, &self.lane, &raw const *message) };
        if self.shared.conclude(sent) {
            return Ok(());
        }
        Err(SendError(ManuallyDrop::into_inner(message)))
    }

    crate::shared::figures!();

    /// Whether the mailbox accepts no more messages. A closed mailbox stays closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.queue.is_closed()
    }

    /// Whether both senders send to the same mailbox.
    #[must_use]
    pub fn same_mailbox(&self, other: &Self) -> bool {
        self.shared.is_to_same(&other.shared)
    }
}

impl<T> Clone for Sender<T> {
    /// A new sender to the same mailbox, with an order of its own.
    fn clone(&self) -> Self {
        let (shared, number) = self.shared.add_sender();
        Self::new(shared, number)
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.give_up_claim();
        self.shared.remove_sender();
    }
}

impl<T> std::fmt::Debug for Sender<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sender").finish_non_exhaustive()
    }
}
